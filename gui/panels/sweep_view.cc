#include "gui/panels/sweep_view.h"

#include <QComboBox>
#include <QFocusEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "gui/panels/scenario_controls.h"
#include "gui/workspace/variant_figures.h"
#include "scenario/scenario.h"
#include "studies/sweep/scenario_sweep.h"
#include "studies/sweep/sweep_origin.h"

namespace spillway::gui {
namespace {

constexpr double gib = 1'073'741'824.0;
constexpr int nobodys = -2;

bool is_sweep_file(const std::string& path) {
  ByteSource source = ByteSource::open(path, 16U << 20U);
  const auto head = source.peek(4096);
  return std::string_view(reinterpret_cast<const char*>(head.data()), head.size()).find("\"spillway-sweep\"") !=
         std::string_view::npos;
}

std::optional<ParetoChart::Mark> mark_of(const Outcome* outcome) {
  if (outcome == nullptr || !outcome->result().memory.known) return std::nullopt;
  const Result& result = outcome->result();
  return ParetoChart::Mark{result.tokens_per_second, to_seconds(result.step_time),
                           static_cast<double>(result.memory.peak_reserved.count()) / gib};
}

std::set<std::string> varied_keys(const std::vector<SweepRow>& rows) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> counts;
  for (const SweepRow& row : rows)
    for (const std::string& edit : row.candidate.edits) {
      const std::size_t equals = edit.find('=');
      values[edit.substr(0, equals)].insert(edit.substr(equals + 1));
      ++counts[edit.substr(0, equals)];
    }
  std::set<std::string> varied;
  for (const auto& [key, of] : values)
    if (of.size() > 1 || counts[key] < rows.size()) varied.insert(key);
  return varied;
}

// What a point sets, by the names that keys have elsewhere in the window: "micro-batch 2, activations full".
std::string words_of(const studies::Candidate& point, const std::set<std::string>& varied) {
  std::string words;
  for (const std::string& edit : point.edits) {
    const std::size_t equals = edit.find('=');
    const std::string key = edit.substr(0, equals);
    if (!varied.contains(key)) continue;
    words += (words.empty() ? "" : ", ") + gui::control_of(key).label + " " + edit.substr(equals + 1);
  }
  return words.empty() ? point.name : words;
}

}  // namespace

SweepView::SweepView() : chart_(new ParetoChart) {
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(4, 4, 4, 4);
  auto* const line = new QHBoxLayout;
  words_ = new QLabel(tr("No sweep yet"));
  words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  bar_ = new QProgressBar;
  bar_->setFixedWidth(230);
  bar_->setVisible(false);
  make_ = new QPushButton(tr("Sweep this scenario"));
  make_->setObjectName("sweep this");
  make_->setToolTip(tr("micro-batch, recomputation and offload around the scenario at hand"));
  close_ = new QPushButton(tr("Close"));
  close_->setObjectName("sweep close");
  close_->setToolTip(tr("Puts the sweep away; the scenario at hand can be swept then"));
  start_ = new QPushButton(tr("Run"));
  start_->setObjectName("sweep run");
  start_->setEnabled(false);
  const auto bound = [&](const QString& name, const QString& tip) {
    auto* const field = new QLineEdit;
    field->setPlaceholderText(name);
    field->setAccessibleName(name);
    field->setToolTip(tip);
    field->setClearButtonEnabled(true);
    field->setFixedWidth(104);
    QObject::connect(field, &QLineEdit::textChanged, this, [this] { take_requirements(); });
    line->addWidget(field);
    return field;
  };
  line->addWidget(words_, 1);
  step_ = bound(tr("step ≤ ms"), tr("Only points with a step of at most so many milliseconds are on the front"));
  memory_ = bound(tr("memory ≤ GiB"), tr("Only points that reserve at most so many GiB are on the front"));
  across_ = measures(tr("Across"), tr("What points are drawn by, from left to right"), SweepMeasure::tokens);
  up_ = measures(tr("Up"), tr("What points are drawn by, from bottom to top. The front is of both"),
                 SweepMeasure::memory);
  line->addWidget(across_);
  line->addWidget(up_);
  color_ = new QComboBox;
  color_->setAccessibleName(tr("Colour by"));
  color_->setToolTip(tr("Colours points by the front, or by what an axis of the sweep is set to"));
  color_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  QObject::connect(color_, &QComboBox::currentIndexChanged, this,
                   [this] { chart_->color_by(color_->currentData().toString().toStdString(), color_->currentText()); });
  line->addWidget(color_);
  line->addWidget(bar_);
  line->addWidget(make_);
  line->addWidget(close_);
  line->addWidget(start_);
  column->addLayout(line);
  column->addWidget(chart_, 1);
  clear_axes();
  setTabOrder(chart_, step_);
  setTabOrder(step_, memory_);
  setTabOrder(memory_, across_);
  setTabOrder(across_, up_);
  setTabOrder(up_, color_);
  setTabOrder(color_, make_);
  setTabOrder(make_, close_);
  setTabOrder(close_, start_);
  show_buttons();
  worker_.on_failed = [this](const SimulationError& error) {
    if (on_error) on_error(error);
  };
  worker_.on_end = [this] { show_running(); };
  QObject::connect(start_, &QPushButton::clicked, this, [this] { is_running() ? stop() : start(); });
  QObject::connect(close_, &QPushButton::clicked, this, [this] { close_file(); });
  QObject::connect(make_, &QPushButton::clicked, this, [this] {
    try {
      auto made = std::make_shared<SweepFile>(parse_sweep(sweep_around(scenario_), "sweep of the scenario", folder_));
      of_variant_ = variant_;
      set_file(std::move(made), tr("a sweep of this scenario"), std::make_shared<SweepStore>());
      start();
    } catch (const std::exception& error) {
      if (on_error) on_error(describe_error(error));
    }
  });
  QObject::connect(chart_, &PlotView::chosen, this, [this](qint64 row) { load_point(static_cast<std::size_t>(row)); });
}

QComboBox* SweepView::measures(const QString& name, const QString& tip, SweepMeasure chosen) {
  auto* const box = new QComboBox;
  box->setAccessibleName(name);
  box->setToolTip(tip);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(14);
  for (int i = 0; i < sweep_measures; ++i) box->addItem(measure_words(static_cast<SweepMeasure>(i)));
  box->setCurrentIndex(static_cast<int>(chosen));
  QObject::connect(box, &QComboBox::currentIndexChanged, this, [this] {
    chart_->set_axes(static_cast<SweepMeasure>(across_->currentIndex()),
                     static_cast<SweepMeasure>(up_->currentIndex()));
    show_rows();
  });
  return box;
}

// No focus proxy: Tab into a page that has one goes past what stands before it.
void SweepView::focusInEvent(QFocusEvent* event) { chart_->setFocus(event->reason()); }

void SweepView::set_theme(const Theme& theme) { chart_->set_theme(theme); }

void SweepView::set_file(std::shared_ptr<const SweepFile> file, const QString& name,
                         std::shared_ptr<SweepStore> store) {
  stop();
  file_ = std::move(file);
  store_ = std::move(store);
  rows_.clear();
  name_ = name;
  clear_axes();
  words_->setText(tr("%1: %2 points").arg(name).arg(file_->points()));
  words_->setToolTip(words_->text());
  start_->setEnabled(true);
  show_buttons();
  show_rows();
  if (on_file) on_file();
}

void SweepView::close_file() {
  stop();
  file_ = nullptr;
  store_ = nullptr;
  rows_.clear();
  clear_axes();
  words_->setText(tr("No sweep yet"));
  words_->setToolTip({});
  start_->setEnabled(false);
  show_buttons();
  show_rows();
  if (on_file) on_file();
}

void SweepView::clear_axes() {
  color_->clear();
  color_->addItem(tr("colour: front"), QString());
}

// What points may be coloured by: the front, and each key that points set.
void SweepView::show_axes() {
  for (const SweepRow& row : rows_)
    for (const std::string& edit : row.candidate.edits) {
      const std::string key = edit.substr(0, edit.find('='));
      if (color_->findData(QString::fromStdString(key)) >= 0) continue;
      color_->addItem(QString::fromStdString(control_of(key).label), QString::fromStdString(key));
      color_->setItemData(color_->count() - 1, QString::fromStdString(key), Qt::ToolTipRole);
    }
  color_->setVisible(color_->count() > 1);
}

// "This scenario" is nobody in sight where the sweep is of another.
void SweepView::show_buttons() {
  make_->setVisible(!is_alone());
  close_->setVisible(file_ != nullptr);
}

void SweepView::open(const QString& file) {
  const std::string path = file.toStdString();
  const QString name = QString::fromStdString(std::filesystem::path(path).filename().string());
  auto store = std::make_shared<SweepStore>();
  const auto take = [&](SweepFile sweep) {
    const bool is_at_hand = !scenario_.empty() && changed_keys({sweep.base, scenario_}).empty();
    of_variant_ = is_at_hand ? variant_ : nobodys;
    set_file(std::make_shared<SweepFile>(std::move(sweep)), name, std::move(store));
  };
  if (is_sweep_file(path)) return take(load_sweep(path));
  store->read(path);  // and not written: its own file belongs to `spillway sweep`
  const std::optional<SweepOrigin> origin = origin_in(*store, path);
  if (!origin)
    throw InputError(path, "", "no sweep and no sweep's store", "open what `spillway sweep` takes, or wrote");
  take(parse_sweep(*origin, origin->path));
  start();
}

void SweepView::show_scenario(int variant, const ScenarioDocument* document, const Outcome* now,
                              const Outcome* baseline) {
  variant_ = variant;
  show_buttons();
  make_->setEnabled(document != nullptr && !document->is_trace() && !is_running());
  if (document != nullptr) {
    scenario_ = document->text();
    folder_ = document->folder();
  }
  if (is_alone())
    chart_->mark({}, {});
  else
    chart_->mark(mark_of(now), mark_of(baseline));
}

void SweepView::start() {
  if (file_ == nullptr || is_running()) return;
  rows_.clear();
  show_rows();
  bar_->setRange(0, 0);
  worker_.start([this, file = file_, store = store_](const Worker::Task& task) { work(task, *file, *store); });
  show_running();
}

void SweepView::stop() {
  worker_.stop();
  show_running();
}

void SweepView::show_running() {
  bar_->setVisible(is_running());
  start_->setText(is_running() ? tr("Stop") : tr("Run"));
  make_->setEnabled(!is_running() && !scenario_.empty());
}

// On the worker.
void SweepView::work(const Worker::Task& task, const SweepFile& file, SweepStore& store) {
  SweepOptions options;
  options.progress = [&](const std::string& what, std::int64_t done, std::int64_t all) {
    task.post([this, what, done, all] {
      bar_->setRange(0, static_cast<int>(std::max<std::int64_t>(1, all)));
      bar_->setValue(static_cast<int>(done));
      bar_->setFormat(QString::fromStdString(what) + " %v / %m");
    });
    return !task.is_stopped();
  };
  options.replayed = [&](const SweepRow& row) {
    task.post([this, task, row] {
      rows_.push_back(row);
      if (std::exchange(is_shown_, false)) task.post([this] { show_rows(); });
    });
  };
  const SweepOutcome outcome = run_sweep(file, options, store);
  task.post([this, outcome] {
    rows_ = outcome.rows;
    show_rows();
  });
}

void SweepView::take_requirements() {
  const auto number = [](const QLineEdit* field) {
    bool is_number = false;
    const double value = field->text().trimmed().toDouble(&is_number);
    return is_number && value > 0 ? std::optional(value) : std::nullopt;
  };
  require(number(step_), number(memory_));
}

void SweepView::require(std::optional<double> most_step_ms, std::optional<double> most_gib) {
  most_step_ms_ = most_step_ms;
  most_gib_ = most_gib;
  show_rows();
}

// The front is of those so far, and of those that keep what is asked here: by the axes where both are objectives, else
// by those of the file.
void SweepView::show_rows() {
  is_shown_ = true;
  show_axes();
  std::vector<SweepRow> shown;
  for (const SweepRow& row : rows_) {
    const bool too_slow = most_step_ms_ && row.replayed.step_seconds * 1e3 > *most_step_ms_;
    const bool too_large = most_gib_ && row.replayed.peak_bytes > *most_gib_ * gib;
    if (!too_slow && !too_large) shown.push_back(row);
  }
  const std::optional<studies::Objective> across = objective_of(chart_->across()), up = objective_of(chart_->up());
  if (file_ != nullptr && across && up) {
    SweepFile asked = *file_;
    asked.objectives = {*across, *up};
    mark_front(asked, shown);
  } else if (file_ != nullptr && (is_running() || shown.size() != rows_.size())) {
    mark_front(*file_, shown);
  }
  const std::set<std::string> varied = varied_keys(rows_);
  for (SweepRow& row : shown) row.candidate.name = words_of(row.candidate, varied);
  chart_->show(shown);
  if (on_rows) on_rows();
}

void SweepView::load_point(std::size_t row) {
  if (file_ == nullptr || row >= chart_->rows().size() || !on_load) return;
  std::string text = file_->base;
  const Candidate& point = chart_->rows()[row].candidate;
  for (const std::string& edit : point.edits) text = with_setting(text, edit);
  text = with_setting(text, "title=" + file_->title + ": " + point.name);
  on_load(text, file_->folder);
}

}  // namespace spillway::gui
