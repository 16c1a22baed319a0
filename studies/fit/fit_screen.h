// A point before it is replayed: an estimate in closed form (studies/screen), or what bounds it.
//
// Models with unlike layers are estimated as if all were of the common kind. An optimizer off the GPU is estimated as
// an update without state, with the CPU's time on top. Under a technique that moves tensors the time is that of the
// step without it, or of one that recomputes its layers if the technique does. The peak is then what no such technique
// goes below (least_peak()). Estimates say what is replayed, and what first; no verdict is theirs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/cost/cost_model.h"
#include "studies/fit/fit_point.h"
#include "studies/screen/step_estimate.h"

namespace spillway::studies {

struct FitEstimate {
  std::string invalid;    // why it can't run; empty: it may
  double seconds = 0;     // of a step; 0: not known, as of what holds too much
  Bytes peak{};           // allocated on the fullest GPU; under a bound at least
  bool is_bound = false;  // not an estimate
  // Lower bounds of its replay, by least_step() and least_state_bytes(); 0: nothing is known.
  double least_seconds = 0;
  Bytes least_peak{};
  bool holds_too_much = false;  // its state alone is more than the memory
};

class FitScreen {
 public:
  // Both must outlive it. Precondition: subject.model.
  FitScreen(const FitSubject& subject, const FitPoints& points);

  // Estimate i is of points[i]. Shapes are measured in parallel, a few milliseconds each. Throws Cancelled by the
  // thread's StopScope.
  std::vector<FitEstimate> estimate(std::span<const FitPoint> points);
  // Device memory of the step, and that with the reserve in it.
  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] Bytes whole_capacity() const { return whole_capacity_; }
  [[nodiscard]] std::size_t shapes() const { return shapes_.size(); }

 private:
  struct Shape {
    std::optional<StepShape> shape;
    std::string failure;
  };
  struct Stand;
  struct Prepared;
  [[nodiscard]] Stand stand_of(const TrainingSetup& setup) const;
  [[nodiscard]] Stand likely_stand(const Stand& stand) const;
  [[nodiscard]] Prepared prepare(const FitPoint& point) const;
  [[nodiscard]] FitEstimate finish(const Prepared& prepared) const;
  [[nodiscard]] Bytes peak_of(const Prepared& prepared) const;
  void bound(const Prepared& prepared, FitEstimate& estimate) const;
  void measure(std::span<const Prepared> points);
  [[nodiscard]] double update_seconds(const TrainingSetup& setup) const;

  const FitSubject& subject_;
  const FitPoints& points_;
  ModelSpec model_;  // of layers that are alike
  CostModel cost_;
  StepMachine machine_;
  bool has_other_speed_ = false;
  std::vector<char> alike_;  // by layer of the model: whether it is as model_ says all are
  bool all_alike_ = false;
  Bytes whole_capacity_, capacity_;
  std::map<std::string, Shape> shapes_;
};

}  // namespace spillway::studies
