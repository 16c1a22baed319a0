#include "models/network/moe_block.h"

#include <algorithm>
#include <utility>

namespace spillway::models {

// The k weights are the node's result; which experts they belong to has no gradient.
MoeBlock::Routing MoeBlock::route(const std::string& name, const Tensor& logits, std::int64_t tokens) {
  EagerSession& session = context_.session;
  const std::int64_t chosen = tokens * model_.experts.active;
  const Tensor softmax = session.empty(name + ".softmax", DataType::fp32, logits.elements(), TensorRole::activation);
  Tensor weights = session.empty(name + ".weights", DataType::fp32, chosen, TensorRole::activation);
  const Tensor experts = session.empty(name + ".experts", DataType::int64, chosen, TensorRole::activation);
  session.kernel({.name = "router_softmax_topk", .reads = {logits}, .writes = {softmax, weights, experts}});
  const DataType type = logits.type();
  weights = context_.autograd.record(
      std::move(weights), {logits}, false, [&session, name, type, softmax, experts](const Tensor& gradient) {
        Tensor result = session.empty(name + ".logits.grad", type, softmax.elements(), TensorRole::temporary);
        session.kernel(
            {.name = "router_softmax_topk_backward", .reads = {gradient, softmax, experts}, .writes = {result}});
        return std::vector<Tensor>{std::move(result)};
      });
  return {.weights = std::move(weights), .experts = experts};
}

Tensor MoeBlock::permute(const std::string& name, const Tensor& x, const Routing& routing) {
  EagerSession& session = context_.session;
  Tensor rows =
      session.empty(name + ".permuted", x.type(), x.elements() * model_.experts.active, TensorRole::activation);
  session.kernel({.name = "permute_tokens", .reads = {x, routing.experts}, .writes = {rows}});
  const std::int64_t elements = x.elements();
  return context_.autograd.record(
      std::move(rows), {x}, false, [&session, name, elements, experts = routing.experts](const Tensor& gradient) {
        Tensor sum = session.empty(name + ".permuted.in.grad", gradient.type(), elements, TensorRole::temporary);
        session.kernel({.name = "permute_tokens_backward", .reads = {gradient, experts}, .writes = {sum}});
        return std::vector<Tensor>{std::move(sum)};
      });
}

// Rows to the ranks of the experts they chose, or back; the same the other way round in the backward.
Tensor MoeBlock::exchange(const std::string& name, const Tensor& rows) {
  if (expert_ranks() == 1) return rows;
  Communication& communication = *context_.communication;
  Tensor out = communication.all_to_all(CommGroup::expert, name + ".exchanged", rows, TensorRole::activation);
  return context_.autograd.record(std::move(out), {rows}, false, [&communication, name](const Tensor& gradient) {
    return std::vector<Tensor>{
        communication.all_to_all(CommGroup::expert, name + ".grad", gradient, TensorRole::temporary)};
  });
}

// Rows that came from several ranks, by local expert, or back in the order of the ranks.
Tensor MoeBlock::sort(const std::string& name, const Tensor& rows) {
  const std::int64_t sources = expert_ranks() * (gathers() ? context_.ops.tensor_ranks() : 1);
  if (sources == 1 || expert_ranks() == model_.experts.count) return rows;
  EagerSession& session = context_.session;
  Tensor out = session.empty(name + ".sorted", rows.type(), rows.elements(), TensorRole::activation);
  session.kernel({.name = "sort_chunks", .reads = {rows}, .writes = {out}});
  return context_.autograd.record(std::move(out), {rows}, false, [&session, name](const Tensor& gradient) {
    Tensor back = session.empty(name + ".sorted.in.grad", gradient.type(), gradient.elements(), TensorRole::temporary);
    session.kernel({.name = "sort_chunks", .reads = {gradient}, .writes = {back}});
    return std::vector<Tensor>{std::move(back)};
  });
}

Tensor MoeBlock::unpermute(const std::string& name, const Tensor& rows, const Routing& routing, std::int64_t elements) {
  EagerSession& session = context_.session;
  Tensor out = session.empty(name + ".out", rows.type(), elements, TensorRole::activation);
  session.kernel({.name = "unpermute_tokens", .reads = {rows, routing.weights, routing.experts}, .writes = {out}});
  return context_.autograd.record(
      std::move(out), {rows, routing.weights}, false, [&session, name, rows, routing](const Tensor& gradient) {
        Tensor back = session.empty(name + ".rows.grad", rows.type(), rows.elements(), TensorRole::temporary);
        Tensor weights =
            session.empty(name + ".weights.grad", DataType::fp32, routing.weights.elements(), TensorRole::temporary);
        session.kernel({.name = "unpermute_tokens_backward",
                        .reads = {gradient, rows, routing.weights, routing.experts},
                        .writes = {back, weights}});
        return std::vector<Tensor>{std::move(back), std::move(weights)};
      });
}

void MoeBlock::grouped_product(std::string_view kernel, const GemmShape& shape, std::int64_t flops,
                               std::vector<Tensor> reads, const Tensor& write) {
  const KernelCost cost{.kind = KernelClass::gemm,
                        .type = has_own_type(reads[0].type()) ? reads[0].type() : options_.product,
                        .gemm = shape,
                        .flops = Flops(flops),
                        .is_cast_before = true};
  context_.session.kernel({.name = kernel, .reads = std::move(reads), .writes = {write}, .cost = cost});
}

// fp8, or fp32 of adapters beside 16 bits.
bool MoeBlock::has_own_type(DataType type) const {
  return type == DataType::fp8 || (type == DataType::fp32 && options_.type != DataType::fp32);
}

// rows [t k, in] times the matrix [out, in] of each row's expert.
Tensor MoeBlock::grouped_linear(const std::string& name, const Tensor& rows, TrainedParameter& weight) {
  const std::int64_t groups = weight.shape.experts, inputs = weight.shape.columns;
  const std::int64_t outputs = weight.shape.rows / groups, count = rows.elements() / inputs;
  const std::int64_t each = std::max<std::int64_t>(1, (count + groups - 1) / groups),
                     flops = 2 * count * inputs * outputs;
  EagerSession& session = context_.session;
  EagerOps& ops = context_.ops;
  const bool in_fp8 = weight.in_fp8;
  EagerOps::Narrowed operand{.rows = rows, .columns = rows};
  if (in_fp8) operand = ops.narrow(name + ".in", rows, TensorRole::activation, nullptr);
  if (!weight.trains) operand.columns = {};
  Tensor out = session.empty(name + ".out", rows.type(), count * outputs, TensorRole::activation);
  grouped_product("grouped_gemm", {.m = each, .n = outputs, .k = inputs, .batch = groups}, flops,
                  {operand.rows, in_fp8 ? ops.narrow_weight(weight, false) : ops.weight_operand(weight, rows.type())},
                  out);
  operand.rows = {};
  out = context_.autograd.record(
      std::move(out), {rows}, weight.trains,
      [this, name, kept = operand.columns, count, each, groups, inputs, outputs, flops, in_fp8,
       is_wanted = rows.node() != 0, &weight](const Tensor& gradient) {
        EagerSession& session_now = context_.session;
        EagerOps& now = context_.ops;
        EagerOps::Narrowed incoming{.rows = gradient, .columns = gradient};
        if (in_fp8) incoming = now.narrow(name + ".out.grad", gradient, TensorRole::temporary, nullptr);
        const DataType type = gradient.type();
        Tensor back;
        if (is_wanted) {
          back = session_now.empty(name + ".in.grad", type, count * inputs, TensorRole::temporary);
          grouped_product("grouped_gemm_dgrad", {.m = each, .n = inputs, .k = outputs, .batch = groups}, flops,
                          {incoming.rows, in_fp8 ? now.narrow_weight(weight, true) : now.weight_operand(weight, type)},
                          back);
        }
        if (!weight.trains) return std::vector<Tensor>{std::move(back)};
        const GemmShape shape{.m = outputs, .n = inputs, .k = each, .batch = groups};
        context_.autograd.weight_work([this, shape, flops, kept, columns = std::move(incoming.columns), &weight] {
          if (options_.fused_accumulation) {
            grouped_product("grouped_gemm_wgrad_accumulate", shape, flops, {columns, kept, weight.gradient},
                            weight.gradient);
            context_.autograd.accumulate(weight, {});
          } else {
            const DataType product = columns.type() == DataType::fp8 ? options_.type : columns.type();
            Tensor sum = context_.session.empty(weight.shape.name + ".grad", product, weight.shape.elements(),
                                                TensorRole::gradient);
            grouped_product("grouped_gemm_wgrad", shape, flops, {columns, kept}, sum);
            context_.ops.accumulate(weight, std::move(sum));
          }
        });
        return std::vector<Tensor>{std::move(back)};
      });
  if (weight.adapter_a == nullptr) return out;
  const Tensor low = grouped_linear(name + ".lora_a", ops.adapter_input(name, rows), *weight.adapter_a);
  return ops.add_adapter(name, out, grouped_linear(name + ".lora_b", low, *weight.adapter_b));
}

EagerOps::Pointwise MoeBlock::function() const {
  switch (model_.activation) {
    case Activation::relu:
      return EagerOps::Pointwise::relu;
    case Activation::silu_gated:
      return EagerOps::Pointwise::silu;
    case Activation::gelu:
    case Activation::gelu_gated:
      return EagerOps::Pointwise::gelu;
  }
  return EagerOps::Pointwise::gelu;
}

Tensor MoeBlock::shared(const std::string& prefix, const Tensor& x) {
  EagerOps& ops = context_.ops;
  const auto layer = [this](const std::string& part) { return EagerOps::Linear{part, &weight_(part), nullptr}; };
  const std::string name = prefix + "mlp.shared";
  Tensor inner;
  if (model_.gated()) {
    std::vector<Tensor> both = ops.column_linears({layer(name + ".gate"), layer(name + ".up")}, x);
    both[0] = ops.pointwise(name + ".gated", both[0], function());
    inner = ops.multiply(name + ".product", both[0], both[1]);
  } else {
    inner = ops.pointwise(name + ".activated", ops.column_linears({layer(name + ".up")}, x)[0], function());
  }
  Tensor out = ops.row_linear(layer(name + ".down"), inner);
  inner = {};
  if (!model_.experts.shared_gate) return out;
  const Tensor gate = ops.linear(prefix + "mlp.shared_gate", x, weight_(prefix + "mlp.shared_gate"), nullptr);
  EagerSession& session = context_.session;
  Tensor weighed = session.empty(name + ".weighed", out.type(), out.elements(), TensorRole::activation);
  session.kernel({.name = "sigmoid_multiply", .reads = {out, gate}, .writes = {weighed}});
  return context_.autograd.record(
      std::move(weighed), {out, gate}, false, [&session, name, out, gate](const Tensor& gradient) {
        Tensor back = session.empty(name + ".out.grad", out.type(), out.elements(), TensorRole::temporary);
        Tensor gate_back = session.empty(name + ".gate.grad", gate.type(), gate.elements(), TensorRole::temporary);
        session.kernel(
            {.name = "sigmoid_multiply_backward", .reads = {gradient, out, gate}, .writes = {back, gate_back}});
        return std::vector<Tensor>{std::move(back), std::move(gate_back)};
      });
}

Tensor MoeBlock::run(const std::string& prefix, const Tensor& x) {
  EagerOps& ops = context_.ops;
  const std::string name = prefix + "mlp.experts";
  const std::string router = prefix + "mlp.router";
  Routing routing = route(router, ops.linear(router, x, weight_(router), nullptr), x.elements() / model_.hidden);
  Tensor entered = x;
  if (!gathers()) {
    entered = ops.enter_tensor_region(name, x, TensorRole::activation);
    routing.weights = ops.enter_tensor_region(router, routing.weights, TensorRole::activation);
  }
  Tensor rows = exchange(name, permute(name, entered, routing));
  entered = {};
  if (gathers()) rows = ops.enter_tensor_region(name, rows, TensorRole::activation);
  rows = sort(name, rows);
  Tensor inner;
  if (model_.gated()) {
    inner = ops.pointwise(name + ".gated", grouped_linear(name + ".gate", rows), function());
    inner = ops.multiply(name + ".product", inner, grouped_linear(name + ".up", rows));
  } else {
    inner = ops.pointwise(name + ".activated", grouped_linear(name + ".up", rows), function());
  }
  rows = {};
  Tensor results = grouped_linear(name + ".down", inner);
  inner = {};
  results = sort(name + ".down", results);
  if (gathers()) results = ops.leave_tensor_region(name + ".down", results, true);
  results = exchange(name + ".down", results);
  Tensor routed = unpermute(name, results, routing, x.elements());
  if (!gathers()) routed = ops.leave_tensor_region(name, routed, false);
  if (model_.experts.shared_width == 0) return routed;
  return ops.add(name + ".add_shared", routed, shared(prefix, x));
}

}  // namespace spillway::models
