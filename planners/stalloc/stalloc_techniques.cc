#include "planners/stalloc/stalloc_techniques.h"

#include <algorithm>
#include <utility>

#include "planners/stalloc/stalloc_plan.h"
#include "sim/devices/memory/allocation_stream.h"

namespace spillway::planners {
namespace {

// Of the search for a layout, shared by the devices: within 0.2 % of what ten times as much reaches.
constexpr std::int64_t effort = 100'000;

template <StallocAlgorithm algorithm>
TechniquePart make_stalloc(const TechniqueRequest& request) {
  TechniquePart part;
  const std::vector<std::int16_t> devices = memory_devices(request.trace);
  StallocOptions options{.algorithm = algorithm, .threads = 1};
  options.effort = effort / std::max<std::int64_t>(1, static_cast<std::int64_t>(devices.size()));
  for (const std::int16_t device : devices) {
    part.plan.memory[device] = plan_stalloc(profile_of(request.trace, device), options).plan;
    if (algorithm == StallocAlgorithm::group) part.plan.memory[device].technique = stalloc_paper_word;
  }
  return part;
}

constexpr const char* source = "EuroSys 2026, arXiv 2507.16274";

std::vector<TechniqueWay> way_of(std::string_view word, std::string about) {
  return {{std::string(word), std::move(about), {setting(allocator_key, word)}}};
}

}  // namespace

const std::vector<Technique>& stalloc_techniques() {
  static const std::vector<Technique> rows = {
      {.name = std::string(stalloc_word),
       .title = "STAlloc",
       .about = "places for a step's requests, planned from its profile, as low as we find: `spillway plan stalloc`",
       .source = source,
       .part = PlanPart::memory,
       .key = std::string(allocator_key),
       .needs = {Capability::memory},
       .ways = way_of(stalloc_word, "planned allocation (STAlloc)"),
       .make = make_stalloc<StallocAlgorithm::best>},
      {.name = std::string(stalloc_paper_word),
       .title = "STAlloc as published",
       .about = "the same by the paper's own grouping, HomoPhase and HomoSize",
       .source = source,
       .part = PlanPart::memory,
       .key = std::string(allocator_key),
       .needs = {Capability::memory},
       .ways = way_of(stalloc_paper_word, "planned allocation (STAlloc as published)"),
       .make = make_stalloc<StallocAlgorithm::group>},
  };
  return rows;
}

}  // namespace spillway::planners
