#include "models/session/untabled_shapes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace spillway::models {
namespace {

constexpr std::size_t most_named = 2;

using Sides = std::array<std::int64_t, 6>;

Sides sides_of(const KernelCost& kernel) {
  const auto kind = static_cast<std::int64_t>(kernel.kind), type = static_cast<std::int64_t>(kernel.type);
  if (kernel.kind == KernelClass::gemm)
    return {kind, type, kernel.gemm.m, kernel.gemm.n, kernel.gemm.k, kernel.gemm.batch};
  const AttentionShape& shape = kernel.attention;
  return {kind, type, shape.batch, shape.heads, shape.sequence, shape.head_dim};
}

std::string named(const Sides& sides) {
  const auto [kind, type, a, b, c, d] = sides;
  const std::string_view word = to_string(static_cast<DataType>(type));
  if (static_cast<KernelClass>(kind) == KernelClass::gemm)
    return fmt::format("{} x {} x {} {}{}", a, b, c, word, d > 1 ? fmt::format(", {} at once", d) : "");
  const bool backward = static_cast<KernelClass>(kind) == KernelClass::attention_backward;
  return fmt::format("attention{} of {}{} tokens, {} heads of {}", backward ? " backwards" : "",
                     a > 1 ? fmt::format("{} x ", a) : "", c, b, d);
}

}  // namespace

void UntabledShapes::count(const KernelCost& kernel, const Duration& duration) {
  if (kernel.kind != KernelClass::gemm && kernel.kind != KernelClass::attention_forward &&
      kernel.kind != KernelClass::attention_backward)
    return;
  Shape& shape = shapes_[sides_of(kernel)];
  shape.time += duration.time;
  shape.is_outside = duration.source == CostSource::fitted || duration.source == CostSource::assumed;
}

std::string UntabledShapes::text() const {
  std::vector<std::pair<Picos, const Sides*>> outside;
  Picos all{}, theirs{};
  for (const auto& [sides, shape] : shapes_) {
    all += shape.time;
    if (!shape.is_outside) continue;
    theirs += shape.time;
    outside.emplace_back(shape.time, &sides);
  }
  if (outside.empty()) return "";
  std::stable_sort(outside.begin(), outside.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string names;
  for (std::size_t i = 0; i < std::min(most_named, outside.size()); ++i)
    names += (names.empty() ? "" : "; ") + named(*outside[i].second);
  return fmt::format("{} of {} shapes of products and attention are near no table, {:.0f} % of their time: {}",
                     outside.size(), shapes_.size(), 100 * to_seconds(theirs) / to_seconds(all), names);
}

}  // namespace spillway::models
