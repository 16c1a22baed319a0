// CostModel: how long a kernel takes on a GPU, from its shape, flops and bytes; and where that number comes from.
//
//   gemm        a table of efficiencies, or tiles in waves against memory traffic (cost_curves.h), or a roofline
//   memory      bytes / (bandwidth * efficiency(bytes)), or bytes / (0.8 bandwidth) + 3 us
//   attention   flops / (peak * efficiency(sequence, head size, pass)) + fixed
//
// A measured (or overridden) table of the hardware profile goes before the default curves; a fitted one after them,
// because one curve over flops knows less than the tile model fitted to the same data. Each duration says which it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hwprofiles/hardware_profile.h"
#include "models/cost_curves.h"
#include "models/cost_kinds.h"
#include "models/operator_times.h"
#include "traces/base/units.h"

namespace spillway {

enum class KernelClass : std::uint8_t { gemm, attention_forward, attention_backward, memory_bound, copy_to_device };
// tf32 is fp32 data multiplied by the tensor unit.
enum class DataType : std::uint8_t { bf16, fp32, int64, byte, fp16, fp8, tf32 };
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
      return 1;
  }
  return 1;
}
std::string_view to_string(DataType type);

// C[m,n] = A[m,k] B[k,n], `batch` times. Precondition of every use: all >= 1.
struct GemmShape {
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
};
struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, sequence = 1, head_dim = 1;
  bool causal = true;
  std::int64_t value_dim = 0;  // of values and results where it differs from head_dim (latent attention); 0: the same
  std::int64_t window = 0;     // a token attends to so many at most; 0: to all
};

struct KernelCost {
  KernelClass kind = KernelClass::memory_bound;
  DataType type = DataType::bf16;
  GemmShape gemm{};            // kind gemm
  AttentionShape attention{};  // kind attention_*
  Flops flops{};
  Bytes bytes{};  // traffic to and from device memory: every operand read once, every result written once
  MemoryKind memory = MemoryKind::elementwise;  // kind memory_bound
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
  double relative_error = 0;  // standard error of `time`, from rows kept out of the fit; 0: unknown
};

class CostModel {
 public:
  // Throws InputError when the profile has no arithmetic peak at all.
  explicit CostModel(const HardwareProfile& profile);

  // O(log table). A kernel takes at least a nanosecond.
  [[nodiscard]] Duration duration(const KernelCost& kernel) const;

  [[nodiscard]] const GpuProfile& gpu() const { return gpu_; }
  [[nodiscard]] Picos host_time_per_kernel() const { return host_time_; }  // framework dispatch, launch call included
  [[nodiscard]] Picos launch_call() const { return gpu_.launch_call.value; }

 private:
  [[nodiscard]] Duration gemm(const KernelCost& kernel) const;
  [[nodiscard]] Duration attention(const KernelCost& kernel) const;
  [[nodiscard]] Duration memory_bound(const KernelCost& kernel) const;
  [[nodiscard]] Duration copy_to_device(const KernelCost& kernel) const;
  [[nodiscard]] double peak(DataType type) const;
  [[nodiscard]] const GemmEfficiency* table_of(Precision precision) const;

  GpuProfile gpu_;
  const CostCurves* curves_ = nullptr;  // of the architecture; null when there are none
  Picos host_time_{};
  double bytes_per_second_ = 0, copy_bytes_per_second_ = 0;
  double peak_bf16_ = 0, peak_fp32_ = 0;
};

}  // namespace spillway
