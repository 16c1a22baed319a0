// Activity of a GPU, its PCIe slot and its drives over a step, as curves that hold each value until the next.
//
//   GPU busy           work that keeps a GPU busy (sim/replay/gpu_busy.h) on any stream of the rank: 0 or 1
//   PCIe to, from      bytes a second of copies and transfers under way: each moves its bytes evenly while it takes
//   drives' queue      transfers under way
//
// The replay's own rates are even over a whole transfer; within one, a link that several share is at times faster and
// at times slower. The mean of a curve over a time is exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::studies {

enum class CounterUnit : std::uint8_t { share, bytes_per_second, transfers };

struct Counter {
  std::string name;  // "GPU busy", "PCIe to GPU", "PCIe from GPU", "Drive queue"
  CounterUnit unit = CounterUnit::share;
  double limit = 0;              // of the unit: what the link can at most; 0: none is known
  std::vector<std::int64_t> at;  // picoseconds, ascending
  std::vector<double> value;     // from at[i] on; 0 before the first
  [[nodiscard]] double mean(std::int64_t begin, std::int64_t end) const;  // begin < end; O(points)
};

// Counters of a rank; those that are 0 all the time are left out. O(ops log ops).
std::vector<Counter> counters_of(const Trace& trace, const Result& result, std::uint16_t rank = 0);

}  // namespace spillway::studies
