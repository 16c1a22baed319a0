// What is tried on a way to make it better: each technique of the one table that applies, added or taken away, and the
// settings of the training that hold memory or cost time.
#pragma once

#include <string>
#include <vector>

#include "studies/fit/fit_carrier.h"
#include "studies/fit/fit_point.h"

namespace spillway::studies {

struct FitMove {
  std::string name;  // "ssdtrain-host", "micro-batches of 2", "without full"
  FitPoint point;
  bool is_layout = false;  // spreads the step differently; no technique
};

class FitMoves {
 public:
  // All must outlive it.
  FitMoves(const FitQuestion& question, const FitSubject& subject, const FitPoints& points)
      : question_(question), subject_(subject), points_(points) {}

  // Those that the carrier carries out, in a set order; none leaves the point as it is, no two lead to the same. Some
  // may turn out impossible. A point that works as it is, asked for speed, is not offered what can only cost time:
  // other allocators, operator orders, and offloading where nothing is recomputed, but with larger micro-batches.
  [[nodiscard]] std::vector<FitMove> from(const FitPoint& point, bool works, Carrier carrier) const;
  // Other arithmetic: optimizers with less state, narrower numbers, an update a step late; where adapters are trained,
  // on a base in NF4 or not. None where the question wants the same maths.
  [[nodiscard]] std::vector<FitMove> other_maths(const FitPoint& point) const;
  // The technique that searches by replays of its own, which takes as long as many moves: put in place of what is
  // recomputed and offloaded, and micro-batches under it. None for steps that are too long for that.
  [[nodiscard]] std::vector<FitMove> searched(const FitPoint& point) const;
  // What makes the same work take less memory: of PlanPart::memory, other allocators and places; of PlanPart::order,
  // orders of operators, but for long steps, whose orders take minutes to plan.
  [[nodiscard]] std::vector<FitMove> packings(const FitPoint& point, PlanPart part) const;
  // The point with kernels that hold less and take no more time; of a capture itself.
  [[nodiscard]] FitPoint lean(const FitPoint& point) const;
  // The point without each technique that it has and the plainest step has not: what the technique is worth.
  [[nodiscard]] std::vector<FitMove> removals(const FitPoint& point) const;
  // The point with activations that leave the GPU and come back, by each technique that a program can run under.
  [[nodiscard]] std::vector<FitMove> activations_moved(const FitPoint& point) const;
  // The point with the optimizer on the machine's drives, and the weights too.
  [[nodiscard]] std::vector<FitMove> states_on_drives(const FitPoint& point) const;

 private:
  class List;
  void add_table(List& list, bool works) const;
  void add_with_batch(List& list, const std::string& name, std::vector<std::string> settings) const;
  void add_batches(List& list) const;
  void add_state(List& list) const;
  void add_knobs(List& list) const;
  void add_technique(List& list, const Technique& row, const TechniqueWay& way) const;
  [[nodiscard]] bool applies(const FitPoint& point, const TechniqueWay& way, const Technique& row) const;
  [[nodiscard]] std::string offload_way(const FitPoint& point) const;
  [[nodiscard]] bool has_drives(const FitPoint& point) const;

  const FitQuestion& question_;
  const FitSubject& subject_;
  const FitPoints& points_;
};

}  // namespace spillway::studies
