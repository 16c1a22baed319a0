#include "models/network/compressed_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/network/compressed_keys.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"

namespace spillway::models {

Tensor CompressedAttentionBlock::make(const std::string& name, std::int64_t elements, TensorRole role) {
  return context_.session.empty(name, context_.rec.options.type, elements, role);
}

std::int64_t CompressedAttentionBlock::pairs(const Block& block) const {
  const std::int64_t s = setup_.document(), m = block.compression;
  const std::int64_t w = block.window > 0 ? std::min(block.window, s) : s, near = w * (2 * s - w) / 2;
  if (m == 0 || s < m) return near;
  const std::int64_t keys = block.chooses ? index_.chosen_of(s / m) : s / m;
  return near + keys * s - keys * keys * m / 2;
}

// `inputs`: queries, keys of the window, compressed keys where there are any.
Tensor CompressedAttentionBlock::core(const std::string& name, const Block& block, const std::vector<Tensor>& inputs) {
  EagerSession& session = context_.session;
  const std::int64_t s = setup_.document(), each = pairs(block), rows = setup_.tokens() * block.heads;
  // The window that has as many pairs: w (2 s - w) / 2 of them.
  const auto square = static_cast<double>(s) * static_cast<double>(s);
  const double rest = std::sqrt(std::max(0.0, square - 2 * static_cast<double>(each)));
  const std::int64_t window = std::clamp<std::int64_t>(s - std::llround(rest), 1, s);
  const AttentionShape shape{.batch = setup_.micro_batch * setup_.documents(),
                             .heads = block.heads,
                             .kv_heads = 1,
                             .sequence = s,
                             .head_dim = block.head_dim,
                             .window = window < s ? window : 0};
  const Flops flops(4 * shape.batch * block.query_width() * each);
  TrainedParameter* const sinks = block.sinks ? &context_.weight(name + ".sinks") : nullptr;
  Tensor out = make(name + ".context", rows * block.head_dim, TensorRole::activation);
  const Tensor sums = session.empty(name + ".log_sum_exp", DataType::fp32, rows, TensorRole::activation);
  std::vector<Tensor> reads = inputs;
  if (sinks != nullptr) reads.push_back(sinks->value);
  const KernelCost cost{
      .kind = KernelClass::attention_forward, .type = context_.rec.options.type, .attention = shape, .flops = flops};
  session.kernel({.name = "flash_attention", .reads = std::move(reads), .writes = {out, sums}, .cost = cost});
  const Tensor saved = out;
  return context_.autograd.record(
      std::move(out), inputs, sinks != nullptr && sinks->trains,
      [this, &session, name, inputs, cost, saved, sums, sinks](const Tensor& gradient) {
        std::vector<Tensor> gradients;
        for (const Tensor& input : inputs) gradients.push_back(make(name + ".in.grad", input.elements()));
        KernelCost back = cost;
        back.kind = KernelClass::attention_backward;
        back.flops = Flops(cost.flops.count() / 2 * 5);
        std::vector<Tensor> reads = inputs;
        reads.insert(reads.end(), {gradient, saved, sums});
        session.kernel(
            {.name = "flash_attention_backward", .reads = std::move(reads), .writes = gradients, .cost = back});
        if (sinks != nullptr && sinks->trains) {
          Tensor sum = make(sinks->shape.name + ".grad", sinks->shape.elements(), TensorRole::gradient);
          session.kernel({.name = "sink_gradient", .reads = {gradient}, .writes = {sum}});
          context_.give(*sinks, std::move(sum));
        }
        return gradients;
      });
}

// x [t, a d] times a matrix for each group of heads, one batched product.
Tensor CompressedAttentionBlock::grouped(const std::string& name, const Tensor& x) {
  const std::int64_t groups = model_.compressed.output_groups, out_width = model_.compressed.output_rank,
                     tokens = setup_.tokens(), in_width = x.elements() / tokens / groups;
  TrainedParameter& weight = context_.weight(name);
  EagerRecorder& rec = context_.rec;
  Tensor out = make(name + ".out", tokens * groups * out_width, TensorRole::activation);
  eager::gemm(rec, "gemm", {.m = tokens, .n = out_width, .k = in_width, .batch = groups}, {x, weight.value}, out);
  return context_.autograd.record(
      std::move(out), {x}, weight.trains,
      [this, &rec, name, x, &weight, groups, out_width, tokens, in_width](const Tensor& gradient) {
        Tensor back = make(name + ".in.grad", x.elements());
        eager::gemm(rec, "gemm", {.m = tokens, .n = in_width, .k = out_width, .batch = groups},
                    {gradient, weight.value}, back);
        if (weight.trains) {
          Tensor sum = eager::gradient_of(rec, weight);
          eager::gemm(rec, "gemm", {.m = out_width, .n = in_width, .k = tokens, .batch = groups}, {gradient, x}, sum);
          context_.give(weight, std::move(sum));
        }
        return std::vector<Tensor>{std::move(back)};
      });
}

Tensor CompressedAttentionBlock::run(const std::string& prefix, const Block& block, const Tensor& x,
                                     const Tensor& angles) {
  EagerRecorder& rec = context_.rec;
  const std::string name = prefix + "attention";
  const auto linear = [this, &rec, &name](const char* part, const Tensor& from) {
    return eager::linear(rec, {name + part, &context_.weight(name + part)}, from);
  };
  const auto norm = [this, &rec, &name](const char* part, const Tensor& of) {
    return eager::norm(rec, name + part, of, context_.weight(name + part), nullptr);
  };
  Tensor low = norm(".q_latent_norm", linear(".q_down", x));
  Tensor q = eager::bare_norm(rec, name + ".q_norm", linear(".q_up", low), block.head_dim, false);
  std::vector<Tensor> inputs = {eager::rotary(rec, name + ".q_rotary", q, angles)};
  q = {};
  inputs.push_back(eager::rotary(rec, name + ".kv_rotary", norm(".kv_latent_norm", linear(".kv", x)), angles));
  Tensor scores;
  if (block.compression > 0) {
    inputs.push_back(compressed_keys(context_, name + ".compress", x, block, block.head_dim));
    if (block.chooses) scores = index_.choose(name, x, low, block);
  }
  low = {};
  const auto attend = [this, name, block](const std::vector<Tensor>& again) { return core(name, block, again); };
  Tensor out =
      setup_.recomputes_module("core_attn") ? context_.autograd.checkpoint(inputs, attend, true) : attend(inputs);
  inputs.clear();
  out = index_.learn(name, std::move(out), scores);
  return grouped(name + ".out_groups", eager::rotary(rec, name + ".out_rotary", out, angles));
}

}  // namespace spillway::models
