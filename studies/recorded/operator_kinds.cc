#include "studies/recorded/operator_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>

namespace spillway::studies {
namespace {

std::string lower(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
  return low;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// Kernels of a backward say so, or are launched by an operator that does; names of a forward go before the phase.
bool is_of_backward(std::string_view kernel, std::string_view launcher, Phase phase) {
  if (has_any(kernel, {"bwd", "bprop", "backward", "grad", "gammabeta", "dot_do", "convert_dq"})) return true;
  if (has_any(kernel, {"fwd", "fprop", "forward"})) return false;
  return launcher.find("backward") != std::string_view::npos || phase == Phase::backward;
}

bool is_product(std::string_view kernel, std::string_view launcher) {
  return has_any(kernel, {"gemm", "nvjet", "cutlass", "xmma", "gemv", "splitk", "cijk_", "matmul", "triton_tem_"}) ||
         has_any(launcher, {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "_scaled_mm", "_grouped_mm"});
}

std::vector<Precision> product_precisions(TrainingPrecision precision) {
  switch (precision) {
    case TrainingPrecision::fp32:
      return {Precision::fp32};
    case TrainingPrecision::tf32:
      return {Precision::tf32};
    case TrainingPrecision::fp16_mixed:
      return {Precision::fp16};
    case TrainingPrecision::fp8_mixed:
      return {Precision::bf16, Precision::fp8};
    case TrainingPrecision::nvfp4_mixed:
      return {Precision::bf16, Precision::fp4};
    case TrainingPrecision::bf16:
    case TrainingPrecision::bf16_mixed:
      return {Precision::bf16};
  }
  return {};
}

void lengthen_one(GpuProfile& gpu, ScaledOperator of, Precision precision, double factor, const Origin& origin) {
  std::vector<OperatorScale>& all = gpu.operator_scales;
  auto own = std::find_if(all.begin(), all.end(),
                          [&](const OperatorScale& scale) { return scale.of == of && scale.precision == precision; });
  if (own == all.end()) own = all.insert(all.end(), {of, precision, {1, origin}, {1, origin}, {1, origin}});
  own->compute = {own->compute.value / factor, origin};
  own->memory = {own->memory.value / factor, origin};
  own->fixed = {own->fixed.value * factor, origin};
}

}  // namespace

std::optional<ScaledOperator> recorded_kind(const Trace& trace, OpId op, bool odd_rows_are_apart) {
  const std::size_t i = index_of(op);
  if (trace.ops.kind[i] != OpKind::kernel) return std::nullopt;
  const std::string kernel = lower(trace.strings.text(trace.ops.name[i]));
  const SpanId span = trace.ops.span[i];
  const std::string launcher =
      span == SpanId::none ? std::string() : lower(trace.strings.text(trace.spans.name[index_of(span)]));
  const Phase phase = trace.ops.phase[i];
  const bool is_backward = is_of_backward(kernel, launcher, phase);
  if (has_any(kernel, {"flash", "fmha", "sdpa", "attention", "dot_do", "convert_dq"}) ||
      launcher.find("attention") != std::string::npos)
    return is_backward ? ScaledOperator::attention_backward : ScaledOperator::attention_forward;
  if (is_product(kernel, launcher)) {
    if (odd_rows_are_apart && kernel.find("align1") != std::string::npos) return std::nullopt;
    return ScaledOperator::product;
  }
  if (phase == Phase::optimizer) return ScaledOperator::optimizer;
  if (has_any(kernel, {"layer_norm", "layernorm", "rms_norm", "rmsnorm", "gammabeta"}) ||
      has_any(launcher, {"layer_norm", "rms_norm"}))
    return is_backward ? ScaledOperator::norm_backward : ScaledOperator::norm_forward;
  if (has_any(kernel, {"softmax", "nll_loss", "cross_entropy", "crossentropy"})) return ScaledOperator::cross_entropy;
  return ScaledOperator::memory_bound;
}

KernelKinds generated_kinds(const Trace& trace, const StepOn& step, const GpuProfile& gpu,
                            TrainingPrecision precision) {
  // Power that slower kernels leave makes others faster, never slower.
  constexpr double half_rate = 2, is_longer = 1.25;
  KernelKinds kinds(trace.ops.size());
  // memory_bound last: it moves all kinds of kernels that are bound by memory.
  constexpr std::array order = {
      ScaledOperator::product,      ScaledOperator::attention_forward, ScaledOperator::attention_backward,
      ScaledOperator::norm_forward, ScaledOperator::norm_backward,     ScaledOperator::cross_entropy,
      ScaledOperator::optimizer,    ScaledOperator::memory_bound};
  for (const ScaledOperator of : order) {
    GpuProfile slower = gpu;
    lengthen(slower, of, half_rate, precision, {});
    const Trace other = step(slower);
    for (std::size_t i = 0; i < kinds.size(); ++i)
      if (!kinds[i] && trace.ops.kind[i] == OpKind::kernel &&
          to_seconds(other.ops.duration[i]) > is_longer * to_seconds(trace.ops.duration[i]))
        kinds[i] = of;
  }
  return kinds;
}

void lengthen(GpuProfile& gpu, ScaledOperator of, double factor, TrainingPrecision precision, const Origin& origin) {
  if (of != ScaledOperator::product) return lengthen_one(gpu, of, Precision::bf16, factor, origin);
  for (const Precision each : product_precisions(precision)) lengthen_one(gpu, of, each, factor, origin);
}

}  // namespace spillway::studies
