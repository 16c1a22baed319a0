// Default cost curves by GPU architecture, for what a hardware profile has no measured table of.
//
// GEMM. A product of m x n x k runs as tiles of one of eight sizes, optionally with k split s ways, in waves over the
// multiprocessors; the fastest choice counts, as a library's heuristics would pick it:
//
//   tiles   = ceil(m / tile_m) ceil(n / tile_n) batch s
//   waves   = (1 - r) ceil(tiles / SMs) + r max(tiles / SMs, 1)
//   compute = waves SMs 2 tile_m tile_n (k / s + prologue) / (peak * efficiency(tile)) [+ split cost]
//   memory  = operand bytes / (bandwidth * memory efficiency)
//   time    = (compute^q + memory^q)^(1/q) + fixed
//
// Attention. Query blocks of 128 rows, each against half the keys when causal:
//
//   time = flops (s + overhead) / s * max(1, SMs / blocks) / (peak * efficiency * head factor) + fixed, or its memory
//   traffic if that is longer; overhead counts in keys (twice as much per key pair when causal).
//
// The GEMM constants were fitted to the bf16 rows of NVIDIA's aiconfigurator tables (commit 095f58a, Apache-2.0,
// measured with TensorRT-LLM; A100, H100 and H200 together, B200, L40S), a fifth of the rows by a hash of (m, n, k)
// kept out; the attention ones to cuDNN's in NVIDIA's cudnn-frontend benchmarks (3929da2, MIT; H200 and B200, head
// size 128, ten and nine rows). tests/models/cost_model_test.cc states the errors.
#pragma once

#include <string_view>

namespace spillway {

struct GemmCurve {
  double large_tile = 0;         // efficiency of tiles of 32,768 results, fraction of the dense peak
  double medium_tile = 0;        // of 16,384 results, relative to large_tile
  double small_tile = 0;         // below
  double prologue = 0;           // in units of k
  double memory_efficiency = 0;  // (0, 1]
  double fixed_us = 0;
  double split_us = 0;      // of the extra reduction when k is split
  double overlap = 0;       // q >= 1: how sharply the slower of compute and memory decides
  double partial_wave = 0;  // r in [0, 1]: 1 charges a partial last wave by its fill only
};

struct AttentionCurve {
  double efficiency = 0;  // head size 128, long sequences; fraction of the dense peak
  double overhead = 0;    // keys
  double fixed_us = 0;
};

struct CostCurves {
  std::string_view architecture;  // as GpuProfile::architecture
  GemmCurve gemm;
  AttentionCurve attention_forward, attention_backward;
  bool attention_fitted = false;  // else taken over from a relative or a paper
};

// Efficiency of heads of at most 64 elements relative to 128, fitted to H100's context attention table (as above).
inline constexpr double small_head_factor = 0.757;
// Kernels bound by memory: NVIDIA's own model constants in aiconfigurator's <system>.yaml, 0.8 of the bandwidth and 3
// us.
inline constexpr double memory_bound_efficiency = 0.8;
inline constexpr double memory_bound_fixed_us = 3;

// Null for an architecture without curves.
const CostCurves* find_cost_curves(std::string_view architecture);

// Seconds. Preconditions: sides and multiprocessors positive, peak in flops/s, bandwidth in bytes/s.
double gemm_seconds(const GemmCurve& curve, double m, double n, double k, double batch, double element_bytes,
                    double peak, double bandwidth, double multiprocessors);

}  // namespace spillway
