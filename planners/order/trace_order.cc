#include "planners/order/trace_order.h"

#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "planners/layout/emulated_layout.h"
#include "planners/layout/result_check.h"
#include "planners/order/order_check.h"
#include "planners/order/order_memo.h"
#include "planners/order/roam.h"
#include "planners/order/roam_branches.h"
#include "planners/order/roam_dag.h"
#include "planners/order/roam_layout.h"
#include "planners/order/roam_segments.h"
#include "sim/devices/memory/request_lives.h"
#include "sim/replay/plan_check.h"
#include "traces/host_order.h"

namespace spillway::planners {
namespace {

constexpr std::int64_t step = 512;
constexpr std::size_t most_roam_requests = 10'000;  // squared: seconds

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

// What lies on a device: requests first, then blocks from before the first event.
struct DeviceRequests {
  std::vector<LayoutBuffer> buffers;
  std::size_t requests = 0;
};
DeviceRequests requests_of(const Trace& trace, std::int16_t device) {
  DeviceRequests all;
  const auto add = [&](const RequestLife& life) {
    all.buffers.push_back({.lower = life.lower,
                           .upper = life.upper,
                           .size = (life.bytes.count() + step - 1) / step * step,
                           .alignment = step});
  };
  for (const RequestLife& life : request_lives(trace, device)) add(life);
  all.requests = all.buffers.size();
  for (const RequestLife& life : lives_before(trace, device)) add(life);
  return all;
}

MemoryPlan placed(const Trace& trace, std::int16_t device, const DeviceRequests& all,
                  const std::vector<std::int64_t>& offsets, std::int64_t height) {
  MemoryPlan plan;
  plan.kind = PlanKind::layout;
  plan.pool = Bytes(height);
  for (std::size_t i = 0; i < all.buffers.size(); ++i)
    (i < all.requests ? plan.places : plan.before).push_back({Bytes(offsets[i]), Bytes(all.buffers[i].size)});
  const PlanVerdict verdict = check_placement(trace, device, plan, Bytes(0));
  SPILLWAY_ASSERT(verdict.sound());
  return plan;
}

void require_tensors_stay(const Trace& trace) {
  std::vector<bool> made(trace.tensors.size());
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.action != MemoryAction::allocate) continue;
    if (made[index_of(event.tensor)])
      throw InputError("", "memory", "tensors leave and come back: ROAM's layout is of a graph with tensors that stay",
                       "take another layout: memory.allocator=" + std::string(layout_word));
    made[index_of(event.tensor)] = true;
  }
}

// ROAM's subgraph tree in the time of requests: memory events of the device.
struct RoamNest {
  std::vector<RoamLeaf> leaves;
  std::size_t loss = 0;
};

// By operator of the graph in its program's order, and behind the last: the events of its device before it.
std::vector<std::size_t> events_before(const Trace& trace, const TraceOrderGraph& rank,
                                       const std::vector<OperatorIndex>& order) {
  std::vector<std::size_t> place(trace.ops.size()), of_place(trace.ops.size() + 1);
  const std::vector<OpId> issued = host_order(trace);
  for (std::size_t i = 0; i < issued.size(); ++i) place[index_of(issued[i])] = i;
  std::size_t events = 0, at = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != rank.device) continue;
    if (event.anchor != OpId::none) at = std::max(at, place[index_of(event.anchor)]);
    of_place[at + 1] = ++events;
  }
  for (std::size_t i = 1; i < of_place.size(); ++i) of_place[i] = std::max(of_place[i], of_place[i - 1]);
  std::vector<std::size_t> before;
  for (const OperatorIndex op : order) {
    const OpId head = rank.heads[op];
    const std::size_t last = before.empty() ? 0 : before.back();
    before.push_back(std::max(last, head == OpId::none ? last : of_place[place[index_of(head)]]));
  }
  if (!before.empty()) before.front() = 0;
  before.push_back(events + 1);
  return before;
}

RoamNest nest_of(const Trace& trace, const TraceOrderGraph& rank) {
  const std::size_t node_limit = RoamOptions().node_limit;
  const std::vector<OperatorIndex> order = legal_order(rank.graph);
  const RoamDag dag(rank.graph);
  const OperatorIndex loss = find_branches(rank.graph, dag).loss;
  const auto position = static_cast<std::size_t>(std::find(order.begin(), order.end(), loss) - order.begin());
  RoamNest nest{subgraph_tree(key_positions(dag, order), position, order.size(), node_limit), 0};
  const std::vector<std::size_t> before = events_before(trace, rank, order);
  nest.loss = before[position];
  for (RoamLeaf& leaf : nest.leaves)
    leaf = {before[leaf.forward_begin], before[leaf.forward_end], before[leaf.backward_begin],
            before[leaf.backward_end]};
  return nest;
}

}  // namespace

LayoutResult lay_out_requests(const Trace& trace, std::int16_t device, const LayoutOptions& options, MemoryPlan& plan) {
  const DeviceRequests all = requests_of(trace, device);
  LayoutResult layout = lay_out_step(all.buffers, options);
  check_result(all.buffers, layout);
  plan = placed(trace, device, all, layout.offsets, layout.height);
  plan.technique = layout_word;
  return layout;
}

std::map<std::int16_t, MemoryPlan> roam_places(const Trace& trace) {
  std::map<std::int16_t, MemoryPlan> plans;
  require_tensors_stay(trace);
  for (const TraceOrderGraph& rank : order_graphs_of(trace)) {
    const DeviceRequests all = requests_of(trace, rank.device);
    if (all.buffers.size() > most_roam_requests)
      throw InputError("", "memory", "ROAM's layout of so many requests would take hours",
                       "take another layout: memory.allocator=" + std::string(layout_word));
    const RoamNest nest = nest_of(trace, rank);
    const RoamLayout layout = roam_layout(all.buffers, nest.leaves, nest.loss);
    MemoryPlan& plan = plans[rank.device] = placed(trace, rank.device, all, layout.offsets, layout.height);
    plan.technique = roam_layout_word;
  }
  return plans;
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
    rank.order = (options.recall ? known_order : order_by)(options.method, rank.graph.graph, method);
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
