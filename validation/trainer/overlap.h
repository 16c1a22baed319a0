// How much of a step's transfers lies under its kernels.
//
//   kernels    |=====|=====|          |========|
//   transfers     |=========================|
//                 hidden....exposed....hidden
//
// Times of transfers and kernels that overlap among themselves count once. Pauses of up to 20 us between kernels count
// as kernels: launches and timing leave such, whatever is copied meanwhile.
#pragma once

#include <vector>

namespace spillway::validation {

struct TimeSpan {
  double begin = 0, end = 0;  // seconds
};

struct Overlap {
  double transfer_seconds = 0;  // in which something is under way
  double hidden_seconds = 0;    // of these, in which kernels run as well
  double step_seconds = 0;
  [[nodiscard]] double exposed_seconds() const { return transfer_seconds - hidden_seconds; }
  // Exposed transfers take no more than 2 % of the step.
  [[nodiscard]] bool is_hidden() const { return exposed_seconds() <= 0.02 * step_seconds; }
};

// Spans in any order; empty or reversed ones count nothing. O(n log n).
Overlap overlap_of(std::vector<TimeSpan> transfers, std::vector<TimeSpan> kernels, double step_seconds);

}  // namespace spillway::validation
