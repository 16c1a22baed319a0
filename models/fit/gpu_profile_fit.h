// From a GPU's raw points to a profile. Launches, copies and power are as measured. A few scale factors go onto the
// operator times fitted for its model, which they never replace.
//
//   launches, events, driver calls   medians
//   copies    seconds = latency + bytes / rate: rate from the largest pinned copy, latency the median of what small
//             ones take beyond their bytes
//   HBM       bytes charged per byte a copy moves: (rate alone - rate beside) / rate of the copies, at least 1; what
//             both reach together over the memory bandwidth
//   power     the rate, clock and watts that a long product settles at; the limit that the clock is held to
//   products  by format: a factor each on arithmetic, memory and fixed time
//   kernels bound by memory            factors on memory and fixed time, from copy, read and write kernels
//   production kernels                 one factor by kind; those of no library that training runs (hwprofiles::
//                                      library_of) are not used, and told
//
// Factors minimise  mean Huber(log(measured / predicted)) / sigma + prior / points: shrunk towards 1, so that a handful
// of points moves little. A fifth of the points is held out (point_times.h); whether what the fit says of them is
// better than the tables is for others to judge.
#pragma once

#include <string>
#include <vector>

#include "hwprofiles/gpu_points.h"
#include "hwprofiles/gpu_profile.h"
#include "models/fit/point_times.h"

namespace spillway::models::fit {

struct GpuFit {
  GpuProfile profile;
  std::vector<std::string> notes;  // what was not measured, what differs from the datasheet
};

// `base`: of the same model: its dense peaks, memory bandwidth, prices and all that was not measured stay. Throws
// InputError when nothing was measured, and when something ran faster than the base's peaks, which is then of another
// GPU.
GpuFit fit_gpu(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date);

Origin calibration_origin(const std::string& date);

}  // namespace spillway::models::fit
