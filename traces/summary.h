// Figures of a trace: the material of `spillway trace info`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

struct StepSummary {
  std::string name;
  Picos duration{};
  // Device work (kernels, copies, sets, collectives) launched in the step: time in which any ran on some stream,
  // and the sum over all. Equal when streams never overlap.
  Picos gpu_busy{};
  Picos gpu_work{};
};

struct TraceSummary {
  std::string format;
  std::vector<Capability> capabilities;
  std::uint64_t events = 0;   // rows of the source file, used or not
  std::uint64_t kernels = 0;  // kernels and collectives
  std::uint64_t ops = 0;
  std::uint64_t tensors = 0;
  std::uint64_t memory_events = 0;
  std::uint64_t device_memory_events = 0;
  Bytes peak_allocated_bytes{-1};  // of the GPU that reaches most: as recorded, else summed from the events; -1: none
  Bytes peak_reserved_bytes{-1};   // -1: not recorded
  std::vector<StepSummary> steps;
  std::vector<Finding> findings;
};

// O(n log n) in the ops.
TraceSummary summarize(const Trace& trace);

}  // namespace spillway::traces
