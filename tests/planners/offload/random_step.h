// Random training steps for property tests: passes of forward and backward ops, one after the other or interleaved,
// whose tensors are kept for the backward, dropped in the forward, or live beyond the step.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/splitmix64.h"
#include "traces/trace.h"

namespace spillway::planners {

class RandomStep {
 public:
  RandomStep(SplitMix64& random, std::size_t most_streams) : random_(random), most_streams_(most_streams) {}

  Trace make() {
    host_ = trace_.lane({.kind = LaneKind::host_thread, .number = 1});
    for (std::size_t s = 1 + below(most_streams_); s > 0; --s)
      streams_.push_back(trace_.lane(
          {.kind = LaneKind::stream, .device = 0, .number = static_cast<std::int64_t>(streams_.size()) + 1}));
    trace_.memory_size_is_requested = true;
    trace_.steps.push_back({.name = trace_.strings.intern("step")});
    has_starts_ = below(2) == 0;
    names_layers_ = below(4) > 0;
    layers_ = 1 + below(4);
    order_passes();
    emit();
    for (const Capability has : {Capability::times, Capability::memory, Capability::uses, Capability::phases})
      trace_.set(has);
    return std::move(trace_);
  }

 private:
  struct Planned {
    Phase phase = Phase::forward;
    std::uint16_t layer = no_index16, micro_batch = 0;
    std::vector<std::size_t> reads, writes;  // tensors
  };

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.next() % n); }

  std::size_t tensor(TensorRole role, const std::string& name) {
    static constexpr std::array<std::int64_t, 4> scales = {1 << 10, 1 << 18, 1 << 23, 1 << 26};
    trace_.tensors.name.push_back(trace_.strings.intern(name));
    trace_.tensors.bytes.push_back(Bytes(scales[below(4)] + static_cast<std::int64_t>(below(1 << 20))));
    trace_.tensors.storage.push_back(static_cast<std::uint32_t>(trace_.tensors.storage.size()));
    trace_.tensors.role.push_back(role);
    trace_.tensors.dtype.push_back(below(2) == 0 ? StringId{} : trace_.strings.intern("bfloat16"));
    return trace_.tensors.size() - 1;
  }

  void order_passes() {
    const std::size_t passes = 1 + below(3);
    std::vector<std::vector<Planned>> forwards, backwards;
    for (std::size_t l = 0; l < layers_; ++l)
      weights_.push_back(tensor(TensorRole::weight, "layers." + std::to_string(l) + ".weight"));
    for (std::size_t p = 0; p < passes; ++p) make_pass(static_cast<std::uint16_t>(p), forwards, backwards);
    const auto take = [this](const std::vector<Planned>& ops) { ops_.insert(ops_.end(), ops.begin(), ops.end()); };
    const std::size_t ahead = below(2) == 0 ? 1 : passes;  // forwards before the first backward
    for (std::size_t p = 0; p < passes + ahead - 1; ++p) {
      if (p < passes) take(forwards[p]);
      if (p + 1 >= ahead) take(backwards[p + 1 - ahead]);
    }
    Planned update{Phase::optimizer, no_index16, no_index16, weights_, weights_};
    if (below(2) == 0) ops_.push_back(update);
  }

  void make_pass(std::uint16_t number, std::vector<std::vector<Planned>>& forwards,
                 std::vector<std::vector<Planned>>& backwards) {
    std::vector<Planned> forward, backward;
    std::size_t before = tensor(TensorRole::activation, "embedding.out");
    forward.push_back({Phase::forward, no_index16, number, {}, {before}});
    std::vector<Planned> reversed;
    for (std::size_t l = 0; l < layers_; ++l)
      for (std::size_t k = 1 + below(3); k > 0; --k) {
        const std::string name = "layers." + std::to_string(l) + (below(2) == 0 ? ".mlp" : ".attention") + ".op" +
                                 std::to_string(k) + ".out";
        const std::size_t made = tensor(TensorRole::activation, name);
        const std::uint16_t layer = names_layers_ ? static_cast<std::uint16_t>(l) : no_index16;
        Planned op{Phase::forward, layer, number, {before, weights_[l]}, {made}};
        if (below(4) == 0) op.writes.push_back(tensor(TensorRole::temporary, "workspace"));
        forward.push_back(op);
        Planned again{Phase::backward, layer, number, {weights_[l]}, {}};
        if (below(3) > 0) again.reads.push_back(before);
        if (below(3) == 0) again.reads.push_back(made);
        if (below(8) == 0) again.reads.push_back(forward[below(forward.size())].writes.front());
        reversed.push_back(again);
        before = made;
      }
    std::size_t gradient = tensor(TensorRole::temporary, "loss");
    forward.push_back({Phase::forward, no_index16, number, {before}, {gradient}});
    while (!reversed.empty()) {
      Planned op = reversed.back();
      reversed.pop_back();
      op.reads.push_back(gradient);
      op.writes.push_back(gradient = tensor(TensorRole::temporary, "gradient"));
      backward.push_back(op);
    }
    forwards.push_back(std::move(forward));
    backwards.push_back(std::move(backward));
  }

  void event(std::size_t tensor, MemoryAction action, OpId anchor) {
    MemoryEvent row;
    row.address = Addr((tensor + 1) << 32U);
    row.bytes = trace_.tensors.bytes[tensor];
    row.anchor = anchor;
    row.tensor = TensorId(static_cast<std::uint32_t>(tensor));
    row.action = action;
    row.stream = streams_.front();
    trace_.memory_events.push_back(row);
  }

  // Memory is taken before a tensor's first op is launched, and given back behind the launch of its last.
  void emit() {
    std::vector<std::size_t> first(trace_.tensors.size(), ops_.size()), last(trace_.tensors.size(), 0);
    for (std::size_t i = 0; i < ops_.size(); ++i)
      for (const auto* list : {&ops_[i].reads, &ops_[i].writes})
        for (const std::size_t t : *list) {
          first[t] = std::min(first[t], i);
          last[t] = i;
        }
    for (const std::size_t t : weights_) event(t, MemoryAction::allocate, OpId::none);
    OpId latest = call(OpKind::host_work, Phase::unknown, no_index16, no_index16);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      for (std::size_t t = 0; t < first.size(); ++t)
        if (first[t] == i && !is_weight(t)) event(t, MemoryAction::allocate, latest);
      latest = run(ops_[i]);
      for (std::size_t t = 0; t < first.size(); ++t)
        if (last[t] == i && first[t] < ops_.size() && !is_weight(t)) event(t, MemoryAction::free_requested, latest);
    }
  }
  [[nodiscard]] bool is_weight(std::size_t tensor) const { return tensor < weights_.size(); }

  OpId call(OpKind kind, Phase phase, std::uint16_t layer, std::uint16_t micro_batch) {
    const Picos lasts = microseconds(1 + static_cast<std::int64_t>(below(5)));
    const OpId op = trace_.append_op({.name = trace_.strings.intern("call"),
                                      .kind = kind,
                                      .phase = phase,
                                      .lane = host_,
                                      .layer = layer,
                                      .micro_batch = micro_batch,
                                      .step = 0,
                                      .start = has_starts_ ? clock_ : unknown_time,
                                      .duration = lasts});
    clock_ += lasts + microseconds(static_cast<std::int64_t>(below(3)));
    return op;
  }

  OpId run(const Planned& planned) {
    const OpId by = call(OpKind::launch, planned.phase, planned.layer, planned.micro_batch);
    OpRow row = trace_.op(by);
    row.name = trace_.strings.intern("kernel");
    row.kind = OpKind::kernel;
    row.lane = streams_[below(8) == 0 ? below(streams_.size()) : 0];
    row.start = unknown_time;
    row.duration = microseconds(static_cast<std::int64_t>(1 + below(below(2) == 0 ? 100 : 20'000)));
    row.launched_by = by;
    const OpId op = trace_.append_op(row);
    for (const std::size_t t : planned.reads)
      trace_.uses.push_back({op, TensorId(static_cast<std::uint32_t>(t)), Access::read});
    for (const std::size_t t : planned.writes)
      trace_.uses.push_back({op, TensorId(static_cast<std::uint32_t>(t)), Access::write});
    if (previous_ != OpId::none) trace_.edges.push_back({.from = previous_, .to = op});
    previous_ = op;
    return by;
  }

  SplitMix64& random_;
  std::size_t most_streams_;
  Trace trace_;
  LaneId host_ = LaneId::none;
  std::vector<LaneId> streams_;
  std::vector<std::size_t> weights_;  // the first tensors
  std::vector<Planned> ops_;
  std::size_t layers_ = 1;
  bool has_starts_ = false, names_layers_ = true;
  Picos clock_{};
  OpId previous_ = OpId::none;
};

inline Trace random_step(SplitMix64& random, std::size_t most_streams) {
  return RandomStep(random, most_streams).make();
}

}  // namespace spillway::planners
