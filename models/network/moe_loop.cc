// Experts one after another, as transformers' blocks run them (modeling_mixtral.py, MixtralSparseMoeBlock, through its
// 4.x versions): for each expert the host waits for the list of its tokens, takes their rows, runs a gated feed-forward
// block and adds the weighted result to the tokens. Gradients of one expert's inside are there at a time.
//
// Kept as the grouped form keeps: rows, gate, its activation, up, the product, the result; backwards a zero-filled
// gradient of all tokens for each expert. Deviation: the router's small tensors are those of the grouped form.
#include <algorithm>
#include <memory>
#include <utility>

#include "models/network/eager_linear.h"
#include "models/network/eager_lora.h"
#include "models/network/eager_ops.h"
#include "models/network/moe_block.h"

namespace spillway::models {

bool MoeBlock::loops() const {
  return setup_.traits().transformers && model_.gated() && model_.experts.latent_width == 0 && expert_ranks() == 1 &&
         context_.rec.tensor_ranks() == 1;
}

// One expert's rows of x; their gradient is written into a whole of zeros.
Tensor MoeBlock::take_rows(const std::string& name, const Tensor& x, const Routing& routing, std::int64_t elements) {
  EagerSession& session = context_.session;
  Tensor rows = session.empty(name + ".rows", x.type(), elements, TensorRole::activation);
  session.kernel(
      {.name = "index", .reads = {x, routing.experts}, .writes = {rows}, .bytes = rows.bytes() + rows.bytes()});
  return context_.autograd.record(
      std::move(rows), {x}, false, [&session, name, all = x.elements()](const Tensor& gradient) {
        Tensor whole = session.empty(name + ".rows.in.grad", gradient.type(), all, TensorRole::temporary);
        session.kernel({.name = "fill_zero", .writes = {whole}});
        session.kernel({.name = "index_put",
                        .reads = {gradient},
                        .writes = {whole},
                        .bytes = gradient.bytes() + gradient.bytes()});
        return std::vector<Tensor>{std::move(whole)};
      });
}

// sum += weight of each row x rows, in place.
Tensor MoeBlock::add_weighted(const std::string& name, const Tensor& sum, const Tensor& rows, const Routing& routing) {
  EagerSession& session = context_.session;
  Tensor weighted = session.empty(name + ".weighted", rows.type(), rows.elements(), TensorRole::temporary);
  session.kernel({.name = "multiply",
                  .reads = {rows, routing.weights},
                  .writes = {weighted},
                  .bytes = rows.bytes() + weighted.bytes()});
  session.kernel({.name = "index_add_",
                  .reads = {sum, weighted},
                  .writes = {sum},
                  .bytes = weighted.bytes() + weighted.bytes() + weighted.bytes()});
  weighted = {};
  return context_.autograd.record(
      sum, {sum, rows, routing.weights}, false, [&session, name, rows, routing](const Tensor& gradient) {
        Tensor taken = session.empty(name + ".weighted.grad", rows.type(), rows.elements(), TensorRole::temporary);
        session.kernel(
            {.name = "index", .reads = {gradient}, .writes = {taken}, .bytes = taken.bytes() + taken.bytes()});
        Tensor back = session.empty(name + ".rows.grad", rows.type(), rows.elements(), TensorRole::temporary);
        session.kernel({.name = "multiply", .reads = {taken}, .writes = {back}});
        Tensor weights =
            session.empty(name + ".weights.grad", DataType::fp32, routing.weights.elements(), TensorRole::temporary);
        session.kernel({.name = "multiply",
                        .reads = {taken, rows},
                        .writes = {weights},
                        .bytes = taken.bytes() + rows.bytes() + weights.bytes()});
        return std::vector<Tensor>{gradient, std::move(back), std::move(weights)};
      });
}

// rows times one expert's matrix of `weight`. `sum`: of the gradients of all experts, handed over with the first one's,
// whose turn backwards is last.
Tensor MoeBlock::expert_linear(const std::string& name, const Tensor& rows, TrainedParameter& weight,
                               std::int64_t expert, const std::shared_ptr<Tensor>& sum) {
  EagerSession& session = context_.session;
  EagerRecorder& rec = context_.rec;
  const std::int64_t experts = weight.shape.experts, inputs = weight.shape.columns,
                     outputs = weight.shape.rows / experts, count = rows.elements() / inputs;
  Tensor out = session.empty(name + ".out", rows.type(), count * outputs, TensorRole::activation);
  eager::part_product(rec, "gemm", {.m = count, .n = outputs, .k = inputs},
                      {rows, eager::weight_operand(rec, weight, rows.type(), experts)}, out);
  out = context_.autograd.record(
      std::move(out), {rows}, weight.trains,
      [this, name, expert, experts, inputs, outputs, count, sum, &weight, kept = weight.trains ? rows : Tensor(),
       is_wanted = rows.node() != 0](const Tensor& gradient) {
        EagerSession& now = context_.session;
        EagerRecorder& with = context_.rec;
        Tensor back;
        if (is_wanted) {
          back = now.empty(name + ".in.grad", gradient.type(), count * inputs, TensorRole::temporary);
          eager::part_product(with, "gemm_dgrad", {.m = count, .n = inputs, .k = outputs, .layout = GemmLayout::nn},
                              {gradient, eager::weight_operand(with, weight, gradient.type(), experts)}, back);
        }
        if (weight.trains) {
          if (!*sum)
            *sum =
                now.empty(weight.shape.name + ".grad", gradient.type(), weight.shape.elements(), TensorRole::gradient);
          eager::part_product(with, "gemm_wgrad", {.m = outputs, .n = inputs, .k = count, .layout = GemmLayout::nt},
                              {gradient, kept}, *sum);
          if (expert == 0) eager::accumulate(with, weight, std::exchange(*sum, {}));
        }
        return std::vector<Tensor>{std::move(back)};
      });
  if (TrainedParameter* bias = context_.bias(name)) out = add_bias_of(name, expert, out, *bias);
  if (weight.adapter_a == nullptr) return out;
  const Tensor low = expert_linear(name + ".lora_a", eager::adapter_input(rec, name, rows, weight), *weight.adapter_a,
                                   expert, sums_[name + ".lora_a"]);
  return eager::add_adapter(rec, name, out,
                            expert_linear(name + ".lora_b", low, *weight.adapter_b, expert, sums_[name + ".lora_b"]));
}

// In place; gradients of all experts' biases are summed up as those of their matrices.
Tensor MoeBlock::add_bias_of(const std::string& name, std::int64_t expert, const Tensor& rows, TrainedParameter& bias) {
  EagerSession& session = context_.session;
  const std::int64_t experts = bias.shape.experts;
  const Bytes one(bias.value.bytes() / experts);
  session.kernel(
      {.name = "add_bias_", .reads = {rows, bias.value}, .writes = {rows}, .bytes = rows.bytes() + rows.bytes() + one});
  return context_.autograd.record(
      rows, {rows}, bias.trains, [this, expert, one, sum = sums_[name + ".bias"], &bias](const Tensor& gradient) {
        if (!bias.trains) return std::vector<Tensor>{gradient};
        EagerSession& now = context_.session;
        if (!*sum)
          *sum = now.empty(bias.shape.name + ".grad", gradient.type(), bias.shape.elements(), TensorRole::gradient);
        now.kernel({.name = "bias_gradient", .reads = {gradient}, .writes = {*sum}, .bytes = gradient.bytes() + one});
        if (expert == 0) eager::accumulate(context_.rec, bias, std::exchange(*sum, {}));
        return std::vector<Tensor>{gradient};
      });
}

Tensor MoeBlock::loop_run(const std::string& prefix, const Tensor& x) {
  EagerRecorder& rec = context_.rec;
  EagerSession& session = context_.session;
  const std::string name = prefix + "mlp.experts", router = prefix + "mlp.router";
  const Routing routing =
      route(router, eager::linear(rec, {router, &context_.weight(router), context_.bias(router)}, x),
            x.elements() / model_.hidden);
  Tensor sum = session.empty(name + ".out", x.type(), x.elements(), TensorRole::activation);
  session.kernel({.name = "fill_zero", .writes = {sum}});
  const std::int64_t experts = model_.experts.count,
                     each = std::max<std::int64_t>(1, x.elements() / model_.hidden * model_.experts.active / experts);
  sums_.clear();
  for (const char* part : {".gate", ".up", ".down"})
    for (const char* adapter : {"", ".lora_a", ".lora_b", ".bias"})
      sums_[name + part + adapter] = std::make_shared<Tensor>();
  for (std::int64_t e = 0; e < experts; ++e) {
    const auto linear = [&](const char* part, const Tensor& rows) {
      return expert_linear(name + part, rows, context_.weight(name + part), e, sums_[name + part]);
    };
    const std::int64_t count = load_ ? std::max<std::int64_t>(1, rows_.local[static_cast<std::size_t>(e)]) : each;
    const Tensor found = session.empty(name + ".found", DataType::int64, count, TensorRole::temporary);
    session.host_wait({session.kernel({.name = "nonzero", .reads = {routing.experts}, .writes = {found}})});
    const Tensor rows = take_rows(name, x, routing, count * model_.hidden);
    Tensor inner = eager::pointwise(rec, name + ".gated", linear(".gate", rows), function());
    inner = eager::multiply(rec, name + ".product", inner, linear(".up", rows));
    sum = add_weighted(name, sum, linear(".down", inner), routing);
  }
  sums_.clear();
  if (model_.experts.shared_width == 0) return sum;
  return eager::add(rec, name + ".add_shared", sum, shared(prefix, x));
}

}  // namespace spillway::models
