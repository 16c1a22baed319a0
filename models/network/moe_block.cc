#include "models/network/moe_block.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "models/cost/token_exchange.h"
#include "models/network/eager_fp8.h"
#include "models/network/eager_fused.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_lora.h"
#include "models/network/eager_ops.h"

namespace spillway::models {
namespace {

// What Megatron-core and Transformer Engine launch for each step of a block, counted from their code
// (docs/internals/operator-times.md, "A block of experts").
constexpr RowPass fused_scores{{.calls = 0.5}, 1}, fused_map{{.calls = 0}, 1};
constexpr RowPass plain_scores{{.calls = 0, .operators = 6}, 5}, plain_map{{.calls = 0, .operators = 4}, 4};
constexpr std::int64_t group_launches = 8;  // more, to choose groups of experts first
constexpr RowPass fused_loss{{.calls = 1.5, .operators = 8}, 8}, plain_loss{{.calls = 1.5, .operators = 8}, 13};
constexpr RowPass fused_scores_backward{{.calls = 1, .operators = 3}, 5};
constexpr RowPass plain_scores_backward{{.calls = 1, .operators = 8}, 14};
constexpr RowPass counts{{.calls = 1.2, .operators = 12}, 12};      // and their gather, and copies to the host
constexpr RowPass gathered_map{{.calls = 1.5, .operators = 6}, 4};  // Hybrid-EP
constexpr RowPass deep_layout{{.calls = 0.7, .operators = 3}, 3};   // DeepEP
constexpr RowPass deep_map{{.calls = 0.3, .operators = 14}, 14};    // indices that arrived, to a map
constexpr double map_bytes = 13;                                    // of a cell of that map
constexpr RowPass permutation{{.calls = 1}, 5}, permutation_backward{{.calls = 1}, 2};
constexpr RowPass deep_permutation{{.calls = 1}, 4}, hybrid_permutation{{.calls = 0, .operators = 1}, 1};
constexpr RowPass one_pass{{.calls = 1}, 1}, two_passes{{.calls = 1}, 2};
constexpr RowPass padding{{.calls = 2}, 2};                     // of rows and of probabilities
constexpr double plain_permutation = 6, chunk_operators = 0.3;  // operators more: a permutation, a chunk that is sorted
constexpr HostWork nccl_exchange{.calls = 1.2}, hybrid_exchange{.calls = 0.5};
constexpr double further_product = 0.3;  // calls: a weight's gradient behind the input's
constexpr RowPass activation{{.calls = 1, .operators = 1}, 1}, activation_backward{{.calls = 1, .operators = 1}, 2};
// Gates that are clamped: passes of plain operators over gate and up, in bytes of both.
constexpr RowPass clamped{{.calls = 1, .operators = 4}, 4}, clamped_backward{{.calls = 1, .operators = 7}, 7};
constexpr double clamped_passes = 5.5, clamped_backward_passes = 7.5;
// A bias added to each expert's rows, times their probabilities: passes over rows, with probabilities in fp32 and in
// 16 bits; operators of an expert.
constexpr double wide_bias_passes = 14, bias_passes = 6, wide_bias_backward_passes = 20, bias_backward_passes = 8;
constexpr std::int64_t bias_operators = 2, bias_backward_operators = 6;
// Flops a clock and multiprocessor of an expert's weight gradient that sums its bias's gradient besides. Transformer
// Engine has it as the product's epilogue in 16 bits (CUBLASLT_EPILOGUE_BGRADB), for which cuBLASLt runs older kernels
// (NVIDIA/CUDALibrarySamples issue 90: some 630 on A100). Deviation: the sum is another kernel here. Dense layers have
// the epilogue in their queries' product alone; nothing measured says that it is slow there.
constexpr double bias_gradient_flops = 850;
// Of an operand in mxfp8: its scales, read and written in the products' order.
constexpr double scale_bytes = 1.0 / 16;
constexpr std::int64_t fused_rows = 256;  // of an expert come in multiples of this, for fused products

OpId run_pass(EagerSession& session, Kernel kernel, const RowPass& pass) {
  kernel.cost.access = MemoryAccess::rows;
  kernel.cost.launches = pass.launches;
  kernel.host = pass.host;
  return session.kernel(kernel);
}

Bytes times(double factor, Bytes bytes) { return Bytes(std::llround(factor * static_cast<double>(bytes.count()))); }

RowPass with_operators(RowPass pass, double operators) {
  pass.host.operators += operators;
  pass.launches += std::llround(operators);
  return pass;
}

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
                   .dispatcher = permutes_late() ? setup_.expert_dispatcher : ExpertDispatcher::nccl,
                   .combines = combines};
  const std::int64_t whole = std::max(elements, rows.elements()),
                     each = permutes_late() ? busiest((combines ? elements : rows.elements()) * experts.active)
                            : load_         ? std::max(whole, rows_.fullest * row_width())
                                            : whole;
  const Bytes bytes(each * size_of(rows.type()));
  const bool is_hybrid = route.dispatcher == ExpertDispatcher::hybridep;
  const HostWork call = !options_.merged_experts ? HostWork{} : is_hybrid ? hybrid_exchange : nccl_exchange;
  const HostWork call_back = is_hybrid && combines ? nccl_exchange : call;
  Tensor out =
      communication.exchange_tokens(name + ".exchanged", rows, route, bytes, elements, TensorRole::activation, call);
  route.combines = !combines;
  return context_.autograd.record(
      std::move(out), {rows}, false,
      [&communication, name, route, bytes, call_back, count = rows.elements()](const Tensor& gradient) {
        return std::vector<Tensor>{communication.exchange_tokens(name + ".grad", gradient, route, bytes, count,
                                                                 TensorRole::temporary, call_back)};
      });
}

std::int64_t MoeBlock::loaded(std::int64_t elements) const {
  const double share =
      load_ ? static_cast<double>(rows_.own) / static_cast<double>(mean_rows_) : setup_.expert_imbalance;
  if (share == 1 || expert_ranks() == 1) return elements;
  const std::int64_t each = elements / row_width();
  const double rows = static_cast<double>(each) * share;
  return std::max<std::int64_t>(1, std::llround(rows)) * row_width();
}

std::int64_t MoeBlock::busiest(std::int64_t elements) const {
  if (!load_) return loaded(elements);
  const double share = static_cast<double>(rows_.fullest) / static_cast<double>(mean_rows_);
  const std::int64_t rows = elements / row_width();
  return std::llround(static_cast<double>(rows) * share) * row_width();
}

std::int64_t MoeBlock::sent_by(std::int64_t elements) const {
  return load_ ? rows_.sent * row_width() : elements * model_.experts.active;
}

std::int64_t MoeBlock::arriving(std::int64_t sent) const {
  return load_ && expert_ranks() > 1 ? rows_.own * row_width() : loaded(sent);
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
  const std::int64_t rows = elements / row_width();
  return std::llround(static_cast<double>(rows) * ranks) * row_width();
}

// Transformer Engine launches a kernel per expert from one operator, unless the GPU reads the shapes itself.
HostWork MoeBlock::each_expert(double calls, std::int64_t experts) const {
  HostWork host{.calls = calls};
  if (options_.merged_experts && !setup_.fused_experts) host.experts = experts;
  return host;
}

// Casts of experts' rows: one by one, but with delayed scaling, which has all scales beforehand.
const RowPass* MoeBlock::quantising(std::int64_t experts) {
  if (!options_.merged_experts) return nullptr;
  const bool is_one = setup_.fused_experts || setup_.fp8_recipe == Fp8Recipe::delayed;
  cast_ = is_one ? one_pass : RowPass{{.calls = 0, .experts = experts}, experts};
  return &cast_;
}

void MoeBlock::wait_for_counts(OpId counted) {
  if (options_.waits_for_counts) context_.session.host_wait({counted});
}

// Rows to rows, by one operator each way.
Tensor MoeBlock::pass_rows(const std::string& name, std::string_view kernel, const Tensor& rows, const RowPass& there,
                           const RowPass& back) {
  EagerSession& session = context_.session;
  Tensor out = session.empty(name, rows.type(), rows.elements(), TensorRole::activation);
  run_pass(session, {.name = kernel, .reads = {rows}, .writes = {out}}, there);
  return context_.autograd.record(
      std::move(out), {rows}, false, [&session, name, kernel = std::string(kernel), back](const Tensor& gradient) {
        Tensor turned = session.empty(name + ".in.grad", gradient.type(), gradient.elements(), TensorRole::temporary);
        run_pass(session, {.name = kernel, .reads = {gradient}, .writes = {turned}}, back);
        return std::vector<Tensor>{std::move(turned)};
      });
}

// Products in fp8 want rows in multiples of 16 or 32; Hybrid-EP's permutation sees to that.
bool MoeBlock::pads(const std::string& name) const {
  return context_.weight(first_of(name)).in_fp8 && setup_.expert_dispatcher != ExpertDispatcher::hybridep;
}

// Rows that came from several ranks, by local expert, or back in the order of the ranks.
Tensor MoeBlock::sort(const std::string& name, const Tensor& rows) {
  const std::int64_t sources = expert_ranks() * (gathers() ? context_.rec.tensor_ranks() : 1);
  if (sources == 1 || expert_ranks() == model_.experts.count || permutes_late()) return rows;
  if (options_.merged_experts) {
    const std::int64_t local = model_.experts.count / expert_ranks();
    const double operators = setup_.permute_fusion ? 0 : chunk_operators * static_cast<double>(sources * local);
    return pass_rows(name + ".sorted", "sort_chunks", rows, with_operators(two_passes, operators),
                     with_operators(one_pass, operators));
  }
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

bool MoeBlock::sums_bias(const std::string& name, DataType operand) const {
  const TrainedParameter* bias = context_.bias(name);
  return context_.rec.setup.traits().core && bias != nullptr && bias->trains && size_of(operand) == 2;
}

void MoeBlock::grouped_product(std::string_view kernel, const GemmShape& shape, std::int64_t flops,
                               std::vector<Tensor> reads, const Tensor& write, const HostWork& host,
                               double flops_per_clock) {
  const KernelCost cost{.kind = KernelClass::gemm,
                        .type = has_own_type(reads[0].type()) ? reads[0].type() : options_.product,
                        .gemm = shape,
                        .flops = Flops(flops),
                        .launches = std::max<std::int64_t>(1, host.experts),
                        .flops_per_clock = flops_per_clock,
                        .is_cast_before = true,
                        .scaling = eager::scaling(context_.rec),
                        .accumulates = reads.back().id() == write.id() && write.type() == DataType::fp32,
                        .one_by_one = context_.rec.workspaces != nullptr && !setup_.fused_experts};
  if (reads[0].type() == DataType::fp8 && setup_.fp8_recipe == Fp8Recipe::mxfp8 && !setup_.fused_experts)
    run_pass(context_.session,
             {.name = "swizzle_scales",
              .reads = {reads[0], reads[1]},
              .bytes = times(scale_bytes, reads[0].bytes() + reads[1].bytes())},
             {{.calls = 0}, 2});
  context_.session.kernel({.name = kernel, .reads = std::move(reads), .writes = {write}, .cost = cost, .host = host});
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
    eager::accumulate(context_.rec, bias, std::move(sum));
    return std::vector<Tensor>{gradient};
  });
}

// Of Transformer Engine's products: an epilogue of the first, and of its weight's gradient. Behind the second it is
// added expert by expert, times the probability of each row (megatron/core/transformer/moe/experts.py, _apply_bias),
// unless one kernel does it all.
Tensor MoeBlock::add_engine_bias(const Tensor& rows, TrainedParameter& bias, bool is_last) {
  EagerSession& session = context_.session;
  const bool is_added = is_last && !setup_.fused_experts;
  const bool is_wide = permutes_late() || model_.experts.selection_bias;
  const std::int64_t experts = bias.shape.experts;
  const auto pass = [experts](std::int64_t each) {
    return RowPass{{.calls = 0, .operators = static_cast<double>(each * experts + 2)}, each * experts + 2};
  };
  if (is_added)
    run_pass(session,
             {.name = "add_weighted_bias",
              .reads = {rows, bias.value},
              .writes = {rows},
              .bytes = times(is_wide ? wide_bias_passes : bias_passes, rows.bytes())},
             pass(bias_operators));
  return context_.autograd.record(
      rows, {rows}, bias.trains, [this, &session, &bias, pass, is_added, is_wide](const Tensor& gradient) {
        Tensor sum;
        if (bias.trains)
          sum = session.empty(bias.shape.name + ".grad", gradient.type(), bias.shape.elements(), TensorRole::gradient);
        if (is_added)
          run_pass(session,
                   {.name = "add_weighted_bias_backward",
                    .reads = {gradient},
                    .writes = sum ? std::vector<Tensor>{sum} : std::vector<Tensor>{},
                    .bytes = times(is_wide ? wide_bias_backward_passes : bias_backward_passes, gradient.bytes())},
                   pass(bias_backward_operators));
        if (sum) eager::accumulate(context_.rec, bias, std::move(sum));
        return std::vector<Tensor>{gradient};
      });
}

// rows [t k, in] times the matrix [out, in] of each row's expert.
// `keeps_input`: as eager::Linear's. `is_last`: of a block's two; the first one's gradient comes out of the second's
// product as it is wanted where these are fused.
Tensor MoeBlock::grouped_linear(const std::string& name, const Tensor& rows, TrainedParameter& weight, bool keeps_input,
                                bool is_last) {
  const std::int64_t groups = weight.shape.experts, inputs = weight.shape.columns;
  const std::int64_t outputs = weight.shape.rows / groups, count = rows.elements() / inputs;
  EagerSession& session = context_.session;
  // Of the fullest rank.
  const std::int64_t timed = std::llround(static_cast<double>(count) * session.crowding()),
                     even = std::max<std::int64_t>(1, (timed + groups - 1) / groups),
                     each = setup_.fused_experts ? (even + fused_rows - 1) / fused_rows * fused_rows : even,
                     flops = 2 * timed * inputs * outputs;
  EagerRecorder& rec = context_.rec;
  const bool in_fp8 = weight.in_fp8;
  eager::Narrowed operand{.rows = rows, .columns = rows};
  std::optional<RowPassScope> cast(std::in_place, session, quantising(groups));
  if (in_fp8 && (keeps_input || setup_.fp8_recipe == Fp8Recipe::rowwise))
    operand.rows = eager::narrow_rows(rec, name + ".in", rows, TensorRole::temporary);
  else if (in_fp8)
    operand = eager::narrow(rec, name + ".in", rows, TensorRole::activation, nullptr);
  cast.reset();
  if (!weight.trains) operand.columns = {};
  Tensor out = session.empty(name + ".out", rows.type(), count * outputs, TensorRole::activation);
  if (rec.workspaces != nullptr) rec.workspaces->use_grouped();
  grouped_product("grouped_gemm", {.m = each, .n = outputs, .k = inputs, .batch = groups}, flops,
                  {operand.rows,
                   in_fp8 ? eager::narrow_weight(rec, weight, false) : eager::weight_operand(rec, weight, rows.type())},
                  out, each_expert(1, groups));
  operand.rows = {};
  out = context_.autograd.record(
      std::move(out), {rows}, weight.trains,
      [this, name, kept = operand.columns, count, each, groups, inputs, outputs, flops, in_fp8, is_last,
       is_wanted = rows.node() != 0, &weight](const Tensor& gradient) {
        EagerSession& session_now = context_.session;
        EagerRecorder& now = context_.rec;
        eager::Narrowed incoming{.rows = gradient, .columns = gradient};
        if (in_fp8) {
          const RowPassScope casting(session_now, quantising(groups));
          const FusedScope fused(session_now, setup_.fused_experts && !is_last);
          incoming = eager::narrow(now, name + ".out.grad", gradient, TensorRole::temporary, nullptr);
        }
        const DataType type = gradient.type();
        Tensor back;
        if (is_wanted) {
          back = session_now.empty(name + ".in.grad", type, count * inputs, TensorRole::temporary);
          grouped_product("grouped_gemm_dgrad",
                          {.m = each, .n = inputs, .k = outputs, .batch = groups, .layout = GemmLayout::nn}, flops,
                          {incoming.rows,
                           in_fp8 ? eager::narrow_weight(now, weight, true) : eager::weight_operand(now, weight, type)},
                          back, each_expert(1, groups));
        }
        if (!weight.trains) return std::vector<Tensor>{std::move(back)};
        const GemmShape shape{.m = outputs, .n = inputs, .k = each, .batch = groups, .layout = GemmLayout::nt};
        context_.autograd.weight_work([this, name, shape, flops, groups, kept, is_last,
                                       casts = in_fp8 && !is_narrow(kept.type()), columns = std::move(incoming.columns),
                                       &weight] {
          Tensor input = kept;
          if (casts) {
            const RowPassScope casting(context_.session, quantising(groups));
            input = eager::narrow_columns(context_.rec, name + ".in.again", kept);
          }
          HostWork host = options_.merged_experts ? each_expert(further_product, groups) : HostWork{};
          if (options_.merged_experts) host.operators = static_cast<double>(groups);  // hooks of the reducer
          const double rate =
              options_.merged_experts && !is_last && sums_bias(name, input.type()) ? bias_gradient_flops : 0;
          if (options_.fused_accumulation) {
            grouped_product("grouped_gemm_wgrad_accumulate", shape, flops, {columns, input, weight.gradient},
                            weight.gradient, host, rate);
            context_.autograd.accumulate(weight, {});
            if (context_.rec.workspaces != nullptr) context_.rec.workspaces->use_dummy(weight);
          } else {
            const DataType product = is_narrow(columns.type()) ? options_.type : columns.type();
            Tensor sum = context_.session.empty(weight.shape.name + ".grad", product, weight.shape.elements(),
                                                TensorRole::gradient);
            grouped_product("grouped_gemm_wgrad", shape, flops, {columns, input}, sum, host, rate);
            eager::accumulate(context_.rec, weight, std::move(sum));
          }
        });
        return std::vector<Tensor>{std::move(back)};
      });
  if (TrainedParameter* bias = context_.bias(name))
    out = options_.merged_experts ? add_engine_bias(out, *bias, is_last) : add_expert_bias(out, *bias);
  if (weight.adapter_a == nullptr) return out;
  const Tensor low = grouped_linear(name + ".lora_a", eager::adapter_input(rec, name, rows, weight), *weight.adapter_a);
  return eager::add_adapter(rec, name, out, grouped_linear(name + ".lora_b", low, *weight.adapter_b));
}

eager::Pointwise MoeBlock::function() const {
  switch (model_.activation) {
    case Activation::relu:
      return eager::Pointwise::relu;
    case Activation::silu_gated:
      return eager::Pointwise::silu;
    case Activation::relu_squared:
      return eager::Pointwise::relu_squared;
    case Activation::xielu:
    case Activation::gelu:
    case Activation::gelu_gated:
      return eager::Pointwise::gelu;
  }
  return eager::Pointwise::gelu;
}

Tensor MoeBlock::shared(const std::string& prefix, const Tensor& x) {
  EagerRecorder& rec = context_.rec;
  const auto layer = [this](const std::string& part) {
    return eager::Linear{part, &context_.weight(part), nullptr, setup_.recomputes_module("layernorm")};
  };
  const std::string name = prefix + "mlp.shared";
  Tensor inner;
  if (options_.merged_experts && model_.gated()) {
    inner = eager::swiglu(rec, name + ".swiglu", eager::column_linears(rec, {layer(name + ".gate_up")}, x)[0]);
  } else if (model_.gated()) {
    std::vector<Tensor> both = eager::column_linears(rec, {layer(name + ".gate"), layer(name + ".up")}, x);
    both[0] = eager::pointwise(rec, name + ".gated", both[0], function());
    inner = eager::multiply(rec, name + ".product", both[0], both[1]);
  } else {
    inner =
        eager::pointwise(rec, name + ".activated", eager::column_linears(rec, {layer(name + ".up")}, x)[0], function());
  }
  Tensor out = eager::row_linear(rec, {name + ".down", &context_.weight(name + ".down")}, inner);
  inner = {};
  if (!model_.experts.shared_gate) return out;
  const Tensor gate = eager::linear(rec, {prefix + "mlp.shared_gate", &context_.weight(prefix + "mlp.shared_gate")}, x);
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
  const bool fused = setup_.router_fusion;
  const auto grouped = [this](RowPass pass) {
    return model_.experts.groups > 0 ? with_operators(pass, static_cast<double>(group_launches)) : pass;
  };
  std::optional<CapturedScope> scope(std::in_place, session, setup_.captures("moe_router"));
  const Tensor logits = eager::linear(context_.rec, {name, &context_.weight(name), context_.bias(name)}, x);
  const Tensor softmax = make(".softmax", DataType::fp32, cells, TensorRole::activation);
  const Tensor narrow = make(".scores", logits.type(), cells, TensorRole::temporary);
  const Tensor best = make(".best", logits.type(), chosen, TensorRole::temporary);
  const Tensor indices = make(".indices", DataType::int64, chosen, TensorRole::activation);
  run_pass(session, {.name = "router_softmax_topk", .reads = {logits}, .writes = {softmax, narrow, best, indices}},
           fused ? fused_scores : grouped(plain_scores));
  const Tensor scattered = make(".scattered", logits.type(), cells, TensorRole::temporary);
  const Tensor map = make(".map", DataType::byte, cells, TensorRole::activation);
  Tensor probabilities = make(".probabilities", logits.type(), cells, TensorRole::activation);
  run_pass(session, {.name = "router_map", .reads = {best, indices}, .writes = {scattered, map, probabilities}},
           fused ? fused_map : plain_map);
  const Tensor auxiliary = make(".auxiliary", DataType::fp32, cells, TensorRole::activation);
  run_pass(session, {.name = "router_auxiliary_loss", .reads = {logits, map}, .writes = {auxiliary}},
           fused ? fused_loss : plain_loss);
  const DataType type = logits.type();
  probabilities = context_.autograd.record(
      std::move(probabilities), {logits}, false,
      [&session, name, type, softmax, indices, map, auxiliary, fused](const Tensor& gradient) {
        Tensor result = session.empty(name + ".logits.grad", type, softmax.elements(), TensorRole::temporary);
        run_pass(session,
                 {.name = "router_softmax_topk_backward",
                  .reads = {gradient, softmax, indices, map, auxiliary},
                  .writes = {result}},
                 fused ? fused_scores_backward : plain_scores_backward);
        return std::vector<Tensor>{std::move(result)};
      });
  const Tensor rows = make(".row_ids", DataType::byte, 4 * tokens * (2 * experts + 1), TensorRole::activation);
  scope.emplace(session, captures_permutation());
  const bool exchanges = permutes_late(), is_hybrid = setup_.expert_dispatcher == ExpertDispatcher::hybridep;
  const OpId counted = run_pass(session,
                                {.name = "row_id_map",
                                 .reads = {map},
                                 .writes = {rows},
                                 .bytes = Bytes(exchanges && is_hybrid ? 2 * cells * expert_ranks() : 2 * cells)},
                                !exchanges  ? counts
                                : is_hybrid ? gathered_map
                                            : deep_layout);
  if (exchanges) wait_for_counts(counted);
  return {.probabilities = std::move(probabilities), .rows = rows, .counted = counted};
}

// Rows of tokens in the order of their experts; each with its probability, which takes part in the experts' activation.
Tensor MoeBlock::engine_permute(const std::string& name, const Tensor& x, const EngineRouting& routing,
                                std::int64_t rows, Tensor& probabilities) {
  EagerSession& session = context_.session;
  const std::int64_t elements = x.elements(), cells = routing.probabilities.elements();
  Tensor out = session.empty(name + ".permuted", x.type(), rows * row_width(), TensorRole::activation);
  probabilities = session.empty(name + ".probabilities", x.type(), rows, TensorRole::activation);
  const bool is_hybrid = setup_.expert_dispatcher == ExpertDispatcher::hybridep;
  const double operators = setup_.permute_fusion || permutes_late() ? 0 : plain_permutation;
  const CapturedScope scope(session, captures_permutation());
  const OpId permuted = run_pass(
      session,
      {.name = "permute_tokens", .reads = {x, routing.rows, routing.probabilities}, .writes = {out, probabilities}},
      !permutes_late() ? with_operators(permutation, operators)
      : is_hybrid      ? hybrid_permutation
                       : deep_permutation);
  // Copies to the host go behind what a graph has.
  if (!permutes_late()) wait_for_counts(captures_permutation() ? permuted : routing.counted);
  // The activation's node puts the gradient of the probabilities here.
  const auto slot = std::make_shared<Tensor>();
  slots_[name] = slot;
  return context_.autograd.record(
      std::move(out), {x, routing.probabilities}, false,
      [&session, name, elements, cells, rows_of = routing.rows, slot, operators](const Tensor& gradient) {
        Tensor tokens = session.empty(name + ".in.grad", gradient.type(), elements, TensorRole::temporary);
        Tensor spread = session.empty(name + ".probabilities.grad", gradient.type(), cells, TensorRole::temporary);
        std::vector<Tensor> reads = {gradient, rows_of};
        if (*slot) reads.push_back(*slot);
        run_pass(session, {.name = "permute_tokens_backward", .reads = std::move(reads), .writes = {tokens, spread}},
                 with_operators(permutation_backward, operators));
        *slot = {};
        return std::vector<Tensor>{std::move(tokens), std::move(spread)};
      });
}

// Clamped gates: an offset is made on the host and copied, for which that waits until the stream has done all.
void MoeBlock::activate(const Tensor& gates, const Tensor& probabilities, const Tensor& out) {
  EagerSession& session = context_.session;
  const FusedScope scope(session, setup_.fused_experts);
  Kernel kernel{.name = model_.gated() ? "weighted_swiglu" : "weighted_relu_squared",
                .reads = {gates, probabilities},
                .writes = {out}};
  if (is_clamped()) {
    kernel.bytes = times(clamped_passes, gates.bytes());
    if (!setup_.fused_experts && !session.is_captured()) session.host_wait({session.last_kernel()});
  }
  run_pass(session, std::move(kernel), is_clamped() ? clamped : activation);
}

// silu(gate) * up, or relu(up) squared, times the row's probability; saves all but the result.
Tensor MoeBlock::weighted_activation(const std::string& name, const Tensor& x, const Tensor& probabilities) {
  EagerSession& session = context_.session;
  const std::int64_t elements = model_.gated() ? x.elements() / 2 : x.elements();
  Tensor out = session.empty(name + ".weighted", x.type(), elements, TensorRole::activation);
  activate(x, probabilities, out);
  return context_.autograd.record(
      std::move(out), {x}, false,
      [this, &session, name, x, probabilities, slot = slots_[name]](const Tensor& gradient) {
        Tensor back = session.empty(name + ".weighted.in.grad", x.type(), x.elements(), TensorRole::temporary);
        *slot = session.empty(name + ".row_probabilities.grad", probabilities.type(), probabilities.elements(),
                              TensorRole::temporary);
        const FusedScope scope(session, setup_.fused_experts);
        Kernel kernel{.name = model_.gated() ? "weighted_swiglu_backward" : "weighted_relu_squared_backward",
                      .reads = {gradient, x, probabilities},
                      .writes = {back, *slot}};
        if (is_clamped()) kernel.bytes = times(clamped_backward_passes, x.bytes());
        run_pass(session, std::move(kernel), is_clamped() ? clamped_backward : activation_backward);
        return std::vector<Tensor>{std::move(back)};
      });
}

// The activation goes when the product behind it has run, and is made again before that runs backwards.
Tensor MoeBlock::without_activation(const std::string& name, const Tensor& inner, const Tensor& weights,
                                    const Tensor& result) {
  const Tensor gates = std::exchange(gates_, {});
  if (!setup_.recomputes_module("moe_act") || !context_.autograd.is_recording()) return result;
  EagerSession& session = context_.session;
  session.discard(inner);
  return context_.autograd.record(result, {result}, false,
                                  [this, &session, name, inner, gates, weights](const Tensor& gradient) {
                                    const Phase outer = session.phase();
                                    session.set_phase(Phase::recompute);
                                    session.restore(inner, name + ".weighted");
                                    activate(gates, weights, inner);
                                    session.set_phase(outer);
                                    return std::vector<Tensor>{gradient};
                                  });
}

Tensor MoeBlock::engine_unpermute(const std::string& name, const Tensor& rows, const EngineRouting& routing,
                                  std::int64_t elements) {
  EagerSession& session = context_.session;
  Tensor out = session.empty(name + ".out", rows.type(), elements, TensorRole::activation);
  const double operators = setup_.permute_fusion || permutes_late() ? 0 : plain_permutation;
  run_pass(session, {.name = "unpermute_tokens", .reads = {rows, routing.rows}, .writes = {out}},
           with_operators(one_pass, operators));
  const bool is_hybrid = permutes_late() && setup_.expert_dispatcher == ExpertDispatcher::hybridep;
  const RowPass pass_back = is_hybrid ? hybrid_permutation : with_operators(one_pass, operators);
  return context_.autograd.record(
      std::move(out), {rows}, false,
      [&session, name, count = rows.elements(), rows_of = routing.rows, pass_back](const Tensor& gradient) {
        Tensor back = session.empty(name + ".rows.grad", gradient.type(), count, TensorRole::temporary);
        run_pass(session, {.name = "unpermute_tokens_backward", .reads = {gradient, rows_of}, .writes = {back}},
                 pass_back);
        return std::vector<Tensor>{std::move(back)};
      });
}

// The rows of the local experts to theirs.
Tensor MoeBlock::engine_experts(const std::string& name, Tensor rows, const Tensor& weights) {
  gates_ = grouped_linear(first_of(name), rows);
  rows = {};
  const FusedScope scope(context_.session, setup_.fused_experts);
  const Tensor inner = weighted_activation(name, gates_, weights);
  const bool keeps_input = setup_.recomputes_module("moe_act");
  return without_activation(name, inner, weights,
                            grouped_linear(name + ".down", inner, context_.weight(name + ".down"), keeps_input, true));
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

Tensor MoeBlock::engine_shared(const std::string& prefix, const Tensor& x) {
  if (model_.experts.shared_width == 0) return {};
  const CapturedScope scope(context_.session, setup_.captures("moe_router") && !options_.overlaps_shared_experts);
  const auto run = [this, prefix](const std::vector<Tensor>& again) { return shared(prefix, again.front()); };
  return setup_.recomputes_module("shared_experts") ? context_.autograd.checkpoint({x}, run, true) : run({x});
}

// DeepEP: indices that arrived, to a map of rows; boolean indexing makes the host wait, before and behind.
void MoeBlock::map_arrived(const Tensor& sent) {
  if (setup_.expert_dispatcher != ExpertDispatcher::deepep) return;
  wait_for_counts(context_.session.last_collective(to_string(CommGroup::expert)));
  const std::int64_t tokens = sent.elements() / row_width(), local = model_.experts.count / expert_ranks();
  wait_for_counts(run_pass(context_.session,
                           {.name = "map_arrived_rows",
                            .reads = {sent},
                            .bytes = Bytes(std::llround(map_bytes * static_cast<double>(tokens * local)))},
                           deep_map));
}

// Names keep the rows as permuted, as they came and as they go back until the block's result is there.
Tensor MoeBlock::engine_run(const std::string& prefix, const Tensor& x) {
  EagerRecorder& rec = context_.rec;
  const std::string name = prefix + "mlp.experts";
  Tensor shared_result;
  if (!options_.overlaps_shared_experts) shared_result = engine_shared(prefix, x);
  const EngineRouting routing = engine_route(prefix + "mlp.router", x);
  Tensor probabilities;
  Tensor entered = enter_latent(prefix, x);
  if (!gathers() && !is_apart()) entered = eager::enter_tensor_region(rec, name, entered, TensorRole::activation);
  const std::int64_t elements = entered.elements(), own = sent_by(elements),
                     rows = (permutes_late() ? arriving(own) : own) / row_width();
  Tensor sent = permutes_late() ? exchange(name, entered, false, loaded(copies_of(elements))) : Tensor();
  if (sent) map_arrived(sent);
  std::optional<CrowdedScope> crowd;
  if (permutes_late()) crowd.emplace(context_.session, crowding());
  const Tensor permuted = engine_permute(name, sent ? sent : entered, routing, rows, probabilities);
  crowd.reset();
  entered = sent = {};
  const Tensor arrived = permutes_late() ? permuted : exchange(name, permuted, false, arriving(own));
  const Tensor with = expert_ranks() == 1 || permutes_late()
                          ? probabilities
                          : context_.communication->all_to_all(CommGroup::expert, name + ".with", probabilities,
                                                               TensorRole::temporary, nccl_exchange);
  if (options_.overlaps_shared_experts) shared_result = engine_shared(prefix, x);
  const Tensor whole = gathers() ? eager::enter_tensor_region(rec, name, arrived, TensorRole::activation) : arrived;
  crowd.emplace(context_.session, crowding());
  Tensor sorted = sort(name, whole);
  Tensor weights = with;
  if (!permutes_late()) {
    weights = context_.session.empty(name + ".row_probabilities", x.type(), sorted.elements() / row_width(),
                                     TensorRole::activation);
    run_pass(context_.session, {.name = "sort_chunks", .reads = {with}, .writes = {weights}}, fused_map);
  }
  if (pads(name)) sorted = pass_rows(name + ".padded", "pad_rows", sorted, padding, one_pass);
  Tensor results = engine_experts(name, std::exchange(sorted, {}), weights);
  if (pads(name)) results = pass_rows(name + ".unpadded", "unpad_rows", results, one_pass, padding);
  const Tensor unsorted = sort(name + ".down", results);
  crowd.reset();
  results = {};
  const Tensor reduced = gathers() ? eager::leave_tensor_region(rec, name + ".down", unsorted, true) : unsorted;
  Tensor routed = engine_combine(name, reduced, routing, elements);
  if (!gathers() && !is_apart()) routed = eager::leave_tensor_region(rec, name, routed, false);
  routed = leave_latent(prefix, routed);
  return shared_result ? eager::add(rec, name + ".add_shared", routed, shared_result) : routed;
}

// Where experts work in a latent width; else the same.
Tensor MoeBlock::enter_latent(const std::string& prefix, const Tensor& x) {
  const std::string into = prefix + "mlp.enter_latent", norm = prefix + "mlp.latent_norm";
  if (model_.experts.latent_width == 0) return x;
  Tensor entered = eager::linear(context_.rec, {into, &context_.weight(into)}, x);
  return model_.experts.latent_norm ? eager::norm(context_.rec, norm, entered, context_.weight(norm), nullptr)
                                    : entered;
}
Tensor MoeBlock::leave_latent(const std::string& prefix, const Tensor& routed) {
  const std::string back = prefix + "mlp.leave_latent";
  return model_.experts.latent_width == 0 ? routed
                                          : eager::linear(context_.rec, {back, &context_.weight(back)}, routed);
}

Tensor MoeBlock::run(const std::string& prefix, const Tensor& x) {
  draw_rows(x);
  if (options_.merged_experts) return engine_run(prefix, x);
  if (loops()) return loop_run(prefix, x);
  EagerRecorder& rec = context_.rec;
  const std::string name = prefix + "mlp.experts";
  const std::string router = prefix + "mlp.router";
  Routing routing = route(router, eager::linear(rec, {router, &context_.weight(router), context_.bias(router)}, x),
                          x.elements() / model_.hidden);
  Tensor entered = enter_latent(prefix, x);
  const std::int64_t of_tokens = entered.elements();
  if (!gathers() && !is_apart()) {
    entered = eager::enter_tensor_region(rec, name, entered, TensorRole::activation);
    routing.weights = eager::enter_tensor_region(rec, router, routing.weights, TensorRole::activation);
  }
  Tensor rows = permute(name, entered, routing);
  entered = {};
  const std::int64_t sent = rows.elements();
  rows = exchange(name, rows, false, arriving(sent));
  if (gathers()) rows = eager::enter_tensor_region(rec, name, rows, TensorRole::activation);
  std::optional<CrowdedScope> crowd(std::in_place, context_.session, crowding());
  rows = sort(name, rows);
  Tensor inner;
  if (model_.gated()) {
    inner = eager::pointwise(rec, name + ".gated", grouped_linear(name + ".gate", rows), function());
    inner = eager::multiply(rec, name + ".product", inner, grouped_linear(name + ".up", rows));
  } else {
    inner = eager::pointwise(rec, name + ".activated", grouped_linear(name + ".up", rows), function());
  }
  rows = {};
  Tensor results = grouped_linear(name + ".down", inner);
  inner = {};
  results = sort(name + ".down", results);
  crowd.reset();
  if (gathers()) results = eager::leave_tensor_region(rec, name + ".down", results, true);
  results = exchange(name + ".down", results, true, sent);
  Tensor routed = unpermute(name, results, routing, of_tokens);
  if (!gathers() && !is_apart()) routed = eager::leave_tensor_region(rec, name, routed, false);
  routed = leave_latent(prefix, routed);
  if (model_.experts.shared_width == 0) return routed;
  return eager::add(rec, name + ".add_shared", routed, shared(prefix, x));
}

}  // namespace spillway::models
