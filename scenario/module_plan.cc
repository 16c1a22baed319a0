#include "scenario/module_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/field_schema.h"
#include "base/field_writer.h"
#include "base/input_error.h"
#include "sim/devices/memory/memory_policies.h"
#include "traces/saved_tensors.h"

namespace spillway::scenario {
namespace {

constexpr std::string_view layer_prefix = "layers.";

const Words& fate_words() {
  static const Words words = {{"keep", "it stays"},
                              {"host", "to the host's memory"},
                              {"disk", "to files"},
                              {"recompute", "nowhere: its module runs again"}};
  return words;
}

// Whether a transfer is cut short (forwarded) shows when the program runs.
ModuleFate fate_of(const Absence& absence) {
  switch (absence.tier) {
    case Tier::host:
      return ModuleFate::host;
    case Tier::drive:
      return ModuleFate::disk;
    case Tier::recompute:
      return ModuleFate::recompute;
  }
  return ModuleFate::keep;
}

// "layers.3.attention.qkv.out" of layer 3 -> "attention.qkv.out"; "": of something else.
std::string_view within_layer(std::string_view name, std::int64_t layer) {
  const std::string prefix = fmt::format("{}{}.", layer_prefix, layer);
  return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string_view();
}

// The module that a tensor's name begins with: all parts before what it is of it ("out", "in.grad", "weight.grad").
std::string module_part(std::string_view name) {
  static const std::set<std::string_view> of_module = {"out", "in", "grad", "weight", "bias", "again", "part"};
  std::string_view rest = name;
  while (true) {
    const std::size_t dot = rest.rfind('.');
    const std::string_view last = dot == std::string_view::npos ? rest : rest.substr(dot + 1);
    if (!of_module.contains(last)) break;
    if (dot == std::string_view::npos) return "";
    rest = rest.substr(0, dot);
  }
  return std::string(rest);
}

class Maker {
 public:
  Maker(const LoadedScenario& loaded, const ScenarioRun& run) : loaded_(loaded), trace_(loaded.trace), run_(run) {}

  ModulePlan make() {
    plan_.title = loaded_.scenario.title;
    plan_.model = loaded_.scenario.model;
    if (run_.plan.fates) {
      plan_.technique = run_.plan.fates->technique;
      plan_.store_workers = run_.plan.fates->store_workers;
      plan_.load_workers = run_.plan.fates->load_workers;
      plan_.in_flight = run_.plan.fates->in_flight_of(0);
    }
    made_again_by_the_step();
    collect(fates_by_storage());
    other_parts();
    allocator();
    return std::move(plan_);
  }

 private:
  using FatesByStorage = std::map<std::uint32_t, std::set<ModuleFate>>;

  [[nodiscard]] std::string_view name_of(TensorId tensor) const {
    return trace_.strings.text(trace_.tensors.name[index_of(tensor)]);
  }

  // Of what the op writes first.
  [[nodiscard]] std::string module_of_op(OpId op, std::int64_t layer) const {
    auto use = std::lower_bound(trace_.uses.begin(), trace_.uses.end(), op,
                                [](const Use& each, OpId wanted) { return each.op < wanted; });
    for (; use != trace_.uses.end() && use->op == op; ++use)
      if (use->access == Access::write) return module_part(within_layer(name_of(use->tensor), layer));
    return "";
  }

  LayerModules& layer(std::int64_t index) {
    const auto at = std::lower_bound(plan_.layers.begin(), plan_.layers.end(), index,
                                     [](const LayerModules& each, std::int64_t wanted) { return each.layer < wanted; });
    if (at != plan_.layers.end() && at->layer == index) return *at;
    return *plan_.layers.insert(at, LayerModules{.layer = index});
  }

  void refuse(std::string sentence) {
    if (std::find(plan_.refused.begin(), plan_.refused.end(), sentence) == plan_.refused.end())
      plan_.refused.push_back(std::move(sentence));
  }

  FatesByStorage fates_by_storage() const {
    FatesByStorage fates;
    if (!run_.plan.fates) return fates;
    for (const Absence& absence : run_.plan.fates->absences)
      fates[trace_.tensors.storage[index_of(absence.tensor)]].insert(fate_of(absence));
    return fates;
  }

  // What a generated step's own setting repeats; its other activations are in the trace as kept.
  void made_again_by_the_step() {
    const TrainingSetup& setup = loaded_.setup;
    if (setup.recompute == Recompute::none) return;
    if (plan_.technique.empty()) plan_.technique = to_string(setup.recompute);
    const bool is_core = setup.recompute == Recompute::selective && setup.recompute_modules == "core_attn";
    if (setup.recompute != Recompute::full && !is_core)
      return refuse(fmt::format("model.recompute={} of {}: PyTorch's modules don't part there",
                                to_string(setup.recompute), setup.recompute_modules));
    std::set<std::uint16_t> again;
    for (std::size_t op = 0; op < trace_.ops.size(); ++op)
      if (trace_.ops.phase[op] == Phase::recompute && trace_.ops.layer[op] != no_index16)
        again.insert(trace_.ops.layer[op]);
    for (const std::uint16_t index : again) (is_core ? layer(index).core : layer(index).whole) = ModuleFate::recompute;
  }

  void collect(FatesByStorage fates) {
    std::map<std::pair<std::int64_t, std::string>, std::set<ModuleFate>> seen;  // over micro-batches and ranks
    for (const SavedTensor& saved : saved_tensors(trace_)) {
      const auto found = fates.find(saved.storage);
      std::set<ModuleFate> of_this = {ModuleFate::keep};
      if (found != fates.end()) of_this = std::exchange(found->second, {});
      const std::string name(name_of(saved.tensor));
      if (saved.layer == no_index16) {
        if (of_this != std::set{ModuleFate::keep})
          refuse(fmt::format("{}: it is saved outside the layers, by the embeddings, the head or the loss", name));
        continue;
      }
      const std::string_view within = within_layer(name, saved.layer);
      const std::string short_name(within.empty() ? name : within);
      auto& all = seen[{saved.layer, short_name}];
      if (all.empty()) {
        const std::string by = module_of_op(saved.last_backward, saved.layer);
        layer(saved.layer)
            .saved.push_back({.tensor = short_name,
                              .module = by,
                              .made_by = within.empty() ? "" : module_part(within),
                              .bytes = trace_.tensors.bytes[index_of(saved.tensor)],
                              .fate = *of_this.begin()});
      }
      all.insert(of_this.begin(), of_this.end());
      if (all.size() == 2)
        refuse(fmt::format(
            "layer {}: {} has another decision in some micro-batches, ranks or times of the step than in others",
            saved.layer, short_name));
    }
    const auto of_state =
        std::count_if(fates.begin(), fates.end(), [](const auto& each) { return !each.second.empty(); });
    if (of_state > 0)
      refuse(fmt::format("{} tensors that aren't activations leave the device: weights, gradients or optimizer state",
                         of_state));
  }

  void other_parts() {
    const TrainingSetup& setup = loaded_.setup;
    if (setup.pipeline_parallel > 1)
      refuse(fmt::format("the schedule {}: which stage runs what when is the training program's own",
                         setup.pipeline_schedule));
    if (run_.plan.order)
      refuse(fmt::format("the order {}: PyTorch runs operators as the program calls them", run_.plan.order->technique));
    if (!run_.plan.memory.empty())
      refuse(
          fmt::format("the places of {}: PyTorch's allocator takes none", run_.plan.memory.begin()->second.technique));
    if (setup.optimizer_device != StateDevice::gpu)
      refuse("model.optimizer_device: where the optimizer runs is the training program's own");
  }

  void allocator() {
    const std::string& policy = loaded_.scenario.allocator;
    plan_.allocator_config = loaded_.scenario.allocator_config;
    if (policy == expandable_policy) {
      if (!plan_.allocator_config.empty()) plan_.allocator_config += ",";
      plan_.allocator_config += "expandable_segments:True";
    } else if (policy != torch_policy && run_.plan.memory.empty()) {
      refuse(fmt::format("the allocator {}: it isn't PyTorch's", policy));
    }
  }

  const LoadedScenario& loaded_;
  const Trace& trace_;
  const ScenarioRun& run_;
  ModulePlan plan_;
};

}  // namespace

ModulePlan module_plan(const LoadedScenario& loaded, const ScenarioRun& run) {
  if (loaded.scenario.model.empty())
    throw InputError(loaded.scenario.path, "/model", "a recorded step names no modules",
                     "export a scenario that names a model");
  return Maker(loaded, run).make();
}

void describe(ModulePlan& plan, FieldVisitor& visitor) {
  visitor.head({.schema = "spillway-module-plan", .noun = "a module plan"});
  fields::text(visitor, {.key = "title", .about = "Of the scenario.", .even_empty = true}, plan.title);
  fields::text(visitor, {.key = "model", .about = "As the scenario names it.", .required = true}, plan.model);
  fields::text(visitor, {.key = "technique", .about = "Who made the plan; empty: all stays.", .even_empty = true},
               plan.technique);
  fields::text(visitor,
               {.key = "allocator_config", .about = "As in PYTORCH_CUDA_ALLOC_CONF; empty: none.", .even_empty = true},
               plan.allocator_config);
  fields::integer(visitor, {.key = "store_workers", .about = "Transfers at work at once; 0: not said."},
                  plan.store_workers);
  fields::integer(visitor, {.key = "load_workers", .about = "Transfers at work at once; 0: not said."},
                  plan.load_workers);
  fields::bytes(visitor,
                {.key = "in_flight_bytes", .about = "The forward waits while unfinished stores hold more; 0: never."},
                plan.in_flight);
  fields::list(
      visitor, {.key = "layers", .about = "By their index in the model.", .required = true, .even_empty = true},
      plan.layers, [&](LayerModules& each) {
        fields::integer(visitor, {.key = "layer", .about = "Its index.", .required = true}, each.layer);
        fields::word(visitor, {.key = "whole", .about = "recompute: the layer runs again from its inputs."}, each.whole,
                     fate_words());
        fields::word(visitor, {.key = "core", .about = "recompute: its attention's core runs again."}, each.core,
                     fate_words());
        fields::list(
            visitor, {.key = "saved", .about = "In the order of the forward.", .even_empty = true}, each.saved,
            [&](SavedFate& saved) {
              fields::text(visitor, {.key = "tensor", .about = "Within the layer.", .required = true}, saved.tensor);
              fields::text(visitor, {.key = "module", .about = "That saves it first.", .even_empty = true},
                           saved.module);
              fields::text(
                  visitor,
                  {.key = "made_by", .about = "That writes it; empty: none of this layer's.", .even_empty = true},
                  saved.made_by);
              fields::bytes(visitor, {.key = "bytes", .about = "Of one micro-batch.", .required = true}, saved.bytes);
              fields::word(visitor, {.key = "fate", .about = "What becomes of it.", .required = true}, saved.fate,
                           fate_words());
            });
      });
  visitor.texts({.key = "refused", .about = "Sentences: what the plan says and no module can do.", .even_empty = true},
                plan.refused);
}

std::string module_plan_json(const ModulePlan& plan) {
  FieldWriter writer;
  ModulePlan copy = plan;
  describe(copy, writer);
  return writer.text();
}

std::string module_plan_schema() {
  ModulePlan plan;
  FieldSchema schema;
  describe(plan, schema);
  return schema.document(
      "spillway-module-plan.v1", "spillway module plan",
      "A plan's decisions by modules, for spillway.torch.apply (docs/how-to/apply-a-plan-in-pytorch.md).");
}

}  // namespace spillway::scenario
