#include "validation/published/layout_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "base/input_error.h"
#include "scenario/scenario_run.h"
#include "studies/sweep/layout_sweep.h"
#include "studies/sweep/sweep_run.h"

namespace spillway::validation {
namespace {

std::vector<std::string> recomputations() {
  std::vector<std::string> words;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
    words.emplace_back(to_string(recompute));
  return words;
}

constexpr std::int64_t least_gpus = 8, most_micro_batch = 64, most_stages = 64;
// What a layout is made of; a case's other settings stay.
constexpr std::array<std::string_view, 9> free_keys = {
    "model.tensor_parallel", "model.pipeline_parallel",     "model.data_parallel",
    "model.pipeline_chunks", "model.micro_batch",           "model.global_batch",
    "model.recompute",       "model.gradient_accumulation", "model.zero_stage"};

const ModelSpec& model_of(const PublishedSetup& setup, ModelSpec& found) {
  const std::string& name = setup.fastest->scenario.model;
  if (const auto own = setup.file->models.find(name); own != setup.file->models.end()) return own->second;
  found = find_model(name);
  return found;
}

SweepAxis axis_of(const std::string& name, const std::string& key, const std::vector<std::string>& values) {
  SweepAxis axis{name, {}};
  for (const std::string& value : values) {
    const bool counts = value.find_first_not_of("0123456789") == std::string::npos;
    axis.options.push_back(
        {value, counts ? std::stod(value) : static_cast<double>(axis.options.size()), {{key, value}}});
  }
  return axis;
}

std::vector<std::string> powers(std::int64_t most) {
  std::vector<std::string> values;
  for (const std::int64_t value : powers_of_two(most)) values.push_back(std::to_string(value));
  return values;
}
std::vector<std::string> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::string> values;
  for (std::int64_t value = 1; value <= std::min(number, most); ++value)
    if (number % value == 0) values.push_back(std::to_string(value));
  return values;
}

// In the order of their numbers, with the published one among them.
std::vector<std::string> with(std::vector<std::string> values, std::int64_t published) {
  const auto least = [published](const std::string& value) { return std::stoll(value) >= published; };
  const auto at = std::find_if(values.begin(), values.end(), least);
  if (at == values.end() || *at != std::to_string(published)) values.insert(at, std::to_string(published));
  return values;
}

// Everything of the case but its layout, as the one value of a first axis.
SweepAxis kept_settings(const Case& published, std::int64_t batch) {
  SweepOption kept{"published", 0, {}};
  for (const std::string& setting : published.settings) {
    const std::size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    if (std::find(free_keys.begin(), free_keys.end(), key) == free_keys.end())
      kept.settings.emplace_back(key, setting.substr(equals + 1));
  }
  kept.settings.emplace_back("model.global_batch", std::to_string(batch));
  return {"set_up", {kept}};
}

SweepFile sweep_of(const PublishedSetup& setup, const TrainingSetup& published, std::int64_t per_machine,
                   std::int64_t replays) {
  ModelSpec found;
  const ModelSpec& model = model_of(setup, found);
  const std::int64_t gpus = published.gpus();
  const std::int64_t batch = published.step_sequences();
  SweepFile file;
  file.path = setup.file->path;
  file.title = setup.fastest->id;
  file.base = R"({"schema": "spillway-scenario", "version": 1, "memory": {"reserve": 0}})";  // as what was measured
  file.constants = {{"gpus", static_cast<double>(gpus)},
                    {"batch", static_cast<double>(batch)},
                    {"layers", static_cast<double>(model.layers)}};
  file.models = setup.file->models;
  const bool is_sharded = published.zero_stage >= 2;
  const auto only_if = [&](bool condition, std::vector<std::string> values) {
    return condition ? std::move(values) : std::vector<std::string>{"1"};
  };
  file.axes = {kept_settings(*setup.fastest, batch),
               axis_of("t", "model.tensor_parallel",
                       with(only_if(!is_sharded, powers(std::min(gpus, per_machine))), published.tensor_parallel)),
               axis_of("p", "model.pipeline_parallel",
                       with(only_if(!is_sharded, divisors(model.layers, most_stages)), published.pipeline_parallel)),
               axis_of("v", "model.pipeline_chunks",
                       with(only_if(!is_sharded, divisors(model.layers, 8)), published.pipeline_chunks)),
               axis_of("b", "model.micro_batch", with(divisors(batch, most_micro_batch), published.micro_batch)),
               axis_of("recompute", "model.recompute", recomputations()),
               axis_of("zero", "model.zero_stage",
                       is_sharded ? std::vector<std::string>{"2", "3"}
                                  : std::vector<std::string>{std::to_string(published.zero_stage)})};
  file.derived = {{"d", "model.data_parallel", "gpus / (t * p)"}};
  file.rules = {{"divides(d * b, batch)", "the batch can't be cut so"},
                {"v == 1 || (p > 1 && divides(p * v, layers))", "chunks need a pipeline and layers"},
                {"v == 1 || mod(batch / (d * b), p) == 0", "interleaved micro-batches go in groups of p"}};
  file.replays = replays;
  return file;
}

std::string layout_text(const TrainingSetup& setup) {
  std::string text = fmt::format("t{} p{} d{}", setup.tensor_parallel, setup.pipeline_parallel, setup.data_parallel);
  if (setup.pipeline_chunks > 1) text += fmt::format(" v{}", setup.pipeline_chunks);
  text += fmt::format(" b{} {}", setup.micro_batch, to_string(setup.recompute));
  if (setup.shared_stage() > 0) text += fmt::format(" ZeRO {}", setup.zero_stage);
  return text;
}

TrainingSetup setup_of(const SweepFile& file, const SweepRow& row) {
  const Scenario scenario = parse_scenario(file.base, file.path, file.folder, row.candidate.edits);
  const auto own = file.models.find(scenario.model);
  return resolve(scenario.training, own == file.models.end() ? find_model(scenario.model) : own->second);
}

// Points that may fit, and how many of them are faster than `seconds`.
std::pair<std::int64_t, std::int64_t> count_faster(const SweepFile& file, const SweepOutcome& outcome, double seconds) {
  std::map<std::int64_t, const SweepRow*> replayed;
  for (const SweepRow& row : outcome.rows) replayed.emplace(row.number, &row);
  SweepSpace space(file);
  SweepScreen screen(file);
  std::int64_t points = 0, faster = 0;
  for (const SweepPoint* point = space.next(0, space.size()); point != nullptr;
       point = space.next(point->number + 1, space.size())) {
    if (const auto row = replayed.find(point->number); row != replayed.end()) {
      points += row->second->does ? 1 : 0;
      faster += row->second->does && row->second->replayed.step_seconds < seconds ? 1 : 0;
      continue;
    }
    const SweepEstimate estimate = screen.estimate(space.settings(*point));
    if (!estimate.invalid.empty() || !estimate.may_do(file)) continue;
    ++points;
    const bool fits = estimate.metrics.allocated_bytes <= estimate.capacity_bytes;
    faster += fits && estimate.metrics.step_seconds < seconds ? 1 : 0;
  }
  return {points, faster};
}

}  // namespace

std::vector<PublishedSetup> published_setups(const std::vector<CaseFile>& files, std::int64_t most_gpus) {
  std::vector<PublishedSetup> setups;
  std::map<std::tuple<const CaseFile*, std::string, std::int64_t, std::int64_t>, std::size_t> known;
  const auto speed = [](const Case& one) {
    return one.metric == Metric::throughput ? one.measured : 1 / (one.measured * unit_scale(one.metric, one.unit));
  };
  for (const CaseFile& file : files)
    for (const Case& one : file.cases) {
      if (!one.skip.empty() || one.projection || one.scenario.model.empty()) continue;
      if (one.metric != Metric::iteration_time && one.metric != Metric::throughput) continue;
      const TrainingSetup& setup = one.scenario.training;
      if (setup.gpus() < least_gpus || setup.gpus() > most_gpus) continue;
      const std::int64_t batch = setup.step_sequences();
      const auto [at, is_new] = known.emplace(
          std::tuple(&file, one.scenario.model + " " + one.scenario.hardware, setup.gpus(), batch), setups.size());
      if (is_new)
        setups.push_back({&file, &one});
      else if (speed(one) > speed(*setups[at->second].fastest))
        setups[at->second].fastest = &one;
    }
  return setups;
}

SetupChoice choose_layout(const PublishedSetup& setup, std::int64_t replays,
                          const std::function<bool(const std::string&, std::int64_t, std::int64_t)>& progress) {
  SetupChoice choice;
  choice.published = setup.fastest;
  try {
    ModelSpec found;
    Scenario published = setup.fastest->scenario;
    if (published.reserve.empty()) published.reserve = "0";
    const LoadedScenario loaded = load(published, model_of(setup, found));
    const Result result = run(loaded);
    choice.gpus = loaded.setup.gpus();
    choice.batch = loaded.setup.step_sequences();
    choice.published_layout = layout_text(loaded.setup);
    choice.published_seconds = to_seconds(result.step_time);
    choice.published_verdict = result.verdict();
    SweepFile file = sweep_of(setup, loaded.setup, loaded.hardware.gpu_count, replays);
    SweepStore store;
    SweepOptions options;
    options.progress = progress;
    // The fastest by estimate may all turn out not to fit: then twice as many, of which half are in the store.
    SweepOutcome outcome = run_sweep(file, options, store);
    const SweepRow* best = fastest_layout(outcome);
    while (best == nullptr && outcome.is_whole && outcome.not_replayed > 0) {
      file.replays *= 2;
      outcome = run_sweep(file, options, store);
      best = fastest_layout(outcome);
    }
    choice.replayed = static_cast<std::int64_t>(outcome.rows.size());
    choice.not_replayed = outcome.not_replayed;
    if (best == nullptr) {
      choice.skipped = "no layout fits";
      if (!outcome.rows.empty() && !outcome.rows.front().ran())
        choice.skipped += ": " + outcome.rows.front().error;
      else if (outcome.screened == 0 && !outcome.invalid.empty())
        choice.skipped += ": " + outcome.invalid.begin()->first;
      return choice;
    }
    choice.chosen_layout = layout_text(setup_of(file, *best));
    choice.chosen_seconds = best->replayed.step_seconds;
    const auto [points, faster] = count_faster(file, outcome, choice.published_seconds);
    choice.points = points;
    choice.rank = faster + 1;
  } catch (const InputError& error) {
    choice.skipped = error.cause();
  }
  return choice;
}

}  // namespace spillway::validation
