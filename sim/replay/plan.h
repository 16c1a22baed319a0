// Plan: what a replay is to do differently from the plain trace, in four parts, each made on the trace that the parts
// before it leave. Parts are optional; a plan without any changes nothing. Each names the technique that made it.
//
// JSON, schema "spillway-plan":
//   {"schema": "spillway-plan", "version": 1,
//    "schedule": {"name": "chronos", "stages": 4, "orders": [...], ...},           models/pipeline/pipeline_document.h
//    "fates": {"technique": "mix", "absences": [...], ...},                        plan_fields.h
//    "order": {"technique": "order", "digest": "0123456789abcdef", "ops": [4, 2]}, heads of units, order_plan.h
//    "memory": {"schema": "spillway-memory-plan", "technique": "layout", ...}}     memory_plan.h
// "offload" is an older name of "fates".
#pragma once

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
  std::optional<OffloadPlan> fates;      // which tensors leave, and which are made again
  std::optional<OrderPlan> order;
  std::optional<MemoryPlan> memory;  // of the trace in that order
};

// Throws InputError naming file, JSON pointer, cause and remedy.
Plan read_plan(ByteSource& source);
std::string plan_json(const Plan& plan);

}  // namespace spillway::sim
