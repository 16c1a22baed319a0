// Lower bounds for the set-ups that a search estimated and didn't replay: whether they can be better than its best way,
// whatever estimates say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "studies/fit/fit_screen.h"

namespace spillway::studies {

struct FitProof {
  std::size_t set_ups = 0;    // with their recomputation, devices of states, micro-batches
  std::size_t too_large = 0;  // at least more than the memory
  std::size_t slower = 0;     // at least as slow as the best way, or as dear
  std::size_t open = 0;       // neither, and not replayed
  double least_seconds = 0;   // of a step, among those

  [[nodiscard]] bool is_proven() const { return set_ups > 0 && open == 0; }
};

class FitBounds {
 public:
  using Settings = std::vector<std::string>;
  // Once each.
  void note(Settings settings, const FitEstimate& estimate, std::int64_t gpus);
  [[nodiscard]] bool empty() const { return known_.empty(); }
  // Against a step of so many seconds; by_cost: of so many times the GPUs that it takes. was_replayed: by settings.
  [[nodiscard]] FitProof against(double seconds, std::int64_t gpus, bool by_cost, Bytes capacity,
                                 const std::function<bool(const Settings&)>& was_replayed) const;

 private:
  struct Bound {
    double seconds = 0;
    Bytes peak{};
    std::int64_t gpus = 1;
  };
  std::map<Settings, Bound> known_;
};

}  // namespace spillway::studies
