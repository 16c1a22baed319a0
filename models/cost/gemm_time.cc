#include "models/cost/gemm_time.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace spillway::models {
namespace {

struct Tile {
  double rows, columns;
};
constexpr std::array<Tile, 9> tiles = {
    {{256, 128}, {128, 256}, {128, 128}, {64, 256}, {256, 64}, {128, 64}, {64, 128}, {64, 64}, {64, 32}}};
constexpr double large_area = 32'768, medium_area = 16'384;
constexpr double least_split_k = 128;  // splitting k further than this never pays
constexpr int most_splits = 16;
constexpr double partial_sum_bytes = 4;
constexpr double weight_copies = 5;
constexpr double quantise_bytes = 5;   // an element read twice in two bytes, written once in one
constexpr double tile_depth = 32;      // of k, in elements
constexpr double accumulating = 1.04;  // time of a product that adds to C in fp32 over one that doesn't, traffic apart

// Of kernels for operands aligned to at least so many bytes.
struct AlignmentClass {
  double least, tile_share, bandwidth_share;
  bool splits;
};
constexpr std::array<AlignmentClass, 4> alignment_classes = {
    {{widest_load, 1, 1, true}, {8, 0.90, 0.95, true}, {4, 0.67, 0.85, true}, {0, 0.40, 0.55, false}}};
const AlignmentClass& class_of(double alignment) {
  return *std::find_if(alignment_classes.begin(), alignment_classes.end(),
                       [&](const AlignmentClass& one) { return alignment >= one.least; });
}

double tile_efficiency(const GemmPhysics& physics, const Tile& tile) {
  const double area = tile.rows * tile.columns;
  if (area >= large_area) return physics.large_tile;
  return physics.large_tile * physics.medium_tile * (area >= medium_area ? 1 : physics.small_tile);
}

// Hopper's rate of kernels for the narrowest loads, if these sides get them; else 0.
double fixed_rate_of(const GemmMachine& machine, const GemmSides& sides) {
  if (class_of(std::min(sides.alignment, sides.result_alignment)).least > 0) return 0;
  return sides.along_k ? machine.narrowest_along_k : machine.narrowest;
}

double compute_seconds(const GemmPhysics& physics, const GemmMachine& machine, const GemmSides& sides) {
  const double l2_of_one = physics.l2_gbps * 1e9;
  const double reduction = partial_sum_bytes * sides.m * sides.n * sides.batch / (l2_of_one * machine.multiprocessors);
  const bool result_counts = machine.narrowest > 0;
  const AlignmentClass& aligned =
      class_of(result_counts ? std::min(sides.alignment, sides.result_alignment) : sides.alignment);
  const double fixed_rate = fixed_rate_of(machine, sides);
  const double peak = machine.peak * (aligned.least < widest_load ? machine.misaligned_share : 1) * aligned.tile_share;
  const double depth = std::ceil(sides.k / tile_depth) * tile_depth;
  const double fill = fixed_rate > 0 ? 0 : physics.fill;  // a fixed rate is that of whole kernels
  double best = -1;
  for (const Tile& tile : tiles) {
    const double unsplit =
        std::ceil(sides.m / tile.rows) * std::ceil(sides.n / tile.columns) * sides.batch / machine.multiprocessors;
    const double rate = fixed_rate > 0 ? fixed_rate : peak * tile_efficiency(physics, tile);
    const double step = std::max(machine.multiprocessors * 2 * tile.rows * tile.columns / rate,
                                 (tile.rows + tile.columns) * sides.element_bytes / l2_of_one);
    for (int splits = 1; splits <= most_splits; splits *= 2) {
      if (splits > 1 && (sides.k / splits < least_split_k || !aligned.splits)) break;
      const double full = unsplit * splits;
      const double waves = (1 - physics.partial_wave) * std::ceil(full) + physics.partial_wave * std::max(full, 1.0);
      double seconds = waves * step * (depth / splits + fill);
      if (splits > 1) seconds += physics.split_us * 1e-6 + splits * reduction;
      if (best < 0 || seconds < best) best = seconds;
    }
  }
  return best * (sides.accumulates ? accumulating : 1);
}

// Share of accesses that a cache of `capacity` serves when `working_set` bytes come round again and again.
double hit_share(double working_set, double capacity) {
  const double square = (working_set / capacity) * (working_set / capacity);
  return 1 / (1 + square * square);
}

double memory_seconds(const GemmPhysics& physics, const GemmMachine& machine, const GemmSides& sides) {
  const double share = class_of(sides.alignment).bandwidth_share;
  const double a = sides.element_bytes * sides.batch * sides.m * sides.k / share;
  const double weights = sides.element_bytes * sides.batch * sides.n * sides.k / share;
  const double c =
      sides.result_bytes * sides.batch * sides.m * sides.n / class_of(sides.result_alignment).bandwidth_share;
  const double capacity = physics.l2_share * machine.l2_bytes;
  const double copies = std::clamp(std::ceil(machine.l2_bytes / weights), 1.0, weight_copies);
  const double weight_hits = hit_share(copies * weights + a + c, capacity),
               other_hits = hit_share(weights + a + c, capacity);
  const double dram = machine.bandwidth * physics.memory_efficiency;
  const double l2 = physics.l2_gbps * 1e9 * machine.multiprocessors;
  return (a + c) * ((1 - other_hits) / dram + other_hits / l2) +
         weights * ((1 - weight_hits) / dram + weight_hits / l2);
}

}  // namespace

GemmSeconds gemm_time(const GemmPhysics& physics, const GemmMachine& machine, const GemmSides& sides) {
  const double compute = compute_seconds(physics, machine, sides), memory = memory_seconds(physics, machine, sides);
  // (compute^q + memory^q)^(1/q), from the larger one.
  const double larger = std::max(compute, memory), ratio = std::min(compute, memory) / larger;
  const double both = larger * std::pow(1 + std::pow(ratio, physics.overlap), 1 / physics.overlap);
  const double throttled = both * (1 + physics.throttle * both / (both + physics.throttle_ms * 1e-3));
  double seconds = throttled + physics.fixed_us * 1e-6;
  if (physics.quantise_us > 0)
    seconds += physics.quantise_us * 1e-6 +
               quantise_bytes * sides.batch * sides.m * sides.k / (machine.bandwidth * physics.quantise_efficiency);
  return {seconds, throttled * std::pow(compute / both, physics.overlap), fixed_rate_of(machine, sides) > 0};
}

double gemm_seconds(const GemmPhysics& physics, const GemmMachine& machine, const GemmSides& sides) {
  return gemm_time(physics, machine, sides).total;
}

}  // namespace spillway::models
