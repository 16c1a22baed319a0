#include "hwprofiles/gpu_profile.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

// The precisions whose units could run this work, nearest first.
std::span<const Precision> wider(Precision precision) {
  using enum Precision;
  static constexpr Precision from_fp64[] = {fp64};
  static constexpr Precision from_fp32[] = {fp32};
  static constexpr Precision from_tf32[] = {tf32, fp32};
  static constexpr Precision from_bf16[] = {bf16, fp16, tf32, fp32};
  static constexpr Precision from_fp16[] = {fp16, bf16, tf32, fp32};
  static constexpr Precision from_fp8[] = {fp8, bf16, fp16, tf32, fp32};
  static constexpr Precision from_fp4[] = {fp4, fp8, bf16, fp16, tf32, fp32};
  static constexpr Precision from_int8[] = {int8, fp8, bf16, fp16, tf32, fp32};
  switch (precision) {
    case fp64:
      return from_fp64;
    case fp32:
      return from_fp32;
    case tf32:
      return from_tf32;
    case bf16:
      return from_bf16;
    case fp16:
      return from_fp16;
    case fp8:
      return from_fp8;
    case fp4:
      return from_fp4;
    case int8:
      return from_int8;
  }
  return from_fp32;
}

const GemmEfficiency* class_of(const GpuProfile& gpu, Precision precision, std::int64_t smallest_side) {
  const GemmEfficiency* found = nullptr;
  const GemmEfficiency* first = nullptr;
  for (const GemmEfficiency& item : gpu.gemm_efficiency) {
    if (item.precision != precision) continue;
    if (first == nullptr) first = &item;
    if (item.smallest_side <= smallest_side) found = &item;
  }
  return found != nullptr ? found : first;
}

}  // namespace

std::string_view precision_name(Precision precision) {
  static constexpr std::string_view names[precision_count] = {"fp64", "fp32", "tf32", "bf16",
                                                              "fp16", "fp8",  "fp4",  "int8"};
  return names[static_cast<std::size_t>(precision)];
}

std::string_view kernel_kind_name(KernelKind kind) {
  static constexpr std::array<std::string_view, kernel_kind_count> names = {
      "elementwise", "norm_forward", "norm_backward",     "softmax",           "cross_entropy",
      "gather",      "optimizer",    "attention_forward", "attention_backward"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view scaled_operator_name(ScaledOperator of) {
  static constexpr std::array<std::string_view, scaled_operator_count> names = {
      "product",      "memory_bound",  "attention_forward", "attention_backward",
      "norm_forward", "norm_backward", "cross_entropy",     "optimizer"};
  return names[static_cast<std::size_t>(of)];
}

Maybe<double> peak_flops_or_wider(const GpuProfile& gpu, Precision precision) {
  for (const Precision candidate : wider(precision)) {
    const Maybe<double>& peak = gpu.peak_flops_per_second[static_cast<std::size_t>(candidate)];
    if (peak) return peak;
  }
  return std::nullopt;
}

CurveValue gemm_efficiency(const GpuProfile& gpu, Precision precision, std::int64_t m, std::int64_t n, std::int64_t k) {
  SPILLWAY_ASSERT(m > 0 && n > 0 && k > 0);
  const std::int64_t smallest = std::min({m, n, k});
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  for (const Precision candidate : wider(precision)) {
    const GemmEfficiency* item = class_of(gpu, candidate, smallest);
    if (item == nullptr) continue;
    CurveValue value = item->curve.at(flops);
    value.extrapolated = value.extrapolated || candidate != precision || item->smallest_side > smallest;
    return value;
  }
  return {gpu.roofline.compute_efficiency.value, true};
}

}  // namespace spillway::hwprofiles
