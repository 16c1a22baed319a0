// The mechanisms by which a way saves memory, whatever its layout: ways of one set are of one class (shown_ways.h).
#pragma once

#include <cstdint>
#include <string>

#include "studies/fit/fit_point.h"

namespace spillway::studies {

// A bit each: recomputation of all layers, of some, of modules; states on the CPU, on drives, weights beside them.
// Others: activations to host memory, to drives, each tensor as planned; schedule; expandable segments, other
// allocators; operator order. More: optimizer, precision, late update, adapters; on one GPU, a smaller micro-batch than
// as given.
std::uint32_t mechanisms_of(const FitPoints& points, const FitPoint& point);
// How it spreads the step over GPUs: equal texts, equal layouts.
std::string layout_of(const TrainingSetup& setup);

}  // namespace spillway::studies
