#include "models/step/interlude.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/input_error.h"

namespace spillway::models {

namespace {

// The lanes of `other`, as those of `step`.
std::vector<LaneId> lanes_in(Trace& step, const Trace& other) {
  std::vector<LaneId> lanes;
  for (Lane lane : other.lanes) {
    lane.name = step.strings.intern(other.strings.text(lane.name));
    lanes.push_back(step.lane(lane));
  }
  return lanes;
}

}  // namespace

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
  const std::vector<LaneId> lanes = lanes_in(step, evaluation);
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

std::size_t hold_beside(Trace& step, const Trace& other) {
  constexpr std::uint64_t apart = std::uint64_t{1} << 56;  // from the step's own addresses, and from those held before
  const std::vector<LaneId> lanes = lanes_in(step, other);
  std::set<std::pair<std::int16_t, Addr>> freed;
  for (const MemoryEvent& event : other.memory_events)
    if (event.action != MemoryAction::allocate) freed.emplace(event.device, event.address);
  Tensors& tensors = step.tensors;
  std::uint32_t storage = 0;
  for (const std::uint32_t each : tensors.storage) storage = std::max(storage, each + 1);
  std::uint64_t offset = apart;
  for (const MemoryEvent& event : step.memory_events) {
    if (event.anchor != OpId::none) break;
    offset = std::max(offset, event.address.count() / apart * apart + apart);
  }
  std::vector<MemoryEvent> held;
  for (MemoryEvent event : other.memory_events) {
    if (event.anchor != OpId::none || event.action != MemoryAction::allocate || event.tensor == TensorId::none ||
        freed.contains({event.device, event.address}))
      continue;
    const std::size_t from = index_of(event.tensor);
    event.tensor = TensorId(static_cast<std::uint32_t>(tensors.size()));
    tensors.name.push_back(step.strings.intern(other.strings.text(other.tensors.name[from])));
    tensors.bytes.push_back(other.tensors.bytes[from]);
    tensors.storage.push_back(storage++);
    tensors.role.push_back(other.tensors.role[from]);
    tensors.dtype.push_back(step.strings.intern(other.strings.text(other.tensors.dtype[from])));
    event.address = Addr(offset + event.address.count());
    if (event.stream != LaneId::none) event.stream = lanes[index_of(event.stream)];
    held.push_back(event);
  }
  step.memory_events.insert(step.memory_events.begin(), held.begin(), held.end());
  return held.size();
}

}  // namespace spillway::models
