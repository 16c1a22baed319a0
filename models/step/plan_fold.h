// The repetitions of a pipeline plan: a plan of many micro-batches as one of few, with parts of it repeated.
//
//   whole, a device    F0 F1 | F2 B0 | F3 B1 | F4 B2 | F5 B3 | B4 B5        period: F B, one micro-batch
//   shown              F0 F1 | F2 B0 | F3 B1 | B2 B3
//
// Nothing is taken from the names of schedules: both plans are there, and are compared operation by operation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/pipeline/pipeline_plan.h"

namespace spillway::models {

struct PlanFold {
  struct Device {
    std::size_t first = 0, length = 0;  // in `shown`'s order: the first period's place, operations of a period
    std::uint32_t periods = 0;          // in `shown`
  };
  std::int64_t times = 0;  // periods that `whole` has beyond them
  std::vector<Device> devices;
};

// None if `whole` is not `shown` with periods of `period` micro-batches more, at one place on each device. None also if
// a device shows fewer than three, or if micro-batches don't all go one way. Periods hold no micro-batch below
// `first_usual`, nor the last one. O(operations).
std::optional<PlanFold> fold_of(const PipelinePlan& whole, const PipelinePlan& shown, std::int64_t period,
                                std::int64_t first_usual);

}  // namespace spillway::models
