// Measurements of one GPU model, as fitted by spillway-fit (models/fit): physical constants and, for the shapes that
// were measured, a table of what the constants leave out. Files: models/times/*.json, written by that program.
//
// A GPU without measurements gets those of its nearest measured kin, carried over by datasheet (carried_over()):
//   - rates scale with the dense peak, the memory bandwidth and the number of multiprocessors, which the formulas of
//     gemm_time.h and attention_time.h take from the target;
//   - a GPU of the kin's architecture and kind of memory spends the kin's energy per flop, so its own power limit gives
//     its settled clock, lower or higher than the kin's (gpu_power.h);
//   - between other GPUs matrix efficiency scales with the best product measured on each (GpuProfile::achieved_flops)
//     where both have one; else, where their tensor units are fed the same way, with the watts a peak flop may draw,
//     when the target has fewer; the settled share of the clock is the kin's;
//   - fixed times and pipeline fill scale with the inverse of the clock;
//   - caches of GPUs with graphics memory are one partition, those with HBM two that hold copies (assumed).
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hwprofiles/gpu_profile.h"
#include "models/cost/attention_time.h"
#include "models/cost/cost_kinds.h"
#include "models/cost/gemm_time.h"
#include "models/cost/gpu_power.h"
#include "models/cost/log_grid.h"

namespace spillway::models {

// How matrix instructions get their operands, which decides what share of the peak kernels reach.
enum class MatrixPath { registers, shared_memory, tensor_memory, other };  // mma.sync, wgmma, tcgen05, other vendors
std::string_view to_string(MatrixPath path);

struct DatasheetFacts {
  std::string architecture;
  MatrixPath path = MatrixPath::registers;
  std::array<double, precision_count> peak{};      // flops/s, dense; 0: none
  std::array<double, precision_count> achieved{};  // best product measured; 0: unknown
  double bandwidth = 0;                            // bytes/s
  double multiprocessors = 0, l2_bytes = 0;        // 0: unknown
  double tdp_watts = 0, clock_hz = 0;              // 0: unknown
  bool graphics_memory = false;                    // GDDR, not HBM
};
DatasheetFacts datasheet_facts(const GpuProfile& gpu);

// Relative standard errors on rows kept out of the fit, by the smallest of m, n, k: below 64, below 1024, from 1024.
// For attention by sequence: below 256, below 2048, from 2048.
struct RegimeErrors {
  double small = 0, medium = 0, large = 0;
};

struct GemmTimes {
  Precision precision = Precision::bf16;
  GemmPhysics physics;
  LogGrid residual;  // log(measured / physics) over m, n, k; empty: none
  RegimeErrors table_error, physics_error;
  // Lines of the profile at hand, by m and n: time over physics and table, against k. Not in the files.
  std::map<std::pair<double, double>, Curve> lines;
  // Energy per flop of large products at the highest clock. Not in the files: it follows from physics.throttle and the
  // power limit that the products were measured at, the datasheet's.
  double flop_joules = 0;
};

struct AttentionTimes {
  Precision precision = Precision::bf16;
  AttentionPhysics physics;
  LogGrid causal, full;  // residuals over sequence, batch x heads, heads / kv heads, head dim; empty: none
  RegimeErrors table_error, physics_error;
  bool carried_over = false;
};

// time = bytes / (bandwidth * efficiency) + fixed
struct MemoryTimes {
  MemoryKind kind = MemoryKind::elementwise;
  double efficiency = 0, fixed_us = 0, error = 0;
  bool carried_over = false;
};

struct OperatorTimes {
  std::string name;                   // "h100-sxm"
  std::vector<std::string> profiles;  // hardware profiles of this very GPU
  std::string source;                 // who measured, where published, licence, how fitted
  DatasheetFacts facts;
  std::vector<GemmTimes> gemm;
  std::vector<AttentionTimes> attention_forward, attention_backward;  // of training
  std::vector<AttentionTimes> attention_serving;                      // prefill of a serving library
  std::vector<MemoryTimes> memory;
  bool carried_over = false;  // from another GPU: `name` is the kin's
};

// Files of measured times. They are long, and a GPU needs few of them: tables are read when they are asked for.
class MeasuredTimes {
 public:
  // Throws InputError on a file with a damaged head.
  explicit MeasuredTimes(std::vector<std::string> paths);

  [[nodiscard]] bool empty() const { return heads_.empty(); }
  [[nodiscard]] std::size_t size() const { return heads_.size(); }
  // Names, profiles, sources and facts; no times.
  [[nodiscard]] std::span<const OperatorTimes> heads() const { return heads_; }
  // By place in heads(). From any thread. Throws InputError on a damaged file.
  [[nodiscard]] const OperatorTimes& whole(std::size_t i) const;

 private:
  struct Whole {
    std::once_flag once;
    OperatorTimes times;
  };
  std::vector<std::string> paths_;
  std::vector<OperatorTimes> heads_;
  std::unique_ptr<Whole[]> wholes_;
};

// The bundled files, in the order of their names: $SPILLWAY_DATA/times, the source tree's, the installed ones; the
// first folder there is.
const MeasuredTimes& measured_operator_times();
OperatorTimes read_operator_times(const std::string& path);
std::string operator_times_text(const OperatorTimes& times);  // JSON

// Index of the nearest of `measured`, by the same way of feeding tensor units, architecture, flops per byte, and watts
// per flop. Precondition: not empty.
std::size_t nearest_kin(std::span<const OperatorTimes> measured, const DatasheetFacts& target);
OperatorTimes carried_over(const OperatorTimes& kin, const DatasheetFacts& target);

// Power constants of the GPU, within `gpu`'s own power limit; formats without measured products take bf16's energy by
// assumed ratios. Precondition: gpu has a tdp or a power limit.
GpuPower power_of(const OperatorTimes& times, const GpuProfile& gpu);

// Times measured on a profile's own GPU; null: on none.
const OperatorTimes* own_operator_times(std::span<const OperatorTimes> measured, const GpuProfile& gpu);
// Applies a calibration's factors for some operators.
void apply_scale(OperatorTimes& times, const OperatorScale& scale);

// Time of a product of these sides on the very GPU over physics and table: 1 where nothing is known of it.
double line_factor(const GemmTimes& gemm, double m, double n, double k);

// Times for a profile: its own when it was measured, else its kin's. Operators that its own tables lack come from the
// nearest kin that has them. A calibrated profile's scales and lines are applied. Precondition: measured is not empty.
OperatorTimes operator_times_for(const MeasuredTimes& measured, const GpuProfile& gpu);

}  // namespace spillway::models
