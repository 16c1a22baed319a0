// Kernels against their GPU's roof: operations per byte of device memory, and operations per second reached.
// Williams, Waterman, Patterson: Roofline, CACM 52 (4), 2009.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenario/scenario_run.h"

namespace spillway::studies {

// All kernels of one name.
struct RooflineKernel {
  std::string name;
  std::uint64_t count = 0;
  Picos time{};
  double flops = 0, bytes = 0;                                                                  // of all of them
  [[nodiscard]] double intensity() const { return bytes > 0 ? flops / bytes : 0; }              // operations per byte
  [[nodiscard]] double rate() const { return time > Picos(0) ? flops / to_seconds(time) : 0; }  // operations a second
};

struct Roofline {
  double peak_flops = 0;                // of one GPU in the step's precision, operations a second; 0 unknown
  double bandwidth = 0;                 // of its memory, bytes a second
  std::vector<RooflineKernel> kernels;  // most time first; those with bytes in the trace; flops 0: not counted
};

// O(ops log names).
Roofline roofline(const LoadedScenario& loaded, const ScenarioRun& run);

}  // namespace spillway::studies
