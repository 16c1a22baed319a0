// Attention over a sequence that comes in slices.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/network/attention_size.h"
#include "models/network/eager_attention.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {
namespace {

struct Slice {
  AttentionShape shape;
  std::vector<Tensor> qkv;  // as the layer made them: one packed tensor or three
  Tensor out, statistics;

  [[nodiscard]] std::int64_t own_keys() const { return shape.batch * shape.sequence * shape.kv_heads * shape.head_dim; }
  [[nodiscard]] bool is_first() const { return shape.key_count() == shape.sequence; }
};

// The last slice comes first and sees all keys, so it makes the gradient of them all; the others add theirs.
std::vector<Tensor> slice_backward(EagerRecorder& rec, const std::string& name, const Slice& slice, std::size_t parts,
                                   const Tensor& gradient, SlicedKeys& keys) {
  const AttentionShape& shape = slice.shape;
  const bool is_last = !keys.gradient;
  const Tensor q = make(rec, name + ".q.grad", query_elements(shape), TensorRole::temporary);
  Tensor both = make(rec, name + ".keys_values.grad", 2 * key_elements(shape), TensorRole::temporary);
  {
    // Workspace, as in flash_attention.
    const Tensor sums =
        rec.session.empty(name + ".q.grad_fp32", DataType::fp32, query_elements(shape), TensorRole::temporary);
    const Tensor rows =
        rec.session.empty(name + ".row_sums", DataType::fp32, slice.statistics.elements(), TensorRole::temporary);
    rec.session.kernel({.name = "flash_attention_backward",
                        .reads = {gradient, slice.out, slice.statistics, slice.qkv[0], keys.kept},
                        .writes = {q, both, sums, rows},
                        .cost = {.kind = KernelClass::attention_backward,
                                 .type = rec.options.type,
                                 .attention = shape,
                                 .flops = flash_flops(shape, 5)}});
  }
  if (is_last)
    keys.gradient = std::move(both);
  else
    rec.session.kernel({.name = "add_",
                        .reads = {keys.gradient, both},
                        .writes = {keys.gradient},
                        .bytes = both.bytes() + both.bytes() + both.bytes()});
  both = {};
  std::vector<Tensor> gradients;
  const auto take = [&](Tensor part, std::vector<Tensor> from) {
    rec.session.kernel({.name = from.size() > 1 ? "concatenate" : "copy",
                        .reads = std::move(from),
                        .writes = {part},
                        .bytes = part.bytes() + part.bytes()});
    gradients.push_back(std::move(part));
  };
  if (parts == 1) {
    take(like(rec, name + ".qkv.grad", slice.qkv[0], TensorRole::temporary), {q, keys.gradient});
  } else {
    gradients.push_back(q);
    take(make(rec, name + ".k.grad", slice.own_keys(), TensorRole::temporary), {keys.gradient});
    take(make(rec, name + ".v.grad", slice.own_keys(), TensorRole::temporary), {keys.gradient});
  }
  if (slice.is_first()) keys = {};
  return gradients;
}

}  // namespace

Tensor flash_slice(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& qkv,
                   const AttentionShape& shape, std::int64_t sequence, SlicedKeys& keys) {
  const auto slice = std::make_shared<Slice>(Slice{.shape = shape, .qkv = qkv});
  if (!keys.kept) keys.kept = make(rec, name + ".keys_values", 2 * slice->own_keys() / shape.sequence * sequence);
  const Bytes moved(2 * slice->own_keys() * size_of(rec.options.type));
  rec.session.kernel({.name = "copy",
                      .reads = qkv.size() == 1 ? qkv : std::vector<Tensor>{qkv[1], qkv[2]},
                      .writes = {keys.kept},
                      .bytes = moved + moved});
  slice->out = make(rec, name + ".context", query_elements(shape));
  slice->statistics = rec.session.empty(name + ".log_sum_exp", DataType::fp32,
                                        shape.batch * shape.heads * shape.sequence, TensorRole::activation);
  rec.session.kernel({.name = "flash_attention",
                      .reads = {qkv[0], keys.kept},
                      .writes = {slice->out, slice->statistics},
                      .cost = {.kind = KernelClass::attention_forward,
                               .type = rec.options.type,
                               .attention = shape,
                               .flops = flash_flops(shape, 2)}});
  slice->qkv.resize(1);  // keys and values are read where they were put
  return rec.autograd.record(slice->out, qkv, false,
                             [&rec, name, slice, parts = qkv.size(), &keys](const Tensor& gradient) {
                               return slice_backward(rec, name, *slice, parts, gradient, keys);
                             });
}

}  // namespace spillway::models::eager
