// Time of a fused attention kernel (flash attention, cuDNN's, TensorRT-LLM's) from a few physical constants.
//
// One block of work is 128 query rows of one head against all keys they may see, in tiles of 128 keys:
//
//   blocks   = ceil(queries / 128) a head
//   tiles    = sum over blocks of ceil(keys seen / 128), half the square when causal
//   tile     = products 2 128 128 (key dim + value dim)/2 (1 + softmax / dim) SMs / (peak * efficiency)
//   compute  = tile * max(batch heads (tiles + blocks prologue) / SMs, longest block + prologue)
//   memory   = queries, keys, values and results once each
//   time     = throttled((compute^q + memory^q)^(1/q)) + fixed
//
// Dropout draws a random number for each score of those tiles (Philox), beside nothing else: so many a clock and
// multiprocessor, measured on an H100 (docs/internals/operator-times.md).
//
// `softmax` charges the exponentials of a score; their cost does not depend on the head size. Products: forwards one of
// the key's dimension and one of the value's, backwards three and two (Dao 2022, arXiv:2205.14135, section 3; tiles as
// in Dao 2023, arXiv:2307.08691).
#pragma once

#include <array>

namespace spillway::models {

struct AttentionMachine {
  double peak = 0;             // flops/s, dense, of the product's precision
  double bandwidth = 0;        // bytes/s
  double multiprocessors = 0;  // count
  double clock = 0;            // of the multiprocessors, Hz; of dropout alone
};

struct AttentionPhysics {
  double efficiency = 0;         // of the tensor unit on a tile, softmax apart; fraction of the dense peak
  double softmax = 0;            // in units of the head dimension
  double prologue = 0;           // of a block, in tiles
  double memory_efficiency = 0;  // of DRAM
  double fixed_us = 0;
  double overlap = 0;   // q >= 1
  double throttle = 0;  // as in gemm_time.h
  double throttle_ms = 0;
  double deterministic = 1;  // time of a backward with a fixed order of sums over one without, >= 1
};

struct AttentionSides {
  double batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, key_dim = 1, value_dim = 1;
  double element_bytes = 2;
  bool causal = true;
  double window = 0;           // keys a query sees at most, up to its own place; 0: all. Causal only
  bool deterministic = false;  // backwards only
  bool dropout = false;
};

enum class AttentionPass { forward, backward };

// Constants of kernels that are not the fastest a GPU has, from published figures; dimensions as in attention_seconds.
//   flash2   Dao 2023 (arXiv:2307.08691, section 4.1) on A100: 0.80 of the peak forwards and 0.66 backwards, softmax
//            apart. It feeds the tensor unit from registers, which reach a smaller share of the peak where instructions
//            are made to read shared memory or tensor memory: `register_share`, 0.54 forwards and 0.57 backwards on
//            H100 by the figures of Shah et al. 2024 (arXiv:2407.08608, section 4.1), taken for later GPUs as well.
//   triton   the first FlashAttention in Triton: FlashAttention 2 is 1.3 to 1.5 times as fast forwards and about twice
//            as fast backwards (Dao 2023, section 4.1).
AttentionPhysics flash2_physics(AttentionPass pass, bool feeds_from_registers);
AttentionPhysics triton_physics(AttentionPass pass, bool feeds_from_registers);

// Coordinates of a residual table: sequence, batch x heads, heads / kv heads, head dim.
constexpr std::array<double, 4> attention_point(const AttentionSides& sides) {
  return {sides.queries, sides.batch * sides.heads, sides.heads / sides.kv_heads, sides.key_dim};
}

// FlashAttention 2 has kernels for some head dimensions (32 to 256); the next larger one runs. Operands are copied into
// it first if the dimension is not a multiple of 8. The dimension that runs, and the seconds of the copies.
double padded_dimension(double dimension);
double padding_seconds(const AttentionMachine& machine, const AttentionSides& sides, AttentionPass pass);

struct AttentionSeconds {
  double total = 0;
  double clocked = 0;  // of it, what goes with the inverse of the multiprocessors' clock
};

// Seconds. Precondition: sides >= 1.
AttentionSeconds attention_time(const AttentionPhysics& physics, const AttentionMachine& machine,
                                const AttentionSides& sides, AttentionPass pass);
double attention_seconds(const AttentionPhysics& physics, const AttentionMachine& machine, const AttentionSides& sides,
                         AttentionPass pass);

}  // namespace spillway::models
