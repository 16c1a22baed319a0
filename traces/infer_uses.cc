#include "traces/infer_uses.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "traces/span_tree.h"

namespace spillway::traces {
namespace {

constexpr std::uint32_t no_group = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t last_pass = no_index16 - 1;  // passes beyond share it

enum class Side : std::uint8_t { neither, forward, backward, optimizer };

Side side_of(Phase phase) {
  if (phase == Phase::forward) return Side::forward;
  if (phase == Phase::optimizer) return Side::optimizer;
  return phase == Phase::backward || phase == Phase::recompute ? Side::backward : Side::neither;
}

// When the host issued an op: recorded start of its host call, then its column.
struct Issue {
  Picos time{};
  OpId call = OpId::none;
  friend bool operator<(const Issue& a, const Issue& b) { return a.time != b.time ? a.time < b.time : a.call < b.call; }
};

Issue issue_of(const Trace& trace, OpId op) {
  const OpId by = trace.ops.launched_by[index_of(op)];
  const OpId call = by == OpId::none ? op : by;
  return {trace.ops.start[index_of(call)], call};
}

struct Work {
  Issue issue;
  OpId op = OpId::none;
  Side side = Side::neither;
  std::uint16_t pass = 0;
  std::uint32_t group = no_group;  // of the pass's forward; of a backward op: that whose backward it is
};
using DeviceWorks = std::map<std::pair<std::uint16_t, std::int16_t>, std::vector<Work>>;  // by rank and device

// In the order of their issue, with their passes.
DeviceWorks works_of(const Trace& trace) {
  DeviceWorks devices;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const auto op = OpId(static_cast<std::uint32_t>(i));
    if (!is_device_work(trace.ops.kind[i])) continue;
    const Lane& lane = trace.lanes[index_of(trace.ops.lane[i])];
    devices[{lane.rank, lane.device}].push_back({issue_of(trace, op), op, side_of(trace.ops.phase[i])});
  }
  for (auto& [device, works] : devices) {
    std::stable_sort(works.begin(), works.end(), [](const Work& a, const Work& b) { return a.issue < b.issue; });
    Side latest = Side::neither;
    std::uint16_t pass = 0;
    for (Work& work : works) {
      if (work.side == Side::forward && latest == Side::backward && pass < last_pass) ++pass;
      if (work.side == Side::forward || work.side == Side::backward) latest = work.side;
      work.pass = pass;
    }
  }
  return devices;
}

void number_passes(Trace& trace, const DeviceWorks& devices) {
  std::vector<std::uint16_t>& micro_batch = trace.ops.micro_batch;
  if (std::any_of(micro_batch.begin(), micro_batch.end(), [](std::uint16_t m) { return m != no_index16; })) return;
  for (const auto& [device, works] : devices)
    for (const Work& work : works) {
      if (work.side != Side::forward && work.side != Side::backward) continue;
      micro_batch[index_of(work.op)] = work.pass;
      micro_batch[index_of(work.issue.call)] = work.pass;
    }
}

// A block from its allocation to its free, as memory events.
struct Life {
  std::uint32_t allocated = 0, freed = 0;
  std::vector<std::uint32_t> events;
};

std::vector<Life> lives_of(const Trace& trace) {
  using Place = std::pair<std::int16_t, std::uint64_t>;
  std::vector<Life> lives;
  std::map<Place, std::uint32_t> live;     // allocation
  std::map<Place, std::size_t> completes;  // life given back whose completion is to come
  for (std::uint32_t e = 0; e < trace.memory_events.size(); ++e) {
    const MemoryEvent& event = trace.memory_events[e];
    if (event.device < 0 || event.address.count() == 0 || event.tensor != TensorId::none) continue;
    const Place place(event.device, event.address.count());
    if (event.action == MemoryAction::allocate) {
      live[place] = e;
      completes.erase(place);
      continue;
    }
    if (event.action != MemoryAction::free_requested && event.action != MemoryAction::free_completed) continue;
    if (const auto given_back = completes.find(place); given_back != completes.end()) {
      if (event.action == MemoryAction::free_completed) lives[given_back->second].events.push_back(e);
      completes.erase(given_back);
      continue;
    }
    const auto found = live.find(place);
    if (found == live.end()) continue;
    if (event.action == MemoryAction::free_requested) completes[place] = lives.size();
    lives.push_back({found->second, e, {found->second, e}});
    live.erase(found);
  }
  return lives;
}

class UseInference {
 public:
  explicit UseInference(Trace& trace) : trace_(trace), parents_(span_parents(trace)), devices_(works_of(trace)) {}

  void run() {
    number_passes(trace_, devices_);
    creators_ = find_creators();
    layered_ = creators_.empty();
    for (const std::uint32_t storage : trace_.tensors.storage) next_storage_ = std::max(next_storage_, storage + 1);
    std::map<std::int16_t, std::vector<Life>> lives;
    for (Life& life : lives_of(trace_)) lives[trace_.memory_events[life.allocated].device].push_back(std::move(life));
    for (auto& [device, works] : devices_) {
      const auto found = lives.find(device.second);
      if (found == lives.end()) continue;
      group_forward(works);
      group_backward(works);
      for (const Life& life : found->second) place(life, works);
    }
    std::stable_sort(trace_.uses.begin(), trace_.uses.end(), [](const Use& a, const Use& b) { return a.op < b.op; });
    trace_.set(Capability::uses, true);
  }

 private:
  // A node of autograd's graph: where the forward made it.
  struct Creator {
    Picos begin = unknown_time, end{};  // of the outermost operator around it
  };

  [[nodiscard]] bool is_node(SpanId span) const {
    const std::size_t s = index_of(span);
    return trace_.spans.kind[s] == SpanKind::cpu_operator &&
           is_autograd_node(trace_.strings.text(trace_.spans.name[s]));
  }
  // The outermost operator around an op, none for host calls outside of all.
  [[nodiscard]] SpanId operator_of(OpId op) const {
    SpanId found = SpanId::none;
    for (SpanId span = trace_.ops.span[index_of(op)]; span != SpanId::none; span = parents_[index_of(span)])
      if (trace_.spans.kind[index_of(span)] == SpanKind::cpu_operator) found = span;
    return found;
  }
  // The autograd sequence number of the node an op runs for; -1: none.
  [[nodiscard]] std::int64_t sequence_of(OpId op) const {
    std::int64_t sequence = -1;
    for (SpanId span = trace_.ops.span[index_of(op)]; span != SpanId::none; span = parents_[index_of(span)])
      if (is_node(span) && trace_.spans.sequence[index_of(span)] >= 0) sequence = trace_.spans.sequence[index_of(span)];
    return sequence;
  }

  // Numbers the groups of each pass's forward from 0, and notes where each layer's is.
  void group_forward(std::vector<Work>& works) {
    layer_group_.clear();
    std::pair<std::uint16_t, SpanId> latest{no_index16, SpanId::none};
    std::uint32_t pass = no_group, group = 0;
    for (Work& work : works) {
      if (work.side != Side::forward) continue;
      const std::uint16_t layer = layered_ ? trace_.ops.layer[index_of(work.op)] : no_index16;
      const std::pair key(layer, layer == no_index16 ? operator_of(work.op) : SpanId::none);
      if (work.pass != pass) {
        pass = work.pass;
        group = 0;
      } else if (key != latest || key == std::pair(no_index16, SpanId::none)) {
        ++group;
      }
      latest = key;
      work.group = group;
      if (layer != no_index16) layer_group_[{work.pass, layer}] = group;
    }
  }

  // A node's group is that of the last forward work launched before the operator that made it had ended; of a sequence
  // number that several operators bear, the last made the node.
  void group_backward(std::vector<Work>& works) {
    std::vector<const Work*> forward;
    std::map<std::uint16_t, std::uint32_t> latest;  // by pass; at first its last group
    for (const Work& work : works) {
      if (work.side != Side::forward) continue;
      forward.push_back(&work);
      latest[work.pass] = work.group;
    }
    for (Work& work : works) {
      if (work.side != Side::backward || !latest.contains(work.pass)) continue;
      std::uint32_t& group = latest.at(work.pass);
      if (const auto at = layer_group_.find({work.pass, trace_.ops.layer[index_of(work.op)]}); at != layer_group_.end())
        group = at->second;
      else if (const auto made = creators_.find(sequence_of(work.op)); made != creators_.end())
        group = group_before(forward, made->second.end, work.pass).value_or(group);
      work.group = group;
    }
  }

  [[nodiscard]] std::unordered_map<std::int64_t, Creator> find_creators() const {
    const Spans& spans = trace_.spans;
    std::unordered_map<std::int64_t, Creator> creators;
    std::vector<bool> in_node(spans.size(), false);
    std::vector<SpanId> outermost(spans.size(), SpanId::none);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto self = SpanId(static_cast<std::uint32_t>(i));
      const SpanId parent = parents_[i];
      in_node[i] = is_node(self) || (parent != SpanId::none && in_node[index_of(parent)]);
      outermost[i] = parent == SpanId::none ? SpanId::none : outermost[index_of(parent)];
      if (outermost[i] == SpanId::none && spans.kind[i] == SpanKind::cpu_operator) outermost[i] = self;
      if (in_node[i] || spans.sequence[i] < 0 || outermost[i] == SpanId::none) continue;
      Creator& creator = creators[spans.sequence[i]];
      const std::size_t outer = index_of(outermost[i]);
      if (creator.begin == unknown_time || spans.start[outer] >= creator.begin)
        creator = {spans.start[outer], spans.start[outer] + spans.duration[outer]};
    }
    return creators;
  }

  static std::optional<std::uint32_t> group_before(std::span<const Work* const> forward, Picos time,
                                                   std::uint16_t pass) {
    const auto after = std::lower_bound(forward.begin(), forward.end(), time,
                                        [](const Work* work, Picos t) { return work->issue.time < t; });
    if (after == forward.begin() || (*(after - 1))->pass != pass) return std::nullopt;
    return (*(after - 1))->group;
  }

  // The life's tensor and uses, if it is an activation kept for the backward.
  void place(const Life& life, std::span<const Work> works) {
    const OpId made = trace_.memory_events[life.allocated].anchor, freed = trace_.memory_events[life.freed].anchor;
    if (made == OpId::none || freed == OpId::none) return;
    const auto behind = [&](OpId anchor) {
      return std::upper_bound(works.begin(), works.end(), issue_of(trace_, anchor),
                              [](const Issue& issue, const Work& work) { return issue < work.issue; });
    };
    const auto writer = behind(made);
    auto end = behind(freed);
    while (end != works.begin() && (end - 1)->side == Side::neither) --end;
    if (writer >= end || writer->side != Side::forward) return;
    const Work& last = *(end - 1);
    if (last.side != Side::backward || last.pass != writer->pass || last.group == no_group) return;
    const std::uint32_t until = std::max(writer->group, last.group) + (layered_ ? 0U : 1U);
    const TensorId tensor = add_tensor(life, writer->op);
    trace_.uses.push_back({writer->op, tensor, Access::write});
    bool begun = false;  // the backward of the group
    for (auto work = writer + 1; work != end; ++work) {
      begun = begun || (work->side == Side::backward && work->group <= until);
      if (begun ? work->side == Side::backward : work->side == Side::forward && work->group <= until)
        trace_.uses.push_back({work->op, tensor, Access::read});
    }
  }

  TensorId add_tensor(const Life& life, OpId writer) {
    const SpanId made_in = operator_of(writer);
    Tensors& tensors = trace_.tensors;
    const auto tensor = TensorId(static_cast<std::uint32_t>(tensors.size()));
    const Bytes bytes = trace_.memory_events[life.allocated].bytes;
    tensors.name.push_back(made_in == SpanId::none ? trace_.ops.name[index_of(writer)]
                                                   : trace_.spans.name[index_of(made_in)]);
    tensors.bytes.push_back(bytes);
    tensors.storage.push_back(next_storage_++);
    tensors.role.push_back(TensorRole::activation);
    tensors.dtype.push_back(StringId{});
    for (const std::uint32_t event : life.events) trace_.memory_events[event].tensor = tensor;
    trace_.note("uses_inferred",
                std::string(trace_.strings.text(tensors.name.back())) + ", " + std::to_string(bytes.count()) + " bytes",
                "activations with uses that are inferred from when their memory was taken and given back; record an "
                "ExecutionTrace of the same step and join it for the real ones",
                false);
    return tensor;
  }

  Trace& trace_;
  std::vector<SpanId> parents_;
  DeviceWorks devices_;
  std::unordered_map<std::int64_t, Creator> creators_;                            // by sequence number
  bool layered_ = false;                                                          // no operator says its backward
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint32_t> layer_group_;  // by pass and layer
  std::uint32_t next_storage_ = 0;
};

}  // namespace

void infer_passes(Trace& trace) {
  if (trace.has(Capability::phases)) number_passes(trace, works_of(trace));
}

void infer_uses_instead(Trace& trace) {
  constexpr std::array needed = {Capability::times, Capability::memory, Capability::phases};
  trace.require(needed, "inferring which ops use the activations");
  trace.tensors = {};
  trace.uses.clear();
  for (MemoryEvent& event : trace.memory_events) event.tensor = TensorId::none;
  UseInference(trace).run();
}

void infer_uses(Trace& trace) {
  constexpr std::array needed = {Capability::times, Capability::memory, Capability::phases};
  trace.require(needed, "inferring which ops use the activations");
  if (trace.has(Capability::uses))
    throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, "uses", "they are recorded already",
                     "infer them only for traces without");
  UseInference(trace).run();
}

}  // namespace spillway::traces
