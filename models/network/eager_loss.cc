// The cross-entropy of EagerOps where one GPU has the whole vocabulary.
//
//   copied logits     transformers before 4.50 shifts logits, not labels, by a token: a copy of them (in fp32 where the
//                     loss is), beside the one that the caller holds until the forward ends; backwards a zero-filled
//                     whole that the copy's gradient is written into
//   sliced            scripts cut the last token off instead (logits[:, :-1].flatten(0, 1).float()): a copy in the
//                     logits' own type, made fp32; backwards the fp32 gradient is narrowed before it goes into the
//                     zero-filled whole
//   preference        a sequence's log-softmax is what its backward reads; gradients of the sequences are stacked
//   chunked           Liger's (liger_kernel/ops/fused_linear_cross_entropy.py): as many chunks as the vocabulary is
//                     wider than the model, of a power of two rows; logits and their gradient of a chunk take turns in
//                     one tensor, gradients of input and weight are made in the forward
//
// A block of PyTorch's and Apex's kernels works through one row at a time (aten/src/ATen/native/cuda/SoftMax.cu; Apex
// contrib/csrc/xentropy): it reads the row for its maximum, once more for the sum, and for the result. Reads after the
// first come from L2 as far as the rows at work, two to a multiprocessor, fit in a half of it: 1 / (1 + (rows /
// half)^4), as gemm_time.cc has it for operands. A half, because these GPUs' L2 is two partitions and each keeps what
// its own multiprocessors read: on an H100 rows of 201 kB, 53 MB at work, come from memory each time
// (docs/internals/operator-times.md).
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models {
namespace {

constexpr std::int64_t rows_per_multiprocessor = 2;  // blocks of 1,024 threads
constexpr double cached_share = 0.5;                 // of L2

}  // namespace

Bytes EagerOps::row_reads(const Tensor& x, std::int64_t rows, std::int64_t passes) const {
  const GpuProfile& gpu = session_.cost().gpu();
  if (!gpu.sm_count || !gpu.l2_cache) return x.bytes() * passes;
  const auto at_work = static_cast<double>(std::min(rows, rows_per_multiprocessor * gpu.sm_count->value));
  const double share = static_cast<double>(x.bytes().count()) / static_cast<double>(rows) * at_work /
                       (cached_share * static_cast<double>(gpu.l2_cache->value.count()));
  const double square = share * share, hits = 1 / (1 + square * square);
  const double again = static_cast<double>((passes - 1) * x.bytes().count()) * (1 - hits);
  return x.bytes() + Bytes(static_cast<std::int64_t>(again));
}

Tensor EagerOps::log_softmax(const std::string& name, const Tensor& logits, std::int64_t rows, LossForm form) {
  const Tensor cut = form == LossForm::sliced ? sliced(name, logits, rows) : logits;
  const Tensor wide =
      form == LossForm::fp32 || form == LossForm::sliced ? cast(name + ".logits_fp32", cut, DataType::fp32) : cut;
  const Tensor x = options_.copies_logits ? shifted(name, wide) : wide;
  Tensor out = session_.empty(name + ".log_softmax", x.type(), x.elements(), TensorRole::activation);
  session_.kernel({.name = "log_softmax",
                   .reads = {x},
                   .writes = {out},
                   .cost = {.memory = MemoryKind::softmax},
                   .bytes = row_reads(x, rows, 3) + out.bytes()});
  return out;
}

Tensor EagerOps::sliced(const std::string& name, const Tensor& logits, std::int64_t rows) {
  const std::int64_t words = logits.elements() / (rows + options_.sequences);
  Tensor copy = session_.empty(name + ".sliced", logits.type(), rows * words, TensorRole::temporary);
  session_.kernel({.name = "copy",
                   .reads = {logits},
                   .writes = {copy},
                   .cost = {.access = MemoryAccess::strided},
                   .bytes = copy.bytes() + copy.bytes()});
  return copy;
}

Tensor EagerOps::shifted(const std::string& name, const Tensor& logits) {
  Tensor copy = like(name + ".shifted", logits, TensorRole::activation);
  session_.kernel({.name = "copy", .reads = {logits}, .writes = {copy}});
  return copy;
}

Tensor EagerOps::in_zeros(const std::string& name, const Tensor& whole, const Tensor& part, MemoryAccess access) {
  Tensor out = like(name, whole, TensorRole::temporary);
  session_.kernel({.name = "fill_zero", .writes = {out}});
  session_.kernel({.name = "copy",
                   .reads = {part},
                   .writes = {out},
                   .cost = {.access = access},
                   .bytes = part.bytes() + part.bytes()});
  return out;
}

void EagerOps::widen_result(const std::string& name, const Tensor& result) {
  if (options_.widens_logits) static_cast<void>(cast(name + ".result_fp32", result, DataType::fp32));
}

Tensor EagerOps::cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels) {
  if (options_.loss == LossForm::fused) return fused_cross_entropy(name, logits, labels);
  const bool slices = options_.loss == LossForm::sliced;
  const std::int64_t rows = labels.elements() - (slices ? options_.sequences : 0);
  const Tensor whole = slices ? logits : Tensor();
  const DataType type = logits.type();
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
    if (options_.copies_logits) result = in_zeros(name + ".shifted.grad", result, result, MemoryAccess::streamed);
    result = cast(name + ".logits.grad", result, type);
    if (whole) result = in_zeros(name + ".sliced.grad", whole, result, MemoryAccess::strided);
    return std::vector<Tensor>{std::move(result)};
  });
}

Tensor EagerOps::fused_cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels) {
  const std::int64_t rows = labels.elements();
  Tensor loss = session_.empty(name, DataType::fp32, 1, TensorRole::activation);
  const Tensor sums = session_.empty(name + ".log_sum_exp", DataType::fp32, rows, TensorRole::activation);
  const Tensor x = options_.copies_logits ? shifted(name, logits) : logits;
  session_.kernel({.name = "cross_entropy",
                   .reads = {x, labels},
                   .writes = {loss, sums},
                   .cost = {.memory = MemoryKind::softmax},
                   .bytes = row_reads(x, rows, 2) + labels.bytes() + sums.bytes()});
  return autograd_.record(std::move(loss), {logits}, false, [=, this](const Tensor& gradient) {
    Tensor result = like(name + ".logits.grad", x, TensorRole::temporary);
    session_.kernel({.name = "cross_entropy_backward",
                     .reads = {gradient, x, labels, sums},
                     .writes = {result},
                     .cost = {.memory = MemoryKind::softmax}});
    if (options_.copies_logits) result = in_zeros(name + ".shifted.grad", result, result, MemoryAccess::streamed);
    return std::vector<Tensor>{std::move(result)};
  });
}

Tensor EagerOps::chunked_cross_entropy(const std::string& name, const Linear& head, const Tensor& x,
                                       const Tensor& labels) {
  TrainedParameter& weight = *head.weight;
  const std::int64_t width = weight.shape.columns, words = weight.shape.rows, rows = x.elements() / width;
  const std::int64_t parts = (words + width - 1) / width;
  const auto chunk = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>((rows + parts - 1) / parts)));
  const bool records = autograd_.is_recording();
  Tensor loss = session_.empty(name, DataType::fp32, rows, TensorRole::activation);
  const Tensor x_gradient = x.node() != 0 && records ? like(name + ".in.grad", x, TensorRole::activation) : Tensor();
  const Tensor weight_sum =
      weight.trains && records ? session_.empty(weight.shape.name + ".grad", type_, words * width, TensorRole::gradient)
                               : Tensor();
  if (weight_sum) session_.kernel({.name = "fill_zero", .writes = {weight_sum}});
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t now = std::min(chunk, rows - first);
    const Tensor logits = make(name + ".logits", now * words, TensorRole::temporary);
    std::vector<Tensor> reads = {x, weight_operand(weight, type_)};
    if (head.bias != nullptr) reads.push_back(head.bias->value);
    part_product("gemm", {.m = now, .n = words, .k = width}, std::move(reads), logits);
    session_.kernel({.name = "cross_entropy",
                     .reads = {logits, labels},
                     .writes = {logits, loss},
                     .cost = {.memory = MemoryKind::softmax},
                     .bytes = row_reads(logits, now, 3) + logits.bytes()});
    if (x_gradient)
      part_product("gemm_dgrad", {.m = now, .n = width, .k = words, .layout = GemmLayout::nn},
                   {logits, weight_operand(weight, type_)}, x_gradient);
    if (weight_sum)
      part_product("gemm_wgrad", {.m = words, .n = width, .k = now, .layout = GemmLayout::nt}, {logits, x, weight_sum},
                   weight_sum);
  }
  return autograd_.record(std::move(loss), {x}, weight.trains, [this, head, x_gradient, weight_sum](const Tensor& by) {
    for (const Tensor& each : {x_gradient, weight_sum})
      if (each) session_.kernel({.name = "multiply", .reads = {each, by}, .writes = {each}});
    if (head.bias != nullptr && head.bias->trains) sum_bias_gradient(*head.bias, by);
    if (weight_sum) accumulate(*head.weight, weight_sum);
    return std::vector<Tensor>{x_gradient};
  });
}

Tensor EagerOps::preference_loss(const std::string& name, const Tensor& logits, const Tensor& labels) {
  const Tensor x = options_.widens_logits ? cast(name + ".logits_fp32", logits, DataType::fp32) : logits;
  const std::int64_t each = x.elements() / options_.sequences, rows = labels.elements() / options_.sequences;
  const auto softmaxes = std::make_shared<std::vector<Tensor>>();
  const Tensor chosen =
      session_.empty(name + ".log_probabilities", x.type(), labels.elements(), TensorRole::activation);
  const Bytes picked = Bytes(rows * (size_of(DataType::int64) + size_of(x.type())));
  const std::string of_sequence = name + ".log_softmax";
  for (std::int64_t i = 0; i < options_.sequences; ++i) {
    Tensor softmax = session_.empty(of_sequence, x.type(), each, TensorRole::activation);
    const Bytes once = row_reads(softmax, rows, 3);
    session_.kernel({.name = "log_softmax",
                     .reads = {x},
                     .writes = {softmax},
                     .cost = {.memory = MemoryKind::softmax},
                     .bytes = once + softmax.bytes()});
    session_.kernel({.name = "gather", .reads = {softmax, labels}, .writes = {chosen}, .bytes = picked});
    if (autograd_.is_recording()) softmaxes->push_back(std::move(softmax));
  }
  Tensor loss = session_.empty(name, DataType::fp32, 1, TensorRole::activation);
  session_.kernel({.name = "preference_loss", .reads = {chosen}, .writes = {loss}});
  const DataType type = x.type();
  return autograd_.record(std::move(loss), {logits}, false, [=, this](const Tensor& gradient) {
    std::vector<Tensor> parts;
    while (!softmaxes->empty()) {
      Tensor sparse = session_.empty(of_sequence + ".grad", type, each, TensorRole::temporary);
      session_.kernel({.name = "fill_zero", .writes = {sparse}});
      session_.kernel({.name = "scatter", .reads = {gradient, labels}, .writes = {sparse}, .bytes = picked});
      Tensor part = session_.empty(name + ".sequence.grad", type, each, TensorRole::temporary);
      const Tensor softmax = std::exchange(softmaxes->back(), {});
      softmaxes->pop_back();
      session_.kernel({.name = "log_softmax_backward",
                       .reads = {sparse, softmax},
                       .writes = {part},
                       .cost = {.memory = MemoryKind::softmax}});
      parts.push_back(std::move(part));
    }
    Tensor whole = session_.empty(name + ".logits.grad", type, each * options_.sequences, TensorRole::temporary);
    session_.kernel({.name = "stack", .reads = parts, .writes = {whole}});
    parts.clear();
    return std::vector<Tensor>{cast(name + ".logits.grad", whole, type_)};
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
