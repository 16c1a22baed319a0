// From figures to the drive model of hwprofiles/nvme_profile.h.
//
//   rate      |=====fast=====|
//             |              |==folding==|
//             |                          |=====steady=====
//             +-------------------------------------------> bytes written
//
// The sustained write is cut into one to three levels where its rate falls. Each level is lower than the one before by
// a fifth at least, in the mean of its slices' rates and in bytes over time. The levels are those that explain the
// logarithms of the slices' rates best: least squares by dynamic programming, their number by the Bayesian information
// criterion (Schwarz, Annals of Statistics 1978). No fall: no cache is claimed, and the notes tell up to how many bytes
// that was seen. Interference x is what the reads' and writes' shares of their own rates leave of two: r/R + w/W = 2 -
// x, kept in [0, 1]. The useful queue depth is the smallest that gives 95 % of the best rate at the largest block.
#pragma once

#include <string>
#include <vector>

#include "hwprofiles/calibrate/drive_measurement.h"
#include "hwprofiles/nvme_profile.h"
#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

struct WriteLevel {
  double bytes_per_second = 0;
  Bytes bytes;
  double spread = 0;  // of its slices
};

// Precondition: slice > 0, every second > 0. At least one level. O(n^2) in the slices.
std::vector<WriteLevel> write_levels(const std::vector<double>& slice_seconds, Bytes slice);

struct DriveFit {
  NvmeProfile profile;
  std::vector<WriteLevel> levels;
  std::vector<std::string> notes;  // what was not seen, and where the model and the figures part
};

// `date`: ISO 8601 day. `name`, `title`: of the profile; taken from the drive's model when empty.
// Throws InputError when a direction was not measured.
DriveFit fit_drive(const DriveMeasurement& measured, const DriveIdentity& identity, const std::string& name,
                   const std::string& date);

// Head of the file for such a profile.
Origin measured_origin(const std::string& date);

}  // namespace spillway::hwprofiles
