#include "sim/replay/replay.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/give_back.h"
#include "base/input_error.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "sim/engine/executor.h"
#include "sim/engine/wide.h"
#include "sim/replay/critical_path.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/gpu_busy.h"
#include "sim/replay/host_memory.h"
#include "sim/replay/lowering.h"
#include "sim/replay/periodic_run.h"
#include "sim/replay/planned_fold.h"
#include "sim/replay/step_pace.h"
#include "sim/replay/transfer_links.h"

namespace spillway::sim {
namespace {

constexpr int most_rounds = 4;  // of simulations until drives' caches begin a step as full as they end it

Binding largest(const std::array<Picos, binding_count>& parts) {
  return static_cast<Binding>(std::max_element(parts.begin(), parts.end()) - parts.begin());
}

struct Interval {
  Picos begin{}, end{};
};

// Length of the union, as far as it is within a time. Sorts its argument.
Picos covered(std::vector<Interval>& intervals, Interval within = {Picos(0), Picos::max()}) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Picos total{}, reached = within.begin;
  for (const Interval& i : intervals) {
    const Picos end = std::min(i.end, within.end);
    if (end <= reached || i.begin >= end) continue;
    total += end - std::max(i.begin, reached);
    reached = end;
  }
  return total;
}

std::int64_t runs_of(const PeriodicRun* whole, std::size_t op) {
  return whole == nullptr ? 1 : whole->runs_of(OpId(static_cast<std::uint32_t>(op)));
}
Picos shift_of(const PeriodicRun* whole, std::size_t op) {
  return whole == nullptr ? Picos(0) : whole->shift_of(OpId(static_cast<std::uint32_t>(op)));
}

// From its first launch to the end of the last work launched in it. O(ops + steps).
class StepClock {
 public:
  // whole: of a folded step; else null.
  StepClock(const Trace& trace, const Result& result, const PeriodicRun* whole)
      : trace_(trace), result_(result), whole_(whole) {}

  [[nodiscard]] std::vector<StepResult> run() const {
    std::vector<StepResult> steps;
    const std::vector<Measure> measures = measure(trace_.steps.size(), [this](std::size_t i) {
      const OpId by = trace_.ops.launched_by[i];
      return trace_.ops.step[by == OpId::none ? i : index_of(by)];
    });
    for (std::size_t s = 0; s < measures.size(); ++s) {
      StepResult step = result_of(measures[s]);
      step.name = trace_.strings.text(trace_.steps[s].name);
      if (step.end > step.begin) steps.push_back(step);
    }
    if (!steps.empty()) return steps;
    StepResult whole = result_of(measure(1, [](std::size_t) { return std::uint16_t{0}; }).front());
    whole.name = "whole trace";
    return {whole};
  }

 private:
  struct Measure {
    Picos begin = Picos::max(), end{}, recorded_begin = Picos::max(), recorded_end{}, device_busy{};
    bool has_device_work = false, timed = true;
  };

  // step_of(op): whose it is; ops of none are no_index16.
  template <class StepOf>
  [[nodiscard]] std::vector<Measure> measure(std::size_t count, StepOf step_of) const {
    const Ops& ops = trace_.ops;
    std::vector<Measure> steps(count);
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (const std::size_t s = step_of(i); is_device_work(ops.kind[i]) && s < count) steps[s].has_device_work = true;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::size_t s = step_of(i);
      if (s >= count || result_.op_start[i] == unknown_time) continue;
      Measure& step = steps[s];
      if (step.has_device_work && !is_device_work(ops.kind[i]) && !is_storage(ops.kind[i])) continue;
      const OpId by = ops.launched_by[i];
      const std::size_t first = by == OpId::none ? i : index_of(by);
      step.begin = std::min(step.begin, result_.op_start[first]);
      step.end = std::max(step.end, result_.op_end[i]);
      if (is_device_work(ops.kind[i]))
        step.device_busy += (result_.op_end[i] - result_.op_start[i]) * runs_of(whole_, i);
      step.timed &= ops.start[i] != unknown_time && ops.duration[i] != unknown_time && ops.start[first] != unknown_time;
      if (!step.timed) continue;
      step.recorded_begin = std::min(step.recorded_begin, ops.start[first]);
      step.recorded_end = std::max(step.recorded_end, ops.start[i] + ops.duration[i]);
    }
    return steps;
  }

  [[nodiscard]] StepResult result_of(const Measure& measure) const {
    StepResult step;
    step.device_busy = measure.device_busy;
    if (measure.begin == Picos::max()) return step;
    step.begin = measure.begin;
    step.end = measure.end;
    const bool captured = trace_.provenance.empty() || (trace_.provenance.front().format != "generated" &&
                                                        trace_.provenance.front().format != "operators");
    if (measure.timed && captured) step.recorded_span = measure.recorded_end - measure.recorded_begin;
    return step;
  }

  const Trace& trace_;
  const Result& result_;
  const PeriodicRun* whole_;
};

// Of several steps the median period, from one's end to the next one's; of one its span.
Picos step_time(const std::vector<StepResult>& steps) {
  if (steps.size() < 2) return steps.empty() ? Picos(0) : steps.front().span();
  std::vector<Picos> periods;
  for (std::size_t s = 1; s < steps.size(); ++s) periods.push_back(steps[s].end - steps[s - 1].end);
  std::sort(periods.begin(), periods.end());
  const std::size_t upper = periods.size() / 2, lower = (periods.size() - 1) / 2;
  return (periods[lower] + periods[upper]) / 2;
}

void explain_failure(const Trace& trace, const LoweredTrace& lowered, const Outcome& outcome) {
  std::string names;
  for (const ActivityId a : outcome.cycle.empty() ? outcome.waiting : outcome.cycle) {
    if (names.size() > 300) break;
    const OpId op = lowered.op[index(a)];
    names += (names.empty() ? "" : " -> ") + std::string(trace.strings.text(trace.ops.name[index_of(op)])) + " (op " +
             std::to_string(index_of(op)) + ")";
  }
  throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, "dependencies",
                   "the step can't run: ops wait for each other: " + names,
                   "check the trace's edges and event waits with `spillway trace check`");
}

void record_times(const Trace& trace, const LoweredTrace& lowered, const ExecutorState& run, Result& result) {
  result.op_start.assign(trace.ops.size(), unknown_time);
  result.op_end.assign(trace.ops.size(), unknown_time);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (lowered.begin[i] == no_activity) continue;
    result.op_start[i] = run.start(lowered.begin[i]);
    result.op_end[i] = run.end(lowered.end[i]);
  }
}

// Busy times by rank (gpu_busy.h): kernels run in the order of their columns, collectives beside them.
struct RankWork {
  std::vector<Interval> compute, communication;
  Picos compute_busy{};
  bool has_device = false;  // something ran there, if only a copy
};

// As replayed; busy times are the whole step's.
std::vector<RankWork> work_by_rank(const Trace& trace, const Result& result, const PeriodicRun* whole) {
  std::vector<RankWork> ranks(std::max<std::size_t>(trace.rank_count, 1));
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const OpKind kind = trace.ops.kind[i];
    if (!is_device_work(kind) || result.op_start[i] == unknown_time) continue;
    const std::size_t number = trace.lanes[index_of(trace.ops.lane[i])].rank;
    RankWork& rank = ranks[number < ranks.size() ? number : 0];
    rank.has_device = true;
    if (!keeps_gpu_busy(kind)) continue;
    const Picos shift = shift_of(whole, i);
    const Interval interval{result.op_start[i] - shift, result.op_end[i] - shift};
    if (kind == OpKind::collective) {
      rank.communication.push_back(interval);
    } else {
      rank.compute.push_back(interval);
      rank.compute_busy += (interval.end - interval.begin) * runs_of(whole, i);
    }
  }
  return ranks;
}

// Leaves rank.communication merged into rank.compute. usual_time: of a folded step, see PeriodicRun.
std::optional<double> idle_fraction(RankWork& rank, Picos replayed, const PeriodicRun* whole, Picos usual_time) {
  if (!rank.has_device) return std::nullopt;
  rank.compute.insert(rank.compute.end(), rank.communication.begin(), rank.communication.end());
  Picos busy = covered(rank.compute);
  if (whole != nullptr) busy += covered(rank.compute, {usual_time - whole->period(), usual_time}) * whole->times();
  return 1 - to_seconds(busy) / to_seconds(replayed);
}

std::string rank_name(const Trace& trace, std::size_t rank) {
  const std::string_view prefix = "host of ";
  for (const Lane& lane : trace.lanes) {
    const std::string_view name = trace.strings.text(lane.name);
    if (lane.rank == rank && lane.kind == LaneKind::host_thread && name.starts_with(prefix))
      return std::string(name.substr(prefix.size()));
  }
  return "rank " + std::to_string(rank);
}

// The times of a folded step's ops before those behind the cut were moved.
std::vector<Picos> as_replayed(std::vector<Picos> of_op, const PeriodicRun& whole) {
  for (std::size_t i = 0; i < of_op.size(); ++i)
    if (of_op[i] != unknown_time) of_op[i] -= shift_of(&whole, i);
  return of_op;
}
void tell_as_replayed(const PeriodicRun* whole, Result& result) {
  if (whole == nullptr) return;
  result.op_start = as_replayed(std::move(result.op_start), *whole);
  result.op_end = as_replayed(std::move(result.op_end), *whole);
  result.op_runs = whole->runs();
}

// Of a folded step; the first counts.
void note_refusal(Result& result, const char* why) {
  if (!result.refusal) result.refusal = {.why = why};
}
Result refused(const FoldRefusal& refusal) {
  Result result;
  result.refusal = refusal;
  return result;
}

void record_ranks(const Trace& trace, const std::vector<DevicePeaks>& peaks, const PeriodicRun* whole, Result& result) {
  if (result.replayed <= Picos(0)) return;
  std::vector<Picos> start, end;
  if (whole != nullptr) {
    start = as_replayed(result.op_start, *whole);
    end = as_replayed(result.op_end, *whole);
  }
  std::vector<RankWork> ranks = work_by_rank(trace, result, whole);
  double idle = 0;
  std::size_t known = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto usual = whole == nullptr ? PeriodicRun::Times() : whole->usual_times(r, start, end);
    if (!usual) return note_refusal(result, "work of other periods reaches into all of them");
    const std::optional<double> bubble = idle_fraction(ranks[r], result.replayed, whole, usual->latest);
    idle += bubble.value_or(0);
    known += bubble ? 1 : 0;
    if (ranks.size() == 1) continue;
    RankResult& rank = result.ranks.emplace_back();
    rank.name = rank_name(trace, r);
    rank.bubble = bubble;
    rank.compute_busy = ranks[r].compute_busy;
    for (const Device& device : trace.devices) {
      if (device.rank != r) continue;
      for (const DevicePeaks& found : peaks) {
        if (found.device != device.ordinal) continue;
        rank.peak_allocated = found.allocated;
        rank.peak_reserved = found.reserved;
        rank.verdict = found.verdict;
      }
    }
  }
  if (known > 0) result.bubble = idle / static_cast<double>(known);
}

void name_driver_times(const DriverTimes& times, Result& result) {
  const auto add = [&result](const char* name, const Sourced<Picos>& time) {
    result.provenance.push_back({name, std::to_string(time.value / microseconds(1)) + " us",
                                 std::string(provenance_name(time.origin.provenance)), time.origin.source});
  };
  add("gpu.malloc_cost", times.malloc);
  add("gpu.free_cost", times.free);
  add("gpu.chunk_create_cost", times.chunk_create);
  add("gpu.chunk_map_cost", times.chunk_map);
  add("gpu.chunk_unmap_cost", times.chunk_unmap);
}

LoweringOptions lowering_options(const Trace& trace, const HardwareProfile& hardware, const ReplayOptions& options) {
  LoweringOptions lowering;
  lowering.speed = options.speed;
  lowering.collective_places = options.collective_places;
  lowering.launch_to_start = hardware.gpu.launch_to_start.value;
  lowering.kernel_gap = hardware.gpu.kernel_gap.value;
  const bool captured = trace.capture_fit.launch_to_start != unknown_time || !trace.capture_fit.gaps.empty();
  if (!captured) lowering.launch_queue_depth = static_cast<std::uint32_t>(hardware.gpu.launch_queue_depth.value);
  const Maybe<double> peak = peak_flops_or_wider(hardware.gpu, Precision::bf16);
  if (peak) lowering.machine_balance = peak->value / to_bytes_per_second(hardware.gpu.memory_bandwidth.value);
  return lowering;
}

// One simulation of a trace, from empty streams to the last end.
class Run {
 public:
  // fold: of the trace; null: it has all of its step.
  Run(const Trace& trace, const PlannedTrace* planned, const HardwareProfile& hardware, const ReplayOptions& options,
      std::vector<HostDelay> delays, const std::vector<std::int64_t>& cache_levels, const StepFold* fold)
      : trace_(trace),
        links_(trace, hardware, planned, options.gpus_alike, cache_levels, graph_),
        lowered_(lowered(hardware, options, std::move(delays))),
        executor_(std::move(lowered_.graph), {.tie_order = options.tie_order}),
        outcome_(executor_.run()) {
    if (!outcome_.ok()) explain_failure(trace, lowered_, outcome_);
    SPILLWAY_ASSERT(executor_.check_conservation().empty());
    if (fold == nullptr) return;
    if (links_.uses_drives()) {
      refusal_ = {.why = "drives: their caches fill"};
      return;
    }
    whole_.emplace(trace, *fold, executor_.graph(), lowered_.op, executor_.starts(), executor_.ends());
    refusal_ = whole_->refusal();
  }
  // Of a folded step; else null.
  [[nodiscard]] const PeriodicRun* whole() const { return whole_ ? &*whole_ : nullptr; }
  // Of a folded step that can't be told; then nothing else is known.
  [[nodiscard]] const std::optional<FoldRefusal>& refusal() const { return refusal_; }

  [[nodiscard]] std::vector<std::int64_t> cache_levels() const { return links_.cache_levels(executor_); }
  [[nodiscard]] std::vector<std::int64_t> cache_sizes() const { return links_.cache_sizes(); }

  // When each op ran, as replayed.
  [[nodiscard]] Result times() const {
    Result result;
    record_times(trace_, lowered_, executor_, result);
    return result;
  }
  // The same, the last time.
  [[nodiscard]] Result last_times() {
    Result result = times();
    give_back(lowered_.begin);
    give_back(lowered_.end);
    return result;
  }
  // All but memory and rates. `times`: of this run; then they are those of the whole of a folded step.
  [[nodiscard]] Result result(Result times) const {
    Result result = std::move(times);
    for (std::size_t i = 0; whole_ && i < trace_.ops.size(); ++i) {
      if (result.op_start[i] == unknown_time) continue;
      result.op_start[i] += shift_of(whole(), i);
      result.op_end[i] += shift_of(whole(), i);
    }
    result.replayed = outcome_.end_time + (whole_ ? whole_->longer() : Picos(0));
    result.fingerprint = whole_ ? whole_->fingerprint() : outcome_.fingerprint;
    check_stop();
    result.steps = StepClock(trace_, result, whole()).run();
    result.step_time = step_time(result.steps);
    CriticalPath path =
        critical_path(trace_, lowered_, executor_.graph(), executor_.starts(), executor_.ends(), whole());
    if (!path.is_told) return refused({.why = "the last work is none of the last"});
    result.path = std::move(path.steps);
    result.breakdown = sum_by_binding(result.path);
    for (std::size_t i = 0; i < result.breakdown.size(); ++i) result.breakdown[i] += path.repeated[i];
    SPILLWAY_ASSERT(std::accumulate(result.breakdown.begin(), result.breakdown.end(), Picos(0)) == result.replayed);
    if (whole_) result.path.clear();
    result.kept_idle = kept_idle(trace_, path.unexplained);
    result.binding = largest(result.breakdown);
    links_.record(executor_, result.replayed, whole_ ? carried() : std::vector<std::int64_t>(), result);
    return result;
  }

 private:
  LoweredTrace lowered(const HardwareProfile& hardware, const ReplayOptions& options, std::vector<HostDelay> delays) {
    LoweringOptions lowering = lowering_options(trace_, hardware, options);
    lowering.host_delays = std::move(delays);
    lowering.transfers = links_.lanes();
    lowering.shared_memory = links_.shared_memory();
    return lower(trace_, lowering, links_.copies(), std::move(graph_));
  }

  // By link, in the whole of a folded step.
  [[nodiscard]] std::vector<std::int64_t> carried() const {
    const ActivityGraph& graph = executor_.graph();
    std::vector<Wide> sums(graph.link_count(), 0);
    for (std::uint32_t a = 0; a < graph.size(); ++a) {
      if (graph.kind(a) != ActivityKind::flow) continue;
      for (const PathEntry& entry : graph.network().path(graph.flow(a).path))
        sums[index(entry.link)] += static_cast<Wide>(graph.work(a)) * entry.usage * whole_->runs_of(lowered_.op[a]);
    }
    std::vector<std::int64_t> units;
    units.reserve(sums.size());
    for (const Wide sum : sums) units.push_back(static_cast<std::int64_t>(sum / full_usage));
    return units;
  }

  const Trace& trace_;
  ActivityGraph graph_;
  TransferLinks links_;
  LoweredTrace lowered_;
  Executor<> executor_;
  Outcome outcome_;
  std::optional<PeriodicRun> whole_;
  std::optional<FoldRefusal> refusal_;
};

void record_memory(const Trace& trace, const MemoryReplay& memory, const AllocatorTime& allocator,
                   const DriverTimes& times, const PeriodicRun* whole, Result& result) {
  result.memory.driver_time = allocator.step;
  result.memory.first_driver_time = allocator.first_step;
  if (allocator.step > Picos(0)) name_driver_times(times, result);
  record_ranks(trace, memory.peaks(), whole, result);
}

std::optional<PowerResult> power_of(const Trace& trace, double step_seconds) {
  if (trace.powers.empty()) return std::nullopt;
  PowerResult power;
  for (const DevicePower& device : trace.powers) {
    power.clock_share = std::min(power.clock_share, static_cast<double>(device.clock_millionths) * 1e-6);
    power.limit_watts = std::max(power.limit_watts, static_cast<double>(device.limit_milliwatts) * 1e-3);
    power.joules += static_cast<double>(device.idle_milliwatts) * 1e-3 * step_seconds +
                    static_cast<double>(device.work_microjoules) * 1e-6;
  }
  power.joules /= static_cast<double>(trace.powers.size());
  power.watts = power.joules / step_seconds;
  return power;
}

void rate_the_step(const Trace& trace, const ReplayOptions& options, Result& result) {
  if (options.ranks_run_ahead) result.step_time = longest_rank_span(trace, result);
  result.step_time = std::max(result.step_time, carried_pace(trace, result));
  const double seconds = to_seconds(result.step_time);
  if (seconds <= 0) return;
  if (options.tokens_per_step > 0) result.tokens_per_second = static_cast<double>(options.tokens_per_step) / seconds;
  if (options.model_flops_per_step > 0 && options.peak_flops_per_second > 0) {
    result.mfu = options.model_flops_per_step / seconds / options.peak_flops_per_second;
    result.mfu_basis = "model flops without recomputation over the GPU's dense peak";
  }
  result.power = power_of(trace, seconds);
}

// The run that begins with drives' write caches as full as it leaves them. again(levels): a run from these.
template <class Again>
std::unique_ptr<Run> from_used_caches(std::vector<std::int64_t> levels, const Again& again) {
  std::unique_ptr<Run> run;
  for (int round = 0; round < most_rounds; ++round) {
    run = nullptr;  // before the next one takes as much
    run = again(levels);
    const std::vector<std::int64_t> left = run->cache_levels();
    if (left == levels) break;
    levels = left;
  }
  return run;
}

bool fills_caches(const Run& run) {
  if (run.refusal()) return false;
  const std::vector<std::int64_t> levels = run.cache_levels();
  return std::any_of(levels.begin(), levels.end(), [](std::int64_t level) { return level > 0; });
}

// Drives' write caches begin the step as full as the steps before left them.
template <class Again>
std::unique_ptr<Run> with_used_caches(std::unique_ptr<Run> run, const Again& again) {
  return fills_caches(*run) ? from_used_caches(run->cache_sizes(), again) : std::move(run);
}

// whole: of a folded step under a plan, whose times are those as replayed; else null.
void record_host_memory(const Trace& trace, const PlannedTrace* planned, const std::vector<Picos>& event_time,
                        const PeriodicRun* whole, const HardwareProfile& hardware, const ReplayOptions& options,
                        Result& result) {
  const RankPlaces places(trace.rank_count, options.gpus_alike, hardware.gpu_count);
  const std::optional<HostMemoryResult> held =
      host_memory(trace, planned, event_time, result.op_start, result.op_end, whole, hardware.host, places);
  if (!held) return note_refusal(result, "the host is not regular at one time");
  result.host_memory = *held;
}

// The driver's calls of a second run wait where the replay has them. Under a plan events are cut by the clock, ops by
// their order: no period that is alike may ask. Null: none does.
const char* refused_delay(const std::vector<HostDelay>& delays, const PeriodicRun* whole, bool is_planned) {
  const bool asks = whole != nullptr && std::any_of(delays.begin(), delays.end(), [&](const HostDelay& delay) {
                      return is_planned ? whole->in_window(delay.after) : whole->is_moved(delay.after);
                    });
  return asks ? "the driver is asked among equal periods" : nullptr;
}

}  // namespace

Result replay(const Trace& trace, const HardwareProfile& hardware, const ReplayOptions& options) {
  const DriverTimes times = driver_times(hardware.gpu);
  AllocatorTime allocator;
  const auto run_from = [&](const std::vector<std::int64_t>& levels) {
    return std::make_unique<Run>(trace, nullptr, hardware, options, allocator.delays, levels,
                                 options.memory.fold.get());
  };
  std::optional<MemoryReplay> memory;
  std::unique_ptr<Run> run;
  in_parallel([&] { memory.emplace(trace, options.memory); }, [&] { run = with_used_caches(run_from({}), run_from); });
  if (memory->refusal()) return refused(*memory->refusal());
  if (run->refusal()) return refused(*run->refusal());
  allocator = memory->allocator_time(times);
  if (!allocator.delays.empty()) {  // it waits for the driver, too
    run = nullptr;                  // before the next one takes as much
    run = with_used_caches(run_from({}), run_from);
  }
  if (run->refusal()) return refused(*run->refusal());
  const PeriodicRun* const whole = run->whole();
  if (const char* why = refused_delay(allocator.delays, whole, false)) return refused({.why = why});
  Result result = run->last_times();
  check_stop();
  const std::vector<Picos> event_time =
      whole == nullptr ? event_times(trace, {}, result.op_start, result.op_end)
                       : event_times(trace, {}, whole->first_times(result.op_start), whole->first_times(result.op_end));
  MemoryResult of_memory;
  in_parallel([&] { of_memory = memory->result(event_time); }, [&] { result = run->result(std::move(result)); });
  if (memory->refusal()) return refused(*memory->refusal());
  if (result.refusal) return result;
  result.memory = std::move(of_memory);
  record_memory(trace, *memory, allocator, times, whole, result);
  record_host_memory(trace, nullptr, event_time, nullptr, hardware, options, result);
  rate_the_step(trace, options, result);
  tell_as_replayed(whole, result);
  return result;
}

Result replay(PlannedTrace planned, const HardwareProfile& hardware, const ReplayOptions& options) {
  const Trace& trace = planned.trace;
  const DriverTimes times = driver_times(hardware.gpu);
  const bool is_folded = options.memory.fold != nullptr;
  const std::optional<StepFold> fold = is_folded ? planned_fold(planned, *options.memory.fold) : StepFold();
  if (!fold) return refused({.why = "the plan is another one in each period"});
  const auto events_as_planned = is_folded ? trace.memory_events : std::vector<MemoryEvent>();
  const auto gate_as_planned = is_folded ? planned.gate : std::vector<OpId>();
  MemoryReplayOptions memory_options = options.memory;
  std::vector<HostDelay> delays;
  const auto run_from = [&](const std::vector<std::int64_t>& levels) {
    return std::make_unique<Run>(trace, &planned, hardware, options, delays, levels, is_folded ? &*fold : nullptr);
  };
  std::unique_ptr<Run> run = run_from({});
  if (run->refusal()) return refused(*run->refusal());
  Result result = run->times();
  // In the order of these times, as replayed.
  const auto folded = [&](const std::vector<Picos>& event_time) {
    FoldedOrder order = fold_events(planned, *run->whole(), *fold, event_time);
    if (order.refused != nullptr) note_refusal(result, order.refused);
    memory_options.fold = std::make_shared<const StepFold>(std::move(order.fold));
    return std::move(order.event_time);
  };
  const auto ordered = [&] {
    return is_folded ? folded(ordered_event_times(planned, result.op_start, result.op_end))
                     : order_events(planned, result.op_start, result.op_end);
  };
  std::vector<Picos> event_time = ordered();
  if (result.refusal) return result;
  const bool caches_fill = fills_caches(*run);
  std::optional<MemoryReplay> memory;
  // Most steps wait for no driver: then this run is the one.
  in_parallel([&] { memory.emplace(trace, memory_options); },
              [&] {
                if (caches_fill) run = from_used_caches(run->cache_sizes(), run_from);
                result = run->result(run->times());
              });
  if (memory->refusal()) return refused(*memory->refusal());
  if (result.refusal) return result;
  delays = memory->allocator_time(times).delays;
  if (!delays.empty()) {
    const std::vector<std::int64_t> levels = run->cache_sizes();
    run = nullptr;
    run = caches_fill ? from_used_caches(levels, run_from) : run_from({});
  }
  if (caches_fill || !delays.empty()) {
    if (run->refusal()) return refused(*run->refusal());
    if (const char* why = refused_delay(delays, run->whole(), true)) return refused({.why = why});
    result = run->times();
    event_time = event_times(trace, planned.gate, result.op_start, result.op_end);
    const bool is_in_order = std::is_sorted(event_time.begin(), event_time.end());  // the allocator sees it alone
    if (!is_in_order)
      event_time = ordered();
    else if (is_folded)
      event_time = folded(event_time);
    if (result.refusal) return result;
    if (!is_in_order || is_folded) memory.emplace(trace, memory_options);
    if (memory->refusal()) return refused(*memory->refusal());
    result = run->result(std::move(result));
    if (result.refusal) return result;
  }
  const PeriodicRun* const whole = run->whole();
  result.memory = memory->result(event_time);
  if (memory->refusal()) return refused(*memory->refusal());
  record_memory(trace, *memory, memory->allocator_time(times), times, whole, result);
  rate_the_step(trace, options, result);
  tell_as_replayed(whole, result);
  record_host_memory(trace, &planned, event_time, whole, hardware, options, result);
  const auto runs_out = [](const DevicePeaks& peaks) { return peaks.verdict == Verdict::does_not_fit; };
  const bool any_runs_out = std::any_of(memory->peaks().begin(), memory->peaks().end(), runs_out);
  if (is_folded && any_runs_out && options.memory.detail == Detail::figures) {
    planned.trace.memory_events = events_as_planned;
    planned.gate = gate_as_planned;
    ordered();
    result.folded_memory =
        std::make_shared<const FoldedMemory>(FoldedMemory{*memory_options.fold, trace.memory_events});
  }
  return result;
}

RelativeSpeed speed_between(const GpuProfile& from, const GpuProfile& to) {
  RelativeSpeed speed;
  for (const Precision precision : {Precision::bf16, Precision::fp16, Precision::tf32, Precision::fp32}) {
    const auto i = static_cast<std::size_t>(precision);
    if (!from.peak_flops_per_second[i] || !to.peak_flops_per_second[i]) continue;
    speed.compute = to.peak_flops_per_second[i]->value / from.peak_flops_per_second[i]->value;
    break;
  }
  speed.memory = to_bytes_per_second(to.memory_bandwidth.value) / to_bytes_per_second(from.memory_bandwidth.value);
  const auto host_link = [](const GpuProfile& gpu) {
    return gpu.host_to_device_bandwidth ? gpu.host_to_device_bandwidth->value
                                        : pcie_raw_rate(gpu.pcie_generation.value, gpu.pcie_lanes.value);
  };
  speed.pcie = to_bytes_per_second(host_link(to)) / to_bytes_per_second(host_link(from));
  if (from.nvlink_bandwidth && to.nvlink_bandwidth)
    speed.network = to_bytes_per_second(to.nvlink_bandwidth->value) / to_bytes_per_second(from.nvlink_bandwidth->value);
  return speed;
}

}  // namespace spillway::sim
