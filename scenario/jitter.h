// Stragglers and jitter: the same step on GPUs that are not all alike, or not always.
//
// Both scale the times of kernels on streams; copies, collectives and the host keep theirs. Ops that wait for a slow
// GPU wait longer by themselves. Not measured: a scenario that says so is marked "assumed".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace spillway::scenario {

struct Jitter {
  std::uint64_t seed = 1;
  double sigma = 0;  // of a kernel's time, as a share of it, 0 .. 0.5; no two kernels vary together
  // Pipeline stages (ranks of the trace) and the factor on the times of all their kernels, 0.1 .. 100.
  std::vector<std::pair<std::int64_t, double>> slow_stages;

  [[nodiscard]] bool is_used() const { return sigma > 0 || !slow_stages.empty(); }
};

// A kernel's time becomes time x (slow stage's factor) x (1 + sigma z); at least a twentieth remains. Here z is the sum
// of twelve uniform numbers less six: close to normal, mean 0, deviation 1, and the same on every machine. It depends
// on the seed and the kernel's place in the trace alone. Throws InputError (place "slow_stages") for a stage that the
// trace does not have. O(ops).
void apply_jitter(Trace& trace, const Jitter& jitter);

// "kernels vary by 2 % (seed 1); stage 3 x1.2"
std::string describe(const Jitter& jitter);

}  // namespace spillway::scenario
