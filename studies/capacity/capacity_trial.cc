#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "base/parallel.h"
#include "hwprofiles/profile_library.h"
#include "models/pipeline/named_schedules.h"
#include "models/spec/model_spec.h"
#include "planners/offload/drive_life.h"
#include "planners/technique/technique_table.h"
#include "scenario/machine_power.h"
#include "scenario/scenario_run.h"
#include "sim/replay/verdict_words.h"
#include "studies/capacity/capacity_trial.h"
#include "studies/offload/best_offload.h"
#include "studies/screen/state_bound.h"
#include "studies/sweep/layout_sweep.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t planning_replays = 40;  // of a mix, to see whether it is worth a run

// Whether all of the model's state stays on the GPU.
bool keeps_state(const Scenario& scenario) {
  const OffloadSettings& offload = scenario.offload;
  return !(offload.moves() && technique_named(offload.technique).moves_state) && scenario.plan.empty();
}

class Judge {
 public:
  Judge(const CapacityRequest& request, const CapacityTechnique& technique, SharedMachines& machines, bool is_shown)
      : request_(request),
        technique_(technique),
        machines_(machines),
        detail_(is_shown ? Detail::figures : Detail::times) {}

  void judge(CapacityTrial& trial) const {
    std::vector<std::string>& edits = trial.row.candidate.edits;
    edits = request_.settings;
    edits.insert(edits.end(), technique_.edits.begin(), technique_.edits.end());
    if (request_.axis.key != gpus_axis) edits.push_back(request_.axis.key + "=" + std::to_string(trial.value));
    if (request_.layouts.searched && !find_layout(trial)) return;
    const Scenario scenario = load_scenario(request_.path, edits);
    if (!scenario.model.empty()) {
      const ModelSpec model = with_layers(scenario, find_model(scenario.model));
      trial.parameters = parameter_count(model);
      if (!technique_.is_planned && state_is_too_much(scenario, model, trial.row)) {
        const MemoryResult& memory = trial.row.result.memory;
        trial.why_not = "weights and optimizer state alone take " + gib_text(memory.peak_reserved) + " of " +
                        gib_text(memory.capacity);
        return;
      }
    }
    if (technique_.is_planned)
      run_planned(scenario, trial.row);
    else
      trial.row = evaluate_one(scenario, trial.row.candidate, machines_, {.detail = detail_, .store = request_.store});
    trial.replayed = true;
    add_price(scenario, trial);
    trial.why_not = what_fails(trial);
    trial.holds = trial.why_not.empty();
    if (!trial.holds || trial.row.result.verdict() != Verdict::tight) return;
    trial.holds = false;
    trial.only_tight = true;
    trial.why_not = gib_text(trial.row.result.reserve.margin) + " of margin would not be kept free";
  }

 private:
  static bool state_is_too_much(const Scenario& scenario, const ModelSpec& model, Row& row) {
    if (!keeps_state(scenario)) return false;
    TrainingSetup setup = scenario.training;
    if (setup.pipeline_schedule.ends_with(".json"))
      setup.pipeline_schedule = default_schedule;  // without effect on the bound
    setup = resolve(setup, model);
    row.gpus = setup.gpus();
    const HardwareProfile hardware = hardware_of(scenario);
    const Bytes capacity = scenario.capacity_bytes ? Bytes(*scenario.capacity_bytes)
                                                   : hardware.gpu.memory.value - hardware.gpu.context_memory.value;
    const Bytes state = least_state_bytes(model, setup);
    if (state <= capacity) return false;
    MemoryResult& memory = row.result.memory;
    memory.peak_reserved = memory.peak_allocated = state;
    memory.capacity = capacity;
    memory.owners = {{"model state", state, true}};
    return true;
  }

  [[nodiscard]] ScenarioWith scenario_with(std::vector<std::string> settings) const {
    return [this, settings = std::move(settings)](std::span<const std::string> more) {
      std::vector<std::string> all = settings;
      all.insert(all.end(), more.begin(), more.end());
      return load_scenario(request_.path, all);
    };
  }

  // Under the best plan, with the edits that make it; those of a mix find one anew, with more replays.
  void run_planned(const Scenario& scenario, Row& row) const {
    LoadedScenario loaded = load(scenario);
    loaded.options.memory.detail = Detail::figures;
    HybridSettings settings;
    settings.runtime = scenario.offload;
    settings.budget = settings.runtime.budget;
    if (!technique_.is_thorough) settings.replays = planning_replays;
    std::vector<std::string>& edits = row.candidate.edits;
    BestOffload best = best_offload(loaded, scenario_with(edits), settings);
    std::vector<std::string> way = settings_of(best.outcome.best);
    if (way.empty()) way = technique_named(hybrid_word).ways.front().settings;
    edits.insert(edits.end(), best.settings.begin(), best.settings.end());
    edits.insert(edits.end(), way.begin(), way.end());
    row = row_of(std::move(row.candidate), loaded, std::move(best.outcome.best.result));
  }

  [[nodiscard]] std::string what_fails(const CapacityTrial& trial) const {
    const Constraints& asked = request_.constraints;
    const Result& result = trial.row.result;
    if (!is_yes(result.verdict())) return verdict_sentence(result);
    if (std::string why = missed(asked, trial.row); !why.empty()) return why;
    if (asked.most_usd > 0 && !trial.usd) return "the price list lacks a price of what is bought";
    if (asked.most_usd > 0 && *trial.usd > asked.most_usd)
      return fmt::format("{:.4g} USD are more than {:.4g}", *trial.usd, asked.most_usd);
    if (asked.most_kilowatts > 0 && trial.kilowatts > asked.most_kilowatts)
      return fmt::format("{:.4g} kW are more than {:.4g}", trial.kilowatts, asked.most_kilowatts);
    return "";
  }

  static bool is_in(const LayoutSpace& space, const TrainingSetup& own) {
    const auto has = [](const std::vector<std::int64_t>& values, std::int64_t value) {
      return std::find(values.begin(), values.end(), value) != values.end();
    };
    return own.gpus() == space.gpus && has(space.tensor_parallel, own.tensor_parallel) &&
           has(space.pipeline_parallel, own.pipeline_parallel) && has(space.micro_batch, own.micro_batch);
  }
  static LayoutSpace alone(LayoutSpace space, const TrainingSetup& own) {
    space.tensor_parallel = {own.tensor_parallel};
    space.pipeline_parallel = {own.pipeline_parallel};
    space.micro_batch = {own.micro_batch};
    return space;
  }
  static bool has_row(const SweepOutcome& outcome, const TrainingSetup& own) {
    const std::vector<std::string> options = {std::to_string(own.tensor_parallel),
                                              std::to_string(own.pipeline_parallel), std::to_string(own.micro_batch)};
    return std::any_of(outcome.rows.begin(), outcome.rows.end(), [&](const SweepRow& row) {
      return std::equal(options.begin(), options.end(), row.options.begin());
    });
  }
  static const SweepRow* fastest_of(const std::vector<SweepOutcome>& outcomes) {
    const SweepRow* best = nullptr;
    for (const SweepOutcome& outcome : outcomes)
      if (const SweepRow* row = fastest_layout(outcome))
        if (best == nullptr || std::pair(row->result.verdict(), row->result.step_time) <
                                   std::pair(best->result.verdict(), best->result.step_time))
          best = row;
    return best;
  }

  // The fastest layout that fits and does what is asked of its time and of the drives, into the edits.
  bool find_layout(CapacityTrial& trial) const {
    std::vector<std::string>& edits = trial.row.candidate.edits;
    LayoutSpace space;
    space.gpus = request_.axis.key == gpus_axis ? trial.value : request_.gpus;
    static_cast<LayoutSizes&>(space) = request_.layouts;
    if (request_.axis.key == "model.micro_batch") space.micro_batch = {trial.value};
    space.replays = request_.layouts.replays;
    space.constraints = request_.constraints;
    const std::string text = scenario_text(request_.path, edits);
    const TrainingSetup own = parse_scenario(text, request_.path, "").training;
    const auto swept = [&] {
      SweepStore store;
      const std::string folder = std::filesystem::path(request_.path).parent_path().string();
      SweepFile file = layout_sweep(text, request_.path, folder, space);
      file.replays_kept = request_.store;
      return run_sweep(file, {}, store);
    };
    std::vector<SweepOutcome> outcomes = {swept()};
    trial.row.gpus = space.gpus;
    // The scenario's own layout is one of them: no answer is worse than it.
    if (outcomes.front().not_replayed > 0 && is_in(space, own) && !has_row(outcomes.front(), own)) {
      const LayoutSpace all = std::exchange(space, alone(space, own));
      outcomes.push_back(swept());
      space = all;
    }
    const SweepRow* best = fastest_of(outcomes);
    const bool tries_smallest = (best == nullptr || !best->result.fits()) && outcomes.front().not_replayed > 0 &&
                                request_.layouts.smallest_replays > 0;
    if (tries_smallest) {
      space.objective = Objective::peak_memory;
      space.replays = request_.layouts.smallest_replays;
      for (const SweepOutcome& outcome : outcomes)
        for (const SweepRow& row : outcome.rows)
          space.without.push_back({row.options[0], row.options[1], row.options[2]});
      outcomes.push_back(swept());
      best = fastest_of(outcomes);
    }
    for (const SweepOutcome& outcome : outcomes)
      trial.layouts_replayed += static_cast<std::int64_t>(outcome.rows.size());
    trial.replayed = best == nullptr && trial.layouts_replayed > 0;
    if (best == nullptr) trial.why_not = why_no_layout(outcomes, tries_smallest);
    const SweepRow* const told = best != nullptr ? best : least_of(outcomes);
    if (told == nullptr) {
      edits.clear();
      return false;
    }
    // The batch of a step, as layout_sweep() fixes it, and the layout.
    edits.push_back("model.global_batch=" + std::to_string(own.step_sequences()));
    edits.emplace_back("model.gradient_accumulation=null");
    edits.insert(edits.end(), told->candidate.edits.begin(), told->candidate.edits.end());
    Candidate made = std::move(trial.row.candidate);
    trial.row = *told;
    trial.row.candidate = std::move(made);
    if (best != nullptr) trial.layout = layout_label(*best);
    return best != nullptr;
  }

  // The layout that needs least of memory; null: none was replayed.
  static const SweepRow* least_of(const std::vector<SweepOutcome>& outcomes) {
    const SweepRow* least = nullptr;
    const auto needed = [](const SweepRow& row) { return row.result.memory.peak_reserved; };
    for (const SweepOutcome& outcome : outcomes)
      for (const SweepRow& row : outcome.rows)
        if (row.ran() && needed(row) > Bytes(0) && (least == nullptr || needed(row) < needed(*least))) least = &row;
    return least;
  }

  void add_price(const Scenario& scenario, CapacityTrial& trial) const {
    const Result& result = trial.row.result;
    const HardwareProfile& hardware = *trial.row.hardware;
    const std::int64_t machines =
        (std::max<std::int64_t>(1, trial.row.gpus) + hardware.gpu_count - 1) / hardware.gpu_count;
    const MachinePower power = machine_power(hardware, request_.prices, 1 - result.bubble.value_or(0));
    double watts = power.training_watts;
    const MachinePrice price = request_.prices.machine(hardware);
    std::optional<double> usd;
    if (price.price_usd) usd = price.price_usd->value;
    if (price.usd_per_hour) trial.usd_per_hour = price.usd_per_hour->value * static_cast<double>(machines);
    const OffloadSettings& offload = scenario.offload;
    if (!offload.drives.empty() && !result.drives.empty()) {
      const NvmeProfile drive = ProfileLibrary::shared().load_nvme(offload.drives);
      const auto count = static_cast<double>(offload.drives_per_machine);
      if (drive.active_watts) watts += count * drive.active_watts->value;
      const auto each = request_.prices.drive_usd(drive);
      usd = usd && each ? std::optional(*usd + count * each->value) : std::nullopt;
    }
    trial.kilowatts = watts * static_cast<double>(machines) / 1000;
    if (usd) trial.usd = *usd * static_cast<double>(machines);
  }

  const CapacityRequest& request_;
  const CapacityTechnique& technique_;
  SharedMachines& machines_;
  Detail detail_;
};

std::vector<Candidate> changes_of(const CapacityRequest& request, const CapacityAnswer& answer) {
  std::vector<Candidate> changes;
  const Scenario scenario = [&] {
    std::vector<std::string> settings = request.settings;
    settings.insert(settings.end(), answer.technique.edits.begin(), answer.technique.edits.end());
    return load_scenario(request.path, settings);
  }();
  if (scenario.model.empty()) return changes;
  const TrainingSetup& setup = scenario.training;
  const bool shares = request.layouts.searched || setup.data_parallel > 1 || setup.context_parallel > 1;
  const auto add = [&changes](bool applies, std::string name, std::vector<std::string> settings) {
    if (applies) changes.push_back({std::move(name), std::move(settings)});
  };
  add(setup.recompute == Recompute::none, "selective recomputation", {"model.recompute=selective"});
  add(setup.recompute != Recompute::full, "full recomputation", {"model.recompute=full"});
  for (int stage = 1; stage <= 3; ++stage)
    add(shares && setup.zero_stage < stage, fmt::format("ZeRO {}", stage), {fmt::format("model.zero_stage={}", stage)});
  add(request.axis.key != "model.micro_batch" && !request.layouts.searched && setup.micro_batch > 1,
      "micro-batches of 1", {"model.micro_batch=1"});
  if (!scenario.offload.moves()) {
    const bool has_drives =
        !scenario.offload.drives.empty() || !ProfileLibrary::shared().load_system(scenario.hardware).drives.empty();
    for (const TechniqueWay& way : technique_named(ssdtrain_word).ways)
      add(way.offered != Offered::with_drives || has_drives, way.about, way.settings);
  }
  add(scenario.allocator == torch_policy, "expandable segments", {setting(allocator_key, expandable_policy)});
  if (request.axis.key != "memory.capacity_bytes" && answer.best->capacity() > Bytes(0))
    add(true, "GPUs with twice the memory",
        {"memory.capacity_bytes=" + std::to_string(2 * answer.best->capacity().count())});
  add(true, "kernels a fifth faster", {"what_if.gpu=1.2"});
  return changes;
}

// What stands between the step and a limit: "a step of 7 s, 65 % below the 20 s allowed".
std::string below(const std::string& what, double value, double limit, const char* unit) {
  return fmt::format("{} {:.4g} {}, {:.3g} % below the {:.4g} allowed", what, value, unit, 100 * (1 - value / limit),
                     limit);
}
std::string above(const std::string& what, double value, double limit, const char* unit) {
  return fmt::format("{} {:.4g} {}, {:.3g} % above the {:.4g} asked for", what, value, unit, 100 * (value / limit - 1),
                     limit);
}

}  // namespace

CapacityTrial judge_value(const CapacityRequest& request, const CapacityTechnique& technique, std::int64_t value,
                          SharedMachines& machines, bool is_shown) {
  CapacityTrial trial;
  trial.value = value;
  trial.row.gpus = 0;
  try {
    Judge(request, technique, machines, is_shown).judge(trial);
  } catch (const InputError& error) {
    trial.why_not = error.cause();
    trial.at_fault = true;
  }
  return trial;
}

std::vector<FurtherChange> try_changes(const CapacityRequest& request, const CapacityAnswer& answer,
                                       SharedMachines& machines) {
  if (!answer.best || !answer.beyond) return {};
  const std::vector<Candidate> changes = changes_of(request, answer);
  CapacityRequest quick = request;
  quick.layouts.smallest_replays = 0;
  std::vector<FurtherChange> tried(changes.size());
  in_parallel(changes.size(), [&](std::size_t i) {
    CapacityTechnique changed = answer.technique;
    changed.edits.insert(changed.edits.end(), changes[i].edits.begin(), changes[i].edits.end());
    const CapacityTrial trial = judge_value(quick, changed, answer.beyond->value, machines);
    tried[i] = {changes[i].name, trial.holds, trial.why_not};
    if (trial.holds)
      tried[i].note = fmt::format("step {:.4g} s{}", to_seconds(trial.row.result.step_time),
                                  trial.layout.empty() ? "" : ", " + trial.layout);
  });
  return tried;
}

std::vector<PeakOwner> CapacityTrial::owners() const {
  const MemoryResult& memory = row.result.memory;
  std::vector<PeakOwner> owners = memory.owners;
  const Bytes waste = memory.peak_reserved - memory.peak_allocated;
  if (waste > Bytes(0)) owners.push_back({"reserved, not allocated", waste, true});
  std::stable_sort(owners.begin(), owners.end(),
                   [](const PeakOwner& a, const PeakOwner& b) { return a.bytes > b.bytes; });
  return owners;
}

std::vector<std::string> CapacityTrial::margins(const Constraints& asked) const {
  const Result& result = row.result;
  std::vector<std::string> words;
  if (only_tight)
    words.push_back(fmt::format("{}: {} of memory free, nothing of a margin", to_string(result.verdict()),
                                gib_text(capacity() - needed())));
  else if (capacity() > Bytes(0))
    words.push_back(fmt::format("{} of memory free ({:.3g} %) beside {} kept free", gib_text(free()),
                                100 * static_cast<double>(free().count()) / static_cast<double>(capacity().count()),
                                gib_text(result.reserve.bytes())));
  if (asked.most_step_seconds > 0)
    words.push_back(below("a step of", to_seconds(result.step_time), asked.most_step_seconds, "s"));
  if (asked.least_tokens_per_second > 0)
    words.push_back(above("", result.tokens_per_second, asked.least_tokens_per_second, "tokens/s").substr(1));
  if (asked.least_mfu > 0) words.push_back(above("an MFU of", result.mfu, asked.least_mfu, "of peak"));
  if (asked.least_life_years > 0 && row.life_years())
    words.push_back(above("drives last, by their rating as it stands,", shortest_rated_years(result),
                          asked.least_life_years, "years"));
  if (asked.most_usd > 0 && usd) words.push_back(below("costs", *usd, asked.most_usd, "USD"));
  if (asked.most_kilowatts > 0) words.push_back(below("draws", kilowatts, asked.most_kilowatts, "kW"));
  return words;
}

}  // namespace spillway::studies
