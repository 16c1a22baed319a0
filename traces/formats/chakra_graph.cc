#include "traces/formats/chakra_graph.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/input_error.h"
#include "traces/acyclic.h"
#include "traces/formats/python_values.h"
#include "traces/lane_index.h"
#include "traces/operator_kind.h"
#include "traces/tensor_lives.h"

namespace spillway::traces {
namespace {

constexpr std::uint64_t max_duration_us = 9'000'000'000'000;  // 9e12 us are 9e18 ps
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 60;

// CollectiveCommType of the schema; what spillway has no word for stays unknown.
CollectiveKind collective_kind(std::uint64_t comm_type) {
  constexpr std::array<CollectiveKind, 10> kinds = {CollectiveKind::all_reduce,     CollectiveKind::reduce,
                                                    CollectiveKind::all_gather,     CollectiveKind::unknown,
                                                    CollectiveKind::unknown,        CollectiveKind::broadcast,
                                                    CollectiveKind::all_to_all,     CollectiveKind::reduce_scatter,
                                                    CollectiveKind::reduce_scatter, CollectiveKind::barrier};
  return comm_type < kinds.size() ? kinds[static_cast<std::size_t>(comm_type)] : CollectiveKind::unknown;
}

OpKind device_kind(const ChakraNode& node) {
  if (node.name.starts_with("Memcpy HtoD")) return OpKind::copy_host_to_device;
  if (node.name.starts_with("Memcpy DtoH")) return OpKind::copy_device_to_host;
  if (node.name.starts_with("Memcpy DtoD")) return OpKind::copy_device_to_device;
  if (node.name.starts_with("Memcpy PtoP")) return OpKind::copy_peer;
  if (node.name.starts_with("Memset")) return OpKind::memset;
  return OpKind::kernel;
}

OpKind kind_of(const ChakraNode& node) {
  if (node.is_cpu) return OpKind::host_work;
  switch (node.type) {
    case ChakraType::memory_load:
      return OpKind::copy_host_to_device;
    case ChakraType::memory_store:
      return OpKind::copy_device_to_host;
    case ChakraType::send:
    case ChakraType::receive:
    case ChakraType::collective:
      return OpKind::collective;
    case ChakraType::invalid:
    case ChakraType::metadata:
    case ChakraType::compute:
      break;
  }
  return device_kind(node);
}

class ChakraBuilder {
 public:
  ChakraBuilder(std::vector<ChakraNode> nodes, Provenance provenance) : nodes_(std::move(nodes)) {
    trace_.source_events = nodes_.size();
    trace_.provenance.push_back(std::move(provenance));
  }

  Trace build() {
    drop_unusable();
    std::stable_sort(nodes_.begin(), nodes_.end(),
                     [](const ChakraNode& a, const ChakraNode& b) { return a.id < b.id; });
    index_ids();
    order();
    note_times();
    for (const std::size_t node : order_) append(nodes_[node]);
    make_edges();
    check_acyclic(trace_);
    make_uses();
    trace_.set(Capability::times, !has_starts_);
    trace_.set(Capability::edges);
    if (!trace_.uses.empty()) trace_.set(Capability::uses, true);
    trace_.check_invariants();
    return std::move(trace_);
  }

 private:
  static std::string describe(const ChakraNode& node) {
    return "node " + std::to_string(node.id) + " \"" + node.name.substr(0, 60) + "\"";
  }

  void drop_unusable() {
    std::erase_if(nodes_, [&](const ChakraNode& node) {
      if (node.type != ChakraType::metadata && node.type != ChakraType::invalid) return false;
      trace_.note("node_without_work", describe(node), "metadata and invalid nodes do nothing; left out", false);
      return true;
    });
  }

  void index_ids() {
    std::vector<ChakraNode> unique;
    for (ChakraNode& node : nodes_) {
      if (!by_id_.emplace(node.id, unique.size()).second) {
        trace_.note("repeated_node_id", describe(node), "a second node of the same number; left out", true);
        continue;
      }
      unique.push_back(std::move(node));
    }
    nodes_ = std::move(unique);
  }

  // Calls back with (node waited for, is data); unknown ids and the node itself are passed over.
  template <class Visit>
  void for_dependencies(const ChakraNode& node, const Visit& visit) const {
    for (const bool is_data : {true, false})
      for (const std::uint64_t id : is_data ? node.data : node.control)
        if (const auto found = by_id_.find(id); found != by_id_.end() && id != node.id) visit(found->second, is_data);
  }

  // Smallest id first among those whose dependencies are done. Real files contain control dependencies that
  // contradict the data dependencies or each other (an operator made to wait for its own kernels); when nothing
  // else can go on, the smallest node that waits for control alone goes, and what it waited for is not kept.
  // Nodes on a cycle of data come last, for check_acyclic.
  void order() {
    std::vector<std::vector<std::pair<std::size_t, bool>>> next(nodes_.size());
    std::vector<std::size_t> waits_data(nodes_.size(), 0), waits_control(nodes_.size(), 0);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for_dependencies(nodes_[i], [&](std::size_t from, bool is_data) {
        next[from].emplace_back(i, is_data);
        ++(is_data ? waits_data : waits_control)[i];
      });
    std::set<std::pair<bool, std::size_t>> ready;  // (waits for control, node) of those that wait for no data
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (waits_data[i] == 0) ready.emplace(waits_control[i] != 0, i);
    std::vector<bool> done(nodes_.size(), false);
    while (!ready.empty()) {
      const std::size_t i = ready.begin()->second;
      ready.erase(ready.begin());
      order_.push_back(i);
      done[i] = true;
      for (const auto& [after, is_data] : next[i]) {
        if (done[after]) continue;
        if (waits_data[after] == 0) ready.erase({waits_control[after] != 0, after});
        --(is_data ? waits_data : waits_control)[after];
        if (waits_data[after] == 0) ready.emplace(waits_control[after] != 0, after);
      }
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!done[i]) order_.push_back(i);
    op_of_.assign(nodes_.size(), OpId::none);
    for (std::size_t i = 0; i < order_.size(); ++i) op_of_[order_[i]] = static_cast<OpId>(i);
  }

  void note_times() {
    base_us_ = UINT64_MAX;
    for (const ChakraNode& node : nodes_) {
      has_starts_ |= node.start_us != 0;
      base_us_ = std::min(base_us_, node.start_us);
    }
    if (!has_starts_ && !nodes_.empty())
      trace_.note("no_start_times", "", "every start time is 0: durations and dependencies are known, idle time is not",
                  false);
  }

  Picos picos(std::uint64_t us, const ChakraNode& node) {
    if (us <= max_duration_us) return microseconds(static_cast<std::int64_t>(us));
    trace_.note("time_out_of_range", describe(node), "longer than 104 days; taken as unknown", false);
    return unknown_time;
  }

  void append(const ChakraNode& node) {
    const OpKind kind = kind_of(node);
    OpRow row{.name = trace_.strings.intern(node.name), .kind = kind};
    const bool communicates = kind == OpKind::collective;
    const LaneKind lane = kind == OpKind::host_work ? LaneKind::host_thread
                          : communicates            ? LaneKind::communication
                                                    : LaneKind::stream;
    const std::string lane_name = (lane == LaneKind::host_thread ? "thread " : "stream ") + std::to_string(node.thread);
    row.lane = lanes_.lane({.kind = lane,
                            .device = static_cast<std::int16_t>(kind == OpKind::host_work ? -1 : 0),
                            .number = node.thread,
                            .name = trace_.strings.intern(lane_name)});
    row.duration = picos(node.duration_us, node);
    if (has_starts_) row.start = picos(node.start_us - base_us_, node);
    if (communicates) row.phase = Phase::communication;
    if (node.bytes <= max_bytes) row.bytes = Bytes(static_cast<std::int64_t>(node.bytes));
    const OpId op = trace_.append_op(row);
    if (communicates) {
      CollectiveKind collective =
          node.has_comm_type ? collective_kind(node.comm_type) : collective_kind_of_name(node.name);
      if (node.type == ChakraType::send) collective = CollectiveKind::send;
      if (node.type == ChakraType::receive) collective = CollectiveKind::receive;
      trace_.collectives.push_back({.op = op, .kind = collective, .bytes = row.bytes});
    }
  }

  void make_edges() {
    for (const std::size_t i : order_) {
      const ChakraNode& node = nodes_[i];
      for_dependencies(node, [&](std::size_t from, bool is_data) {
        if (!is_data && op_of_[from] > op_of_[i])
          return trace_.note("contradicting_ctrl_deps", describe(node) + " waits for " + describe(nodes_[from]),
                             "a control dependency against the order of the data; left out", true);
        trace_.edges.push_back(
            {.from = op_of_[from], .to = op_of_[i], .kind = is_data ? EdgeKind::data : EdgeKind::control});
      });
      note_unusable(node, node.data, "dangling_data_deps");
      note_unusable(node, node.control, "dangling_ctrl_deps");
    }
  }

  void note_unusable(const ChakraNode& node, const std::vector<std::uint64_t>& ids, std::string_view kind) {
    for (const std::uint64_t id : ids)
      if (id == node.id) {
        trace_.note("self_dependency", describe(node), "a node that waits for itself; the dependency is left out",
                    true);
      } else if (!by_id_.contains(id)) {
        trace_.note(kind, describe(node) + " waits for " + std::to_string(id),
                    "the node waited for is not in the file; the dependency is left out", true);
      }
  }

  // Device work repeats the tensors of the call that launched it; the call then counts as not using them.
  void make_uses() {
    std::vector<bool> launches(nodes_.size(), false);
    for (const ChakraNode& node : nodes_)
      if (!node.is_cpu)
        for (const std::uint64_t id : node.control)
          if (const auto found = by_id_.find(id); found != by_id_.end()) launches[found->second] = true;
    TensorLives lives(trace_, TensorLives::Link::leave_edges);
    for (const std::size_t i : order_) {
      if (nodes_[i].is_cpu && launches[i]) continue;
      const auto inputs = tensors_in_python_text(nodes_[i].input_values, trace_.strings);
      const auto outputs = tensors_in_python_text(nodes_[i].output_values, trace_.strings);
      lives.add(op_of_[i], inputs, {}, outputs);
    }
  }

  std::vector<ChakraNode> nodes_;
  Trace trace_;
  LaneIndex lanes_{trace_};
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::vector<std::size_t> order_;
  std::vector<OpId> op_of_;  // by node
  std::uint64_t base_us_ = 0;
  bool has_starts_ = false;
};

}  // namespace

Trace chakra_trace(std::vector<ChakraNode> nodes, Provenance provenance) {
  return ChakraBuilder(std::move(nodes), std::move(provenance)).build();
}

}  // namespace spillway::traces
