#include "validation/trainer/kernel_cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/quantile.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/replay/replay.h"
#include "validation/trainer/blind_times.h"
#include "validation/trainer/step_trace.h"
#include "validation/trainer/technique_plans.h"
#include "validation/trainer/trainer.h"

namespace spillway::validation {
namespace {

// A model's graph, its measured trace and what training it without any technique gave.
struct Reference {
  StepGraph graph;
  Trace trace;
  TrainingRun keep;
};

double count(Bytes bytes) { return static_cast<double>(bytes.count()); }

struct Traffic {
  Bytes to_host, from_host, to_drive, from_drive;
};

Traffic measured_traffic(const StepMeasure& step) {
  Traffic traffic;
  for (const TransferRecord& record : step.transfers)
    (record.tier == Tier::host ? (record.inbound ? traffic.from_host : traffic.to_host)
                               : (record.inbound ? traffic.from_drive : traffic.to_drive)) += record.bytes;
  return traffic;
}

Traffic predicted_traffic(const PlannedTrace& planned, const Result& result) {
  Traffic traffic;
  for (const DriveTraffic& drive : result.drives) {
    traffic.to_drive += drive.written;
    traffic.from_drive += drive.read;
  }
  for (std::size_t i = 0; i < planned.trace.ops.size(); ++i) {
    const TransferLane* lane = planned.lane_of(planned.trace.ops.lane[i]);
    if (lane == nullptr || lane->tier != Tier::host) continue;
    (lane->inbound ? traffic.from_host : traffic.to_host) += planned.trace.ops.bytes[i];
  }
  return traffic;
}

// The calls of the graph in the order in which the planned trace's host launches them.
std::vector<std::size_t> planned_calls(const StepGraph& graph, const PlannedTrace& planned) {
  std::map<std::size_t, std::size_t> by_launch;
  for (std::size_t i = 0; i < planned.trace.ops.size(); ++i)
    if (planned.trace.ops.kind[i] == OpKind::kernel)
      by_launch[index_of(planned.trace.ops.launched_by[i])] =
          call_of(graph, planned.trace, OpId(static_cast<std::uint32_t>(i)));
  std::vector<std::size_t> calls;
  for (const auto& [launch, call] : by_launch) calls.push_back(call);
  return calls;
}

using TransferKey = std::tuple<Tier, bool, std::uint32_t, std::int64_t>;  // tier, inbound, tensor, bytes

// By lane, each in its order: what first in, first out promises.
std::vector<TransferKey> planned_transfers(const PlannedTrace& planned, Tier tier, bool inbound) {
  std::vector<TransferKey> list;
  for (const Use& use : planned.trace.uses) {
    const TransferLane* lane = planned.lane_of(planned.trace.ops.lane[index_of(use.op)]);
    if (lane == nullptr || lane->tier != tier || lane->inbound != inbound) continue;
    list.emplace_back(tier, inbound, static_cast<std::uint32_t>(use.tensor),
                      planned.trace.ops.bytes[index_of(use.op)].count());
  }
  return list;
}

std::vector<TransferKey> measured_transfers(const StepMeasure& step, Tier tier, bool inbound) {
  std::vector<const TransferRecord*> records;
  for (const TransferRecord& record : step.transfers)
    if (record.tier == tier && record.inbound == inbound) records.push_back(&record);
  std::stable_sort(records.begin(), records.end(), [](const TransferRecord* a, const TransferRecord* b) {
    return a->started_seconds < b->started_seconds;
  });
  std::vector<TransferKey> list;
  for (const TransferRecord* record : records) list.emplace_back(tier, inbound, record->tensor, record->bytes.count());
  return list;
}

bool transfers_kept(const PlannedTrace& planned, const StepMeasure& step) {
  for (const Tier tier : {Tier::host, Tier::drive})
    for (const bool inbound : {false, true})
      if (planned_transfers(planned, tier, inbound) != measured_transfers(step, tier, inbound)) return false;
  return true;
}

bool same_training(const TrainingRun& a, const TrainingRun& b) {
  return a.weights_digest == b.weights_digest &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const StepMeasure& x, const StepMeasure& y) { return x.loss == y.loss; });
}

ReplayOptions replay_options(const TechniquePlan& technique) {
  ReplayOptions options;
  options.memory.allocator = technique.allocator.policy;
  options.memory.plan = technique.allocator.plan;
  return options;
}

// Of the steps between the first, which warms up, and the last, whose kernels are timed one by one.
double median_of(const TrainingRun& run, double StepMeasure::*figure) {
  std::vector<double> seconds;
  for (std::size_t s = 1; s + 1 < run.steps.size(); ++s) seconds.push_back(run.steps[s].*figure);
  return quantile(std::move(seconds), 0.5);
}

// Of each call of the graph, in a trace of it.
std::vector<Picos> kernel_durations(const StepGraph& graph, const Trace& trace) {
  std::vector<Picos> durations(graph.calls.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.kind[i] == OpKind::kernel)
      durations[call_of(graph, trace, OpId(static_cast<std::uint32_t>(i)))] = trace.ops.duration[i];
  return durations;
}

// The same plan with kernels that take so long, by call.
PlannedTrace with_durations(PlannedTrace planned, const StepGraph& graph, const std::vector<Picos>& durations) {
  for (std::size_t i = 0; i < planned.trace.ops.size(); ++i)
    if (planned.trace.ops.kind[i] == OpKind::kernel)
      planned.trace.ops.duration[i] = durations[call_of(graph, planned.trace, OpId(static_cast<std::uint32_t>(i)))];
  return planned;
}

struct PhaseSeconds {
  double forward = 0, backward = 0, optimizer = 0;
};

// As StepMeasure counts them.
PhaseSeconds predicted_phases(const PlannedTrace& planned, const Result& result) {
  Picos ends[2]{};
  for (std::size_t i = 0; i < planned.trace.ops.size(); ++i) {
    if (planned.trace.ops.kind[i] != OpKind::kernel) continue;
    const Phase phase = planned.trace.ops.phase[i];
    if (phase == Phase::forward) ends[0] = std::max(ends[0], result.op_end[i]);
    if (phase == Phase::backward) ends[1] = std::max(ends[1], result.op_end[i]);
  }
  return {to_seconds(ends[0]), to_seconds(ends[1] - ends[0]), to_seconds(result.step_time - ends[1])};
}

Overlap predicted_overlap(const PlannedTrace& planned, const Result& result) {
  std::vector<TimeSpan> transfers, kernels;
  for (std::size_t i = 0; i < planned.trace.ops.size(); ++i) {
    const TimeSpan span{to_seconds(result.op_start[i]), to_seconds(result.op_end[i])};
    if (planned.lane_of(planned.trace.ops.lane[i]) != nullptr) transfers.push_back(span);
    if (planned.trace.ops.kind[i] == OpKind::kernel) kernels.push_back(span);
  }
  return overlap_of(std::move(transfers), std::move(kernels), to_seconds(result.step_time));
}

Overlap measured_overlap(const StepMeasure& step) {
  std::vector<TimeSpan> transfers, kernels;
  for (const TransferRecord& record : step.transfers)
    transfers.push_back({record.started_seconds, record.ended_seconds});
  for (const KernelTime& kernel : step.kernel_times)
    kernels.push_back({kernel.start_seconds, kernel.start_seconds + to_seconds(kernel.duration)});
  return overlap_of(std::move(transfers), std::move(kernels), step.seconds);
}

class CaseRunner {
 public:
  CaseRunner(Backend& backend, const KernelCaseOptions& options) : backend_(backend), options_(options) {}

  KernelOutcome run(const KernelCase& one) {
    KernelOutcome outcome;
    outcome.run = one;
    const Reference& reference = reference_of(one.shape);
    TechniquePlan technique = technique_plan(reference.trace, one.technique, *options_.hardware);
    PlanRunOptions run_options;
    run_options.allocator = technique.allocator;
    run_options.file = options_.file;
    run_options.in_order = true;
    run_options.gpudirect = backend_.name() == "cuda";
    TrainingRun run;
    std::optional<TrainingRun> timed;
    try {
      run = train(backend_, reference.graph, reference.trace, technique.plan, run_options, options_.steps);
      run_options.in_order = false;
      if (options_.step_times)
        timed = train(backend_, reference.graph, reference.trace, technique.plan, run_options,
                      std::max(options_.steps, 2) + 1, true);
    } catch (const InputError& error) {
      if (run_options.file != error.file() && error.file() != "io_uring" && !error.file().empty()) throw;
      outcome.skipped = error.what();
      return outcome;
    }
    const bool by_host = run.file_access != "GPUDirect Storage" && run.file_access != "cuFile";
    if (technique.plan.fates && by_host) technique.plan.fates->route = DriveRoute::bounce;
    compare(reference, technique, run, timed, outcome);
    return outcome;
  }

 private:
  const Reference& reference_of(const TrainerModel& shape) {
    if (known_ && shape_ == std::tuple(shape.vocabulary, shape.hidden, shape.heads, shape.layers, shape.sequence,
                                       shape.batch, shape.type, shape.seed))
      return *known_;
    known_.reset();
    Reference reference{step_graph(shape), {}, {}};
    reference.trace = measured_trace(backend_, reference.graph);
    const TechniquePlan keep = technique_plan(reference.trace, trainer_techniques().front(), *options_.hardware);
    PlanRunOptions run_options;
    run_options.allocator = keep.allocator;
    reference.keep = train(backend_, reference.graph, reference.trace, keep.plan, run_options, options_.steps);
    known_ = std::move(reference);
    shape_ = {shape.vocabulary, shape.hidden, shape.heads, shape.layers,
              shape.sequence,   shape.batch,  shape.type,  shape.seed};
    return *known_;
  }

  void compare(const Reference& reference, const TechniquePlan& technique, const TrainingRun& run,
               const std::optional<TrainingRun>& timed, KernelOutcome& outcome) const {
    const PlannedTrace planned = planned_step(reference.trace, technique.plan);
    const Result result = replay(planned, *options_.hardware, replay_options(technique));
    AllocationStreamOptions stream;
    stream.pool = technique.allocator;
    const Trace ordered = in_program_order(planned);
    const PoolStatistics memory = replay_allocation_stream(ordered, stream).statistics.all();
    const StepMeasure& first = run.steps.front();
    const Traffic measured = measured_traffic(first), predicted = predicted_traffic(planned, result);
    const auto row = [&](const char* metric, Bytes a, Bytes b) {
      outcome.rows.push_back({metric, "B", count(a), count(b), std::nullopt});
    };
    row("host_written", measured.to_host, predicted.to_host);
    row("host_read", measured.from_host, predicted.from_host);
    row("drive_written", measured.to_drive, predicted.to_drive);
    row("drive_read", measured.from_drive, predicted.from_drive);
    if (timed) compare_times(reference, planned, result, replay_options(technique), *timed, outcome);
    outcome.first_loss = run.steps.front().loss;
    outcome.last_loss = run.steps.back().loss;
    outcome.same_bits = same_training(run, reference.keep);
    const std::vector<std::size_t> calls = planned_calls(reference.graph, planned);
    outcome.order_kept = outcome.transfers_kept = true;
    for (const StepMeasure& step : run.steps) {
      outcome.order_kept &= step.calls == calls;
      outcome.transfers_kept &= transfers_kept(planned, step);
    }
    outcome.pool_allocated = first.peak_allocated;
    outcome.pool_reserved = first.peak_reserved;
    outcome.pool_kept = first.peak_allocated == Bytes(memory.allocated_bytes.peak) &&
                        first.peak_reserved == Bytes(memory.reserved_bytes.peak);
    outcome.file_access = run.file_access;
  }

  void compare_times(const Reference& reference, const PlannedTrace& planned, const Result& result,
                     const ReplayOptions& options, const TrainingRun& run, KernelOutcome& outcome) const {
    const BlindTimes times =
        blind_times(reference.graph, *options_.hardware, kernel_durations(reference.graph, reference.trace));
    const PlannedTrace unseen = with_durations(planned, reference.graph, times.durations);
    const Result blind_result = replay(unseen, *options_.hardware, options);
    outcome.measured_share = times.measured_share;
    const auto row = [&](const char* metric, double measured, double from_trace, double blind) {
      outcome.rows.push_back({metric, "s", measured, from_trace, blind});
    };
    const PhaseSeconds phases = predicted_phases(planned, result), blind = predicted_phases(unseen, blind_result);
    row("step_time", median_of(run, &StepMeasure::seconds), to_seconds(result.step_time),
        to_seconds(blind_result.step_time));
    row("forward_time", median_of(run, &StepMeasure::forward_seconds), phases.forward, blind.forward);
    row("backward_time", median_of(run, &StepMeasure::backward_seconds), phases.backward, blind.backward);
    row("optimizer_time", median_of(run, &StepMeasure::optimizer_seconds), phases.optimizer, blind.optimizer);
    if (run.steps.back().transfers.empty()) return;
    outcome.measured_overlap = measured_overlap(run.steps.back());
    outcome.predicted_overlap = predicted_overlap(planned, result);
    const Overlap blind_overlap = predicted_overlap(unseen, blind_result);
    row("transfers_hidden", outcome.measured_overlap->hidden_seconds, outcome.predicted_overlap->hidden_seconds,
        blind_overlap.hidden_seconds);
    row("transfers_exposed", outcome.measured_overlap->exposed_seconds(), outcome.predicted_overlap->exposed_seconds(),
        blind_overlap.exposed_seconds());
  }

  Backend& backend_;
  const KernelCaseOptions& options_;
  std::optional<Reference> known_;
  std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, ElementType,
             std::uint64_t>
      shape_;
};

void add_all_techniques(std::vector<KernelCase>& cases, const std::string& name, const TrainerModel& shape) {
  for (const std::string_view technique : trainer_techniques())
    cases.push_back({name, shape, std::string(technique), false});
}

}  // namespace

double KernelRow::error_of(double predicted) const {
  if (measured == 0) return predicted == 0 ? 0 : std::numeric_limits<double>::infinity();
  return predicted / measured - 1;
}

std::vector<KernelSummary> summarize(const std::vector<KernelOutcome>& outcomes) {
  struct Pairs {
    std::vector<double> measured, predicted;
  };
  std::vector<std::string> metrics;
  std::map<std::string, std::array<Pairs, 2>> rows;  // from a trace, blind
  const auto add = [](Pairs& pairs, double measured, double predicted) {
    pairs.measured.push_back(measured);
    pairs.predicted.push_back(predicted);
  };
  for (const KernelOutcome& outcome : outcomes)
    for (const KernelRow& row : outcome.rows) {
      if (row.measured <= 0) continue;
      const auto [pairs, is_first] = rows.try_emplace(row.metric);
      if (is_first) metrics.push_back(row.metric);
      add(pairs->second[0], row.measured, row.from_trace);
      if (row.blind) add(pairs->second[1], row.measured, *row.blind);
    }
  std::vector<KernelSummary> summaries;
  for (const std::string& metric : metrics)
    for (const bool is_blind : {true, false})
      if (const Pairs& pairs = rows[metric][is_blind ? 1 : 0]; !pairs.measured.empty())
        summaries.push_back({metric, is_blind, error_statistics(pairs.measured, pairs.predicted)});
  return summaries;
}

std::vector<KernelCase> cpu_kernel_cases() {
  std::vector<KernelCase> cases;
  TrainerModel small;
  small.layers = 3;
  add_all_techniques(cases, "3 layers of 32, fp32", small);
  TrainerModel mixed;
  mixed.vocabulary = 128;
  mixed.hidden = 64;
  mixed.sequence = 32;
  mixed.type = ElementType::bf16;
  add_all_techniques(cases, "2 layers of 64, bf16", mixed);
  mixed.batch = 4;
  add_all_techniques(cases, "2 layers of 64, bf16, batch 4", mixed);
  return cases;
}

std::vector<KernelCase> gpu_kernel_cases() {
  struct Size {
    const char* name;
    std::int64_t vocabulary, hidden, heads, layers, sequence;
    std::vector<std::int64_t> batches;
  };
  const std::vector<Size> sizes = {{"GPT-2 124M", 50304, 768, 12, 12, 1024, {2, 4, 8}},
                                   {"BERT-large size", 30592, 1024, 16, 24, 512, {8}},
                                   {"GPT-2 774M", 50304, 1280, 20, 36, 1024, {2, 4}},
                                   {"Llama-1B size", 32000, 2048, 32, 16, 1024, {2}}};
  std::vector<KernelCase> cases;
  for (const Size& size : sizes)
    for (const std::int64_t batch : size.batches) {
      TrainerModel shape;
      shape.vocabulary = size.vocabulary;
      shape.hidden = size.hidden;
      shape.heads = size.heads;
      shape.layers = size.layers;
      shape.sequence = size.sequence;
      shape.batch = batch;
      shape.type = ElementType::bf16;
      shape.learning_rate = 3e-4F;
      add_all_techniques(cases, std::string(size.name) + ", batch " + std::to_string(batch), shape);
    }
  TrainerModel look;
  look.vocabulary = 128;
  look.hidden = 64;
  look.sequence = 32;
  look.type = ElementType::bf16;
  const std::size_t before = cases.size();
  add_all_techniques(cases, "2 layers of 64", look);
  for (std::size_t i = before; i < cases.size(); ++i) cases[i].is_look = true;
  return cases;
}

std::vector<KernelOutcome> run_kernel_cases(Backend& backend, const std::vector<KernelCase>& cases,
                                            const KernelCaseOptions& options,
                                            const std::function<bool(std::size_t, std::size_t)>& progress) {
  SPILLWAY_ASSERT(options.steps >= 1 && options.hardware != nullptr);
  CaseRunner runner(backend, options);
  std::vector<KernelOutcome> outcomes;
  for (const KernelCase& one : cases) {
    if (progress && !progress(outcomes.size(), cases.size())) throw Cancelled{};
    outcomes.push_back(runner.run(one));
  }
  return outcomes;
}

}  // namespace spillway::validation
