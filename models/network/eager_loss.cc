// The cross-entropy of EagerOps where one GPU has the whole vocabulary.
//
// A block of PyTorch's and Apex's kernels works through one row at a time (aten/src/ATen/native/cuda/SoftMax.cu; Apex
// contrib/csrc/xentropy): it reads the row for its maximum, once more for the sum, and for the result. Reads after the
// first come from L2 as far as the rows at work, two to a multiprocessor, fit in it: 1 / (1 + (rows / L2)^4), as
// gemm_time.cc has it for operands.
#include <algorithm>
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models {
namespace {

constexpr std::int64_t rows_per_multiprocessor = 2;  // blocks of 1,024 threads

}  // namespace

Bytes EagerOps::row_reads(const Tensor& x, std::int64_t rows, std::int64_t passes) const {
  const GpuProfile& gpu = session_.cost().gpu();
  if (!gpu.sm_count || !gpu.l2_cache) return x.bytes() * passes;
  const auto at_work = static_cast<double>(std::min(rows, rows_per_multiprocessor * gpu.sm_count->value));
  const double share = static_cast<double>(x.bytes().count()) / static_cast<double>(rows) * at_work /
                       static_cast<double>(gpu.l2_cache->value.count());
  const double square = share * share, hits = 1 / (1 + square * square);
  const double again = static_cast<double>((passes - 1) * x.bytes().count()) * (1 - hits);
  return x.bytes() + Bytes(static_cast<std::int64_t>(again));
}

Tensor EagerOps::log_softmax(const std::string& name, const Tensor& logits, std::int64_t rows, LossForm form) {
  const Tensor x = form == LossForm::fp32 ? cast(name + ".logits_fp32", logits, DataType::fp32) : logits;
  Tensor out = session_.empty(name + ".log_softmax", x.type(), x.elements(), TensorRole::activation);
  session_.kernel({.name = "log_softmax",
                   .reads = {x},
                   .writes = {out},
                   .cost = {.memory = MemoryKind::softmax},
                   .bytes = row_reads(x, rows, 3) + out.bytes()});
  return out;
}

Tensor EagerOps::cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels) {
  if (options_.loss == LossForm::fused) return fused_cross_entropy(name, logits, labels);
  const std::int64_t rows = labels.elements();
  const Tensor probabilities = log_softmax(name, logits, rows, options_.loss);
  Tensor loss = session_.empty(name, probabilities.type(), 1, TensorRole::activation);
  const Bytes picked = labels.bytes() + Bytes(rows * size_of(probabilities.type()));
  session_.kernel({.name = "nll_loss", .reads = {probabilities, labels}, .writes = {loss}, .bytes = picked});
  return autograd_.record(std::move(loss), {logits}, false, [=, this](const Tensor& gradient) {
    Tensor sparse = like(name + ".nll.grad", probabilities, TensorRole::temporary);
    session_.kernel({.name = "fill_zero", .writes = {sparse}});
    session_.kernel({.name = "nll_loss_backward", .reads = {gradient, labels}, .writes = {sparse}, .bytes = picked});
    Tensor result = like(name + ".logits_fp32.grad", probabilities, TensorRole::temporary);
    // The sum over a row reads the gradient; the result reads it and the log-softmax.
    const Bytes gradients = row_reads(sparse, rows, 2);
    session_.kernel({.name = "log_softmax_backward",
                     .reads = {sparse, probabilities},
                     .writes = {result},
                     .cost = {.memory = MemoryKind::softmax},
                     .bytes = gradients + probabilities.bytes() + result.bytes()});
    sparse = {};
    return std::vector<Tensor>{cast(name + ".logits.grad", result, type_)};
  });
}

Tensor EagerOps::fused_cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels) {
  const std::int64_t rows = labels.elements();
  Tensor loss = session_.empty(name, DataType::fp32, 1, TensorRole::activation);
  const Tensor sums = session_.empty(name + ".log_sum_exp", DataType::fp32, rows, TensorRole::activation);
  session_.kernel({.name = "cross_entropy",
                   .reads = {logits, labels},
                   .writes = {loss, sums},
                   .cost = {.memory = MemoryKind::softmax},
                   .bytes = row_reads(logits, rows, 2) + labels.bytes() + sums.bytes()});
  return autograd_.record(std::move(loss), {logits}, false, [=, this](const Tensor& gradient) {
    Tensor result = like(name + ".logits.grad", logits, TensorRole::temporary);
    session_.kernel({.name = "cross_entropy_backward",
                     .reads = {gradient, logits, labels, sums},
                     .writes = {result},
                     .cost = {.memory = MemoryKind::softmax}});
    return std::vector<Tensor>{std::move(result)};
  });
}

void EagerOps::loss_metric(const std::string& name, const Tensor& logits, const Tensor& labels) {
  const LossForm form = options_.loss == LossForm::native ? LossForm::native : LossForm::fp32;
  const Tensor probabilities = log_softmax(name, logits, labels.elements(), form);
  const Tensor result = session_.empty(name, probabilities.type(), 1, TensorRole::temporary);
  session_.kernel({.name = "nll_loss",
                   .reads = {probabilities, labels},
                   .writes = {result},
                   .bytes = labels.bytes() + Bytes(labels.elements() * size_of(probabilities.type()))});
}

}  // namespace spillway::models
