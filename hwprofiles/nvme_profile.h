// One NVMe drive model of one capacity: rates, cache, latency, endurance, price.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "hwprofiles/curve.h"
#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

struct NvmeProfile {
  std::string name, title, vendor, segment, media, note;

  Maybe<Bytes> capacity;
  Sourced<std::int64_t> pcie_generation, pcie_lanes;

  Maybe<Rate> read_bandwidth;   // sequential
  Maybe<Rate> write_bandwidth;  // sequential; into the write cache where the drive has one
  // Write cache (pSLC or DRAM): once it is full, writing goes on at the steady rate.
  Maybe<Bytes> write_cache;
  Maybe<Rate> steady_write_bandwidth;
  // Between the two some drives fold pSLC to TLC: this rate for this many bytes more.
  Maybe<Rate> folding_write_bandwidth;
  Maybe<Bytes> folding_bytes;
  Maybe<double> random_read_iops, random_write_iops;  // 4 KiB
  Maybe<Picos> read_latency, write_latency;
  Maybe<std::int64_t> queue_depth;  // useful submission window
  // Reads and writes together: 1 = the two rates share one budget (in fractions of each), 0 = independent.
  Maybe<double> read_write_interference;
  // Fraction of the sequential rate: parameter = commands in flight, x = block bytes.
  Maybe<CurveFamily> read_efficiency, write_efficiency;

  // Host bytes the vendor rates it for, under the workload named in `rated_workload`.
  Maybe<Bytes> rated_endurance;
  std::string rated_workload;
  Maybe<Bytes> sequential_endurance;
  Maybe<double> drive_writes_per_day;
  Maybe<double> warranty_years;
  Maybe<double> over_provisioning;  // spare / user capacity
  Maybe<Bytes> indirection_unit;    // flash is mapped in units of this; absent: 4 KiB

  // Largest mean share of its full rates that its cooling lets it keep up for minutes; absent: 1.
  Maybe<double> thermal_duty;

  Maybe<double> active_watts, idle_watts;
  Maybe<double> price_usd;
};

}  // namespace spillway::hwprofiles
