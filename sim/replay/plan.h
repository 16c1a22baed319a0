// Plan: what a replay is to do differently from the plain trace, in four parts, each made on the trace that the parts
// before it leave. Parts are optional; a plan without any changes nothing. Each names the technique that made it.
//
// JSON, schema "spillway-plan":
//   {"schema": "spillway-plan", "version": 1,
//    "schedule": {"name": "chronos", "stages": 4, "orders": [...], ...},           models/pipeline/pipeline_document.h
//    "fates": {"technique": "mix", "absences": [...], ...},                        plan_fields.h
//    "order": {"technique": "order", "digest": "0123456789abcdef", "ops": [4, 2]}, heads of units, order_plan.h
//    "memory": {"schema": "spillway-memory-plan", "technique": "layout", ...},     memory_plan.h
//    "memory_by_device": [{"device": 0, "plan": {"schema": "spillway-memory-plan", ...}}, ...]}    of several GPUs
// `offload` is an older name of `fates`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/byte_source.h"
#include "models/pipeline/pipeline_plan.h"
#include "sim/devices/memory/memory_plan.h"
#include "sim/replay/offload_plan.h"
#include "sim/replay/order_plan.h"

namespace spillway::sim {

inline constexpr int plan_version = 1;

struct Plan {
  std::optional<PipelinePlan> schedule;  // what each stage runs when; of a generated step
  std::optional<OffloadPlan> fates;      // which tensors leave, and which are recomputed
  std::optional<OrderPlan> order;
  std::map<std::int16_t, MemoryPlan> memory;  // by device, of the trace as the parts before leave it; empty: none
};

// Throws InputError naming file, JSON pointer, cause and remedy.
Plan read_plan(ByteSource& source);
std::string plan_json(const Plan& plan);

}  // namespace spillway::sim
