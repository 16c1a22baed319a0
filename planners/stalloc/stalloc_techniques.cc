#include "planners/stalloc/stalloc_techniques.h"

#include <memory>
#include <utility>

#include "planners/stalloc/stalloc_plan.h"
#include "sim/devices/memory/allocation_stream.h"

namespace spillway::planners {
namespace {

TechniquePart make_stalloc(const TechniqueRequest& request) {
  TechniquePart part;
  for (const std::int16_t device : memory_devices(request.trace)) {
    StallocPlan made = plan_stalloc(profile_of(request.trace, device), {.threads = 1});
    part.memory[device] = std::make_shared<const MemoryPlan>(made.plan);
    if (!part.plan.memory) part.plan.memory = std::move(made.plan);
  }
  return part;
}

}  // namespace

const std::vector<Technique>& stalloc_techniques() {
  static const std::vector<Technique> rows = {
      {.name = std::string(stalloc_word),
       .title = "STAlloc",
       .about = "places for a step's requests, planned from its profile: `spillway plan stalloc`",
       .source = "EuroSys 2026, arXiv 2507.16274",
       .part = PlanPart::memory,
       .key = "memory.allocator",
       .needs = {Capability::memory},
       .ways = {{std::string(stalloc_word),
                 "requests placed by STAlloc's plan",
                 {"memory.allocator=" + std::string(stalloc_word)}}},
       .make = make_stalloc},
  };
  return rows;
}

}  // namespace spillway::planners
