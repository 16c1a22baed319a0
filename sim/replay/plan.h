// Plan: what a replay is to do differently from the plain trace. Parts are optional; a plan without any changes
// nothing.
//
// JSON, schema "spillway-plan":
//   {"schema": "spillway-plan", "version": 1,
//    "order": {"digest": "0123456789abcdef", "ops": [4, 2, 7]},                    heads of units, order_plan.h
//    "memory": {"schema": "spillway-memory-plan", ...},                            memory_plan.h
//    "offload": {"technique": "mix", "absences": [...], ...}}                      offload_plan_json.h
#pragma once

#include <optional>
#include <string>

#include "base/byte_source.h"
#include "sim/devices/memory/memory_plan.h"
#include "sim/replay/offload_plan.h"
#include "sim/replay/order_plan.h"

namespace spillway::sim {

inline constexpr int plan_version = 1;

struct Plan {
  std::optional<OrderPlan> order;
  std::optional<MemoryPlan> memory;    // of the trace in that order
  std::optional<OffloadPlan> offload;  // likewise
};

// Throws InputError naming file, JSON pointer, cause and remedy.
Plan read_plan(ByteSource& source);
std::string plan_json(const Plan& plan);

}  // namespace spillway::sim
