#include "planners/order/order_method.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "planners/layout/emulated_layout.h"
#include "planners/layout/layout_sections.h"
#include "planners/layout/result_check.h"
#include "planners/layout/skyline.h"
#include "planners/order/order_buffers.h"
#include "planners/order/order_check.h"
#include "planners/order/order_greedy.h"
#include "planners/order/order_links.h"

namespace spillway::planners {
namespace {

std::vector<OperatorIndex> order_of_names(const OrderGraph& graph) {
  std::vector<OperatorIndex> order(graph.operators.size());
  std::iota(order.begin(), order.end(), OperatorIndex{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](OperatorIndex a, OperatorIndex b) { return graph.operators[a] < graph.operators[b]; });
  return order;
}

OrderOutcome solve(const OrderGraph& graph, const OrderOptions& options) {
  OrderResult result = solve_order(graph, options);
  OrderOutcome outcome;
  outcome.order = std::move(result.order);
  outcome.lower_bound_bytes = result.lower_bound_bytes;
  outcome.proven = result.proven;
  outcome.stopped = result.stopped;
  return outcome;
}

OrderOutcome unchecked(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options) {
  OrderOutcome outcome;
  switch (method) {
    case OrderMethod::program:
      outcome.order = legal_order(graph);
      break;
    case OrderMethod::greedy:
      outcome.order = greedy_order(OrderLinks(graph), graph.program_order);
      break;
    case OrderMethod::lescea:
      outcome.order = greedy_order(OrderLinks(graph), order_of_names(graph));
      break;
    case OrderMethod::roam:
      outcome.roam = plan_roam(graph, options.roam);
      outcome.order = outcome.roam->order;
      outcome.stopped = outcome.roam->stopped;
      break;
    case OrderMethod::best:
      return solve(graph, options.best);
  }
  return outcome;
}

// Longest-lived first (LLFB): of what fits the lowest gap, the buffer that lives longest.
LayoutResult longest_lived_first(std::span<const LayoutBuffer> buffers) {
  LayoutResult result;
  const LayoutSections sections = sections_of(buffers);
  Skyline skyline(buffers, sections);
  std::vector<float> keys;
  for (const LayoutBuffer& buffer : buffers) keys.push_back(static_cast<float>(buffer.upper - buffer.lower));
  skyline.pack(keys, std::numeric_limits<std::int64_t>::max());
  result.offsets = skyline.offsets();
  result.height = skyline.height();
  result.lower_bound = max_live(buffers);
  result.proven = result.height == result.lower_bound;
  return result;
}

}  // namespace

std::string_view to_string(OrderMethod method) {
  constexpr std::array<std::string_view, order_method_count> names = {program_order_word, "greedy", "lescea", "roam",
                                                                      "best"};
  return names[static_cast<std::size_t>(method)];
}

OrderOutcome order_by(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options) {
  OrderOutcome outcome = unchecked(method, graph, options);
  const OrderVerdict verdict = check_order(graph, outcome.order);
  SPILLWAY_ASSERT(verdict.legal());
  outcome.peak_bytes = verdict.peak_bytes;
  if (outcome.proven) outcome.lower_bound_bytes = outcome.peak_bytes;
  return outcome;
}

LayoutResult layout_by(OrderMethod method, const OrderGraph& graph, const OrderOutcome& outcome,
                       const LayoutOptions& options) {
  const std::vector<LayoutBuffer> buffers = buffers_of_order(graph, outcome.order);
  LayoutResult result;
  if (buffers.empty()) {
    result.proven = true;
  } else if (method == OrderMethod::roam) {
    SPILLWAY_ASSERT(outcome.roam && outcome.roam->offsets.size() == buffers.size());
    result.offsets = outcome.roam->offsets;
    result.height = outcome.roam->height_bytes - graph.constant_bytes;
    result.lower_bound = max_live(buffers);
    result.proven = result.height == result.lower_bound;
  } else if (method == OrderMethod::lescea) {
    result = longest_lived_first(buffers);
  } else if (method == OrderMethod::best) {
    result = lay_out_step(buffers, options);
  } else {
    result = solve_layout(buffers, options);
  }
  check_result(buffers, result);
  return result;
}

}  // namespace spillway::planners
