#include "planners/offload/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "planners/recompute/closure.h"
#include "planners/recompute/layer_plans.h"

namespace spillway::planners {
namespace {

// Whether the program runs forwards again by itself: what it keeps are checkpoints then.
bool recomputes_itself(const Trace& trace) {
  return std::find(trace.ops.phase.begin(), trace.ops.phase.end(), Phase::recompute) != trace.ops.phase.end();
}

// By tensor: the earliest op before which a repeated op uses it.
std::map<TensorId, OpId> repeated_uses(const Trace& trace, const OffloadPlan& plan) {
  std::map<OpId, OpId> before;  // by op that is repeated
  for (const Recomputation& group : plan.recomputations)
    for (const OpId op : group.ops) {
      const auto [at, is_new] = before.try_emplace(op, group.before);
      at->second = std::min(at->second, group.before);
    }
  std::map<TensorId, OpId> earliest;
  for (const Use& use : trace.uses) {
    const auto found = before.find(use.op);
    if (found == before.end()) continue;
    const auto [at, is_new] = earliest.try_emplace(use.tensor, found->second);
    at->second = std::min(at->second, found->second);
  }
  return earliest;
}

// Of what full recomputation would drop: what a replayed trace cannot make again, as frameworks that run a layer's
// function once more do. plain: of the step as it is.
void note_kept(std::span<const SavedTensor> saved, const AwayUntil& asked, const AwayUntil& away,
               const std::string& why, const Result& plain, OffloadOutcome& outcome) {
  Bytes kept{}, whole{};
  for (std::size_t t = 0; t < saved.size(); ++t) {
    if (asked[t] == OpId::none) continue;
    const Bytes bytes = saved[t].bytes * plain.runs_of(saved[t].written_by);
    whole += bytes;
    if (away[t] == OpId::none) kept += bytes;
  }
  constexpr std::int64_t parts = 100;  // below one of them nobody would see it
  if (kept * parts <= whole) return;
  outcome.notes.push_back(fmt::format(
      "{} of the {} within layers isn't recomputed, for it can't be made from the trace ({}): model.recompute=full "
      "computes all of it again",
      bytes_text(kept), bytes_text(whole), why));
}

// What is made again where the program doesn't: all that lies within layers.
void add_full_recompute(const Trace& trace, const std::vector<SavedTensor>& saved, const Result& plain,
                        OffloadOutcome& outcome) {
  RecomputeIndex index(trace, saved);
  AwayUntil away = full_recompute(index);
  const AwayUntil all = away;
  for (const RecomputeGroup& group : index.groups(away)) add_to_plan(group, index, outcome.plan);
  note_kept(saved, all, away, index.refusal(), plain, outcome);
  if (repeats_layers_before(trace, outcome.plan))
    throw InputError("", "technique",
                     "what enters a layer is kept by nobody here, so that a layer can't be recomputed alone",
                     "set model.recompute to full: the step then recomputes by itself");
}

}  // namespace

bool repeats_layers_before(const Trace& trace, const OffloadPlan& plan) {
  Picos forward{}, repeated{};
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (is_device_work(trace.ops.kind[i]) && trace.ops.phase[i] == Phase::forward) forward += trace.ops.duration[i];
  for (const Recomputation& group : plan.recomputations)
    for (const OpId op : group.ops) repeated += trace.ops.duration[index_of(op)];
  return repeated > forward + forward;
}

OffloadOutcome run_checkpoints(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings) {
  if (trace.is_inferred(Capability::uses))
    throw InputError("", "uses", "inferred uses don't say what an op needs to run again",
                     "join the capture with an ExecutionTrace of the same step, or take another technique");
  OffloadOutcome outcome;
  outcome.forwards = settings.forwards;
  outcome.plan = empty_plan(checkpoints_word, settings);
  const std::vector<SavedTensor> saved = saved_tensors(trace);
  const Result plain = replayer.replay(trace, {.detail = Detail::clock});
  if (!recomputes_itself(trace)) add_full_recompute(trace, saved, plain, outcome);
  std::set<TensorId> remade;
  for (const Absence& absence : outcome.plan.absences) remade.insert(absence.tensor);

  std::vector<SavedTensor> candidates = offload_candidates(trace, settings.ssdtrain);
  std::erase_if(candidates, [&](const SavedTensor& tensor) { return remade.contains(tensor.tensor); });
  for (const SavedTensor& one : candidates) outcome.moved.candidates += one.bytes * plain.runs_of(one.written_by);
  outcome.scopes = offload_scopes(trace, candidates, plain.op_start, plain.op_end);
  const std::map<TensorId, OpId> again = repeated_uses(trace, outcome.plan);
  for (Absence absence : ssdtrain_absences(trace, candidates, outcome.scopes, settings.ssdtrain, settings.tier)) {
    // What a repeated op reads must be back when the group runs.
    const auto repeat = again.find(absence.tensor);
    if (repeat != again.end() && absence.back_before != OpId::none && repeat->second < absence.back_before) {
      absence.back_before = repeat->second;
      if (absence.fetch_at != OpId::none) absence.fetch_at = std::min(absence.fetch_at, repeat->second);
    }
    outcome.plan.absences.push_back(absence);
  }
  replay_within_limits(trace, replayer, outcome, settings);
  ++outcome.rounds;
  outcome.moved.kept = outcome.moved.candidates - outcome.moved.stored;
  outcome.result.offload = outcome.moved;
  return outcome;
}

}  // namespace spillway::planners
