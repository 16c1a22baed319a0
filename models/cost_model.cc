#include "models/cost_model.h"

#include <algorithm>
#include <cmath>

#include "traces/base/input_error.h"

namespace spillway {
namespace {

constexpr double least_seconds = 1e-9;
constexpr double query_block = 128;  // rows of queries one multiprocessor works on

Duration made(double seconds, CostSource source) { return {from_seconds(std::max(seconds, least_seconds)), source}; }

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

CostModel::CostModel(const HardwareProfile& profile)
    : gpu_(profile.gpu), curves_(find_cost_curves(profile.gpu.architecture)) {
  const auto bf16 = peak_flops_or_wider(gpu_, Precision::bf16);
  const auto fp32 = peak_flops_or_wider(gpu_, Precision::fp32);
  if (!bf16 || !fp32)
    throw InputError(profile.path, "/gpu/peak_flops", gpu_.name + " has no bf16 or fp32 peak",
                     "add it with its source");
  peak_bf16_ = bf16->value;
  peak_fp32_ = fp32->value;
  bytes_per_second_ = to_bytes_per_second(gpu_.memory_bandwidth.value);
  host_time_ = std::max(profile.host.dispatch_cost.value, gpu_.launch_call.value);
  copy_bytes_per_second_ = gpu_.host_to_device_bandwidth
                               ? to_bytes_per_second(gpu_.host_to_device_bandwidth->value)
                               : to_bytes_per_second(pcie_raw_rate(gpu_.pcie_generation.value, gpu_.pcie_lanes.value)) *
                                     profile.host.pcie_payload_efficiency.value;
}

double CostModel::peak(DataType type) const { return type == DataType::bf16 ? peak_bf16_ : peak_fp32_; }

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
  const Precision precision = kernel.type == DataType::bf16 ? Precision::bf16 : Precision::fp32;
  const GemmShape& shape = kernel.gemm;
  const bool curve_fits = curves_ != nullptr && kernel.type == DataType::bf16 && gpu_.sm_count.has_value();
  const GemmEfficiency* table = table_of(precision);
  if (table != nullptr && (table->origin.provenance != OriginKind::fitted || !curve_fits)) {
    const CurveValue efficiency = gemm_efficiency(gpu_, precision, shape.m, shape.n, shape.k);
    if (efficiency.value > 0)
      return made(static_cast<double>(kernel.flops.count()) / (peak(kernel.type) * efficiency.value),
                  source_of(table->origin));
  }
  const auto size = static_cast<double>(size_of(kernel.type));
  if (curves_ != nullptr && gpu_.sm_count)
    return made(gemm_seconds(curves_->gemm, static_cast<double>(shape.m), static_cast<double>(shape.n),
                             static_cast<double>(shape.k), static_cast<double>(shape.batch), size, peak(kernel.type),
                             bytes_per_second_, static_cast<double>(gpu_.sm_count->value)),
                curve_fits ? CostSource::fitted : CostSource::assumed);
  const RooflineFit& roofline = gpu_.roofline;
  const double compute =
      static_cast<double>(kernel.flops.count()) / (peak(kernel.type) * roofline.compute_efficiency.value);
  const double memory =
      static_cast<double>(kernel.bytes.count()) / (bytes_per_second_ * roofline.memory_efficiency.value);
  return made(std::max(compute, memory) + to_seconds(roofline.latency.value),
              source_of(roofline.compute_efficiency.origin));
}

// The profile's first table of that precision, null when it has none.
const GemmEfficiency* CostModel::table_of(Precision precision) const {
  for (const GemmEfficiency& table : gpu_.gemm_efficiency)
    if (table.precision == precision && !table.curve.empty()) return &table;
  return nullptr;
}

Duration CostModel::attention(const KernelCost& kernel) const {
  const CostCurves& curves = curves_ != nullptr ? *curves_ : *find_cost_curves("Ampere");
  const bool forward = kernel.kind == KernelClass::attention_forward;
  const AttentionCurve& curve = forward ? curves.attention_forward : curves.attention_backward;
  const AttentionShape& shape = kernel.attention;
  const auto sequence = static_cast<double>(shape.sequence);
  const double overhead = 1 + curve.overhead / (shape.causal ? 1 : 2) / sequence;
  const double blocks = static_cast<double>(shape.batch * shape.heads) * std::ceil(sequence / query_block);
  const double idle = gpu_.sm_count ? std::max(1.0, static_cast<double>(gpu_.sm_count->value) / blocks) : 1.0;
  const double efficiency = curve.efficiency * (shape.head_dim <= 64 ? small_head_factor : 1.0);
  const double compute = static_cast<double>(kernel.flops.count()) * overhead * idle / (peak(kernel.type) * efficiency);
  const double memory = static_cast<double>(kernel.bytes.count()) / (bytes_per_second_ * memory_bound_efficiency);
  const bool fitted = curves_ != nullptr && curves.attention_fitted && kernel.type == DataType::bf16;
  return made(std::max(compute, memory) + curve.fixed_us * 1e-6, fitted ? CostSource::fitted : CostSource::assumed);
}

Duration CostModel::memory_bound(const KernelCost& kernel) const {
  const auto bytes = static_cast<double>(std::max<std::int64_t>(kernel.bytes.count(), 1));
  if (const auto& curve = gpu_.memory_bound_efficiency; curve && !curve->value.empty()) {
    const double efficiency = curve->value.at(bytes).value;
    if (efficiency > 0) return made(bytes / (bytes_per_second_ * efficiency), source_of(curve->origin));
  }
  return made(bytes / (bytes_per_second_ * memory_bound_efficiency) + memory_bound_fixed_us * 1e-6,
              CostSource::assumed);
}

Duration CostModel::copy_to_device(const KernelCost& kernel) const {
  return made(static_cast<double>(kernel.bytes.count()) / copy_bytes_per_second_ + to_seconds(gpu_.copy_latency.value),
              CostSource::table);
}

}  // namespace spillway
