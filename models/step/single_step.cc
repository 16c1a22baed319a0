#include "models/step/single_step.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/network/transformer.h"
#include "models/session/autograd.h"
#include "models/session/eager_session.h"
#include "models/spec/expert_load.h"
#include "models/step/gradient_reducer.h"
#include "models/step/host_optimizer.h"
#include "models/step/host_times.h"
#include "models/step/optimizer_step.h"
#include "models/step/reference_pass.h"
#include "models/step/step_clock.h"

namespace spillway::models {
namespace {

constexpr std::size_t least_periods = 3;  // shown, so that two in a row can be compared

void run_micro_batch(EagerSession& session, Autograd& autograd, Transformer& transformer, GradientReducer* reducer,
                     ReferencePass* reference, bool is_last) {
  session.set_phase(Phase::forward);
  const Tensor ids = transformer.empty_input();
  session.copy_in(ids);
  const Tensor labels = transformer.empty_labels();
  session.copy_in(labels);
  const Tensor loss = transformer.forward(ids, labels);
  std::vector<Tensor> passed;
  if (reference != nullptr) reference->run(transformer, ids, labels, passed);
  session.set_phase(Phase::backward);
  Tensor seed = session.empty("loss.grad", DataType::fp32, 1, TensorRole::temporary);
  session.kernel({.name = "fill_one", .writes = {seed}});
  if (reducer != nullptr) reducer->begin_backward(is_last);
  autograd.backward(loss, std::move(seed));
  if (reducer != nullptr) reducer->end_backward();
  transformer.end_micro_batch();
  session.set_layer(-1);
}

struct RecordedStep {
  Trace trace;
  std::vector<DrawingOp> drawing;
  std::vector<TraceMark> marks;  // before each micro-batch, and behind the last
};

// `merges_frees`: a free is one event, as in stage programs; else a request and a completion.
RecordedStep record(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost, bool merges_frees) {
  EagerSession session(cost, cost.gpu().title);
  if (merges_frees) session.merge_free_events();
  set_host_times(session, setup);
  session.set_graph_pool(setup.graph_pool && !setup.captures(whole_iteration));
  Autograd autograd(session);
  const ModelPart whole{.layers = {0, model.all_layers()}};
  Transformer transformer(model, setup, whole, session, autograd, nullptr);
  std::vector<TrainedParameter*> parameters;
  for (TrainedParameter& parameter : transformer.parameters())
    if (parameter.trains) parameters.push_back(&parameter);
  std::optional<OptimizerStep> optimizer;
  std::optional<HostOptimizer> host_optimizer;
  std::optional<GradientReducer> reducer;
  std::optional<ReferencePass> reference;
  if (setup.compares_answers()) reference.emplace(model, setup, whole, session, autograd, nullptr);
  if (setup.optimizer_device == StateDevice::gpu) {
    optimizer.emplace(setup, session, parameters, nullptr);
    if (setup.updates_in_backward()) {
      reducer.emplace(setup, session, autograd, nullptr);
      reducer->set_update([&optimizer](TrainedParameter& parameter) { optimizer->update_now(parameter); });
    }
  } else {
    host_optimizer.emplace(setup, session, parameters, nullptr, 1);
    reducer.emplace(setup, session, autograd, nullptr);
    reducer->set_host(*host_optimizer);
  }
  session.begin_step("step 0");
  if (setup.has_expert_loads()) transformer.set_expert_load(ExpertLoad(model, setup));
  RecordedStep step;
  for (std::int64_t index = 0; index < setup.gradient_accumulation; ++index) {
    step.marks.push_back(session.mark());
    session.set_micro_batch(index);
    transformer.set_expert_pass(index);
    run_micro_batch(session, autograd, transformer, reducer ? &*reducer : nullptr, reference ? &*reference : nullptr,
                    index + 1 == setup.gradient_accumulation);
  }
  step.marks.push_back(session.mark());
  session.set_micro_batch(-1);
  session.set_phase(Phase::optimizer);
  if (host_optimizer)
    host_optimizer->run();
  else
    optimizer->run();
  step.trace = session.finish();
  step.drawing = session.take_drawing();
  step.trace.provenance.push_back(
      {.file = model.name, .format = "generated", .producer = "spillway: " + model.title + " on " + cost.gpu().title});
  return step;
}

std::uint64_t address_at(const RecordedStep& step, const TraceMark& mark) {
  for (std::size_t e = mark.memory_events; e < step.trace.memory_events.size(); ++e)
    if (const MemoryEvent& event = step.trace.memory_events[e]; event.action == MemoryAction::allocate)
      return event.address.count();
  return 0;
}

// The micro-batches that are alike. None where there are too few or where they aren't.
std::optional<StepFold::Rank> periods_of(const RecordedStep& step, const TrainingSetup& setup) {
  const std::vector<TraceMark>& marks = step.marks;
  constexpr std::size_t first = micro_batches_apart;
  if (setup.has_expert_loads() || marks.size() < first + least_periods + 2) return std::nullopt;
  const std::size_t count = marks.size() - first - 2;  // the last micro-batch is none of them
  const std::uint64_t address = address_at(step, marks[first]);
  const StepFold::Rank rank{
      .periods = static_cast<std::uint32_t>(count),
      .op = static_cast<std::uint32_t>(marks[first].ops),
      .ops = static_cast<std::uint32_t>(marks[first + 1].ops - marks[first].ops),
      .event = static_cast<std::uint32_t>(marks[first].memory_events),
      .events = static_cast<std::uint32_t>(marks[first + 1].memory_events - marks[first].memory_events),
      .address = address,
      .bytes = address_at(step, marks[first + 1]) - address};
  for (std::size_t k = 1; k <= count; ++k) {
    const TraceMark& mark = marks[first + k];
    if (mark.ops != rank.op + k * rank.ops || mark.memory_events != rank.event + k * rank.events ||
        address_at(step, mark) != rank.address + k * rank.bytes)
      return std::nullopt;
  }
  return rank;
}

// Work that draws power, by what is done once and what is done in each of the equal micro-batches.
RepeatedDrawing drawing_of(const RecordedStep& step, const std::optional<StepFold::Rank>& periods,
                           std::int64_t more_times) {
  const auto all = std::span<const DrawingOp>(step.drawing);
  if (!periods) return {.shown = all, .before = all};
  const auto until = [&all](std::uint32_t op) {
    return static_cast<std::size_t>(
        std::lower_bound(all.begin(), all.end(), op,
                         [](const DrawingOp& one, std::uint32_t wanted) { return index_of(one.op) < wanted; }) -
        all.begin());
  };
  const std::size_t first = until(periods->op), second = until(periods->op + periods->ops), end = until(periods->end());
  return {.shown = all,
          .before = all.first(first),
          .repeated = all.subspan(first, second - first),
          .after = all.subspan(end),
          .times = periods->periods + more_times};
}

// What a micro-batch more adds to the step as recorded, and what the host gains on the GPU in it.
struct Pace {
  Picos host{}, behind{};
};

// Host and GPU's stream begin an op when the later of two sums lets them, so the stream's lag behind the host goes on
// as it did: where it stayed as it was it stays, and where it grew by as much twice it grows by that. One that shrinks
// will not for ever.
std::optional<Pace> pace_of(const RecordedStep& step) {
  const std::vector<TraceMark>& marks = step.marks;
  const std::size_t last = marks.size() - 2;  // before the last micro-batch
  const auto pace = [&marks](std::size_t to) {
    const Picos host = marks[to].host - marks[to - 1].host;
    return Pace{host, marks[to].stream - marks[to - 1].stream - host};
  };
  const Pace now = pace(last), before = pace(last - 1);
  if (now.host != before.host || now.behind != before.behind || now.behind < Picos(0)) return std::nullopt;
  return now;
}

// When the whole step ends, as its session would have recorded it: what follows the last shown period, begun so much
// later on the host, and on the stream so much later again.
Picos recorded_end(const RecordedStep& step, const StepFold::Rank& periods, const Pace& pace, std::int64_t times,
                   const GpuProfile& gpu) {
  const Ops& ops = step.trace.ops;
  const TraceMark& from = step.marks[step.marks.size() - 2];
  const auto first_work =
      std::find_if(ops.launched_by.begin(), ops.launched_by.end(), [](OpId call) { return call != OpId::none; });
  const LaneId kernels = ops.lane[static_cast<std::size_t>(first_work - ops.launched_by.begin())];
  const Picos later = pace.host * times;
  Picos host = from.host + later, stream = from.stream + later + pace.behind * times;
  for (std::size_t i = periods.end(); i < ops.size(); ++i) {
    if (is_host_call(ops.kind[i])) {
      if (ops.start[i] != unknown_time && ops.lane[i] == ops.lane.front())
        host = std::max(host, ops.start[i] + ops.duration[i] + later);
      continue;
    }
    const OpId call = ops.launched_by[i];
    if (call == OpId::none || ops.lane[i] != kernels) continue;
    const Picos called = ops.start[index_of(call)] + ops.duration[index_of(call)] + later;
    stream = std::max(called + gpu.launch_to_start.value, stream + gpu.kernel_gap.value) + ops.duration[i];
  }
  return std::max(host, stream);
}

}  // namespace

Trace generate_single_step(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost) {
  RecordedStep step = record(model, setup, cost, false);
  settle_clock(step.trace, drawing_of(step, periods_of(step, setup), 0), step.trace.steps.back().duration, cost);
  return std::move(step.trace);
}

std::optional<FoldedTrace> generate_folded_single_step(const ModelSpec& model, const TrainingSetup& setup,
                                                       const CostModel& cost, std::int64_t shown, std::int64_t turns) {
  const std::int64_t times = (setup.gradient_accumulation - shown) / turns * turns;
  const bool one_lane = setup.optimizer_device == StateDevice::gpu && !setup.launch_blocking;
  if (times <= 0 || !one_lane || setup.has_expert_loads() || setup.evaluate_every > 0) return std::nullopt;
  TrainingSetup part = setup;
  part.global_batch = 0;
  part.gradient_accumulation = setup.gradient_accumulation - times;
  RecordedStep step = record(model, part, cost, true);
  const std::optional<StepFold::Rank> periods = periods_of(step, part);
  const std::optional<Pace> pace = periods ? pace_of(step) : std::nullopt;
  if (!pace) return std::nullopt;
  const Picos duration = recorded_end(step, *periods, *pace, times, cost.gpu()) - step.trace.steps.back().start;
  settle_clock(step.trace, drawing_of(step, periods, times), duration, cost);
  return FoldedTrace{std::move(step.trace), {.times = times, .ranks = {*periods}}, part.gradient_accumulation, 1};
}

}  // namespace spillway::models
