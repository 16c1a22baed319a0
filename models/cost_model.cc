#include "models/cost_model.h"

#include <algorithm>

#include "traces/base/input_error.h"

namespace spillway {
namespace {

constexpr double least_seconds = 1e-9;

Duration made(double seconds, CostSource source) { return {from_seconds(std::max(seconds, least_seconds)), source}; }

CostSource source_of(const Origin& origin) {
  switch (origin.provenance) {
    case OriginKind::measured:
    case OriginKind::datasheet: return CostSource::table;
    case OriginKind::fitted: return CostSource::fitted;
    case OriginKind::assumed: return CostSource::assumed;
  }
  return CostSource::assumed;
}

}  // namespace

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::bf16: return "bfloat16";
    case DataType::fp32: return "float32";
    case DataType::int64: return "int64";
    case DataType::byte: return "uint8";
  }
  return "";
}

std::string_view to_string(CostSource source) {
  switch (source) {
    case CostSource::table: return "table";
    case CostSource::fitted: return "fitted";
    case CostSource::assumed: return "assumed";
  }
  return "";
}

CostModel::CostModel(const HardwareProfile& profile) : gpu_(profile.gpu) {
  const auto bf16 = peak_flops_or_wider(gpu_, Precision::bf16);
  const auto fp32 = peak_flops_or_wider(gpu_, Precision::fp32);
  if (!bf16 || !fp32)
    throw InputError(profile.path, "/gpu/peak_flops", gpu_.name + " has no bf16 or fp32 peak", "add it with its source");
  peak_bf16_ = bf16->value;
  peak_fp32_ = fp32->value;
  bytes_per_second_ = to_bytes_per_second(gpu_.memory_bandwidth.value);
  host_time_ = std::max(profile.host.dispatch_cost.value, gpu_.launch_call.value);
  copy_bytes_per_second_ =
      gpu_.host_to_device_bandwidth
          ? to_bytes_per_second(gpu_.host_to_device_bandwidth->value)
          : to_bytes_per_second(pcie_raw_rate(gpu_.pcie_generation.value, gpu_.pcie_lanes.value)) *
                profile.host.pcie_payload_efficiency.value;
}

double CostModel::peak(DataType type) const { return type == DataType::bf16 ? peak_bf16_ : peak_fp32_; }

Duration CostModel::duration(const KernelCost& kernel) const {
  switch (kernel.kind) {
    case KernelClass::gemm: return gemm(kernel);
    case KernelClass::attention_forward:
    case KernelClass::attention_backward: return attention(kernel);
    case KernelClass::memory_bound: return memory_bound(kernel);
    case KernelClass::copy_to_device: return copy_to_device(kernel);
  }
  return {};
}

Duration CostModel::gemm(const KernelCost& kernel) const {
  const Precision precision = kernel.type == DataType::bf16 ? Precision::bf16 : Precision::fp32;
  const GemmShape& shape = kernel.gemm;
  const CurveValue efficiency = gemm_efficiency(gpu_, precision, shape.m, shape.n, shape.k);
  const RooflineFit& roofline = gpu_.roofline;
  const double compute = static_cast<double>(kernel.flops.count()) / (peak(kernel.type) * efficiency.value);
  const double memory =
      static_cast<double>(kernel.bytes.count()) / (bytes_per_second_ * roofline.memory_efficiency.value);
  return made(std::max(compute, memory) + to_seconds(roofline.latency.value),
              efficiency.extrapolated ? source_of(roofline.compute_efficiency.origin) : CostSource::table);
}

Duration CostModel::attention(const KernelCost& kernel) const {
  const bool forward = kernel.kind == KernelClass::attention_forward;
  const double efficiency = forward ? 0.65 : 0.5;
  return made(static_cast<double>(kernel.flops.count()) / (peak(kernel.type) * efficiency) +
                  to_seconds(gpu_.roofline.latency.value),
              CostSource::assumed);
}

Duration CostModel::memory_bound(const KernelCost& kernel) const {
  const auto bytes = static_cast<double>(std::max<std::int64_t>(kernel.bytes.count(), 1));
  const auto& curve = gpu_.memory_bound_efficiency;
  const double efficiency =
      curve ? std::max(curve->value.at(bytes).value, 1e-6) : gpu_.roofline.memory_efficiency.value;
  return made(bytes / (bytes_per_second_ * efficiency), curve ? CostSource::table : CostSource::assumed);
}

Duration CostModel::copy_to_device(const KernelCost& kernel) const {
  return made(static_cast<double>(kernel.bytes.count()) / copy_bytes_per_second_ +
                  to_seconds(gpu_.copy_latency.value),
              CostSource::table);
}

}  // namespace spillway
