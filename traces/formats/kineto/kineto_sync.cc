#include <algorithm>

#include "traces/formats/kineto/kineto_assemble.h"
#include "traces/lane_index.h"

namespace spillway::traces {
namespace {

// Recorded clocks of host and GPU agree to about a microsecond.
constexpr Picos clock_tolerance = microseconds(2);

class SyncResolver {
 public:
  SyncResolver(std::size_t host_ops, Trace& trace) : host_ops_(host_ops), trace_(trace) {
    first_work_.assign(host_ops, OpId::none);
    for (std::size_t i = trace.ops.size(); i-- > host_ops;)
      if (const OpId launch = trace.ops.launched_by[i]; launch != OpId::none)
        first_work_[index_of(launch)] = OpId(static_cast<std::uint32_t>(i));
    sync_of_.assign(host_ops, -1);
  }

  void take_recorded(const std::vector<KinetoSyncRow>& recorded, const std::vector<KinetoCallOfCorrelation>& op_of);
  void infer();
  void finish();

 private:
  struct Thread {
    OpId last_launch = OpId::none;  // that started work
    OpId last_record = OpId::none;
    std::vector<OpId> open_waits;  // whose waiter is not known yet
  };

  void infer_call(OpId op, Thread& thread);
  void settle_waits(OpId launch, Thread& thread);
  Sync& sync_for(OpId op, bool inferred);
  [[nodiscard]] bool has_sync(OpId op) const { return sync_of_[index_of(op)] >= 0; }
  [[nodiscard]] Picos end_of(OpId op) const {
    return trace_.ops.start[index_of(op)] + trace_.ops.duration[index_of(op)];
  }
  [[nodiscard]] LaneId lane_of_work(OpId launch) const {
    return trace_.ops.lane[index_of(first_work_[index_of(launch)])];
  }
  // The last work of the launch before the record (by the inference for records).
  [[nodiscard]] OpId work_before(OpId record) const;

  std::size_t host_ops_;
  Trace& trace_;
  std::vector<OpId> first_work_;       // per host op: the first work it started
  std::vector<std::int32_t> sync_of_;  // per host op: position in syncs_, -1
  std::vector<Sync> syncs_;
  std::vector<std::pair<OpId, OpId>> launch_before_record_;  // sorted by record
};

Sync& SyncResolver::sync_for(OpId op, bool inferred) {
  std::int32_t& at = sync_of_[index_of(op)];
  if (at < 0) {
    at = static_cast<std::int32_t>(syncs_.size());
    syncs_.push_back({.op = op, .inferred = inferred});
  }
  return syncs_[static_cast<std::size_t>(at)];
}

void SyncResolver::take_recorded(const std::vector<KinetoSyncRow>& recorded,
                                 const std::vector<KinetoCallOfCorrelation>& op_of) {
  const auto call = [&](std::int64_t correlation) {
    const auto found = std::lower_bound(op_of.begin(), op_of.end(), KinetoCallOfCorrelation{correlation, 0});
    return correlation > 0 && found != op_of.end() && found->correlation == correlation ? OpId(found->op) : OpId::none;
  };
  const LaneIndex lanes(trace_);
  const auto stream = [&](std::int16_t device, std::int64_t number) {
    // none: a stream that never worked in the capture
    return lanes.find({.kind = LaneKind::stream, .device = device, .number = number});
  };
  for (const KinetoSyncRow& row : recorded) {
    const OpId op = call(row.correlation);
    if (op == OpId::none) {
      trace_.note("sync_without_call", "", "a cuda_sync event without a recorded host call", false);
      continue;
    }
    const OpKind kind = trace_.ops.kind[index_of(op)];
    if (kind == OpKind::stream_sync || kind == OpKind::stream_wait)
      sync_for(op, false).lane = stream(row.device, row.stream);
    if (kind != OpKind::event_sync && kind != OpKind::stream_wait) continue;
    const OpId record = call(row.record_correlation);
    if (record == OpId::none || record >= op || trace_.ops.kind[index_of(record)] != OpKind::event_record) continue;
    sync_for(op, false).event = record;
    sync_for(record, false).lane = stream(row.device, row.wait_stream);
  }
}

OpId SyncResolver::work_before(OpId record) const {
  const auto found = std::lower_bound(launch_before_record_.begin(), launch_before_record_.end(), record,
                                      [](const auto& pair, OpId wanted) { return pair.first < wanted; });
  return found != launch_before_record_.end() && found->first == record ? first_work_[index_of(found->second)]
                                                                        : OpId::none;
}

// The thread launched work: waits before it hold for that work's stream, unless it began too early for that.
void SyncResolver::settle_waits(OpId launch, Thread& thread) {
  const OpId work = first_work_[index_of(launch)];
  for (const OpId wait : thread.open_waits) {
    Sync& sync = sync_for(wait, true);
    const Sync* record = sync.event == OpId::none || !has_sync(sync.event) ? nullptr : &sync_for(sync.event, true);
    if (record != nullptr && record->lane == lane_of_work(launch)) {
      sync.event = OpId::none;  // a stream always waits for itself: the wait was for another one, unknown
      continue;
    }
    const OpId awaited = sync.event == OpId::none ? OpId::none : work_before(sync.event);
    if (awaited != OpId::none && end_of(awaited) > trace_.ops.start[index_of(work)] + clock_tolerance)
      sync.event = OpId::none;
    else
      sync.lane = lane_of_work(launch);
  }
  thread.open_waits.clear();
}

void SyncResolver::infer_call(OpId op, Thread& thread) {
  const std::size_t i = index_of(op);
  const OpKind kind = trace_.ops.kind[i];
  const OpId before = thread.last_launch;
  if (kind == OpKind::launch && first_work_[i] != OpId::none) {
    settle_waits(op, thread);
    thread.last_launch = op;
  } else if (kind == OpKind::event_record) {
    if (before != OpId::none) {
      launch_before_record_.emplace_back(op, before);
      if (!has_sync(op)) sync_for(op, true).lane = lane_of_work(before);
    }
    thread.last_record = op;
  } else if (kind == OpKind::stream_wait && !has_sync(op)) {
    sync_for(op, true).event = thread.last_record;
    thread.open_waits.push_back(op);
  } else if (kind == OpKind::stream_sync && !has_sync(op) && before != OpId::none) {
    if (end_of(first_work_[index_of(before)]) <= end_of(op) + clock_tolerance)
      sync_for(op, true).lane = lane_of_work(before);
  } else if (kind == OpKind::event_sync && !has_sync(op) && thread.last_record != OpId::none) {
    const OpId awaited = work_before(thread.last_record);
    if (awaited == OpId::none || end_of(awaited) <= end_of(op) + clock_tolerance)
      sync_for(op, true).event = thread.last_record;
  }
}

void SyncResolver::infer() {
  std::vector<Thread> threads(trace_.lanes.size());
  for (std::size_t i = 0; i < host_ops_; ++i)
    infer_call(OpId(static_cast<std::uint32_t>(i)), threads[index_of(trace_.ops.lane[i])]);
}

void SyncResolver::finish() {
  std::sort(syncs_.begin(), syncs_.end(), [](const Sync& a, const Sync& b) { return a.op < b.op; });
  std::erase_if(syncs_, [](const Sync& sync) { return sync.lane == LaneId::none && sync.event == OpId::none; });
  trace_.syncs = std::move(syncs_);
}

}  // namespace

void resolve_kineto_syncs(const std::vector<KinetoSyncRow>& recorded, const std::vector<KinetoCallOfCorrelation>& op_of,
                          std::size_t host_op_count, Trace& trace) {
  SyncResolver resolver(host_op_count, trace);
  resolver.take_recorded(recorded, op_of);
  resolver.infer();
  resolver.finish();
}

}  // namespace spillway::traces
