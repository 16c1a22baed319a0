#include "planners/order/trace_order.h"

#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "planners/layout/emulated_layout.h"
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

// With fates the graphs' own count is all there is: when tensors are away is a replay's business.
void count_peaks(const Trace& trace, bool has_fates, TraceOrder& found) {
  const Trace as_written = has_fates ? Trace() : reordered(trace, program_order(trace));
  for (RankOrder& rank : found.ranks) {
    const std::int16_t device = rank.graph.device;
    const bool has_stream =
        std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                    [&](const MemoryEvent& e) { return e.device == device && e.address != Addr(0); });
    if (has_stream) rank.recorded_peak = peak_of(request_lives(trace, device));
    const OrderGraph& graph = rank.graph.graph;
    rank.program_peak =
        has_fates ? peak_of_order(graph, legal_order(graph)) : peak_of(request_lives(as_written, device));
    if (!has_fates) rank.peak = peak_of(request_lives(found.trace, device));
  }
}

}  // namespace

LayoutResult lay_out_requests(const Trace& trace, std::int16_t device, const LayoutOptions& options, MemoryPlan& plan) {
  std::vector<LayoutBuffer> buffers;
  const auto add = [&](const RequestLife& life) {
    buffers.push_back({.lower = life.lower,
                       .upper = life.upper,
                       .size = (life.bytes.count() + step - 1) / step * step,
                       .alignment = step});
  };
  for (const RequestLife& life : request_lives(trace, device)) add(life);
  const std::size_t requests = buffers.size();
  for (const RequestLife& life : lives_before(trace, device)) add(life);
  LayoutResult layout = lay_out_step(buffers, options);
  check_result(buffers, layout);
  plan.technique = layout_word;
  plan.kind = PlanKind::layout;
  plan.pool = Bytes(layout.height);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    (i < requests ? plan.places : plan.before).push_back({Bytes(layout.offsets[i]), Bytes(buffers[i].size)});
  const PlanVerdict verdict = check_placement(trace, device, plan, Bytes(0));
  SPILLWAY_ASSERT(verdict.sound());
  return layout;
}

const RankOrder& TraceOrder::widest() const {
  return *std::max_element(ranks.begin(), ranks.end(),
                           [](const RankOrder& a, const RankOrder& b) { return a.peak < b.peak; });
}

TraceOrder plan_order(const Trace& trace, const TraceOrderOptions& options) {
  TraceOrder result;
  OrderPlan& plan = result.plan.order.emplace();
  plan.technique = options.method == OrderMethod::best ? order_word : to_string(options.method);
  OrderMethodOptions method = options.order;
  method.roam.layout = false;
  for (TraceOrderGraph& graph : order_graphs_of(trace, options.fates)) {
    RankOrder& rank = result.ranks.emplace_back();
    rank.graph = std::move(graph);
    rank.order = order_by(options.method, rank.graph.graph, method);
    SPILLWAY_ASSERT(check_order(rank.graph.graph, rank.order.order).legal());
    add_order(rank.graph, rank.order.order, plan);
    rank.peak = rank.order.peak_bytes;
  }
  Reordered found = reorder(trace, plan, options.fates);
  if (options.fates != nullptr) result.fates = moved_fates(trace, found, *options.fates);
  result.trace = std::move(found.trace);
  count_peaks(trace, options.fates != nullptr, result);
  if (!options.layout) return result;
  SPILLWAY_ASSERT(options.fates == nullptr);
  for (const RankOrder& rank : result.ranks) {
    const std::int16_t device = rank.graph.device;
    result.layouts[device] = lay_out_requests(result.trace, device, options.layout_options, result.plan.memory[device]);
  }
  return result;
}

}  // namespace spillway::planners
