#include "gui/panels/scenario_controls.h"

#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::gui {
namespace {

constexpr const char* model_group = "Model";
constexpr const char* hardware_group = "Hardware";
constexpr const char* offload_group = "Offload";
constexpr const char* recompute_group = "Recompute";
constexpr const char* pipeline_group = "Pipeline (Chronos)";
constexpr const char* planner_group = "Memory planner";

std::string usual(const char* key) { return field_text(TrainingSetup{}, key); }

std::vector<std::string> profiles(std::initializer_list<ProfileKind> kinds) {
  std::vector<std::string> names;
  for (const ProfileKind kind : kinds)
    for (const ProfileEntry& entry : ProfileLibrary::shared().list())
      if (entry.kind == kind) names.push_back(entry.name);
  return names;
}

Control choice(const char* group, const char* key, const char* label, std::vector<std::string> choices,
               std::string otherwise, const char* about) {
  Control control;
  control.group = group;
  control.key = key;
  control.label = label;
  control.about = about;
  control.choices = std::move(choices);
  control.otherwise = std::move(otherwise);
  control.for_models = control.key.starts_with("model.");
  return control;
}

Control entry(const char* group, const char* key, const char* label, std::vector<std::string> choices,
              std::string otherwise, const char* about) {
  Control control = choice(group, key, label, std::move(choices), std::move(otherwise), about);
  control.kind = ControlKind::entry;
  return control;
}

Control number(const char* group, const char* key, const char* label, const char* unit, std::string otherwise,
               double least, double most, double step, const char* about) {
  Control control = choice(group, key, label, {}, std::move(otherwise), about);
  control.kind = ControlKind::number;
  control.unit = unit;
  control.least = least;
  control.most = most;
  control.step = step;
  return control;
}

Control toggle(const char* group, const char* key, const char* label, const char* on, const char* off,
               const char* about) {
  Control control = choice(group, key, label, {}, off, about);
  control.kind = ControlKind::toggle;
  control.on = on;
  control.off = off;
  return control;
}

Control factor(const char* key, const char* label, const char* about) {
  Control control = choice(hardware_group, key, label, {}, "1", about);
  control.kind = ControlKind::factor;
  control.unit = "x";
  control.least = 0.1;
  control.most = 10;
  return control;
}

Control size(const char* group, const char* key, const char* label, double most, const char* about) {
  Control control = choice(group, key, label, {}, "", about);
  control.kind = ControlKind::size;
  control.unit = "GiB";
  control.least = 0;
  control.most = most;
  control.step = 1;
  return control;
}

void add_model(std::vector<Control>& controls) {
  controls.push_back(entry(model_group, "model.name", "model", bundled_models(), "",
                           "a bundled model, or a file: a model file or a Hugging Face config.json"));
  controls.push_back(number(model_group, "model.sequence", "sequence", "tokens", "0", 0, 131'072, 1'024,
                            "tokens per sequence; 0: the model's longest"));
  controls.push_back(
      number(model_group, "model.micro_batch", "micro-batch", "seq.", "1", 1, 128, 1, "sequences per micro-batch"));
  controls.push_back(number(model_group, "model.gradient_accumulation", "accumulation", "batches", "1", 1, 128, 1,
                            "micro-batches per optimizer step"));
  controls.push_back(choice(model_group, "model.precision", "precision",
                            {"bf16_mixed", "bf16", "fp16_mixed", "fp8_mixed", "tf32", "fp32"}, usual("precision"),
                            "of weights, gradients and activations"));
  controls.push_back(choice(model_group, "model.optimizer", "optimizer",
                            {"adamw", "adam", "adamw_8bit", "adafactor", "sgd", "sgd_momentum", "muon"},
                            usual("optimizer"), "decides how much state a parameter has"));
  controls.push_back(toggle(model_group, "model.flash_attention", "flash attention", "true", "false",
                            "off: scores and probabilities are written to memory"));
  controls.back().otherwise = "true";
  controls.push_back(number(model_group, "model.tensor_parallel", "tensor parallel", "GPUs", "1", 1, 16, 1,
                            "GPUs that split heads, feed-forward and vocabulary"));
  controls.push_back(
      number(model_group, "model.data_parallel", "data parallel", "replicas", "1", 1, 512, 1, "replicas of the model"));
  controls.push_back(choice(model_group, "model.zero_stage", "ZeRO stage", {"0", "1", "2", "3"}, "0",
                            "what the replicas share: 1 optimizer state, 2 gradients too, 3 weights too (FSDP)"));
}

void add_hardware(std::vector<Control>& controls) {
  controls.push_back(entry(hardware_group, "hardware.profile", "machine",
                           profiles({ProfileKind::system, ProfileKind::gpu}), "",
                           "a system, or a GPU in a generic host; or a profile's file"));
  controls.push_back(size(hardware_group, "memory.capacity_bytes", "GPU memory", 400,
                          "for the step, instead of the profile's; 0: the profile's"));
  controls.push_back(factor("what_if.gpu", "GPU speed", "arithmetic and memory bandwidth, against the profile's"));
  controls.push_back(factor("what_if.host", "host speed", "host calls and the gaps between them"));
  controls.push_back(entry(hardware_group, "hardware.set.gpu.pcie_generation", "PCIe generation",
                           {"", "3", "4", "5", "6"}, "", "of the GPU's slot; offloading goes by it"));
  controls.push_back(
      factor("what_if.pcie", "copy speed", "copies between host and GPU, and the links that offloading goes over"));
  controls.push_back(factor("what_if.network", "network speed", "collectives"));
}

void add_offload(std::vector<Control>& controls) {
  controls.push_back(toggle(offload_group, "offload.technique", "activations to SSDs", "ssdtrain", "none",
                            "SSDTrain: activations leave in the forward and come back in the backward"));
  controls.push_back(choice(offload_group, "offload.technique", "technique",
                            {"none", "ssdtrain", "mix", "lifetimes", "stream"}, "none",
                            "mix: keep, offload or recompute per tensor; lifetimes: whatever is idle; stream: state"));
  controls.push_back(choice(offload_group, "offload.tier", "to", {"drive", "host"}, "drive", "drives or host memory"));
  controls.push_back(entry(offload_group, "offload.drives", "drives", profiles({ProfileKind::nvme}), "",
                           "replace the machine's drives; empty: as they are"));
  controls.push_back(number(offload_group, "offload.drive_count", "number of SSDs", "drives", "1", 1, 16, 1,
                            "in one RAID-0 set per machine"));
  controls.push_back(size(offload_group, "offload.in_flight_bytes", "in flight", 64,
                          "most that unfinished stores may hold; 0 lets the host run ahead"));
  controls.push_back(number(offload_group, "offload.least_life_years", "must last", "years", "0", 0, 20, 1,
                            "what the drives' life is judged by"));
  controls.push_back(choice(offload_group, "model.optimizer_device", "optimizer on", {"gpu", "cpu", "drives"}, "gpu",
                            "where its state is, and who updates (ZeRO-Offload, ZeRO-Infinity)"));
}

void add_techniques(std::vector<Control>& controls) {
  controls.push_back(toggle(recompute_group, "model.recompute", "recompute whole layers", "full", "none",
                            "only each layer's input is kept; the backward computes the rest again"));
  controls.push_back(choice(recompute_group, "model.recompute", "activations", {"none", "selective", "full"}, "none",
                            "selective: the attention core alone is computed again"));
  controls.push_back(number(pipeline_group, "model.pipeline_parallel", "stages", "GPUs", "1", 1, 64, 1,
                            "pipeline stages; micro-batches are `accumulation` above"));
  std::vector<std::string> schedules = {"1f1b",  "gpipe", "interleaved", "chronos",
                                        "zb-h1", "zb-h2", "zb-v",        "dualpipe"};
  controls.push_back(entry(pipeline_group, "model.pipeline_schedule", "schedule", std::move(schedules), "1f1b",
                           "a schedule of docs/pipelines.md, or a file"));
  controls.push_back(number(pipeline_group, "model.pipeline_chunks", "chunks per stage", "", "1", 1, 8, 1,
                            "model chunks of each stage"));
  controls.push_back(number(pipeline_group, "model.recomputed_chunks", "recomputed chunks", "", "0", 0, 8, 1,
                            "of each stage, those that keep their input alone"));
  controls.push_back(toggle(pipeline_group, "model.split_backward", "split the backward", "true", "false",
                            "Chronos: gradients of weights as a pass of their own"));
  controls.push_back(choice(planner_group, "memory.allocator", "allocator",
                            {"torch", "torch-expandable", "gmlake", "ideal", "planned", "arena", "stalloc"}, "torch",
                            "who hands out the GPU's memory; planned and arena follow a plan, stalloc makes its own"));
  controls.push_back(
      entry(planner_group, "memory.config", "settings",
            {"", "max_split_size_mb:128", "expandable_segments:True", "garbage_collection_threshold:0.8"}, "",
            "as in PYTORCH_CUDA_ALLOC_CONF"));
  controls.push_back(entry(planner_group, "memory.plan", "memory plan", {}, "",
                           "file of a plan of places, written by spillway plan stalloc or layout"));
  controls.push_back(
      entry(planner_group, "plan", "order plan", {}, "", "file of an order or offload plan, written by spillway plan"));
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

const std::vector<std::string>& control_groups() {
  static const std::vector<std::string> groups = {model_group,     hardware_group, offload_group,
                                                  recompute_group, pipeline_group, planner_group};
  return groups;
}

}  // namespace spillway::gui
