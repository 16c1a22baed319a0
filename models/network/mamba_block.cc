#include "models/network/mamba_block.h"

#include <utility>

namespace spillway::models {
namespace {

// Flops a clock and multiprocessor of state-spaces' Triton kernels, forwards on H100, backwards as steps of Nemotron 3
// leave over (docs/internals/operator-times.md).
constexpr double scan_rate = 550, scan_backward_rate = 50;

}  // namespace

Tensor MambaBlock::make(const std::string& name, std::int64_t elements, TensorRole role) {
  return context_.session.empty(name, options_.type, elements, role);
}

Tensor MambaBlock::sum_for(TrainedParameter& parameter) {
  return make(parameter.shape.name + ".grad", parameter.shape.elements(), TensorRole::gradient);
}

MambaBlock::Operands MambaBlock::make_operands(const std::string& name, const std::string& again, const Saved& saved) {
  const Mamba& mamba = model_.mamba;
  const std::int64_t t = tokens(), heads = split(mamba.heads), d = width();
  const std::int64_t chunks = setup_.micro_batch * ((setup_.sequence + mamba.chunk - 1) / mamba.chunk);
  Operands made;
  made.convolved = make(name + again + ".convolved", t * convolved());
  std::vector<Tensor> filter = {saved.projected, context_.weight(name + ".convolution").value};
  if (const TrainedParameter* bias = context_.bias(name + ".convolution")) filter.push_back(bias->value);
  context_.session.kernel({.name = "causal_convolution",
                           .reads = std::move(filter),
                           .writes = {made.convolved},
                           .cost = {.type = options_.type, .flops = Flops(2 * t * convolved() * mamba.convolution)},
                           .bytes = made.convolved.bytes() + made.convolved.bytes()});
  made.steps = context_.wide(name + again + ".steps", 2 * t * heads);  // and their sums within chunks
  context_.session.kernel({.name = "chunk_cumulative_sum",
                           .reads = {saved.projected, context_.weight(name + ".time_bias").value,
                                     context_.weight(name + ".decay_log").value},
                           .writes = {made.steps},
                           .bytes = made.steps.bytes() + made.steps.bytes()});
  made.states = context_.wide(name + again + ".states", chunks * d * mamba.state);
  context_.chunk_kernel(
      options_.type, "chunk_states", {made.convolved, made.steps}, {made.states},
      {.flops = 2 * t * d * mamba.state, .flops_per_clock = scan_rate, .unread = Bytes(2 * t * inputs())});
  context_.kernel(options_.type, "pass_states", {made.states, made.steps}, {made.states});
  made.products = context_.wide(name + again + ".products", t * split(mamba.groups) * mamba.chunk);
  context_.chunk_kernel(
      options_.type, "chunk_products", {made.convolved}, {made.products},
      {.flops = 2 * t * mamba.chunk * inputs(), .flops_per_clock = scan_rate, .unread = Bytes(2 * t * d)});
  return made;
}

void MambaBlock::norm(const std::string& name, const Saved& saved, const Tensor& out) {
  std::vector<Tensor> reads = {saved.result, saved.projected}, writes = {out};
  Bytes bytes = out.bytes() + out.bytes() + out.bytes();
  if (saved.statistics) {
    reads.push_back(context_.weight(name + ".result_norm").value);
    writes.push_back(saved.statistics);
    bytes = bytes + saved.statistics.bytes();
  }
  context_.session.kernel({.name = saved.statistics ? "gated_rms_norm" : "silu_multiply",
                           .reads = std::move(reads),
                           .writes = std::move(writes),
                           .bytes = bytes});
}

// What the last product read goes when it has run, and is made again before that runs backwards.
Tensor MambaBlock::without_normed(const std::string& name, const std::shared_ptr<Saved>& saved, const Tensor& normed,
                                  const Tensor& out) {
  if (!has_fused_output() || !context_.autograd.is_recording() || out.node() == 0) return out;
  context_.session.discard(normed);
  return context_.autograd.record(out, {out}, false, [this, name, saved, normed](const Tensor& gradient) {
    const Phase outer = context_.session.phase();
    context_.session.set_phase(Phase::recompute);
    context_.session.restore(normed, name + ".normed");
    norm(name, *saved, normed);
    context_.session.set_phase(outer);
    return std::vector<Tensor>{gradient};
  });
}

// The gradient of the first product.
Tensor MambaBlock::backward(const std::string& name, const Saved& saved, const Tensor& gradient) {
  const Mamba& mamba = model_.mamba;
  const std::int64_t t = tokens(), d = width(), n = mamba.state, q = mamba.chunk, c = convolved();
  Tensor result_back = make(name + ".result.grad", t * d), gate_back = make(name + ".gate.grad", t * d);
  std::vector<Tensor> reads = {gradient, saved.result, saved.projected}, writes = {result_back, gate_back};
  Tensor norm_sum;
  if (saved.statistics) {
    TrainedParameter& norm_weight = context_.weight(name + ".result_norm");
    norm_sum = sum_for(norm_weight);
    reads.push_back(saved.statistics);
    reads.push_back(norm_weight.value);
    writes.push_back(norm_sum);
  }
  context_.session.kernel({.name = saved.statistics ? "gated_rms_norm_backward" : "silu_multiply_backward",
                           .reads = std::move(reads),
                           .writes = std::move(writes),
                           .bytes = result_back.bytes() * 5});
  if (norm_sum) context_.give(context_.weight(name + ".result_norm"), std::exchange(norm_sum, {}));
  Operands made = make_operands(name, ".again", saved);
  Tensor states_back = context_.wide(name + ".states.grad", made.states.elements());
  const auto back = [](std::int64_t flops) { return ChunkWork{.flops = flops, .flops_per_clock = scan_backward_rate}; };
  context_.chunk_kernel(options_.type, "chunk_states_backward", {result_back, made.convolved, made.steps},
                        {states_back}, back(2 * t * d * n));
  context_.kernel(options_.type, "pass_states_backward", {states_back, made.states, made.steps}, {states_back});
  Tensor convolved_back = make(name + ".convolved.grad", t * c);
  Tensor products_back = context_.wide(name + ".products.grad", made.products.elements());
  Tensor steps_back = context_.wide(name + ".steps.grad", made.steps.elements());
  context_.chunk_kernel(options_.type, "chunk_scan_backward",
                        {result_back, made.convolved, made.steps, made.states, made.products, states_back},
                        {convolved_back, products_back, steps_back}, back(4 * t * q * d + 6 * t * d * n));
  context_.chunk_kernel(options_.type, "chunk_products_backward", {products_back, made.convolved}, {convolved_back},
                        back(4 * t * q * inputs()));
  products_back = states_back = result_back = {};
  made = {};
  TrainedParameter &skip = context_.weight(name + ".skip"), &log = context_.weight(name + ".decay_log"),
                   &time = context_.weight(name + ".time_bias");
  std::vector<Tensor> sums = {sum_for(skip), sum_for(log), sum_for(time)};
  Tensor projected_back = make(name + ".in.out.grad", saved.projected.elements());
  context_.session.kernel({.name = "steps_backward",
                           .reads = {steps_back, saved.projected, time.value, log.value},
                           .writes = {projected_back, sums[0], sums[1], sums[2]},
                           .bytes = steps_back.bytes() + steps_back.bytes()});
  context_.give(skip, std::move(sums[0]));
  context_.give(log, std::move(sums[1]));
  context_.give(time, std::move(sums[2]));
  sums.clear();
  steps_back = {};
  TrainedParameter& filter = context_.weight(name + ".convolution");
  TrainedParameter* bias = context_.bias(name + ".convolution");
  std::vector<Tensor> filter_sums = {projected_back, sum_for(filter)};
  if (bias != nullptr) filter_sums.push_back(sum_for(*bias));
  context_.session.kernel(
      {.name = "causal_convolution_backward",
       .reads = {convolved_back, gate_back, saved.projected, filter.value},
       .writes = filter_sums,
       .cost = {.type = options_.type, .flops = Flops(4 * t * c * mamba.convolution)},
       .bytes = convolved_back.bytes() + convolved_back.bytes() + gate_back.bytes() + projected_back.bytes()});
  context_.give(filter, std::move(filter_sums[1]));
  if (bias != nullptr) context_.give(*bias, std::move(filter_sums[2]));
  return projected_back;
}

eager::Linear MambaBlock::layer(const std::string& of) { return {of, &context_.weight(of), context_.bias(of)}; }

Tensor MambaBlock::run(const std::string& prefix, const Tensor& x) {
  return run_projected(prefix, eager::column_linears(context_.rec, {layer(prefix + "mamba.in")}, x)[0]);
}

Tensor MambaBlock::run_projected(const std::string& prefix, const Tensor& projected) {
  const Mamba& mamba = model_.mamba;
  const std::string name = prefix + "mamba";
  const std::int64_t t = tokens(), d = width();
  const auto saved = std::make_shared<Saved>();
  saved->projected = projected;
  Operands made = make_operands(name, "", *saved);
  saved->result = make(name + ".result", t * d, TensorRole::activation);
  context_.chunk_kernel(options_.type, "chunk_scan",
                        {made.convolved, made.steps, made.states, made.products, context_.weight(name + ".skip").value},
                        {saved->result},
                        {.flops = 2 * t * d * (mamba.chunk + mamba.state),
                         .flops_per_clock = scan_rate,
                         .unread = Bytes(2 * t * inputs())});
  made = {};
  if (mamba.norm)
    saved->statistics =
        context_.wide(name + ".result_norm.statistics", t * split(mamba.groups), TensorRole::activation);
  Tensor normed = make(name + ".normed", t * d, TensorRole::activation);
  norm(name, *saved, normed);
  const bool trains = context_.weight(name + ".convolution").trains;
  normed =
      context_.autograd.record(std::move(normed), {projected}, trains, [this, name, saved](const Tensor& gradient) {
        Tensor back = backward(name, *saved, gradient);
        *saved = {};
        return std::vector<Tensor>{std::move(back)};
      });
  return without_normed(name, saved, normed, eager::row_linear(context_.rec, layer(name + ".out"), normed));
}

}  // namespace spillway::models
