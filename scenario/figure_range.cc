#include "scenario/figure_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"
#include "models/cost/operator_times.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::scenario {
namespace {

using sim::Binding;
using sim::FigureRange;
using sim::Result;

struct Factors {
  double low, high;
};

// What validation/published/range_fit.py printed for the 1,159 validation rows of 15 sources.
constexpr Factors arithmetic{0.925, 1.05}, device_memory{0.854, 1.05}, network{0.95, 5.509}, host{0.908, 1.16};
// Of Megatron-core's experts: the middle 80 % of Megatron-Bridge's steps that wait for the host for most of their time.
constexpr Factors host_of_experts{0.80, 1.45};
// More at the upper end where framework_slowdown is assumed: published steps on p5 would need 3.5 where 2 is taken.
constexpr double assumed_slowdown = 1.75;
// Of DeepSpeed's ZeRO 3, whose hooks and fetches nobody measured one by one: the one published step that is nearly all
// fetches took 6.1 times as long.
constexpr Factors host_of_fetches{0.7, 7};
constexpr const char* basis_of_times = "published steps of 15 sources";

// Share of a step that may wait for what no published step waits for.
constexpr double most_unmeasured = 0.02;

constexpr double of_kin = 0.12;  // more, of a GPU whose kernels are another's

bool is_measured(const hwprofiles::GpuProfile& gpu) {
  const bool has_own_products =
      std::any_of(gpu.gemm_efficiency.begin(), gpu.gemm_efficiency.end(),
                  [](const auto& each) { return each.origin.provenance == OriginKind::measured; });
  return has_own_products || models::own_operator_times(models::measured_operator_times().heads(), gpu) != nullptr;
}

Factors host_factors(const models::TrainingSetup& setup, const hwprofiles::HostProfile& of) {
  if (setup.traits().deepspeed && setup.zero_stage == 3) return host_of_fetches;
  if (!setup.traits().core || setup.expert_parallel == 1) return host;
  const auto& slowdown = of.framework_slowdown;
  const bool is_assumed = slowdown && slowdown->origin.provenance == OriginKind::assumed;
  return {host_of_experts.low, host_of_experts.high * (is_assumed ? assumed_slowdown : 1)};
}

Factors factors_of(Binding binding, bool is_of_kin, Factors of_host) {
  const auto of_kernels = [is_of_kin](Factors factors) {
    return is_of_kin ? Factors{factors.low - of_kin, factors.high + of_kin} : factors;
  };
  switch (binding) {
    case Binding::compute:
      return of_kernels(arithmetic);
    case Binding::hbm:
      return of_kernels(device_memory);
    case Binding::network:
      return network;
    case Binding::pcie:
    case Binding::storage:
    case Binding::host:
    case Binding::launch_latency:
    case Binding::idle:
      break;
  }
  return of_host;
}

constexpr const char* state_is_away = "no published step with weights or optimizer states off the GPU is known";

bool has_state_away(const models::TrainingSetup& setup) {
  return setup.optimizer_device != models::StateDevice::gpu || setup.weight_device != models::StateDevice::gpu ||
         setup.offloaded_states > 0;
}

FigureRange not_known(std::string why) { return {.known = false, .low = 1, .high = 1, .basis = std::move(why)}; }

}  // namespace

FigureRange step_time_range(const models::TrainingSetup& setup, const Result& result, const hwprofiles::GpuProfile& gpu,
                            const hwprofiles::HostProfile& machine_host) {
  if (has_state_away(setup)) return not_known(state_is_away);
  const double whole = to_seconds(result.replayed);
  if (whole <= 0) return not_known("nothing was replayed");
  FigureRange range{.known = true, .low = 0, .high = 0, .basis = basis_of_times};
  const bool is_of_kin = !is_measured(gpu);
  if (is_of_kin) range.basis += fmt::format(", and 12 % for kernels that nobody measured on {}", gpu.name);
  double unmeasured = 0;
  for (int i = 0; i < sim::binding_count; ++i) {
    const auto binding = static_cast<Binding>(i);
    const double share = to_seconds(result.breakdown[static_cast<std::size_t>(i)]) / whole;
    const Factors factors = factors_of(binding, is_of_kin, host_factors(setup, machine_host));
    range.low += share * factors.low;
    range.high += share * factors.high;
    if (binding == Binding::pcie || binding == Binding::storage) unmeasured += share;
  }
  if (unmeasured > most_unmeasured)
    return not_known(fmt::format("{} of the step wait for copies or drives, and no published step like it is known",
                                 percent_text(unmeasured)));
  return range;
}

FigureRange peak_range(const models::TrainingSetup& setup, const Result& result) {
  if (!result.memory.known) return not_known("the memory is not known");
  if (has_state_away(setup)) return not_known(state_is_away);
  if (result.memory.allocator != sim::torch_policy) return not_known("published peaks are PyTorch's allocator's");
  if (result.offload) return not_known("no published peak of a step that moves its tensors is known");
  const models::FrameworkTraits& whose = setup.traits();
  // Else its layers are those of 2022 (models/spec/model_part.h).
  const bool is_other_core = whose.core && (setup.zero_stage >= 3 || setup.sequence_slices > 1 || !setup.trains_all() ||
                                            !setup.flash_attention || !setup.fused_kernels);
  if (whose.core && !is_other_core)
    return {.known = true, .low = 0.993, .high = 1.013, .basis = "10 stages of Megatron-core on B200"};
  if (whose.megatron && !whose.core)
    return {.known = true, .low = 0.995, .high = 1.084, .basis = "84 peaks of Zero Bubble's tables"};
  if (whose.transformers)
    return {.known = true, .low = 0.95, .high = 1.02, .basis = "145 peaks of fine-tuning on one to four A100"};
  return not_known("too few published peaks of this framework's layers are known");
}

}  // namespace spillway::scenario
