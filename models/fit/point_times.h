// A profile's operator times for the points that a calibration measured.
#pragma once

#include <optional>
#include <vector>

#include "hwprofiles/gpu_points.h"
#include "models/cost/operator_times.h"

namespace spillway::models::fit {

// As the tables' products were measured: at the clock that they settle at. fp8 operands come in fp8.
class PointTimes {
 public:
  // Precondition: operator times are installed (measured_operator_times() is not empty).
  explicit PointTimes(const GpuProfile& gpu);

  // Seconds; none for kinds that no operator time is of, layouts other than tn, formats without times, and operations
  // of another library (hwprofiles::library_of) than the times are of: PyTorch's norms, cross-entropy and AdamW;
  // cuDNN's attention from Hopper on, by PyTorch or by its graph API, FlashAttention's before.
  [[nodiscard]] std::optional<double> seconds(const GpuPoint& point) const;
  // With this scale instead of all others of the profile. O(formats and kinds).
  void rescale(const OperatorScale& scale);

 private:
  [[nodiscard]] std::optional<double> product(const GpuPoint& point) const;
  [[nodiscard]] std::optional<double> memory(const GpuPoint& point, MemoryKind kind) const;
  [[nodiscard]] std::optional<double> operation(const GpuPoint& point) const;

  OperatorTimes times_, unscaled_;  // the latter without tables
};

// A fifth, by the hash of gemm_rows.h: kept out of every fit, so that what the fit gives can be judged.
bool held_out(const GpuPoint& point);

// By the smallest of m, n, k: below 64, below 1024, from 1024.
inline constexpr std::size_t product_class_count = 3;
std::size_t product_class(const GpuPoint& point);
const char* product_class_name(std::size_t product_class);

// Points without those of cuDNN's graph API (`others`) if their operation has points of cuDNN in PyTorch. A training
// step's way to call the library is what is to be predicted, and one factor is not to fit two ways of timing. In order.
std::vector<GpuPoint> points_that_count(const std::vector<GpuPoint>& points, std::vector<GpuPoint>& others);

// The operator that scales a point; none for others, and for operations of no library that training runs.
std::optional<ScaledOperator> operator_of(const GpuPoint& point);

}  // namespace spillway::models::fit
