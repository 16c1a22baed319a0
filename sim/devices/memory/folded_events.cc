#include "sim/devices/memory/folded_events.h"

#include <algorithm>

namespace spillway::sim {

FoldedEvents folded_events(const StepFold* fold, std::int16_t device, const EventIndex& events) {
  if (fold == nullptr || device < 0) return {};
  const StepFold::Rank& rank = fold->ranks.at(static_cast<std::size_t>(device));
  const auto place = [&](std::uint32_t event) {
    return static_cast<std::size_t>(std::lower_bound(events.begin(), events.end(), event) - events.begin());
  };
  return {&rank, place(rank.event), place(rank.events_end() - rank.events), place(rank.events_end()), fold->times};
}

}  // namespace spillway::sim
