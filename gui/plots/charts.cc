#include "gui/plots/charts.h"

#include <QPainter>
#include <QtCharts/QBarCategoryAxis>
#include <QtCharts/QBarSet>
#include <QtCharts/QChart>
#include <QtCharts/QHorizontalBarSeries>
#include <QtCharts/QLegendMarker>
#include <QtCharts/QLineSeries>
#include <QtCharts/QLogValueAxis>
#include <QtCharts/QScatterSeries>
#include <QtCharts/QValueAxis>
#include <algorithm>
#include <array>
#include <cmath>

#include "studies/sweep/sweep_front.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_kernels = 60;
constexpr double gib = 1'073'741'824.0;

QString percent_words(double fraction) { return QString("%1 %").arg(fraction * 100, 0, 'f', 1); }

// Room around values on a logarithmic axis, and a label at least every doubling where they lie close together.
void set_log_range(QLogValueAxis& axis, double low, double high) {
  low = std::max(low, 1e-9);
  high = std::max(high, low * 1.01);
  const double base = high / low > 1'000 ? 10 : 2;
  axis.setBase(base);
  const double from = std::floor(std::log(low) / std::log(base)), to = std::ceil(std::log(high) / std::log(base));
  axis.setRange(std::pow(base, from), std::pow(base, std::max(to, from + 1)));
}

QScatterSeries* scatter(const QString& name, const QColor& color, double size) {
  auto* const series = new QScatterSeries;
  series->setName(name);
  series->setColor(color);
  series->setBorderColor(color.darker(140));
  series->setMarkerSize(size);
  return series;
}

void attach(QChart& chart, QAbstractSeries* series, QAbstractAxis* x, QAbstractAxis* y) {
  chart.addSeries(series);
  series->attachAxis(x);
  series->attachAxis(y);
}

}  // namespace

ChartView::ChartView(const QString& name, const QString& about) : theme_(&light_theme()) {
  setAccessibleName(name);
  setAccessibleDescription(about);
  setRenderHint(QPainter::Antialiasing);
  setFrameShape(QFrame::NoFrame);
  setMinimumSize(240, 120);
}

void ChartView::set_theme(const Theme& theme) {
  theme_ = &theme;
  redraw();
}

void ChartView::set_stale(bool stale) {
  if (stale == stale_) return;
  stale_ = stale;
  viewport()->update();
}

void ChartView::redraw() {
  QChart* const old = chart();
  auto* const fresh = new QChart;
  fresh->setBackgroundBrush(theme_->background);
  fresh->setPlotAreaBackgroundVisible(false);
  fresh->setBackgroundRoundness(0);
  fresh->setMargins(QMargins(6, 2, 10, 2));
  fresh->legend()->setLabelColor(theme_->text);
  fresh->legend()->setAlignment(Qt::AlignTop);
  setBackgroundBrush(theme_->background);
  draw(*fresh);
  setChart(fresh);
  delete old;
}

void ChartView::dress(QAbstractAxis& axis, const QString& title) const {
  axis.setTitleText(title);
  axis.setTitleBrush(theme_->muted);
  axis.setLabelsColor(theme_->text);
  axis.setGridLineColor(theme_->grid);
  axis.setLinePenColor(theme_->muted);
  if (auto* const log = qobject_cast<QLogValueAxis*>(&axis)) {
    log->setMinorGridLineVisible(false);
    log->setLabelFormat("%g");
  }
  if (auto* const linear = qobject_cast<QValueAxis*>(&axis)) linear->setLabelFormat("%.4g");
}

void ChartView::paintEvent(QPaintEvent* event) {
  QChartView::paintEvent(event);
  if (!stale_ && empty_words_.isEmpty()) return;
  QPainter painter(viewport());
  if (stale_) {
    QColor veil = theme_->background;
    veil.setAlpha(130);
    painter.fillRect(viewport()->rect(), veil);
  }
  painter.setPen(theme_->muted);
  if (!empty_words_.isEmpty()) painter.drawText(viewport()->rect(), Qt::AlignCenter | Qt::TextWordWrap, empty_words_);
}

// A gain that is one. A technique plans anew for a faster part, and may come out with a longer step.
static bool helps(const Relaxation& one) { return one.gain >= 0.0005; }

static QString gain_words(const Relaxation& one) {
  if (helps(one)) return percent_words(one.gain);
  return one.gain > -0.0005
             ? SensitivityChart::tr("no gain")
             : SensitivityChart::tr("no gain: planned anew, the step is %1 longer").arg(percent_words(-one.gain));
}

SensitivityChart::SensitivityChart()
    : ChartView(tr("Sensitivity"), tr("How much shorter the step would be if one resource were faster")) {
  redraw();
}

void SensitivityChart::show(std::shared_ptr<const Sensitivity> now, std::shared_ptr<const Sensitivity> baseline) {
  now_ = std::move(now);
  baseline_ = std::move(baseline);
  redraw();
}

void SensitivityChart::draw(QChart& chart) {
  empty_words_ = now_ == nullptr ? tr("Replaying the step with each resource faster…") : QString();
  if (now_ == nullptr) return;
  auto* const now = new QBarSet(tr("this scenario"));
  auto* const before = new QBarSet(tr("baseline"));
  now->setColor(theme().accent);
  before->setColor(theme().ghost(theme().muted));
  QStringList names;
  double most = 1;
  // The first is drawn at the bottom.
  for (auto one = now_->relaxations.rbegin(); one != now_->relaxations.rend(); ++one) {
    if (!helps(*one)) continue;  // the table says so
    names << QString::fromStdString(one->resource);
    now->append(one->gain * 100);
    most = std::max(most, one->gain * 100);
    if (baseline_ == nullptr) continue;
    const auto same = std::find_if(baseline_->relaxations.begin(), baseline_->relaxations.end(),
                                   [&](const Relaxation& other) { return other.resource == one->resource; });
    before->append(same == baseline_->relaxations.end() ? 0 : same->gain * 100);
    most = std::max(most, before->at(before->count() - 1));
  }
  empty_words_ = names.isEmpty() ? tr("Nothing that is faster by itself makes the step shorter.") : QString();
  if (names.isEmpty()) {
    delete now;
    delete before;
    return;
  }
  auto* const bars = new QHorizontalBarSeries;
  if (baseline_ != nullptr) bars->append(before);
  bars->append(now);
  bars->setBarWidth(0.7);
  auto* const x = new QValueAxis;
  x->setRange(0, most * 1.1);
  x->applyNiceNumbers();
  auto* const y = new QBarCategoryAxis;
  y->append(names);
  dress(*x, tr("shorter step, %"));
  dress(*y, {});
  chart.addAxis(x, Qt::AlignBottom);
  chart.addAxis(y, Qt::AlignLeft);
  attach(chart, bars, x, y);
  if (baseline_ == nullptr) {
    delete before;
    chart.legend()->hide();
  }
}

TableRows SensitivityChart::table() const {
  TableRows rows;
  rows.headings = {tr("what if"), tr("step time (ms)"), tr("gain"), tr("peak reserved (GiB)"), tr("saved (GiB)")};
  if (now_ == nullptr) return rows;
  for (const Relaxation& one : now_->relaxations) {
    const double ms = to_seconds(one.step_time) * 1e3;
    rows.rows.push_back({{QString::fromStdString(one.resource), {}},
                         number_cell(QString::number(ms, 'f', 3), ms),
                         number_cell(gain_words(one), one.gain),
                         {},
                         {}});
  }
  for (const MemoryKnob& knob : now_->knobs) {
    const double peak = static_cast<double>(knob.peak_reserved.count()) / gib;
    const double gain = static_cast<double>(knob.gain.count()) / gib;
    rows.rows.push_back({{tr("memory: ") + QString::fromStdString(knob.name), {}},
                         {},
                         {},
                         number_cell(QString::number(peak, 'f', 2), peak),
                         number_cell(QString::number(gain, 'f', 2), gain)});
  }
  return rows;
}

RooflineChart::RooflineChart()
    : ChartView(tr("Roofline"), tr("Kernels by operations per byte and operations per second, under the GPU's roof")) {
  redraw();
}

void RooflineChart::show(std::shared_ptr<const Outcome> now, std::shared_ptr<const Outcome> baseline) {
  now_ = std::move(now);
  baseline_ = std::move(baseline);
  redraw();
}

void RooflineChart::draw(QChart& chart) {
  const bool empty = now_ == nullptr || now_->roofline.kernels.empty();
  empty_words_ = empty ? tr("The trace doesn't say how many operations and bytes its kernels take.\nSteps generated "
                            "from a model do.")
                       : QString();
  if (empty) return;
  const Roofline& roof = now_->roofline;
  auto* const x = new QLogValueAxis;
  auto* const y = new QLogValueAxis;
  dress(*x, tr("operations per byte of GPU memory"));
  dress(*y, tr("Tflop/s"));
  chart.addAxis(x, Qt::AlignBottom);
  chart.addAxis(y, Qt::AlignLeft);
  double x_low = 1e9, x_high = 0, y_low = 1e9, y_high = roof.peak_flops / 1e12;
  const auto add = [&](const Roofline& from, const QString& name, const QColor& color, double size) {
    auto* const points = scatter(name, color, size);
    for (std::size_t i = 0; i < std::min(from.kernels.size(), most_kernels); ++i) {
      const RooflineKernel& kernel = from.kernels[i];
      const double rate = kernel.rate() / 1e12;
      if (rate <= 0) continue;
      points->append(kernel.intensity(), rate);
      x_low = std::min(x_low, kernel.intensity());
      x_high = std::max(x_high, kernel.intensity());
      y_low = std::min(y_low, rate);
      y_high = std::max(y_high, rate);
    }
    attach(chart, points, x, y);
  };
  if (baseline_ != nullptr) add(baseline_->roofline, tr("baseline"), theme().ghost(theme().muted), 9);
  add(roof, tr("kernels, all of a name"), theme().accent, 11);
  const double ridge = roof.bandwidth > 0 ? roof.peak_flops / roof.bandwidth : 0;
  x_high = std::max(x_high, ridge * 2);
  if (roof.peak_flops > 0 && roof.bandwidth > 0) {
    auto* const line = new QLineSeries;
    line->setName(
        tr("roof: %1 TB/s, %2 Tflop/s").arg(roof.bandwidth / 1e12, 0, 'g', 3).arg(roof.peak_flops / 1e12, 0, 'g', 4));
    line->setPen(QPen(theme().bad, 2));
    line->append(x_low / 4, x_low / 4 * roof.bandwidth / 1e12);
    line->append(ridge, roof.peak_flops / 1e12);
    line->append(x_high * 4, roof.peak_flops / 1e12);
    attach(chart, line, x, y);
  }
  set_log_range(*x, x_low, x_high);
  set_log_range(*y, y_low, y_high * 1.2);
}

TableRows RooflineChart::table() const {
  TableRows rows;
  rows.headings = {tr("kernel"), tr("count"), tr("time (ms)"), tr("flop/byte"), tr("Tflop/s"), tr("GB/s")};
  if (now_ == nullptr) return rows;
  for (const RooflineKernel& kernel : now_->roofline.kernels) {
    const double ms = to_seconds(kernel.time) * 1e3, rate = kernel.rate() / 1e12;
    const double bytes = ms > 0 ? kernel.bytes / ms / 1e6 : 0;
    rows.rows.push_back({{QString::fromStdString(kernel.name), {}},
                         number_cell(QString::number(kernel.count), static_cast<double>(kernel.count)),
                         number_cell(QString::number(ms, 'f', 3), ms),
                         number_cell(QString::number(kernel.intensity(), 'f', 2), kernel.intensity()),
                         number_cell(QString::number(rate, 'f', 2), rate),
                         number_cell(QString::number(bytes, 'f', 1), bytes)});
  }
  return rows;
}

ParetoChart::ParetoChart()
    : ChartView(tr("Pareto front"), tr("Points of a sweep by step time and peak memory; click one to load it")) {
  redraw();
}

void ParetoChart::show(std::vector<SweepRow> rows) {
  rows_ = std::move(rows);
  redraw();
}

void ParetoChart::mark(std::vector<QPointF> now, std::vector<QPointF> baseline) {
  if (now == now_ && baseline == baseline_) return;
  now_ = std::move(now);
  baseline_ = std::move(baseline);
  redraw();
}

// Of those that do what the sweep requires; by step time and memory, which are the chart's axes.
std::vector<std::size_t> ParetoChart::front() const {
  SweepFront best(2);
  const auto values = [](const SweepRow& row) {
    return SweepValues{row.replayed.step_seconds, row.replayed.peak_bytes};
  };
  for (const SweepRow& row : rows_)
    if (row.failure.empty() && row.does) best.add(values(row));
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].failure.empty() && rows_[i].does && !best.beats(values(rows_[i]))) members.push_back(i);
  std::sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
    return rows_[a].replayed.step_seconds < rows_[b].replayed.step_seconds;
  });
  return members;
}

void ParetoChart::draw(QChart& chart) {
  empty_words_ = rows_.empty() ? tr("Run a sweep: its points appear here as they are replayed.\nClick one to load it "
                                    "as the scenario.")
                               : QString();
  if (rows_.empty()) return;
  auto* const x = new QLogValueAxis;
  auto* const y = new QLogValueAxis;
  dress(*x, tr("step time, ms"));
  dress(*y, tr("peak reserved, GiB"));
  chart.addAxis(x, Qt::AlignBottom);
  chart.addAxis(y, Qt::AlignLeft);
  double x_low = 1e18, x_high = 0, y_low = 1e18, y_high = 0;
  const auto take = [&](const QPointF& at) {
    x_low = std::min(x_low, at.x());
    x_high = std::max(x_high, at.x());
    y_low = std::min(y_low, at.y());
    y_high = std::max(y_high, at.y());
    return at;
  };
  const auto place = [](const SweepRow& row) {
    return QPointF(row.replayed.step_seconds * 1e3, row.replayed.peak_bytes / gib);
  };
  auto* const line = new QLineSeries;
  auto* const best = scatter(tr("front"), theme().good, 12);
  auto* const does = scatter(tr("do what is required"), theme().accent, 8);
  auto* const fails = scatter(tr("does not fit"), theme().ghost(theme().muted), 7);
  const std::vector<std::size_t> members = front();
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].failure.empty()) (rows_[i].does ? does : fails)->append(take(place(rows_[i])));
  for (const std::size_t i : members) {
    line->append(place(rows_[i]));
    best->append(place(rows_[i]));
  }
  line->setPen(QPen(theme().good, 1.5, Qt::DashLine));
  attach(chart, line, x, y);
  for (QScatterSeries* const series : {fails, does, best}) {
    attach(chart, series, x, y);
    QObject::connect(series, &QScatterSeries::clicked, this, [this](const QPointF& at) { clicked(at); });
  }
  chart.legend()->markers(line).front()->setVisible(false);
  const auto mark = [&](const std::vector<QPointF>& at, const QString& name, const QColor& color) {
    if (at.empty()) return;
    auto* const series = scatter(name, color, 15);
    series->setMarkerShape(QScatterSeries::MarkerShapeRotatedRectangle);
    for (const QPointF& point : at) series->append(take(point));
    attach(chart, series, x, y);
  };
  mark(baseline_, tr("baseline"), theme().ghost(theme().text));
  mark(now_, tr("this scenario"), theme().warning);
  set_log_range(*x, x_low, x_high);
  set_log_range(*y, y_low, y_high);
}

void ParetoChart::clicked(const QPointF& at) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const SweepRow& row = rows_[i];
    if (!row.failure.empty() || row.replayed.step_seconds * 1e3 != at.x() || row.replayed.peak_bytes / gib != at.y())
      continue;
    if (on_point) on_point(i);
    return;
  }
}

TableRows ParetoChart::table() const {
  TableRows rows;
  rows.headings = {tr("point"), tr("front"), tr("fits"), tr("step time (ms)"), tr("peak reserved (GiB)"), tr("binds")};
  const std::vector<std::size_t> members = front();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const SweepRow& row = rows_[i];
    const double ms = row.replayed.step_seconds * 1e3, peak = row.replayed.peak_bytes / gib;
    const bool is_best = std::find(members.begin(), members.end(), i) != members.end();
    rows.ids.push_back(static_cast<qint64>(i));
    if (!row.failure.empty()) {
      rows.rows.push_back(
          {{QString::fromStdString(row.label), {}}, {}, {}, {}, {}, {QString::fromStdString(row.failure), {}}});
      continue;
    }
    rows.rows.push_back({{QString::fromStdString(row.label), {}},
                         {is_best ? tr("yes") : QString(), {}},
                         {QString::fromStdString(std::string(yes_or_no(row.verdict))), {}},
                         number_cell(QString::number(ms, 'f', 1), ms),
                         number_cell(QString::number(peak, 'f', 2), peak),
                         {QString::fromStdString(row.binding), {}}});
  }
  return rows;
}

}  // namespace spillway::gui
