// Reading a part of a long capture: what there is to choose from, found by one quick pass over the file, and the part.
//
// For Kineto traces; other formats are read whole. Times are microseconds since the first recorded event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/formats/read.h"
#include "traces/trace.h"

namespace spillway::traces {

struct TracePart {
  double from_us = 0, until_us = 0;  // half-open, from < until
};

struct TraceSurvey {
  std::int64_t first_us = 0;  // of the file's own clock
  double length_us = 0;       // to the end of the last event
  std::uint64_t events = 0;   // with a time
  struct Step {
    std::string name;  // "ProfilerStep#12"
    double from_us = 0, until_us = 0;
  };
  std::vector<Step> steps;  // by time
};

// Searches times and steps alone: some hundred MB a second, memory for the steps. Throws InputError where the file
// can't be read, is no Kineto trace, or has no times; Cancelled by the progress callback.
TraceSurvey survey_trace(const std::string& path, const ReadOptions& options = {});

// As read_trace(), with the events that begin in the part. Host calls, device work, spans and memory events count each
// by its own time, so work launched before the part has no launch in it (finding missing_launch). Reads the file twice.
// Throws InputError also for other formats, and for a part without events.
Trace read_trace_part(const std::string& path, const TracePart& part, const ReadOptions& options = {});

}  // namespace spillway::traces
