#include "validation/kernel_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/devices/memory/allocation_stream.h"
#include "sim/replay/replay.h"
#include "traces/base/byte_source.h"
#include "traces/base/input_error.h"
#include "validation/trainer/step_trace.h"
#include "validation/trainer/technique_plans.h"
#include "validation/trainer/trainer.h"

namespace spillway {
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

double median_seconds(const TrainingRun& run) {
  std::vector<double> seconds;
  for (std::size_t s = run.steps.size() > 1 ? 1 : 0; s < run.steps.size(); ++s) seconds.push_back(run.steps[s].seconds);
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

class CaseRunner {
 public:
  CaseRunner(Backend& backend, const KernelCaseOptions& options) : backend_(backend), options_(options) {}

  KernelOutcome run(const KernelCase& one) {
    KernelOutcome outcome;
    outcome.run = one;
    const Reference& reference = reference_of(one.shape);
    const TechniquePlan technique = technique_plan(reference.trace, one.technique);
    PlanRunOptions run_options;
    run_options.allocator = technique.allocator;
    run_options.file = options_.file;
    run_options.in_order = true;
    TrainingRun run;
    try {
      run = train(backend_, reference.graph, reference.trace, technique.plan, run_options, options_.steps);
    } catch (const InputError& error) {
      if (run_options.file != error.file() && error.file() != "io_uring" && !error.file().empty()) throw;
      outcome.skipped = error.what();
      return outcome;
    }
    compare(reference, technique, run, outcome);
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
    const TechniquePlan keep = technique_plan(reference.trace, "keep");
    PlanRunOptions run_options;
    run_options.allocator = keep.allocator;
    reference.keep = train(backend_, reference.graph, reference.trace, keep.plan, run_options, options_.steps);
    known_ = std::move(reference);
    shape_ = {shape.vocabulary, shape.hidden, shape.heads, shape.layers,
              shape.sequence,   shape.batch,  shape.type,  shape.seed};
    return *known_;
  }

  void compare(const Reference& reference, const TechniquePlan& technique, const TrainingRun& run,
               KernelOutcome& outcome) const {
    const PlannedTrace planned = planned_step(reference.trace, technique.plan);
    const Result result = replay(planned, *options_.hardware, replay_options(technique));
    AllocationStreamOptions stream;
    stream.pool = technique.allocator;
    const Trace ordered = in_program_order(planned);
    const PoolStatistics memory = replay_allocation_stream(ordered, stream).statistics.all();
    const StepMeasure& first = run.steps.front();
    const Traffic measured = measured_traffic(first), predicted = predicted_traffic(planned, result);
    const auto row = [&](const char* metric, Bytes a, Bytes b) {
      outcome.rows.push_back({metric, "B", count(a), count(b)});
    };
    row("peak_allocated", first.peak_allocated, Bytes(memory.allocated_bytes.peak));
    row("peak_reserved", first.peak_reserved, Bytes(memory.reserved_bytes.peak));
    row("host_written", measured.to_host, predicted.to_host);
    row("host_read", measured.from_host, predicted.from_host);
    row("drive_written", measured.to_drive, predicted.to_drive);
    row("drive_read", measured.from_drive, predicted.from_drive);
    if (options_.step_times)
      outcome.rows.push_back({"step_time", "s", median_seconds(run), to_seconds(result.step_time)});
    outcome.first_loss = run.steps.front().loss;
    outcome.last_loss = run.steps.back().loss;
    outcome.same_bits = same_training(run, reference.keep);
    const std::vector<std::size_t> calls = planned_calls(reference.graph, planned);
    outcome.order_kept = outcome.transfers_kept = true;
    for (const StepMeasure& step : run.steps) {
      outcome.order_kept &= step.calls == calls;
      outcome.transfers_kept &= transfers_kept(planned, step);
    }
    outcome.file_access = run.file_access;
  }

  Backend& backend_;
  const KernelCaseOptions& options_;
  std::optional<Reference> known_;
  std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, ElementType,
             std::uint64_t>
      shape_;
};

void add_all_techniques(std::vector<KernelCase>& cases, const std::string& name, const TrainerModel& shape) {
  for (const std::string_view technique : techniques()) cases.push_back({name, shape, std::string(technique)});
}

}  // namespace

double KernelRow::relative_error() const {
  if (measured == 0) return predicted == 0 ? 0 : std::numeric_limits<double>::infinity();
  return predicted / measured - 1;
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
  return cases;
}

std::vector<KernelCase> gpu_kernel_cases() {
  struct Size {
    const char* name;
    std::int64_t vocabulary, hidden, heads, layers, sequence;
    std::vector<std::int64_t> batches;
  };
  const std::vector<Size> sizes = {{"GPT-2 124M", 50304, 768, 12, 12, 1024, {4, 8}},
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

}  // namespace spillway
