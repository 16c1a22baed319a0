#include "models/network/transformer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "models/network/eager_attention.h"
#include "models/network/eager_fused.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_lora.h"
#include "models/network/eager_loss.h"
#include "models/network/eager_ops.h"
#include "models/network/eager_unfused.h"
#include "models/network/soft_cap.h"
#include "models/network/vision_tower.h"
#include "models/spec/trainable.h"

namespace spillway::models {
namespace {

DataType activation_type(const TrainingSetup& setup) {
  if (setup.is_wide()) return DataType::fp32;
  return setup.precision == TrainingPrecision::fp16_mixed ? DataType::fp16 : DataType::bf16;
}

OpsOptions options_of(const ModelSpec& model, const TrainingSetup& setup) {
  OpsOptions options{
      .type = activation_type(setup),
      .narrow = setup.precision == TrainingPrecision::nvfp4_mixed ? DataType::fp4 : DataType::fp8,
      .product = activation_type(setup),
      .fused_accumulation = setup.traits().gradient_buffers && setup.zero_stage < 2,
      .separate_passes = setup.traits().separate_passes && !has_narrow_products(setup.precision),
      .merged_experts = has_merged_experts(model, setup),
      .wide_adapters = setup.has_wide_adapters() && setup.precision == TrainingPrecision::bf16,
      .casts_adapters = setup.has_wide_adapters() && is_mixed(setup.precision),
      .widens_logits = setup.traits().widens_results && is_mixed(setup.precision),
      .waits_for_counts = setup.traits().core && !setup.static_experts && !setup.captures(whole_iteration),
      .overlaps_shared_experts = setup.overlap_shared_experts && setup.expert_dispatcher == ExpertDispatcher::nccl,
      .overlap_tensor = setup.overlap_tensor && setup.sequence_parallel,
      .waits_for_context = setup.traits().dtensor && setup.compile,
      .before_cuda_12 = setup.traits().megatron && !setup.traits().core,
      .narrow_norms = setup.autocast && setup.compile && model.norm_placement == NormPlacement::pre,
      .scores = !setup.traits().pytorch || setup.fused_kernels ? ScoreKernels::fused
                : setup.traits().transformers                  ? ScoreKernels::transformers
                                                               : ScoreKernels::eager};
  if (setup.precision == TrainingPrecision::tf32) options.product = DataType::tf32;
  return options;
}

// Transformer Engine's layers: what multiplies tokens inside the blocks, sides in sixteens. Routers, gates, heads and
// embeddings are not.
bool is_in_fp8(const ModelSpec& model, const TrainingSetup& setup, const Parameter& shape) {
  if (!has_narrow_products(setup.precision) || (shape.layer < 0 && !shape.is_of_mtp()) || shape.columns == 1)
    return false;
  if (shape.is_of_mtp()
          ? setup.bf16_layers_last > 0
          : shape.layer < setup.bf16_layers_first || shape.layer >= model.all_layers() - setup.bf16_layers_last)
    return false;
  const bool is_linear = shape.component == Component::attention || shape.component == Component::mlp ||
                         shape.component == Component::experts;
  const std::int64_t unit = setup.precision == TrainingPrecision::nvfp4_mixed ? 32 : 16;
  return is_linear && shape.rows % unit == 0 && shape.columns % unit == 0 &&
         shape.name.find("out_groups") == std::string::npos && shape.name.find("relative_bias") == std::string::npos;
}

}  // namespace

Transformer::Transformer(const ModelSpec& model, const TrainingSetup& setup, const ModelPart& part,
                         EagerSession& session, Autograd& autograd, Communication* communication,
                         TrainedParameter* table, std::deque<TrainedParameter>* among)
    : model_(model),
      setup_(setup),
      part_(part),
      session_(session),
      autograd_(autograd),
      type_(activation_type(setup)),
      rec_(setup, options_of(model, setup), session, autograd, communication),
      experts_(model, BlockContext(rec_, by_name_)),
      latent_(model, BlockContext(rec_, by_name_)),
      compressed_(model, BlockContext(rec_, by_name_)),
      index_(model, BlockContext(rec_, by_name_)),
      linear_(model, BlockContext(rec_, by_name_)),
      mamba_(model, BlockContext(rec_, by_name_)),
      scan_(model, BlockContext(rec_, by_name_)),
      convolution_(model, BlockContext(rec_, by_name_)),
      parameters_(among == nullptr ? own_parameters_ : *among) {
  if (setup.images > 0 && part.has_embedding)
    tower_ = std::make_unique<VisionTower>(model, setup, session, autograd, parameters_);
  if (setup.traits().transformers)
    autograd.set_retention(setup.zero_stage == 3 && !setup.trains_all() && setup.traits().keeps_frozen_inputs
                               ? Autograd::Retention::inputs
                               : Autograd::Retention::result);
  std::int64_t fp8_linears = 0;
  for (LocalParameter& local : local_parameters(model, setup, part)) {
    const std::string name = local.shape.name;
    if (model.is_tower()) local.shape.name = "tower." + name;
    local.shape.layer = unit_of(local.shape.layer);
    session.set_layer(local.shape.layer);
    if (table != nullptr && name == table->shape.name) {
      table->uses += local.uses;
      by_name_.emplace(name, table);
      continue;
    }
    if (name.ends_with("selection_bias")) {  // moved by rule, not by gradient
      buffers_.push_back(session.empty(name, DataType::fp32, local.shape.elements(), TensorRole::buffer));
      continue;
    }
    parameters_.push_back(
        {.is_partial_sum = local.is_partial_sum,
         .is_expert = local.shape.experts > 0 && (setup.expert_parallel > 1 || setup.has_whole_experts()),
         .uses = local.uses,
         .trains = local.trains,
         .storage = local.storage});
    TrainedParameter& parameter = parameters_.back();
    parameter.share = setup.optimizer_share(local.shape.elements(), parameter.is_expert);
    parameter.shape = std::move(local.shape);
    parameter.in_fp8 = is_in_fp8(model, setup, parameter.shape);
    allocate_weight(parameter, !local.adapts.empty());
    if (!local.adapts.empty()) {
      TrainedParameter& base = *by_name_.at(local.adapts);
      (base.adapter_a == nullptr ? base.adapter_a : base.adapter_b) = &parameter;
    }
    fp8_linears += parameter.in_fp8 ? 1 : 0;
    if (parameter.in_fp8 && setup.zero_stage < 3) {
      const std::int64_t elements = parameter.shape.elements();
      parameter.narrow = setup.fp8_weights
                             ? parameter.value
                             : session.empty(name + ".fp8", rec_.options.narrow, elements, TensorRole::buffer);
      parameter.narrow_transposed =
          session.empty(name + ".fp8.transposed", rec_.options.narrow, elements, TensorRole::buffer);
    }
    by_name_.emplace(name, &parameter);
  }
  session.set_layer(-1);
  if (fp8_linears > 0 && setup.precision == TrainingPrecision::fp8_mixed && setup.fp8_recipe == Fp8Recipe::delayed)
    scaling_.emplace(fp8_linears, session, communication);
  const bool rotates = model.positions == Positions::rotary && part.layers.count > 0;
  const bool counts =
      (model.positions == Positions::learned && (part.has_embedding || part.layers.contains(model.encoder_layers))) ||
      model.patches.table > 0;
  for (std::int64_t slice = 0; slice < setup.sequence_slices; ++slice) {
    if (rotates) {
      const bool is_wide = setup.traits().core;  // a table of angles in fp32
      const std::int64_t width = model.has_latent()       ? model.latent.rope_dim
                                 : model.has_compressed() ? model.compressed.rope_dim
                                                          : model.head_dim;
      angles_.push_back(session.empty("rotary.angles", is_wide ? DataType::fp32 : type_,
                                      (is_wide ? 1 : 2) * setup.slice_tokens() * width, TensorRole::buffer));
    }
    if (counts)
      position_ids_.push_back(
          session.empty("positions.ids", DataType::int64, setup.slice_tokens(), TensorRole::buffer));
  }
  for (std::int64_t index = part.layers.first; rotates && index < part.layers.first + part.layers.count; ++index) {
    const std::int64_t width = model.block_of_all(index).head_dim;
    if (width == model.head_dim || other_angles_.contains(width)) continue;
    other_angles_[width] = session.empty("rotary.angles", type_, 2 * setup.slice_tokens() * width, TensorRole::buffer);
  }
  if (setup.traits().core && model.has_latent())  // cosines, sines and both for keys, of each layer
    for (std::int64_t i = 0; i < 4 * part.layers.count; ++i)
      angles_.push_back(
          session.empty("rotary.table", type_, setup.slice_tokens() * model.latent.rope_dim, TensorRole::buffer));
  if (model.pretraining_heads && part.has_head)
    next_sentence_labels_ = session.empty("nsp.labels", DataType::int64, setup.micro_batch, TensorRole::buffer);
}

void Transformer::allocate_weight(TrainedParameter& parameter, bool is_adapter) {
  const std::string& name = parameter.shape.name;
  DataType type = (is_adapter && setup_.has_wide_adapters()) || setup_.has_wide_stream() ? DataType::fp32 : type_;
  if (setup_.fp8_weights && parameter.in_fp8) type = DataType::fp8;
  parameter.stored = parameter.shape.elements();
  if (parameter.storage != BaseWeights::same) {
    const StoredWeight stored = stored_weight(parameter.storage, parameter.shape);
    type = DataType::byte;
    parameter.stored = stored.packed_bytes;
    parameter.scales = session_.empty(name + ".scales", stored.scale_bytes == 4 ? DataType::fp32 : DataType::byte,
                                      stored.scales, TensorRole::weight);
    if (stored.second_scales > 0)
      parameter.second_scales =
          session_.empty(name + ".second_scales", DataType::fp32, stored.second_scales, TensorRole::weight);
  }
  parameter.stored_share = setup_.optimizer_share(parameter.stored, parameter.is_expert);
  if (setup_.has_wide_shards() && parameter.trains && parameter.stored_share < parameter.stored) {
    parameter.gathered_type = type;
    parameter.shard = session_.empty(name + ".shard", DataType::fp32, parameter.stored_share, TensorRole::weight);
  } else if (setup_.zero_stage == 3)
    parameter.shard = session_.empty(name + ".shard", type, parameter.stored_share, TensorRole::weight,
                                     place_of(setup_.weight_device));
  else
    parameter.value = session_.empty(name, type, parameter.stored, TensorRole::weight);
}

Tensor Transformer::empty_input() {
  const Patches& patches = model_.patches;
  const std::int64_t each = setup_.sequence - (patches.class_token ? 1 : 0);
  const std::int64_t values = setup_.micro_batch * each * patches.values();
  if (model_.reads_images()) return session_.empty("input.images", type_, values, TensorRole::input);
  return session_.empty("input.ids", DataType::int64, setup_.micro_batch * setup_.slice_tokens(), TensorRole::input);
}

Tensor Transformer::empty_labels() {
  const std::int64_t each = model_.reads_images() ? 1 : setup_.slice_tokens();
  return session_.empty("input.labels", DataType::int64, setup_.micro_batch * each, TensorRole::input);
}

std::int64_t Transformer::stream_elements() const {
  const std::int64_t whole = setup_.micro_batch * setup_.slice_tokens() * model_.hidden * model_.streams;
  return setup_.sequence_parallel ? whole / setup_.tensor_parallel : whole;
}

Tensor Transformer::norm(const std::string& name, const Tensor& x) {
  if (!model_.norm_weights) return eager::bare_norm(rec_, name, x, model_.hidden, true);
  if (model_.norm == NormKind::rms_norm && !setup_.fused_kernels && !setup_.fused_norms)
    return eager::unfused_rms_norm(rec_, name, x, weight(name));
  return eager::norm(rec_, name, x, weight(name), bias(name));
}

Tensor Transformer::rotary(const std::string& name, const Tensor& x, std::int64_t head_dim) {
  const Tensor& angles = head_dim == model_.head_dim ? angles_[slice_] : other_angles_.at(head_dim);
  const bool is_fused = setup_.fused_kernels || setup_.fused_rotary;
  return is_fused ? eager::rotary(rec_, name, x, angles) : eager::unfused_rotary(rec_, name, x, angles);
}

Tensor Transformer::forward(const Tensor& input, const Tensor& labels, const Tensor& memory) {
  if (units_.before && !model_.is_tower()) units_.before(-1);
  memory_ = memory;
  Tensor x = part_.has_embedding ? embed(input) : input;
  if (part_.has_embedding && model_.streams > 1) x = spread_streams(x);
  if (scaling_)  // the last of the backward
    x = autograd_.record(x, {x}, true, [this](const Tensor& gradient) {
      scaling_->after_backward();
      return std::vector<Tensor>{gradient};
    });
  for (std::int64_t index = part_.layers.first; index < part_.layers.first + part_.layers.count; ++index) {
    session_.set_layer(unit_of(index));
    if (model_.has_encoder() && index == model_.encoder_layers) x = enter_decoder(x, labels);
    if (index == part_.layers.first || index == model_.encoder_layers) make_bias(index);
    x = units_.before ? layer_unit(index, x) : layer(index, x);
    if (model_.has_encoder() && index + 1 == model_.encoder_layers) x = leave_encoder(x);
    x = with_taps(index, x);
  }
  session_.set_layer(-1);
  bias_ = memory_ = layer_inputs_ = {};
  shared_keys_[0] = shared_keys_[1] = {};
  if (scaling_) scaling_->after_forward();
  const std::vector<Tensor> groups = std::exchange(groups_, {});
  if (!part_.has_head) return x;
  if (model_.is_tower()) return project("projector", norm("final_norm", x), false);
  if (units_.before_head) units_.before_head();
  if (model_.streams > 1) x = read_streams("output", x, model_.streams).read;
  if (model_.residual_group > 0) x = read_groups("output", groups, x);
  if (model_.norm_placement != NormPlacement::post) x = norm("final_norm", x);
  if (model_.mtp_layers > 0) return mtp_loss(x, labels);
  if (is_t5()) x = eager::dropout(rec_, "final_dropout", x, setup_.dropout);
  if (model_.reads_images()) return classifier_loss(x, labels);
  if (model_.embedding_width > 0) x = linear("head.projection", x);
  if (model_.value_head) return eager::value_loss(rec_, "loss", linear("value", x));
  return model_.pretraining_heads || model_.masked_lm_head ? pretraining_loss(x, labels) : head_loss(x, labels);
}

// Nodes around the layer tell its backward's begin and end.
Tensor Transformer::layer_unit(std::int64_t index, const Tensor& x) {
  const auto node = [this, index](const Tensor& at, const std::function<void(std::int64_t)>& tell) {
    return autograd_.record(at, {at}, false, [unit = unit_of(index), tell](const Tensor& gradient) {
      tell(unit);
      return std::vector<Tensor>{gradient};
    });
  };
  units_.before(unit_of(index));
  Tensor out = layer(index, node(x, units_.after_backward));
  units_.after(unit_of(index));
  return node(out, units_.before_backward);
}

Tensor Transformer::embed(const Tensor& ids) {
  if (model_.reads_images()) return embed_patches(ids);
  const bool learned = model_.positions == Positions::learned;
  const bool scatter = setup_.sequence_parallel && !learned && model_.token_types == 0 && !tower_;
  Tensor x = eager::embedding(rec_, "embedding", ids, weight("embedding"));
  if (!setup_.whole_vocabulary)
    x = eager::leave_tensor_region(rec_, "embedding", x, scatter);
  else if (scatter)
    x = eager::split_sequence(rec_, "embedding.split", x);
  if (model_.embedding_width > 0) x = linear("embedding.projection", x);
  if (model_.token_types > 0) {
    const Tensor types = eager::embedding(rec_, "token_types", ids, weight("token_types"));
    x = eager::add(rec_, "token_types.add", x, types);
  }
  if (learned) {
    const Tensor positions = eager::embedding(rec_, "positions", position_ids_[slice_], weight("positions"));
    x = eager::add_broadcast(rec_, "positions.add", x, positions);
  }
  if (tower_) x = with_images(x);
  if (setup_.sequence_parallel && !scatter) x = eager::split_sequence(rec_, "embedding.split", x);
  if (model_.norms_embedding()) x = norm("embedding_norm", x);
  x = eager::dropout(rec_, "embedding.dropout", x, setup_.dropout);
  if (model_.has_layer_inputs()) layer_inputs_ = make_layer_inputs(ids, x);
  return x;
}

// Of those kept as their input, or as that and some results.
bool Transformer::is_recomputed(std::int64_t index) const {
  if (setup_.recompute == Recompute::operators) return true;
  if (setup_.recompute != Recompute::full) return false;
  if (setup_.recompute_layers > 0) return index - part_.layers.first < setup_.recompute_layers;
  return (index + 1) % setup_.recompute_every == 0;
}

Tensor Transformer::layer(std::int64_t index, const Tensor& x) {
  LayerInput input{x, bias_, memory_, layer_inputs_, {}, {}, groups_};
  if (model_.residual_group > 0 && index % model_.residual_group == 0) groups_.push_back(x);
  if (const Block block = model_.block_of_all(index); block.shares_keys) {
    input.keys = shared_keys_[block.window > 0 ? 1 : 0].keys;
    input.values = shared_keys_[block.window > 0 ? 1 : 0].values;
  }
  if (!is_recomputed(index)) return layer_result(index, input);
  std::vector<Tensor> inputs;
  std::vector<Tensor LayerInput::*> parts;
  for (Tensor LayerInput::*part : {&LayerInput::x, &LayerInput::bias, &LayerInput::memory, &LayerInput::inputs,
                                   &LayerInput::keys, &LayerInput::values}) {
    if (!(input.*part)) continue;
    inputs.push_back(input.*part);
    parts.push_back(part);
  }
  inputs.insert(inputs.end(), input.groups.begin(), input.groups.end());
  const auto kept =
      setup_.recompute == Recompute::operators ? std::make_shared<KeptResults>() : std::shared_ptr<KeptResults>();
  const auto run = [this, index, parts, kept](const std::vector<Tensor>& again) {
    if (kept) kept->begin(session_.phase() == Phase::recompute);
    KeptResults* outer = std::exchange(rec_.kept, kept.get());
    LayerInput now;
    for (std::size_t i = 0; i < parts.size(); ++i) now.*parts[i] = again[i];
    now.groups.assign(again.begin() + static_cast<std::ptrdiff_t>(parts.size()), again.end());
    Tensor out = layer_result(index, now);
    std::exchange(rec_.kept, outer);
    return out;
  };
  return autograd_.checkpoint(inputs, run, index >= setup_.frozen_layers);
}

Tensor Transformer::layer_result(std::int64_t index, const LayerInput& input) {
  if (has_engine_layers(model_, setup_)) return engine_layer(index, input.x);
  if (model_.streams > 1 || model_.residual_group > 0) return mixture_layer(index, input);
  const std::string prefix = model_.layer_prefix(index);
  const bool before = model_.norms_inputs(), post = model_.norm_placement == NormPlacement::post;
  const Block block = model_.block_of_all(index);
  const bool reads_norm =
      block.mixer != Mixer::none &&
      (model_.is_encoder_layer(index) ? before : model_.norms_attention(index - model_.encoder_layers));
  given_keys_ = {input.keys, input.values};
  std::optional<CapturedScope> scope(std::in_place, session_, captures_mixer(block));
  Tensor branch = reads_norm ? norm(prefix + "attention.norm", input.x) : input.x;
  if (model_.block_layout != BlockLayout::sequential) return parallel_blocks(index, branch, input.x);
  Tensor middle;
  if (block.mixer == Mixer::none) {
    middle = input.x;
  } else if (setup_.recomputes_module("attention")) {
    middle = eager::add(rec_, prefix + "attention.out.residual", input.x, mixed_again(index, branch, input.bias));
  } else if (block.mixer != Mixer::attention && block.mixer != Mixer::delta_rule) {
    middle = add_result(prefix + "attention.out", mixed(index, branch, input.bias), input.x);
  } else {
    branch = attention(index, branch, input.bias);
    middle = add_branch(prefix + "attention.out", branch, input.x);
  }
  branch = {};
  given_keys_ = {};
  if (post) middle = norm(prefix + "attention.norm", middle);
  scope.reset();
  scope.emplace(session_, setup_.captures("mlp") && !block.has_experts());
  if (input.memory) {
    branch = cross_attention(prefix, norm(prefix + "cross_attention.norm", middle), input.memory);
    middle = add_branch(prefix + "cross_attention.out", branch, middle);
    branch = {};
  }
  if (block.feed_forward == FeedForward::none) return middle;
  branch = before ? norm(prefix + "mlp.norm", middle) : middle;
  Tensor out;
  if (block.has_experts()) {
    const char* name = block.feed_forward == FeedForward::both ? "mlp.down" : "mlp.experts";
    branch = feed_forward_result(prefix, block, branch, middle);
    out = add_result(prefix + name, branch, middle);
  } else {
    const auto run = [this, prefix](const std::vector<Tensor>& again) { return feed_forward(prefix, again.front()); };
    branch = setup_.recomputes_module("mlp") ? autograd_.checkpoint({branch}, run, true) : run({branch});
    if (is_t5()) branch = eager::dropout(rec_, prefix + "mlp.dropout", branch, setup_.dropout);
    out = add_branch(prefix + "mlp.down", branch, middle);
  }
  branch = {};
  if (post) out = norm(prefix + "mlp.norm", out);
  return input.inputs ? with_layer_input(index, out, input.inputs) : out;
}

Tensor Transformer::mixed(std::int64_t index, const Tensor& x, const Tensor& bias) {
  const std::string prefix = model_.layer_prefix(index);
  const Mixer mixer = model_.block_of_all(index).mixer;
  if (mixer == Mixer::mamba && model_.mamba.is_first())
    return eager::row_linear(rec_, layer_of(prefix + "mamba.out"), scan_.run(prefix, x));
  if (mixer == Mixer::mamba) return mamba_.run(prefix, x);
  if (mixer == Mixer::convolution)
    return eager::row_linear(rec_, layer_of(prefix + "convolution.out"), convolution_.run(prefix, x));
  const Tensor beside = mixer == Mixer::beside ? mamba_.run(prefix, x) : Tensor();
  const Tensor attended = eager::row_linear(rec_, layer_of(prefix + "attention.out"), attention(index, x, bias));
  return beside ? eager::add(rec_, prefix + "mixers", beside, attended) : attended;
}

// The whole module, run again from its input in the backward.
Tensor Transformer::mixed_again(std::int64_t index, const Tensor& x, const Tensor& bias) {
  std::vector<Tensor> inputs = {x};
  if (bias) inputs.push_back(bias);
  const auto run = [this, index](const std::vector<Tensor>& again) {
    const std::string name = model_.layer_prefix(index) + "attention.out";
    return eager::dropout(rec_, name + ".dropout",
                          mixed(index, again.front(), again.size() > 1 ? again.back() : Tensor()), setup_.dropout);
  };
  return autograd_.checkpoint(inputs, run, true);
}

Tensor Transformer::feed_forward_result(const std::string& prefix, const Block& block, const Tensor& normed,
                                        const Tensor& middle) {
  if (block.feed_forward == FeedForward::both) return dense_beside_experts(prefix, normed, middle);
  const auto run = [this, prefix, block](const std::vector<Tensor>& again) {
    return block.has_experts() ? experts_.run(prefix, again.front()) : feed_forward(prefix, again.front());
  };
  const Tensor inner = setup_.recomputes_module(block.has_experts() ? "moe" : "mlp")
                           ? autograd_.checkpoint({normed}, run, true)
                           : run({normed});
  return block.has_experts() ? inner : eager::row_linear(rec_, layer_of(prefix + "mlp.down"), inner);
}

// LongCat-Flash: both read the same. Gemma 4: experts read the residual stream through a norm of their own, and both
// results are normed before their sum. The router's scales are in its kernels, but for their own gradients.
Tensor Transformer::dense_beside_experts(const std::string& prefix, const Tensor& normed, const Tensor& middle) {
  const Tensor plain = eager::row_linear(rec_, layer_of(prefix + "mlp.down"), feed_forward(prefix, normed));
  const auto run = [this, prefix](const std::vector<Tensor>& again) { return experts_.run(prefix, again.front()); };
  if (!model_.norms_results()) {
    const Tensor given = setup_.recomputes_module("moe") ? autograd_.checkpoint({normed}, run, true) : run({normed});
    return eager::add(rec_, prefix + "mlp.branches", plain, given);
  }
  const Tensor dense = norm(prefix + "mlp.dense_norm", plain);
  const Tensor read = norm(prefix + "mlp.experts_norm", middle);
  Tensor routed = setup_.recomputes_module("moe") ? autograd_.checkpoint({read}, run, true) : run({read});
  std::vector<TrainedParameter*> scales;
  for (const char* name : {"mlp.router.scale", "mlp.router.expert_scales"}) {
    TrainedParameter& each = weight(prefix + name);
    if (each.trains) scales.push_back(&each);
  }
  const std::vector<Tensor> inputs = {routed};
  routed = autograd_.record(std::move(routed), inputs, !scales.empty(), [this, scales](const Tensor& gradient) {
    for (TrainedParameter* const each : scales) {
      Tensor sum =
          session_.empty(each->shape.name + ".grad", gradient.type(), each->shape.elements(), TensorRole::gradient);
      session_.kernel({.name = "scale_gradient", .reads = {gradient}, .writes = {sum}});
      eager::accumulate(rec_, *each, std::move(sum));
    }
    return std::vector<Tensor>{gradient};
  });
  return eager::add(rec_, prefix + "mlp.branches", dense, norm(prefix + "mlp.experts.post_norm", routed));
}

// x + attention(normed) + feed_forward(normed or normed otherwise).
Tensor Transformer::parallel_blocks(std::int64_t index, const Tensor& normed, const Tensor& x) {
  const std::string prefix = model_.layer_prefix(index);
  Tensor first = eager::row_linear(rec_, layer_of(prefix + "attention.out"), attention(index, normed, {}));
  first = eager::dropout(rec_, prefix + "attention.out.dropout", first, setup_.dropout);
  const bool shared = model_.block_layout == BlockLayout::parallel_one_norm;
  const Tensor inner = feed_forward(prefix, shared ? normed : norm(prefix + "mlp.norm", x));
  Tensor second = eager::row_linear(rec_, layer_of(prefix + "mlp.down"), inner);
  second = eager::dropout(rec_, prefix + "mlp.down.dropout", second, setup_.dropout);
  return eager::add(rec_, prefix + "residual", eager::add(rec_, prefix + "branches", first, second), x);
}

// x + dropout(branch), the branch normed first where the model does that.
Tensor Transformer::add_result(const std::string& name, Tensor branch, const Tensor& x) {
  const std::string block = name.substr(0, name.rfind('.'));
  if (model_.norm_placement == NormPlacement::sandwich) branch = norm(block + ".post_norm", branch);
  if (model_.norm_placement == NormPlacement::branch) branch = norm(block + ".norm", branch);
  branch = eager::dropout(rec_, name + ".dropout", branch, setup_.dropout);
  return eager::add(rec_, name + ".residual", x, branch);
}

Tensor Transformer::add_branch(const std::string& name, const Tensor& inner, const Tensor& x) {
  eager::Linear layer = layer_of(name);
  if (model_.norms_results()) return add_result(name, eager::row_linear(rec_, layer, inner), x);
  if (is_megatron()) {
    TrainedParameter* late_bias = std::exchange(layer.bias, nullptr);
    const Tensor branch = eager::row_linear(rec_, layer, inner);
    if (late_bias == nullptr && setup_.dropout == 0) return eager::add(rec_, name + ".residual", x, branch);
    return eager::bias_dropout_add(rec_, name + ".residual", branch, late_bias, x, setup_.dropout);
  }
  Tensor branch = eager::row_linear(rec_, layer, inner);
  branch = eager::dropout(rec_, name + ".dropout", branch, setup_.dropout);
  return eager::add(rec_, name + ".residual", x, branch);
}

std::vector<Tensor> Transformer::projections(const std::string& prefix, const Tensor& x, const Block& block) {
  const bool rotates = model_.positions == Positions::rotary;
  if (has(prefix + "attention.qkv")) {
    std::vector<Tensor> packed = eager::column_linears(rec_, {layer_of(prefix + "attention.qkv")}, x);
    if (rotates) packed[0] = rotary(prefix + "attention.rotary", packed[0], block.head_dim);
    return packed;
  }
  if (block.shares_keys) {
    Tensor q = linear(prefix + "attention.q", x);
    if (model_.query_key_norm) q = norm(prefix + "attention.q_norm", q);
    if (rotates) q = rotary(prefix + "attention.q_rotary", q, block.head_dim);
    return {q, given_keys_.keys, given_keys_.values};
  }
  std::vector<eager::Linear> layers = {layer_of(prefix + "attention.q"), layer_of(prefix + "attention.k")};
  if (!block.keys_as_values) layers.push_back(layer_of(prefix + "attention.v"));
  if (model_.attention_gate || model_.head_gate) layers.push_back(layer_of(prefix + "attention.gate"));
  std::vector<Tensor> qkv = eager::column_linears(rec_, layers, x);
  if (block.keys_as_values) qkv.insert(qkv.begin() + 2, Tensor(qkv[1]));
  if (model_.wide_query_key_norm && model_.norm == NormKind::rms_norm && setup_.tensor_parallel > 1) {
    qkv[0] = eager::split_rms_norm(rec_, prefix + "attention.q_norm", qkv[0], weight(prefix + "attention.q_norm"));
    qkv[1] = eager::split_rms_norm(rec_, prefix + "attention.k_norm", qkv[1], weight(prefix + "attention.k_norm"));
  } else if (model_.query_key_norm || model_.wide_query_key_norm) {
    qkv[0] = norm(prefix + "attention.q_norm", qkv[0]);
    qkv[1] = norm(prefix + "attention.k_norm", qkv[1]);
  }
  if (setup_.traits().regroups_heads) regroup(prefix + "attention", qkv);
  if (rotates) {
    qkv[0] = rotary(prefix + "attention.q_rotary", qkv[0], block.head_dim);
    qkv[1] = rotary(prefix + "attention.k_rotary", qkv[1], block.head_dim);
  }
  if (model_.shares_keys() && session_.phase() == Phase::forward)
    shared_keys_[block.window > 0 ? 1 : 0] = {qkv[1], qkv[2]};
  return qkv;
}

// nanotron puts keys and values behind each other, apart from the packed projections, of which its queries are a view.
void Transformer::regroup(const std::string& name, std::vector<Tensor>& qkv) {
  const Tensor packed_k = qkv[1], packed_v = qkv[2];
  qkv[1] = eager::copied(rec_, name + ".k_regrouped", packed_k);
  qkv[2] = eager::copied(rec_, name + ".v_regrouped", packed_v);
  const std::vector<Tensor> inputs = {qkv[0]};
  qkv[0] = autograd_.record(std::move(qkv[0]), inputs, false,
                            [packed_k, packed_v](const Tensor& gradient) { return std::vector<Tensor>{gradient}; });
}

Tensor Transformer::attention(std::int64_t index, const Tensor& x, const Tensor& bias) {
  const std::string prefix = model_.layer_prefix(index);
  Block block = model_.block_of_all(index);
  if (block.mixer == Mixer::delta_rule) return linear_.run(prefix, x);
  if (model_.has_compressed()) return compressed_.run(prefix, block, x, angles_[slice_]);
  if (model_.has_latent()) {
    Tensor attended = latent_.run(prefix, x, angles_[slice_]);
    if (!model_.attention_gate) return attended;
    return eager::gated(rec_, prefix + "attention.gated", attended,
                        eager::column_linears(rec_, {layer_of(prefix + "attention.gate")}, x)[0]);
  }
  const Tensor chosen = block.chooses ? index_.choose(prefix + "attention", x, {}) : Tensor();
  if (block.chooses) block.window = model_.indexer.keys;
  std::vector<Tensor> qkv = projections(prefix, x, block);
  Tensor gate;
  if (model_.attention_gate || model_.head_gate) {
    gate = std::move(qkv.back());
    qkv.pop_back();
  }
  Tensor result =
      with_sinks(prefix, attend(prefix + "attention.core",
                                {.qkv = std::move(qkv),
                                 .bias = bias,
                                 .causal = model_.mask == AttentionMask::causal && !model_.is_encoder_layer(index),
                                 .block = block}));
  result = index_.learn(prefix + "attention", std::move(result), chosen);
  return gate ? eager::gated(rec_, prefix + "attention.gated", result, gate) : result;
}

// Learned numbers beside the scores of each row: in attention's kernels as they are, but for their own gradient.
Tensor Transformer::with_sinks(const std::string& prefix, Tensor result) {
  if (!has(prefix + "attention.sinks")) return result;
  TrainedParameter& sinks = weight(prefix + "attention.sinks");
  const std::vector<Tensor> inputs = {result};
  return autograd_.record(std::move(result), inputs, sinks.trains, [this, &sinks](const Tensor& gradient) {
    if (!sinks.trains) return std::vector<Tensor>{gradient};
    Tensor sum =
        session_.empty(sinks.shape.name + ".grad", gradient.type(), sinks.shape.elements(), TensorRole::gradient);
    session_.kernel({.name = "sink_gradient", .reads = {gradient}, .writes = {sum}});
    eager::accumulate(rec_, sinks, std::move(sum));
    return std::vector<Tensor>{gradient};
  });
}

Tensor Transformer::attend(const std::string& name, const CoreInput& input) {
  if (!setup_.recomputes_module("core_attn")) return core(name, input);
  std::vector<Tensor> inputs = input.qkv;
  if (input.bias) inputs.push_back(input.bias);
  const CoreInput rest{.causal = input.causal, .block = input.block};
  const auto run = [this, name, rest, parts = input.qkv.size()](const std::vector<Tensor>& again) {
    CoreInput now = rest;
    now.qkv.assign(again.begin(), again.begin() + static_cast<std::ptrdiff_t>(parts));
    if (again.size() > parts) now.bias = again.back();
    return core(name, now);
  };
  return autograd_.checkpoint(inputs, run, false);
}

Tensor Transformer::core(const std::string& name, const CoreInput& input) {
  if (setup_.fp32_unpacked && input.qkv[0].type() != type_) {  // flash attention's kernels take 16 bits
    CoreInput narrow = input;
    for (Tensor& part : narrow.qkv) part = eager::recorded_cast(rec_, name + ".in", part, type_);
    return core(name, narrow);
  }
  const auto slice = static_cast<std::int64_t>(slice_);
  const Block& block = input.block;
  const std::int64_t parts = model_.is_tower() && block.window > 0
                                 ? std::max<std::int64_t>(1, setup_.slice_tokens() / block.window)  // apart
                                 : setup_.documents();
  const AttentionShape shape{.batch = setup_.micro_batch * parts,
                             .heads = block.heads / setup_.tensor_parallel,
                             .kv_heads = setup_.local_key_heads(block.kv_heads),
                             .sequence = setup_.slice_tokens() / parts,
                             .head_dim = block.head_dim,
                             .causal = input.causal,
                             .keys = setup_.sequence_slices > 1 ? (slice + 1) * setup_.slice_tokens() : 0,
                             .value_dim = block.value_dim == block.head_dim ? 0 : block.value_dim,
                             .window = block.window < setup_.document() && !model_.is_tower() ? block.window : 0,
                             .dropout = attention_dropout() > 0,
                             .kernel = setup_.attention_kernel};
  if (setup_.sequence_slices > 1)
    return eager::flash_slice(rec_, name, input.qkv, shape, setup_.sequence, sliced_keys_[name]);
  if (setup_.context_parallel > 1)
    return setup_.context_exchange == ContextExchange::all_gather
               ? eager::gathered_attention(rec_, name, input.qkv, shape)
               : eager::ring_attention(rec_, name, input.qkv, shape);
  if (setup_.traits().repeats_shared_heads && setup_.flash_attention && setup_.fused_kernels && input.qkv.size() == 3 &&
      shape.kv_heads < shape.heads && (block.window > 0 || model_.experts.count > 0))
    return eager::repeating_flash_attention(rec_, name, input.qkv, shape);
  if (!setup_.flash_attention)
    return eager::plain_attention(rec_, name, input.qkv, shape, attention_dropout(), input.bias,
                                  model_.attention_softcap > 0);
  // transformers since 4.50 leaves shared keys and values to PyTorch's attention, which takes heads where they are.
  return setup_.fused_kernels || setup_.traits().strided_heads || input.bias || input.qkv.size() != 3
             ? eager::flash_attention(rec_, name, input.qkv, shape, input.bias)
             : eager::copying_flash_attention(rec_, name, input.qkv, shape);
}

double Transformer::attention_dropout() const {
  return setup_.dropout == model_.dropout ? model_.attention_dropout : setup_.dropout;
}

Tensor Transformer::feed_forward(const std::string& prefix, const Tensor& x) {
  const bool gelu = model_.activation == Activation::gelu_gated;
  const eager::Pointwise gate_function = gelu ? eager::Pointwise::gelu : eager::Pointwise::silu;
  const bool is_fused = setup_.compile || setup_.fused_gate;
  if (has(prefix + "mlp.gate_up"))
    return eager::swiglu(rec_, prefix + "mlp.swiglu",
                         eager::column_linears(rec_, {layer_of(prefix + "mlp.gate_up")}, x)[0]);
  if (model_.gated() && setup_.tensor_parallel == 1 && !has_narrow_products(setup_.precision)) {
    Tensor gate = linear(prefix + "mlp.gate", x);
    if (is_fused) return eager::compiled_gate(rec_, prefix + "mlp.product", gate, linear(prefix + "mlp.up", x));
    gate = activated(prefix + (gelu ? "mlp.gelu" : "mlp.silu"), gate, gate_function);
    return eager::multiply(rec_, prefix + "mlp.product", gate, linear(prefix + "mlp.up", x));
  }
  if (model_.gated()) {
    std::vector<Tensor> both =
        eager::column_linears(rec_, {layer_of(prefix + "mlp.gate"), layer_of(prefix + "mlp.up")}, x);
    if (is_fused) return eager::compiled_gate(rec_, prefix + "mlp.product", both[0], both[1]);
    both[0] = activated(prefix + (gelu ? "mlp.gelu" : "mlp.silu"), both[0], gate_function);
    return eager::multiply(rec_, prefix + "mlp.product", both[0], both[1]);
  }
  const bool relu = model_.activation == Activation::relu;
  eager::Linear up = layer_of(prefix + "mlp.up");
  if (model_.activation == Activation::xielu)
    return sloped(prefix + "mlp.slopes", eager::column_linears(rec_, {up}, x)[0]);
  if (model_.activation == Activation::relu_squared)
    return eager::pointwise(rec_, prefix + "mlp.relu_squared", eager::column_linears(rec_, {up}, x)[0],
                            eager::Pointwise::relu_squared);
  if (is_megatron() && !relu && up.bias != nullptr) {
    TrainedParameter& late_bias = *std::exchange(up.bias, nullptr);
    return eager::bias_gelu(rec_, prefix + "mlp.gelu", eager::column_linears(rec_, {up}, x)[0], late_bias);
  }
  return activated(prefix + (relu ? "mlp.relu" : "mlp.gelu"), eager::column_linears(rec_, {up}, x)[0],
                   relu ? eager::Pointwise::relu : eager::Pointwise::gelu);
}

Tensor Transformer::sloped(const std::string& name, const Tensor& x) {
  TrainedParameter& slopes = weight(name);
  Tensor out = session_.empty(name + ".out", x.type(), x.elements(), TensorRole::activation);
  session_.kernel({.name = "xielu", .reads = {x, slopes.value}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, slopes.trains, [this, name, x, &slopes](const Tensor& gradient) {
    Tensor back = session_.empty(name + ".in.grad", x.type(), x.elements(), TensorRole::temporary);
    Tensor sum = session_.empty(slopes.shape.name + ".grad", x.type(), slopes.shape.elements(), TensorRole::gradient);
    session_.kernel({.name = "xielu_backward", .reads = {gradient, x, slopes.value}, .writes = {back, sum}});
    if (slopes.trains) eager::accumulate(rec_, slopes, std::move(sum));
    return std::vector<Tensor>{std::move(back)};
  });
}

Tensor Transformer::activated(const std::string& name, const Tensor& x, eager::Pointwise function) {
  return function == eager::Pointwise::gelu && model_.gelu_new && !setup_.fused_kernels
             ? eager::gelu_new(rec_, name, x)
             : eager::pointwise(rec_, name, x, function);
}

Tensor Transformer::head_loss(const Tensor& x, const Tensor& labels) {
  TrainedParameter& matrix = weight(model_.tied_embeddings ? "embedding" : "head");
  const bool scales = is_t5() && model_.tied_embeddings;
  if (has_engine_layers(model_, setup_)) return engine_loss({"head", &matrix, bias("head")}, x, labels);
  if (setup_.loss == LossForm::chunked)
    return eager::chunked_cross_entropy(rec_, "loss", {"head", &matrix, bias("head")},
                                        scales ? eager::scale(rec_, "head.scale", x) : x, labels);
  Tensor logits = eager::column_linears(rec_, {{"head", &matrix, bias("head")}},
                                        scales ? eager::scale(rec_, "head.scale", x) : x)[0];
  if (setup_.whole_vocabulary) logits = eager::gather_columns(rec_, "logits", logits);
  if (model_.logit_softcap > 0) logits = soft_cap("logits", logits, session_, autograd_);
  if (setup_.traits().widens_split_logits) logits = eager::widened(rec_, "logits", logits);
  if (has_split_loss(setup_)) return eager::split_cross_entropy(rec_, "loss", logits, labels);
  if (setup_.loss_metrics > 0) judged_ = {logits, labels};
  hold(logits);
  if (setup_.compares_answers()) return eager::preference_loss(rec_, "loss", logits, labels);
  Tensor loss = eager::cross_entropy(rec_, "loss", logits, labels);
  if (keeps_logits_)
    kept_logits_ = eager::widened(rec_, "logits", logits);
  else
    eager::widen_result(rec_, "logits", logits);
  return loss;
}

void Transformer::hold(const Tensor& logits) {
  if (setup_.holds_logits && autograd_.is_recording()) held_logits_ = logits;
}

void Transformer::end_micro_batch() {
  held_logits_ = {};
  if (judged_.empty()) return;
  for (std::int64_t i = 0; i < setup_.loss_metrics; ++i) eager::loss_metric(rec_, "metric", judged_[0], judged_[1]);
  judged_.clear();
}

Tensor Transformer::classifier_loss(const Tensor& x, const Tensor& labels) {
  const Tensor first = eager::first_tokens(rec_, "classifier.first", x, setup_.sequence);
  return eager::cross_entropy(rec_, "loss", linear("classifier", first), labels);
}

Tensor Transformer::pretraining_loss(const Tensor& x, const Tensor& labels) {
  Tensor inner = linear("mlm.transform", x);
  inner = eager::pointwise(rec_, "mlm.gelu", inner, eager::Pointwise::gelu);
  inner = norm("mlm.norm", inner);
  const Tensor logits = eager::column_linears(rec_, {{"mlm.decoder", &weight("embedding"), bias("mlm")}}, inner)[0];
  hold(logits);
  Tensor token_loss = is_megatron() || setup_.tensor_parallel > 1
                          ? eager::split_cross_entropy(rec_, "mlm.loss", logits, labels)
                          : eager::cross_entropy(rec_, "mlm.loss", logits, labels);
  if (model_.masked_lm_head) return token_loss;
  Tensor pooled = eager::first_tokens(rec_, "pooler.first", x, setup_.sequence);
  pooled = linear("pooler", pooled);
  pooled = eager::pointwise(rec_, "pooler.tanh", pooled, eager::Pointwise::tanh);
  pooled = linear("nsp", pooled);
  const Tensor sentence_loss = eager::cross_entropy(rec_, "nsp.loss", pooled, next_sentence_labels_);
  return eager::add(rec_, "loss", token_loss, sentence_loss);
}

}  // namespace spillway::models
