// A pipeline schedule drawn as papers draw it: a row per device, a box per pass with its micro-batch's number, time to
// the right. Activations that a device holds are under its row, and its copies if it has any.
#pragma once

#include <string>

#include "planners/pipeline/pipeline_executor.h"
#include "planners/pipeline/pipeline_memory.h"

namespace spillway::reports {

struct PipelineSvgOptions {
  std::string title;
  double ticks_per_unit = 1;  // of the time axis
  double memory_limit = 0;    // micro-batches of a device's share; drawn when > 0
  int width = 1280;           // pixels, 640 .. 8192
};

// Self-contained, no scripts or fonts. Equal inputs give equal bytes. Throws InputError for more than 100,000
// operations, which nobody could tell apart. O(operations).
std::string pipeline_svg(const PipelinePlan& plan, const PipelineTimeline& timeline, const ActivationProfile& memory,
                         const PipelineSvgOptions& options);

}  // namespace spillway::reports
