#include "gui/panels/training_run_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QVBoxLayout>
#include <utility>

#include "base/input_error.h"
#include "studies/diagnosis/training_run_words.h"

namespace spillway::gui {
namespace {

constexpr std::int64_t usual_steps = 10'000;

QString html_rows(const studies::TrainingRun& run, const Result& result) {
  QString rows;
  for (const auto& [name, words] : studies::training_run_rows(run, result))
    rows += QString("<tr><td><b>%1</b>&nbsp;&nbsp;</td><td>%2</td></tr>")
                .arg(QString::fromStdString(name).toHtmlEscaped(), QString::fromStdString(words).toHtmlEscaped());
  return "<table>" + rows + "</table>";
}

QLabel* words_label(const QString& name) {
  auto* const label = new QLabel;
  label->setObjectName(name);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  return label;
}

}  // namespace

TrainingRunDialog::TrainingRunDialog(QWidget* parent, std::shared_ptr<const Outcome> outcome,
                                     const std::string& command)
    : QDialog(parent), outcome_(std::move(outcome)), replays_(QString::fromStdString(command)) {
  setObjectName("training run");
  setWindowTitle(tr("A whole training run"));
  resize(640, 320);
  tokens_ = new QLineEdit;
  tokens_->setAccessibleName(tr("Tokens"));
  tokens_->setPlaceholderText("1e12");
  tokens_->setEnabled(outcome_->loaded.options.tokens_per_step > 0);
  steps_ = new QLineEdit(QString::number(usual_steps));
  steps_->setAccessibleName(tr("Steps"));
  auto* const form = new QFormLayout;
  form->addRow(tr("steps like this one"), steps_);
  form->addRow(tr("or of so many tokens"), tokens_);
  answer_ = words_label("training run answer");
  command_ = words_label("training run command");
  auto* const buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  auto* const column = new QVBoxLayout(this);
  column->addLayout(form);
  column->addWidget(answer_, 1);
  column->addWidget(command_);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(steps_, &QLineEdit::textEdited, this, [this] { answer(*steps_); });
  connect(tokens_, &QLineEdit::textEdited, this, [this] { answer(*tokens_); });
  answer(*steps_);
}

void TrainingRunDialog::answer(const QLineEdit& asked) {
  const bool by_tokens = &asked == tokens_;
  (by_tokens ? steps_ : tokens_)->clear();
  command_->clear();
  // As the command line takes them: steps are whole.
  const QString said = asked.text().trimmed();
  bool is_number = false;
  const double number = by_tokens ? said.toDouble(&is_number) : static_cast<double>(said.toLongLong(&is_number));
  if (!is_number || !(number >= 1) || number > 1e18) {
    answer_->setText(by_tokens ? tr("A number of tokens, as 1e12.") : tr("A number of steps, 1 or more."));
    return;
  }
  try {
    const std::int64_t steps =
        by_tokens ? studies::steps_for_tokens(outcome_->loaded, number, "tokens") : static_cast<std::int64_t>(number);
    answer_->setText(html_rows(studies::training_run(outcome_->loaded, outcome_->result(), steps), outcome_->result()));
    if (!replays_.isEmpty())
      command_->setText(QString("%1 --%2 %3").arg(replays_, by_tokens ? "tokens" : "steps", said));
  } catch (const InputError& error) {
    answer_->setText(QString::fromStdString(error.cause() + "\n" + error.remedy()));
  }
}

}  // namespace spillway::gui
