// --plot of `spillway sweep` and `spillway merge`: which picture, of what, where to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/sweep/sweep_run.h"
#include "studies/sweep/sweep_workers.h"

namespace spillway::cli {

struct SweepPlot {
  enum class Kind : std::uint8_t { front, map, tornado };
  Kind kind = Kind::front;
  std::vector<std::string> axes;      // of a map: across, up
  std::vector<Objective> objectives;  // two of a front, else one
  std::string path;
};

// "front=F.svg", "front:step_time,gpus=F.svg", "map:t,p=F.svg", "map:t,p,peak_memory=F.svg", "tornado=F.svg",
// "tornado:cost_per_token=F.svg". Objectives that aren't named are the file's first. Throws InputError.
SweepPlot parse_plot(const std::string& text, const SweepFile& file);

// A tornado's replays are the workers's to do.
void write_plot(const SweepPlot& plot, const SweepFile& file, const SweepOutcome& outcome, SweepWorkers& workers,
                SweepStore& store);

}  // namespace spillway::cli
