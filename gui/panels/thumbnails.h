// What each of the bundled scenarios comes to, as a stamp of its memory and its verdict in words: replayed beside the
// window, one after the other, once per build of the program and file; kept in the user's cache folder.
#pragma once

#include <QImage>
#include <QSize>
#include <QString>
#include <functional>
#include <vector>

#include "gui/canvas/theme.h"
#include "gui/workspace/worker.h"

namespace spillway::gui {

class Thumbnails {
 public:
  // In place of those that were asked for before; what is kept already comes at once. ratio: device pixels per logical
  // one.
  void find(std::vector<QString> files, QSize size, double ratio, const Theme& theme);
  // What is missing stays missing until it is asked for again.
  void stop() { worker_.stop(); }
  [[nodiscard]] bool is_running() const { return worker_.is_running(); }
  // On the window's thread. picture: null where nothing is known of the memory.
  std::function<void(const QString& file, const QImage& picture, const QString& verdict)> on_found;

 private:
  Worker worker_;
};

}  // namespace spillway::gui
