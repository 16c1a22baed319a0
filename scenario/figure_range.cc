#include "scenario/figure_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

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

// What validation/published/range_fit.py printed for the validation rows of 35 sources. Experts' kernels are held to at
// least 0.12 and 0.25: one source alone has them.
constexpr Factors kernels{0.887, 1.106}, kernels_of_experts{0.854, 1.25}, host{0.904, 1.201};
constexpr double network_low = 0.95;
constexpr double network_high(NetworkReach reach) {
  switch (reach) {
    case NetworkReach::inside:
      return 2.827;
    case NetworkReach::across:
      return 1.735;
    case NetworkReach::split:
      return 3.068;
    case NetworkReach::gathers:
      return 4.504;
  }
  return 4.504;
}
// Across machines, at the upper end: what waits for the network at least, the rest taken off the kernels.
constexpr double least_network = 0.1;
// Of Megatron-core's experts: the middle 80 % of Megatron-Bridge's steps that wait for the host for most of their time.
constexpr Factors host_of_experts{0.80, 1.45};
// More at the upper end where framework_slowdown is assumed: the middle 80 % of steps on clouds' hosts.
constexpr double assumed_slowdown = 1.25;
// Of DeepSpeed's ZeRO 3, whose hooks and fetches nobody measured one by one: the one published step that is nearly all
// fetches took 6.1 times as long.
constexpr Factors host_of_fetches{0.7, 7};
constexpr const char* basis_of_times = "published steps of 35 sources";

// Share of a step that may wait for what no published step waits for.
constexpr double most_unmeasured = 0.02;

// Peaks, measured over predicted, by PeakKind: what range_fit.py printed, but for experts' upper end, where even ones
// are assumed: reports of uneven ones. Of `other`: of all kinds.
struct PeakError {
  std::string_view word;
  double low, high;
  std::string_view basis;
};
constexpr std::array<PeakError, 9> peak_errors = {{
    {"core", 0.99, 1.013, "10 stages of Megatron-core on B200"},
    {"experts", 0.99, 1.06, "10 stages of Megatron-core on B200"},
    {"megatron", 0.99, 1.053, "84 peaks of Zero Bubble's tables"},
    {"modules", 0.97, 1.057, "11 peaks of KempnerForge, torchao and torchtune"},
    {"whole vocabulary", 0.99, 1.279, "10 peaks of KempnerForge's tensor ranks"},
    {"trainer", 0.985, 1.02, "25 peaks of full fine-tuning on A100"},
    {"deepspeed", 0.92, 1.105, "10 peaks of DeepSpeed's ZeRO 2 and 3"},
    {"adapters", 0.788, 1.118, "114 peaks of LitGPT, torchtune and fms-acceleration"},
    {"other", 0.919, 1.105, "peaks of all kinds"},
}};
constexpr double held_beside = 512.0 * (1 << 20);  // bytes, of small peaks under adapters

constexpr double of_kin = 0.12;  // beside, independently, of a GPU whose kernels are another's

bool is_measured(const hwprofiles::GpuProfile& gpu) {
  const bool has_own_products =
      std::any_of(gpu.gemm_efficiency.begin(), gpu.gemm_efficiency.end(),
                  [](const auto& each) { return each.origin.provenance == OriginKind::measured; });
  return has_own_products || models::own_operator_times(models::measured_operator_times().heads(), gpu) != nullptr;
}

Factors host_factors(const models::TrainingSetup& setup, bool has_experts, const hwprofiles::HostProfile& of) {
  if (setup.traits().deepspeed && setup.zero_stage == 3) return host_of_fetches;
  if (!has_experts) return host;
  const auto& slowdown = of.framework_slowdown;
  const bool is_assumed = slowdown && slowdown->origin.provenance == OriginKind::assumed;
  return {host_of_experts.low, host_of_experts.high * (is_assumed ? assumed_slowdown : 1)};
}

// What a share of the critical path belongs to.
enum class Part : std::uint8_t { kernels, network, host };
Part part_of(Binding binding) {
  switch (binding) {
    case Binding::compute:
    case Binding::hbm:
      return Part::kernels;
    case Binding::network:
      return Part::network;
    case Binding::pcie:
    case Binding::storage:
    case Binding::host:
    case Binding::launch_latency:
    case Binding::idle:
      break;
  }
  return Part::host;
}

constexpr const char* state_is_away = "no published step with weights or optimizer states off the GPU is known";

bool has_state_away(const models::TrainingSetup& setup) {
  return setup.optimizer_device != models::StateDevice::gpu || setup.weight_device != models::StateDevice::gpu ||
         setup.offloaded_states > 0;
}

FigureRange not_known(std::string why) { return {.known = false, .low = 1, .high = 1, .basis = std::move(why)}; }

}  // namespace

RangeKind range_kind(const models::TrainingSetup& setup, const hwprofiles::HardwareProfile& machine) {
  RangeKind kind{.experts = setup.traits().core && setup.expert_parallel > 1};
  const std::int64_t joined = machine.joined_gpus();
  if (setup.zero_stage == 3 && !setup.traits().fsdp && !setup.traits().core)
    kind.reach = NetworkReach::gathers;
  else if (setup.tensor_parallel > joined)
    kind.reach = NetworkReach::split;
  else if (setup.gpus() > joined)
    kind.reach = NetworkReach::across;
  return kind;
}

std::string range_kind_words(RangeKind kind) {
  static constexpr std::array<const char*, 4> reaches = {"inside", "across", "split", "gathers"};
  return std::string(reaches.at(static_cast<std::size_t>(kind.reach))) + (kind.experts ? " experts" : "");
}

FigureRange step_time_range(const models::TrainingSetup& setup, const Result& result,
                            const hwprofiles::HardwareProfile& machine) {
  if (has_state_away(setup)) return not_known(state_is_away);
  const double whole = to_seconds(result.replayed);
  if (whole <= 0) return not_known("nothing was replayed");
  std::array<double, 3> shares{};
  double unmeasured = 0;
  for (int i = 0; i < sim::binding_count; ++i) {
    const auto binding = static_cast<Binding>(i);
    const double share = to_seconds(result.breakdown[static_cast<std::size_t>(i)]) / whole;
    shares.at(static_cast<std::size_t>(part_of(binding))) += share;
    if (binding == Binding::pcie || binding == Binding::storage) unmeasured += share;
  }
  if (unmeasured > most_unmeasured)
    return not_known(fmt::format("{} of the step wait for copies or SSDs, and no published step like it is known",
                                 percent_text(unmeasured)));
  const auto [of_kernels, of_network, of_host] = shares;
  const RangeKind kind = range_kind(setup, machine);
  const double kin = is_measured(machine.gpu) ? 0 : of_kin;
  Factors kernel = kind.experts ? kernels_of_experts : kernels;
  kernel = {1 - std::hypot(1 - kernel.low, kin), 1 + std::hypot(kernel.high - 1, kin)};
  const Factors of_waiting = host_factors(setup, kind.experts, machine.host);
  const double late = kind.reach == NetworkReach::across ? std::clamp(least_network - of_network, 0.0, of_kernels) : 0;
  FigureRange range{.known = true, .basis = basis_of_times};
  range.low = of_kernels * kernel.low + of_network * network_low + of_host * of_waiting.low;
  range.high =
      (of_kernels - late) * kernel.high + (of_network + late) * network_high(kind.reach) + of_host * of_waiting.high;
  if (kin > 0) range.basis += fmt::format(", and 12 % for kernels that nobody measured on {}", machine.gpu.name);
  return range;
}

PeakKind peak_kind(const models::TrainingSetup& setup) {
  const models::FrameworkTraits& whose = setup.traits();
  const bool adapts = !setup.trains_all();
  if (whose.core) {
    // Else its layers are those of 2022 (models/spec/model_part.h).
    const bool is_own =
        setup.zero_stage < 3 && setup.sequence_slices == 1 && !adapts && setup.flash_attention && setup.fused_kernels;
    return !is_own ? PeakKind::other : setup.expert_parallel > 1 ? PeakKind::experts : PeakKind::core;
  }
  if (whose.megatron) return PeakKind::megatron;
  if (!whose.pytorch) return PeakKind::other;
  if (adapts) return PeakKind::adapters;
  if (whose.deepspeed) return PeakKind::deepspeed;
  if (whose.transformers) return PeakKind::trainer;
  return setup.whole_vocabulary ? PeakKind::whole_vocabulary : PeakKind::modules;
}

std::string_view peak_kind_word(PeakKind kind) { return peak_errors[static_cast<std::size_t>(kind)].word; }

FigureRange peak_range(const models::TrainingSetup& setup, const Result& result) {
  if (!result.memory.known) return not_known("the memory is not known");
  const PeakKind kind = peak_kind(setup);
  const bool has_published_offload = kind == PeakKind::deepspeed && setup.weight_device == models::StateDevice::gpu;
  if (has_state_away(setup) && !has_published_offload) return not_known(state_is_away);
  if (result.memory.allocator != sim::torch_policy) return not_known("published peaks are PyTorch's allocator's");
  if (result.offload) return not_known("no published peak of a step that moves its tensors is known");
  if (kind == PeakKind::other) return not_known("too few published peaks of this framework's layers are known");
  const PeakError& error = peak_errors[static_cast<std::size_t>(kind)];
  FigureRange range{.known = true, .low = error.low, .high = error.high, .basis = std::string(error.basis)};
  if (kind == PeakKind::experts && !setup.has_expert_loads() && setup.expert_imbalance == 1)
    range.basis += "; even experts are assumed";
  if (kind == PeakKind::adapters)
    range.high += held_beside / std::max(static_cast<double>(result.memory.peak_reserved.count()), held_beside);
  return range;
}

Bytes peak_within(const models::TrainingSetup& setup, Bytes room) {
  const PeakKind kind = peak_kind(setup);
  const double beside = kind == PeakKind::adapters ? held_beside : 0;
  const double left = static_cast<double>(room.count()) - beside;
  return Bytes(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(left / peak_errors[static_cast<std::size_t>(kind)].high)));
}

}  // namespace spillway::scenario
