#include "planners/technique/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "planners/offload/hybrid_search.h"
#include "planners/offload/offload_run.h"
#include "sim/replay/plan_check.h"

namespace spillway::planners {
namespace {

constexpr int most_placements = 3;  // of places on the requests of the replay before
constexpr int most_searches = 3;    // of fates within less and less memory

using Places = std::map<std::int16_t, std::shared_ptr<const MemoryPlan>>;

Places shared(const std::map<std::int16_t, MemoryPlan>& memory) {
  Places places;
  for (const auto& [device, plan] : memory) places[device] = std::make_shared<const MemoryPlan>(plan);
  return places;
}

// The less the better.
auto rank_of(const Result& result) {
  return std::tuple(static_cast<int>(result.verdict()), result.memory.peak_reserved, result.step_time);
}

class Composer {
 public:
  Composer(const Composition& parts, const TechniqueRequest& request) : parts_(parts), request_(request) {}

  ComposedStep run() {
    ComposedStep step = search();
    check(step);
    if (step.plan.fates) step.plan.fates->digest = digest_of_works(fates_of_order_ ? *ordered_ : request_.trace);
    return step;
  }

 private:
  ComposedStep search() {
    ComposedStep best = once(request_.replayer);
    const bool searches = parts_.fates != nullptr && parts_.fates->name == hybrid_word &&
                          (parts_.orders() || parts_.places()) && memory_limit() > Bytes(0);
    Bytes limit = searches ? memory_limit() : Bytes(0);
    for (int round = 1; searches && round < most_searches && !best.result.may_fit(); ++round) {
      limit = limit - (best.result.memory.peak_reserved - memory_limit());
      if (limit <= Bytes(0) || best.result.memory.peak_reserved <= memory_limit()) break;
      const VariedReplayer within(request_.replayer, {.capacity = limit});
      ComposedStep next = once(within);
      if (!(rank_of(next.result) < rank_of(best.result))) break;
      best = std::move(next);
    }
    return best;
  }

  // Replays don't begin what can't be; this looks at what they did.
  void check(const ComposedStep& step) const {
    const Trace* trace = step.planned ? &step.planned->trace : step.ordered ? &*step.ordered : nullptr;
    if (trace == nullptr || step.result.op_start.empty()) return;
    const std::vector<OpId> gate = step.planned ? step.planned->gate : std::vector<OpId>();
    const PlanVerdict verdict = check_replay(*trace, gate, step.result.op_start, step.result.op_end);
    if (verdict.sound()) return;
    if (parts_.given_fates == nullptr && parts_.given_order == nullptr)
      throw std::logic_error("a composed plan is unsound: " + verdict.fault);
    throw InputError(parts_.given_file, parts_.given_fates == nullptr ? "/order" : place_of(step, verdict.use),
                     "the step can't run so: " + verdict.fault,
                     "make the plan again: `spillway run --plan-output FILE`, `spillway plan order` or `plan offload`");
  }

  // Of the absence that took the used tensor away: the last one that had begun, or the first.
  [[nodiscard]] std::string place_of(const ComposedStep& step, const std::optional<Use>& use) const {
    const std::vector<Absence>& absences = step.plan.fates->absences;
    const Trace& trace = fates_of_order_ ? *ordered_ : request_.trace;
    std::optional<std::size_t> found;
    if (!use || !step.planned) return "/fates";
    const OpId op = step.planned->source[index_of(use->op)];
    const auto storage_of = [](const Trace& of, TensorId tensor) { return of.tensors.storage[index_of(tensor)]; };
    for (std::size_t k = 0; k < absences.size(); ++k) {
      if (storage_of(trace, absences[k].tensor) != storage_of(step.planned->trace, use->tensor)) continue;
      const bool has_begun = absences[k].leave_after == OpId::none || absences[k].leave_after < op;
      if (!found || has_begun) found = k;
    }
    return found ? fmt::format("/fates/absences/{}", *found) : "/fates";
  }

  [[nodiscard]] Bytes memory_limit() const { return request_.replayer.memory_limit(); }

  // `searching`: the replayer that fates are planned by.
  ComposedStep once(const Replayer& searching) {
    if (parts_.given_order != nullptr) return in_given_order(searching);
    ComposedStep step = with_fates(request_.trace, searching);
    const Plan before_order = step.plan;
    if (parts_.order == nullptr) return place(request_.trace, std::move(step));

    ComposedStep ordered = in_planned_order(before_order);
    const bool only_order = !parts_.moves() && !parts_.places();
    ComposedStep with_order = place(*ordered_, std::move(ordered));
    if (!with_order.planned) with_order.ordered = *ordered_;
    if (only_order) {
      note_more(step.result, with_order);
      return with_order;
    }
    ComposedStep as_written = place(request_.trace, std::move(step));
    if (!(rank_of(with_order.result) < rank_of(as_written.result))) {
      const Bytes more = with_order.result.memory.peak_reserved - as_written.result.memory.peak_reserved;
      as_written.notes.push_back(fmt::format(
          "the planned order ({}) would {}: the program's order is kept", parts_.order->name,
          more > Bytes(0) ? "hold " + bytes_text(more) + " more at its peak" : "hold no less and not be faster"));
      return as_written;
    }
    note_cost(as_written.result, with_order);
    return with_order;
  }

  void note_cost(const Result& plain, ComposedStep& ordered) const {
    const double slower = to_seconds(ordered.result.step_time) / std::max(1e-12, to_seconds(plain.step_time)) - 1;
    if (slower > 0.01)
      ordered.notes.push_back(fmt::format("the order makes the step {:.1f} % slower than the program's", slower * 100));
  }

  // An order that was asked for alone is kept, better or not.
  void note_more(const Result& plain, ComposedStep& ordered) const {
    const Bytes more = ordered.result.memory.peak_reserved - plain.memory.peak_reserved;
    if (static_cast<double>(more.count()) > 0.01 * static_cast<double>(plain.memory.peak_reserved.count()))
      ordered.notes.push_back(fmt::format("the planned order ({}) holds {} more at its peak than the program's order",
                                          parts_.order->name, bytes_text(more)));
    note_cost(plain, ordered);
  }

  // Fates planned or followed; without any the step as it is.
  ComposedStep with_fates(const Trace& trace, const Replayer& searching) const {
    ComposedStep step;
    if (parts_.given_fates != nullptr) return follow(trace, *parts_.given_fates, false);
    if (parts_.fates == nullptr) {
      if (!parts_.places()) step.result = request_.replayer.replay(trace);
      return step;
    }
    trace.require(parts_.fates->needs, parts_.fates->title);
    TechniqueRequest request{trace, searching, request_.settings, request_.every, request_.layers, request_.schedule};
    TechniquePart part = parts_.fates->make(request);
    step.plan.fates = std::move(part.plan.fates);
    step.planned = std::move(part.planned);
    step.result = std::move(part.result);
    step.notes = std::move(part.notes);
    if (!step.planned) {  // recomputation's planners leave the replay to others
      const OffloadPlan fates = std::move(*step.plan.fates);
      return follow(trace, fates, request_.settings.forwards);
    }
    if (&searching != &request_.replayer) {  // found within less memory than there is
      const std::optional<OffloadResult> moved = step.result.offload;
      step.result = request_.replayer.replay(*step.planned);
      step.result.offload = moved;
    }
    return step;
  }

  // Under these fates. `settles`: replays decide what is forwarded; those of a plan are as they are.
  ComposedStep follow(const Trace& trace, const OffloadPlan& fates, bool settles) const {
    OffloadOutcome outcome;
    outcome.forwards = settles;
    outcome.plan = fates;
    replay_with_forwarding(trace, request_.replayer, outcome);
    outcome.moved.candidates = outcome.moved.stored + outcome.moved.recomputed;
    outcome.moved.kept = outcome.moved.forwarded;
    outcome.result.offload = outcome.moved;
    ComposedStep step;
    step.plan.fates = std::move(outcome.plan);
    step.planned = std::move(outcome.planned);
    step.result = std::move(outcome.result);
    return step;
  }

  ComposedStep in_given_order(const Replayer& searching) {
    const bool of_program =
        parts_.given_fates != nullptr && parts_.given_fates->digest == digest_of_works(request_.trace);
    Reordered reordered = reorder(request_.trace, *parts_.given_order, of_program ? parts_.given_fates : nullptr);
    ComposedStep step;
    if (of_program)
      step = follow(reordered.trace, moved_fates(request_.trace, reordered, *parts_.given_fates), false);
    else
      step = with_fates(reordered.trace, searching);
    ordered_ = std::move(reordered.trace);
    fates_of_order_ = !of_program;
    if (of_program) step.plan.fates = settled(*parts_.given_fates, *step.plan.fates);
    if (parts_.fates != nullptr) note_cost(with_fates(request_.trace, searching).result, step);
    step = place(*ordered_, std::move(step));
    if (!step.planned) step.ordered = *ordered_;
    step.plan.order = *parts_.given_order;
    return step;
  }

  ComposedStep in_planned_order(const Plan& before) {
    request_.trace.require(parts_.order->needs, parts_.order->title);
    TechniqueRequest request{request_.trace,
                             request_.replayer,
                             request_.settings,
                             request_.every,
                             request_.layers,
                             request_.schedule,
                             before.fates ? &*before.fates : nullptr};
    const OrderPlan order = std::move(*parts_.order->make(request).plan.order);
    Reordered reordered = reorder(request_.trace, order, before.fates ? &*before.fates : nullptr);
    ComposedStep step;
    if (before.fates) {
      OffloadPlan fates = moved_fates(request_.trace, reordered, *before.fates);
      for (Absence& absence : fates.absences) absence.forwarded = false;
      step = follow(reordered.trace, fates, request_.settings.forwards);
      step.plan.fates = settled(*before.fates, *step.plan.fates);
    } else if (!parts_.places()) {
      step.result = request_.replayer.replay(reordered.trace);
    }
    ordered_ = std::move(reordered.trace);
    step.plan.order = order;
    return step;
  }

  // The program's fates with what the replay in the new order decided about forwarding.
  static OffloadPlan settled(OffloadPlan fates, const OffloadPlan& moved) {
    for (std::size_t k = 0; k < fates.absences.size(); ++k) fates.absences[k].forwarded = moved.absences[k].forwarded;
    return fates;
  }

  [[nodiscard]] Result replay_placed(const Trace& trace, const ComposedStep& step, const Places& places) const {
    ReplayVariation variation;
    variation.places = places;
    if (!step.planned) return request_.replayer.replay(trace, variation);
    return request_.replayer.replay(*step.planned, variation);
  }

  // Places for the requests of the step, which is of `trace`.
  ComposedStep place(const Trace& trace, ComposedStep step) const {
    if (!parts_.places()) return step;
    const std::optional<OffloadResult> moved = step.result.offload;
    if (parts_.given_memory != nullptr) {
      step.plan.memory = *parts_.given_memory;
      step.result = replay_placed(trace, step, shared(step.plan.memory));
      step.result.offload = moved;
      return step;
    }
    Result seen = std::move(step.result);
    bool first = true;
    for (int round = 0; round < most_placements; ++round) {
      std::map<std::int16_t, MemoryPlan> memory = plan_places(trace, step, seen);
      Result result = replay_placed(trace, step, shared(memory));
      const bool as_seen = !step.planned || result.op_start == seen.op_start;
      seen.op_start = result.op_start;
      seen.op_end = result.op_end;
      if (!first && !(rank_of(result) < rank_of(step.result))) break;
      step.plan.memory = std::move(memory);
      step.result = std::move(result);
      first = false;
      if (as_seen) break;
    }
    step.result.offload = moved;
    return step;
  }

  [[nodiscard]] std::map<std::int16_t, MemoryPlan> plan_places(const Trace& trace, const ComposedStep& step,
                                                               const Result& seen) const {
    std::optional<PlannedTrace> ordered;
    if (step.planned) {
      ordered = *step.planned;
      order_events(*ordered, seen.op_start, seen.op_end);
    }
    const Trace& stream = ordered ? ordered->trace : trace;
    stream.require(parts_.memory->needs, parts_.memory->title);
    return parts_.memory->make({.trace = stream, .replayer = request_.replayer, .settings = request_.settings})
        .plan.memory;
  }

  const Composition& parts_;
  const TechniqueRequest& request_;
  std::optional<Trace> ordered_;  // as planned or given
  bool fates_of_order_ = false;   // the plan's fates are of that trace, not of the program's order
};

}  // namespace

ComposedStep compose(const Composition& parts, const TechniqueRequest& request) {
  return Composer(parts, request).run();
}

}  // namespace spillway::planners
