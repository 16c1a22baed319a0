#include "studies/procurement/option_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario_run.h"
#include "studies/sweep/layout_sweep.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t most_drives = 64;  // of a machine, as scenarios allow

double write_rate(const NvmeProfile& drive) {
  const auto& rate = drive.steady_write_bandwidth ? drive.steady_write_bandwidth : drive.write_bandwidth;
  return rate ? to_bytes_per_second(rate->value) : 0;
}

class OptionSearch {
 public:
  OptionSearch(const ProcurementRequest& request, const OptionProgress& progress) : in_(request), progress_(progress) {}

  std::vector<FleetOption> find() {
    if (!in_.sweep.empty()) return of_sweep();
    std::vector<FleetOption> options;
    std::optional<InputError> first;
    bool all_at_fault = true;
    const std::size_t all = in_.machines.size() * in_.gpus.size() * in_.techniques.size();
    for (const std::string& machine : in_.machines)
      for (const std::int64_t gpus : in_.gpus)
        for (const Candidate& technique : in_.techniques) {
          tell(machine + ", " + std::to_string(gpus) + " GPUs, " + technique.name, options.size(), all);
          std::optional<InputError> error;
          options.push_back(search(machine, gpus, technique, error));
          all_at_fault = all_at_fault && error.has_value();
          if (error && !first) first = error;
        }
    // What no option can be asked with is no answer.
    if (all_at_fault && first)
      throw InputError(first->file().empty() ? in_.path : first->file(), first->place(), first->cause(),
                       first->remedy().empty() ? "correct the programme" : first->remedy());
    return options;
  }

 private:
  void tell(const std::string& what, std::size_t done, std::size_t all) const {
    if (progress_ && !progress_(what, done, all)) throw Cancelled();
  }

  FleetOption search(const std::string& machine, std::int64_t gpus, const Candidate& technique,
                     std::optional<InputError>& wrong) const {
    FleetOption option{machine, gpus, technique.name, {}, ""};
    for (const ProgrammeRun& run : in_.runs) {
      SweepFile file = layout_sweep(run.scenario, in_.path, in_.folder, space_of(run, machine, gpus, technique));
      file.replays_kept = in_.store;
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
        wrong = error;
      }
      if (!outcome.is_whole) throw Cancelled();
      const SweepRow* best = fastest_layout(outcome);
      if (best == nullptr) {
        if (option.failure.empty()) option.failure = why_no_layout(std::span(&outcome, 1));
        if (in_.runs.size() > 1) option.failure = run.name + ": " + option.failure;
        option.plans.clear();
        return option;
      }
      option.plans.push_back({{file.base, in_.path, in_.folder},
                              {layout_label(*best), best->candidate.edits},
                              outcome.screened,
                              static_cast<std::int64_t>(outcome.rows.size())});
    }
    return option;
  }

  // Whether steps of these settings can have anything to do with drives: to those that can't, they are not said, so
  // that other commands' replays of the same steps are found in a store.
  [[nodiscard]] bool may_use_drives(const ProgrammeRun& run, const std::vector<std::string>& settings) const {
    try {
      const Scenario asked = parse_scenario(run.scenario, in_.path, in_.folder, settings);
      return asked.offload.moves() || !asked.plan.empty() ||
             asked.training.optimizer_device == models::StateDevice::drives ||
             asked.training.weight_device == models::StateDevice::drives;
    } catch (const InputError&) {
      return true;  // some layout may make it whole
    }
  }

  [[nodiscard]] LayoutSpace space_of(const ProgrammeRun& run, const std::string& machine, std::int64_t gpus,
                                     const Candidate& technique) const {
    LayoutSpace space;
    static_cast<LayoutSizes&>(space) = in_;
    space.gpus = gpus;
    space.settings = technique.edits;
    space.replays = in_.replays;
    space.settings.push_back("hardware.profile=" + machine);
    if (in_.drives.empty() || !may_use_drives(run, space.settings)) return space;
    const HardwareProfile hardware = ProfileLibrary::shared().load_system(machine);
    const auto fastest =
        std::max_element(in_.drives.begin(), in_.drives.end(),
                         [](const NvmeProfile& a, const NvmeProfile& b) { return write_rate(a) < write_rate(b); });
    space.settings.push_back("offload.drives=" + fastest->name);
    space.settings.push_back(
        "offload.drives_per_machine=" +
        std::to_string(std::min(most_drives, in_.drives_per_gpu * std::min(gpus, hardware.gpu_count))));
    space.settings.push_back(in_.route == DriveRoute::bounce ? "offload.route=bounce" : "offload.route=gpudirect");
    return space;
  }

  // The best point of each machine, number of GPUs and technique: that with the least GPU time per token. The file's
  // own objectives would let a sweep drop it, and machines and drives have their own prices, so each is swept by
  // itself, for the least GPU time and the shortest step: a point is left out only where another of the same machine
  // and drives is better in both (the batch is the same in all: read_procurement_request).
  std::vector<FleetOption> of_sweep() const {
    std::vector<SweepFile> parts = {parse_sweep(in_.sweep, in_.path, in_.folder)};
    parts.front().objectives = {Objective::gpu_time_per_token, Objective::step_time};
    for (std::size_t a = 0; a < parts.front().axes.size(); ++a) {
      if (!is_bought(parts.front().axes[a])) continue;
      std::vector<SweepFile> split;
      for (const SweepFile& part : parts)
        for (const SweepOption& option : part.axes[a].options) {
          split.push_back(part);
          name_options(part.axes[a], split.back());
          split.back().axes[a].options = {option};
        }
      parts = std::move(split);
    }
    BestPoints best;
    for (const SweepFile& part : parts) add_best(part, best);
    std::vector<FleetOption> options;
    for (auto& [key, option] : best) options.push_back(std::move(option.second));
    return options;
  }

  // By machine, GPUs and technique: GPU seconds per token.
  using BestPoints = std::map<std::tuple<std::string, std::int64_t, std::string>, std::pair<double, FleetOption>>;

  // Rules may name options that a part no longer has.
  static void name_options(const SweepAxis& axis, SweepFile& part) {
    std::set<std::string> taken;
    for (const SweepAxis& each : part.axes) taken.insert(each.name);
    for (const SweepDerived& each : part.derived) taken.insert(each.name);
    for (const SweepOption& option : axis.options)
      if (!taken.contains(option.label)) part.constants.try_emplace(option.label, option.number);
  }

  static bool is_bought(const SweepAxis& axis) {
    for (const SweepOption& option : axis.options)
      for (const auto& [key, value] : option.settings)
        if (key.starts_with("hardware.") || key.starts_with("offload.")) return true;
    return false;
  }

  void add_best(SweepFile file, BestPoints& best) const {
    file.replays_kept = in_.store;
    SweepStore store;
    SweepOptions ask;
    ask.progress = [this](const std::string& what, std::int64_t done, std::int64_t all) {
      return !progress_ || progress_(what, static_cast<std::size_t>(done), static_cast<std::size_t>(all));
    };
    const SweepOutcome outcome = run_sweep(file, ask, store);
    if (!outcome.is_whole) throw Cancelled();
    for (const SweepRow& row : outcome.rows) {
      if (!row.does) continue;
      const BaseScenario base{file.base, file.path, file.folder};
      const Scenario scenario = scenario_of(base, row.candidate.edits);
      FleetOption option{
          scenario.hardware, static_cast<std::int64_t>(row.replayed.gpus), technique_of(scenario), {}, ""};
      option.plans.push_back({base, row.candidate, outcome.screened, static_cast<std::int64_t>(outcome.rows.size())});
      const std::tuple key(option.machine, option.gpus, option.technique);
      const double gpu_seconds = row.replayed.value(Objective::gpu_time_per_token);
      const auto found = best.find(key);
      if (found == best.end() || gpu_seconds < found->second.first) best[key] = {gpu_seconds, std::move(option)};
    }
  }

  static std::string technique_of(const Scenario& scenario) {
    std::string name = recompute_way(scenario.training.recompute);
    if (scenario.offload.moves())
      name = scenario.offload.technique + (scenario.offload.tier == Tier::host ? "-host" : "") + "+" + name;
    if (const std::int64_t stage = scenario.training.shared_stage(); stage > 0) name += "+zero" + std::to_string(stage);
    return name;
  }

  const ProcurementRequest& in_;
  const OptionProgress& progress_;
};

}  // namespace

std::vector<FleetOption> find_options(const ProcurementRequest& request, const OptionProgress& progress) {
  return OptionSearch(request, progress).find();
}

}  // namespace spillway::studies
