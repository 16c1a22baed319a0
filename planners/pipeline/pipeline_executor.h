// Runs a PipelinePlan with given times: every operation starts as soon as its lane has reached it and its inputs are
// there. In sim/engine the same operations are delays on lanes, and transfers are lags of edges
// (tests/planners/pipeline_engine_test.cc holds them to each other). Here it is one pass over flat arrays, fast enough
// for a search.
#pragma once

#include <string>
#include <vector>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"

namespace spillway::planners {

// Half-open, in ticks.
struct TickSpan {
  Ticks begin = 0, end = 0;
};

struct PipelineTimeline {
  std::vector<std::vector<TickSpan>> compute, copies;  // by device and place in its lane
  Ticks makespan = 0;                                  // of the compute lanes
  Ticks longest_span = 0;                              // of one device: from its first operation to its last one's end
  std::vector<Ticks> work;                             // of each device's compute lane

  // Share of the devices' time in which they compute nothing, the whole step taken for every device.
  [[nodiscard]] double bubble_of_makespan() const { return bubble(makespan); }
  // The same with the longest span of any device as each device's time: the Zero Bubble papers' rate. It lets the
  // devices' steps overlap and so presumes no barrier at the optimizer.
  [[nodiscard]] double bubble_of_longest_span() const { return bubble(longest_span); }

 private:
  [[nodiscard]] double bubble(Ticks span) const;
};

// O(operations). Throws InputError (place "schedule") when operations deadlock, naming them, and when the times add up
// to more than 2^62 ticks. Precondition: check_plan() has nothing to say.
PipelineTimeline execute_plan(const PipelinePlan& plan, const StageTimes& times);

}  // namespace spillway::planners
