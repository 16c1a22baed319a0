// A Transformer's layers as Megatron-core 0.14 builds them from Transformer Engine's modules (core/models/gpt,
// gpt_layer_specs.py: get_gpt_layer_with_transformer_engine_spec).
#include <optional>
#include <utility>

#include "models/network/soft_cap.h"
#include "models/network/transformer.h"

namespace spillway::models {

// Others go through the layers of 2022: encoders beside decoders, norms elsewhere, adapters, 8-bit products, slices.
bool Transformer::has_engine_layers() const {
  return ops_.workspaces() != nullptr && setup_.precision != TrainingPrecision::fp8_mixed && setup_.trains_all() &&
         setup_.flash_attention && setup_.fused_kernels && !model_.has_encoder() && !model_.reads_images() &&
         model_.norm_placement == NormPlacement::pre && model_.block_layout == BlockLayout::sequential &&
         !model_.query_key_norm && !model_.wide_query_key_norm && setup_.sequence_slices == 1 &&
         setup_.zero_stage < 3 && (setup_.context_parallel == 1 || setup_.context_exchange == ContextExchange::a2a);
}

EagerOps::NormedLinear Transformer::normed(const std::string& norm, const std::string& layer, bool with_bias) {
  return {norm, &weight(norm), bias(norm), {layer, &weight(layer), with_bias ? bias(layer) : nullptr}};
}

// The projection of a branch; its bias is added with the residual.
Tensor Transformer::engine_branch(const std::string& name, const Tensor& inner) {
  return ops_.row_linear({name, &weight(name), nullptr}, inner);
}

Tensor Transformer::engine_add(const std::string& name, const Tensor& branch, const Tensor& x) {
  TrainedParameter* late_bias = bias(name);
  if (late_bias == nullptr && setup_.dropout == 0) return ops_.add(name + ".residual", x, branch);
  return ops_.bias_dropout_add(name + ".residual", branch, late_bias, x, setup_.dropout);
}

Tensor Transformer::engine_layer(std::int64_t index, const Tensor& x) {
  const std::string prefix = model_.layer_prefix(index);
  std::optional<CapturedScope> scope(std::in_place, session_, setup_.captures("attn"));
  const Tensor middle = engine_add(prefix + "attention.out", engine_attention(index, x), x);
  scope.reset();
  scope.emplace(session_, setup_.captures("mlp") && !model_.has_experts(index));
  if (model_.has_experts(index)) {
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
    session_.kernel({.name = bias(name) != nullptr ? "layer_norm" : "rms_norm",
                     .reads = {x, weight(name).value},
                     .writes = {normed},
                     .cost = {.memory = MemoryKind::norm_forward}});
    session_.set_phase(outer);
    return std::vector<Tensor>{gradient};
  });
}

// A name holds the packed projections until the branch is there.
Tensor Transformer::engine_attention(std::int64_t index, const Tensor& x) {
  const std::string name = model_.layer_prefix(index) + "attention", core = name + ".core";
  for (const Tensor& table : angles_) session_.touch(table);
  if (model_.has_latent()) {
    const Tensor normed = norm(name + ".norm", x);
    const Tensor context = latent_.run(model_.layer_prefix(index), normed, angles_[slice_]);
    return without_norm(name + ".norm", normed, x, engine_branch(name + ".out", context));
  }
  const Tensor mixed = ops_.norm_linear(normed(name + ".norm", name + ".qkv", true), x);
  const AttentionShape shape{.batch = setup_.micro_batch,
                             .heads = model_.heads / setup_.tensor_parallel,
                             .kv_heads = model_.kv_heads / setup_.tensor_parallel,
                             .sequence = setup_.local_sequence(),
                             .head_dim = model_.head_dim,
                             .causal = model_.mask == AttentionMask::causal,
                             .window = model_.window_of(index),
                             .kernel = setup_.attention_kernel};
  if (model_.positions != Positions::rotary)
    return engine_branch(name + ".out", ops_.flash_attention(core, {mixed}, shape));
  const bool exchanges = setup_.context_parallel > 1;
  const bool recomputes = setup_.recomputes_module("core_attn");
  return engine_branch(name + ".out",
                       ops_.rotary_attention(core, mixed, angles_[slice_], shape, exchanges, recomputes));
}

Tensor Transformer::engine_feed_forward(const std::string& prefix, const Tensor& x) {
  const std::string norm = prefix + "mlp.norm";
  if (has(prefix + "mlp.gate_up"))
    return ops_.swiglu(prefix + "mlp.swiglu", ops_.norm_linear(normed(norm, prefix + "mlp.gate_up", true), x));
  const bool relu = model_.activation == Activation::relu;
  TrainedParameter* late_bias = relu ? nullptr : bias(prefix + "mlp.up");
  const Tensor inner = ops_.norm_linear(normed(norm, prefix + "mlp.up", late_bias == nullptr), x);
  if (late_bias != nullptr) return ops_.bias_gelu(prefix + "mlp.gelu", inner, *late_bias);
  return ops_.pointwise(prefix + (relu ? "mlp.relu" : "mlp.gelu"), inner,
                        relu ? EagerOps::Pointwise::relu : EagerOps::Pointwise::gelu);
}

Tensor Transformer::engine_loss(const EagerOps::Linear& head, const Tensor& x, const Tensor& labels) {
  Tensor logits = ops_.head(head, x);
  if (model_.logit_softcap > 0) logits = soft_cap("logits", logits, session_, autograd_);
  return setup_.loss == LossForm::fused ? ops_.cross_entropy_in_place("loss", logits, labels)
                                        : ops_.cross_entropy_of_copy("loss", std::move(logits), labels);
}

}  // namespace spillway::models
