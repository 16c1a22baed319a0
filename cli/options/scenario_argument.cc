#include "cli/options/scenario_argument.h"

#include "base/input_error.h"
#include "cli/options/interrupt.h"

namespace spillway::cli {

namespace {

Scenario scenario_of(const std::string& path, const std::vector<std::string>& settings) {
  return is_scenario_file(path) ? load_scenario(path, settings) : scenario_for_trace(path, settings);
}

ReadOptions interruptible() {
  ReadOptions read;
  read.progress = [](std::uint64_t, std::uint64_t) { return !is_interrupted(); };
  return read;
}

}  // namespace

LoadedScenario load_argument(const std::string& path, const std::vector<std::string>& settings) {
  return load(scenario_of(path, settings), interruptible());
}

BriefRun run_argument_briefly(const std::string& path, const std::vector<std::string>& settings) {
  return run_briefly(scenario_of(path, settings), Detail::figures, interruptible());
}

std::function<Scenario(std::span<const std::string>)> with_settings(const std::string& path,
                                                                    const std::vector<std::string>& settings) {
  return [path, settings](std::span<const std::string> more) {
    std::vector<std::string> all = settings;
    all.insert(all.end(), more.begin(), more.end());
    return scenario_of(path, all);
  };
}

Bytes budget_argument(std::uint64_t bytes) {
  if (bytes > (std::uint64_t{1} << 60))
    throw InputError("--budget", "", "is no size of a memory", "give bytes above 0, such as 40GiB");
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace spillway::cli
