#include "traces/formats/perfetto/perfetto_clocks.h"

#include <algorithm>
#include <limits>

namespace spillway::traces {
namespace {

std::optional<std::int64_t> nanoseconds(std::uint64_t timestamp, std::uint64_t unit_ns) {
  std::int64_t product = 0;
  if (timestamp > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
      unit_ns > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
      __builtin_mul_overflow(static_cast<std::int64_t>(timestamp), static_cast<std::int64_t>(unit_ns), &product))
    return std::nullopt;
  return product;
}

std::optional<std::int64_t> sum(std::optional<std::int64_t> a, std::int64_t b) {
  std::int64_t result = 0;
  if (!a || __builtin_add_overflow(*a, b, &result)) return std::nullopt;
  return result;
}

}  // namespace

void PerfettoClocks::take(std::uint64_t sequence, const std::vector<PerfettoClock>& clocks, std::uint64_t primary) {
  if (primary_ == 0 && primary < first_of_sequence) primary_ = primary;
  // What the others are told by: the trace's clock, or else a clock whose offset is known, or the first of the system.
  const PerfettoClock* reference = nullptr;
  int best = 0;
  for (const PerfettoClock& clock : clocks) {
    if (clock.id >= first_of_sequence) continue;
    const int rank = clock.id == this->primary() ? 3 : clocks_.contains(key(sequence, clock.id)) ? 2 : 1;
    if (rank > best) reference = &clock, best = rank;
  }
  std::optional<std::int64_t> now;
  if (reference != nullptr) {
    const auto known = clocks_.find(key(sequence, reference->id));
    const std::int64_t offset = known == clocks_.end() || best == 3 ? 0 : known->second.offset_ns;
    now = sum(nanoseconds(reference->timestamp, reference->unit_ns), offset);
  }
  for (const PerfettoClock& clock : clocks) {
    const auto at = nanoseconds(clock.timestamp, clock.unit_ns);
    if (!at) continue;
    const auto offset = now ? sum(now, -*at) : std::optional<std::int64_t>(0);
    if (!offset) continue;
    const Clock taken{.offset_ns = *offset,
                      .counted_ns = *at,
                      .unit_ns = clock.unit_ns,
                      .is_incremental = clock.is_incremental && clock.id >= first_of_sequence};
    if (clock.id < first_of_sequence)
      clocks_.try_emplace(key(sequence, clock.id), taken);
    else
      clocks_.insert_or_assign(key(sequence, clock.id), taken);
  }
}

std::optional<std::int64_t> PerfettoClocks::time(std::uint64_t sequence, std::uint64_t clock, std::uint64_t timestamp) {
  const auto found = clocks_.find(key(sequence, clock));
  if (found == clocks_.end()) return nanoseconds(timestamp, 1);
  Clock& by = found->second;
  auto at = nanoseconds(timestamp, by.unit_ns);
  if (by.is_incremental) {
    at = sum(at, by.counted_ns);
    if (at) by.counted_ns = *at;
  }
  return sum(at, by.offset_ns);
}

bool PerfettoClocks::is_known(std::uint64_t sequence, std::uint64_t clock) const {
  return clock == primary() || clocks_.contains(key(sequence, clock));
}

std::optional<std::int64_t> PerfettoClocks::to_epoch() const {
  const auto found = clocks_.find(key(0, real_time));
  if (primary() == real_time) return 0;
  if (found == clocks_.end()) return std::nullopt;
  return -found->second.offset_ns;
}

}  // namespace spillway::traces
