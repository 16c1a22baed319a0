#include "planners/offload/offload_run.h"

#include <algorithm>
#include <utility>

namespace spillway {
namespace {

constexpr int most_rounds = 8;  // of forwarding

Bytes block_bytes(const PlannedTrace& planned, OpId transfer) { return planned.trace.ops.bytes[index_of(transfer)]; }

void count_bytes(OffloadOutcome& outcome) {
  outcome.stored = outcome.loaded = outcome.forwarded = outcome.recomputed = Bytes(0);
  for (std::size_t k = 0; k < outcome.plan.absences.size(); ++k) {
    const PlannedTrace& planned = outcome.planned;
    if (planned.transfer[k] != OpId::none) outcome.stored += block_bytes(planned, planned.transfer[k]);
    if (planned.fetch[k] != OpId::none) outcome.loaded += block_bytes(planned, planned.fetch[k]);
    if (outcome.plan.absences[k].forwarded && planned.transfer[k] != OpId::none)
      outcome.forwarded += block_bytes(planned, planned.transfer[k]);
    if (outcome.plan.absences[k].tier == Tier::recompute)
      outcome.recomputed += planned.trace.tensors.bytes[index_of(outcome.plan.absences[k].tensor)];
  }
}

// Of all stores: bytes over the time in which at least one was at work or waiting for its turn.
double store_rate(const OffloadOutcome& outcome) {
  Picos begin = Picos::max(), end{};
  Bytes bytes{};
  for (const OpId store : outcome.planned.transfer) {
    if (store == OpId::none) continue;
    begin = std::min(begin, outcome.result.op_start[index_of(store)]);
    end = std::max(end, outcome.result.op_end[index_of(store)]);
    bytes += block_bytes(outcome.planned, store);
  }
  return end > begin ? static_cast<double>(bytes.count()) / to_seconds(end - begin) : 0;
}

// Replayed times by op of the original trace.
void original_times(const Trace& trace, const OffloadOutcome& outcome, std::vector<Picos>& start,
                    std::vector<Picos>& end) {
  start.assign(trace.ops.size(), unknown_time);
  end.assign(trace.ops.size(), unknown_time);
  for (std::size_t i = 0; i < outcome.planned.source.size(); ++i) {
    const OpId source = outcome.planned.source[i];
    if (source == OpId::none || start[index_of(source)] != unknown_time) continue;
    start[index_of(source)] = outcome.result.op_start[i];
    end[index_of(source)] = outcome.result.op_end[i];
  }
}

void set_runtime(const HardwareProfile& hardware, const OffloadSettings& settings, OffloadPlan& plan) {
  plan.store_workers = plan.load_workers = std::max<std::int64_t>(1, (settings.workers + 1) / 2);
  plan.in_flight = settings.in_flight.value_or(hardware.gpu.memory.value / 10);
  plan.route = settings.route;
  plan.drives = settings.drive_set;
}

}  // namespace

std::string_view to_string(OffloadTechnique technique) {
  switch (technique) {
    case OffloadTechnique::none:
      return "none";
    case OffloadTechnique::ssdtrain:
      return "ssdtrain";
    case OffloadTechnique::mix:
      return "mix";
    case OffloadTechnique::lifetimes:
      return "lifetimes";
    case OffloadTechnique::stream:
      return "stream";
  }
  return "none";
}

OffloadResult summary_of(const OffloadOutcome& outcome) {
  OffloadResult summary;
  summary.technique = outcome.plan.technique;
  summary.candidates = outcome.candidates;
  summary.stored = outcome.stored;
  summary.loaded = outcome.loaded;
  summary.forwarded = outcome.forwarded;
  summary.kept = outcome.kept;
  summary.recomputed = outcome.recomputed;
  summary.store_bytes_per_second = outcome.store_bytes_per_second;
  summary.settled = outcome.settled;
  return summary;
}

void replay_with_forwarding(const Trace& trace, const HardwareProfile& hardware, const ReplayOptions& options,
                            OffloadOutcome& outcome) {
  outcome.settled = false;
  for (int round = 0; round < most_rounds && !outcome.settled; ++round) {
    outcome.planned = planned_trace(trace, outcome.plan);
    outcome.result = replay(outcome.planned, hardware, options);
    ++outcome.rounds;
    outcome.settled = true;
    for (std::size_t k = 0; k < outcome.plan.absences.size(); ++k) {
      Absence& absence = outcome.plan.absences[k];
      const PlannedTrace& planned = outcome.planned;
      if (planned.fetch[k] == OpId::none || planned.transfer[k] == OpId::none) continue;
      const OpId asked = planned.asked[k];
      const Picos when = asked == OpId::none ? Picos(0) : outcome.result.op_end[index_of(asked)];
      if (when >= outcome.result.op_end[index_of(planned.transfer[k])]) continue;
      absence.forwarded = true;
      outcome.settled = false;
    }
  }
  count_bytes(outcome);
}

OffloadOutcome run_ssdtrain(const Trace& trace, const HardwareProfile& hardware, const ReplayOptions& options,
                            const OffloadSettings& settings) {
  OffloadOutcome outcome;
  const std::vector<SavedTensor> candidates = offload_candidates(trace, settings.ssdtrain);
  for (const SavedTensor& saved : candidates) outcome.candidates += saved.bytes;
  // The profiled step offloads everything.
  const std::vector<Picos> none(trace.ops.size(), Picos(0));
  outcome.scopes = offload_scopes(trace, candidates, none, none);
  outcome.plan = ssdtrain_plan(trace, candidates, outcome.scopes, settings.ssdtrain, settings.tier);
  set_runtime(hardware, settings, outcome.plan);
  outcome.planned = planned_trace(trace, outcome.plan);
  outcome.result = replay(outcome.planned, hardware, options);
  outcome.rounds = 1;
  outcome.store_bytes_per_second = store_rate(outcome);
  std::vector<Picos> start, end;
  original_times(trace, outcome, start, end);
  outcome.scopes = offload_scopes(trace, candidates, start, end);
  if (settings.ssdtrain.adaptive) {
    const double rate =
        settings.adaptive_bytes_per_second > 0 ? settings.adaptive_bytes_per_second : outcome.store_bytes_per_second;
    keep_adaptively(outcome.scopes, rate);
  }
  outcome.plan = ssdtrain_plan(trace, candidates, outcome.scopes, settings.ssdtrain, settings.tier);
  set_runtime(hardware, settings, outcome.plan);
  replay_with_forwarding(trace, hardware, options, outcome);
  outcome.kept = outcome.candidates - outcome.stored;
  outcome.result.offload = summary_of(outcome);
  return outcome;
}

}  // namespace spillway
