// The timeline of a replay as a file: a picture, or a trace for Perfetto.
#pragma once

#include <string>

#include "scenario/scenario_run.h"

namespace spillway::reports {

// path: .svg, or .json: the replay with its memory, and how busy GPU, PCIe and drives are. Throws InputError where it
// can't be written.
void write_timeline(const LoadedScenario& loaded, const ScenarioRun& run, const std::string& path);

}  // namespace spillway::reports
