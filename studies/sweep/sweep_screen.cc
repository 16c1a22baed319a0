#include "studies/sweep/sweep_screen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/input_error.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario.h"
#include "scenario/scenario_run.h"
#include "studies/candidates/evaluate.h"
#include "studies/screen/step_estimate.h"
#include "studies/screen/step_peak.h"

namespace spillway::studies {
namespace {

constexpr std::string_view model_prefix = "model.";
// A stage's allocations take some milliseconds, more than a point's share of the replays in a space of more points.
constexpr std::int64_t most_close_points = 1 << 15;

// "tensor_parallel" of "model.tensor_parallel"; nothing for keys that aren't a field of the training set-up
// ("model.name", "model.layers").
std::string_view training_field(std::string_view key) {
  static const std::unordered_set<std::string_view> fields(training_setup_keys().begin(), training_setup_keys().end());
  if (!key.starts_with(model_prefix)) return {};
  const std::string_view field = key.substr(model_prefix.size());
  return fields.contains(field) ? field : std::string_view();
}

// Throws InputError with the key as its place.
TrainingSetup with_settings(TrainingSetup setup, const SweepSettings& settings) {
  for (const auto& [name, text] : settings) {
    const std::string_view field = training_field(name);
    if (field.empty()) continue;
    try {
      set_field(setup, field, text);
    } catch (const InputError& error) {
      throw InputError(error.file(), name, error.cause(), error.remedy());
    }
  }
  return setup;
}

}  // namespace

// What estimates don't know stays 0: the reserve, so what is free; MFU; lifetimes.
Figures SweepEstimate::within(const SweepFile& file, double sign) const {
  Figures figures = metrics;
  figures.step_seconds *= 1 + sign * file.margin;
  figures.busy_seconds *= 1 + sign * file.margin;
  const bool counts_cached = sign > 0 || !may_give_back(file);
  figures.peak_bytes = is_bound        ? 0
                       : counts_cached ? metrics.peak_bytes * (1 + sign * file.memory_margin)
                                       : metrics.allocated_bytes * (1 + sign * file.memory_margin);
  figures.life_years = figures.rated_years = 0;
  return figures;
}

SweepValues SweepEstimate::best(const SweepFile& file) const {
  const Figures margin = within(file, -1);
  SweepValues values{};
  for (std::size_t i = 0; i < file.objectives.size(); ++i) values[i] = margin.value(file.objectives[i]);
  return values;
}

SweepValues SweepEstimate::worst(const SweepFile& file) const {
  const Figures margin = within(file, 1);
  SweepValues values{};
  for (std::size_t i = 0; i < file.objectives.size(); ++i) {
    const bool unknown = is_bound || is_least || file.objectives[i] == Objective::ssd_life;
    values[i] = unknown ? std::numeric_limits<double>::infinity() : margin.value(file.objectives[i]);
  }
  return values;
}

double SweepEstimate::lacks_share(const SweepFile& file, double sign) const {
  Figures figures = within(file, sign);
  if (capacity_bytes > 0 && figures.peak_bytes > 0) figures.free_bytes = capacity_bytes - figures.peak_bytes;
  double share = excess(file.constraints, figures);
  if (file.must_fit && capacity_bytes > 0 && !is_bound)
    share = std::max(share, metrics.allocated_bytes * (1 + sign * file.memory_margin) / capacity_bytes - 1);
  return share;
}

bool SweepEstimate::may_do(const SweepFile& file) const { return lacks_share(file, -1) <= 0; }

bool SweepEstimate::may_give_back(const SweepFile& file) const {
  return capacity_bytes > 0 && metrics.peak_bytes * (1 + file.memory_margin) > capacity_bytes;
}

bool SweepEstimate::does(const SweepFile& file) const {
  const Constraints& asked = file.constraints;
  const bool is_known =
      !is_bound && !is_least && asked.least_life_years <= 0 && asked.least_mfu <= 0 && asked.least_free_bytes <= 0;
  if (!is_known || !may_do(file) || excess(asked, within(file, 1)) > 0) return false;
  return !file.must_fit || !may_give_back(file);
}

// A shape, or why there is none. Measured once, by whoever asks first; others wait for it.
struct MeasuredShape {
  explicit MeasuredShape(const StepMachine& of) : machine(of) {}

  const StepMachine& machine;
  std::mutex mutex;
  TrainingSetup setup;  // of the shape
  bool is_done = false, has_plain = false;
  std::optional<StepShape> shape;
  std::string failure;
  std::optional<Bytes> cached;

  Bytes cached_bytes() {
    const std::lock_guard lock(mutex);
    if (!cached) cached = measure_cached(machine, setup, has_plain);
    return *cached;
  }
};

struct SweepScreen::Environment {
  Scenario scenario;
  ModelSpec model;
  std::optional<CostModel> cost;
  std::optional<StepMachine> machine;  // none: its points can't be estimated
  bool is_bound = false;
  double capacity_bytes = 0;
  Rates rates;

  StepPeaks peaks;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<MeasuredShape>> shapes;

  MeasuredShape& shape(const TrainingSetup& setup) {
    const StepShape* const plain = setup.zero_stage < 2 ? nullptr : plain_shape(setup);
    const std::string key = probe_key(*machine, setup, plain != nullptr);
    MeasuredShape* measured = nullptr;
    {
      const std::lock_guard lock(mutex);
      std::unique_ptr<MeasuredShape>& entry = shapes[key];
      if (!entry) entry = std::make_unique<MeasuredShape>(*machine);
      measured = entry.get();
    }
    const std::lock_guard lock(measured->mutex);
    if (measured->is_done) return *measured;
    measured->setup = setup;
    measured->has_plain = plain != nullptr;
    try {
      measured->shape.emplace(measure_shape(*machine, setup, plain));
    } catch (const InputError& error) {
      measured->failure = error.cause();
    }
    measured->is_done = true;
    return *measured;
  }

  // Activations that a technique moves, or chunks that are recomputed, are not there.
  void add_likely(const TrainingSetup& setup, SweepEstimate& estimate) {
    const bool moves = scenario.offload.moves();
    if (moves && technique_named(scenario.offload.technique).moves_state) return;
    try {
      const TrainingSetup likely = nearest_closed_form(setup);
      const MeasuredShape& measured = shape(shape_setup(likely));
      if (!measured.shape) return;
      const StepEstimate step = estimate_step(*machine, *measured.shape, likely);
      estimate.likely_seconds = to_seconds(step.step_time);
      const double kept = moves ? 0
                                : 1 - static_cast<double>(setup.recomputed_chunks) /
                                          static_cast<double>(std::max<std::int64_t>(1, setup.pipeline_chunks));
      const auto most = static_cast<double>(step.peak_allocated.count());
      const auto least = static_cast<double>(least_peak(*machine, *measured.shape, likely).count());
      estimate.likely_bytes = std::min(most, least + kept * (most - least));
    } catch (const InputError&) {  // of a schedule that isn't the step's
    }
  }

  // Of the step without ZeRO; null where there is no such step.
  const StepShape* plain_shape(const TrainingSetup& setup) {
    const MeasuredShape& plain = shape(plain_setup(setup));
    return plain.shape ? &*plain.shape : nullptr;
  }
};

SweepScreen::SweepScreen(const SweepFile& file) : file_(file) {}
SweepScreen::~SweepScreen() = default;

void SweepScreen::check_rates(const std::string& hardware, const Rates& rates) const {
  const auto ranks_by = [this](Objective objective) {
    return std::find(file_.objectives.begin(), file_.objectives.end(), objective) != file_.objectives.end();
  };
  const bool by_usd = ranks_by(Objective::cost_per_token), by_energy = ranks_by(Objective::energy_per_token);
  if ((by_usd || asks_usd(file_.constraints)) && rates.usd_per_hour <= 0)
    throw InputError(file_.path, by_usd ? "/objectives" : "/require", "no price per hour is known of " + hardware,
                     "give one: \"hardware\": {\"set\": {\"gpu.price_usd_per_hour\": 2.5}}");
  if ((by_energy || asks_energy(file_.constraints)) && rates.busy_watts <= 0)
    throw InputError(file_.path, by_energy ? "/objectives" : "/require", "it is not known what " + hardware + " draws",
                     "give it: \"hardware\": {\"set\": {\"gpu.tdp\": \"700 W\"}}");
}

std::shared_ptr<SweepScreen::Environment> SweepScreen::environment(const SweepSettings& settings) {
  std::string key;
  for (const auto& [name, text] : settings)
    if (training_field(name).empty()) key += name + "=" + text + "\n";
  const std::lock_guard lock(mutex_);
  const auto found = environments_.find(key);
  if (found != environments_.end()) return found->second;
  std::vector<std::string> assignments;
  for (const auto& [name, text] : settings)
    if (training_field(name).empty()) assignments.push_back(name + "=" + text);
  auto made = std::make_shared<Environment>();
  try {
    fill(assignments, *made);
  } catch (const InputError& error) {
    if (assignments.empty()) throw;
    throw InputError(file_.path, error.place(), fmt::format("with {}: {}", fmt::join(assignments, ", "), error.cause()),
                     error.remedy());
  }
  return environments_.emplace(key, std::move(made)).first->second;
}

void SweepScreen::fill(const std::vector<std::string>& assignments, Environment& made) const {
  made.scenario = parse_scenario(file_.base, file_.path, file_.folder, assignments);
  const Scenario& scenario = made.scenario;
  if (!scenario.model.empty()) {
    const auto own = file_.models.find(scenario.model);
    made.model = with_layers(scenario, own == file_.models.end() ? find_model(scenario.model) : own->second);
    const HardwareProfile hardware = hardware_of(scenario);
    made.capacity_bytes = static_cast<double>(
        scenario.capacity_bytes ? *scenario.capacity_bytes
                                : (hardware.gpu.memory.value - hardware.gpu.context_memory.value).count());
    made.rates = rates_of(hardware);
    check_rates(hardware.name, made.rates);
    if (has_alike_layers(made.model, scenario.training)) {
      made.cost.emplace(hardware);
      made.machine.emplace(made.model, hardware, *made.cost);
      made.machine->options.speed = scenario.what_if;
      made.machine->options.memory.settings = scenario.allocator_config;
    }
    made.is_bound = scenario.offload.moves() || !scenario.plan.empty() || scenario.allocator != torch_policy ||
                    !scenario.memory_plan.empty();
  }
}

SweepEstimate SweepScreen::first_look(const SweepSettings& settings) { return look(settings, true); }
SweepEstimate SweepScreen::second_look(const SweepSettings& settings) { return look(settings, false); }
SweepEstimate SweepScreen::estimate(const SweepSettings& settings) {
  SweepEstimate estimate = second_look(settings);
  add_cached(estimate, settings);
  return estimate;
}

void SweepScreen::add_cached(SweepEstimate& estimate, const SweepSettings& settings) {
  if (estimate.lacks == nullptr) return;
  MeasuredShape& measured = *std::exchange(estimate.lacks, nullptr);
  if (file_.points() <= most_close_points) {
    const std::shared_ptr<Environment> in = environment(settings);
    try {
      const StepPeak peak = in->peaks.peak(*in->machine, *measured.shape,
                                           resolve(with_settings(in->scenario.training, settings), in->model),
                                           Bytes(static_cast<std::int64_t>(in->capacity_bytes)));
      estimate.metrics.allocated_bytes = static_cast<double>(peak.allocated.count());
      estimate.metrics.peak_bytes = static_cast<double>(peak.reserved.count());
      return;
    } catch (const InputError&) {  // of what its replay will say; the probe could be made
    }
  }
  estimate.metrics.peak_bytes = estimate.metrics.allocated_bytes + static_cast<double>(measured.cached_bytes().count());
}

std::vector<std::string> SweepScreen::unseen(const SweepSettings& settings) {
  const std::shared_ptr<Environment> in = environment(settings);
  std::vector<std::string> keys;
  if (in->scenario.model.empty()) return keys;
  try {
    const TrainingSetup setup = resolve(with_settings(in->scenario.training, settings), in->model);
    for (const std::string_view field : unseen_fields(in->model, setup))
      keys.push_back(std::string(model_prefix) + std::string(field));
  } catch (const InputError&) {
    keys.clear();
  }
  return keys;
}

std::uint64_t SweepScreen::state_key(const SweepSettings& settings) {
  const std::shared_ptr<Environment> in = environment(settings);
  if (in->scenario.model.empty()) return 0;
  try {
    const TrainingSetup setup = resolve(with_settings(in->scenario.training, settings), in->model);
    Digest digest;
    digest.add(reinterpret_cast<std::uintptr_t>(in.get()));
    digest.add(shape_key(step_setup(in->model, setup)));
    return digest.value();
  } catch (const InputError&) {
    return 0;
  }
}

SweepEstimate SweepScreen::look(const SweepSettings& settings, bool is_first) {
  const std::shared_ptr<Environment> in = environment(settings);
  SweepEstimate estimate;
  estimate.capacity_bytes = in->capacity_bytes;
  estimate.is_bound = in->is_bound || !in->machine;
  if (in->scenario.model.empty()) return estimate;
  try {
    const TrainingSetup setup =
        step_setup(in->model, resolve(with_settings(in->scenario.training, settings), in->model));
    estimate.metrics.gpus = static_cast<double>(setup.gpus());
    estimate.metrics.tokens_per_step = static_cast<double>(setup.step_tokens());
    estimate.metrics.rates = in->rates * estimate.metrics.gpus;
    // The shape knows layers that are all trained alike.
    if (!in->machine || !setup.trains_all()) return estimate;
    const TrainingSetup shape_of = shape_setup(setup);
    if (is_first && shape_of.zero_stage >= 2 && has_closed_form(setup))
      if (const StepShape* const plain = in->plain_shape(shape_of)) {
        const StepEstimate least = least_sharded_step(*in->machine, *plain, setup);
        estimate.is_least = true;
        estimate.metrics.step_seconds = to_seconds(least.step_time);
        estimate.metrics.peak_bytes = estimate.metrics.allocated_bytes =
            static_cast<double>(least.peak_allocated.count());
        return estimate;
      }
    MeasuredShape& measured = in->shape(shape_of);
    estimate.invalid = measured.failure;
    if (!measured.shape) return estimate;
    const StepShape* const shape = &*measured.shape;
    if (!has_closed_form(setup)) {
      estimate.is_bound = true;
      estimate.metrics.step_seconds = to_seconds(least_step_time(*in->machine, *shape, setup));
      in->add_likely(setup, estimate);
      return estimate;
    }
    const StepEstimate step = estimate_step(*in->machine, *shape, setup);
    estimate.metrics.step_seconds = to_seconds(step.step_time);
    estimate.metrics.busy_seconds = to_seconds(step.busy);
    estimate.metrics.peak_bytes = estimate.metrics.allocated_bytes = static_cast<double>(step.peak_allocated.count());
    if (in->is_bound) in->add_likely(setup, estimate);
    estimate.lacks = &measured;
  } catch (const InputError& error) {
    estimate.invalid = told(error);
  }
  return estimate;
}

}  // namespace spillway::studies
