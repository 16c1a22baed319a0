#include "studies/diagnosis/busy_time.h"

#include <algorithm>
#include <utility>

namespace spillway::studies {

namespace {

bool begins_before(const TimeInterval& a, const TimeInterval& b) { return a.begin < b.begin; }

// Captures come in few ascending runs (a stream's works, a thread's spans): these are merged, O(n log runs).
void sort_runs(std::vector<TimeInterval>& intervals) {
  constexpr std::size_t shortest_run = 16;  // on average, for merging to pay
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < intervals.size(); ++i)
    if (begins_before(intervals[i], intervals[i - 1])) ends.push_back(i);
  if (ends.size() > intervals.size() / shortest_run) {
    std::sort(intervals.begin(), intervals.end(), begins_before);
    return;
  }
  ends.push_back(intervals.size());
  const auto at = [&](std::size_t place) { return intervals.begin() + static_cast<std::ptrdiff_t>(place); };
  while (ends.size() > 1) {
    std::vector<std::size_t> merged;
    std::size_t begin = 0;
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
      std::inplace_merge(at(begin), at(ends[i]), at(ends[i + 1]), begins_before);
      merged.push_back(begin = ends[i + 1]);
    }
    if (ends.size() % 2 == 1) merged.push_back(ends.back());
    ends = std::move(merged);
  }
}

}  // namespace

BusyTime::BusyTime(std::vector<TimeInterval> intervals) {
  sort_runs(intervals);
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
