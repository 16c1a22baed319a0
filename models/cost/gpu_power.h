// Power that a GPU draws while a step runs, and the clock it settles at where that would be more than its limit.
//
//   P(x) = idle + (chip v(x)^2 + memory) / T(x)            x = clock / highest clock
//   T(x) = max(other + clocked / x, least)
//   v(x) = 1 - slope (1 - x)                               voltage over that of the highest clock
//
// `chip` is energy at the highest clock of what runs on the multiprocessors' supply, `memory` that of device memory,
// which keeps its rate and its voltage. `clocked` is the part of the time that goes with 1 / x. All are sums over the
// kernels of an interval of work, so a clock is found without a second replay. The power controller looks at some tens
// of milliseconds to a tenth of a second: B200 under repeated attention kernels settles within 110 ms (flashinfer PR
// 2899). An interval is therefore one micro-batch through a stage, with the gaps in it, but without the bubble.
//
// Energies per flop follow from one equation per GPU and format. Back-to-back large products settle where they draw the
// limit that they were measured at (settled share of the fit, GemmPhysics::throttle). Sources and assumptions:
// docs/internals/operator-times.md, "Power".
#pragma once

#include <array>

#include "hwprofiles/gpu_profile.h"

namespace spillway::models {

using hwprofiles::precision_count;

struct GpuPower {
  double idle_watts = 0;  // with work there: leakage, and what runs at any load
  double limit_watts = 0;
  std::array<double, precision_count> flop_joules{};  // at the highest clock, of a product
  double chip_byte_joules = 0;                        // of a byte moved between memory and registers, at that clock
  double memory_byte_joules = 0;                      // of the same byte in device memory
  double voltage_slope = 0;                           // [0, 1]; 1: power goes with the clock's cube
};

// Work of an interval on one GPU.
struct PowerLoad {
  double chip_joules = 0, memory_joules = 0;
  double clocked_seconds = 0, other_seconds = 0;  // at the highest clock
  double least_seconds = 0;                       // of the host, say

  [[nodiscard]] double seconds(double clock) const;
};

// Of `load`, beyond idle_watts.
double work_joules(const GpuPower& power, const PowerLoad& load, double clock);
// Over its time. Precondition: it takes some.
double watts(const GpuPower& power, const PowerLoad& load, double clock);

// The highest clock at which `load` draws no more than the limit, in [least_clock_share, most]; `most` where it has no
// time that the clock changes. 40 halvings, no replay.
inline constexpr double least_clock_share = 0.2;
double settled_clock(const GpuPower& power, const PowerLoad& load, double most);

// Share of the highest clock that back-to-back products settle at, which draw `full_watts` beyond idle at the highest.
double product_clock(const GpuPower& power, double full_watts);
// Inverse: what products that settle at `share` under the limit draw beyond idle at the highest clock.
double full_product_watts(const GpuPower& power, double share);

}  // namespace spillway::models
