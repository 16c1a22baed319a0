#include "planners/order/trace_order.h"

#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "planners/layout/result_check.h"
#include "planners/order/order_check.h"
#include "sim/devices/memory/request_lives.h"
#include "sim/replay/plan_check.h"

namespace spillway::planners {
namespace {

constexpr std::int64_t step = 512;

std::int64_t peak_of(const std::vector<RequestLife>& lives) {
  std::vector<LayoutBuffer> buffers;
  for (const RequestLife& life : lives)
    buffers.push_back({.lower = life.lower, .upper = life.upper, .size = life.bytes.count()});
  return max_live(buffers);
}

}  // namespace

LayoutResult lay_out_requests(const Trace& trace, std::int16_t device, const LayoutOptions& options, MemoryPlan& plan) {
  std::vector<LayoutBuffer> buffers;
  for (const RequestLife& life : request_lives(trace, device))
    buffers.push_back({.lower = life.lower,
                       .upper = life.upper,
                       .size = (life.bytes.count() + step - 1) / step * step,
                       .alignment = step});
  LayoutResult layout = solve_layout(buffers, options);
  check_result(buffers, layout);
  plan.technique = layout_word;
  plan.kind = PlanKind::layout;
  plan.pool = Bytes(layout.height);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    plan.places.push_back({Bytes(layout.offsets[i]), Bytes(buffers[i].size)});
  const PlanVerdict verdict = check_placement(trace, device, plan, Bytes(0));
  SPILLWAY_ASSERT(verdict.sound());
  return layout;
}

TraceOrder plan_order(const Trace& trace, const TraceOrderOptions& options) {
  TraceOrder result;
  result.graph = order_graph_of(trace);
  result.order = solve_order(result.graph.graph, options.order);
  SPILLWAY_ASSERT(check_order(result.graph.graph, result.order.order).legal());
  result.plan.order = plan_of(result.graph, result.order.order);
  result.plan.order->technique = order_word;
  result.trace = reordered(trace, *result.plan.order);
  const std::int16_t device = result.graph.device;
  const bool has_stream = std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                                      [&](const MemoryEvent& e) { return e.device == device && e.address != Addr(0); });
  if (has_stream) result.recorded_peak = peak_of(request_lives(trace, device));
  result.program_peak = peak_of(request_lives(reordered(trace, program_order(trace)), device));
  result.peak = peak_of(request_lives(result.trace, device));
  if (options.layout)
    result.layout = lay_out_requests(result.trace, device, options.layout_options, result.plan.memory.emplace());
  return result;
}

}  // namespace spillway::planners
