#include "gui/plots/charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/number_text.h"
#include "base/short_text.h"
#include "scenario/relaxation_setting.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_kernels = 60;
constexpr double least_share = 5e-4;  // of the kernels' time: what is drawn; the table has all
constexpr double most_empty = 2;      // of the highest point: where a capacity is still in sight
constexpr std::size_t most_levels = 4;
constexpr double gib = 1'073'741'824.0;

QString words(const std::string& text) { return QString::fromStdString(text); }
QString number(double value) { return words(number_text(value)); }
QString percent_words(double fraction) { return words(short_percent(fraction)); }
QString with_thousands(double value) { return words(grouped_text(std::llround(value))); }

// As every other view says it.
QString binding_words(Binding binding) { return words(std::string(describe(binding))); }

}  // namespace

// A gain that is one. A technique plans anew for a faster part, and may come out with a longer step.
static bool helps(const Relaxation& one) { return one.gain >= 0.0005; }

static QString gain_words(const Relaxation& one) {
  if (helps(one)) return percent_words(one.gain);
  return one.gain > -0.0005
             ? SensitivityChart::tr("no gain")
             : SensitivityChart::tr("no gain: planned again, the step is %1 longer").arg(percent_words(-one.gain));
}

SensitivityChart::SensitivityChart()
    : PlotView(tr("Sensitivity"), tr("How much shorter the step would be if one resource were faster"),
               tr("Click or Enter: make it so; Ctrl+Z takes it back")) {
  show(nullptr, nullptr);
}

void SensitivityChart::show(std::shared_ptr<const Sensitivity> now, std::shared_ptr<const Sensitivity> baseline) {
  now_ = std::move(now);
  baseline_ = std::move(baseline);
  PlotScene scene;
  scene.x_title = tr("shorter step, %");
  if (now_ == nullptr) scene.empty_words = tr("Replaying the step with each resource faster…");
  if (now_ == nullptr) return show_scene(std::move(scene));
  for (std::size_t i = 0; i < now_->relaxations.size(); ++i) {
    const Relaxation& one = now_->relaxations[i];
    if (!helps(one)) continue;  // the table says so
    PlotBar bar;
    bar.name = words(one.resource);
    bar.value = one.gain * 100;
    bar.words = percent_words(one.gain);
    bar.facts << tr("step %1").arg(words(short_duration(to_seconds(one.step_time))))
              << tr("shorter by %1").arg(bar.words);
    if (!setting_of_relaxation(one.resource).empty()) bar.id = static_cast<qint64>(i);
    if (baseline_ != nullptr) {
      const auto same = std::find_if(baseline_->relaxations.begin(), baseline_->relaxations.end(),
                                     [&](const Relaxation& other) { return other.resource == one.resource; });
      bar.before = same == baseline_->relaxations.end() ? 0 : std::max(0.0, same->gain * 100);
      bar.facts << tr("baseline: shorter by %1").arg(percent_words(*bar.before / 100));
    }
    scene.bars.push_back(std::move(bar));
  }
  std::stable_sort(scene.bars.begin(), scene.bars.end(),
                   [](const PlotBar& a, const PlotBar& b) { return a.value > b.value; });
  if (scene.bars.empty()) scene.empty_words = tr("Nothing that is faster by itself makes the step shorter.");
  if (baseline_ != nullptr && !scene.bars.empty())
    scene.series = {{tr("this scenario"), Token::accent, PlotShape::square},
                    {tr("baseline"), Token::text, PlotShape::square, 4}};
  show_scene(std::move(scene));
}

const Relaxation* SensitivityChart::relaxation(qint64 id) const {
  if (now_ == nullptr || id < 0 || id >= std::ssize(now_->relaxations)) return nullptr;
  return &now_->relaxations[static_cast<std::size_t>(id)];
}

TableRows SensitivityChart::table() const {
  TableRows rows;
  rows.headings = {tr("what if"), tr("step time"), tr("gain"), tr("peak reserved (GiB)"), tr("saved (GiB)")};
  if (now_ == nullptr) return rows;
  for (const Relaxation& one : now_->relaxations) {
    const double seconds = to_seconds(one.step_time);
    rows.rows.push_back({{words(one.resource), {}},
                         number_cell(words(short_duration(seconds)), seconds),
                         number_cell(gain_words(one), one.gain),
                         {},
                         {}});
  }
  for (const MemoryKnob& knob : now_->knobs) {
    const double peak = static_cast<double>(knob.peak_reserved.count()) / gib;
    const double gain = static_cast<double>(knob.gain.count()) / gib;
    rows.rows.push_back({{tr("memory: ") + words(knob.name), {}},
                         {},
                         {},
                         number_cell(words(three_digits(peak)), peak),
                         number_cell(words(three_digits(gain)), gain)});
  }
  return rows;
}

RooflineChart::RooflineChart()
    : PlotView(tr("Roofline"), tr("Kernels by operations per byte and operations per second, under the GPU's roof"),
               tr("Click or Enter: find it on the canvas")) {
  show(nullptr, nullptr);
}

// At the left edge, where the roof is the memory's: as far below it as its bytes a second are.
static double rate_at(const RooflineKernel& kernel, double edge) {
  if (kernel.flops > 0) return kernel.rate() / 1e12;
  return kernel.time > Picos(0) ? kernel.bytes / to_seconds(kernel.time) * edge / 1e12 : 0;
}

void RooflineChart::show(std::shared_ptr<const Outcome> now, std::shared_ptr<const Outcome> baseline) {
  now_ = std::move(now);
  baseline_ = std::move(baseline);
  PlotScene scene;
  scene.x_title = tr("operations per byte of GPU memory");
  scene.y_title = tr("Tflop/s");
  if (now_ == nullptr || now_->roofline.kernels.empty()) {
    scene.empty_words =
        tr("The trace doesn't say how many operations and bytes its kernels take.\nSteps generated "
           "from a model do.");
    return show_scene(std::move(scene));
  }
  const Roofline& roof = now_->roofline;
  const double ridge = roof.bandwidth > 0 ? roof.peak_flops / roof.bandwidth : 0;
  double low = ridge > 0 ? ridge : 1, high = low;
  for (const RooflineKernel& kernel : roof.kernels) {
    if (kernel.flops <= 0) continue;
    low = std::min(low, kernel.intensity());
    high = std::max(high, kernel.intensity());
  }
  const double edge = low / 8;
  enum : std::uint8_t { before, counted, uncounted };
  scene.series = {{tr("baseline"), Token::muted, PlotShape::disc, 9, true},
                  {tr("kernels, all of a name"), Token::accent, PlotShape::disc, 11},
                  {tr("operations not counted: by its bytes a second"), Token::temporary, PlotShape::diamond, 10}};
  double all = 0;
  for (const RooflineKernel& kernel : roof.kernels) all += to_seconds(kernel.time);
  const auto add = [&](const Outcome& from, bool is_baseline) {
    for (std::size_t i = 0; i < std::min(from.roofline.kernels.size(), most_kernels); ++i) {
      const RooflineKernel& kernel = from.roofline.kernels[i];
      PlotPoint point;
      point.x = kernel.flops > 0 ? kernel.intensity() : edge;
      point.y = rate_at(kernel, edge);
      if (!(point.y > 0) || to_seconds(kernel.time) < least_share * all) continue;
      point.series = is_baseline ? before : kernel.flops > 0 ? counted : uncounted;
      point.name = words(kernel.name);
      if (is_baseline) point.name += tr(" (baseline)");
      point.is_named = !is_baseline;
      if (!is_baseline) point.id = static_cast<qint64>(i);
      const double seconds = to_seconds(kernel.time), bytes = kernel.bytes / seconds;
      point.facts << tr("%1 times, %2").arg(kernel.count).arg(words(duration_text(kernel.time)));
      if (!is_baseline && all > 0)
        point.facts.back() += tr(", %1 of these kernels' time").arg(percent_words(seconds / all));
      if (kernel.flops > 0) {
        point.facts << tr("%1 operations a byte").arg(number(kernel.intensity()));
        QString rate = tr("%1 Tflop/s").arg(number(kernel.rate() / 1e12));
        if (roof.peak_flops > 0) rate += tr(", %1 of the peak").arg(percent_words(kernel.rate() / roof.peak_flops));
        point.facts << rate;
      }
      QString moved = tr("%1 GB/s").arg(number(bytes / 1e9));
      if (roof.bandwidth > 0) moved += tr(", %1 of the memory's").arg(percent_words(bytes / roof.bandwidth));
      point.facts << moved;
      scene.points.push_back(std::move(point));
    }
  };
  if (baseline_ != nullptr && baseline_ != now_) add(*baseline_, true);
  add(*now_, false);
  if (roof.peak_flops > 0 && roof.bandwidth > 0) {
    PlotLine line;
    line.name = tr("roof: %1 TB/s, %2 Tflop/s").arg(number(roof.bandwidth / 1e12), number(roof.peak_flops / 1e12));
    line.token = Token::bad;
    line.at = {{edge, edge * roof.bandwidth / 1e12},
               {ridge, roof.peak_flops / 1e12},
               {std::max(high, ridge) * 4, roof.peak_flops / 1e12}};
    scene.lines.push_back(std::move(line));
  }
  show_scene(std::move(scene));
}

QString RooflineChart::kernel(qint64 id) const {
  if (now_ == nullptr || id < 0 || id >= std::ssize(now_->roofline.kernels)) return {};
  return words(now_->roofline.kernels[static_cast<std::size_t>(id)].name);
}

TableRows RooflineChart::table() const {
  TableRows rows;
  rows.headings = {tr("kernel"), tr("count"), tr("time (ms)"), tr("flop/byte"), tr("Tflop/s"), tr("GB/s")};
  if (now_ == nullptr) return rows;
  for (const RooflineKernel& kernel : now_->roofline.kernels) {
    const double ms = to_seconds(kernel.time) * 1e3, rate = kernel.rate() / 1e12;
    const double bytes = ms > 0 ? kernel.bytes / ms / 1e6 : 0;
    const auto counted = [&](double value) {
      return kernel.flops > 0 ? number_cell(QString::number(value, 'f', 2), value) : TableCell{tr("not known"), {}};
    };
    rows.rows.push_back({{words(kernel.name), {}},
                         number_cell(QString::number(kernel.count), static_cast<double>(kernel.count)),
                         number_cell(QString::number(ms, 'f', 3), ms),
                         counted(kernel.intensity()),
                         counted(rate),
                         number_cell(QString::number(bytes, 'f', 1), bytes)});
  }
  return rows;
}

ParetoChart::ParetoChart()
    : PlotView(tr("Points of a sweep"), tr("Points of a sweep by throughput and peak memory"),
               tr("Click or Enter: open it as a variant")) {
  draw();
}

void ParetoChart::show(std::vector<SweepRow> rows) {
  rows_ = std::move(rows);
  draw();
}

void ParetoChart::set_axes(SweepMeasure across, SweepMeasure up) {
  across_ = across;
  up_ = up;
  draw();
}

void ParetoChart::mark(const std::optional<Mark>& now, const std::optional<Mark>& baseline) {
  if (now == now_ && baseline == baseline_) return;
  now_ = now;
  baseline_ = baseline;
  draw();
}

void ParetoChart::color_by(const std::string& key, const QString& label) {
  axis_ = key;
  axis_label_ = label;
  draw();
}

static std::string value_of(const SweepRow& row, const std::string& key) {
  for (const std::string& edit : row.candidate.edits)
    if (edit.starts_with(key + "=")) return edit.substr(key.size() + 1);
  return "";
}

// By value, in order of numbers where they are such: a series' number. Neighbours share one where there are more
// numbers than colours, so do the last ones of other values.
static std::map<std::string, std::size_t> add_value_series(const std::vector<SweepRow>& rows, const std::string& key,
                                                           const QString& label, PlotScene& scene) {
  std::map<std::string, std::size_t> series;
  std::vector<std::string> values;
  for (const SweepRow& row : rows)
    if (row.ran() && series.try_emplace(value_of(row, key), 0).second) values.push_back(value_of(row, key));
  std::stable_sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
    return QString::fromStdString(a).toDouble() < QString::fromStdString(b).toDouble();
  });
  const bool are_numbers = std::all_of(values.begin(), values.end(), [](const std::string& value) {
    bool is_number = false;
    QString::fromStdString(value).toDouble(&is_number);
    return is_number;
  });
  const std::size_t colors = std::min(values.size(), line_tokens), before = scene.series.size();
  const auto color_of = [&](std::size_t i) {
    return are_numbers ? i * colors / values.size() : std::min(i, colors - 1);
  };
  for (std::size_t i = 0, end = 0; i < values.size(); i = end) {
    while (end < values.size() && color_of(end) == color_of(i)) series[values[end++]] = before + color_of(i);
    const QString one = QString("%1 %2").arg(label, words(values[i]));
    scene.series.push_back({end == i + 1  ? one
                            : are_numbers ? ParetoChart::tr("%1 to %2").arg(one, words(values[end - 1]))
                                          : ParetoChart::tr("others"),
                            line_token(color_of(i)), PlotShape::disc, 8});
  }
  return series;
}

static double rate_of(const SweepRow& row) {
  return row.replayed.step_seconds > 0 ? row.replayed.tokens_per_step / row.replayed.step_seconds : 0;
}

QString measure_name(SweepMeasure measure) {
  constexpr const char* names[] = {QT_TR_NOOP("tokens a second"),
                                   QT_TR_NOOP("step time, ms"),
                                   QT_TR_NOOP("GiB reserved on the fullest GPU"),
                                   QT_TR_NOOP("GPUs"),
                                   QT_TR_NOOP("GPU seconds per million tokens"),
                                   QT_TR_NOOP("USD per million tokens"),
                                   QT_TR_NOOP("kWh per million tokens"),
                                   QT_TR_NOOP("years that the SSDs last")};
  return ParetoChart::tr(names[static_cast<std::size_t>(measure)]);
}

QString measure_words(SweepMeasure measure) {
  constexpr const char* words[] = {
      QT_TR_NOOP("tokens a second"), QT_TR_NOOP("step time"), QT_TR_NOOP("peak memory"), QT_TR_NOOP("GPUs"),
      QT_TR_NOOP("GPU time"),        QT_TR_NOOP("cost"),      QT_TR_NOOP("energy"),      QT_TR_NOOP("SSD life")};
  return ParetoChart::tr(words[static_cast<std::size_t>(measure)]);
}

std::optional<studies::Objective> objective_of(SweepMeasure measure) {
  using studies::Objective;
  constexpr std::array<Objective, sweep_measures - 1> objectives = {
      Objective::step_time,      Objective::peak_memory,      Objective::gpus,    Objective::gpu_time_per_token,
      Objective::cost_per_token, Objective::energy_per_token, Objective::ssd_life};
  if (measure == SweepMeasure::tokens) return std::nullopt;
  return objectives[static_cast<std::size_t>(measure) - 1];
}

// None: not known of it.
static std::optional<double> measured(const SweepRow& row, SweepMeasure measure) {
  constexpr double million = 1e6, joules_of_kwh = 3.6e6;
  const studies::Figures& figures = row.replayed;
  const bool per_token = figures.tokens_per_step > 0;
  const auto known = [](double value) { return value > 0 ? std::optional(value) : std::nullopt; };
  switch (measure) {
    case SweepMeasure::tokens:
      return known(rate_of(row));
    case SweepMeasure::step_time:
      return known(figures.step_seconds * 1e3);
    case SweepMeasure::memory:
      return figures.peak_bytes / gib;
    case SweepMeasure::gpus:
      return known(figures.gpus);
    case SweepMeasure::gpu_time:
    case SweepMeasure::cost:
    case SweepMeasure::energy:
      if (!per_token) return std::nullopt;
      return known(figures.value(*objective_of(measure)) * million /
                   (measure == SweepMeasure::energy ? joules_of_kwh : 1));
    case SweepMeasure::life:
      return std::isfinite(figures.life_years) ? known(figures.life_years) : std::nullopt;
  }
  return std::nullopt;
}

static bool more_is_better(SweepMeasure measure) {
  return measure == SweepMeasure::tokens || measure == SweepMeasure::life;
}

static QString axis_title(SweepMeasure measure) {
  return measure_name(measure) + " " +
         (more_is_better(measure) ? ParetoChart::tr("→ better") : ParetoChart::tr("← better"));
}

void ParetoChart::draw() {
  PlotScene scene;
  scene.empty_words = rows_.empty() ? tr("Run a sweep: its points appear here as they are replayed.\nClick one to "
                                         "open it as a variant.")
                                    : QString();
  // Models without tokens have no rate.
  const bool has_rates =
      std::all_of(rows_.begin(), rows_.end(), [](const SweepRow& row) { return !row.ran() || rate_of(row) > 0; });
  const SweepMeasure across_as = across_ == SweepMeasure::tokens && !has_rates ? SweepMeasure::step_time : across_;
  scene.x_title = axis_title(across_as);
  scene.y_title = axis_title(up_);
  enum : std::uint8_t { best, does, fails, baseline, present };
  scene.series = {{tr("front"), Token::good, PlotShape::disc, 11},
                  {tr("does what is required"), Token::accent, PlotShape::disc, 7},
                  {tr("misses what is required"), Token::muted, PlotShape::ring, 7},
                  {tr("baseline"), Token::text, PlotShape::diamond, 13, true},
                  {tr("this scenario"), Token::warn, PlotShape::diamond, 13}};
  const auto by_value =
      axis_.empty() ? std::map<std::string, std::size_t>() : add_value_series(rows_, axis_, axis_label_, scene);
  // Points of equal figures are one mark with several names; those on the front lie on top.
  std::map<std::pair<double, double>, std::size_t> seen;
  std::vector<QPointF> front;
  for (const bool on_front : {false, true})
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const SweepRow& row = rows_[i];
      if (!row.ran() || row.on_front != on_front) continue;
      const std::optional<double> x = measured(row, across_as), y = measured(row, up_);
      if (!x || !y) continue;
      PlotPoint point;
      point.x = *x;
      point.y = *y;
      point.series = on_front ? best : row.does ? does : fails;
      if (!axis_.empty() && (on_front || row.does)) point.series = by_value.at(value_of(row, axis_));
      const auto [at, is_new] = seen.emplace(std::pair(point.x, point.y), scene.points.size());
      if (!is_new && scene.points[at->second].series == point.series) {
        QStringList& facts = scene.points[at->second].facts;
        if (facts.size() < 12) facts << tr("the same: %1").arg(words(row.candidate.name));
        continue;
      }
      point.id = static_cast<qint64>(i);
      point.name = words(row.candidate.name);
      if (has_rates) point.facts << tr("%1 tokens a second").arg(with_thousands(rate_of(row)));
      point.facts << tr("step %1").arg(words(short_duration(row.replayed.step_seconds)))
                  << tr("%1 GiB reserved").arg(words(three_digits(row.replayed.peak_bytes / gib)));
      for (const SweepMeasure one : {across_as, up_})
        if (one > SweepMeasure::memory)
          point.facts << measure_name(one) + ": " + words(three_digits(*measured(row, one)));
      point.facts << tr("limited by: %1").arg(binding_words(row.result.binding))
                  << tr("fits: %1").arg(words(std::string(yes_or_no(row.result.verdict()))));
      if (on_front) point.facts << tr("on the front: no other is better in all that is asked for");
      if (on_front) front.emplace_back(point.x, point.y);
      scene.points.push_back(std::move(point));
    }
  std::sort(front.begin(), front.end(), [](QPointF a, QPointF b) { return a.x() < b.x(); });
  if (!front.empty()) scene.lines.push_back({"", Token::good, std::move(front), true, true});
  // Of machines that differ each its own; far above all points they would press these to the bottom.
  double highest = 0;
  for (const PlotPoint& point : scene.points) highest = std::max(highest, point.y);
  std::set<double> capacities;
  for (const SweepRow& row : rows_)
    if (row.ran() && row.result.memory.capacity > Bytes(0))
      capacities.insert(static_cast<double>(row.result.memory.capacity.count()) / gib);
  for (const double capacity : capacities)
    if (up_ == SweepMeasure::memory && capacity <= most_empty * highest && scene.levels.size() < most_levels)
      scene.levels.push_back({capacity, Token::bad, tr("capacity, %1 GiB").arg(words(three_digits(capacity)))});
  const auto mark = [&](const std::optional<Mark>& at, std::size_t series) {
    if (!at || rows_.empty() || across_as > SweepMeasure::memory || up_ > SweepMeasure::memory) return;
    const std::array<double, 3> values = {at->tokens_per_second, at->step_seconds * 1e3, at->peak_gib};
    PlotPoint point;
    point.x = values[static_cast<std::size_t>(across_as)];
    point.y = values[static_cast<std::size_t>(up_)];
    if (!(point.x > 0) || !(point.y > 0)) return;
    point.series = series;
    point.name = scene.series[series].name;
    point.facts << tr("step %1").arg(words(short_duration(at->step_seconds)))
                << tr("%1 GiB reserved").arg(words(three_digits(at->peak_gib)));
    scene.points.push_back(std::move(point));
  };
  mark(baseline_, baseline);
  mark(now_, present);
  show_scene(std::move(scene));
}

TableRows ParetoChart::table() const {
  TableRows rows;
  rows.headings = {tr("point"),     tr("front"), tr("fits"), tr("tokens/s"), tr("step time"), tr("peak reserved (GiB)"),
                   tr("limited by")};
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const SweepRow& row = rows_[i];
    const double ms = row.replayed.step_seconds * 1e3, peak = row.replayed.peak_bytes / gib;
    rows.ids.push_back(static_cast<qint64>(i));
    if (!row.ran()) {
      rows.rows.push_back({{words(row.candidate.name), {}}, {}, {}, {}, {}, {}, {words(row.error), {}}});
      continue;
    }
    rows.rows.push_back({{words(row.candidate.name), {}},
                         {row.on_front ? tr("yes") : QString(), {}},
                         {words(std::string(yes_or_no(row.result.verdict()))), {}},
                         rate_of(row) > 0 ? number_cell(with_thousands(rate_of(row)), rate_of(row)) : TableCell{},
                         number_cell(words(short_duration(ms / 1e3)), ms),
                         number_cell(words(three_digits(peak)), peak),
                         {binding_words(row.result.binding), {}}});
  }
  return rows;
}

}  // namespace spillway::gui
