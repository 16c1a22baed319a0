// The cross-entropy where one GPU has the whole vocabulary.
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

#include "models/network/eager_linear.h"
#include "models/network/eager_lora.h"
#include "models/network/eager_loss.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {
namespace {

constexpr std::int64_t rows_per_multiprocessor = 2;  // blocks of 1,024 threads
constexpr double cached_share = 0.5;                 // of L2

Bytes row_reads(const EagerRecorder& rec, const Tensor& x, std::int64_t rows, std::int64_t passes) {
  const GpuProfile& gpu = rec.session.cost().gpu();
  if (!gpu.sm_count || !gpu.l2_cache) return x.bytes() * passes;
  const auto at_work = static_cast<double>(std::min(rows, rows_per_multiprocessor * gpu.sm_count->value));
  const double share = static_cast<double>(x.bytes().count()) / static_cast<double>(rows) * at_work /
                       (cached_share * static_cast<double>(gpu.l2_cache->value.count()));
  const double square = share * share, hits = 1 / (1 + square * square);
  const double again = static_cast<double>((passes - 1) * x.bytes().count()) * (1 - hits);
  return x.bytes() + Bytes(static_cast<std::int64_t>(again));
}

Tensor sliced(EagerRecorder& rec, const std::string& name, const Tensor& logits, std::int64_t rows) {
  const std::int64_t words = logits.elements() / (rows + rec.setup.micro_batch);
  Tensor copy = rec.session.empty(name + ".sliced", logits.type(), rows * words, TensorRole::temporary);
  rec.session.kernel({.name = "copy",
                      .reads = {logits},
                      .writes = {copy},
                      .cost = {.access = MemoryAccess::strided},
                      .bytes = copy.bytes() + copy.bytes()});
  return copy;
}

Tensor shifted(EagerRecorder& rec, const std::string& name, const Tensor& logits) {
  Tensor copy = like(rec, name + ".shifted", logits, TensorRole::activation);
  rec.session.kernel({.name = "copy", .reads = {logits}, .writes = {copy}});
  return copy;
}

// The log-softmax of each row; and what its passes over x read from device memory.
Tensor log_softmax(EagerRecorder& rec, const std::string& name, const Tensor& logits, std::int64_t rows,
                   LossForm form) {
  const Tensor cut = form == LossForm::sliced ? sliced(rec, name, logits, rows) : logits;
  const Tensor wide =
      form == LossForm::fp32 || form == LossForm::sliced ? cast(rec, name + ".logits_fp32", cut, DataType::fp32) : cut;
  const Tensor x = rec.setup.traits().copies_logits ? shifted(rec, name, wide) : wide;
  Tensor out = rec.session.empty(name + ".log_softmax", x.type(), x.elements(), TensorRole::activation);
  rec.session.kernel({.name = "log_softmax",
                      .reads = {x},
                      .writes = {out},
                      .cost = {.memory = MemoryKind::softmax},
                      .bytes = row_reads(rec, x, rows, 3) + out.bytes()});
  return out;
}

// `part` written into a zero-filled tensor of `whole`'s shape.
Tensor in_zeros(EagerRecorder& rec, const std::string& name, const Tensor& whole, const Tensor& part,
                MemoryAccess access) {
  Tensor out = like(rec, name, whole, TensorRole::temporary);
  rec.session.kernel({.name = "fill_zero", .writes = {out}});
  rec.session.kernel({.name = "copy",
                      .reads = {part},
                      .writes = {out},
                      .cost = {.access = access},
                      .bytes = part.bytes() + part.bytes()});
  return out;
}

Tensor fused_cross_entropy(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels) {
  const std::int64_t rows = labels.elements();
  Tensor loss = rec.session.empty(name, DataType::fp32, 1, TensorRole::activation);
  const Tensor sums = rec.session.empty(name + ".log_sum_exp", DataType::fp32, rows, TensorRole::activation);
  const Tensor x = rec.setup.traits().copies_logits ? shifted(rec, name, logits) : logits;
  rec.session.kernel({.name = "cross_entropy",
                      .reads = {x, labels},
                      .writes = {loss, sums},
                      .cost = {.memory = MemoryKind::softmax},
                      .bytes = row_reads(rec, x, rows, 2) + labels.bytes() + sums.bytes()});
  return rec.autograd.record(std::move(loss), {logits}, false, [=, &rec](const Tensor& gradient) {
    Tensor result = like(rec, name + ".logits.grad", x, TensorRole::temporary);
    rec.session.kernel({.name = "cross_entropy_backward",
                        .reads = {gradient, x, labels, sums},
                        .writes = {result},
                        .cost = {.memory = MemoryKind::softmax}});
    if (rec.setup.traits().copies_logits)
      result = in_zeros(rec, name + ".shifted.grad", result, result, MemoryAccess::streamed);
    return std::vector<Tensor>{std::move(result)};
  });
}

}  // namespace

void widen_result(EagerRecorder& rec, const std::string& name, const Tensor& result) {
  if (rec.options.widens_logits) static_cast<void>(cast(rec, name + ".result_fp32", result, DataType::fp32));
}

Tensor cross_entropy(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels) {
  if (rec.setup.loss == LossForm::fused) return fused_cross_entropy(rec, name, logits, labels);
  const bool slices = rec.setup.loss == LossForm::sliced;
  const std::int64_t rows = labels.elements() - (slices ? rec.setup.micro_batch : 0);
  const Tensor whole = slices ? logits : Tensor();
  const DataType type = logits.type();
  const Tensor probabilities = log_softmax(rec, name, logits, rows, rec.setup.loss);
  Tensor loss = rec.session.empty(name, probabilities.type(), 1, TensorRole::activation);
  const Bytes picked = labels.bytes() + Bytes(rows * size_of(probabilities.type()));
  rec.session.kernel({.name = "nll_loss", .reads = {probabilities, labels}, .writes = {loss}, .bytes = picked});
  return rec.autograd.record(std::move(loss), {logits}, false, [=, &rec](const Tensor& gradient) {
    Tensor sparse = like(rec, name + ".nll.grad", probabilities, TensorRole::temporary);
    rec.session.kernel({.name = "fill_zero", .writes = {sparse}});
    rec.session.kernel({.name = "nll_loss_backward", .reads = {gradient, labels}, .writes = {sparse}, .bytes = picked});
    Tensor result = like(rec, name + ".logits_fp32.grad", probabilities, TensorRole::temporary);
    // The sum over a row reads the gradient; the result reads it and the log-softmax.
    const Bytes gradients = row_reads(rec, sparse, rows, 2);
    rec.session.kernel({.name = "log_softmax_backward",
                        .reads = {sparse, probabilities},
                        .writes = {result},
                        .cost = {.memory = MemoryKind::softmax},
                        .bytes = gradients + probabilities.bytes() + result.bytes()});
    sparse = {};
    if (rec.setup.traits().copies_logits)
      result = in_zeros(rec, name + ".shifted.grad", result, result, MemoryAccess::streamed);
    result = cast(rec, name + ".logits.grad", result, type);
    if (whole) result = in_zeros(rec, name + ".sliced.grad", whole, result, MemoryAccess::strided);
    return std::vector<Tensor>{std::move(result)};
  });
}

Tensor chunked_cross_entropy(EagerRecorder& rec, const std::string& name, const Linear& head, const Tensor& x,
                             const Tensor& labels) {
  TrainedParameter& weight = *head.weight;
  const std::int64_t width = weight.shape.columns, words = weight.shape.rows, rows = x.elements() / width;
  const std::int64_t parts = (words + width - 1) / width;
  const auto chunk = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>((rows + parts - 1) / parts)));
  const bool records = rec.autograd.is_recording();
  Tensor loss = rec.session.empty(name, DataType::fp32, rows, TensorRole::activation);
  const Tensor x_gradient =
      x.node() != 0 && records ? like(rec, name + ".in.grad", x, TensorRole::activation) : Tensor();
  const Tensor weight_sum = weight.trains && records ? rec.session.empty(weight.shape.name + ".grad", rec.options.type,
                                                                         words * width, TensorRole::gradient)
                                                     : Tensor();
  if (weight_sum) rec.session.kernel({.name = "fill_zero", .writes = {weight_sum}});
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t now = std::min(chunk, rows - first);
    const Tensor logits = make(rec, name + ".logits", now * words, TensorRole::temporary);
    std::vector<Tensor> reads = {x, weight_operand(rec, weight, rec.options.type)};
    if (head.bias != nullptr) reads.push_back(head.bias->value);
    part_product(rec, "gemm", {.m = now, .n = words, .k = width}, std::move(reads), logits);
    rec.session.kernel({.name = "cross_entropy",
                        .reads = {logits, labels},
                        .writes = {logits, loss},
                        .cost = {.memory = MemoryKind::softmax},
                        .bytes = row_reads(rec, logits, now, 3) + logits.bytes()});
    if (x_gradient)
      part_product(rec, "gemm_dgrad", {.m = now, .n = width, .k = words, .layout = GemmLayout::nn},
                   {logits, weight_operand(rec, weight, rec.options.type)}, x_gradient);
    if (weight_sum)
      part_product(rec, "gemm_wgrad", {.m = words, .n = width, .k = now, .layout = GemmLayout::nt},
                   {logits, x, weight_sum}, weight_sum);
  }
  return rec.autograd.record(std::move(loss), {x}, weight.trains,
                             [&rec, head, x_gradient, weight_sum](const Tensor& by) {
                               for (const Tensor& each : {x_gradient, weight_sum})
                                 if (each)
                                   rec.session.kernel({.name = "multiply", .reads = {each, by}, .writes = {each}});
                               if (head.bias != nullptr && head.bias->trains) sum_bias_gradient(rec, *head.bias, by);
                               if (weight_sum) accumulate(rec, *head.weight, weight_sum);
                               return std::vector<Tensor>{x_gradient};
                             });
}

Tensor preference_loss(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels) {
  const Tensor x = rec.options.widens_logits ? cast(rec, name + ".logits_fp32", logits, DataType::fp32) : logits;
  const std::int64_t each = x.elements() / rec.setup.micro_batch, rows = labels.elements() / rec.setup.micro_batch;
  const auto softmaxes = std::make_shared<std::vector<Tensor>>();
  const Tensor chosen =
      rec.session.empty(name + ".log_probabilities", x.type(), labels.elements(), TensorRole::activation);
  const Bytes picked = Bytes(rows * (size_of(DataType::int64) + size_of(x.type())));
  const std::string of_sequence = name + ".log_softmax";
  for (std::int64_t i = 0; i < rec.setup.micro_batch; ++i) {
    Tensor softmax = rec.session.empty(of_sequence, x.type(), each, TensorRole::activation);
    const Bytes once = row_reads(rec, softmax, rows, 3);
    rec.session.kernel({.name = "log_softmax",
                        .reads = {x},
                        .writes = {softmax},
                        .cost = {.memory = MemoryKind::softmax},
                        .bytes = once + softmax.bytes()});
    rec.session.kernel({.name = "gather", .reads = {softmax, labels}, .writes = {chosen}, .bytes = picked});
    if (rec.autograd.is_recording()) softmaxes->push_back(std::move(softmax));
  }
  Tensor loss = rec.session.empty(name, DataType::fp32, 1, TensorRole::activation);
  rec.session.kernel({.name = "preference_loss", .reads = {chosen}, .writes = {loss}});
  const DataType type = x.type();
  return rec.autograd.record(std::move(loss), {logits}, false, [=, &rec](const Tensor& gradient) {
    std::vector<Tensor> parts;
    while (!softmaxes->empty()) {
      Tensor sparse = rec.session.empty(of_sequence + ".grad", type, each, TensorRole::temporary);
      rec.session.kernel({.name = "fill_zero", .writes = {sparse}});
      rec.session.kernel({.name = "scatter", .reads = {gradient, labels}, .writes = {sparse}, .bytes = picked});
      Tensor part = rec.session.empty(name + ".sequence.grad", type, each, TensorRole::temporary);
      const Tensor softmax = std::exchange(softmaxes->back(), {});
      softmaxes->pop_back();
      rec.session.kernel({.name = "log_softmax_backward",
                          .reads = {sparse, softmax},
                          .writes = {part},
                          .cost = {.memory = MemoryKind::softmax}});
      parts.push_back(std::move(part));
    }
    Tensor whole = rec.session.empty(name + ".logits.grad", type, each * rec.setup.micro_batch, TensorRole::temporary);
    rec.session.kernel({.name = "stack", .reads = parts, .writes = {whole}});
    parts.clear();
    return std::vector<Tensor>{cast(rec, name + ".logits.grad", whole, rec.options.type)};
  });
}

Tensor value_loss(EagerRecorder& rec, const std::string& name, const Tensor& values) {
  const Tensor wide = cast(rec, name + ".values_fp32", values, DataType::fp32);
  Tensor loss = rec.session.empty(name, DataType::fp32, 1, TensorRole::activation);
  rec.session.kernel({.name = "value_loss", .reads = {wide}, .writes = {loss}});
  return rec.autograd.record(std::move(loss), {values}, false, [=, &rec](const Tensor& gradient) {
    const Tensor result = like(rec, name + ".values.grad", wide, TensorRole::temporary);
    rec.session.kernel({.name = "value_loss_backward", .reads = {gradient, wide}, .writes = {result}});
    return std::vector<Tensor>{cast(rec, name + ".values.grad", result, values.type())};
  });
}

void loss_metric(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels) {
  const LossForm form = rec.setup.loss == LossForm::native ? LossForm::native : LossForm::fp32;
  const Tensor probabilities = log_softmax(rec, name, logits, labels.elements(), form);
  const Tensor result = rec.session.empty(name, probabilities.type(), 1, TensorRole::temporary);
  rec.session.kernel({.name = "nll_loss",
                      .reads = {probabilities, labels},
                      .writes = {result},
                      .bytes = labels.bytes() + Bytes(labels.elements() * size_of(probabilities.type()))});
}

}  // namespace spillway::models::eager
