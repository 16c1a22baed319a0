// Random steps for property tests: kernels on up to three lanes that read and write tensors, some in place, with
// events, waits, synchronisations and blocking copies between them; with memory events of their own, or with uses
// alone.
#pragma once

#include <string>
#include <vector>

#include "base/splitmix64.h"
#include "traces/trace.h"

namespace spillway::planners {

class RandomTrace {
 public:
  explicit RandomTrace(SplitMix64& random) : random_(random) {}

  Trace make() {
    host_ = trace_.lane({.kind = LaneKind::host_thread, .number = 1});
    for (std::size_t l = 1 + below(3); l > 0; --l)
      streams_.push_back(trace_.lane(
          {.kind = LaneKind::stream, .device = 0, .number = static_cast<std::int64_t>(streams_.size()) + 1}));
    trace_.memory_size_is_requested = true;
    has_events_ = below(3) > 0;
    if (below(4) == 0) trace_.steps.push_back({.name = trace_.strings.intern("a")});
    for (std::size_t w = below(4); w > 0; --w) allocate();
    has_steps_ = !trace_.steps.empty();
    const std::size_t works = 1 + below(20);
    for (std::size_t i = 0; i < works; ++i) {
      if (has_steps_ && below(8) == 0) trace_.steps.push_back({.name = trace_.strings.intern("b")});
      if (below(8) == 0) wait_or_mark();
      work();
      drop_some();
    }
    if (below(2) == 0)
      while (!live_.empty() && below(8) > 0) release(below(live_.size()));
    trace_.set(Capability::uses);
    trace_.set(Capability::times);
    if (has_events_) trace_.set(Capability::memory);
    return std::move(trace_);
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.next() % n); }

  OpId call(OpKind kind) {
    const Picos lasts = microseconds(1 + static_cast<std::int64_t>(below(5)));
    const OpId op =
        trace_.append_op({.name = trace_.strings.intern("call"),
                          .kind = kind,
                          .lane = host_,
                          .step = has_steps_ ? static_cast<std::uint16_t>(trace_.steps.size() - 1) : no_index16,
                          .start = clock_,
                          .duration = lasts});
    clock_ += lasts + microseconds(static_cast<std::int64_t>(below(3)));
    return last_call_ = op;
  }

  void allocate() {
    const auto tensor = TensorId(static_cast<std::uint32_t>(trace_.tensors.size()));
    const Bytes bytes(static_cast<std::int64_t>(1 + below(below(3) == 0 ? 100 : 5000)));
    trace_.tensors.name.push_back(trace_.strings.intern("t" + std::to_string(index_of(tensor))));
    trace_.tensors.bytes.push_back(bytes);
    trace_.tensors.storage.push_back(static_cast<std::uint32_t>(index_of(tensor)));
    trace_.tensors.role.push_back(TensorRole::unknown);
    trace_.tensors.dtype.push_back({});
    live_.push_back(tensor);
    event(tensor, MemoryAction::allocate);
  }
  void release(std::size_t which) {
    event(live_[which], MemoryAction::free_requested);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void drop_some() {
    for (std::size_t i = live_.size(); i-- > 0;)
      if (below(5) == 0) release(i);
  }
  void event(TensorId tensor, MemoryAction action) {
    if (!has_events_) return;
    MemoryEvent row;
    row.address = Addr((index_of(tensor) + 1) << 16U);
    row.bytes = trace_.tensors.bytes[index_of(tensor)];
    row.anchor = last_call_;
    row.tensor = tensor;
    row.action = action;
    row.stream = streams_.front();
    trace_.memory_events.push_back(row);
  }

  void work() {
    std::vector<TensorId> reads, writes;
    for (std::size_t r = below(4); r > 0 && !live_.empty(); --r) reads.push_back(live_[below(live_.size())]);
    if (below(4) == 0 && !live_.empty()) {
      writes.push_back(live_[below(live_.size())]);
    } else {
      for (std::size_t w = 1 + below(2); w > 0; --w) {
        allocate();
        writes.push_back(live_.back());
      }
    }
    if (below(6) == 0) call(OpKind::host_work);
    const OpId by = call(OpKind::launch);
    const bool blocks = below(16) == 0;
    if (blocks) trace_.ops.flags[index_of(by)] = static_cast<std::uint8_t>(OpFlag::blocking);
    const OpId op = trace_.append_op({.name = trace_.strings.intern("k" + std::to_string(trace_.ops.size())),
                                      .kind = blocks ? OpKind::copy_device_to_host : OpKind::kernel,
                                      .lane = streams_[below(streams_.size())],
                                      .step = trace_.ops.step[index_of(by)],
                                      .start = clock_,
                                      .duration = microseconds(static_cast<std::int64_t>(1 + below(20))),
                                      .launched_by = by});
    for (const TensorId tensor : reads) trace_.uses.push_back({op, tensor, Access::read});
    for (const TensorId tensor : writes) trace_.uses.push_back({op, tensor, Access::write});
    if (below(6) == 0 && last_work_ != OpId::none) trace_.edges.push_back({.from = last_work_, .to = op});
    last_work_ = op;
  }

  void wait_or_mark() {
    switch (below(4)) {
      case 0:
        call(OpKind::device_sync);
        break;
      case 1:
        trace_.syncs.push_back({.op = call(OpKind::stream_sync), .lane = streams_[below(streams_.size())]});
        break;
      case 2:
        record_ = call(OpKind::event_record);
        trace_.syncs.push_back({.op = record_, .lane = streams_[below(streams_.size())]});
        break;
      default:
        if (record_ == OpId::none) return;
        trace_.syncs.push_back(
            {.op = call(OpKind::stream_wait), .lane = streams_[below(streams_.size())], .event = record_});
    }
  }

  SplitMix64& random_;
  Trace trace_;
  LaneId host_ = LaneId::none;
  std::vector<LaneId> streams_;
  std::vector<TensorId> live_;
  OpId last_call_ = OpId::none, last_work_ = OpId::none, record_ = OpId::none;
  Picos clock_{};
  bool has_events_ = false, has_steps_ = false;
};

inline Trace random_trace(SplitMix64& random) { return RandomTrace(random).make(); }

}  // namespace spillway::planners
