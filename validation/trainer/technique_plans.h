// The plans that the trainer is run under: the table's techniques (planners/technique/technique_table.h) on the
// trainer's own trace, as the product makes them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hwprofiles/hardware_profile.h"
#include "sim/devices/memory/memory_pool.h"
#include "sim/replay/plan.h"
#include "traces/trace.h"

namespace spillway::validation {

struct TechniquePlan {
  std::string technique;
  Plan plan;
  MemoryPoolOptions allocator;  // the policy; its plan is Plan::memory
};

//   keep                         nothing leaves; PyTorch's caching allocator, as in all that follow unless said
//   recompute                    every layer's inner activations (recompute/layer_plans.h)
//   recompute-every-2            those of every second layer
//   offload-host, offload-drive  SSDTrain's rule, every saved tensor of the layers, all scopes but the last
//   recompute-offload            what full recomputation keeps goes to the drive (offload/checkpoints.h)
//   stream                       weights and optimizer state away whenever unused (ZeRO-Infinity's way), to the drive
//   order-arena                  the order with the lowest peak, and fixed places
//   stalloc                      STAlloc's static plan
//
// The trainer's runtime is simpler than the planners' own. It offers every tensor, however small, and doesn't hold its
// host back. It reads what it has stored even where it is still there, and asks for streamed state when it reaches its
// use.
std::span<const std::string_view> trainer_techniques();

// trace: of one step, with times, memory, uses and phases. hardware: what planners replay on.
// Throws InputError for unknown techniques, and what the planners throw.
TechniquePlan technique_plan(const Trace& trace, std::string_view technique, const HardwareProfile& hardware);

}  // namespace spillway::validation
