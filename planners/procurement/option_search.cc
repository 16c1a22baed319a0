#include "planners/procurement/option_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "hwprofiles/profile_library.h"
#include "planners/scenario_run.h"
#include "planners/sweep/layout_sweep.h"
#include "traces/base/byte_source.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

constexpr std::int64_t most_drives = 64;  // of a machine, as scenarios allow

double write_rate(const NvmeProfile& drive) {
  const auto& rate = drive.steady_write_bandwidth ? drive.steady_write_bandwidth : drive.write_bandwidth;
  return rate ? to_bytes_per_second(rate->value) : 0;
}

class OptionSearch {
 public:
  OptionSearch(const Programme& programme, const OptionProgress& progress) : in_(programme), progress_(progress) {}

  std::vector<FleetOption> find() {
    if (!in_.sweep.empty()) return of_sweep();
    std::vector<FleetOption> options;
    const std::size_t all = in_.machines.size() * in_.gpus.size() * in_.techniques.size();
    for (const std::string& machine : in_.machines)
      for (const std::int64_t gpus : in_.gpus)
        for (const CapacityTechnique& technique : in_.techniques) {
          tell(machine + ", " + std::to_string(gpus) + " GPUs, " + technique.name, options.size(), all);
          options.push_back(search(machine, gpus, technique));
        }
    return options;
  }

 private:
  void tell(const std::string& what, std::size_t done, std::size_t all) const {
    if (progress_ && !progress_(what, done, all)) throw Cancelled();
  }

  FleetOption search(const std::string& machine, std::int64_t gpus, const CapacityTechnique& technique) const {
    FleetOption option{machine, gpus, technique.name, {}, ""};
    for (const ProgrammeRun& run : in_.runs) {
      const SweepFile file = layout_sweep(run.scenario, in_.path, in_.folder, space_of(machine, gpus, technique));
      SweepStore store;
      SweepOutcome outcome;
      try {
        SweepOptions ask;
        ask.progress = [this](const std::string&, std::int64_t, std::int64_t) {
          return !progress_ || progress_("", 0, 0);
        };
        outcome = run_sweep(file, ask, store);
      } catch (const InputError& error) {
        option.failure = error.cause();
      }
      if (!outcome.is_whole) throw Cancelled();
      const SweepRow* best = fastest_layout(outcome);
      if (best == nullptr) {
        if (option.failure.empty()) option.failure = why_no_layout(outcome);
        if (in_.runs.size() > 1) option.failure = run.name + ": " + option.failure;
        option.plans.clear();
        return option;
      }
      option.plans.push_back({file.base, in_.path, in_.folder, assignments_of(*best), layout_label(*best),
                              outcome.screened, static_cast<std::int64_t>(outcome.rows.size())});
    }
    return option;
  }

  [[nodiscard]] LayoutSpace space_of(const std::string& machine, std::int64_t gpus,
                                     const CapacityTechnique& technique) const {
    LayoutSpace space{
        gpus, in_.tensor_parallel, in_.pipeline_parallel, in_.micro_batch, technique.settings, in_.replays, {}, {}};
    space.settings.push_back("hardware.profile=" + machine);
    if (in_.drives.empty()) return space;
    const HardwareProfile hardware = ProfileLibrary::shared().load_system(machine);
    const auto fastest =
        std::max_element(in_.drives.begin(), in_.drives.end(),
                         [](const NvmeProfile& a, const NvmeProfile& b) { return write_rate(a) < write_rate(b); });
    space.settings.push_back("offload.drives=" + fastest->name);
    space.settings.push_back(
        "offload.drive_count=" +
        std::to_string(std::min(most_drives, in_.drives_per_gpu * std::min(gpus, hardware.gpu_count))));
    space.settings.push_back(in_.route == DriveRoute::bounce ? "offload.route=bounce" : "offload.route=gpudirect");
    return space;
  }

  // The best point of each machine, number of GPUs and technique.
  std::vector<FleetOption> of_sweep() const {
    const SweepFile file = parse_sweep(in_.sweep, in_.path, in_.folder);
    SweepStore store;
    SweepOptions ask;
    ask.progress = [this](const std::string& what, std::int64_t done, std::int64_t all) {
      return !progress_ || progress_(what, static_cast<std::size_t>(done), static_cast<std::size_t>(all));
    };
    const SweepOutcome outcome = run_sweep(file, ask, store);
    if (!outcome.is_whole) throw Cancelled();
    std::map<std::tuple<std::string, std::int64_t, std::string>, std::pair<double, FleetOption>> best;
    for (const SweepRow& row : outcome.rows) {
      if (!row.does) continue;
      const std::vector<std::string> settings = assignments_of(row);
      const Scenario scenario = parse_scenario(file.base, file.path, file.folder, settings);
      if (scenario.model.empty())
        throw InputError(in_.path, "/base", "a captured trace says nothing of tokens", "sweep over a model");
      FleetOption option{
          scenario.hardware, static_cast<std::int64_t>(row.replayed.gpus), technique_of(scenario), {}, ""};
      option.plans.push_back({file.base, file.path, file.folder, settings, row.label, outcome.screened,
                              static_cast<std::int64_t>(outcome.rows.size())});
      const std::tuple key(option.machine, option.gpus, option.technique);
      const auto found = best.find(key);
      if (found == best.end() || row.replayed.step_seconds < found->second.first)
        best[key] = {row.replayed.step_seconds, std::move(option)};
    }
    std::vector<FleetOption> options;
    for (auto& [key, option] : best) options.push_back(std::move(option.second));
    return options;
  }

  static std::string technique_of(const Scenario& scenario) {
    constexpr std::string_view names[] = {"keep", "selective", "full"};
    std::string name(names[static_cast<std::size_t>(scenario.training.recompute)]);
    if (scenario.offload.technique != OffloadTechnique::none)
      name = std::string(to_string(scenario.offload.technique)) + (scenario.offload.tier == Tier::host ? "-host" : "") +
             "+" + name;
    if (scenario.training.zero_stage > 0) name += "+zero" + std::to_string(scenario.training.zero_stage);
    return name;
  }

  const Programme& in_;
  const OptionProgress& progress_;
};

}  // namespace

std::vector<FleetOption> find_options(const Programme& programme, const OptionProgress& progress) {
  return OptionSearch(programme, progress).find();
}

}  // namespace spillway
