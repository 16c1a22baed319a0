#include <fmt/format.h>

#include <algorithm>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "studies/payoff/payoff.h"

namespace spillway::studies {
namespace {

constexpr double most_drives = 64, most_generations = 4, gib = 1 << 30;
constexpr std::int64_t sequence_grain = 128, capacity_grain = 1 << 30;

struct Found {
  const Scenario& scenario;
  std::optional<ModelSpec> model;
  TrainingSetup setup;  // of a model
  HardwareProfile hardware;
};

PayoffAxis whole(std::string key, std::int64_t own, std::int64_t grain = 1) {
  PayoffAxis axis;
  axis.key = std::move(key);
  axis.own = axis.shown = static_cast<double>(own);
  axis.grain = grain;
  return axis;
}

// Those of the scenario, else the machine's first kind, in one set per machine.
std::optional<PayoffAxis> drives_of(const Found& found) {
  const OffloadSettings& offload = found.scenario.offload;
  PayoffAxis axis;
  if (!offload.drives.empty()) {
    axis = whole("offload.drives_per_machine", offload.drives_per_machine);
  } else {
    if (found.hardware.drives.empty()) return std::nullopt;
    const std::string& name = found.hardware.drives.front().drive.name;
    std::int64_t count = 0;
    for (const DriveGroup& group : found.hardware.drives) count += group.drive.name == name ? group.count : 0;
    axis = whole("offload.drives_per_machine", count);
    axis.also = {"offload.drives=" + name};
  }
  axis.most = most_drives;
  axis.is_of_machine = axis.is_of_transfers = true;
  return axis;
}

std::optional<PayoffAxis> link_of(const Found& found) {
  PayoffAxis axis;
  axis.key = "what_if.pcie";
  axis.own = found.scenario.what_if.pcie;
  axis.grain = 0;
  axis.most = most_generations * axis.own;
  axis.narrows = false;
  axis.is_of_machine = axis.is_of_transfers = true;
  axis.unit = " x";
  return axis;
}

std::optional<PayoffAxis> memory_of(const Found& found) {
  const std::int64_t own = found.scenario.capacity_bytes.value_or(
      (found.hardware.gpu.memory.value - found.hardware.gpu.context_memory.value).count());
  if (own <= 0) return std::nullopt;
  PayoffAxis axis = whole("memory.capacity_bytes", own, capacity_grain);
  axis.shown = axis.own / gib;
  axis.unit = " GiB";
  axis.both_ways = true;
  axis.is_of_machine = true;
  return axis;
}

std::optional<PayoffAxis> of_model(const Found& found, const char* key, std::int64_t TrainingSetup::*member,
                                   std::int64_t grain = 1) {
  if (!found.model) return std::nullopt;
  PayoffAxis axis = whole(key, found.setup.*member, grain);
  axis.both_ways = true;
  return axis;
}

std::optional<PayoffAxis> batch_of(const Found& found) {
  if (found.model && found.scenario.training.global_batch > 0)
    return of_model(found, "model.global_batch", &TrainingSetup::global_batch);
  return of_model(found, "model.gradient_accumulation", &TrainingSetup::gradient_accumulation);
}

std::optional<PayoffAxis> layers_of(const Found& found) {
  if (!found.model || found.model->has_encoder()) return std::nullopt;
  PayoffAxis axis = whole("model.layers", found.model->layers,
                          found.setup.pipeline_parallel * std::max<std::int64_t>(1, found.setup.pipeline_chunks));
  axis.both_ways = true;
  return axis;
}

struct AxisRow {
  std::string_view name, about;
  std::optional<PayoffAxis> (*make)(const Found& found);
};
constexpr AxisRow axis_table[] = {
    {"drives", "drives per machine", drives_of},
    {"pcie", "times the rate of the links between host and GPU; a generation is twice", link_of},
    {"micro-batch", "sequences of a micro-batch",
     [](const Found& found) { return of_model(found, "model.micro_batch", &TrainingSetup::micro_batch); }},
    {"sequence", "tokens of a sequence",
     [](const Found& found) { return of_model(found, "model.sequence", &TrainingSetup::sequence, sequence_grain); }},
    {"layers", "of the model, at its width", layers_of},
    {"batch", "sequences or micro-batches of a step", batch_of},
    {"stages", "of the pipeline, on as many more GPUs",
     [](const Found& found) { return of_model(found, "model.pipeline_parallel", &TrainingSetup::pipeline_parallel); }},
    {"memory", "of a GPU", memory_of},
};

}  // namespace

const Words& payoff_axis_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (const AxisRow& row : axis_table) list.push_back({.name = row.name, .about = row.about});
    return Words(std::move(list));
  }();
  return words;
}

std::vector<PayoffAxis> payoff_axes(const BaseScenario& scenario, std::span<const std::string> names) {
  const Scenario parsed = scenario_of(scenario, {});
  Found found{.scenario = parsed, .model = {}, .setup = {}, .hardware = {}};
  if (!parsed.model.empty()) {
    found.model = with_layers(parsed, find_model(parsed.model));
    found.setup = resolve(parsed.training, *found.model);
  }
  if (!parsed.hardware.empty()) found.hardware = hardware_of(parsed);
  for (const std::string& name : names)
    if (!payoff_axis_words().find(name))
      throw InputError("", "--axis", "no axis is called '" + name + "'", suggest(name, payoff_axis_words().names()));
  std::vector<PayoffAxis> axes;
  for (const AxisRow& row : axis_table) {
    const bool is_named = std::find(names.begin(), names.end(), row.name) != names.end();
    if (!names.empty() && !is_named) continue;
    std::optional<PayoffAxis> axis = row.make(found);
    if (axis) {
      axis->name = row.name;
      axes.push_back(std::move(*axis));
    } else if (is_named) {
      throw InputError(scenario.path, "--axis " + std::string(row.name), "the scenario has none",
                       "leave it out, or name drives (offload.drives) or a model");
    }
  }
  return axes;
}

}  // namespace spillway::studies
