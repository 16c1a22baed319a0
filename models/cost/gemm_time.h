// Time of a matrix product from a few physical constants of a GPU.
//
// C[m,n] = A[m,k] B[k,n] runs as tiles of one of nine sizes, optionally with k split s ways (split-K, stream-K), in
// waves over the multiprocessors. The fastest choice counts, as a library's heuristics would pick it:
//
//   tiles    = ceil(m / rows) ceil(n / columns) batch s
//   waves    = (1 - r) ceil(tiles / SMs) + r max(tiles / SMs, 1)
//   step     = max(2 rows columns SMs / (peak * efficiency(tile)),  (rows + columns) bytes / L2 rate of an SM)
//   compute  = waves * step * (k / s + fill) [+ reduction of the parts through L2 when s > 1]
//   memory   = operand bytes over DRAM, or over L2 for operands that stay there
//   time     = throttled((compute^q + memory^q)^(1/q)) + fixed [+ quantisation of A for fp8]
//
// Residency follows how the tables were measured (aiconfigurator, collector/helper.py). Products repeat back to back
// with up to five copies of the weights. So the weights stay in L2 only when all copies fit, A and C when one product
// fits. Throttling: a kernel that runs long draws the board's power limit; its clock falls by up to a share d over a
// time constant tau. All of it is our own formula; tile and wave quantisation as in NVIDIA's "Matrix Multiplication
// Background User's Guide", sections 2 and 3.
#pragma once

#include <cstddef>

namespace spillway::models {

// Alignment: a library's best kernels load 16 bytes at once (cp.async, TMA). Operands with rows that begin elsewhere
// get kernels with narrower loads. These reach a share of the tensor unit and of the bandwidth, and at two bytes don't
// split k. Shares are from GAC's measurements on A100 (github.com/JihaoXin/GAC, cuBLAS 12.8) and PyTorch's learned rule
// for padding (_PadMMA100.py). On Hopper and later these kernels are Ampere's, which have mma.sync's share of the peak.
// At two bytes they are Turing's (cutlass_75 ... align1), also where only the result is misaligned. Their rates were
// measured on an H100 with cuBLAS 13 (docs/internals/operator-times.md). m is no leading dimension of row-major
// operands, so it never matters by itself. A contraction is padded to a tile's depth.
inline constexpr double widest_load = 16;  // bytes

// A GPU's datasheet figures; every field positive.
struct GemmMachine {
  double peak = 0;             // flops/s, dense, of the product's precision
  double bandwidth = 0;        // of device memory, bytes/s
  double multiprocessors = 0;  // count
  double l2_bytes = 0;
  double misaligned_share = 1;  // of the peak that kernels for misaligned operands can use: those of mma.sync
  // Hopper and later: flops/s of kernels for rows that begin at odd multiples of 2 bytes, whatever the tile; with both
  // operands contiguous along k, and otherwise. There a misaligned result counts like an operand. 0: as Ampere.
  double narrowest_along_k = 0, narrowest = 0;
};

// Fitted; ranges are those of the fit.
struct GemmPhysics {
  double large_tile = 0;           // efficiency of tiles of 32,768 results, fraction of the dense peak
  double medium_tile = 0;          // of 16,384 results, relative to large_tile
  double small_tile = 0;           // below, relative to medium_tile
  double fill = 0;                 // pipeline fill and drain, in units of k
  double memory_efficiency = 0;    // of DRAM
  double fixed_us = 0;             // start and end of a kernel
  double split_us = 0;             // of the extra reduction when k is split
  double overlap = 0;              // q >= 1: how sharply the slower of compute and memory decides
  double partial_wave = 0;         // r in [0, 1]: 1 charges a partial last wave by its fill only
  double l2_share = 0;             // of L2 that operands can live in
  double l2_gbps = 0;              // L2 rate of one multiprocessor, GB/s
  double throttle = 0;             // d >= 0
  double throttle_ms = 0;          // tau
  double quantise_us = 0;          // fp8 with activations scaled on the fly: fixed part; 0 for other precisions
  double quantise_efficiency = 1;  // and its share of the bandwidth over 5 bytes an element (two reads, one write)
};
inline constexpr std::size_t gemm_physics_count = 15;

struct GemmSides {
  double m = 1, n = 1, k = 1, batch = 1;
  double element_bytes = 2;  // of A and B
  double result_bytes = 2;   // of C moved an element; added to C: read and written
  bool accumulates = false;  // C is added to
  // Bytes that rows (and, batched, matrices) of A and B, and of C, begin at multiples of; powers of two, at most 16.
  double alignment = widest_load, result_alignment = widest_load;
  bool along_k = true;  // A and B are contiguous along k (TN)
};

struct GemmSeconds {
  double total = 0;
  double clocked = 0;         // of it, what goes with the inverse of the multiprocessors' clock
  bool is_narrowest = false;  // at one of the machine's fixed rates, which no table of aligned products corrects
};

// Seconds. Precondition: sides >= 1. About 45 tile choices, no memory.
GemmSeconds gemm_time(const GemmPhysics& physics, const GemmMachine& machine, const GemmSides& sides);
double gemm_seconds(const GemmPhysics& physics, const GemmMachine& machine, const GemmSides& sides);

}  // namespace spillway::models
