#include "scenario/reserve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/amount.h"
#include "base/input_error.h"
#include "base/number_text.h"
#include "models/step/operator_list.h"
#include "scenario/figure_range.h"
#include "scenario/least_capacity.h"

namespace spillway::scenario {
namespace {

constexpr std::int64_t gibibyte = std::int64_t{1} << 30;
constexpr Bytes least_outside(gibibyte / 2), most_outside(gibibyte);  // context, handles, loaded kernels
constexpr Bytes least_communicator(gibibyte / 10), most_communicator(gibibyte / 2);
constexpr double replay_error = 0.015;  // of the peak of a recorded step
constexpr const char* assumed = "assumed";

struct Communicators {
  std::int64_t count = 0;
  std::string names;
};

Communicators of_setup(const TrainingSetup& setup) {
  std::vector<std::string_view> names;
  const auto add_part = [&names](std::string_view name, std::int64_t ranks) {
    if (ranks > 1) names.push_back(name);
  };
  add_part("tensor", setup.tensor_parallel);
  add_part("context", setup.context_parallel);
  add_part("pipeline", setup.pipeline_parallel);
  add_part("data", setup.data_parallel);
  add_part("expert", setup.expert_parallel);
  return {static_cast<std::int64_t>(names.size()), fmt::format("{}", fmt::join(names, ", "))};
}

Communicators of_capture(const Trace& trace) {
  std::set<StringId> groups;
  for (const Collective& collective : trace.collectives)
    if (collective.group_size != 1) groups.insert(collective.group);
  return {static_cast<std::int64_t>(groups.size()), "recorded groups"};
}

// Of a capture on the GPU it was recorded on, with that GPU's memory.
bool ran_here(const LoadedScenario& loaded) {
  const Scenario& scenario = loaded.scenario;
  if (!scenario.model.empty() || scenario.capacity_bytes || models::is_priced(loaded.trace)) return false;
  const ProfileLibrary& library = ProfileLibrary::shared();
  std::string source = scenario.captured_on;
  if (source.empty() && !loaded.trace.devices.empty()) {
    const Device& device = loaded.trace.devices.front();
    source = match_gpu(library, loaded.trace.strings.text(device.name), device.memory);
  }
  if (source.empty()) return false;
  const GpuProfile recorded = library.load_gpu(source), &now = loaded.hardware.gpu;
  return recorded.name == now.name && recorded.memory.value == now.memory.value &&
         recorded.context_memory.value == now.context_memory.value;
}

void add_part(Reserve& reserve, ReservePart part) {
  if (part.bytes <= Bytes(0)) return;
  if (!part.in_capacity) (part.is_margin ? reserve.margin : reserve.taken) += part.bytes;
  reserve.parts.push_back(std::move(part));
}

void add_by_parts(Reserve& reserve, const LoadedScenario& loaded, Bytes context) {
  const Communicators nccl = loaded.scenario.model.empty() ? of_capture(loaded.trace) : of_setup(loaded.setup);
  add_part(reserve, {.name = "library handles and loaded kernels",
                     .bytes = least_outside - std::min(context, least_outside),
                     .provenance = assumed,
                     .source = "context, handles and kernels together take 0.5 to 1 GiB"});
  add_part(reserve,
           {.name = fmt::format("NCCL, {} communicator{} ({})", nccl.count, nccl.count == 1 ? "" : "s", nccl.names),
            .bytes = least_communicator * nccl.count,
            .provenance = assumed,
            .source = "buffers of its channels take 0.1 to 0.5 GiB a communicator"});
  const Bytes open = most_outside - std::clamp(context, least_outside, most_outside) +
                     (most_communicator - least_communicator) * nccl.count;
  const Bytes room = loaded.capacity - std::min(loaded.capacity, reserve.taken);
  const bool is_generated = !loaded.scenario.model.empty();
  const Bytes error = is_generated ? room - std::min(room, peak_within(loaded.setup, room))
                                   : Bytes(static_cast<std::int64_t>(replay_error * static_cast<double>(room.count())));
  add_part(reserve, {.name = "margin",
                     .bytes = open + error,
                     .is_margin = true,
                     .provenance = assumed,
                     .source = fmt::format("{} up to the upper ends of these ranges, and {} for the error of the peak",
                                           gib_text(open), gib_text(error))});
}

// What the scenario says, covering the parts first.
Reserve as_said(const Reserve& parts, Bytes said) {
  Reserve reserve;
  Bytes left = said;
  for (ReservePart part : parts.parts) {
    if (part.is_margin) continue;
    if (!part.in_capacity) {
      part.bytes = std::min(part.bytes, left);
      left = left - part.bytes;
    }
    add_part(reserve, std::move(part));
  }
  add_part(reserve, {.name = "margin",
                     .bytes = left,
                     .is_margin = true,
                     .provenance = "scenario",
                     .source = "memory.reserve, less the parts above"});
  return reserve;
}

// As its memory events came in the replay.
std::optional<Bytes> least_capacity_of(const LoadedScenario& loaded, const ScenarioRun& run, Bytes from,
                                       bool is_in_order) {
  MemoryReplayOptions memory = memory_options(loaded, run);
  memory.capacity = from;
  const MemoryResult& known = run.result.memory;
  std::optional<DevicePeaks> failed;
  if (known.out_of_memory && !run.planned)
    failed = {.device = known.device, .allocated = known.peak_allocated, .reserved = known.peak_reserved};
  if (!run.planned || is_in_order) return least_capacity(run.trace(loaded), memory, failed);
  PlannedTrace planned;
  planned.trace = *run.planned;
  if (const FoldedMemory* const folded = run.result.folded_memory.get()) {
    planned.trace.memory_events = folded->events;
    memory.fold = std::make_shared<const StepFold>(folded->fold);
    return least_capacity(planned.trace, memory);
  }
  planned.gate = run.gate;
  planned.gate.resize(planned.trace.memory_events.size(), OpId::none);  // of an order alone there are none
  order_events(planned, run.result.op_start, run.result.op_end);
  return least_capacity(planned.trace, memory);
}

// Replays for a technique, and sees whether with memory up to `wider` it would have been told the same: all it asked to
// replay ran out of memory, and would again, so that the allocator's time is in none of it (AllocatorTime).
class LimitWatch final : public ReplayerBefore {
 public:
  LimitWatch(const Replayer& of, Bytes wider) : ReplayerBefore(of), wider_(wider) {}
  [[nodiscard]] bool limit_mattered() const { return mattered_; }
  [[nodiscard]] Bytes memory_limit() const override {
    mattered_ = true;
    return ReplayerBefore::memory_limit();
  }

 private:
  [[nodiscard]] Result seen(Result result, const ReplayVariation& variation) const override {
    if (!variation.capacity && !variation.ideal_memory) mattered_ = mattered_ || !fails_either_way(result);
    return result;
  }
  [[nodiscard]] bool fails_either_way(const Result& result) const {
    if (result.ranks.empty()) return result.memory.out_of_memory && result.memory.peak_allocated > wider_;
    return std::all_of(result.ranks.begin(), result.ranks.end(), [this](const RankResult& rank) {
      return rank.verdict == Verdict::does_not_fit && rank.peak_allocated > wider_;
    });
  }

  Bytes wider_;
  mutable bool mattered_ = false;
};

}  // namespace

Reserve reserve_of(const LoadedScenario& loaded) {
  Reserve reserve;
  if (loaded.capacity <= Bytes(0)) return reserve;
  const Sourced<Bytes>& context = loaded.hardware.gpu.context_memory;
  if (!loaded.scenario.capacity_bytes)
    add_part(reserve, {.name = "CUDA context",
                       .bytes = context.value,
                       .in_capacity = true,
                       .provenance = std::string(provenance_name(context.origin.provenance)),
                       .source = context.origin.source});
  const std::string& said = loaded.scenario.reserve;
  if (said.empty() && ran_here(loaded)) return reserve;
  add_by_parts(reserve, loaded, context.value);
  if (!said.empty()) reserve = as_said(reserve, parse_size_or_share(said).of(loaded.capacity));
  for (const ReservePart& part : loaded.reserve.parts) add_part(reserve, part);
  return reserve;
}

Bytes capacity_without_margin(const LoadedScenario& loaded) {
  return std::max(Bytes(1), loaded.capacity - loaded.reserve.taken);
}

void give_up_margin(LoadedScenario& loaded) {
  loaded.options.memory.capacity = capacity_without_margin(loaded);
  std::erase_if(loaded.reserve.parts, [](const ReservePart& part) { return part.is_margin; });
  loaded.reserve.margin = Bytes(0);
}

bool runs_out(const Result& result) {
  return result.memory.out_of_memory ||
         std::any_of(result.ranks.begin(), result.ranks.end(),
                     [](const RankResult& rank) { return rank.verdict == Verdict::does_not_fit; });
}

void mark_tight(Result& result, const Result& kept) {
  result.memory.is_tight = kept.memory.out_of_memory;
  for (std::size_t r = 0; r < result.ranks.size() && r < kept.ranks.size(); ++r)
    if (kept.ranks[r].verdict == Verdict::does_not_fit)
      result.ranks[r].verdict = in_doubt(Verdict::tight, result.memory.doubt);
}

void keep_reserve(LoadedScenario& loaded) {
  Bytes& limit = loaded.options.memory.capacity;
  loaded.capacity = limit;
  loaded.reserve = reserve_of(loaded);
  if (limit <= Bytes(0)) return;
  if (!loaded.scenario.reserve.empty() && loaded.reserve.bytes() >= limit)
    throw InputError(loaded.scenario.path, "/memory/reserve",
                     gib_text(loaded.reserve.bytes()) + " leave nothing of " + gib_text(limit), "reserve less");
  limit = std::max(Bytes(1), limit - loaded.reserve.bytes());
}

ScenarioRun within_reserve(const LoadedScenario& loaded, const Replayer& replayer,
                           const std::function<ScenarioRun(const Replayer&)>& evaluate, Shortage shortage) {
  const Bytes most = capacity_without_margin(loaded);
  const LimitWatch watch(replayer, most);
  ScenarioRun run = evaluate(watch);
  if (run.result.refusal) return run;
  const Bytes allocated = run.result.memory.peak_allocated;
  // No allocator gets by with less than what is allocated at once; a technique may plan for the larger limit.
  if (runs_out(run.result) && loaded.reserve.margin > Bytes(0) &&
      (run.planned ? watch.limit_mattered() : allocated <= most)) {
    ScenarioRun wider = evaluate(VariedReplayer(replayer, {.capacity = most}));
    if (wider.result.refusal) return wider;
    if (!runs_out(wider.result)) {
      mark_tight(wider.result, run.result);
      run = std::move(wider);
    }
  } else if (run.result.memory.gives_back && !run.planned && loaded.reserve.margin > Bytes(0)) {
    run.result.memory.is_tight = evaluate(VariedReplayer(replayer, {.capacity = most})).result.memory.gives_back;
  }
  Result& result = run.result;
  if (!result.memory.known || result.memory.on_host) return run;
  result.memory.capacity = loaded.capacity;
  result.reserve = loaded.reserve;
  if (shortage == Shortage::left_out) return run;
  if (const std::optional<Bytes> short_of = shortage_of(loaded, run, false))
    result.memory.short_of = *short_of;
  else
    result.refusal = {.why = "the least memory is not told"};
  return run;
}

std::optional<Bytes> shortage_of(const LoadedScenario& loaded, const ScenarioRun& run, bool is_in_order) {
  const MemoryResult& memory = run.result.memory;
  if (!memory.known || memory.on_host || !runs_out(run.result) || loaded.options.memory.detail < Detail::figures)
    return Bytes(0);
  const Bytes most = capacity_without_margin(loaded);
  const std::optional<Bytes> least = least_capacity_of(loaded, run, most, is_in_order);
  return least ? std::optional(*least - most) : std::nullopt;
}

}  // namespace spillway::scenario
