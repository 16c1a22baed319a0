// The ends of a folded step's shown periods (traces/step_fold.h) among a device's memory events.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/devices/memory/allocation_stream.h"
#include "traces/step_fold.h"

namespace spillway::sim {

struct FoldedEvents {
  const StepFold::Rank* rank = nullptr;  // null: every event is there
  std::size_t begin = 0;                 // of all shown periods, in the device's index of events
  std::size_t period = 0, end = 0;       // the last one's first event, and the event behind it
  std::int64_t times = 0;
};

// `fold` may be null. O(log events).
[[nodiscard]] FoldedEvents folded_events(const StepFold* fold, std::int16_t device, const EventIndex& events);

}  // namespace spillway::sim
