#include "traces/event_index.h"

#include <iterator>
#include <map>
#include <set>

namespace spillway::traces {

std::vector<std::int16_t> memory_devices(const Trace& trace) {
  std::set<std::int16_t> devices;
  auto meet = [&devices, last = std::int16_t{-1}](std::int16_t device) mutable {
    if (device != last && device >= 0) devices.insert(device);
    last = device;
  };
  for (const MemoryEvent& event : trace.memory_events) meet(event.device);
  for (const MemorySegment& segment : trace.memory_segments) meet(segment.device);
  return {devices.begin(), devices.end()};
}

std::vector<std::pair<std::int16_t, EventIndex>> index_memory_events(const Trace& trace) {
  std::map<std::int16_t, EventIndex> index;
  EventIndex* at = nullptr;
  std::int16_t device = 0;
  for (std::size_t i = 0; i < trace.memory_events.size(); ++i) {
    const MemoryEvent& event = trace.memory_events[i];
    if (at == nullptr || event.device != device) at = &index[device = event.device];
    at->push_back(static_cast<std::uint32_t>(i));
  }
  return {std::make_move_iterator(index.begin()), std::make_move_iterator(index.end())};
}

std::vector<bool> frees_for_requests(const Trace& trace, const EventIndex& events) {
  std::vector<bool> frees(events.size(), false);
  bool makes_room = false;  // what comes next
  for (std::size_t i = events.size(); i-- > 0;) {
    const MemoryAction action = trace.memory_events[events[i]].action;
    if (action == MemoryAction::segment_free || action == MemoryAction::segment_unmap)
      frees[i] = makes_room;
    else
      makes_room = action == MemoryAction::segment_allocate || action == MemoryAction::segment_map ||
                   action == MemoryAction::out_of_memory;
  }
  return frees;
}

}  // namespace spillway::traces
