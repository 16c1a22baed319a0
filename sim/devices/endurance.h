// How many bytes a drive takes before its rated life is over, and where that figure is from.
//
// Vendors rate a drive in host bytes under one workload, mostly small random writes. Garbage collection behind these
// uses up the flash several times as fast as large writes in order do. Offloaded tensors are such large writes, so the
// rating is carried over to them, by the first of these that the profile allows:
//   1. the vendor's own figure for sequential writes;
//   2. no garbage collection behind the drive (3D XPoint): the rating as it stands;
//   3. rated bytes x write amplification of the rated workload, from the drive's over-provisioning.
//
// Write amplification of greedy garbage collection under uniformly random writes (Xiang and Kurkoski, "An Improved
// Analytical Expression for Write Amplification in NAND Flash", arXiv 1110.4245): with a = 1 + spare / user,
//   WA = a / (a + W0(-a e^-a)),   W0: principal branch of Lambert's function.
// Over-provisioning where a profile states none: the next power of two of TiB above the labelled capacity is taken as
// the flash that is there. On the two families with both workloads rated by the vendor this gives their ratio within
// 15 %.
//
// Drives that map flash in units larger than 4 KiB (most QLC) read, change and write a whole unit for each smaller
// write. Random writes of w bytes cost unit / w as much. The drive merges sequential writes, so these cost no more.
//
// Retention. JESD218 rates a drive to keep data unpowered for months at the end of its life. Data that are kept for
// seconds need less, and two publications credit flash with more cycles for it. SSDTrain (arXiv 2408.10013, III-D): x86
// from 3 years to 1 day. InstAttention: x6.67 from 3 years to 3 weeks. No vendor offers either, the two do not lie on
// one power law, and the rating of enterprise drives starts from 3 months, not 3 years. Off unless asked for, and named
// among the assumptions wherever it is on. It is a property of flash: 3D XPoint is credited none, and where nothing
// collects garbage the workload's own write amplification is 1.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "hwprofiles/nvme_profile.h"

namespace spillway::sim {

// Lambert's W0 on [-1/e, infinity), relative error below 1e-12 away from the branch point. Precondition: in range.
double lambert_w0(double x);

// spare: over user capacity, > 0. Returns > 1; grows without bound as spare goes to 0.
double random_write_amplification(double spare);

struct OverProvisioning {
  bool known = false;
  double spare = 0;  // over user capacity
  Origin origin;
};
// The profile's own, else from its capacity as above; unknown without either, or where no spare would be left (< 1 %).
OverProvisioning over_provisioning(const NvmeProfile& drive);

enum class WritePattern { sequential, random };
enum class RetentionRelaxation { none, three_weeks, one_day };
// Factor on the cycles flash endures: 1, 6.67, 86.
double retention_factor(RetentionRelaxation relaxation);

struct EnduranceOptions {
  WritePattern pattern = WritePattern::sequential;
  Bytes write_size{1 << 20};       // of one random write; > 0
  double write_amplification = 1;  // of the workload itself, >= 1: 1 holds for files written whole and freed whole
  double used_fraction = 0;        // of the drive's rated life, used up before; [0, 1]
  RetentionRelaxation retention = RetentionRelaxation::none;
};

// Host bytes under the workload asked for. `low`: the rating holds and nothing beyond it is credited. `high`: from the
// sequential figure; a modelled one counts 15 % more, the model's largest error.
// Bytes are doubles: a relaxed rating of many drives exceeds 64 bits.
struct Endurance {
  bool known = false;            // false: the profile rates neither bytes nor drive writes a day
  bool published = false;        // a figure of the vendor's for this workload, not modelled
  bool is_flash = true;          // NAND: its cycles may be credited for short retention
  bool collects_garbage = true;  // the workload's own write amplification has a meaning
  double bytes = 0, low = 0, high = 0;
  std::string basis;                     // one line: what `bytes` rests on
  std::vector<std::string> assumptions;  // to be printed with it, the relaxation of retention first
};
// O(1). Throws InputError when an option is out of its range.
Endurance drive_endurance(const NvmeProfile& drive, const EnduranceOptions& options = {});

// Years (of 365 days) until `endurance` bytes are written at a mean of `bytes_per_second`; infinity when nothing is.
double years_to_write(double endurance, double bytes_per_second);

}  // namespace spillway::sim
