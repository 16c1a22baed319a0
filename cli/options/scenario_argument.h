// The SCENARIO argument of a command: a scenario file, or a trace to replay as captured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "scenario/brief_run.h"
#include "scenario/scenario_run.h"

namespace spillway::cli {

// Reading can be interrupted. Throws InputError.
LoadedScenario load_argument(const std::string& path, const std::vector<std::string>& settings);

// Its figures, see scenario/brief_run.h.
BriefRun run_argument_briefly(const std::string& path, const std::vector<std::string>& settings);

// The same scenario with more settings on top of these.
std::function<Scenario(std::span<const std::string>)> with_settings(const std::string& path,
                                                                    const std::vector<std::string>& settings);

// A size given on the command line; 0 stands for not given. Throws InputError for a negative one, which the parser of
// sizes lets through as a huge one.
Bytes budget_argument(std::uint64_t bytes);

}  // namespace spillway::cli
