// Ordinary charts, by Qt Charts: what would help, kernels under their roof, points of a sweep. Each has a table of the
// same figures beside it, for keyboards, screen readers and copying.
#pragma once

#include <QtCharts/QChartView>
#include <functional>
#include <memory>
#include <vector>

#include "gui/canvas/theme.h"
#include "gui/plots/table_model.h"
#include "gui/workspace/outcome.h"
#include "studies/sweep/sweep_run.h"

class QChart;

namespace spillway::gui {

class ChartView : public QChartView {
 public:
  ChartView(const QString& name, const QString& about);
  void set_theme(const Theme& theme);
  void set_stale(bool stale);

 protected:
  [[nodiscard]] const Theme& theme() const { return *theme_; }
  // Fills an empty chart.
  virtual void draw(QChart& chart) = 0;
  void redraw();
  void dress(QAbstractAxis& axis, const QString& title) const;
  // A chart that has nothing to show says why.
  QString empty_words_;
  void paintEvent(QPaintEvent* event) override;

 private:
  const Theme* theme_;
  bool stale_ = false;
};

// Gain of each relaxation: how much shorter the step would be.
class SensitivityChart : public ChartView {
 public:
  SensitivityChart();
  // Either may be null.
  void show(std::shared_ptr<const Sensitivity> now, std::shared_ptr<const Sensitivity> baseline);
  [[nodiscard]] TableRows table() const;

 protected:
  void draw(QChart& chart) override;

 private:
  std::shared_ptr<const Sensitivity> now_, baseline_;
};

// Operations per byte against operations a second, both logarithmic.
class RooflineChart : public ChartView {
 public:
  RooflineChart();
  void show(std::shared_ptr<const Outcome> now, std::shared_ptr<const Outcome> baseline);
  [[nodiscard]] TableRows table() const;

 protected:
  void draw(QChart& chart) override;

 private:
  std::shared_ptr<const Outcome> now_, baseline_;
};

// Replayed points of a sweep over two figures; those no other beats in both are joined.
class ParetoChart : public ChartView {
 public:
  ParetoChart();
  void show(std::vector<SweepRow> rows);
  // The present state of the window and the baseline as marks; empty: not drawn. Seconds and GiB.
  void mark(std::vector<QPointF> now, std::vector<QPointF> baseline);
  [[nodiscard]] TableRows table() const;
  [[nodiscard]] const std::vector<SweepRow>& rows() const { return rows_; }
  // A point was clicked: its index in rows().
  std::function<void(std::size_t)> on_point;

 protected:
  void draw(QChart& chart) override;

 private:
  [[nodiscard]] std::vector<std::size_t> front() const;
  void clicked(const QPointF& at);
  std::vector<SweepRow> rows_;
  std::vector<QPointF> now_, baseline_;
};

}  // namespace spillway::gui
