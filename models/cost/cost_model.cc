#include "models/cost/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"

namespace spillway::models {
namespace {

constexpr double least_seconds = 1e-9;
// For GPUs without operator times: NVIDIA's own constants in aiconfigurator's <system>.yaml.
constexpr double default_memory_efficiency = 0.8, default_memory_fixed_us = 3;
constexpr std::int64_t small_side = 64, medium_side = 1024;
constexpr std::int64_t small_sequence = 256, medium_sequence = 2048;
// Adam's bytes per parameter on the CPU: gradient, master weight and two moments read, the last three written, fp32.
constexpr double adam_bytes = 28, host_stream_efficiency = 0.6, core_bytes_per_second = 12e9;
constexpr double published_error = 0.1;  // of what was read off published figures
constexpr double guessed_error = 0.2;    // of what nobody measured

Duration made(double seconds, CostSource source, double error = 0) {
  return {from_seconds(std::max(seconds, least_seconds)), source, error};
}

Precision precision_of(DataType type) {
  switch (type) {
    case DataType::bf16:
      return Precision::bf16;
    case DataType::fp16:
      return Precision::fp16;
    case DataType::fp8:
      return Precision::fp8;
    case DataType::tf32:
      return Precision::tf32;
    case DataType::fp32:
    case DataType::int64:
    case DataType::byte:
      return Precision::fp32;
  }
  return Precision::fp32;
}

double of_regime(const RegimeErrors& errors, std::int64_t size, std::int64_t small, std::int64_t medium) {
  return size < small ? errors.small : size < medium ? errors.medium : errors.large;
}

// The entry that serves a format: its own, bf16's for fp16, else null.
template <class Times>
const Times* entry_of(const std::vector<Times>& list, DataType type) {
  const Precision wanted = type == DataType::fp16 ? Precision::bf16 : precision_of(type);
  for (const Times& times : list)
    if (times.precision == wanted) return &times;
  return nullptr;
}

CostSource source_of(const Origin& origin) {
  switch (origin.provenance) {
    case OriginKind::measured:
    case OriginKind::datasheet:
      return CostSource::table;
    case OriginKind::fitted:
      return CostSource::fitted;
    case OriginKind::assumed:
      return CostSource::assumed;
  }
  return CostSource::assumed;
}

KernelKind kind_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::elementwise:
      return KernelKind::elementwise;
    case MemoryKind::norm_forward:
      return KernelKind::norm_forward;
    case MemoryKind::norm_backward:
      return KernelKind::norm_backward;
    case MemoryKind::softmax:
      return KernelKind::softmax;
    case MemoryKind::gather:
      return KernelKind::gather;
    case MemoryKind::optimizer:
      return KernelKind::optimizer;
  }
  return KernelKind::elementwise;
}

// flops/s = multiprocessors x a power of two a clock x the clock; which power follows from clocks being of this range.
double matrix_clock(double peak, double multiprocessors) {
  constexpr double least = 1.25e9;
  double clock = peak / multiprocessors;
  while (clock >= 2 * least) clock /= 2;
  return clock;
}

// Throttling that is left when the clock is this share of the highest anyway.
double throttle_at(double throttle, double clock_share) { return std::max(0.0, (1 + throttle) * clock_share - 1); }

}  // namespace

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::bf16:
      return "bfloat16";
    case DataType::fp32:
      return "float32";
    case DataType::int64:
      return "int64";
    case DataType::byte:
      return "uint8";
    case DataType::fp16:
      return "float16";
    case DataType::fp8:
      return "float8_e4m3";
    case DataType::tf32:
      return "tfloat32";
  }
  return "";
}

std::string_view to_string(CostSource source) {
  switch (source) {
    case CostSource::table:
      return "table";
    case CostSource::fitted:
      return "fitted";
    case CostSource::kin:
      return "kin";
    case CostSource::assumed:
      return "assumed";
  }
  return "";
}

CostModel::CostModel(const HardwareProfile& profile) : gpu_(profile.gpu) {
  if (!peak_flops_or_wider(gpu_, Precision::bf16) || !peak_flops_or_wider(gpu_, Precision::fp32))
    throw InputError(profile.path, "/gpu/peak_flops", gpu_.name + " has no bf16 or fp32 peak",
                     "add it with its source");
  for (std::size_t i = 0; i < precision_count; ++i)
    if (const auto found = peak_flops_or_wider(gpu_, static_cast<Precision>(i))) peak_[i] = found->value;
  bytes_per_second_ = to_bytes_per_second(gpu_.memory_bandwidth.value);
  if (!gpu_.architecture.empty() && !measured_operator_times().empty())
    times_ = operator_times_for(measured_operator_times(), gpu_);
  if (gpu_.locked_clock_mhz && times_ && times_->facts.multiprocessors > 0)
    clock_share_ = std::min(
        1.0, gpu_.locked_clock_mhz->value * 1e6 / matrix_clock(peak(DataType::bf16), times_->facts.multiprocessors));
  host_time_ = std::max(profile.host.dispatch_cost.value, gpu_.launch_call.value);
  copy_bytes_per_second_ = gpu_.host_to_device_bandwidth
                               ? to_bytes_per_second(gpu_.host_to_device_bandwidth->value)
                               : to_bytes_per_second(pcie_raw_rate(gpu_.pcie_generation.value, gpu_.pcie_lanes.value)) *
                                     profile.host.pcie_payload_efficiency.value;
  set_host_update(profile.host);
}

void CostModel::set_host_update(const HostProfile& host) {
  if (host.cpu_adam_parameters_per_second) {
    host_update_bytes_per_second_ = host.cpu_adam_parameters_per_second->value * adam_bytes;
    host_update_source_ = source_of(host.cpu_adam_parameters_per_second->origin);
    return;
  }
  host_update_bytes_per_second_ = std::min(to_bytes_per_second(host.dram_bandwidth.value) * host_stream_efficiency,
                                           static_cast<double>(host.cores.value) * core_bytes_per_second);
}

Duration CostModel::host_update(Bytes bytes, std::int64_t sharers) const {
  return made(static_cast<double>(bytes.count()) * static_cast<double>(sharers) / host_update_bytes_per_second_,
              host_update_source_);
}

double CostModel::peak(DataType type) const { return peak_[static_cast<std::size_t>(precision_of(type))]; }

Duration CostModel::duration(const KernelCost& kernel) const {
  switch (kernel.kind) {
    case KernelClass::gemm:
      return gemm(kernel);
    case KernelClass::attention_forward:
    case KernelClass::attention_backward:
      return attention(kernel);
    case KernelClass::memory_bound:
      return memory_bound(kernel);
    case KernelClass::copy_to_device:
      return copy_to_device(kernel);
  }
  return {};
}

Duration CostModel::gemm(const KernelCost& kernel) const {
  const Precision precision = precision_of(kernel.type);
  const GemmShape& shape = kernel.gemm;
  for (const GemmEfficiency& table : gpu_.gemm_efficiency)
    if (table.precision == precision && !table.curve.empty() && table.origin.provenance == OriginKind::measured) {
      const CurveValue efficiency = gemm_efficiency(gpu_, precision, shape.m, shape.n, shape.k);
      return made(static_cast<double>(kernel.flops.count()) / (peak(kernel.type) * efficiency.value),
                  source_of(table.origin));
    }
  if (!times_ || times_->gemm.empty() || times_->facts.multiprocessors <= 0) return roofline(kernel);
  if (const GemmTimes* own = entry_of(times_->gemm, kernel.type)) return gemm_by_physics(kernel, *own);
  // Another format: the constants of bf16 with this format's peak and bytes.
  GemmTimes other = times_->gemm.front();
  other.residual = {};
  Duration duration = gemm_by_physics(kernel, other);
  duration.source = CostSource::assumed;
  duration.relative_error = guessed_error;
  return duration;
}

Duration CostModel::gemm_by_physics(const KernelCost& kernel, const GemmTimes& times) const {
  const auto whole = [](std::int64_t side) { return static_cast<double>(side); };
  const GemmSides sides{.m = whole(kernel.gemm.m),
                        .n = whole(kernel.gemm.n),
                        .k = whole(kernel.gemm.k),
                        .batch = whole(kernel.gemm.batch),
                        .element_bytes = whole(size_of(kernel.type)),
                        .result_bytes = kernel.type == DataType::fp8 ? 2.0 : whole(size_of(kernel.type))};
  GemmPhysics physics = times.physics;
  if (kernel.is_cast_before) physics.quantise_us = 0;
  physics.l2_gbps *= clock_share_;
  physics.throttle = throttle_at(physics.throttle, clock_share_);
  physics.throttle_ms = 0;  // a step keeps the GPU busy for longer than its clock takes to settle
  const double seconds = gemm_seconds(
      physics,
      {peak(kernel.type) * clock_share_, bytes_per_second_, times_->facts.multiprocessors, times_->facts.l2_bytes},
      sides);
  const std::int64_t smallest = std::min({kernel.gemm.m, kernel.gemm.n, kernel.gemm.k});
  const std::array<double, 3> point = {sides.m, sides.n, sides.k};
  const bool tabled = !times.residual.empty() && kernel.gemm.batch == 1;
  const double residual = tabled ? std::exp(times.residual.at(point)) : 1;
  const bool inside = tabled && times.residual.contains(point);
  return made(seconds * residual,
              times_->carried_over ? CostSource::kin
              : inside             ? CostSource::table
                                   : CostSource::fitted,
              of_regime(inside ? times.table_error : times.physics_error, smallest, small_side, medium_side));
}

// max(flops / (efficiency peak), bytes / (efficiency bandwidth)) + latency, with the profile's constants.
Duration CostModel::roofline(const KernelCost& kernel) const {
  const RooflineFit& fit = gpu_.roofline;
  const double compute = static_cast<double>(kernel.flops.count()) / (peak(kernel.type) * fit.compute_efficiency.value);
  const double memory = static_cast<double>(kernel.bytes.count()) / (bytes_per_second_ * fit.memory_efficiency.value);
  return made(std::max(compute, memory) + to_seconds(fit.latency.value), source_of(fit.compute_efficiency.origin),
              guessed_error);
}

Duration CostModel::attention(const KernelCost& kernel) const {
  if (!times_) return roofline(kernel);
  const bool forward = kernel.kind == KernelClass::attention_forward;
  const std::vector<AttentionTimes>& list = !forward                   ? times_->attention_backward
                                            : kernel.attention.serving ? times_->attention_serving
                                                                       : times_->attention_forward;
  if (kernel.attention.kernel != AttentionKernel::best && times_->facts.multiprocessors > 0)
    return attention_by_physics(kernel, published_attention(kernel));
  if (list.empty() || times_->facts.multiprocessors <= 0) return roofline(kernel);
  if (const AttentionTimes* own = entry_of(list, kernel.type)) return attention_by_physics(kernel, *own);
  Duration duration = attention_by_physics(kernel, list.front());
  duration.source = CostSource::assumed;
  duration.relative_error = guessed_error;
  return duration;
}

AttentionTimes CostModel::published_attention(const KernelCost& kernel) const {
  const AttentionPass pass =
      kernel.kind == KernelClass::attention_forward ? AttentionPass::forward : AttentionPass::backward;
  const bool registers = times_->facts.path == MatrixPath::registers;
  AttentionTimes times;
  times.physics = kernel.attention.kernel == AttentionKernel::triton ? triton_physics(pass, registers)
                                                                     : flash2_physics(pass, registers);
  times.physics_error = times.table_error = {published_error, published_error, published_error};
  return times;
}

Duration CostModel::attention_by_physics(const KernelCost& kernel, const AttentionTimes& times) const {
  const AttentionShape& shape = kernel.attention;
  const auto whole = [](std::int64_t side) { return static_cast<double>(side); };
  const AttentionSides sides{.batch = whole(shape.batch),
                             .heads = whole(shape.heads),
                             .kv_heads = whole(shape.kv_heads),
                             .queries = whole(shape.sequence),
                             .keys = whole(shape.key_count()),
                             .key_dim = whole(shape.head_dim),
                             .value_dim = whole(shape.value_dim > 0 ? shape.value_dim : shape.head_dim),
                             .element_bytes = whole(size_of(kernel.type)),
                             .causal = shape.causal,
                             .window = whole(shape.window),
                             .deterministic = shape.deterministic};
  const AttentionPass pass =
      kernel.kind == KernelClass::attention_forward ? AttentionPass::forward : AttentionPass::backward;
  AttentionPhysics physics = times.physics;
  physics.throttle = throttle_at(physics.throttle, clock_share_);
  const double seconds = attention_seconds(
      physics, {peak(kernel.type) * clock_share_, bytes_per_second_, times_->facts.multiprocessors}, sides, pass);
  const LogGrid& table = shape.causal ? times.causal : times.full;
  const std::array<double, 4> point = attention_point(sides);
  const double residual = table.empty() ? 1 : std::exp(table.at(point));
  const bool inside = !table.empty() && table.contains(point);
  return made(
      seconds * residual,
      times_->carried_over || times.carried_over ? CostSource::kin
      : inside                                   ? CostSource::table
                                                 : CostSource::fitted,
      of_regime(inside ? times.table_error : times.physics_error, shape.sequence, small_sequence, medium_sequence));
}

Duration CostModel::memory_bound(const KernelCost& kernel) const {
  const auto bytes = static_cast<double>(std::max<std::int64_t>(kernel.bytes.count(), 1));
  for (const KernelEfficiency& known : gpu_.kernel_efficiency) {
    if (known.kind != kind_of(kernel.memory)) continue;
    // Less than the smallest that was measured takes as long as that: its fixed part.
    const double counted = std::max(bytes, known.curve.points().front().x);
    const double efficiency = known.curve.at(counted).value;
    if (efficiency > 0) return made(counted / (bytes_per_second_ * efficiency), source_of(known.origin));
  }
  const auto& curve = gpu_.memory_bound_efficiency;
  if (curve && !curve->value.empty() && (!times_ || curve->origin.provenance == OriginKind::measured)) {
    const double efficiency = curve->value.at(bytes).value;
    if (efficiency > 0) return made(bytes / (bytes_per_second_ * efficiency), source_of(curve->origin));
  }
  if (times_)
    for (const MemoryKind kind : {kernel.memory, MemoryKind::elementwise})
      for (const MemoryTimes& times : times_->memory)
        if (times.kind == kind)
          return made(bytes / (bytes_per_second_ * times.efficiency) + times.fixed_us * 1e-6,
                      kind != kernel.memory                        ? CostSource::assumed
                      : times_->carried_over || times.carried_over ? CostSource::kin
                                                                   : CostSource::fitted,
                      times.error);
  return made(bytes / (bytes_per_second_ * default_memory_efficiency) + default_memory_fixed_us * 1e-6,
              CostSource::assumed, guessed_error);
}

Duration CostModel::copy_to_device(const KernelCost& kernel) const {
  return made(static_cast<double>(kernel.bytes.count()) / copy_bytes_per_second_ + to_seconds(gpu_.copy_latency.value),
              CostSource::table);
}

}  // namespace spillway::models
