#include "studies/fit/fit_proof.h"

#include <algorithm>
#include <utility>

namespace spillway::studies {

void FitBounds::note(Settings settings, const FitEstimate& estimate, std::int64_t gpus) {
  known_.try_emplace(std::move(settings), Bound{estimate.least_seconds, estimate.least_peak, gpus});
}

FitProof FitBounds::against(double seconds, std::int64_t gpus, bool by_cost, Bytes capacity,
                            const std::function<bool(const Settings&)>& was_replayed) const {
  const auto figure = [by_cost](double of, std::int64_t on) { return by_cost ? of * static_cast<double>(on) : of; };
  FitProof proof{.set_ups = known_.size()};
  for (const auto& [settings, bound] : known_) {
    if (was_replayed(settings)) continue;
    if (bound.peak > capacity) {
      ++proof.too_large;
    } else if (figure(bound.seconds, bound.gpus) >= figure(seconds, gpus)) {
      ++proof.slower;
    } else {
      proof.least_seconds = proof.open == 0 ? bound.seconds : std::min(proof.least_seconds, bound.seconds);
      ++proof.open;
    }
  }
  return proof;
}

}  // namespace spillway::studies
