// Narrow operands of linear layers: casts along rows and columns.
#pragma once

#include <string>

#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

// x cast, and the same transposed for a product of the backward. `rows`: of x, where torch.compile makes the kernels;
// else 0.
struct Narrowed {
  Tensor rows, columns;
};
Narrowed narrow(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role, TrainedParameter* bias,
                std::int64_t rows = 0);
// The one or the other alone.
Tensor narrow_rows(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role);
Tensor narrow_columns(EagerRecorder& rec, const std::string& name, const Tensor& x, std::int64_t rows = 0);
Tensor narrow_weight(EagerRecorder& rec, TrainedParameter& weight, bool transposed);
[[nodiscard]] ProductScaling scaling(const EagerRecorder& rec);
void cast_rows(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& rows);
void cast_columns(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& columns,
                  std::int64_t rows = 0);
void cast_both(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& rows, const Tensor& columns,
               std::int64_t count = 0);
Tensor narrow_copy(EagerRecorder& rec, const std::string& name, const char* suffix, std::int64_t elements,
                   TensorRole role);
Tensor transposed(EagerRecorder& rec, const std::string& name, const Tensor& x);

}  // namespace spillway::models::eager
