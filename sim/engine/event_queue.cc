#include "sim/engine/event_queue.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace spillway::sim {

TieOrder TieOrder::parse(std::string_view text) {
  if (text == "fifo") return {};
  if (text == "reverse") return {Kind::reverse, 0};
  constexpr std::string_view shuffle = "shuffle:";
  if (text.starts_with(shuffle)) {
    TieOrder order{Kind::shuffle, 0};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + shuffle.size(), end, order.seed);
    if (error == std::errc{} && rest == end) return order;
  }
  throw InputError("", "tie order", "\"" + std::string(text) + "\" is not a tie order",
                   "use fifo, reverse or shuffle:SEED with a whole number for SEED");
}

// Cold: drops every superseded event at once, so that a component that is re-armed for ever while its
// events lie far in the future can't grow the heap without bound.
void EventQueue::compact() {
  if (hole_) fill_hole();
  std::erase_if(heap_, [this](const Event& e) { return (e.kind & timer_bit) != 0 && timers_[e.target].key != e.key; });
  stale_ = 0;
  std::make_heap(heap_.begin(), heap_.end(), [](const Event& a, const Event& b) { return before(b, a); });
}

}  // namespace spillway::sim
