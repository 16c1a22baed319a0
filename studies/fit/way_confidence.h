// How far the figures of a way may be off, and what says so: published steps of its kind (published_errors.h), and
// where the figures of what binds it come from.
//
// The error is the 90th percentile over the widest group of that kind. Nothing is made up where nothing was measured:
// steps that move tensors off the GPU, kinds that nobody published.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/fit/fit_point.h"

namespace spillway::studies {

struct FigureConfidence {
  std::optional<double> error;  // relative; none: nothing like it was measured
  std::string from;             // in words
};

struct WayConfidence {
  FigureConfidence step_time, memory;
  std::vector<std::string> binding_provenance;  // of the figures of what binds: "measured", "assumed", ...; each once
  // "step time +-16.6 % (vTrain multi-node: 46 steps), peak +-7.7 % (...); network figures: datasheet, assumed"
  [[nodiscard]] std::string words(std::string_view binding) const;
};

// `point` as it was replayed on the subject's machine with that result.
WayConfidence confidence_of(const FitSubject& subject, const FitPoints& points, const FitPoint& point,
                            const Result& result);

}  // namespace spillway::studies
