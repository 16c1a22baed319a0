// Stamps of the bundled scenarios: a picture of each one's memory, and its verdict in words. They are replayed beside
// the window, one after the other, once per build of the program and file, and kept in the user's cache folder.
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
  // Stamps not found yet stay missing until the next find().
  void stop() { worker_.stop(); }
  [[nodiscard]] bool is_running() const { return worker_.is_running(); }
  // On the window's thread. picture: null where nothing is known of the memory.
  std::function<void(const QString& file, const QImage& picture, const QString& verdict)> on_found;

 private:
  Worker worker_;
};

}  // namespace spillway::gui
