#include "models/cost_curves.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace spillway {
namespace {

struct Tile {
  double rows, columns;
};
constexpr std::array<Tile, 8> tiles = {
    {{256, 128}, {128, 256}, {128, 128}, {64, 256}, {256, 64}, {128, 64}, {64, 128}, {64, 64}}};
constexpr double least_split_k = 256;  // splitting k further than this never pays
constexpr int most_splits = 16;
constexpr double partial_sum_bytes = 4;

// Ampere's attention: Dao 2023 (arXiv:2307.08691, section 1) gives 50 to 73 % of A100's peak forwards and up to 63 %
// backwards; Ada's is Ampere's, for want of data.
constexpr std::array<CostCurves, 4> curves = {{
    {.architecture = "Ampere",
     .gemm = {0.8902, 0.7011, 0.7081, 90.69, 0.8272, 2.937, 1.798, 2.68, 0.3249},
     .attention_forward = {0.65, 630, 14},
     .attention_backward = {0.55, 1200, 26}},
    {.architecture = "Hopper",
     .gemm = {0.8121, 0.917, 0.998, 101.3, 0.8143, 2.552, 2.75, 3.045, 0.9716},
     .attention_forward = {0.71, 630, 14},
     .attention_backward = {0.63, 1200, 26},
     .attention_fitted = true},
    {.architecture = "Blackwell",
     .gemm = {0.725, 0.736, 0.9668, 26.15, 0.7351, 2.113, 3.12, 2.586, 0.1357},
     .attention_forward = {0.655, 1140, 14},
     .attention_backward = {0.5, 750, 26},
     .attention_fitted = true},
    {.architecture = "Ada",
     .gemm = {0.6553, 0.736, 0.9145, 107.1, 1, 1.095, 0.7689, 10.59, 0.1693},
     .attention_forward = {0.65, 630, 14},
     .attention_backward = {0.55, 1200, 26}},
}};

double tile_efficiency(const GemmCurve& curve, const Tile& tile) {
  const double area = tile.rows * tile.columns;
  if (area >= 32'768) return curve.large_tile;
  return curve.large_tile * (area >= 16'384 ? curve.medium_tile : curve.small_tile);
}

}  // namespace

const CostCurves* find_cost_curves(std::string_view architecture) {
  const auto found =
      std::find_if(curves.begin(), curves.end(), [&](const CostCurves& c) { return c.architecture == architecture; });
  return found == curves.end() ? nullptr : &*found;
}

double gemm_seconds(const GemmCurve& curve, double m, double n, double k, double batch, double element_bytes,
                    double peak, double bandwidth, double multiprocessors) {
  const double usable_bandwidth = bandwidth * curve.memory_efficiency;
  double compute = -1;
  for (const Tile& tile : tiles) {
    const double unsplit = std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * batch;
    const double rate = peak * tile_efficiency(curve, tile);
    for (int splits = 1; splits <= most_splits; splits *= 2) {
      if (splits > 1 && k / splits < least_split_k) break;
      const double fill = unsplit * splits / multiprocessors;
      const double waves = (1 - curve.partial_wave) * std::ceil(fill) + curve.partial_wave * std::max(fill, 1.0);
      double seconds = waves * multiprocessors * 2 * tile.rows * tile.columns * (k / splits + curve.prologue) / rate;
      if (splits > 1) seconds += curve.split_us * 1e-6 + splits * partial_sum_bytes * m * n * batch / usable_bandwidth;
      if (compute < 0 || seconds < compute) compute = seconds;
    }
  }
  const double memory = element_bytes * batch * (m * k + k * n + m * n) / usable_bandwidth;
  return std::pow(std::pow(compute, curve.overlap) + std::pow(memory, curve.overlap), 1 / curve.overlap) +
         curve.fixed_us * 1e-6;
}

}  // namespace spillway
