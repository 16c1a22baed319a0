#include "models/fit/point_times.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "models/fit/attention_fit.h"
#include "models/fit/gemm_fit.h"

namespace spillway::models::fit {
namespace {

constexpr std::int64_t regime_medium_side = 64, regime_large_side = 1024;  // those of RegimeErrors
using hwprofiles::KernelLibrary;
constexpr std::string_view fitted_layout = "tn";  // that of the published tables

std::optional<MemoryKind> memory_kind_of(ScaledOperator of) {
  switch (of) {
    case ScaledOperator::norm_forward:
      return MemoryKind::norm_forward;
    case ScaledOperator::norm_backward:
      return MemoryKind::norm_backward;
    case ScaledOperator::cross_entropy:
      return MemoryKind::softmax;
    case ScaledOperator::optimizer:
      return MemoryKind::optimizer;
    case ScaledOperator::product:
    case ScaledOperator::memory_bound:
    case ScaledOperator::attention_forward:
    case ScaledOperator::attention_backward:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

PointTimes::PointTimes(const GpuProfile& gpu) : times_(operator_times_for(measured_operator_times(), gpu)) {
  for (GemmTimes& gemm : times_.gemm) gemm.physics.quantise_us = 0;
  GpuProfile bare = gpu;
  bare.operator_scales.clear();
  unscaled_ = operator_times_for(measured_operator_times(), bare);
  for (GemmTimes& gemm : unscaled_.gemm) {
    gemm.physics.quantise_us = 0;
    gemm.residual = {};
  }
}

void PointTimes::rescale(const OperatorScale& scale) {
  const auto restore = [](auto& list, const auto& from) {
    for (std::size_t i = 0; i < list.size(); ++i) list[i].physics = from[i].physics;
  };
  restore(times_.gemm, unscaled_.gemm);
  restore(times_.attention_forward, unscaled_.attention_forward);
  restore(times_.attention_backward, unscaled_.attention_backward);
  times_.memory = unscaled_.memory;
  apply_scale(times_, scale);
}

std::optional<double> PointTimes::product(const GpuPoint& point) const {
  if (point.what != fitted_layout) return std::nullopt;
  for (const GemmTimes& gemm : times_.gemm)
    if (gemm.precision == point.precision)
      return predicted_seconds(gemm, times_.facts, {.m = point.m, .n = point.n, .k = point.k});
  return std::nullopt;
}

// A loss's points count its logits read and written once each; its kernels read each row three times
// (models/network/eager_loss.cc), and that is what steps are charged for.
constexpr double loss_passes = (3 + 1) / 2.0;

std::optional<double> PointTimes::memory(const GpuPoint& point, MemoryKind kind) const {
  const double moved = static_cast<double>(point.bytes.count()) * (kind == MemoryKind::softmax ? loss_passes : 1);
  for (const MemoryKind known : {kind, MemoryKind::elementwise})
    for (const MemoryTimes& memory : times_.memory)
      if (memory.kind == known) return moved / (times_.facts.bandwidth * memory.efficiency) + memory.fixed_us * 1e-6;
  return std::nullopt;
}

std::optional<double> PointTimes::operation(const GpuPoint& point) const {
  const std::optional<ScaledOperator> of = operator_of(point);
  if (!of) return std::nullopt;
  if (const std::optional<MemoryKind> kind = memory_kind_of(*of))
    return hwprofiles::library_of(point) == KernelLibrary::pytorch ? memory(point, *kind) : std::nullopt;
  const bool is_flash = times_.facts.path == MatrixPath::registers;
  const std::optional<KernelLibrary> library = hwprofiles::library_of(point);
  if (is_flash ? library != KernelLibrary::flash_attention
               : library != KernelLibrary::cudnn && library != KernelLibrary::cudnn_graph)
    return std::nullopt;
  const bool forward = *of == ScaledOperator::attention_forward;
  const auto whole = [](std::int64_t side) { return static_cast<double>(side); };
  const AttentionSides sides{.batch = whole(point.batch),
                             .heads = whole(point.heads),
                             .kv_heads = whole(point.kv_heads > 0 ? point.kv_heads : point.heads),
                             .queries = whole(point.sequence),
                             .keys = whole(point.sequence),
                             .key_dim = whole(point.head_dim),
                             .value_dim = whole(point.head_dim),
                             .element_bytes = 2,
                             .causal = point.causal};
  for (const AttentionTimes& attention : forward ? times_.attention_forward : times_.attention_backward)
    if (attention.precision == point.precision)
      return predicted_seconds(attention,
                               {.facts = times_.facts,
                                .precision = point.precision,
                                .pass = forward ? AttentionPass::forward : AttentionPass::backward,
                                .rows = {}},
                               {sides, point.value.median});
  return std::nullopt;
}

std::optional<double> PointTimes::seconds(const GpuPoint& point) const {
  if (point.kind == PointKind::product) return product(point);
  if (point.kind == PointKind::memory_kernel) return memory(point, MemoryKind::elementwise);
  if (point.kind == PointKind::operation) return operation(point);
  return std::nullopt;
}

bool held_out(const GpuPoint& point) {
  if (point.kind == PointKind::product) return held_out(point.m, point.n, point.k);
  return held_out(point.bytes.count() + point.sequence, static_cast<std::int64_t>(point.what.size()) + point.heads,
                  point.batch + point.head_dim);
}

std::size_t product_class(const GpuPoint& point) {
  const std::int64_t smallest = std::min({point.m, point.n, point.k});
  return smallest < regime_medium_side ? 0 : smallest < regime_large_side ? 1 : 2;
}

const char* product_class_name(std::size_t product_class) {
  constexpr const char* names[product_class_count] = {"sides below 64", "sides below 1024", "sides from 1024"};
  return names[product_class];
}

std::vector<GpuPoint> points_that_count(const std::vector<GpuPoint>& points, std::vector<GpuPoint>& others) {
  const auto is_of = [](const GpuPoint& point, KernelLibrary library) {
    return point.kind == PointKind::operation && hwprofiles::library_of(point) == library;
  };
  std::set<std::string> of_pytorch;
  for (const GpuPoint& point : points)
    if (is_of(point, KernelLibrary::cudnn)) of_pytorch.insert(point.what);
  std::vector<GpuPoint> counting;
  for (const GpuPoint& point : points)
    (is_of(point, KernelLibrary::cudnn_graph) && of_pytorch.contains(point.what) ? others : counting).push_back(point);
  return counting;
}

std::optional<ScaledOperator> operator_of(const GpuPoint& point) {
  if (point.kind == PointKind::product) return ScaledOperator::product;
  if (point.kind == PointKind::memory_kernel) return ScaledOperator::memory_bound;
  if (point.kind != PointKind::operation || !hwprofiles::library_of(point)) return std::nullopt;
  for (std::size_t i = 0; i < hwprofiles::scaled_operator_count; ++i)
    if (const auto of = static_cast<ScaledOperator>(i); hwprofiles::scaled_operator_name(of) == point.what) return of;
  return std::nullopt;
}

}  // namespace spillway::models::fit
