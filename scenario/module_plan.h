// A plan's decision for each tensor, by modules: for programs that know modules and what they save, not the trace's
// operators (PyTorch, python/spillway/torch). Made from the plan that a scenario's run follows; read by nobody here.
//
// JSON, schema "spillway-module-plan" (`spillway schema module-plan`). Layers by their index in the model; within one,
// modules by the names that generated tensors carry ("attention.qkv"): `module` saves the tensor for its backward
// first, `made_by` writes it ("" in both: not of this layer's modules).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/units.h"
#include "scenario/evaluator.h"

namespace spillway::scenario {

// Of `spillway export --for`.
inline constexpr std::string_view module_plan_target = "pytorch";

enum class ModuleFate : std::uint8_t { keep, host, disk, recompute };

struct SavedFate {
  std::string tensor;  // its name within the layer: "attention.qkv.out"
  std::string module, made_by;
  Bytes bytes{};  // of one micro-batch
  ModuleFate fate = ModuleFate::keep;
};

struct LayerModules {
  std::int64_t layer = 0;
  // The step itself makes the layer again: whole, its attention core; else only what `saved` says.
  ModuleFate whole = ModuleFate::keep, core = ModuleFate::keep;
  std::vector<SavedFate> saved;  // in the order of the forward
};

struct ModulePlan {
  std::string title, model, technique;
  std::string allocator_config;  // as in PYTORCH_CUDA_ALLOC_CONF
  std::int64_t store_workers = 0, load_workers = 0;
  Bytes in_flight{};
  std::vector<LayerModules> layers;
  std::vector<std::string> refused;  // sentences: what the plan says and no module can do
};

// `run`: of `loaded`. Throws InputError for a scenario without a model.
ModulePlan module_plan(const LoadedScenario& loaded, const ScenarioRun& run);

void describe(ModulePlan& plan, FieldVisitor& visitor);
std::string module_plan_json(const ModulePlan& plan);
std::string module_plan_schema();

}  // namespace spillway::scenario
