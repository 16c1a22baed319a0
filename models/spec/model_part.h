// The part of a model that one rank holds: some layers, perhaps the embedding, perhaps the head, each split over its
// tensor group.
//
//   split by rows (outputs)       attention.qkv / q / k / v, cross_attention.q / k / v, mlp.up, mlp.gate; with biases
//   split by columns (inputs)     attention.out, cross_attention.out, mlp.down; their biases are whole
//   split by columns (heads)      attention.relative_bias
//   split by rows (heads)         attention.q_norm, k_norm over all heads; whole when one norm is shared by the heads
//   latent attention              q_up, kv_up by rows; q_down, kv_down whole
//   delta rule                    like attention; gates by channel: _up by rows, _down whole
//   Mamba-2, short convolutions   everything by rows (heads and groups; channels), but out by columns
//   experts, shared and routed    each expert's width, by rows and columns like mlp; mlp.router whole
//   split by rows (vocabulary)    embedding, head, mlm; rows are padded to a multiple of t (Megatron-LM: of 128 t)
//   whole                         everything else
//
// The adapters of a matrix W [out, in] are "NAME.lora_a" [rank, in] and "NAME.lora_b" [out, rank], split like it. The
// one that stays whole has gradients that are sums over the tensor group. Each of stacked experts has its own.
//
// Megatron-LM keeps queries, keys and values in one matrix (attention.qkv), likewise gate and up (mlp.gate_up;
// Megatron-core also those of experts). With
// tied embeddings the stage of the head has a copy of the embedding. The first stage of a decoder beside an encoder has
// one too, and one of the learned positions. Each stage of a stack with a relative bias has a copy of its table,
// counted to the first layer there.
#pragma once

#include <vector>

#include "models/spec/model_spec.h"
#include "models/spec/parallel_layout.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

struct ModelPart {
  LayerRange layers;
  bool has_embedding = true, has_head = true;
};

struct LocalParameter {
  Parameter shape;     // of this rank
  bool trains = true;  // else frozen
  BaseWeights storage = BaseWeights::same;
  std::string adapts;  // an adapter's: the matrix that it is added to
  // Its gradient is summed over the tensor group: each rank sees a part of the sequence (sequence parallel), or some of
  // the heads that share a norm.
  bool is_partial_sum = false;
  std::int64_t uses = 1;  // gradients that meet in it in one backward
};

// Whether layers are built from Transformer Engine's modules (Megatron-core). Others under megatron go through the
// layers of 2022: encoders beside decoders, norms elsewhere than before a branch, adapters, slices, ZeRO 3, unfused
// kernels.
bool has_engine_layers(const ModelSpec& model, const TrainingSetup& setup);
// Whether a model's last loss is computed over a split vocabulary, by separate kernels whatever setup.loss says
// (but chunked): Megatron-LM's and nanotron's on any number of GPUs, others' where a tensor group shares it.
bool has_split_loss(const TrainingSetup& setup);
// The form among equal ones that stands for setup.loss: steps are the same where set-ups differ in forms of one result.
LossForm loss_in_effect(const ModelSpec& model, const TrainingSetup& setup);
// Whether experts' gate and up are one matrix, of each.
bool has_merged_experts(const ModelSpec& model, const TrainingSetup& setup);

// In the order of the forward pass, adapters behind the matrix they are added to. `setup` is resolved.
std::vector<LocalParameter> local_parameters(const ModelSpec& model, const TrainingSetup& setup, const ModelPart& part);

}  // namespace spillway::models
