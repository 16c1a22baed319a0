// Results of measuring a drive: plain figures, no model yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "hwprofiles/calibrate/cufile_way.h"
#include "hwprofiles/spread.h"

namespace spillway::hwprofiles {

struct DrivePoint {
  Bytes block;
  unsigned depth = 1;
  bool is_write = false;
  Spread bytes_per_second;
  Spread latency_seconds;
};

struct MixedLoad {
  Spread read_bytes_per_second, write_bytes_per_second;  // at the same time
};

// Writing again after a pause that followed the sustained write.
struct IdleRecovery {
  double idle_seconds = 0;
  Bytes bytes_at_fast_rate;  // before the rate fell halfway to the steady one; all that was written if it never did
  bool fell = false;
};

struct DriveMeasurement {
  std::vector<DrivePoint> sequential;          // by direction, depth, block, each rising
  Spread random_read_iops, random_write_iops;  // 4 KiB
  MixedLoad mixed;
  Bytes sustained_slice;                  // bytes per element of:
  std::vector<double> sustained_seconds;  // how long each slice of the sustained write took
  std::optional<IdleRecovery> recovery;   // measured where the rate fell
  std::vector<DrivePoint> gpudirect;      // between the file and device memory; by direction, depth, block
  CufileVerdict gpudirect_way;            // of these: GPUDirect Storage, or cuFile's way through host memory
  std::string no_gpudirect;               // why not, where there was device memory to do so
  Bytes written, read;                    // in all
  bool registered_buffers = true;
  double seconds = 0;
};

// The drive under a file, as the system knows it; empty or 0 where it doesn't say.
struct DriveIdentity {
  std::string device;  // "nvme0n1"
  std::string model;
  Bytes capacity;
  std::int64_t pcie_generation = 0, pcie_lanes = 0;
};

}  // namespace spillway::hwprofiles
