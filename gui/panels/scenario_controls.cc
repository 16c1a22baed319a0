#include "gui/panels/scenario_controls.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "scenario/scenario_fields.h"
#include "scenario/scenario_run.h"

namespace spillway::gui {
namespace {

constexpr const char* model_group = "Model";
constexpr const char* hardware_group = "Hardware";
constexpr const char* offload_group = "Offload";
constexpr const char* recompute_group = "Recompute";
constexpr const char* pipeline_group = "Pipeline (Chronos)";
constexpr const char* planner_group = "Memory planner";
constexpr const char* other_group = "Other keys";
constexpr const char *global_batch = "model.global_batch", *accumulation = "model.gradient_accumulation";
constexpr double most_choices = 4;  // of a whole number that is offered as a list

std::vector<std::string> profiles(std::initializer_list<ProfileKind> kinds) {
  std::vector<std::string> names;
  for (const ProfileKind kind : kinds)
    for (const ProfileEntry& entry : ProfileLibrary::shared().list())
      if (entry.kind == kind) names.push_back(entry.name);
  return names;
}

// Null: the scenario's description has no such key.
const FieldRow* described(std::string_view key) {
  static const std::vector<FieldRow> rows = scenario_rows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const FieldRow& row) { return row.path == key; });
  return found == rows.end() ? nullptr : &*found;
}

const FieldRow& row_of(std::string_view key) {
  const FieldRow* const row = described(key);
  SPILLWAY_ASSERT(row != nullptr);
  return *row;
}

// As the scenario's description has it.
Control field(const char* group, const char* key) {
  const FieldRow& row = row_of(key);
  Control control;
  control.group = group;
  control.key = key;
  control.label = row.info.label.empty() ? row.info.key : row.info.label;
  std::replace(control.label.begin(), control.label.end(), '_', ' ');
  control.unit = row.info.unit;
  control.about = row.info.about;
  control.otherwise = row.otherwise;
  control.for_models = control.key.starts_with("model.");
  control.least = row.info.min;
  control.most = row.info.max;
  if (row.words != nullptr)
    for (const Word& word : *row.words) control.choices.emplace_back(word.name);
  if (row.kind == FieldKind::text || row.kind == FieldKind::word_or_file) control.kind = ControlKind::entry;
  if (row.kind == FieldKind::number) control.kind = ControlKind::factor;
  if (row.kind == FieldKind::flag) {
    control.kind = ControlKind::toggle;
    control.on = "true";
    control.off = "false";
  }
  if (row.kind == FieldKind::integer) {
    control.kind = row.info.unit == "GiB" ? ControlKind::size : ControlKind::number;
    if (row.info.max - row.info.min < most_choices) {
      control.kind = ControlKind::choice;
      for (auto value = static_cast<int>(row.info.min); value <= static_cast<int>(row.info.max); ++value)
        control.choices.push_back(std::to_string(value));
    }
  }
  return control;
}

// With a slider up to `reach`, in steps.
Control number(const char* group, const char* key, double reach, double step = 1) {
  Control control = field(group, key);
  if (control.kind == ControlKind::factor && control.unit != "x") control.kind = ControlKind::number;
  control.most = std::min(control.most, reach);
  control.step = step;
  return control;
}

// A slider from 0 GiB, which leaves the key out, or says 0.
Control size(const char* group, const char* key, double reach) {
  Control control = number(group, key, reach);
  control.least = 0;
  return control;
}

Control factor(const char* key) {
  Control control = field(hardware_group, key);
  control.least = 0.1;
  control.most = 10;
  return control;
}

Control entry(const char* group, const char* key, std::vector<std::string> choices) {
  Control control = field(group, key);
  control.choices = std::move(choices);
  return control;
}

Control only_where(std::vector<Control::Need> needs, Control control) {
  control.needs = std::move(needs);
  return control;
}

void add_model(std::vector<Control>& controls) {
  controls.push_back(entry(model_group, "model.name", bundled_models()));
  controls.push_back(number(model_group, "model.sequence", 131'072, 1'024));
  controls.push_back(number(model_group, "model.micro_batch", 128));
  controls.push_back(only_where({{global_batch, "0"}}, number(model_group, global_batch, 4'096)));
  controls.push_back(number(model_group, accumulation, 128));
  controls.back().follows = global_batch;
  controls.push_back(field(model_group, "model.precision"));
  controls.push_back(only_where({{"model.precision", "bf16_mixed"}}, field(model_group, "model.fp8_recipe")));
  controls.push_back(field(model_group, "model.trainable"));
  controls.push_back(only_where({{"model.trainable", "full"}}, number(model_group, "model.lora_rank", 256)));
  controls.push_back(field(model_group, "model.optimizer"));
  controls.push_back(field(model_group, "model.flash_attention"));
  controls.push_back(number(model_group, "model.tensor_parallel", 16));
  controls.push_back(number(model_group, "model.data_parallel", 512));
  controls.push_back(only_where({{"model.data_parallel", "1"}, {"model.context_parallel", "1"}},
                                field(model_group, "model.zero_stage")));
  controls.push_back(only_where({{"model.zero_stage", "0"}}, number(model_group, "model.shard_groups", 512)));
}

void add_hardware(std::vector<Control>& controls) {
  controls.push_back(entry(hardware_group, "hardware.profile", profiles({ProfileKind::system, ProfileKind::gpu})));
  controls.push_back(size(hardware_group, "memory.capacity_bytes", 400));
  controls.push_back(factor("what_if.gpu"));
  controls.push_back(factor("what_if.host"));
  Control generation;  // the profile's own key
  generation.group = hardware_group;
  generation.key = "hardware.set.gpu.pcie_generation";
  generation.label = "PCIe generation";
  generation.about = "of the GPU's slot; offloading goes by it";
  generation.kind = ControlKind::entry;
  generation.choices = {"", "3", "4", "5", "6"};
  controls.push_back(std::move(generation));
  controls.push_back(factor("what_if.pcie"));
  controls.push_back(
      only_where({{"model.tensor_parallel", "1"}, {"model.data_parallel", "1"}, {"model.pipeline_parallel", "1"}},
                 factor("what_if.network")));
}

void add_offload(std::vector<Control>& controls) {
  controls.push_back(field(offload_group, "offload.technique"));
  const std::vector<Control::Need> moved = {{"offload.technique", "none"}, {"plan", ""}};
  controls.push_back(only_where(moved, field(offload_group, "offload.tier")));
  controls.push_back(only_where(moved, entry(offload_group, "offload.drives", profiles({ProfileKind::nvme}))));
  controls.push_back(only_where(moved, number(offload_group, "offload.drives_per_machine", 16)));
  controls.push_back(only_where(moved, size(offload_group, "offload.in_flight_bytes", 64)));
  controls.push_back(only_where(moved, number(offload_group, "offload.least_life_years", 20)));
  controls.push_back(field(offload_group, "model.optimizer_device"));
}

void add_techniques(std::vector<Control>& controls) {
  controls.push_back(field(recompute_group, "model.recompute"));
  controls.push_back(number(pipeline_group, "model.pipeline_parallel", 64));
  const std::vector<Control::Need> staged = {{"model.pipeline_parallel", "1"}};
  controls.push_back(only_where(staged, field(pipeline_group, "model.pipeline_schedule")));
  controls.push_back(only_where(staged, number(pipeline_group, "model.pipeline_chunks", 8)));
  controls.push_back(only_where(staged, number(pipeline_group, "model.recomputed_chunks", 8)));
  controls.push_back(only_where(staged, field(pipeline_group, "model.split_backward")));
  controls.push_back(field(planner_group, "memory.allocator"));
  controls.push_back(field(planner_group, "order.technique"));
  controls.push_back(
      entry(planner_group, "memory.config",
            {"", "max_split_size_mb:128", "expandable_segments:True", "garbage_collection_threshold:0.8"}));
  controls.push_back(field(planner_group, "memory.plan"));
  controls.push_back(field(planner_group, "plan"));
}

}  // namespace

std::vector<Control> scenario_controls() {
  std::vector<Control> controls;
  add_model(controls);
  add_hardware(controls);
  add_offload(controls);
  add_techniques(controls);
  return controls;
}

Control control_of(const std::string& key) {
  for (Control& control : scenario_controls())
    if (control.key == key) return std::move(control);
  Control made;
  if (described(key) != nullptr) {
    made = field(other_group, key.c_str());
    // A number of any size is typed.
    if (made.kind == ControlKind::number || made.kind == ControlKind::factor) made.kind = ControlKind::entry;
  } else {
    made.key = key;
    made.group = other_group;
    made.kind = ControlKind::entry;
    constexpr std::string_view profiles_own = "hardware.set.";  // "gpu memory bandwidth"
    made.label = key.starts_with(profiles_own) ? key.substr(profiles_own.size()) : key;
    std::replace_if(
        made.label.begin(), made.label.end(), [](char c) { return c == '_' || c == '.'; }, ' ');
  }
  return made;
}

namespace {

std::optional<TrainingSetup> setup_of(const ScenarioDocument& document) {
  try {
    const Scenario scenario = parse_scenario(document.text(), document.name(), document.folder());
    if (scenario.model.empty()) return std::nullopt;
    return resolve(scenario.training, with_layers(scenario, find_model(scenario.model)));
  } catch (const InputError&) {
    return std::nullopt;  // the replay says why
  }
}

}  // namespace

bool is_derived(const Control& control, const ScenarioDocument& document) {
  return !control.follows.empty() && document.value(control.follows).value_or("0") != "0";
}

std::string derived_value(const Control& control, const ScenarioDocument& document) {
  const std::optional<TrainingSetup> setup = control.key == accumulation ? setup_of(document) : std::nullopt;
  return setup ? std::to_string(setup->gradient_accumulation) : "";
}

double steps_of(const Control& control, const ScenarioDocument& document) {
  if (control.key != global_batch) return control.step;
  const auto number = [&](const char* key) { return std::strtod(document.value(key).value_or("1").c_str(), nullptr); };
  return std::max(1.0, number("model.micro_batch") * number("model.data_parallel"));
}

const std::vector<std::string>& control_groups() {
  static const std::vector<std::string> groups = {model_group,    hardware_group, offload_group, recompute_group,
                                                  pipeline_group, planner_group,  other_group};
  return groups;
}

}  // namespace spillway::gui
