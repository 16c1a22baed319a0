// Measures a drive through a scratch file: what `spillway calibrate nvme` does.
//
// The order lets each part find the drive as it should. A region is written once (its blocks exist from then on), and
// takes small and large writes by queue depth. The sustained write fills the file. The idle pause and its write follow
// if the rate fell, then sequential reads by block and depth, random 4 KiB, and reads and writes together. With device
// memory, at the end, reads into it and writes from it (GdsQueue). Each rate is that of its whole run, with the spread
// of up to nine slices of it; latencies are medians.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/units.h"
#include "hwprofiles/calibrate/drive_measurement.h"

namespace spillway::hwprofiles {

struct DriveCalibrationOptions {
  std::string file;        // must not exist; see ScratchFile
  Bytes bytes{};           // most bytes written in all, at least 64 MiB; 0: 1 GiB quick, else 16 GiB
  bool quick = false;      // fewer points, 0.1 s each instead of 0.3 s; some 10 s instead of a minute
  std::uint64_t seed = 1;  // of what is written and of random places
  // Device memory to measure GPUDirect Storage with, and what its threads begin with; empty: not measured.
  std::span<std::byte> device_memory;
  std::function<void()> begin_thread;
};

// `progress(part, parts)` after every run; false ends with Cancelled. Throws InputError as ScratchFile, IoRing and
// run_pattern do.
DriveMeasurement measure_drive(const DriveCalibrationOptions& options,
                               const std::function<bool(std::size_t, std::size_t)>& progress);

}  // namespace spillway::hwprofiles
