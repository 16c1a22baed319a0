#include "sim/devices/memory/stream_uses.h"

#include <algorithm>

namespace spillway::sim {

void StreamUses::record(BlockId block, std::int64_t stream) {
  const Use use{block, stream};
  const auto at = std::lower_bound(uses_.begin(), uses_.end(), use);
  if (at == uses_.end() || *at != use) uses_.insert(at, use);
}

std::uint32_t StreamUses::give_back(BlockId block) {
  const auto first = std::lower_bound(uses_.begin(), uses_.end(), Use{block, std::numeric_limits<std::int64_t>::min()});
  auto last = first;
  std::uint32_t count = 0;
  for (; last != uses_.end() && last->block == block; ++last, ++count) events_.push_back({block, last->stream, false});
  uses_.erase(first, last);
  return count;
}

void StreamUses::complete(BlockId block, std::int64_t stream) {
  for (PendingEvent& event : events_) {
    if (event.block != block || event.stream != stream || event.completed) continue;
    event.completed = true;
    ++completed_;
    return;
  }
}

void StreamUses::complete_all() {
  for (PendingEvent& event : events_) event.completed = true;
  completed_ = events_.size();
}

}  // namespace spillway::sim
