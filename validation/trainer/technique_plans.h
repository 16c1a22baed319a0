// The plans that the trainer is run under: spillway's own planners on the trainer's own trace.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/devices/memory/memory_pool.h"
#include "sim/replay/plan.h"
#include "traces/trace.h"

namespace spillway::validation {

struct TechniquePlan {
  std::string technique;
  Plan plan;
  MemoryPoolOptions allocator;  // the policy; its plan is Plan::memory
};

// keep             nothing leaves; PyTorch's caching allocator, as in all that follow unless said
// recompute        every layer's inner activations (recompute/layer_plans.h)
// recompute-every-2  those of every second layer
// offload-host, offload-drive  SSDTrain's rule, every saved tensor of the layers, all scopes but the last
// recompute-offload  what full recomputation keeps goes to the drive
// stream           weights and optimizer state away whenever unused (ZeRO-Infinity's way), to the drive
// order-arena      ROAM's order and fixed places
// stalloc          STAlloc's static plan
std::span<const std::string_view> techniques();

// trace: of one step, with times, memory, uses and phases.
// Throws InputError for unknown techniques, and what the planners throw.
TechniquePlan technique_plan(const Trace& trace, std::string_view technique);

}  // namespace spillway::validation
