#include "models/spec/pipeline_setup.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"
#include "models/pipeline/chunk_passes.h"

namespace spillway::models {
namespace {

PipelineRequest request_of(const TrainingSetup& setup) {
  PipelineRequest request;
  request.devices = setup.pipeline_parallel;
  request.micro_batches = setup.gradient_accumulation;
  request.chunks = setup.pipeline_chunks == 1 ? 0 : setup.pipeline_chunks;
  request.slices = setup.sequence_slices == 1 ? 0 : setup.sequence_slices;
  request.recomputed_chunks = setup.recomputed_chunks;
  request.offloaded_chunks = 0;  // the order is the same; what leaves meanwhile is not the trace's business
  request.split_backward = setup.split_backward;
  request.pairs = false;  // one compute stream
  return request;
}

// An option of `plan pipeline` by what a set-up calls it.
std::string setting_of(const std::string& option) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> names = {
      {{"stages", "pipeline_parallel"},
       {"micro-batches", "gradient_accumulation"},
       {"chunks", "pipeline_chunks"},
       {"slices", "sequence_slices"},
       {"recompute", "recomputed_chunks"},
       {"split", "split_backward"}}};
  for (const auto& [known, setting] : names)
    if (known == option) return std::string(setting);
  return "pipeline_schedule";
}

void check_file(TrainingSetup& setup) {
  const PipelinePlan& plan = *setup.pipeline_plan;
  const auto same = [&](const char* setting, std::int64_t wanted, std::int64_t of_file, const char* what) {
    if (wanted != of_file)
      throw InputError("", setting,
                       fmt::format("{} has {} {}, the set-up {}", setup.pipeline_schedule, of_file, what, wanted),
                       "let them agree");
  };
  same("pipeline_parallel", setup.pipeline_parallel, plan.devices, "devices");
  same("gradient_accumulation", setup.gradient_accumulation, plan.micro_batches, "micro-batches");
  if (setup.pipeline_chunks != 1) same("pipeline_chunks", setup.pipeline_chunks, plan.chunks, "chunks per device");
  if (setup.recomputed_chunks > 0)
    throw InputError("", "recomputed_chunks", "a schedule from a file says itself what it recomputes",
                     "leave it out, and put R into the file");
  if (setup.sequence_slices != 1) same("sequence_slices", setup.sequence_slices, plan.slices, "slices of a sequence");
  setup.pipeline_chunks = plan.chunks;
  setup.sequence_slices = plan.slices;
  require_steps(plan);
}

// Of a file, or an unknown name: nothing.
ScheduleMoves moves_of(std::string_view schedule) {
  for (const NamedSchedule& named : named_schedules())
    if (named.name == schedule) return named.moves;
  return ScheduleMoves::nothing;
}

}  // namespace

std::string schedule_name(const TrainingSetup& setup) {
  const std::string& wanted = setup.pipeline_schedule;
  if (setup.pipeline_plan || wanted.ends_with(".json")) return wanted;
  const std::string_view name = named_schedule(wanted).name;
  return std::string(name == default_schedule && setup.pipeline_chunks > 1 ? interleaved_schedule : name);
}

bool moves_activations(std::string_view schedule) { return moves_of(schedule) != ScheduleMoves::nothing; }

std::int64_t chunks_that_move(const TrainingSetup& setup) {
  return chunks_to_host(moves_of(setup.pipeline_schedule), setup.pipeline_chunks);
}

void resolve_pipeline(TrainingSetup& setup) {
  if (setup.pipeline_plan) return check_file(setup);
  try {
    const std::string name = schedule_name(setup);
    if (setup.pipeline_parallel == 1 && !named_schedule(name).is_for_one_stage)
      throw InputError("", setup.pipeline_chunks > 1 ? "chunks" : "schedule", name + " needs more than one stage",
                       "set pipeline_parallel, or leave it out");
    const PipelineRequest request = resolve_request(name, request_of(setup));
    setup.pipeline_chunks = request.chunks;
    setup.sequence_slices = request.slices;
    if (moves_activations(name) && setup.recomputed_chunks > 0)
      throw InputError("", "recompute", "a chunk's activations are either recomputed or offloaded",
                       "give 0, or use po-uniform");
  } catch (const InputError& error) {
    throw InputError("", setting_of(error.place()), error.cause(), error.remedy());
  }
}

PipelinePlan plan_of(const TrainingSetup& setup, const PipelineMeasures& measures) {
  if (setup.pipeline_plan) return *setup.pipeline_plan;
  PipelineRequest request = request_of(setup);
  request.times = measures.times;
  request.weight_part = measures.weight_part;
  const std::string name = schedule_name(setup);
  const bool to_peer = moves_of(name) == ScheduleMoves::to_peer;  // the order is 1F1B's
  return build_schedule(to_peer ? default_schedule : std::string_view(name), request);
}

bool orders_by_measures(const TrainingSetup& setup) {
  return !setup.pipeline_plan && schedule_orders_by_times(schedule_name(setup));
}

}  // namespace spillway::models
