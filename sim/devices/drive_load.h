// A step's storage traffic repeated on one set of drives until what they give no longer changes.
//
// Carries the drive state of a replay (NvmeModel, Reservoir) over steps. The write cache fills over many steps and
// drains in pauses; a training run gets the rates that remain once it is full. A replay of one step sees an empty
// cache.
//
//   due      |--w--|--w--|            |--r--|--r--|        bytes come due evenly over a span; what can't be moved at
//   carried  |wwwwwwwwwwwwww|         |rrrrrrrr|           once waits in two queues, writes and reads
//
// Reads and writes share the media as nvme_drive.h says; both queues give way in proportion. A step ends when its time
// is over and both queues are empty: drives that fall behind make it longer. Mean use above `thermal_duty` of the full
// rates makes the steady step longer likewise; heat is slow beside steps, so only the mean counts. A drive set that
// can't be recovered from by waiting never ends a step; such loads (rate 0) are refused.
//
// Half a step is what SSDTrain allows for writing (arXiv 2408.10013, III-D) and here also for reading.
// Complexity: O(steps simulated x spans); steps in which only the cache's level moves are skipped at once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/devices/nvme_drive.h"

namespace spillway::sim {

struct LoadSpan {
  Picos begin{}, end{};  // within the step, begin <= end; equal: all comes due at once
  Bytes bytes{};         // >= 0
  bool is_write = true;
};

struct DriveLoad {
  Picos step{};  // > 0, without waiting for drives
  std::vector<LoadSpan> spans;
  [[nodiscard]] Bytes written() const;
  [[nodiscard]] Bytes read() const;
};

struct LoadedDrives {
  NvmeModel drive;
  std::int64_t count = 1;                                  // in lock step, as RAID-0
  Rate write_link = Rate::max(), read_link = Rate::max();  // what the links to the whole set carry
  double thermal_duty = 1;                                 // (0, 1]; 1: heat is no limit
};

// One step as the drives carried it.
struct CarriedStep {
  std::int64_t number = 0;          // from 0
  Picos length{};                   // >= DriveLoad::step
  Picos write_time{}, read_time{};  // what moving the bytes takes at the rates the drives had, one after the other
  double cache_level = 0;           // at its end, of its size; 0 without a cache
};

struct SustainedLoad {
  CarriedStep first, steady;        // steady: lengths and times are means
  std::int64_t steps_to_full = -1;  // step in which the cache is first full; -1: never
  bool throttled = false;           // by heat, in `steady`
  double use = 0;                   // of the full rates, mean over a steady step
  std::vector<CarriedStep> steps;   // those simulated, some 300 at most

  // The step is not stretched, and writing and reading take half of it at most.
  [[nodiscard]] static bool holds(const CarriedStep& step, Picos asked);
};

// Throws InputError when a rate is 0 or a span lies outside the step.
SustainedLoad sustain(const LoadedDrives& drives, const DriveLoad& load);

}  // namespace spillway::sim
