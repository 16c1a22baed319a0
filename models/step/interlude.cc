#include "models/step/interlude.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/input_error.h"

namespace spillway::models {

void add_step_before(Trace& step, const Trace& other) {
  const auto number = static_cast<std::uint32_t>(step.start_up.size());
  SPILLWAY_ASSERT(step.memory_events.size() == other.memory_events.size());
  for (std::size_t i = 0; i < step.memory_events.size(); ++i) {
    const MemoryEvent &shown = step.memory_events[i], &before = other.memory_events[i];
    SPILLWAY_ASSERT(shown.tensor == before.tensor && shown.action == before.action);
    if (shown.action == MemoryAction::allocate && shown.bytes != before.bytes)
      step.start_up.push_back({.bytes = before.bytes,
                               .block = number,
                               .allocates = false,
                               .late = true,
                               .device = shown.device,
                               .stream = shown.stream,
                               .tensor = shown.tensor});
  }
}

void add_evaluation(Trace& step, const Trace& evaluation) {
  std::vector<LaneId> lanes;
  for (Lane lane : evaluation.lanes) {
    lane.name = step.strings.intern(evaluation.strings.text(lane.name));
    lanes.push_back(step.lane(lane));
  }
  std::map<std::pair<std::int16_t, Addr>, StartUpEvent> live;
  for (const MemoryEvent& event : evaluation.memory_events) {
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
