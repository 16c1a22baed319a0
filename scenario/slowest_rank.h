// Collectives wait for the slowest of their ranks. A trace has one rank for many alike with independent variation of
// kernels: the delay by the others is expected, not drawn.
//
// The variance of each op's end is kept along a lane and over what waits for what, separately among each communicator's
// ranks. A kernel adds (sigma x time)^2 to all. A collective of n ranks is late by the expected largest of n normal
// numbers, e(n), times the deviation among them. Behind it they are together again. Among the ranks of other
// communicators the variance is that of the largest of n, v(n) of the variance. An op's variance is that of what it
// waits for last, by times without jitter. A step begins as the one before ended.
//   e(n) = integral of 1 - F^n - (1 - F)^n over x > 0     F: the normal distribution; v(n) likewise of x^2
// Source: David and Nagaraja, Order Statistics, 3rd edition 2003, sections 2.3 and 3.1; tabled by Tippett, Biometrika
// 17, 1925. Deviates: sums of kernels are taken to be normal; a communicator inside another one counts as beside it.
// Against replays of all ranks, each with its own jitter, what a step loses is met within 20 %
// (tests/scenario/slowest_rank_test.cc).
#pragma once

#include <cstdint>

#include "scenario/jitter.h"
#include "traces/trace.h"

namespace spillway::scenario {

// The largest of n numbers drawn from the normal distribution, mean 0 and deviation 1. n >= 1.
struct LargestOf {
  double mean = 0, variance = 1;
};
LargestOf largest_of(std::int64_t n);

// Adds jitter's expected delay at collectives to the lags of edges into them, without the part that apply_jitter() has
// applied. Adds edges from their launches where a host that waited is late. Ranks of a group that the trace has itself
// aren't expected but replayed. Transfers between two stages wait for nobody else. False: the trace has collectives,
// and not what they wait for or of how many ranks some are. O(ops + edges) x communicators.
bool wait_for_slowest(Trace& trace, const Jitter& jitter);

}  // namespace spillway::scenario
