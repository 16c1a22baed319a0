#include "planners/order/order_techniques.h"

#include <algorithm>
#include <string>
#include <utility>

#include "planners/order/trace_order.h"
#include "sim/devices/memory/allocation_stream.h"

namespace spillway::planners {
namespace {

constexpr const char* roam_source = "arXiv 2310.19295";

// Of the search for a layout, shared by the devices, and of that for an order, on each rank.
constexpr std::int64_t effort = 200'000;

template <OrderMethod method>
TechniquePart make_order(const TechniqueRequest& request) {
  TechniquePart part;
  TraceOrderOptions options;
  options.method = method;
  options.fates = request.fates;
  options.recall = true;
  options.order.best.effort = effort;
  part.plan.order = std::move(plan_order(request.trace, options).plan.order);
  return part;
}

TechniquePart make_layout(const TechniqueRequest& request) {
  TechniquePart part;
  const std::vector<std::int16_t> devices = memory_devices(request.trace);
  LayoutOptions options;
  options.effort = effort / std::max<std::int64_t>(1, static_cast<std::int64_t>(devices.size()));
  options.threads = 1;
  for (const std::int16_t device : devices)
    static_cast<void>(lay_out_requests(request.trace, device, options, part.plan.memory[device]));
  return part;
}

TechniquePart make_roam_layout(const TechniqueRequest& request) {
  TechniquePart part;
  part.plan.memory = roam_places(request.trace);
  return part;
}

Technique order_row(std::string_view word, std::string title, std::string about, std::string way, std::string source,
                    TechniquePart (*make)(const TechniqueRequest&)) {
  const std::string name(word);
  return {.name = name,
          .title = std::move(title),
          .about = about,
          .source = std::move(source),
          .part = PlanPart::order,
          .key = std::string(order_key),
          .needs = {Capability::uses},
          .ways = {{name, std::move(way), {setting(order_key, name)}}},
          .make = make};
}

}  // namespace

const std::vector<Technique>& order_techniques() {
  static const std::vector<Technique> rows = {
      order_row(order_word, "operator order", "the order of operators with the lowest peak that we find",
                "reorder operators", std::string("ours; beside ROAM (") + roam_source + ")",
                make_order<OrderMethod::best>),
      order_row(to_string(OrderMethod::roam), "ROAM's order", "operators in ROAM's order, by independent segments",
                "reorder operators (ROAM)", roam_source, make_order<OrderMethod::roam>),
      order_row(to_string(OrderMethod::lescea), "LESCEA's order",
                "of the operators that can run the one that leaves least alive", "reorder operators (LESCEA)",
                std::string("ROAM's baseline (") + roam_source + ")", make_order<OrderMethod::lescea>),
      {.name = std::string(layout_word),
       .title = "fixed places",
       .about = "a place for every request, as low as the layout solver gets it",
       .source = "ours; after ROAM (arXiv 2310.19295) and MiniMalloc (ASPLOS 2023)",
       .part = PlanPart::memory,
       .key = std::string(allocator_key),
       .needs = {Capability::memory},
       .ways = {{std::string(layout_word), "planned addresses", {setting(allocator_key, layout_word)}}},
       .make = make_layout},
      {.name = std::string(roam_layout_word),
       .title = "ROAM's layout",
       .about = "a place for every request as ROAM's paper has them, leaf by leaf of its subgraph tree",
       .source = roam_source,
       .part = PlanPart::memory,
       .key = std::string(allocator_key),
       .needs = {Capability::uses, Capability::memory},
       .ways = {{std::string(roam_layout_word),
                 "planned addresses (ROAM's layout)",
                 {setting(allocator_key, roam_layout_word)}}},
       .make = make_roam_layout},
  };
  return rows;
}

}  // namespace spillway::planners
