// From a GPU's figures to the model of hwprofiles/gpu_profile.h.
//
//   products   efficiency = 2mnk / (seconds x dense peak), median per half decade of 2mnk in each class of the smallest
//              side (1, 8, 64, 512, 2048), as the bundled tables are made
//   memory     efficiency = bytes / (seconds x memory bandwidth), the best kernel of each size
//   copies     seconds = latency + bytes / rate: rate from the largest pinned copy, latency the median of what small
//   ones
//              take beyond their bytes; efficiency by size
//   HBM        bytes charged per byte a copy moves: (rate alone - rate beside) / rate of the copies, at least 1
//   kernels    efficiency by kind: bytes / (seconds x memory bandwidth), attention flops / (seconds x dense bf16 peak)
//   sharing    what kernels and copies reach together over the memory bandwidth; copies beside kernels over copies
//   alone roofline   compute: median efficiency of products with sides of at least 1024; memory: best; latency: the
//   shortest
//              kernel
#pragma once

#include <string>
#include <vector>

#include "hwprofiles/calibrate/gpu_measurement.h"
#include "hwprofiles/gpu_profile.h"

namespace spillway::hwprofiles {

struct GpuFit {
  GpuProfile profile;
  std::vector<std::string> notes;  // what was not measured, clocks, what differs from the datasheet
};

// `base`: of the same model: its dense peaks, memory bandwidth and prices stay, as do figures that were not measured.
// Throws InputError when nothing was measured.
GpuFit fit_gpu(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date);

}  // namespace spillway::hwprofiles
