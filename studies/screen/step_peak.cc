#include "studies/screen/step_peak.h"

#include <algorithm>
#include <vector>

#include "models/pipeline/named_schedules.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/trace_generator.h"
#include "scenario/scenario_run.h"

namespace spillway::studies {
namespace {

// A stage's first passes differ (they make the gradients), its last ones reduce them, and warm-ups reach over up to
// three rounds of p micro-batches where chunks interleave; what lies between asks for the same again.
constexpr std::int64_t least_rounds = 3, least_batches = 6;
// Stages are run that may be the fullest by estimates of what they hold: no further than these.
constexpr std::size_t most_stages = 2;
constexpr double least_share = 0.8;  // of what the fullest holds

std::int64_t run_batches(const TrainingSetup& setup) {
  const std::int64_t p = setup.pipeline_parallel, m = setup.gradient_accumulation;
  if (setup.pipeline_schedule == all_forwards_first) return m;
  const std::int64_t rounds = std::max(least_rounds, (least_batches + p - 1) / p);
  return m - p * std::max<std::int64_t>(0, m / p - rounds);
}

TrainingSetup stream_setup(const ModelSpec& model, const TrainingSetup& resolved) {
  TrainingSetup setup = step_setup(model, resolved);
  even_out(model, setup);
  setup.gradient_accumulation = run_batches(setup);
  setup.global_batch = 0;
  return setup;
}

Trace stream_trace(const StepMachine& machine, const TrainingSetup& setup, std::int64_t stage) {
  if (!has_stages(setup)) return generate_trace(*machine.model, setup, *machine.cost, machine.cluster);
  return generate_stage_trace(*machine.model, setup, *machine.cost, machine.cluster, stage);
}

}  // namespace

StepPeak StepPeaks::stage_peak(const StepMachine& machine, const TrainingSetup& setup, std::int64_t stage,
                               Bytes capacity) {
  const std::string key = shape_key(setup) + std::to_string(stage);
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Entry>& kept = known_[key];
    if (!kept) kept = std::make_unique<Entry>();
    entry = kept.get();
  }
  std::call_once(entry->once, [&] {
    const Trace trace = stream_trace(machine, setup, stage);
    const auto events = index_memory_events(trace);
    if (events.empty()) return;
    const auto& device = events.front().first;
    const auto& index = events.front().second;
    const auto run = [&](Bytes limit) {
      AllocationStreamOptions options = stream_options(machine.options.memory, device, limit);
      options.stop_when_out_of_memory = limit > Bytes(0);
      return replay_allocation_stream(trace, index, options);
    };
    const auto note = [&](const AllocationStreamResult& result) {
      entry->peak = {Bytes(result.statistics.all().allocated_bytes.peak),
                     Bytes(result.statistics.all().reserved_bytes.peak)};
    };
    note(run(Bytes(0)));
    if (capacity == Bytes(0) || entry->peak.reserved <= capacity || entry->peak.allocated > capacity) return;
    const AllocationStreamResult limited = run(capacity);
    if (limited.out_of_memory == 0) note(limited);
  });
  return entry->peak;
}

StepPeak StepPeaks::peak(const StepMachine& machine, const StepShape& shape, const TrainingSetup& resolved,
                         Bytes capacity) {
  const std::vector<Bytes> held = stage_peaks(machine, shape, resolved);
  std::vector<std::int64_t> stages(held.size());
  for (std::size_t i = 0; i < stages.size(); ++i) stages[i] = static_cast<std::int64_t>(i);
  std::stable_sort(stages.begin(), stages.end(), [&](std::int64_t one, std::int64_t other) {
    return held[static_cast<std::size_t>(one)] > held[static_cast<std::size_t>(other)];
  });
  const TrainingSetup setup = stream_setup(*machine.model, resolved);
  StepPeak most;
  for (std::size_t i = 0; i < std::min(most_stages, stages.size()); ++i) {
    const auto held_here = static_cast<double>(held[static_cast<std::size_t>(stages[i])].count());
    const auto held_most = static_cast<double>(held[static_cast<std::size_t>(stages[0])].count());
    if (held_here < least_share * held_most) break;
    const StepPeak one = stage_peak(machine, setup, stages[i], capacity);
    most.allocated = std::max(most.allocated, one.allocated);
    most.reserved = std::max(most.reserved, one.reserved);
  }
  return most;
}

}  // namespace spillway::studies
