#include "scenario/memory_knobs.h"

#include <algorithm>
#include <memory>

#include "base/parallel.h"
#include "planners/stalloc/stalloc_plan.h"

namespace spillway::scenario {
namespace {

std::vector<MemoryKnob> candidates() {
  std::vector<MemoryKnob> knobs;
  knobs.push_back({"expandable segments", std::string(expandable_policy), "", {}, {}, 0, false});
  for (const char* setting :
       {"max_split_size_mb:32", "max_split_size_mb:128", "max_split_size_mb:512", "roundup_power2_divisions:4",
        "roundup_power2_divisions:16", "max_split_size_mb:128,roundup_power2_divisions:16"})
    knobs.push_back({setting, std::string(torch_policy), setting, {}, {}, 0, false});
  knobs.push_back({"GMLake's stitched blocks", std::string(gmlake_policy), "", {}, {}, 0, false});
  knobs.push_back({"GMLake's stitched blocks, fragLimit 64 MiB",
                   std::string(gmlake_policy),
                   "fragLimit:67108864",
                   {},
                   {},
                   0,
                   false});
  knobs.push_back({"planned allocation (STAlloc)", std::string(planned_policy), "", {}, {}, 0, false});
  knobs.push_back({"no fragmentation at all", std::string(ideal_policy), "", {}, {}, 0, true});
  return knobs;
}

void replay_with(const Trace& trace, const AllocationStreamOptions& options, Bytes now, MemoryKnob& knob) {
  AllocationStreamOptions run = options;
  run.keep_rows = run.keep_totals = run.repeat = false;
  run.pool.policy = knob.policy;
  run.pool.settings = knob.settings;
  run.pool.plan = nullptr;
  run.spaces.clear();
  if (knob.policy == planned_policy) {
    StallocPlan plan = plan_stalloc(profile_of(trace, options.device), {.threads = 1});
    run.pool.plan = std::make_shared<const MemoryPlan>(std::move(plan.plan));
    run.spaces = std::move(plan.spaces);
  }
  const AllocationStreamResult result = replay_allocation_stream(trace, run);
  const DriverCost& cost = result.cost;
  knob.peak_reserved = Bytes(result.statistics.all().reserved_bytes.peak);
  knob.gain = now - knob.peak_reserved;
  knob.driver_calls = std::uint64_t{cost.device_mallocs} + cost.device_frees + cost.chunks_created +
                      cost.chunks_released + cost.maps + cost.unmaps;
}

}  // namespace

std::vector<MemoryKnob> try_memory_knobs(const Trace& trace, const AllocationStreamOptions& options) {
  AllocationStreamOptions present = options;
  present.keep_rows = present.keep_totals = present.repeat = false;
  const Bytes now = Bytes(replay_allocation_stream(trace, present).statistics.all().reserved_bytes.peak);
  std::vector<MemoryKnob> knobs = candidates();
  in_parallel(knobs.size(), [&](std::size_t i) { replay_with(trace, options, now, knobs[i]); });
  std::stable_sort(knobs.begin(), knobs.end(), [](const MemoryKnob& a, const MemoryKnob& b) {
    return std::pair(a.is_bound, b.gain) < std::pair(b.is_bound, a.gain);
  });
  return knobs;
}

}  // namespace spillway::scenario
