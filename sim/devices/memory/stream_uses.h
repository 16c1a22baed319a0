// Other streams' uses of a block, and the work they still have to finish before it may be reused.
//
// record() notes uses of a live block by other streams. Giving it back turns each use into a pending event. The
// simulation completes events when the streams get there. The pool notices at its next allocation (rules 9 and 15), as
// a real allocator that polls would.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/devices/memory/memory_types.h"

namespace spillway::sim {

struct PendingEvent {
  BlockId block = BlockId::none;
  std::int64_t stream = 0;
  bool completed = false;
};

class StreamUses {
 public:
  // O(n) in the number of recorded uses. Recording twice is recording once.
  void record(BlockId block, std::int64_t stream);
  // The block is given back: its uses become pending events, by stream. Returns how many.
  std::uint32_t give_back(BlockId block);
  // The stream has passed the event of this block. No such event: nothing happens.
  void complete(BlockId block, std::int64_t stream);
  void complete_all();
  // Removes completed events, oldest first, and calls done(block) for each.
  template <class Done>
  void take_completed(Done done) {
    if (completed_ == 0) return;
    std::vector<PendingEvent> taken;
    std::erase_if(events_, [&taken](const PendingEvent& event) {
      if (event.completed) taken.push_back(event);
      return event.completed;
    });
    completed_ = 0;
    for (const PendingEvent& event : taken) done(event.block);
  }
  [[nodiscard]] std::span<const PendingEvent> events() const { return events_; }

 private:
  struct Use {
    BlockId block = BlockId::none;
    std::int64_t stream = 0;
    friend auto operator<=>(const Use&, const Use&) = default;
  };
  std::vector<Use> uses_;  // sorted
  std::vector<PendingEvent> events_;
  std::size_t completed_ = 0;
};

}  // namespace spillway::sim
