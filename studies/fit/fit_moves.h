// Moves that may make a way better. They add or take away each technique of the one table that applies, or change
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

  // Moves that the carrier carries out, in a set order; none leaves the point as it is, no two lead to the same. Some
  // may turn out impossible. A point that works, asked for speed or cost, gets no moves that can only cost time: other
  // allocators, operator orders, and offloading where nothing is recomputed. Offloading comes with larger micro-batches
  // there.
  [[nodiscard]] std::vector<FitMove> from(const FitPoint& point, bool works, Carrier carrier) const;
  // Other arithmetic: optimizers with less state, narrower numbers, an update a step late; where adapters are trained,
  // on a base in NF4 or not. None where the question keeps the numerics.
  [[nodiscard]] std::vector<FitMove> other_maths(const FitPoint& point) const;
  // The technique that searches by its own replays, which takes as long as many moves: put in place of what is
  // recomputed and offloaded, and micro-batches under it. None for steps that are too long for that.
  [[nodiscard]] std::vector<FitMove> searched(const FitPoint& point) const;
  // Moves by which the same work takes less memory. PlanPart::memory: other allocators and places. PlanPart::order:
  // orders of operators, except for long steps, as planning these takes minutes.
  [[nodiscard]] std::vector<FitMove> packings(const FitPoint& point, PlanPart part) const;
  // Moves by which less lies on the GPU for a little time: more layers recomputed, the weights on the CPU beside
  // the optimizer. None of a capture.
  [[nodiscard]] std::vector<FitMove> relieved(const FitPoint& point) const;
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
