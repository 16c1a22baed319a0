#include "gui/panels/sweep_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/stop.h"
#include "planners/offload/ssdtrain.h"
#include "scenario/scenario.h"
#include "scenario/scenario_fields.h"
#include "studies/sweep/sweep_origin.h"

namespace spillway::gui {
namespace {

using Json = nlohmann::ordered_json;
constexpr double gib = 1'073'741'824.0;

bool is_sweep_file(const std::string& path) {
  ByteSource source = ByteSource::open(path, 16U << 20U);
  const auto head = source.peek(4096);
  return std::string_view(reinterpret_cast<const char*>(head.data()), head.size()).find("\"spillway-sweep\"") !=
         std::string_view::npos;
}

std::vector<QPointF> point_of(const Outcome* outcome) {
  if (outcome == nullptr || !outcome->result().memory.known) return {};
  return {QPointF(to_seconds(outcome->result().step_time) * 1e3,
                  static_cast<double>(outcome->result().memory.peak_reserved.count()) / gib)};
}

}  // namespace

std::string sweep_of(const std::string& scenario_text) {
  const std::string title = setting_of(scenario_text, "title").value_or("scenario");
  std::string text = scenario_text;
  for (const std::string key : {"model.micro_batch", "model.recompute"})
    if (setting_of(text, key)) text = with_setting(text, key + "=null");
  Json base = Json::parse(text, nullptr, true, true);
  for (const char* key : {"schema", "version", "title", "note", "offload"}) base.erase(key);
  const Json sweep = {
      {"schema", "spillway-sweep"},
      {"version", 1},
      {"title", "around: " + title},
      {"base", base},
      {"axes",
       {{{"name", "micro_batch"}, {"key", "model.micro_batch"}, {"from", 1}, {"to", 32}, {"times", 2}},
        {{"name", "recompute"}, {"key", "model.recompute"}, {"values", {"none", "selective", "full"}}},
        {{"name", "offload"},
         {"options",
          {{"keep", Json::object()},
           {"host", {{"offload.technique", ssdtrain_word}, {"offload.tier", tier_words()[Tier::host].name}}},
           {"ssd",
            {{"offload.technique", ssdtrain_word},
             {"offload.drives", "samsung-990-pro-2tb"},
             {"offload.drives_per_machine", 4}}}}}}}},
      {"objectives", {"step_time", "peak_memory"}},
      {"require", {{"fits", true}}},
      {"replays", 60}};
  return sweep.dump(2) + "\n";
}

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
  start_ = new QPushButton(tr("Run"));
  start_->setObjectName("sweep run");
  start_->setEnabled(false);
  line->addWidget(words_, 1);
  line->addWidget(bar_);
  line->addWidget(make_);
  line->addWidget(start_);
  column->addLayout(line);
  column->addWidget(chart_, 1);
  QObject::connect(start_, &QPushButton::clicked, this, [this] { is_running() ? stop() : start(); });
  QObject::connect(make_, &QPushButton::clicked, this, [this] {
    try {
      const std::string text = sweep_of(scenario_);
      set_file(std::make_shared<SweepFile>(parse_sweep(text, "sweep of the scenario", folder_)),
               tr("a sweep of this scenario"), "");
      start();
    } catch (const std::exception& error) {
      if (on_error) on_error(describe_error(error));
    }
  });
  chart_->on_point = [this](std::size_t row) { load_point(row); };
}

SweepView::~SweepView() {
  for (const auto& run : runs_) run->stops = true;
  for (const auto& run : runs_) run->worker.join();
}

void SweepView::set_theme(const Theme& theme) { chart_->set_theme(theme); }

void SweepView::set_file(std::shared_ptr<const SweepFile> file, const QString& name, const std::string& store) {
  stop();
  file_ = std::move(file);
  store_ = store;
  rows_.clear();
  words_->setText(tr("%1: %2 points").arg(name).arg(file_->points()));
  words_->setToolTip(words_->text());
  start_->setEnabled(true);
  show_rows();
}

void SweepView::open(const QString& file) {
  const std::string path = file.toStdString();
  const QString name = QString::fromStdString(std::filesystem::path(path).filename().string());
  if (is_sweep_file(path)) return set_file(std::make_shared<SweepFile>(load_sweep(path)), name, "");
  SweepStore store;
  store.read(path);
  const std::optional<SweepOrigin> origin = origin_in(store, path);
  if (!origin)
    throw InputError(path, "", "no sweep and no sweep's store", "open what `spillway sweep` takes, or wrote");
  set_file(std::make_shared<SweepFile>(parse_sweep(*origin, origin->path)), name, path);
  start();
}

void SweepView::show_scenario(const ScenarioDocument* document, const Outcome* now, const Outcome* baseline) {
  make_->setEnabled(document != nullptr && !document->is_trace() && !is_running());
  if (document != nullptr) {
    scenario_ = document->text();
    folder_ = document->folder();
  }
  chart_->mark(point_of(now), point_of(baseline));
}

void SweepView::start() {
  if (file_ == nullptr || is_running()) return;
  rows_.clear();
  show_rows();
  Run& run = *runs_.emplace_back(std::make_unique<Run>());
  run_ = &run;
  bar_->setRange(0, 0);
  show_running();
  run.worker = std::thread([this, &run, file = file_, store = store_] { work(run, *file, store); });
}

void SweepView::stop() {
  for (const auto& run : runs_) run->stops = true;
  run_ = nullptr;
  show_running();
}

void SweepView::show_running() {
  bar_->setVisible(is_running());
  start_->setText(is_running() ? tr("Stop") : tr("Run"));
  make_->setEnabled(!is_running() && !scenario_.empty());
}

// From the worker's last words on there is nothing to wait for.
void SweepView::ended(const Run& run) {
  const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const auto& one) { return one.get() == &run; });
  (*found)->worker.join();
  if (run_ == &run) run_ = nullptr;
  runs_.erase(found);
  show_running();
}

void SweepView::post(const Run& run, std::function<void()> then) {
  const auto guarded = [this, &run, then = std::move(then)] {
    if (run_ == &run) then();
  };
  QMetaObject::invokeMethod(this, guarded, Qt::QueuedConnection);
}

// On the worker. The store is read and not written: its own file belongs to `spillway sweep`.
void SweepView::work(Run& run, const SweepFile& file, const std::string& path) {
  const StopScope scope(&run.stops);
  try {
    SweepStore store;
    if (!path.empty()) store.read(path);
    SweepOptions options;
    options.progress = [this, &run](const std::string& what, std::int64_t done, std::int64_t all) {
      post(run, [this, what, done, all] {
        bar_->setRange(0, static_cast<int>(std::max<std::int64_t>(1, all)));
        bar_->setValue(static_cast<int>(done));
        bar_->setFormat(QString::fromStdString(what) + " %v / %m");
      });
      return !run.stops.load();
    };
    options.replayed = [this, &run](const SweepRow& row) {
      post(run, [this, &run, row] {
        rows_.push_back(row);
        if (std::exchange(is_shown_, false)) post(run, [this] { show_rows(); });
      });
    };
    const SweepOutcome outcome = run_sweep(file, options, store);
    post(run, [this, outcome] {
      rows_ = outcome.rows;
      show_rows();
    });
  } catch (const Cancelled&) {  // nobody waits for it any more
  } catch (const std::exception& error) {
    post(run, [this, described = describe_error(error)] {
      if (on_error) on_error(described);
    });
  }
  QMetaObject::invokeMethod(
      this, [this, &run] { ended(run); }, Qt::QueuedConnection);
}

void SweepView::show_rows() {
  is_shown_ = true;
  chart_->show(rows_);
  if (on_rows) on_rows();
}

void SweepView::load_point(std::size_t row) {
  if (file_ == nullptr || row >= chart_->rows().size() || !on_load) return;
  std::string text = file_->base;
  for (const auto& [key, value] : chart_->rows()[row].settings)
    text = with_setting(text, std::string(key).append("=").append(value));
  text = with_setting(text, "title=" + file_->title + ": " + chart_->rows()[row].label);
  on_load(text, file_->folder);
}

}  // namespace spillway::gui
