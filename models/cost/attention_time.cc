#include "models/cost/attention_time.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace spillway::models {
namespace {

constexpr double block = 128;  // query rows of a block, keys of a tile
struct Products {
  double of_keys, of_values;  // inner or outer dimension
};
constexpr Products forward_products = {1, 1}, backward_products = {3, 2};
constexpr double forward_passes = 1, backward_passes = 2;  // over queries, keys, values and results in memory

// Random numbers a clock and multiprocessor, docs/internals/operator-times.md.
constexpr double forward_randoms = 4.5;
constexpr double backward_randoms = 11.5;

// Head dimensions of FlashAttention 2's kernels (csrc/flash_attn), and what GAC measured of others on A100
// (github.com/JihaoXin/GAC, report 1.3): 107 takes 1.39 times as long as the kernel of 128 that runs.
constexpr std::array<double, 7> flash2_dimensions = {32, 64, 96, 128, 160, 192, 256};
constexpr double copied_unless_multiple = 8, read_and_written = 2, padding_efficiency = 0.5;

constexpr double flash2_forward = 0.80, flash2_backward = 0.66;                  // of the peak on Ampere
constexpr double register_share_forward = 0.54, register_share_backward = 0.57;  // of what wgmma reaches
constexpr double triton_forward = 1.4, triton_backward = 2;                      // FlashAttention 2's speed over its

}  // namespace

AttentionPhysics flash2_physics(AttentionPass pass, bool feeds_from_registers) {
  const bool forward = pass == AttentionPass::forward;
  const double share = feeds_from_registers ? 1 : forward ? register_share_forward : register_share_backward;
  return {.efficiency = (forward ? flash2_forward : flash2_backward) * share,
          .softmax = 20,
          .prologue = 3,
          .memory_efficiency = 0.8,
          .fixed_us = forward ? 14.0 : 26.0,
          .overlap = 3,
          .throttle = 0,
          .throttle_ms = 5,
          .deterministic = 1};
}

AttentionPhysics triton_physics(AttentionPass pass, bool feeds_from_registers) {
  AttentionPhysics physics = flash2_physics(pass, feeds_from_registers);
  physics.efficiency /= pass == AttentionPass::forward ? triton_forward : triton_backward;
  return physics;
}

double padded_dimension(double dimension) {
  const auto* found = std::lower_bound(flash2_dimensions.begin(), flash2_dimensions.end(), dimension);
  return found == flash2_dimensions.end() ? dimension : *found;
}

double padding_seconds(const AttentionMachine& machine, const AttentionSides& sides, AttentionPass pass) {
  if (std::fmod(sides.key_dim, copied_unless_multiple) == 0 && std::fmod(sides.value_dim, copied_unless_multiple) == 0)
    return 0;
  const double elements = sides.batch * (sides.heads * sides.queries + sides.kv_heads * sides.keys) *
                          (padded_dimension(sides.key_dim) + padded_dimension(sides.value_dim)) *
                          (pass == AttentionPass::forward ? forward_passes : backward_passes);
  return read_and_written * elements * sides.element_bytes / (machine.bandwidth * padding_efficiency);
}

double attention_seconds(const AttentionPhysics& physics, const AttentionMachine& machine, const AttentionSides& sides,
                         AttentionPass pass) {
  return attention_time(physics, machine, sides, pass).total;
}

AttentionSeconds attention_time(const AttentionPhysics& physics, const AttentionMachine& machine,
                                const AttentionSides& sides, AttentionPass pass) {
  const bool forward = pass == AttentionPass::forward;
  const double blocks = std::ceil(sides.queries / block), across = std::ceil(sides.keys / block);
  // Causal: each block sees one tile fewer than the next; under a window it also loses those before the window.
  const double n = std::min(blocks, across);
  const double span = sides.causal && sides.window > 0 ? std::min(across, std::ceil(sides.window / block) + 1) : across;
  const double before = std::max(0.0, n - span);
  const double tiles = blocks * across - (sides.causal ? n * (n - 1) / 2 + before * (before + 1) / 2 : 0);
  const Products& products = forward ? forward_products : backward_products;
  const double dims =
      products.of_keys * (sides.key_dim + physics.softmax) + products.of_values * (sides.value_dim + physics.softmax);
  const double rows = std::min(sides.queries, block), columns = std::min(sides.keys, block);
  const double tile = 2 * rows * columns * dims * machine.multiprocessors / (machine.peak * physics.efficiency) *
                      (sides.deterministic ? physics.deterministic : 1);
  const double shared = sides.batch * sides.heads * (tiles + blocks * physics.prologue) / machine.multiprocessors;
  const double randoms =
      sides.dropout && machine.clock > 0
          ? sides.batch * sides.heads * tiles * rows * columns /
                ((forward ? forward_randoms : backward_randoms) * machine.multiprocessors * machine.clock)
          : 0;
  const double compute = tile * std::max(shared, span + physics.prologue) + randoms;
  const double elements = sides.batch * (sides.heads * sides.queries + sides.kv_heads * sides.keys) *
                          (sides.key_dim + sides.value_dim) * (forward ? forward_passes : backward_passes);
  const double memory = elements * sides.element_bytes / (machine.bandwidth * physics.memory_efficiency);
  const double larger = std::max(compute, memory), ratio = std::min(compute, memory) / larger;
  const double both = larger * std::pow(1 + std::pow(ratio, physics.overlap), 1 / physics.overlap);
  const double throttled = both * (1 + physics.throttle * both / (both + physics.throttle_ms * 1e-3));
  return {throttled + physics.fixed_us * 1e-6, throttled * std::pow(compute / both, physics.overlap)};
}

}  // namespace spillway::models
