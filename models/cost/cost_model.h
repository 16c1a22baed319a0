// CostModel: how long a kernel takes on a GPU, from its shape, flops and bytes; where that number comes from, and how
// far it may be off.
//
//   gemm        physics of tiles and waves (gemm_time.h) times exp(residual table), or a roofline
//   attention   physics of blocks (attention_time.h) times exp(residual table)
//   memory      bytes / (bandwidth * efficiency of the kind) + fixed; with products of small tiles (KernelCost::
//               flops_per_clock) those, if they take longer
//
// Sources of times, in order. First a table of the hardware profile that says it was measured; a memory-bound kernel
// takes that of its kind, whatever its provenance, then the one of all kinds. Next the operator times fitted for this
// GPU (operator_times.h), then those of its nearest measured kin. A profile that names no architecture, or an
// installation without operator times, has the profile's roofline and 0.8 of the bandwidth plus 3 us. Products in tf32
// and fp32 take the constants of bf16 with their own peak (CostSource::assumed).
//
// Times are at the highest clock. They come with the part that goes with the clock, and with what the kernel draws. The
// clock that kernels settle at depends on which follow each other (gpu_power.h, models/step/step_clock.h).
//
// A locked clock (GpuProfile::locked_clock_mhz) slows products and attention by its share of the clock at which the
// datasheet states the tensor peak. The measured efficiencies are taken to be at that clock. Power may lower the locked
// clock further. Device memory keeps its rate.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "hwprofiles/hardware_profile.h"
#include "models/cost/cost_kinds.h"
#include "models/cost/operator_times.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

enum class KernelClass : std::uint8_t { gemm, attention_forward, attention_backward, memory_bound, copy_to_device };
// tf32 is fp32 data multiplied by the tensor unit.
enum class DataType : std::uint8_t { bf16, fp32, int64, byte, fp16, fp8, tf32, fp4 };
inline constexpr std::size_t data_type_count = 8;
// True for operands of products narrower than 16 bits.
constexpr bool is_narrow(DataType type) { return type == DataType::fp8 || type == DataType::fp4; }
// Bytes of one element; of fp4, two of which share a byte, that byte.
constexpr std::int64_t size_of(DataType type) {
  switch (type) {
    case DataType::bf16:
    case DataType::fp16:
      return 2;
    case DataType::fp32:
    case DataType::tf32:
      return 4;
    case DataType::int64:
      return 8;
    case DataType::byte:
    case DataType::fp8:
    case DataType::fp4:
      return 1;
  }
  return 1;
}
std::string_view to_string(DataType type);

// The contiguous sides of the row-major operands. `tn`: x w^T of a forward (k in both). `nn`: an input's gradient (k in
// A, n in B). `nt`: a weight's gradient (m in A, n in B). C is contiguous in n.
enum class GemmLayout : std::uint8_t { tn, nn, nt };

// NVFP4 has a scale of a byte for 16 elements. Scales of fp8 operands, a byte for 32 at most, aren't counted.
constexpr std::int64_t bytes_of(DataType type, std::int64_t elements) {
  return type == DataType::fp4 ? (elements + 1) / 2 + (elements + 15) / 16 : elements * size_of(type);
}

// The extent of one scale in operands of an fp8 product: a tensor, a row along k, a block (1 x 128 and 128 x 128), or
// 32 neighbours. Blackwell's tensor unit scales these 32 itself.
enum class ProductScaling : std::uint8_t { tensor, row, block, micro_block };

// C[m,n] = A[m,k] B[k,n], `batch` times. Precondition of every use: all >= 1.
struct GemmShape {
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  GemmLayout layout = GemmLayout::tn;
};
struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, sequence = 1, head_dim = 1;
  bool causal = true;
  std::int64_t keys = 0;       // of a slice of a causal sequence: its own tokens and those before; 0: its own
  std::int64_t value_dim = 0;  // of values and results where it differs from head_dim (latent attention); 0: the same
  std::int64_t window = 0;     // a token attends to so many at most; 0: to all
  bool deterministic = false;  // a backward that adds in a fixed order
  bool serving = false;        // a serving library's prefill kernel, which keeps nothing for a backward
  bool dropout = false;        // of the weights: a random number for each
  AttentionKernel kernel = AttentionKernel::best;

  [[nodiscard]] std::int64_t key_count() const { return keys > 0 ? keys : sequence; }
};

struct KernelCost {
  KernelClass kind = KernelClass::memory_bound;
  DataType type = DataType::bf16;
  GemmShape gemm{};            // kind gemm
  AttentionShape attention{};  // kind attention_*
  Flops flops{};
  Bytes bytes{};  // traffic to and from device memory: every operand read once, every result written once
  MemoryKind memory = MemoryKind::elementwise;   // kind memory_bound
  MemoryAccess access = MemoryAccess::streamed;  // kind memory_bound
  Bytes whole{};     // kind memory_bound, above 0: this is one of the kernels that together take as long as so many
  double share = 1;  // bytes do, and takes this share of it
  std::int64_t launches = 1;  // MemoryAccess::rows: kernels that this one stands for
  // Above 0: so many flops a clock of each multiprocessor at most. Kind memory_bound: products within chunks of a
  // sequence, in tiles too small for the tensor unit's rate. Kind gemm: a library's older kernels.
  double flops_per_clock = 0;
  Picos least{};  // kind memory_bound: chunks, or rows in a block, go one after the other
  // Kind gemm in fp8: A comes in fp8. false: it is scaled and cast on the way, as the published products are.
  bool is_cast_before = false;
  ProductScaling scaling = ProductScaling::tensor;  // kind gemm in fp8
  bool accumulates = false;                         // kind gemm: C, in fp32, is added to
  bool one_by_one = false;      // kind gemm: the library launches a kernel for each of the batch (Transformer Engine)
  bool before_cuda_12 = false;  // kind gemm: of a library that leaves misaligned batched bf16 to the vector unit
};

enum class CostSource : std::uint8_t {
  table,    // interpolated in a table of the hardware profile
  fitted,   // a curve fitted to measurements of this kind of GPU, outside their table
  kin,      // from the datasheet and the curve of the nearest measured kin
  assumed,  // a default nobody measured
};
std::string_view to_string(CostSource source);

struct Duration {
  Picos time{};
  CostSource source = CostSource::assumed;
  double relative_error = 0;                  // standard error of `time`, from rows kept out of the fit; 0: unknown
  Picos clocked{};                            // of `time`, what goes with the inverse of the multiprocessors' clock
  double chip_joules = 0, memory_joules = 0;  // drawn beyond idle at the highest clock (gpu_power.h)
};

// The host's slowdown where DeepEP's proxies share its cores (assumed, 1.25 to 1.5: docs/internals/operator-times.md).
inline constexpr double proxy_slowdown = 1.4;

class CostModel {
 public:
  // Throws InputError when the profile has no arithmetic peak at all.
  explicit CostModel(const HardwareProfile& profile);

  // O(log table), well under a microsecond. A kernel takes at least a nanosecond.
  [[nodiscard]] Duration duration(const KernelCost& kernel) const;

  // Adam on the CPU over operands of so many bytes, each read or written once, by one of `sharers` GPUs' processes that
  // do so at the same time. Rate: HostProfile::cpu_adam_parameters_per_second at 28 bytes a parameter, as its sources
  // count. If the host states none: 60 % of its DRAM bandwidth or 12 GB/s a core, whichever is less (assumed).
  // most_bytes_per_second: of one process.
  [[nodiscard]] Duration host_update(Bytes bytes, std::int64_t sharers,
                                     double most_bytes_per_second = std::numeric_limits<double>::infinity()) const;

  [[nodiscard]] const GpuProfile& gpu() const { return gpu_; }
  // Power constants of the GPU; null: unknown.
  [[nodiscard]] const GpuPower* power() const { return power_ ? &*power_ : nullptr; }
  // Share of the highest clock that durations are at: below 1 where the profile locks it.
  [[nodiscard]] double clock_share() const { return clock_share_; }
  [[nodiscard]] Picos host_time_per_kernel() const { return host_time_; }  // framework dispatch, launch call included
  // Host time of a framework's deep Python, over that of processes pinned to their cores. `deep_ranks`: of groups that
  // exchange tokens by DeepEP. Threads of the host carry out their sends to other machines over EFA.
  [[nodiscard]] double host_slowdown(std::int64_t deep_ranks) const {
    return host_slowdown_ * (deep_ranks > proxied_beyond_ ? proxy_slowdown : 1);
  }
  [[nodiscard]] Picos launch_call() const { return gpu_.launch_call.value; }

 private:
  void set_host_update(const HostProfile& host);
  void set_power();
  void meet_sustained_rate(double flops_per_second);
  [[nodiscard]] Duration timed(const KernelCost& kernel) const;
  [[nodiscard]] Duration gemm(const KernelCost& kernel) const;
  [[nodiscard]] double scaled_rate(const KernelCost& kernel) const;
  [[nodiscard]] Duration gemm_by_physics(const KernelCost& kernel, const GemmTimes& times) const;
  [[nodiscard]] Duration attention(const KernelCost& kernel) const;
  [[nodiscard]] AttentionTimes published_attention(const KernelCost& kernel) const;
  [[nodiscard]] Duration attention_by_physics(const KernelCost& kernel, const AttentionTimes& times) const;
  [[nodiscard]] Duration memory_bound(const KernelCost& kernel) const;
  [[nodiscard]] Duration chunks(const KernelCost& kernel) const;
  [[nodiscard]] Duration streamed(const KernelCost& kernel, Bytes moved) const;
  [[nodiscard]] Duration copy_to_device(const KernelCost& kernel) const;
  [[nodiscard]] Duration roofline(const KernelCost& kernel) const;
  [[nodiscard]] double peak(DataType type) const;

  GpuProfile gpu_;
  std::optional<OperatorTimes> times_;
  std::optional<GpuPower> power_;
  Picos host_time_{};
  double host_slowdown_ = 1;
  std::int64_t proxied_beyond_ = std::numeric_limits<std::int64_t>::max();  // GPUs of a machine, with EFA
  double host_update_bytes_per_second_ = 0;
  CostSource host_update_source_ = CostSource::assumed;
  double clock_share_ = 1;  // of the clock behind the dense peak, where the profile locks it
  double bytes_per_second_ = 0, copy_bytes_per_second_ = 0;
  std::array<double, precision_count> peak_{};  // or the next wider one's
};

}  // namespace spillway::models
