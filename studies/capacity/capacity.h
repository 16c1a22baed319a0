// The largest (or smallest) value of a scenario that trains, technique by technique: `spillway capacity`.
//
// Verdicts are a replay's: no device runs out of memory, and the constraints hold. Values that the model's state alone
// rules out aren't replayed (screen/state_bound.h). Values the model or the layout can't have count as not holding,
// with the reason. edge_search.h finds the edge, along the memory missing.
// If CapacityFlags::planned asks for it, the best plan of all (studies/offload/best_offload.h) is tried one value
// beyond the farthest answer, then at that answer's value for a faster step. If it does better, it is a separate
// answer, "planned". So some answer does all that a scenario's settings of recomputation and offloading can do.
// Searched layouts and lists of machines or drives have no such answer.
// A tight value holds only where none under its technique keeps the whole reserve free.
// If layouts are searched, a value's verdict is that of the fastest layout that fits. Layouts are screened in closed
// form, then replayed, at most CapacityLayouts::replays of them (sweep/layout_sweep.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/replay/result.h"
#include "studies/capacity/capacity_request.h"

namespace spillway::studies {

// One value tried.
struct CapacityTrial {
  std::int64_t value = 0;
  bool holds = false;       // tight: only where no value keeps the whole reserve
  bool only_tight = false;  // it would hold without the reserve's margin
  bool replayed = false;    // false: the state alone is too much, or the value isn't possible
  bool at_fault = false;    // the value isn't possible: why_not is the scenario's error
  std::string why_not;      // not holding: what is missing
  Row row;                  // its edits make the scenario this trial; not replayed: its peak is what it takes at least
  std::int64_t parameters = 0;  // of the model; 0: a trace
  std::string layout;           // "t 8, p 4, b 1" of the search; empty: the scenario's own
  std::int64_t layouts_replayed = 0;
  double kilowatts = 0;                // of the machines and the drives named, while they train
  std::optional<double> usd;           // of the same, where all have a price
  std::optional<double> usd_per_hour;  // of rented machines

  // Reserved at the peak of the fullest GPU, of how much (0: without a limit), and what is left beside the reserve.
  [[nodiscard]] Bytes needed() const { return row.result.memory.peak_reserved; }
  [[nodiscard]] Bytes capacity() const { return row.result.memory.capacity; }
  [[nodiscard]] Bytes free() const { return capacity() - row.result.reserve.bytes() - needed(); }
  // Owners of the fullest GPU's memory at its peak, by class, largest first.
  [[nodiscard]] std::vector<PeakOwner> owners() const;
  // Margins under memory and every constraint, in words.
  [[nodiscard]] std::vector<std::string> margins(const Constraints& asked) const;
};

// One change that was tried on the value behind the edge.
struct FurtherChange {
  std::string name;  // "ZeRO 3"
  bool holds = false;
  std::string note;  // the step's time and memory, or why not
};

struct CapacityAnswer {
  CapacityTechnique technique;
  std::optional<CapacityTrial> best;    // the answer; none: no value tried holds
  std::optional<CapacityTrial> beyond;  // one step further, which doesn't hold; none: the axis ends
  bool is_monotone = true;              // as far as tried
  std::int64_t trials = 0, replays = 0;
  std::string refused;                 // the scenario can't be run under the technique at all: why
  std::vector<FurtherChange> changes;  // of the best answer: what was tried on `beyond`

  // In words: which class of memory, or which constraint, ends the axis. Empty: its own end does.
  [[nodiscard]] std::string binding() const;
};

struct CapacityOutcome {
  std::vector<CapacityAnswer> answers;     // as the request's techniques
  bool interrupted = false;                // some are missing or were not finished
  std::optional<std::size_t> best;         // the answer that goes farthest; of equals the cheapest, then the fastest
  [[nodiscard]] bool any() const;          // something holds
  [[nodiscard]] bool is_in_doubt() const;  // nothing is known to, for what is wrong with a record
};

// technique, value about to be tried; false stops. Called from several threads, one at a time.
using CapacityProgress = std::function<bool(const std::string& technique, std::int64_t value)>;

// The smallest value's best answer is the cheapest, if answers are priced. Techniques run in parallel; the outcome does
// not depend on it. Throws InputError when the scenario is at fault under every technique.
CapacityOutcome find_capacity(const CapacityRequest& request, const CapacityProgress& progress = {});

}  // namespace spillway::studies
