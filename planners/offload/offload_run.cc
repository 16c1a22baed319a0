#include "planners/offload/offload_run.h"

#include <algorithm>
#include <utility>

namespace spillway::planners {
namespace {

constexpr int most_rounds = 8;  // of forwarding
const ReplayVariation times{.times_only = true};

Bytes block_bytes(const PlannedTrace& planned, OpId transfer) { return planned.trace.ops.bytes[index_of(transfer)]; }

void count_bytes(OffloadOutcome& outcome) {
  const PlannedTrace& planned = outcome.planned;
  OffloadResult& moved = outcome.moved;
  moved.stored = moved.loaded = moved.forwarded = moved.recomputed = Bytes(0);
  for (std::size_t k = 0; k < outcome.plan.absences.size(); ++k) {
    const Absence& absence = outcome.plan.absences[k];
    if (planned.fetch[k] != OpId::none) moved.loaded += block_bytes(planned, planned.fetch[k]);
    if (absence.tier == Tier::recompute) moved.recomputed += planned.trace.tensors.bytes[index_of(absence.tensor)];
    if (planned.transfer[k] == OpId::none) continue;
    moved.stored += block_bytes(planned, planned.transfer[k]);
    if (absence.forwarded) moved.forwarded += block_bytes(planned, planned.transfer[k]);
  }
}

// Bytes a second of each rank's own stores, from the first to the end of the last: its share of drives and links, which
// ranks of one machine may have in common. 0 of one that stores nothing.
std::vector<double> store_rates(const Trace& trace, const OffloadOutcome& outcome) {
  struct Stores {
    Picos begin = Picos::max(), end{};
    Bytes bytes{};
  };
  std::vector<Stores> ranks(trace.rank_count);
  for (std::size_t k = 0; k < outcome.plan.absences.size(); ++k) {
    const OpId store = outcome.planned.transfer[k];
    if (store == OpId::none) continue;
    const OpId writer = outcome.plan.absences[k].store_after;
    Stores& rank = ranks[trace.lanes[index_of(trace.ops.lane[index_of(writer)])].rank];
    rank.begin = std::min(rank.begin, outcome.result.op_start[index_of(store)]);
    rank.end = std::max(rank.end, outcome.result.op_end[index_of(store)]);
    rank.bytes += block_bytes(outcome.planned, store);
  }
  std::vector<double> rates;
  for (const Stores& rank : ranks)
    rates.push_back(rank.end > rank.begin ? static_cast<double>(rank.bytes.count()) / to_seconds(rank.end - rank.begin)
                                          : 0);
  return rates;
}

// What a replay needs of a planned trace to find the loads that come too early; by absence.
struct Transfers {
  std::vector<OpId> store, fetch, asked;
};

Transfers transfers_of(const PlannedTrace& planned) { return {planned.transfer, planned.fetch, planned.asked}; }

// Absences whose load is asked for while their store is still under way.
std::vector<std::size_t> loads_before_their_stores(const Transfers& transfers, const Result& result) {
  std::vector<std::size_t> found;
  for (std::size_t k = 0; k < transfers.store.size(); ++k) {
    if (transfers.fetch[k] == OpId::none || transfers.store[k] == OpId::none) continue;
    const OpId asked = transfers.asked[k];
    const Picos when = asked == OpId::none ? Picos(0) : result.op_end[index_of(asked)];
    if (when < result.op_end[index_of(transfers.store[k])]) found.push_back(k);
  }
  return found;
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

}  // namespace

Bytes memory_of(const Replayer& replayer) {
  const Bytes capacity = replayer.options().memory.capacity;
  return capacity > Bytes(0) ? capacity : replayer.hardware().gpu.memory.value;
}

OffloadPlan empty_plan(std::string_view technique, const Replayer& replayer, const OffloadSettings& settings) {
  OffloadPlan plan;
  plan.technique = technique;
  plan.store_workers = plan.load_workers = std::max<std::int64_t>(1, (settings.workers + 1) / 2);
  plan.in_flight = settings.in_flight.value_or(memory_of(replayer) / 10);
  plan.route = settings.route;
  plan.drives = settings.drive_set;
  return plan;
}

void replay_with_forwarding(const Trace& trace, const Replayer& replayer, OffloadOutcome& outcome,
                            const std::function<void(PlannedTrace&)>& adapt) {
  const auto plan = [&] {
    PlannedTrace planned = planned_trace(trace, outcome.plan);
    if (adapt) adapt(planned);
    return planned;
  };
  std::vector<std::size_t> caught;
  const auto catch_early = [&](const Transfers& transfers, const Result& result) {
    return outcome.forwards ? loads_before_their_stores(transfers, result) : std::vector<std::size_t>();
  };
  for (int round = 0; round < most_rounds; ++round) {
    for (const std::size_t k : caught) outcome.plan.absences[k].forwarded = true;
    PlannedTrace planned = plan();
    const Transfers transfers = transfers_of(planned);
    ++outcome.rounds;
    // Most settle at once; what lies between the first and the last replay is asked for its times alone.
    if (round > 0 && round + 1 < most_rounds) {
      caught = catch_early(transfers, replayer.replay(std::move(planned), times));
      if (!caught.empty()) continue;
      planned = plan();
    }
    outcome.planned = std::move(planned);
    outcome.result = replayer.replay(outcome.planned);
    caught = catch_early(transfers, outcome.result);
    if (caught.empty()) break;
  }
  outcome.moved.technique = outcome.plan.technique;
  outcome.moved.settled = caught.empty();
  count_bytes(outcome);
}

OffloadOutcome run_ssdtrain(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings) {
  OffloadOutcome outcome;
  outcome.forwards = settings.forwards;
  const std::vector<SavedTensor> candidates = offload_candidates(trace, settings.ssdtrain);
  for (const SavedTensor& saved : candidates) outcome.moved.candidates += saved.bytes;
  // The profiled step offloads everything.
  const std::vector<Picos> none(trace.ops.size(), Picos(0));
  outcome.scopes = offload_scopes(trace, candidates, none, none);
  outcome.plan = empty_plan(ssdtrain_word, replayer, settings);
  outcome.plan.absences = ssdtrain_absences(trace, candidates, outcome.scopes, settings.ssdtrain, settings.tier);
  outcome.planned = planned_trace(trace, outcome.plan);
  outcome.result = replayer.replay(outcome.planned, times);
  outcome.rounds = 1;
  std::vector<double> rates = store_rates(trace, outcome);
  for (const double rate : rates)
    if (double& least = outcome.moved.store_bytes_per_second; rate > 0 && (least == 0 || rate < least)) least = rate;
  std::vector<Picos> start, end;
  original_times(trace, outcome, start, end);
  outcome.scopes = offload_scopes(trace, candidates, start, end);
  if (settings.adaptive_bytes_per_second > 0) rates.assign(rates.size(), settings.adaptive_bytes_per_second);
  if (settings.ssdtrain.adaptive) keep_adaptively(outcome.scopes, rates);
  outcome.plan = empty_plan(ssdtrain_word, replayer, settings);
  outcome.plan.absences = ssdtrain_absences(trace, candidates, outcome.scopes, settings.ssdtrain, settings.tier);
  replay_with_forwarding(trace, replayer, outcome);
  outcome.moved.kept = outcome.moved.candidates - outcome.moved.stored;
  outcome.result.offload = outcome.moved;
  return outcome;
}

}  // namespace spillway::planners
