// Whether a calibration helps: what the profile says of points that no fit has seen, before and after.
//
// Each group of corrections (factors of one kind of operator; lines of products of one class of sizes) stands by
// itself. It stays where held-out errors shrink by more than chance, two standard errors of their mean difference, and
// no class of sizes gets a worse median. Else it is taken out again. The points that count are those of
// models::fit::points_that_count().
#pragma once

#include <string>
#include <vector>

#include "hwprofiles/gpu_points.h"
#include "hwprofiles/gpu_profile.h"

namespace spillway::validation {

// Median |measured / predicted - 1| of held-out points.
struct CalibrationRow {
  std::string what;  // "products bf16, sides below 64"
  std::size_t points = 0;
  double before = 0, after = 0;
};

struct CalibrationVerdict {
  GpuProfile profile;  // with what helps alone
  std::vector<CalibrationRow> rows;
  std::vector<std::string> notes;  // what was taken out, and why
  // Something helps, and nothing that was held out is predicted worse.
  bool helps = false;
};

// Fits and judges. Throws what models/fit's fit_gpu() throws.
CalibrationVerdict calibrated_profile(const GpuMeasurement& measured, const GpuProfile& base, const std::string& date);

}  // namespace spillway::validation
