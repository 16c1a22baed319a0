// The blocks of a step that its program makes before the step (Trace::start_up). Some are needed only at their first
// use (optimizer states, say): this says when in the first iteration they are made. It also says what the allocator
// goes through between that iteration and the step shown. Late events are of three kinds:
//
//   with a tensor, allocates      made in the first iteration, where its tensor is first used
//   with a tensor, else           no event: its tensor's size in the step `block` of those before the one shown, which
//                                 are that step, under whatever plan it runs, but for such sizes
//   without a tensor              of an evaluation behind these
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/devices/memory/allocation_stream.h"
#include "sim/devices/memory/memory_pool.h"
#include "traces/trace.h"

namespace spillway::sim {

struct LateEvent {
  const StartUpEvent* event = nullptr;
  std::size_t launch = 0;  // of the first op that uses its tensor
  std::uint32_t tag = no_tag;
};

[[nodiscard]] bool has_start_up(const Trace& trace, std::int16_t device);
// Made by an evaluation between the first iteration and the step; a size of a tensor in a step there.
[[nodiscard]] bool is_of_evaluation(const StartUpEvent& event);
[[nodiscard]] bool is_size_before(const StartUpEvent& event);

// The events of a device that make its blocks from before the step. None if such a tensor moves. Blocks that a program
// allocates before its first call, and gives back, are part of the step. O(events * log).
[[nodiscard]] std::optional<std::vector<bool>> initial_events(const Trace& trace, const EventIndex& events);

// Sorts late events by their first uses, and says which tensors they are of (empty without any). O(uses + ops).
[[nodiscard]] std::vector<bool> order_late_events(const Trace& trace, std::vector<LateEvent>& late);

}  // namespace spillway::sim
