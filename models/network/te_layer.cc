// A Transformer's layers as Megatron-core 0.14 builds them from Transformer Engine's modules (core/models/gpt,
// gpt_layer_specs.py: get_gpt_layer_with_transformer_engine_spec).
#include <utility>

#include "models/network/eager_fused.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"
#include "models/network/soft_cap.h"
#include "models/network/te_ops.h"
#include "models/network/transformer.h"

namespace spillway::models {

eager::NormedLinear Transformer::normed(const std::string& norm, const std::string& layer, bool with_bias) {
  return {norm, &weight(norm), bias(norm), {layer, &weight(layer), with_bias ? bias(layer) : nullptr}};
}

// The projection of a branch; its bias is added with the residual.
Tensor Transformer::engine_branch(const std::string& name, const Tensor& inner, bool keeps_input) {
  return eager::row_linear(rec_, {name, &weight(name), nullptr, keeps_input}, inner);
}

Tensor Transformer::engine_add(const std::string& name, const Tensor& branch, const Tensor& x) {
  TrainedParameter* late_bias = bias(name);
  if (late_bias == nullptr && setup_.dropout == 0) return eager::add(rec_, name + ".residual", x, branch);
  return eager::bias_dropout_add(rec_, name + ".residual", branch, late_bias, x, setup_.dropout);
}

Tensor Transformer::engine_layer(std::int64_t index, const Tensor& x) {
  const std::string prefix = model_.layer_prefix(index);
  const Block block = model_.block_of_all(index);
  Tensor middle = x;
  if (block.mixer != Mixer::none) {
    const CapturedScope scope(session_, captures_mixer(block));
    const Tensor branch = engine_attention(index, x);
    middle = block.mixer == Mixer::mamba ? add_result(prefix + "attention.out", branch, x)
                                         : engine_add(prefix + "attention.out", branch, x);
  }
  if (block.feed_forward == FeedForward::none) return middle;
  const CapturedScope scope(session_, setup_.captures("mlp") && !block.has_experts());
  if (block.has_experts()) {
    const Tensor normed = norm(prefix + "mlp.norm", middle);
    const auto run = [this, prefix](const std::vector<Tensor>& again) { return experts_.run(prefix, again.front()); };
    const Tensor branch = setup_.recomputes_module("moe") ? autograd_.checkpoint({normed}, run, true) : run({normed});
    return add_result(prefix + "mlp.experts", without_norm(prefix + "mlp.norm", normed, middle, branch), middle);
  }
  const std::string down = prefix + "mlp.down";
  const auto run = [this, prefix, down](const std::vector<Tensor>& again) {
    return engine_branch(down, engine_feed_forward(prefix, again.front()));
  };
  return engine_add(down, setup_.recomputes_module("mlp") ? autograd_.checkpoint({middle}, run, true) : run({middle}),
                    middle);
}

// The norm's result goes when what reads it has run, and is made again before that runs backwards.
Tensor Transformer::without_norm(const std::string& name, const Tensor& normed, const Tensor& x, const Tensor& result) {
  if (!setup_.recomputes_module("layernorm") || !autograd_.is_recording()) return result;
  session_.discard(normed);
  return autograd_.record(result, {result}, false, [this, name, normed, x](const Tensor& gradient) {
    const Phase outer = session_.phase();
    session_.set_phase(Phase::recompute);
    session_.restore(normed, name + ".out");
    eager::norm_forward(rec_, x, weight(name), bias(name), {normed});
    session_.set_phase(outer);
    return std::vector<Tensor>{gradient};
  });
}

// A name holds the packed projections until the branch is there.
Tensor Transformer::engine_attention(std::int64_t index, const Tensor& x) {
  const std::string prefix = model_.layer_prefix(index), name = prefix + "attention", core = name + ".core";
  const Block block = model_.block_of_all(index);
  if (block.mixer == Mixer::mamba)  // the norm lies in the first product
    return mamba_.run_projected(prefix, eager::norm_linear(rec_, normed(name + ".norm", prefix + "mamba.in", true), x));
  for (const Tensor& table : angles_) session_.touch(table);
  if (block.mixer == Mixer::delta_rule) {
    const Tensor normed = norm(name + ".norm", x);
    return without_norm(name + ".norm", normed, x, engine_branch(name + ".out", linear_.run(prefix, normed)));
  }
  if (model_.has_latent()) {
    const Tensor normed = norm(name + ".norm", x);
    const Tensor context = latent_.run(prefix, normed, angles_[slice_]);
    const bool keeps_input = setup_.recomputes_module("mla_up_proj");  // which attention keeps
    return without_norm(name + ".norm", normed, x, engine_branch(name + ".out", context, keeps_input));
  }
  Tensor mixed = eager::norm_linear(rec_, normed(name + ".norm", name + ".qkv", true), x);
  if (setup_.shares_key_heads(block.kv_heads)) mixed = eager::gather_heads(rec_, name + ".qkv", mixed);
  const bool is_rotary = model_.positions == Positions::rotary, is_split = setup_.context_parallel > 1;
  const bool is_causal = model_.mask == AttentionMask::causal;
  if (!is_rotary || (is_split && setup_.context_exchange == ContextExchange::p2p)) {
    if (is_rotary) mixed = rotary(name + ".rotary", mixed, block.head_dim);
    CoreInput input{.causal = is_causal, .block = block};
    input.qkv.push_back(std::move(mixed));
    return engine_branch(name + ".out", with_sinks(prefix, attend(core, input)));
  }
  const AttentionShape shape{.batch = setup_.micro_batch * setup_.documents(),
                             .heads = block.heads / setup_.tensor_parallel,
                             .kv_heads = setup_.local_key_heads(block.kv_heads),
                             .sequence = setup_.local_sequence() / setup_.documents(),
                             .head_dim = block.head_dim,
                             .causal = is_causal,
                             .window = block.window,
                             .dropout = attention_dropout() > 0,
                             .kernel = setup_.attention_kernel};
  eager::RotaryOptions options{.exchanges = is_split, .recomputes = setup_.recomputes_module("core_attn")};
  if (model_.query_key_norm) {
    options.q_norm = {&weight(name + ".q_norm"), bias(name + ".q_norm")};
    options.k_norm = {&weight(name + ".k_norm"), bias(name + ".k_norm")};
  }
  return engine_branch(name + ".out",
                       with_sinks(prefix, eager::rotary_attention(rec_, core, mixed, angles_[slice_], shape, options)));
}

Tensor Transformer::engine_feed_forward(const std::string& prefix, const Tensor& x) {
  const std::string norm = prefix + "mlp.norm";
  if (has(prefix + "mlp.gate_up"))
    return eager::swiglu(rec_, prefix + "mlp.swiglu",
                         eager::norm_linear(rec_, normed(norm, prefix + "mlp.gate_up", true), x));
  const bool relu = model_.activation == Activation::relu, squared = model_.activation == Activation::relu_squared;
  TrainedParameter* late_bias = relu || squared ? nullptr : bias(prefix + "mlp.up");
  const Tensor inner = eager::norm_linear(rec_, normed(norm, prefix + "mlp.up", late_bias == nullptr), x);
  if (late_bias != nullptr) return eager::bias_gelu(rec_, prefix + "mlp.gelu", inner, *late_bias);
  if (squared) return eager::pointwise(rec_, prefix + "mlp.relu_squared", inner, eager::Pointwise::relu_squared);
  return eager::pointwise(rec_, prefix + (relu ? "mlp.relu" : "mlp.gelu"), inner,
                          relu ? eager::Pointwise::relu : eager::Pointwise::gelu);
}

Tensor Transformer::engine_loss(const eager::Linear& head, const Tensor& x, const Tensor& labels) {
  Tensor logits = eager::head(rec_, head, x);
  if (model_.logit_softcap > 0) logits = soft_cap("logits", logits, session_, autograd_);
  return setup_.loss == LossForm::fused ? eager::cross_entropy_in_place(rec_, "loss", logits, labels)
                                        : eager::cross_entropy_of_copy(rec_, "loss", std::move(logits), labels);
}

}  // namespace spillway::models
