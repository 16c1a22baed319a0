#include "traces/retime.h"

#include <algorithm>
#include <utility>

namespace spillway::traces {
namespace {

// From recorded instants to new ones, straight between knots. Both sides of the knots rise.
class Clock {
 public:
  explicit Clock(std::vector<std::pair<Picos, Picos>> knots) {
    std::sort(knots.begin(), knots.end());
    for (const auto& [from, to] : knots)
      if (knots_.empty() || (from > knots_.back().first && to >= knots_.back().second)) knots_.emplace_back(from, to);
  }

  [[nodiscard]] Picos at(Picos time) const {
    if (time == unknown_time || knots_.empty()) return time;
    const auto after = std::upper_bound(knots_.begin(), knots_.end(), time,
                                        [](Picos t, const std::pair<Picos, Picos>& knot) { return t < knot.first; });
    if (after == knots_.begin()) return after->second - (after->first - time);
    const auto before = after - 1;
    const Picos behind = time - before->first;
    if (after == knots_.end()) return before->second + behind;
    const double share = to_seconds(behind) / to_seconds(after->first - before->first);
    return before->second +
           Picos(static_cast<std::int64_t>(share * static_cast<double>((after->second - before->second).count())));
  }

 private:
  std::vector<std::pair<Picos, Picos>> knots_;
};

Clock clock_of(const Ops& ops, const OpTimes& times) {
  std::vector<std::pair<Picos, Picos>> knots;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!is_host_call(ops.kind[i]) || ops.start[i] == unknown_time || times.start[i] == unknown_time) continue;
    knots.emplace_back(ops.start[i], times.start[i]);
    if (times.duration[i] != unknown_time && ops.duration[i] != unknown_time)
      knots.emplace_back(ops.start[i] + ops.duration[i], times.start[i] + times.duration[i]);
  }
  return Clock(std::move(knots));
}

// An interval whose ends are moved.
void move(const Clock& clock, Picos& start, Picos& duration) {
  const Picos end = clock.at(start + duration);
  start = clock.at(start);
  duration = std::max(Picos(0), end - start);
}

}  // namespace

void retime(Trace& trace, const OpTimes& times) {
  Ops& ops = trace.ops;
  SPILLWAY_ASSERT(times.start.size() == ops.size() && times.duration.size() == ops.size());
  const Clock clock = clock_of(ops, times);
  std::vector<Picos> latest(trace.lanes.size(), unknown_time);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Picos known = times.start[i];
    Picos start = known == unknown_time ? clock.at(ops.start[i]) : known;
    Picos& before = latest[index_of(ops.lane[i])];
    if (start != unknown_time) before = start = std::max(start, before);
    ops.start[i] = start;
    if (times.duration[i] != unknown_time) ops.duration[i] = times.duration[i];
  }
  for (std::size_t i = 0; i < trace.spans.size(); ++i) move(clock, trace.spans.start[i], trace.spans.duration[i]);
  for (MemoryEvent& event : trace.memory_events) event.time = clock.at(event.time);
  for (Step& step : trace.steps) move(clock, step.start, step.duration);
}

}  // namespace spillway::traces
