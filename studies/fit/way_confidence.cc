#include "studies/fit/way_confidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number_text.h"
#include "models/pipeline/named_schedules.h"
#include "models/spec/pipeline_setup.h"
#include "planners/offload/offload_settings.h"
#include "planners/technique.h"
#include "studies/fit/published_errors.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t wide = 384;  // GPUs, from which the published steps of ZeRO 3 are those of 2021

bool is_plain(const TrainingSetup& setup) {
  const std::string schedule = schedule_name(setup);
  return setup.pipeline_parallel == 1 || schedule == default_schedule || schedule == interleaved_schedule ||
         schedule == all_forwards_first;
}

MeasuredKind kind_of(const TrainingSetup& setup, const HardwareProfile& hardware) {
  if (setup.zero_stage >= 2) return setup.gpus() >= wide ? MeasuredKind::sharded_wide : MeasuredKind::sharded;
  if (!is_plain(setup)) return MeasuredKind::schedules;
  if (setup.gpus() == 1) return MeasuredKind::one_gpu;
  return setup.gpus() <= hardware.gpu_count ? MeasuredKind::one_machine : MeasuredKind::machines;
}

FigureConfidence of(const PublishedError* error, const char* what) {
  if (error == nullptr) return {std::nullopt, fmt::format("no published {} of such a step is among the cases", what)};
  return {error->p90, fmt::format("{}: 90 % of {} {}s", error->source, error->cases, what)};
}

bool is_away(const FitPoints& points, const FitPoint& point) {
  const TrainingSetup& setup = point.setup;
  return points.value(point, std::string(offload_key)) != no_offload || setup.optimizer_device != StateDevice::gpu ||
         setup.weight_device != StateDevice::gpu || setup.offloaded_states > 0;
}

// Profile leaves that the time of what binds rests on.
std::vector<std::string_view> leaves_behind(Binding binding) {
  switch (binding) {
    case Binding::compute:
      return {"gpu.peak_flops.", "gpu.gemm_efficiency.", "gpu.roofline."};
    case Binding::hbm:
      return {"gpu.memory_bandwidth"};
    case Binding::pcie:
      return {"gpu.host_to_device_bandwidth", "gpu.device_to_host_bandwidth", "host.pcie_payload_efficiency"};
    case Binding::network:
      return {"scale_up.", "scale_out."};
    case Binding::storage:
      return {"drives."};
    case Binding::host:
      return {"host.dispatch_cost", "gpu.launch_call"};
    case Binding::launch_latency:
      return {"gpu.launch_to_start", "gpu.kernel_gap"};
    case Binding::idle:
      break;
  }
  return {};
}

std::vector<std::string> provenance_of(Binding binding, const HardwareProfile& hardware) {
  const std::vector<std::string_view> wanted = leaves_behind(binding);
  std::vector<std::string> found;
  for (const ProfileLeaf& leaf : leaves_of(hardware)) {
    if (leaf.origin.source.empty()) continue;
    if (std::none_of(wanted.begin(), wanted.end(), [&](std::string_view each) { return leaf.path.starts_with(each); }))
      continue;
    const std::string name(provenance_name(leaf.origin.provenance));
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  return found;
}

std::string words_of(const char* figure, const FigureConfidence& confidence) {
  if (!confidence.error) return fmt::format("{}: not known ({})", figure, confidence.from);
  return fmt::format("{} +-{} ({})", figure, percent_text(*confidence.error), confidence.from);
}

}  // namespace

std::string WayConfidence::words(std::string_view binding) const {
  std::string text = words_of("step time", step_time) + "; " + words_of("peak", memory);
  if (!binding_provenance.empty())
    text += fmt::format("; figures of what binds, {}: {}", binding, fmt::join(binding_provenance, ", "));
  return text;
}

WayConfidence confidence_of(const FitSubject& subject, const FitPoints& points, const FitPoint& point,
                            const Result& result) {
  WayConfidence confidence;
  confidence.binding_provenance = provenance_of(result.binding, subject.hardware);
  if (!subject.model) {
    confidence.step_time = confidence.memory = {std::nullopt, "a recorded step; compare its own replay with it"};
    return confidence;
  }
  if (is_away(points, point)) {
    const std::string from = "no published step with tensors off the GPU is among the cases";
    confidence.step_time = confidence.memory = {std::nullopt, from};
    return confidence;
  }
  confidence.step_time = of(widest_error(kind_of(point.setup, subject.hardware), false), "step");
  // Peaks are published of pipelines alone.
  const bool has_stages = point.setup.pipeline_parallel > 1;
  confidence.memory = of(has_stages ? widest_error(MeasuredKind::schedules, true) : nullptr, "peak");
  return confidence;
}

}  // namespace spillway::studies
