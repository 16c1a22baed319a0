// The largest (or smallest) value of a scenario that trains, technique by technique: `spillway capacity`.
//
// Verdicts are a replay's: no device runs out of memory, and the constraints hold. What the model's state alone rules
// out isn't replayed (state_bound.h). Values the model or the layout can't have count as not holding, with the reason.
// The edge is looked for by edge_search.h, along the memory missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planners/capacity/capacity_request.h"
#include "sim/replay/result.h"
#include "traces/base/units.h"

namespace spillway {

// One value tried.
struct CapacityTrial {
  std::int64_t value = 0;
  bool holds = false;
  bool replayed = false;  // false: the state alone is too much, or the value isn't possible
  std::string why_not;    // not holding: what is missing
  Bytes needed{};         // reserved at the peak of the fullest GPU; not replayed: at least
  Bytes capacity{};       // 0: without a limit
  Picos step_time{};
  double tokens_per_second = 0, mfu = 0;  // 0 unknown
  std::optional<double> life_years;       // of the drive set that wears fastest
  std::int64_t parameters = 0;            // of the model; 0: a trace
  std::int64_t gpus = 0;
  std::vector<PeakOwner> owners;  // of the fullest GPU at its peak, by class, largest first
  std::uint64_t fingerprint = 0;
  std::vector<std::string> warnings;
};

struct CapacityAnswer {
  CapacityTechnique technique;
  std::optional<CapacityTrial> best;    // the answer; none: no value tried holds
  std::optional<CapacityTrial> beyond;  // one step further, which doesn't hold; none: the axis ends
  bool is_monotone = true;              // as far as tried
  std::int64_t trials = 0, replays = 0;
  std::string refused;  // the scenario can't be run under the technique at all: why

  // In words: which class of memory, or which constraint, ends the axis. Empty: its own end does.
  [[nodiscard]] std::string binding() const;
};

struct CapacityOutcome {
  std::vector<CapacityAnswer> answers;  // as the request's techniques
  bool interrupted = false;             // some are missing or were not finished
  [[nodiscard]] bool any() const;       // something holds
};

// technique, value about to be tried; false stops. Called from several threads, one at a time.
using CapacityProgress = std::function<bool(const std::string& technique, std::int64_t value)>;

// Techniques in parallel; the outcome does not depend on it. Throws InputError when the scenario is at fault under
// every technique.
CapacityOutcome find_capacity(const CapacityRequest& request, const CapacityProgress& progress = {});

}  // namespace spillway
