// RMSNorm over rows that a tensor group has in parts: the sums of squares, and backwards the sums of gradient times
// input, go round the group (OLMo 2's and OLMoE's norms over all heads of queries and keys).
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models::eager {

Tensor split_rms_norm(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter& weight) {
  if (rec.tensor_ranks() == 1) return norm(rec, name, x, weight, nullptr);
  const std::int64_t rows = x.elements() / weight.shape.rows;
  const Tensor statistics = rec.session.empty(name + ".statistics", DataType::fp32, rows, TensorRole::activation);
  rec.session.kernel({.name = "row_sum_of_squares", .reads = {x}, .writes = {statistics}});
  rec.communication->all_reduce(CommGroup::tensor, "all_reduce_norm", {statistics});
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "rms_norm", .reads = {x, statistics, weight.value}, .writes = {out}});
  return rec.autograd.record(
      std::move(out), {x}, weight.trains, [&rec, name, x, statistics, &weight](const Tensor& gradient) {
        const Tensor sums = temporary(rec, name + ".row_sums", DataType::fp32, statistics.elements());
        rec.session.kernel({.name = "row_sum", .reads = {gradient, x, weight.value}, .writes = {sums}});
        rec.communication->all_reduce(CommGroup::tensor, "all_reduce_norm", {sums});
        Tensor x_gradient = like(rec, name + ".in.grad", x, TensorRole::temporary);
        rec.session.kernel({.name = "rms_norm_backward",
                            .reads = {gradient, x, statistics, sums, weight.value},
                            .writes = {x_gradient},
                            .cost = {.memory = MemoryKind::norm_backward}});
        if (!weight.trains) return std::vector<Tensor>{std::move(x_gradient)};
        Tensor sum = gradient_of(rec, weight);
        rec.session.kernel({.name = "rms_norm_backward_weight",
                            .reads = {gradient, x, statistics},
                            .writes = {sum},
                            .cost = {.memory = MemoryKind::norm_backward}});
        rec.autograd.accumulate(weight, std::move(sum));
        return std::vector<Tensor>{std::move(x_gradient)};
      });
}

}  // namespace spillway::models::eager
