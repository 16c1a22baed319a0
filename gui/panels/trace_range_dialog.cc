#include "gui/panels/trace_range_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QProgressBar>
#include <QVBoxLayout>
#include <algorithm>

namespace spillway::gui {
namespace {

std::optional<double> microseconds_of(const QLineEdit& line) {
  bool is_number = false;
  const double ms = line.text().trimmed().toDouble(&is_number);
  return is_number ? std::optional(ms * 1e3) : std::nullopt;
}

QString milliseconds_of(const std::optional<double>& us) { return us ? QString::number(*us / 1e3, 'f', 3) : QString(); }

}  // namespace

TraceRangeDialog::TraceRangeDialog(QWidget* parent, std::string file, const ReadRange& range)
    : QDialog(parent), file_(std::move(file)) {
  setObjectName("trace range");
  setWindowTitle(tr("Which part of the trace?"));
  resize(520, 420);
  auto* const column = new QVBoxLayout(this);
  words_ = new QLabel(tr("Looking for steps in %1…").arg(QString::fromStdString(file_)));
  words_->setWordWrap(true);
  bar_ = new QProgressBar;
  bar_->setRange(0, 0);
  steps_ = new QListWidget;
  steps_->setAccessibleName(tr("Recorded steps"));
  steps_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  from_ = new QLineEdit(milliseconds_of(range.from_us));
  until_ = new QLineEdit(milliseconds_of(range.until_us));
  from_->setPlaceholderText(tr("the beginning"));
  until_->setPlaceholderText(tr("the end"));
  auto* const form = new QFormLayout;
  form->addRow(tr("from (ms)"), from_);
  form->addRow(tr("until (ms)"), until_);
  auto* const buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
  column->addWidget(words_);
  column->addWidget(bar_);
  column->addWidget(steps_, 1);
  column->addLayout(form);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(steps_, &QListWidget::itemSelectionChanged, this, [this] { take_steps(); });
  worker_.on_failed = [this](const SimulationError& error) {
    bar_->setVisible(false);
    words_->setText(QString::fromStdString(error.title + "\n" + error.remedy));
  };
  worker_.start([this](const Worker::Task& task) { survey(task); });
}

// On the worker.
void TraceRangeDialog::survey(const Worker::Task& task) {
  ReadOptions options;
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    task.post([this, done, all] {
      bar_->setRange(0, 1'000);
      bar_->setValue(all > 0 ? static_cast<int>(1'000.0 * static_cast<double>(done) / static_cast<double>(all)) : 0);
    });
    return !task.is_stopped();
  };
  const TraceSurvey found = survey_trace(file_, options);
  task.post([this, found] {
    survey_ = found;
    show_survey();
  });
}

void TraceRangeDialog::show_survey() {
  bar_->setVisible(false);
  words_->setText(tr("%1 events over %2 ms. Choose steps, or type a range; leave both empty for everything.")
                      .arg(survey_->events)
                      .arg(survey_->length_us / 1e3, 0, 'f', 3));
  for (const TraceSurvey::Step& step : survey_->steps)
    steps_->addItem(tr("%1: %2 to %3 ms")
                        .arg(QString::fromStdString(step.name))
                        .arg(step.from_us / 1e3, 0, 'f', 3)
                        .arg(step.until_us / 1e3, 0, 'f', 3));
}

// From the first chosen step to the last.
void TraceRangeDialog::take_steps() {
  if (!survey_) return;
  ReadRange chosen;
  for (const QListWidgetItem* const item : steps_->selectedItems()) {
    const TraceSurvey::Step& step = survey_->steps[static_cast<std::size_t>(steps_->row(item))];
    chosen.from_us = std::min(chosen.from_us.value_or(step.from_us), step.from_us);
    chosen.until_us = std::max(chosen.until_us.value_or(step.until_us), step.until_us);
  }
  from_->setText(milliseconds_of(chosen.from_us));
  until_->setText(milliseconds_of(chosen.until_us));
}

ReadRange TraceRangeDialog::range() const { return {microseconds_of(*from_), microseconds_of(*until_)}; }

}  // namespace spillway::gui
