#include "models/network/moe_block.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "models/cost/token_exchange.h"

namespace spillway::models {
namespace {

// Of the host, for each further expert's product (assumed: a call of cuBLASLt from a loop in C++, 2 to 3 us).
constexpr Picos expert_launch_time{3'000'000};

}  // namespace

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
  Tensor rows = session.empty(name + ".permuted", x.type(), sent_by(x.elements()), TensorRole::activation);
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
Tensor MoeBlock::exchange(const std::string& name, const Tensor& rows, bool combines, std::int64_t elements) {
  if (expert_ranks() == 1) return rows;
  Communication& communication = *context_.communication;
  const Experts& experts = model_.experts;
  TokenRoute route{.chosen = experts.active,
                   .groups = experts.groups,
                   .chosen_groups = experts.chosen_groups,
                   .dispatcher = permutes_late() ? options_.dispatcher : ExpertDispatcher::nccl,
                   .combines = combines};
  const std::int64_t whole = std::max(elements, rows.elements()),
                     each = permutes_late() ? busiest((combines ? elements : rows.elements()) * experts.active)
                            : load_         ? std::max(whole, rows_.fullest * model_.hidden)
                                            : whole;
  const Bytes bytes(each * size_of(rows.type()));
  Tensor out = communication.exchange_tokens(name + ".exchanged", rows, route, bytes, elements, TensorRole::activation);
  route.combines = !combines;
  return context_.autograd.record(
      std::move(out), {rows}, false,
      [&communication, name, route, bytes, count = rows.elements()](const Tensor& gradient) {
        return std::vector<Tensor>{
            communication.exchange_tokens(name + ".grad", gradient, route, bytes, count, TensorRole::temporary)};
      });
}

std::int64_t MoeBlock::loaded(std::int64_t elements) const {
  const double share =
      load_ ? static_cast<double>(rows_.own) / static_cast<double>(mean_rows_) : options_.expert_imbalance;
  if (share == 1 || expert_ranks() == 1) return elements;
  const double rows = static_cast<double>(elements / model_.hidden) * share;
  return std::max<std::int64_t>(1, std::llround(rows)) * model_.hidden;
}

std::int64_t MoeBlock::busiest(std::int64_t elements) const {
  if (!load_) return loaded(elements);
  const double share = static_cast<double>(rows_.fullest) / static_cast<double>(mean_rows_);
  return std::llround(static_cast<double>(elements / model_.hidden) * share) * model_.hidden;
}

std::int64_t MoeBlock::sent_by(std::int64_t elements) const {
  return load_ ? rows_.sent * model_.hidden : elements * model_.experts.active;
}

std::int64_t MoeBlock::arriving(std::int64_t sent) const {
  return load_ && expert_ranks() > 1 ? rows_.own * model_.hidden : loaded(sent);
}

double MoeBlock::crowding() const {
  return load_ ? static_cast<double>(rows_.fullest) / static_cast<double>(rows_.own) : 1;
}

void MoeBlock::draw_rows(const Tensor& x) {
  if (!load_) return;
  const std::int64_t tokens = x.elements() / model_.hidden;
  rows_ = load_->rows(std::max<std::int64_t>(0, context_.session.layer()), pass_, tokens);
  mean_rows_ = tokens * model_.experts.active;
}

std::int64_t MoeBlock::copies_of(std::int64_t elements) const {
  const double ranks =
      distinct_choices(static_cast<double>(expert_ranks()), static_cast<double>(model_.experts.active));
  return std::llround(static_cast<double>(elements / model_.hidden) * ranks) * model_.hidden;
}

// Transformer Engine launches a product per expert from one operator, unless the GPU reads the shapes itself.
void MoeBlock::launch_each(std::int64_t experts) {
  EagerSession& session = context_.session;
  if (!options_.merged_experts || options_.fused_experts || session.is_captured() || experts < 2) return;
  session.host_work("launch_experts", expert_launch_time * (experts - 1), {}, {});
}

void MoeBlock::wait_for_counts(OpId counted) {
  if (options_.waits_for_counts) context_.session.host_wait({counted});
}

// Rows that came from several ranks, by local expert, or back in the order of the ranks.
Tensor MoeBlock::sort(const std::string& name, const Tensor& rows) {
  const std::int64_t sources = expert_ranks() * (gathers() ? context_.ops.tensor_ranks() : 1);
  if (sources == 1 || expert_ranks() == model_.experts.count || permutes_late()) return rows;
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
                        .is_cast_before = true,
                        .scaling = context_.ops.scaling(),
                        .accumulates = reads.back().id() == write.id() && write.type() == DataType::fp32,
                        .one_by_one = context_.ops.workspaces() != nullptr};
  launch_each(shape.batch);
  context_.session.kernel({.name = kernel, .reads = std::move(reads), .writes = {write}, .cost = cost});
}

// Narrow, or fp32 of adapters beside 16 bits.
bool MoeBlock::has_own_type(DataType type) const {
  return is_narrow(type) || (type == DataType::fp32 && options_.type != DataType::fp32);
}

// In place, each row its expert's; the gradient is the sum over the rows of an expert.
Tensor MoeBlock::add_expert_bias(const Tensor& rows, TrainedParameter& bias) {
  EagerSession& session = context_.session;
  session.kernel({.name = "add_bias_", .reads = {rows, bias.value}, .writes = {rows}});
  return context_.autograd.record(rows, {rows}, bias.trains, [this, &session, &bias](const Tensor& gradient) {
    if (!bias.trains) return std::vector<Tensor>{gradient};
    Tensor sum = session.empty(bias.shape.name + ".grad", gradient.type(), bias.shape.elements(), TensorRole::gradient);
    session.kernel({.name = "bias_gradient", .reads = {gradient}, .writes = {sum}});
    context_.ops.accumulate(bias, std::move(sum));
    return std::vector<Tensor>{gradient};
  });
}

// rows [t k, in] times the matrix [out, in] of each row's expert.
// `keeps_input`: as EagerOps::Linear's.
Tensor MoeBlock::grouped_linear(const std::string& name, const Tensor& rows, TrainedParameter& weight,
                                bool keeps_input) {
  const std::int64_t groups = weight.shape.experts, inputs = weight.shape.columns;
  const std::int64_t outputs = weight.shape.rows / groups, count = rows.elements() / inputs;
  EagerSession& session = context_.session;
  // Of the fullest rank.
  const std::int64_t timed = std::llround(static_cast<double>(count) * session.crowding()),
                     each = std::max<std::int64_t>(1, (timed + groups - 1) / groups),
                     flops = 2 * timed * inputs * outputs;
  EagerOps& ops = context_.ops;
  const bool in_fp8 = weight.in_fp8;
  EagerOps::Narrowed operand{.rows = rows, .columns = rows};
  if (in_fp8 && (keeps_input || options_.recipe == Fp8Recipe::rowwise))
    operand.rows = ops.narrow_rows(name + ".in", rows, TensorRole::temporary);
  else if (in_fp8)
    operand = ops.narrow(name + ".in", rows, TensorRole::activation, nullptr);
  if (!weight.trains) operand.columns = {};
  Tensor out = session.empty(name + ".out", rows.type(), count * outputs, TensorRole::activation);
  if (ops.workspaces() != nullptr) ops.workspaces()->use_grouped();
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
          grouped_product("grouped_gemm_dgrad",
                          {.m = each, .n = inputs, .k = outputs, .batch = groups, .layout = GemmLayout::nn}, flops,
                          {incoming.rows, in_fp8 ? now.narrow_weight(weight, true) : now.weight_operand(weight, type)},
                          back);
        }
        if (!weight.trains) return std::vector<Tensor>{std::move(back)};
        const GemmShape shape{.m = outputs, .n = inputs, .k = each, .batch = groups, .layout = GemmLayout::nt};
        context_.autograd.weight_work([this, name, shape, flops, kept, casts = in_fp8 && !is_narrow(kept.type()),
                                       columns = std::move(incoming.columns), &weight] {
          const Tensor input = casts ? context_.ops.narrow_columns(name + ".in.again", kept) : kept;
          if (options_.fused_accumulation) {
            grouped_product("grouped_gemm_wgrad_accumulate", shape, flops, {columns, input, weight.gradient},
                            weight.gradient);
            context_.autograd.accumulate(weight, {});
            if (context_.ops.workspaces() != nullptr) context_.ops.workspaces()->use_dummy(weight);
          } else {
            const DataType product = is_narrow(columns.type()) ? options_.type : columns.type();
            Tensor sum = context_.session.empty(weight.shape.name + ".grad", product, weight.shape.elements(),
                                                TensorRole::gradient);
            grouped_product("grouped_gemm_wgrad", shape, flops, {columns, input}, sum);
            context_.ops.accumulate(weight, std::move(sum));
          }
        });
        return std::vector<Tensor>{std::move(back)};
      });
  if (TrainedParameter* bias = bias_(name)) out = add_expert_bias(out, *bias);
  if (weight.adapter_a == nullptr) return out;
  const Tensor low = grouped_linear(name + ".lora_a", ops.adapter_input(name, rows, weight), *weight.adapter_a);
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
  const auto layer = [this](const std::string& part) {
    return EagerOps::Linear{part, &weight_(part), nullptr, options_.recomputes_norms};
  };
  const std::string name = prefix + "mlp.shared";
  Tensor inner;
  if (options_.merged_experts) {
    inner = ops.swiglu(name + ".swiglu", ops.column_linears({layer(name + ".gate_up")}, x)[0]);
  } else if (model_.gated()) {
    std::vector<Tensor> both = ops.column_linears({layer(name + ".gate"), layer(name + ".up")}, x);
    both[0] = ops.pointwise(name + ".gated", both[0], function());
    inner = ops.multiply(name + ".product", both[0], both[1]);
  } else {
    inner = ops.pointwise(name + ".activated", ops.column_linears({layer(name + ".up")}, x)[0], function());
  }
  Tensor out = ops.row_linear({name + ".down", &weight_(name + ".down")}, inner);
  inner = {};
  if (!model_.experts.shared_gate) return out;
  const Tensor gate = ops.linear({prefix + "mlp.shared_gate", &weight_(prefix + "mlp.shared_gate")}, x);
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

// The gate's logits in fp32 and what they become; probabilities and the map of tokens go on as dense matrices.
MoeBlock::EngineRouting MoeBlock::engine_route(const std::string& name, const Tensor& x) {
  EagerSession& session = context_.session;
  const std::int64_t tokens = x.elements() / model_.hidden, experts = model_.experts.count, cells = tokens * experts,
                     chosen = tokens * model_.experts.active;
  const auto make = [&](const char* part, DataType type, std::int64_t elements, TensorRole role) {
    return session.empty(name + part, type, elements, role);
  };
  const CapturedScope scope(session, options_.captures_router);
  const Tensor logits = context_.ops.linear({name, &weight_(name), bias_(name)}, x);
  const Tensor softmax = make(".softmax", DataType::fp32, cells, TensorRole::activation);
  const Tensor narrow = make(".scores", logits.type(), cells, TensorRole::temporary);
  const Tensor best = make(".best", logits.type(), chosen, TensorRole::temporary);
  const Tensor indices = make(".indices", DataType::int64, chosen, TensorRole::activation);
  session.kernel({.name = "router_softmax_topk", .reads = {logits}, .writes = {softmax, narrow, best, indices}});
  const Tensor scattered = make(".scattered", logits.type(), cells, TensorRole::temporary);
  const Tensor map = make(".map", DataType::byte, cells, TensorRole::activation);
  Tensor probabilities = make(".probabilities", logits.type(), cells, TensorRole::activation);
  session.kernel({.name = "router_map", .reads = {best, indices}, .writes = {scattered, map, probabilities}});
  const Tensor auxiliary = make(".auxiliary", DataType::fp32, cells, TensorRole::activation);
  session.kernel({.name = "router_auxiliary_loss", .reads = {logits, map}, .writes = {auxiliary}});
  const DataType type = logits.type();
  probabilities = context_.autograd.record(
      std::move(probabilities), {logits}, false,
      [&session, name, type, softmax, indices, map, auxiliary](const Tensor& gradient) {
        Tensor result = session.empty(name + ".logits.grad", type, softmax.elements(), TensorRole::temporary);
        session.kernel({.name = "router_softmax_topk_backward",
                        .reads = {gradient, softmax, indices, map, auxiliary},
                        .writes = {result}});
        return std::vector<Tensor>{std::move(result)};
      });
  const Tensor rows = make(".row_ids", DataType::byte, 4 * tokens * (2 * experts + 1), TensorRole::activation);
  const OpId counted = session.kernel({.name = "row_id_map", .reads = {map}, .writes = {rows}});
  wait_for_counts(counted);
  return {.probabilities = std::move(probabilities), .rows = rows};
}

// Rows of tokens in the order of their experts; each with its probability, which takes part in the experts' activation.
Tensor MoeBlock::engine_permute(const std::string& name, const Tensor& x, const EngineRouting& routing,
                                std::int64_t rows, Tensor& probabilities) {
  EagerSession& session = context_.session;
  const std::int64_t elements = x.elements(), cells = routing.probabilities.elements();
  Tensor out = session.empty(name + ".permuted", x.type(), rows * model_.hidden, TensorRole::activation);
  probabilities = session.empty(name + ".probabilities", x.type(), rows, TensorRole::activation);
  session.kernel(
      {.name = "permute_tokens", .reads = {x, routing.rows, routing.probabilities}, .writes = {out, probabilities}});
  // The activation's node puts the gradient of the probabilities here.
  const auto slot = std::make_shared<Tensor>();
  slots_[name] = slot;
  return context_.autograd.record(
      std::move(out), {x, routing.probabilities}, false,
      [&session, name, elements, cells, rows_of = routing.rows, slot](const Tensor& gradient) {
        Tensor tokens = session.empty(name + ".in.grad", gradient.type(), elements, TensorRole::temporary);
        Tensor spread = session.empty(name + ".probabilities.grad", gradient.type(), cells, TensorRole::temporary);
        std::vector<Tensor> reads = {gradient, rows_of};
        if (*slot) reads.push_back(*slot);
        session.kernel({.name = "permute_tokens_backward", .reads = std::move(reads), .writes = {tokens, spread}});
        *slot = {};
        return std::vector<Tensor>{std::move(tokens), std::move(spread)};
      });
}

// silu(gate) * up * probability of the row; saves the first two and the last.
Tensor MoeBlock::weighted_swiglu(const std::string& name, const Tensor& x, const Tensor& probabilities) {
  EagerSession& session = context_.session;
  Tensor out = session.empty(name + ".weighted", x.type(), x.elements() / 2, TensorRole::activation);
  session.kernel({.name = "weighted_swiglu", .reads = {x, probabilities}, .writes = {out}});
  return context_.autograd.record(
      std::move(out), {x}, false, [&session, name, x, probabilities, slot = slots_[name]](const Tensor& gradient) {
        Tensor back = session.empty(name + ".weighted.in.grad", x.type(), x.elements(), TensorRole::temporary);
        *slot = session.empty(name + ".row_probabilities.grad", probabilities.type(), probabilities.elements(),
                              TensorRole::temporary);
        session.kernel(
            {.name = "weighted_swiglu_backward", .reads = {gradient, x, probabilities}, .writes = {back, *slot}});
        return std::vector<Tensor>{std::move(back)};
      });
}

// The activation goes when the product behind it has run, and is made again before that runs backwards.
Tensor MoeBlock::without_activation(const std::string& name, const Tensor& inner, const Tensor& weights,
                                    const Tensor& result) {
  const Tensor gates = std::exchange(gates_, {});
  if (!options_.recomputes_expert_activation || !context_.autograd.is_recording()) return result;
  EagerSession& session = context_.session;
  session.discard(inner);
  return context_.autograd.record(
      result, {result}, false, [&session, name, inner, gates, weights](const Tensor& gradient) {
        const Phase outer = session.phase();
        session.set_phase(Phase::recompute);
        session.restore(inner, name + ".weighted");
        session.kernel({.name = "weighted_swiglu", .reads = {gates, weights}, .writes = {inner}});
        session.set_phase(outer);
        return std::vector<Tensor>{gradient};
      });
}

Tensor MoeBlock::engine_unpermute(const std::string& name, const Tensor& rows, const EngineRouting& routing,
                                  std::int64_t elements) {
  EagerSession& session = context_.session;
  Tensor out = session.empty(name + ".out", rows.type(), elements, TensorRole::activation);
  session.kernel({.name = "unpermute_tokens", .reads = {rows, routing.rows}, .writes = {out}});
  return context_.autograd.record(
      std::move(out), {rows}, false,
      [&session, name, count = rows.elements(), rows_of = routing.rows](const Tensor& gradient) {
        Tensor back = session.empty(name + ".rows.grad", gradient.type(), count, TensorRole::temporary);
        session.kernel({.name = "unpermute_tokens_backward", .reads = {gradient, rows_of}, .writes = {back}});
        return std::vector<Tensor>{std::move(back)};
      });
}

// The rows of the local experts to theirs.
Tensor MoeBlock::engine_experts(const std::string& name, Tensor rows, const Tensor& weights) {
  gates_ = grouped_linear(name + ".gate_up", rows);
  rows = {};
  const FusedScope scope(context_.session, options_.fused_experts);
  const Tensor inner = weighted_swiglu(name, gates_, weights);
  const bool keeps_input = options_.recomputes_expert_activation;
  return without_activation(name, inner, weights,
                            grouped_linear(name + ".down", inner, weight_(name + ".down"), keeps_input));
}

// Results to the ranks of their tokens, and each token's sum.
Tensor MoeBlock::engine_combine(const std::string& name, const Tensor& results, const EngineRouting& routing,
                                std::int64_t elements) {
  if (!permutes_late()) {
    const Tensor back = exchange(name + ".down", results, true, sent_by(elements));
    return engine_unpermute(name, back, routing, elements);
  }
  std::optional<CrowdedScope> crowd(std::in_place, context_.session, crowding());
  const Tensor sums = engine_unpermute(name + ".down", results, routing, loaded(copies_of(elements)));
  crowd.reset();
  return exchange(name, sums, true, elements);
}

// Names keep the rows as permuted, as they came and as they go back until the block's result is there.
Tensor MoeBlock::engine_run(const std::string& prefix, const Tensor& x) {
  EagerOps& ops = context_.ops;
  const std::string name = prefix + "mlp.experts";
  const EngineRouting routing = engine_route(prefix + "mlp.router", x);
  Tensor probabilities;
  Tensor entered = gathers() || is_apart() ? x : ops.enter_tensor_region(name, x, TensorRole::activation);
  const std::int64_t elements = entered.elements(), own = sent_by(elements),
                     rows = (permutes_late() ? arriving(own) : own) / model_.hidden;
  Tensor sent = permutes_late() ? exchange(name, entered, false, loaded(copies_of(elements))) : Tensor();
  std::optional<CrowdedScope> crowd;
  if (permutes_late()) crowd.emplace(context_.session, crowding());
  const Tensor permuted = engine_permute(name, sent ? sent : entered, routing, rows, probabilities);
  crowd.reset();
  entered = sent = {};
  const Tensor arrived = permutes_late() ? permuted : exchange(name, permuted, false, arriving(own));
  const Tensor with =
      expert_ranks() == 1 || permutes_late()
          ? probabilities
          : context_.communication->all_to_all(CommGroup::expert, name + ".with", probabilities, TensorRole::temporary);
  Tensor shared_result;
  if (model_.experts.shared_width > 0) {
    const auto run = [this, prefix](const std::vector<Tensor>& again) { return shared(prefix, again.front()); };
    shared_result = options_.recomputes_shared_experts ? context_.autograd.checkpoint({x}, run, true) : run({x});
  }
  const Tensor whole = gathers() ? ops.enter_tensor_region(name, arrived, TensorRole::activation) : arrived;
  crowd.emplace(context_.session, crowding());
  Tensor sorted = sort(name, whole);
  Tensor weights = with;
  if (!permutes_late()) {
    weights = context_.session.empty(name + ".row_probabilities", x.type(), sorted.elements() / model_.hidden,
                                     TensorRole::activation);
    context_.session.kernel({.name = "sort_chunks", .reads = {with}, .writes = {weights}});
  }
  Tensor results = engine_experts(name, std::exchange(sorted, {}), weights);
  const Tensor unsorted = sort(name + ".down", results);
  crowd.reset();
  results = {};
  const Tensor reduced = gathers() ? ops.leave_tensor_region(name + ".down", unsorted, true) : unsorted;
  Tensor routed = engine_combine(name, reduced, routing, elements);
  if (!gathers() && !is_apart()) routed = ops.leave_tensor_region(name, routed, false);
  return shared_result ? ops.add(name + ".add_shared", routed, shared_result) : routed;
}

Tensor MoeBlock::run(const std::string& prefix, const Tensor& x) {
  draw_rows(x);
  if (options_.merged_experts) return engine_run(prefix, x);
  if (loops()) return loop_run(prefix, x);
  EagerOps& ops = context_.ops;
  const std::string name = prefix + "mlp.experts";
  const std::string router = prefix + "mlp.router";
  Routing routing =
      route(router, ops.linear({router, &weight_(router), bias_(router)}, x), x.elements() / model_.hidden);
  Tensor entered = x;
  if (!gathers() && !is_apart()) {
    entered = ops.enter_tensor_region(name, x, TensorRole::activation);
    routing.weights = ops.enter_tensor_region(router, routing.weights, TensorRole::activation);
  }
  Tensor rows = permute(name, entered, routing);
  entered = {};
  const std::int64_t sent = rows.elements();
  rows = exchange(name, rows, false, arriving(sent));
  if (gathers()) rows = ops.enter_tensor_region(name, rows, TensorRole::activation);
  std::optional<CrowdedScope> crowd(std::in_place, context_.session, crowding());
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
  crowd.reset();
  if (gathers()) results = ops.leave_tensor_region(name + ".down", results, true);
  results = exchange(name + ".down", results, true, sent);
  Tensor routed = unpermute(name, results, routing, x.elements());
  if (!gathers() && !is_apart()) routed = ops.leave_tensor_region(name, routed, false);
  if (model_.experts.shared_width == 0) return routed;
  return ops.add(name + ".add_shared", routed, shared(prefix, x));
}

}  // namespace spillway::models
