#include "planners/capacity/capacity.h"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "models/model_spec.h"
#include "planners/capacity/edge_search.h"
#include "planners/capacity/state_bound.h"
#include "planners/scenario_run.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

struct Stopped {};

std::string in_gib(Bytes bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes.count()) / 1073741824.0); }

// Whether all of the model's state stays on the GPU.
bool keeps_state(const Scenario& scenario) {
  return scenario.offload.technique != OffloadTechnique::lifetimes &&
         scenario.offload.technique != OffloadTechnique::stream && scenario.plan.empty();
}

class Technique {
 public:
  Technique(const CapacityRequest& request, const CapacityTechnique& technique,
            std::function<bool(std::int64_t)> progress)
      : request_(request), technique_(technique), progress_(std::move(progress)) {}

  CapacityAnswer find() {
    CapacityAnswer answer;
    answer.technique = technique_;
    const CapacityAxis& axis = request_.axis;
    const bool is_largest = axis.goal == CapacityGoal::largest;
    const VerdictEdge edge = find_edge(axis.index(axis.first), axis.count(), [&](std::int64_t index) {
      const CapacityTrial& trial = attempt(axis.value(index));
      EdgeTrial side{trial.holds == is_largest, std::nullopt};
      if (const std::optional<double> missing = missing_memory(trial)) side.measure = is_largest ? *missing : -*missing;
      return side;
    });
    answer.is_monotone = edge.is_monotone;
    answer.trials = edge.trials;
    for (const auto& [value, trial] : trials_) answer.replays += trial.replayed ? 1 : 0;
    const auto& holds = is_largest ? edge.lower : edge.upper;
    const auto& fails = is_largest ? edge.upper : edge.lower;
    if (holds) answer.best = trials_.at(axis.value(*holds));
    if (fails) answer.beyond = trials_.at(axis.value(*fails));
    const bool never_ran =
        std::all_of(trials_.begin(), trials_.end(), [](const auto& each) { return each.second.needed == Bytes(0); });
    if (!answer.best && never_ran && answer.beyond) answer.refused = answer.beyond->why_not;
    return answer;
  }

 private:
  // Of memory, where that is what decides.
  [[nodiscard]] static std::optional<double> missing_memory(const CapacityTrial& trial) {
    if (trial.needed == Bytes(0) || trial.capacity == Bytes(0)) return std::nullopt;
    const double missing = static_cast<double>((trial.needed - trial.capacity).count());
    if (!trial.replayed || (missing > 0) == trial.holds) return std::nullopt;
    return missing;
  }

  const CapacityTrial& attempt(std::int64_t value) {
    if (progress_ && !progress_(value)) throw Stopped{};
    CapacityTrial trial;
    trial.value = value;
    try {
      judge(trial);
    } catch (const InputError& error) {
      trial.why_not = error.cause();
    }
    return trials_[value] = std::move(trial);
  }

  void judge(CapacityTrial& trial) const {
    std::vector<std::string> settings = request_.settings;
    settings.insert(settings.end(), technique_.settings.begin(), technique_.settings.end());
    settings.push_back(request_.axis.key + "=" + std::to_string(trial.value));
    const Scenario scenario = load_scenario(request_.path, settings);
    if (!scenario.model.empty()) {
      const ModelSpec model = with_layers(scenario, find_model(scenario.model));
      trial.parameters = parameter_count(model);
      if (state_is_too_much(scenario, model, trial)) return;
    }
    const LoadedScenario loaded = load(scenario);
    const Result result = run(loaded);
    trial.replayed = true;
    trial.step_time = result.step_time;
    trial.tokens_per_second = result.tokens_per_second;
    trial.mfu = result.mfu;
    trial.fingerprint = result.fingerprint;
    trial.warnings = result.warnings;
    trial.capacity = result.memory.capacity;
    trial.needed = result.memory.peak_reserved;
    trial.gpus = loaded.scenario.model.empty() ? 1 : loaded.setup.gpus();
    for (const DriveTraffic& drive : result.drives)
      if (drive.life && (!trial.life_years || drive.life->years < *trial.life_years))
        trial.life_years = drive.life->years;
    count_owners(result, trial);
    trial.why_not = what_fails(result, trial);
    trial.holds = trial.why_not.empty();
  }

  static bool state_is_too_much(const Scenario& scenario, const ModelSpec& model, CapacityTrial& trial) {
    if (!keeps_state(scenario)) return false;
    TrainingSetup setup = scenario.training;
    if (setup.pipeline_schedule.ends_with(".json")) setup.pipeline_schedule = "1f1b";  // without effect on the bound
    setup = resolve(setup, model);
    trial.gpus = setup.gpus();
    const HardwareProfile hardware = hardware_of(scenario);
    const Bytes capacity = scenario.capacity_bytes ? Bytes(*scenario.capacity_bytes)
                                                   : hardware.gpu.memory.value - hardware.gpu.context_memory.value;
    const Bytes state = least_state_bytes(model, setup);
    if (state <= capacity) return false;
    trial.needed = state;
    trial.capacity = capacity;
    trial.owners = {{"model state", state, true}};
    trial.why_not = "weights and optimizer state alone take " + in_gib(state) + " of " + in_gib(capacity);
    return true;
  }

  static void count_owners(const Result& result, CapacityTrial& trial) {
    trial.owners = result.memory.owners;
    const Bytes waste = result.memory.peak_reserved - result.memory.peak_allocated;
    if (waste > Bytes(0)) trial.owners.push_back({"reserved, not allocated", waste, true});
    std::stable_sort(trial.owners.begin(), trial.owners.end(),
                     [](const PeakOwner& a, const PeakOwner& b) { return a.bytes > b.bytes; });
  }

  [[nodiscard]] std::string what_fails(const Result& result, const CapacityTrial& trial) const {
    const CapacityConstraints& asked = request_.constraints;
    if (!result.fits()) return in_gib(result.memory.shortage) + " of memory missing";
    for (const RankResult& rank : result.ranks)
      if (!rank.fits) return rank.name + " runs out of memory";
    const double seconds = to_seconds(trial.step_time);
    if (asked.most_step_seconds > 0 && seconds > asked.most_step_seconds)
      return fmt::format("a step of {:.4g} s is longer than {:.4g} s", seconds, asked.most_step_seconds);
    if (trial.tokens_per_second < asked.least_tokens_per_second)
      return fmt::format("{:.4g} tokens/s are fewer than {:.4g}", trial.tokens_per_second,
                         asked.least_tokens_per_second);
    if (trial.mfu < asked.least_mfu) return fmt::format("an MFU of {:.3f} is below {:.3f}", trial.mfu, asked.least_mfu);
    if (asked.least_life_years > 0 && trial.life_years && *trial.life_years < asked.least_life_years)
      return fmt::format("drives last {:.3g} years, not {:.3g}", *trial.life_years, asked.least_life_years);
    return "";
  }

  const CapacityRequest& request_;
  const CapacityTechnique& technique_;
  std::function<bool(std::int64_t)> progress_;
  std::map<std::int64_t, CapacityTrial> trials_;
};

}  // namespace

std::string CapacityAnswer::binding() const {
  if (!refused.empty() || !beyond) return "";
  const bool by_memory = beyond->replayed && beyond->needed > beyond->capacity && beyond->capacity > Bytes(0);
  if (!by_memory) return beyond->why_not;
  if (beyond->owners.empty()) return "memory";
  const PeakOwner& largest = beyond->owners.front();
  std::string name = largest.name;
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("{} ({:.0f} % of the peak)", name,
                     100 * static_cast<double>(largest.bytes.count()) / static_cast<double>(beyond->needed.count()));
}

bool CapacityOutcome::any() const {
  return std::any_of(answers.begin(), answers.end(), [](const CapacityAnswer& each) { return each.best.has_value(); });
}

CapacityOutcome find_capacity(const CapacityRequest& request, const CapacityProgress& progress) {
  CapacityOutcome outcome;
  outcome.answers.resize(request.techniques.size());
  std::mutex one_at_a_time;
  std::atomic<bool> stopped = false;
  oneapi::tbb::parallel_for(std::size_t{0}, request.techniques.size(), [&](std::size_t i) {
    const CapacityTechnique& technique = request.techniques[i];
    outcome.answers[i].technique = technique;
    const auto ask = [&](std::int64_t value) {
      const std::lock_guard lock(one_at_a_time);
      if (!stopped && progress && !progress(technique.name, value)) stopped = true;
      return !stopped;
    };
    try {
      outcome.answers[i] = Technique(request, technique, ask).find();
    } catch (const Stopped&) {
      outcome.answers[i].refused = "interrupted";
    }
  });
  outcome.interrupted = stopped;
  const auto& answers = outcome.answers;
  const bool all_refused =
      std::all_of(answers.begin(), answers.end(), [](const CapacityAnswer& each) { return !each.refused.empty(); });
  if (all_refused && !outcome.interrupted)
    throw InputError(request.path, request.axis.key, answers.front().refused,
                     answers.size() == 1 ? "change the scenario, or take another technique"
                                         : "change the scenario: every technique is refused");
  return outcome;
}

}  // namespace spillway
