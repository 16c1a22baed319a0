#include "models/network/linear_attention.h"

#include <utility>
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"

namespace spillway::models {
namespace {

// Flops a clock and multiprocessor of flash-linear-attention's Triton kernels, with decays by head and by channel, and
// what a chunk takes that waits for the one before (docs/internals/operator-times.md).
constexpr double delta_rate = 470, delta_backward_rate = 370, channel_rate = 260, channel_backward_rate = 150;
constexpr Picos chunk_time = nanoseconds(1200), chunk_backward_time = nanoseconds(2300);

}  // namespace

Tensor LinearAttentionBlock::make(const std::string& name, std::int64_t elements, TensorRole role) {
  return context_.session.empty(name, options_.type, elements, role);
}

std::int64_t LinearAttentionBlock::key_elements() const {
  return setup_.tokens() * value_heads() * model_.linear.key_dim;
}

std::int64_t LinearAttentionBlock::value_elements() const {
  return setup_.tokens() * value_heads() * model_.linear.value_dim;
}

std::int64_t LinearAttentionBlock::decay_elements() const {
  return model_.linear.gate_rank > 0 ? key_elements() : setup_.tokens() * value_heads();
}

ChunkWork LinearAttentionBlock::forward_work(std::int64_t flops, bool serial) const {
  return {.flops = flops,
          .flops_per_clock = model_.linear.gate_rank > 0 ? channel_rate : delta_rate,
          .least = serial ? chunk_time * (setup_.sequence / chunk) : Picos(0)};
}

ChunkWork LinearAttentionBlock::backward_work(std::int64_t flops, bool serial) const {
  return {.flops = flops,
          .flops_per_clock = model_.linear.gate_rank > 0 ? channel_backward_rate : delta_backward_rate,
          .least = serial ? chunk_backward_time * (setup_.sequence / chunk) : Picos(0)};
}

// All up to the inverses of the chunks' triangles.
void LinearAttentionBlock::make_operands(const std::string& name, Saved& saved) {
  const LinearAttention& linear = model_.linear;
  const std::int64_t tokens = setup_.tokens(), heads = value_heads(), rows = tokens * heads;
  const std::int64_t convolved = tokens * linear.convolved() / setup_.tensor_parallel;
  saved.convolved = make(name + ".convolved", convolved, TensorRole::activation);
  context_.session.kernel({.name = "causal_convolution",
                           .reads = {saved.mixed, context_.weight(name + ".convolution").value},
                           .writes = {saved.convolved},
                           .bytes = saved.convolved.bytes() + saved.convolved.bytes()});
  const Tensor decays = context_.wide(name + ".decays", decay_elements());
  saved.strengths = make(name + ".strengths", rows, TensorRole::activation);
  std::vector<Tensor> decaying = {saved.decay, context_.parameters.parameter(name + ".time_bias").value,
                                  context_.parameters.parameter(name + ".decay_log").value};
  if (saved.channels) decaying.push_back(saved.channels);
  context_.kernel(options_.type, "decay_gates", std::move(decaying), {decays, saved.strengths});
  const bool repeats = heads > key_heads();
  const Tensor q = repeats ? make(name + ".q_repeated", key_elements()) : saved.convolved;
  const Tensor k = repeats ? make(name + ".k_repeated", key_elements()) : saved.convolved;
  if (repeats)
    context_.session.kernel({.name = "repeat_heads",
                             .reads = {saved.convolved},
                             .writes = {q, k},
                             .bytes = q.bytes() + k.bytes() + k.bytes()});
  saved.q = make(name + ".q_normed", key_elements(), TensorRole::activation);
  saved.k = make(name + ".k_normed", key_elements(), TensorRole::activation);
  saved.norms = context_.wide(name + ".norms", 2 * rows, TensorRole::activation);
  context_.session.kernel({.name = "l2_norm",
                           .reads = repeats ? std::vector<Tensor>{q, k} : std::vector<Tensor>{q},
                           .writes = {saved.q, saved.k, saved.norms},
                           .bytes = saved.q.bytes() + saved.q.bytes() + saved.k.bytes() + saved.k.bytes()});
  saved.gates = context_.wide(name + ".gates", decay_elements(), TensorRole::activation);
  context_.kernel(options_.type, "chunk_cumulative_sum", {decays}, {saved.gates});
  const Tensor triangles = context_.wide(name + ".triangles", rows * chunk);
  context_.chunk_kernel(options_.type, "chunk_keys_product", {saved.k, saved.strengths, saved.gates}, {triangles},
                        forward_work((saved.channels ? 4 : 2) * rows * chunk * linear.key_dim));
  saved.inverses = make(name + ".inverses", rows * chunk, TensorRole::activation);
  context_.kernel(options_.type, "invert_triangles", {triangles}, {saved.inverses});
}

LinearAttentionBlock::States LinearAttentionBlock::make_states(const std::string& name, const Saved& saved) {
  const LinearAttention& linear = model_.linear;
  const std::int64_t rows = setup_.tokens() * value_heads(), k = linear.key_dim, v = linear.value_dim;
  States made{
      .w = make(name + ".w", key_elements()), .u = make(name + ".u", value_elements()), .states = {}, .fresh = {}};
  ChunkWork operands = forward_work(2 * rows * chunk * (k + v));
  operands.unread = saved.convolved.bytes() - made.u.bytes();  // of q, k and v, v alone is read
  context_.chunk_kernel(options_.type, "chunk_operands",
                        {saved.k, saved.convolved, saved.strengths, saved.gates, saved.inverses}, {made.w, made.u},
                        operands);
  const std::int64_t chunks = setup_.micro_batch * ((setup_.sequence + chunk - 1) / chunk);
  made.states = make(name + ".states", chunks * value_heads() * k * v);
  made.fresh = make(name + ".fresh", value_elements());
  context_.chunk_kernel(options_.type, "chunk_states", {saved.k, made.w, made.u, saved.gates},
                        {made.states, made.fresh}, forward_work(4 * rows * k * v, true));
  return made;
}

// The gradients of the projections, as run() made them.
std::vector<Tensor> LinearAttentionBlock::backward(const std::string& name, const Saved& saved,
                                                   const Tensor& gradient) {
  const LinearAttention& linear = model_.linear;
  const std::int64_t rows = setup_.tokens() * value_heads(), k = linear.key_dim, v = linear.value_dim;
  TrainedParameter& norm = context_.weight(name + ".result_norm");
  Tensor result_back = make(name + ".result.grad", value_elements());
  Tensor gate_back = make(name + ".gate.grad", value_elements());
  Tensor norm_sum = make(norm.shape.name + ".grad", norm.shape.elements(), TensorRole::gradient);
  std::vector<Tensor> normed = {gradient, saved.result, saved.statistics, norm.value};
  if (saved.gate) normed.push_back(saved.gate);
  context_.kernel(options_.type, "gated_rms_norm_backward", std::move(normed), {result_back, gate_back, norm_sum});
  context_.give(norm, std::move(norm_sum));
  States made = make_states(name + ".again", saved);
  Tensor values_back = make(name + ".values.grad", value_elements());
  context_.chunk_kernel(options_.type, "chunk_values_backward", {saved.q, saved.k, saved.gates, result_back},
                        {values_back}, backward_work(2 * rows * chunk * (k + v)));
  const Tensor states_back = make(name + ".states.grad", made.states.elements());
  context_.chunk_kernel(options_.type, "chunk_states_backward",
                        {saved.q, saved.k, made.w, saved.gates, result_back, values_back}, {states_back},
                        backward_work(6 * rows * k * v, true));
  Tensor q_back = make(name + ".q.grad", key_elements()), k_back = make(name + ".k.grad", key_elements());
  Tensor w_back = make(name + ".w.grad", key_elements()),
         gates_back = context_.wide(name + ".gates.grad", decay_elements());
  context_.chunk_kernel(options_.type, "chunk_operands_backward",
                        {saved.q, saved.k, made.fresh, saved.gates, made.states, result_back, states_back, values_back},
                        {q_back, k_back, w_back, gates_back},
                        backward_work(rows * (8 * k * v + 6 * chunk * k + 2 * chunk * v)));
  made = {};
  result_back = {};
  Tensor strengths_back = make(name + ".strengths.grad", rows);
  ChunkWork inverses = backward_work(rows * chunk * (6 * k + 4 * v + 4 * chunk));
  inverses.unread = saved.convolved.bytes() - values_back.bytes();
  context_.chunk_kernel(options_.type, "chunk_inverses_backward",
                        {saved.k, saved.convolved, saved.strengths, saved.inverses, w_back, values_back, saved.gates},
                        {k_back, values_back, strengths_back, gates_back}, inverses);
  w_back = {};
  context_.kernel(options_.type, "chunk_cumulative_sum", {gates_back}, {gates_back});
  context_.kernel(options_.type, "l2_norm_backward", {q_back, k_back, saved.q, saved.k, saved.norms}, {q_back, k_back});
  TrainedParameter &bias = context_.parameters.parameter(name + ".time_bias"),
                   &log = context_.parameters.parameter(name + ".decay_log");
  Tensor decay_gradient = make(name + ".decay.out.grad", saved.decay.elements()), channels_back;
  Tensor bias_sum = make(bias.shape.name + ".grad", bias.shape.elements(), TensorRole::gradient);
  Tensor log_sum = make(log.shape.name + ".grad", log.shape.elements(), TensorRole::gradient);
  std::vector<Tensor> decaying = {gates_back, strengths_back, saved.decay, bias.value, log.value};
  std::vector<Tensor> decayed = {decay_gradient, bias_sum, log_sum};
  if (saved.channels) {
    channels_back = make(name + ".decay_up.out.grad", saved.channels.elements());
    decaying.push_back(saved.channels);
    decayed.push_back(channels_back);
  }
  context_.kernel(options_.type, "decay_gates_backward", std::move(decaying), std::move(decayed));
  context_.give(bias, std::move(bias_sum));
  context_.give(log, std::move(log_sum));
  gates_back = strengths_back = {};
  Tensor convolved_back = make(name + ".convolved.grad", saved.convolved.elements());
  context_.kernel(options_.type, "repeat_heads_backward", {q_back, k_back, values_back}, {convolved_back});
  q_back = k_back = values_back = {};
  TrainedParameter& filter = context_.weight(name + ".convolution");
  Tensor mixed_back = make(name + ".mixed.out.grad", saved.mixed.elements());
  Tensor filter_sum = make(filter.shape.name + ".grad", filter.shape.elements(), TensorRole::gradient);
  std::vector<Tensor> convolving = {convolved_back};
  if (!saved.gate) convolving.push_back(gate_back);
  convolving.insert(convolving.end(), {saved.mixed, filter.value});
  context_.kernel(options_.type, "causal_convolution_backward", std::move(convolving), {mixed_back, filter_sum});
  context_.give(filter, std::move(filter_sum));
  std::vector<Tensor> gradients = {std::move(mixed_back), std::move(decay_gradient)};
  if (saved.gate) gradients.insert(gradients.end(), {std::move(channels_back), std::move(gate_back)});
  return gradients;
}

// Lightning attention: the kernel keeps the states of a head to itself, and works through its blocks one by one.
Tensor LinearAttentionBlock::run_fixed(const std::string& name, const Tensor& x) {
  const std::int64_t rows = setup_.tokens() * value_heads(), k = model_.linear.key_dim;
  const auto layer = [this](const std::string& of) { return eager::Linear{of, &context_.weight(of)}; };
  const std::vector<Tensor> both =
      eager::column_linears(context_.rec, {layer(name + ".mixed"), layer(name + ".gate")}, x);
  const Tensor qkv = eager::pointwise(context_.rec, name + ".silu", both[0], eager::Pointwise::silu);
  const Picos turns = chunk_time * ((setup_.sequence + block - 1) / block);
  Tensor result = make(name + ".result", value_elements(), TensorRole::activation);
  context_.chunk_kernel(
      options_.type, "lightning_attention", {qkv}, {result},
      {.flops = rows * (4 * block * k + 4 * k * k), .flops_per_clock = delta_rate, .unread = {}, .least = turns});
  const Tensor attended =
      context_.autograd.record(std::move(result), {qkv}, false, [this, name, rows, k, qkv](const Tensor& gradient) {
        const Picos turns_back = chunk_backward_time * ((setup_.sequence + block - 1) / block);
        Tensor back = make(name + ".qkv.grad", qkv.elements());
        context_.chunk_kernel(options_.type, "lightning_attention_backward", {qkv, gradient}, {back},
                              {.flops = rows * (10 * block * k + 10 * k * k),
                               .flops_per_clock = delta_backward_rate,
                               .unread = {},
                               .least = turns_back});
        return std::vector<Tensor>{std::move(back)};
      });
  const Tensor normed =
      eager::norm(context_.rec, name + ".result_norm", attended, context_.weight(name + ".result_norm"), nullptr);
  return eager::gated(context_.rec, name + ".gated", normed, both[1]);
}

Tensor LinearAttentionBlock::run(const std::string& prefix, const Tensor& x) {
  const LinearAttention& linear = model_.linear;
  if (linear.fixed_decay) return run_fixed(prefix + "attention", x);
  const std::string name = prefix + "attention";
  const std::int64_t rows = setup_.tokens() * value_heads(), k = linear.key_dim, v = linear.value_dim;
  const auto layer = [this](const std::string& of) { return eager::Linear{of, &context_.weight(of)}; };
  std::vector<Tensor> both = eager::column_linears(context_.rec, {layer(name + ".mixed"), layer(name + ".decay")}, x);
  const auto saved = std::make_shared<Saved>();
  saved->mixed = both[0], saved->decay = both[1];
  if (linear.gate_rank > 0) {
    const auto through = [&](const char* down, const char* up) {
      eager::Linear last = layer(name + up);
      last.bias = context_.bias(name + up);
      return eager::column_linears(context_.rec, {last}, eager::linear(context_.rec, layer(name + down), x))[0];
    };
    saved->channels = through(".decay_down", ".decay_up");
    saved->gate = linear.whole_gate ? eager::column_linears(context_.rec, {layer(name + ".gate")}, x)[0]
                                    : through(".gate_down", ".gate_up");
    both.insert(both.end(), {saved->channels, saved->gate});
  }
  make_operands(name, *saved);
  States made = make_states(name, *saved);
  saved->result = make(name + ".result", value_elements(), TensorRole::activation);
  context_.chunk_kernel(options_.type, "chunk_results", {saved->q, saved->k, made.fresh, made.states, saved->gates},
                        {saved->result}, forward_work(rows * (2 * k * v + 2 * chunk * (k + v))));
  made = {};
  saved->statistics = context_.wide(name + ".result_norm.statistics", rows, TensorRole::activation);
  Tensor out = make(name + ".result_norm.out", value_elements(), TensorRole::activation);
  context_.session.kernel(
      {.name = "gated_rms_norm",
       .reads = {saved->result, saved->gate ? saved->gate : saved->mixed, context_.weight(name + ".result_norm").value},
       .writes = {out, saved->statistics},
       .bytes = out.bytes() + out.bytes() + out.bytes() + saved->statistics.bytes()});
  const bool trains = context_.weight(name + ".convolution").trains;
  return context_.autograd.record(std::move(out), both, trains, [this, name, saved](const Tensor& gradient) {
    std::vector<Tensor> gradients = backward(name, *saved, gradient);
    *saved = {};
    return gradients;
  });
}

}  // namespace spillway::models
