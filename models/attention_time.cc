#include "models/attention_time.h"

#include <algorithm>
#include <cmath>

namespace spillway {
namespace {

constexpr double block = 128;  // query rows of a block, keys of a tile
constexpr double forward_products = 2, backward_products = 5;
constexpr double forward_passes = 1, backward_passes = 2;  // over queries, keys, values and results in memory

}  // namespace

double attention_seconds(const AttentionPhysics& physics, const AttentionMachine& machine, const AttentionSides& sides,
                         AttentionPass pass) {
  const bool forward = pass == AttentionPass::forward;
  const double blocks = std::ceil(sides.queries / block), across = std::ceil(sides.keys / block);
  // Causal: the last query sees all keys, each block before it `block` keys fewer.
  const double skipped = sides.causal ? std::min(blocks, across) * (std::min(blocks, across) - 1) / 2 : 0;
  const double tiles = blocks * across - skipped;
  const double dim = (sides.key_dim + sides.value_dim) / 2;
  const double rows = std::min(sides.queries, block), columns = std::min(sides.keys, block);
  const double tile = (forward ? forward_products : backward_products) * 2 * rows * columns * (dim + physics.softmax) *
                      machine.multiprocessors / (machine.peak * physics.efficiency);
  const double shared = sides.batch * sides.heads * (tiles + blocks * physics.prologue) / machine.multiprocessors;
  const double compute = tile * std::max(shared, across + physics.prologue);
  const double elements = sides.batch * (sides.heads * sides.queries + sides.kv_heads * sides.keys) *
                          (sides.key_dim + sides.value_dim) * (forward ? forward_passes : backward_passes);
  const double memory = elements * sides.element_bytes / (machine.bandwidth * physics.memory_efficiency);
  const double larger = std::max(compute, memory), ratio = std::min(compute, memory) / larger;
  const double both = larger * std::pow(1 + std::pow(ratio, physics.overlap), 1 / physics.overlap);
  return both * (1 + physics.throttle * both / (both + physics.throttle_ms * 1e-3)) + physics.fixed_us * 1e-6;
}

}  // namespace spillway
