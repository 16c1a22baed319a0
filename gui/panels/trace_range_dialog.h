// Asks which part of a long capture to read. A quick pass over the file finds its length and its steps, with progress
// and a way out, while the window goes on.
#pragma once

#include <QDialog>
#include <optional>
#include <string>

#include "gui/workspace/outcome.h"
#include "gui/workspace/worker.h"
#include "traces/formats/trace_part.h"

class QLabel;
class QLineEdit;
class QListWidget;
class QProgressBar;

namespace spillway::gui {

// From this size on, opening a Kineto trace asks first.
inline constexpr std::uint64_t large_trace_bytes = std::uint64_t{256} << 20;

class TraceRangeDialog : public QDialog {
 public:
  TraceRangeDialog(QWidget* parent, std::string file, const ReadRange& range);

  // A text that is no number counts as empty.
  [[nodiscard]] ReadRange range() const;
  [[nodiscard]] QListWidget& steps() { return *steps_; }

 private:
  void survey(const Worker::Task& task);
  void show_survey();
  void take_steps();

  std::string file_;
  std::optional<TraceSurvey> survey_;
  QLabel* words_;
  QProgressBar* bar_;
  QListWidget* steps_;
  QLineEdit *from_, *until_;
  Worker worker_;  // last
};

}  // namespace spillway::gui
