// fp8 operands of linear layers, the way Transformer Engine makes them with delayed scaling on GPUs whose fp8 products
// want both operands along k (Hopper, Ada): a cast writes its result twice, as it is and transposed, since the forward
// and one of the two backward products read an operand along different sides.
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models {

// `bias`: its gradient, the sum over the rows of x, comes out of the same kernel.
EagerOps::Narrowed EagerOps::narrow(const std::string& name, const Tensor& x, TensorRole role, TrainedParameter* bias) {
  Narrowed both{.rows = session_.empty(name + ".fp8", DataType::fp8, x.elements(), TensorRole::temporary),
                .columns = {}};
  std::vector<Tensor> writes = {both.rows};
  if (autograd_.is_recording()) {  // else there is no backward that would read it
    both.columns = session_.empty(name + ".fp8.transposed", DataType::fp8, x.elements(), role);
    writes.push_back(both.columns);
  }
  Tensor sum;
  if (bias != nullptr) writes.push_back(sum = gradient_of(*bias));
  session_.kernel({.name = bias != nullptr ? "cast_transpose_bias_fp8" : "cast_transpose_fp8",
                   .reads = {x},
                   .writes = std::move(writes)});
  if (bias != nullptr) autograd_.accumulate(*bias, std::move(sum));
  return both;
}

// Cached copies are cast in the step's first micro-batch. Weights that are there only while they are used (ZeRO stage
// 3) are cast for each use.
Tensor EagerOps::narrow_weight(TrainedParameter& weight, bool transposed) {
  if (weight.narrow) {
    if (std::exchange(weight.is_narrowed, true)) return transposed ? weight.narrow_transposed : weight.narrow;
    if (weight.value.type() == DataType::fp8)  // the update wrote it so
      session_.kernel({.name = "transpose_fp8", .reads = {weight.value}, .writes = {weight.narrow_transposed}});
    else
      session_.kernel(
          {.name = "cast_transpose_fp8", .reads = {weight.value}, .writes = {weight.narrow, weight.narrow_transposed}});
    return transposed ? weight.narrow_transposed : weight.narrow;
  }
  Tensor once =
      session_.empty(weight.shape.name + ".fp8", DataType::fp8, weight.shape.elements(), TensorRole::temporary);
  session_.kernel({.name = "cast_fp8", .reads = {weight.value}, .writes = {once}});
  return once;
}

Tensor EagerOps::narrow_rows(const std::string& name, const Tensor& x, TensorRole role) {
  Tensor rows = session_.empty(name + ".fp8", DataType::fp8, x.elements(), role);
  session_.kernel({.name = "cast_fp8", .reads = {x}, .writes = {rows}});
  return rows.with_node(x.node());
}

Tensor EagerOps::narrow_columns(const std::string& name, const Tensor& x) {
  Tensor columns = session_.empty(name + ".fp8.transposed", DataType::fp8, x.elements(), TensorRole::temporary);
  session_.kernel({.name = "cast_fp8", .reads = {x}, .writes = {columns}});
  return columns;
}

Tensor EagerOps::transposed(const std::string& name, const Tensor& x) {
  Tensor turned = session_.empty(name + ".fp8.transposed", x.type(), x.elements(), TensorRole::temporary);
  session_.kernel({.name = "transpose_fp8", .reads = {x}, .writes = {turned}});
  return turned;
}

}  // namespace spillway::models
