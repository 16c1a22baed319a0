#include "studies/diagnosis/busy_time.h"

#include <algorithm>
#include <utility>

namespace spillway::studies {

BusyTime::BusyTime(std::vector<TimeInterval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.begin < b.begin; });
  for (const TimeInterval& next : intervals) {
    if (next.end <= next.begin) continue;
    if (parts_.empty() || next.begin > parts_.back().end)
      parts_.push_back(next);
    else
      parts_.back().end = std::max(parts_.back().end, next.end);
  }
  Picos sum{};
  for (const TimeInterval& part : parts_) {
    sums_.push_back(sum);
    sum += part.end - part.begin;
  }
}

Picos BusyTime::before(Picos time) const {
  const auto next =
      std::partition_point(parts_.begin(), parts_.end(), [&](const TimeInterval& part) { return part.begin < time; });
  if (next == parts_.begin()) return {};
  const auto at = static_cast<std::size_t>(next - parts_.begin()) - 1;
  return sums_[at] + std::min(time, parts_[at].end) - parts_[at].begin;
}

Picos BusyTime::length() const {
  return parts_.empty() ? Picos(0) : sums_.back() + parts_.back().end - parts_.back().begin;
}

Picos BusyTime::within(Picos begin, Picos end) const { return end <= begin ? Picos(0) : before(end) - before(begin); }

}  // namespace spillway::studies
