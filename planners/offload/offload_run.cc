#include "planners/offload/offload_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planners/offload/store_limits.h"

namespace spillway::planners {
namespace {

constexpr int rounds_from_nothing = 2, rounds_from_known = 6, most_rounds = 12;  // of forwarding
constexpr int rounds_for_limits = 8;
constexpr int most_widenings = 3;           // of the limits of unfinished stores
constexpr double slower_by_limits = 0.005;  // a step that waits for its stores no more than this is taken
const ReplayVariation times{.detail = Detail::times}, clock_alone{.detail = Detail::clock};

Bytes block_bytes(const PlannedTrace& planned, OpId transfer) { return planned.trace.ops.bytes[index_of(transfer)]; }

// How often an op of the step before its plan runs in the whole of it.
class StepRuns {
 public:
  StepRuns(const PlannedTrace& planned, const Result& result) {
    for (std::size_t i = 0; i < result.op_runs.size(); ++i) {
      if (planned.source[i] == OpId::none) continue;
      const std::size_t source = index_of(planned.source[i]);
      if (source >= runs_.size()) runs_.resize(source + 1, 0);
      if (runs_[source] == 0) runs_[source] = result.op_runs[i];
    }
  }
  [[nodiscard]] std::int64_t of(OpId op) const { return runs_.empty() ? 1 : runs_[index_of(op)]; }

 private:
  std::vector<std::int64_t> runs_;  // by op of the step; empty: once
};

void count_bytes(OffloadOutcome& outcome) {
  const PlannedTrace& planned = outcome.planned;
  const StepRuns runs(planned, outcome.result);
  const auto bytes_of = [&](OpId copy) { return block_bytes(planned, copy) * outcome.result.runs_of(copy); };
  OffloadResult& moved = outcome.moved;
  moved.stored = moved.loaded = moved.forwarded = moved.recomputed = Bytes(0);
  for (std::size_t k = 0; k < outcome.plan.absences.size(); ++k) {
    const Absence& absence = outcome.plan.absences[k];
    if (planned.fetch[k] != OpId::none) moved.loaded += bytes_of(planned.fetch[k]);
    if (absence.tier == Tier::recompute)
      moved.recomputed += planned.trace.tensors.bytes[index_of(absence.tensor)] * runs.of(absence.leave_after);
    if (planned.transfer[k] == OpId::none) continue;
    moved.stored += bytes_of(planned.transfer[k]);
    if (absence.forwarded) moved.forwarded += bytes_of(planned.transfer[k]);
  }
}

std::uint16_t rank_of(const Trace& trace, OpId op) { return trace.lanes[index_of(trace.ops.lane[index_of(op)])].rank; }

// By op: which of its rank's passes it is in. A pass is what a rank runs of one micro-batch in one direction before it
// turns to another, a chunk's where a stage has several.
std::vector<std::uint32_t> passes_of(const Trace& trace) {
  struct Last {
    std::uint16_t micro_batch = no_index16;
    Phase phase = Phase::unknown;
  };
  std::vector<Last> last(trace.rank_count);
  std::vector<std::uint32_t> current(trace.rank_count, 0), found(trace.ops.size(), 0);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const auto [micro_batch, phase] = std::pair(trace.ops.micro_batch[i], trace.ops.phase[i]);
    const std::uint16_t rank = rank_of(trace, OpId(static_cast<std::uint32_t>(i)));
    const bool is_pass = phase == Phase::forward || phase == Phase::backward || phase == Phase::recompute;
    if (is_device_work(trace.ops.kind[i]) && is_pass &&
        (micro_batch != last[rank].micro_batch || (phase == Phase::forward) != (last[rank].phase == Phase::forward))) {
      last[rank] = {micro_batch, phase};
      ++current[rank];
    }
    found[i] = current[rank];
  }
  return found;
}

// Bytes a second of each rank's own stores while it stores what a pass made, from the first to the end of the last: its
// share of drives and links, which ranks of one machine may have in common. A pipeline's pauses between passes are no
// such time. 0 of a rank that stores nothing.
std::vector<double> store_rates(const Trace& trace, const OffloadOutcome& outcome) {
  struct Stores {
    Picos begin = Picos::max(), end{};
    Bytes bytes{};
    std::int64_t runs = 1;
  };
  const std::vector<std::uint32_t> pass_of = passes_of(trace);
  std::map<std::pair<std::uint16_t, std::uint32_t>, Stores> passes;  // rank, pass
  for (std::size_t k = 0; k < outcome.plan.absences.size(); ++k) {
    const OpId store = outcome.planned.transfer[k];
    if (store == OpId::none) continue;
    const OpId writer = outcome.plan.absences[k].store_after;
    Stores& pass = passes[{rank_of(trace, writer), pass_of[index_of(writer)]}];
    pass.begin = std::min(pass.begin, outcome.result.op_start[index_of(store)]);
    pass.end = std::max(pass.end, outcome.result.op_end[index_of(store)]);
    pass.bytes += block_bytes(outcome.planned, store);
    pass.runs = outcome.result.runs_of(store);
  }
  std::vector<Bytes> bytes(trace.rank_count);
  std::vector<Picos> time(trace.rank_count);
  for (const auto& [key, pass] : passes) {
    bytes[key.first] += pass.bytes * pass.runs;
    time[key.first] += (pass.end - pass.begin) * pass.runs;
  }
  std::vector<double> rates;
  for (std::size_t r = 0; r < bytes.size(); ++r)
    rates.push_back(time[r] > Picos(0) ? static_cast<double>(bytes[r].count()) / to_seconds(time[r]) : 0);
  return rates;
}

// What a replay needs of a planned trace to find the loads that come too early; by absence.
struct Transfers {
  std::vector<OpId> store, fetch, asked;
};

Transfers transfers_of(const PlannedTrace& planned) { return {planned.transfer, planned.fetch, planned.asked}; }

// Absences with a store that are forwarded though they are asked for when it has ended, or are not though it is still
// under way.
std::vector<std::size_t> wrongly_decided(const OffloadPlan& plan, const Transfers& transfers, const Result& result) {
  std::vector<std::size_t> found;
  for (std::size_t k = 0; k < transfers.store.size(); ++k) {
    const Absence& absence = plan.absences[k];
    if (transfers.store[k] == OpId::none || (transfers.fetch[k] == OpId::none && !absence.forwarded)) continue;
    const OpId asked = transfers.asked[k];
    const Picos when = asked == OpId::none ? Picos(0) : result.op_end[index_of(asked)];
    if (absence.forwarded != (when < result.op_end[index_of(transfers.store[k])])) found.push_back(k);
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

bool has_forwarded(const OffloadPlan& plan) {
  return std::any_of(plan.absences.begin(), plan.absences.end(), [](const Absence& a) { return a.forwarded; });
}

enum class Depth : std::uint8_t {
  clock,        // of a search for limits: the replayer gives times alone
  full,         // most settle at once: the first replay, and the last, in full
  clock_first,  // loads are known to come early: all but the last for their times
};

// What is asked for before its store has ended is forwarded. Whether it is depends on the past alone, so there is one
// answer, and each replay gets right what comes before its first wrong decision. It begins with what the plan says is
// forwarded, of the search for limits most of the answer, or with nothing; where stores take much longer than what
// makes their tensors, the first load waits for the last store, and a replay finds no more than that: then it goes on
// from everything forwarded.
//
// The search for limits (Depth::clock) begins with nothing forwarded, takes no mark back, and ends after fewer rounds:
// a host that waits for nothing asks for all before a store has ended, and limits of a step that reads nothing would be
// too narrow for one whose stores share drives and links with its loads.
void forward(const Trace& trace, const Replayer& replayer, OffloadOutcome& outcome, Depth depth,
             const std::function<void(PlannedTrace&)>& adapt) {
  const auto plan = [&] {
    PlannedTrace planned = planned_trace(trace, outcome.plan);
    if (adapt) adapt(planned);
    return planned;
  };
  const bool is_search = depth == Depth::clock;
  const int rounds_alone = has_forwarded(outcome.plan) ? rounds_from_known : rounds_from_nothing;
  std::vector<std::size_t> caught;
  const auto catch_wrong = [&](const Transfers& transfers, const Result& result) {
    if (!outcome.forwards) return std::vector<std::size_t>();
    std::vector<std::size_t> wrong = wrongly_decided(outcome.plan, transfers, result);
    if (is_search) std::erase_if(wrong, [&](std::size_t k) { return outcome.plan.absences[k].forwarded; });
    return wrong;
  };
  const int rounds = is_search ? rounds_for_limits : most_rounds;
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t k : caught)
      outcome.plan.absences[k].forwarded = is_search || !outcome.plan.absences[k].forwarded;
    if (!is_search && round == rounds_alone)
      for (Absence& absence : outcome.plan.absences)
        absence.forwarded = absence.forwarded || (absence.stores() && absence.loads());
    PlannedTrace planned = plan();
    const Transfers transfers = transfers_of(planned);
    ++outcome.rounds;
    const bool may_be_last = is_search || (depth == Depth::full && round == 0) || round + 1 == rounds;
    if (!may_be_last) {
      caught = catch_wrong(transfers, replayer.replay(std::move(planned), clock_alone));
      if (!caught.empty()) continue;
      planned = plan();
    }
    outcome.planned = std::move(planned);
    outcome.result = replayer.replay(outcome.planned);
    caught = catch_wrong(transfers, outcome.result);
    if (caught.empty()) break;
  }
  outcome.moved.technique = outcome.plan.technique;
  outcome.moved.settled = caught.empty();
  outcome.moved.in_flight = outcome.plan.in_flight;
  for (const Bytes limit : outcome.plan.rank_in_flight)
    outcome.moved.in_flight = std::max(outcome.moved.in_flight, limit);
  count_bytes(outcome);
}

}  // namespace

Bytes memory_of(const Replayer& replayer) {
  const Bytes capacity = replayer.memory_limit();
  return capacity > Bytes(0) ? capacity : replayer.hardware().gpu.memory.value;
}

OffloadPlan empty_plan(std::string_view technique, const OffloadSettings& settings) {
  OffloadPlan plan;
  plan.technique = technique;
  plan.store_workers = plan.load_workers = std::max<std::int64_t>(1, (settings.workers + 1) / 2);
  plan.in_flight = settings.in_flight.value_or(Bytes(0));
  plan.route = settings.route;
  if (settings.hooks.value_or(false)) plan.host_time = hook_time;
  plan.drives = settings.drive_set;
  return plan;
}

OffloadPlan limited_plan(std::string_view technique, const Replayer& replayer, const OffloadSettings& settings) {
  OffloadPlan plan = empty_plan(technique, settings);
  if (!settings.in_flight) plan.in_flight = memory_of(replayer) / 10;
  return plan;
}

void replay_within_limits(const Trace& trace, const Replayer& replayer, OffloadOutcome& outcome,
                          const OffloadSettings& settings) {
  if (!settings.in_flight) {
    outcome.plan.in_flight = Bytes(0);
    const VariedReplayer quick(replayer, clock_alone);
    const OffloadPlan unlimited = outcome.plan;
    forward(trace, quick, outcome, Depth::clock, {});
    const Picos wanted = outcome.result.step_time;
    outcome.plan.rank_in_flight = least_store_limits(trace, outcome.plan, outcome.planned, outcome.result);
    const bool early = has_forwarded(outcome.plan);
    for (int widening = 0; widening <= most_widenings; ++widening) {
      std::vector<Bytes> limits = outcome.plan.rank_in_flight;
      if (widening > 0)
        for (Bytes& limit : limits) limit = limit * 2;
      std::vector<Absence> decided = std::move(outcome.plan.absences);
      outcome.plan = unlimited;
      outcome.plan.absences = std::move(decided);
      if (widening < most_widenings) outcome.plan.rank_in_flight = std::move(limits);
      forward(trace, replayer, outcome, early ? Depth::clock_first : Depth::full, {});
      if (to_seconds(outcome.result.step_time) <= (1 + slower_by_limits) * to_seconds(wanted)) break;
    }
  } else {
    replay_with_forwarding(trace, replayer, outcome);
  }
}

void replay_with_forwarding(const Trace& trace, const Replayer& replayer, OffloadOutcome& outcome,
                            const std::function<void(PlannedTrace&)>& adapt) {
  forward(trace, replayer, outcome, Depth::full, adapt);
}

OffloadOutcome run_ssdtrain(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings) {
  OffloadOutcome outcome;
  outcome.forwards = settings.forwards;
  const std::vector<SavedTensor> candidates = offload_candidates(trace, settings.ssdtrain);
  const Result plain = replayer.replay(trace, times);
  for (const SavedTensor& saved : candidates) outcome.moved.candidates += saved.bytes * plain.runs_of(saved.written_by);
  outcome.moved.plain_peak = plain.memory.peak_allocated;
  // The profiled step offloads everything, and the host waits for no store.
  const std::vector<Picos> none(trace.ops.size(), Picos(0));
  outcome.scopes = offload_scopes(trace, candidates, none, none);
  outcome.plan = empty_plan(ssdtrain_word, settings);
  outcome.plan.absences = ssdtrain_absences(trace, candidates, outcome.scopes, settings.ssdtrain, settings.tier);
  outcome.planned = planned_trace(trace, outcome.plan);
  outcome.result = replayer.replay(outcome.planned, clock_alone);
  outcome.rounds = 2;
  std::vector<double> rates = store_rates(trace, outcome);
  for (const double rate : rates)
    if (double& least = outcome.moved.store_bytes_per_second; rate > 0 && (least == 0 || rate < least)) least = rate;
  std::vector<Picos> start, end;
  original_times(trace, outcome, start, end);
  outcome.scopes = offload_scopes(trace, candidates, start, end);
  if (settings.adaptive_bytes_per_second > 0) rates.assign(rates.size(), settings.adaptive_bytes_per_second);
  if (settings.ssdtrain.adaptive) keep_adaptively(outcome.scopes, rates);
  outcome.plan = empty_plan(ssdtrain_word, settings);
  outcome.plan.absences = ssdtrain_absences(trace, candidates, outcome.scopes, settings.ssdtrain, settings.tier);
  replay_within_limits(trace, replayer, outcome, settings);
  outcome.moved.kept = outcome.moved.candidates - outcome.moved.stored;
  outcome.result.offload = outcome.moved;
  return outcome;
}

}  // namespace spillway::planners
