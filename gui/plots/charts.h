// The window's plots besides the canvas: what would help, kernels under their roof, points of a sweep. Each has a table
// of the same figures beside it, for keyboards, screen readers and copying.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gui/plots/plot_view.h"
#include "gui/workspace/outcome.h"
#include "studies/sweep/sweep_run.h"

namespace spillway::gui {

// Gain of each relaxation: how much shorter the step would be. chosen(): its index among the relaxations.
class SensitivityChart : public PlotView {
  Q_OBJECT

 public:
  SensitivityChart();
  // Either may be null.
  void show(std::shared_ptr<const Sensitivity> now, std::shared_ptr<const Sensitivity> baseline);
  [[nodiscard]] TableRows table() const override;
  // Null: there is none of that index.
  [[nodiscard]] const Relaxation* relaxation(qint64 id) const;

 private:
  std::shared_ptr<const Sensitivity> now_, baseline_;
};

// Operations per byte against operations a second, both logarithmic. Kernels without counted operations are at the left
// edge, as far below the roof as their bytes a second are. chosen(): for kernel().
class RooflineChart : public PlotView {
  Q_OBJECT

 public:
  RooflineChart();
  void show(std::shared_ptr<const Outcome> now, std::shared_ptr<const Outcome> baseline);
  [[nodiscard]] TableRows table() const override;
  [[nodiscard]] QString kernel(qint64 id) const;

 private:
  std::shared_ptr<const Outcome> now_, baseline_;
};

// Points of a sweep are drawn by two of these.
enum class SweepMeasure : std::uint8_t { tokens, step_time, memory, gpus, gpu_time, cost, energy, life };
inline constexpr int sweep_measures = 8;
QString measure_name(SweepMeasure measure);   // "GiB reserved on the fullest GPU"
QString measure_words(SweepMeasure measure);  // "peak memory"
// By which a front is made; none: of tokens a second, which GPUs of several numbers share.
std::optional<studies::Objective> objective_of(SweepMeasure measure);

// Replayed points of a sweep over two measures, at first throughput and memory; the front is the rows' own
// (SweepRow::on_front). Points without a value are not drawn. chosen(): the point's index in rows().
class ParetoChart : public PlotView {
  Q_OBJECT

 public:
  // Values for the axes across and up; steps of one size compare by their rate, too.
  struct Mark {
    double tokens_per_second = 0, step_seconds = 0, peak_gib = 0;
    friend bool operator==(const Mark&, const Mark&) = default;
  };
  ParetoChart();
  void show(std::vector<SweepRow> rows);
  // Points are coloured by what the axis is set to, called `label`; empty: by what they do.
  void color_by(const std::string& key, const QString& label);
  void set_axes(SweepMeasure across, SweepMeasure up);
  [[nodiscard]] SweepMeasure across() const { return across_; }
  [[nodiscard]] SweepMeasure up() const { return up_; }
  // The present state of the window and the baseline; nothing: not drawn.
  void mark(const std::optional<Mark>& now, const std::optional<Mark>& baseline);
  [[nodiscard]] TableRows table() const override;
  [[nodiscard]] const std::vector<SweepRow>& rows() const { return rows_; }

 private:
  void draw();
  std::vector<SweepRow> rows_;
  std::string axis_;
  QString axis_label_;
  SweepMeasure across_ = SweepMeasure::tokens, up_ = SweepMeasure::memory;
  std::optional<Mark> now_, baseline_;
};

}  // namespace spillway::gui
