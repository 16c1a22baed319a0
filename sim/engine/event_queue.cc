#include "sim/engine/event_queue.h"

#include <algorithm>

namespace spillway {

// Cold: drops every superseded event at once, so that a component that is re-armed for ever while its
// events lie far in the future can't grow the heap without bound.
void EventQueue::compact() {
  if (hole_) fill_hole();
  std::erase_if(heap_, [this](const Event& e) { return (e.kind & timer_bit) != 0 && timers_[e.target].key != e.key; });
  stale_ = 0;
  std::make_heap(heap_.begin(), heap_.end(), [](const Event& a, const Event& b) { return before(b, a); });
}

}  // namespace spillway
