#include "models/step/interlude.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace spillway::models {

void add_interlude(Trace& step, const Trace& other) {
  std::vector<LaneId> lanes;
  for (Lane lane : other.lanes) {
    lane.name = step.strings.intern(other.strings.text(lane.name));
    lanes.push_back(step.lane(lane));
  }
  std::map<std::pair<std::int16_t, Addr>, StartUpEvent> live;
  for (const MemoryEvent& event : other.memory_events) {
    const bool is_initial =
        event.anchor == OpId::none && event.action == MemoryAction::allocate && event.tensor != TensorId::none;
    if (event.device < 0 || is_initial || event.bytes <= Bytes(0)) continue;
    const std::pair<std::int16_t, Addr> place{event.device, event.address};
    if (event.action == MemoryAction::allocate) {
      StartUpEvent made{.bytes = event.bytes,
                        .block = static_cast<std::uint32_t>(step.start_up.size()),
                        .late = true,
                        .device = event.device,
                        .stream = lanes[index_of(event.stream)]};
      step.start_up.push_back(made);
      made.allocates = false;
      live[place] = made;
    } else if (event.action == MemoryAction::free_requested) {
      const auto found = live.find(place);
      if (found == live.end()) continue;
      step.start_up.push_back(found->second);
      live.erase(found);
    }
  }
  for (const auto& [place, block] : live) step.start_up.push_back(block);
}

}  // namespace spillway::models
