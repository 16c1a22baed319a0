#include "planners/order/order_techniques.h"

#include <memory>
#include <utility>

#include "planners/order/trace_order.h"
#include "sim/devices/memory/allocation_stream.h"

namespace spillway::planners {
namespace {

TechniquePart make_order(const TechniqueRequest& request) {
  TechniquePart part;
  part.plan.order = std::move(plan_order(request.trace).plan.order);
  return part;
}

TechniquePart make_layout(const TechniqueRequest& request) {
  TechniquePart part;
  for (const std::int16_t device : memory_devices(request.trace)) {
    MemoryPlan plan;
    static_cast<void>(lay_out_requests(request.trace, device, {}, plan));
    part.memory[device] = std::make_shared<const MemoryPlan>(plan);
    if (!part.plan.memory) part.plan.memory = std::move(plan);
  }
  return part;
}

}  // namespace

const std::vector<Technique>& order_techniques() {
  static const std::vector<Technique> rows = {
      {.name = std::string(order_word),
       .title = "operator order",
       .about = "the order of operators with the lowest peak: `spillway plan order`",
       .source = "ours; beside ROAM (arXiv 2310.19295)",
       .part = PlanPart::order,
       .needs = {Capability::uses},
       .make = make_order},
      {.name = std::string(layout_word),
       .title = "fixed places",
       .about = "a place for every request, as low as the layout solver gets it: `spillway plan order --layout`",
       .source = "ours; after ROAM (arXiv 2310.19295) and MiniMalloc (ASPLOS 2023)",
       .part = PlanPart::memory,
       .needs = {Capability::memory},
       .make = make_layout},
  };
  return rows;
}

}  // namespace spillway::planners
