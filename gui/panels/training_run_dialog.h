// Figures of a whole training run of the shown step: time, tokens, energy and wear of the drives, as `spillway run
// --steps` and `--tokens` print them.
#pragma once

#include <QDialog>
#include <memory>
#include <string>

#include "gui/workspace/outcome.h"

class QLabel;
class QLineEdit;

namespace spillway::gui {

class TrainingRunDialog : public QDialog {
 public:
  // command: that replays the step; empty: there is no file for one.
  TrainingRunDialog(QWidget* parent, std::shared_ptr<const Outcome> outcome, const std::string& command);

 private:
  void answer(const QLineEdit& asked);

  std::shared_ptr<const Outcome> outcome_;
  QLineEdit *tokens_, *steps_;
  QLabel *answer_, *command_;
  QString replays_;
};

}  // namespace spillway::gui
