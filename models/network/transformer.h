// Transformer: a model's parameters on the device and its forward pass, written with the operators of eager_*.h in the
// order of a plain implementation. That is Hugging Face's for the Llama kind and BERT, Megatron-LM's core attention for
// the GPT kind.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/network/compressed_attention.h"
#include "models/network/eager_attention.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"
#include "models/network/eager_recorder.h"
#include "models/network/fp8_scaling.h"
#include "models/network/linear_attention.h"
#include "models/network/mamba_block.h"
#include "models/network/mla_attention.h"
#include "models/network/moe_block.h"
#include "models/network/selective_scan.h"
#include "models/network/short_convolution.h"
#include "models/network/te_ops.h"
#include "models/spec/model_part.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

struct VisionTower;

class Transformer {
 public:
  // The transformer reports which layer's weights it is about to use and when it is done with them (ZeRO stage 2, 3).
  // It does so forwards and, from nodes of the graph, backwards. layer -1: what lies outside the layers.
  struct Units {
    std::function<void(std::int64_t layer)> before, after;                    // forwards
    std::function<void(std::int64_t layer)> before_backward, after_backward;  // backwards
    std::function<void()> before_head;  // forwards, of what comes behind the layers
  };

  // Allocates the weights of the part. `setup` is resolved; `communication` null on a single GPU. References must
  // outlive the transformer. `table`: another part's embedding, to be the tied head; null: a separate copy. `among`:
  // the parameters that its own are added to (a tower's); null: it has them itself.
  Transformer(const ModelSpec& model, const TrainingSetup& setup, const ModelPart& part, EagerSession& session,
              Autograd& autograd, Communication* communication, TrainedParameter* table = nullptr,
              std::deque<TrainedParameter>* among = nullptr);
  ~Transformer();

  void set_units(Units units);
  // With Megatron-core: before the first forward.
  void set_workspaces(Workspaces* workspaces) { rec_.workspaces = workspaces; }
  // Megatron-LM alone has one. To be called before the first forward.
  void set_gather_buffer(const Tensor& buffer) { rec_.gather_buffer = buffer; }
  // Rotary tables, which are made in the first forward.
  [[nodiscard]] const std::vector<Tensor>& tables() const { return angles_; }

  // How experts' rows are drawn, before the first forward; of which micro-batch or slice, before each.
  void set_expert_load(const ExpertLoad& load) { experts_.set_load(load); }
  void set_expert_pass(std::int64_t pass) { experts_.set_pass(pass); }

  // The part of each sequence that the next forward is about: slice 0 .. sequence_slices - 1, first tokens first.
  // Backwards come in the opposite order, all of them before the next micro-batch's forward.
  void set_slice(std::int64_t slice) { slice_ = static_cast<std::size_t>(slice); }

  // The forward of one micro-batch, or of the slice at hand. `input`: token ids for the part with the embedding, else
  // the stage before's result. The loss from the part with the head, else the residual stream. ids and labels have one
  // element per token. With an encoder, `input` is what it reads, and the decoder reads the labels shifted by one (as
  // many tokens). In stages, the encoder's last gives its result, which is the input of the decoder's first and, as
  // `memory`, goes into all later ones.
  Tensor forward(const Tensor& input, const Tensor& labels, const Tensor& memory = {});

  // From now on the logits of each forward stay in fp32 until they are taken. Needs a language-model head with
  // the whole vocabulary.
  void keep_logits() { keeps_logits_ = true; }
  Tensor take_logits() { return std::exchange(kept_logits_, {}); }

  // After the backward: TrainingSetup::loss_metrics of the latest forward, and an end to what was held of it.
  void end_micro_batch();

  [[nodiscard]] DataType type() const { return type_; }  // of weights and the residual stream
  // A micro-batch's input: token ids, or images cut into patches, [patches, values].
  Tensor empty_input();
  Tensor empty_labels();

  // In the order of the forward pass.
  [[nodiscard]] std::deque<TrainedParameter>& parameters() { return parameters_; }
  // The loss of the part with the head, null where it has another one than a language model's.
  [[nodiscard]] TrainedParameter* head_table() {
    const auto found = by_name_.find(model_.tied_embeddings ? "embedding.weight" : "head.weight");
    return found == by_name_.end() ? nullptr : found->second;
  }
  // Elements of the residual stream that this rank passes on.
  [[nodiscard]] std::int64_t stream_elements() const;

 private:
  // A vision tower is another transformer, which runs before the text's first layer. Its parameters are among the
  // text's. Units of what is sharded by layer count its layers down from -2 to the first.
  [[nodiscard]] std::int64_t unit_of(std::int64_t layer) const {
    return model_.is_tower() && layer >= 0 ? layer - model_.layers - 1 : layer;
  }
  Tensor with_images(const Tensor& x);                    // sets taps_
  Tensor with_taps(std::int64_t index, const Tensor& x);  // a layer's result: takes a token, or leaves some
  Tensor project(const std::string& name, const Tensor& x, bool is_tap);
  // Its value, or its shard; packed values with their scales.
  void allocate_weight(TrainedParameter& parameter, bool is_adapter);
  // "NAME.weight" and "NAME.bias"; the latter null where the model has none.
  [[nodiscard]] TrainedParameter& weight(const std::string& name) { return by_name_.weight(name); }
  [[nodiscard]] TrainedParameter* bias(const std::string& name) { return by_name_.bias(name); }
  [[nodiscard]] eager::Linear layer_of(const std::string& name) { return {name, &weight(name), bias(name)}; }
  // A layer that every rank of a tensor group has whole.
  Tensor linear(const std::string& name, const Tensor& x) {
    return eager::linear(rec_, {name, &weight(name), bias(name)}, x);
  }
  [[nodiscard]] bool has(const std::string& name) const { return by_name_.find(name + ".weight") != by_name_.end(); }
  [[nodiscard]] bool is_t5() const { return model_.has_encoder() && model_.positions == Positions::relative_bias; }
  [[nodiscard]] bool is_megatron() const { return setup_.traits().megatron; }
  Tensor norm(const std::string& name, const Tensor& x);
  Tensor rotary(const std::string& name, const Tensor& x, std::int64_t head_dim);

  Tensor embed(const Tensor& ids);
  // A decoder that attends to an encoder (T5).
  Tensor leave_encoder(const Tensor& x);                              // its result
  Tensor enter_decoder(const Tensor& encoded, const Tensor& labels);  // sets memory_; the decoder's stream
  void make_bias(std::int64_t index);                                 // sets bias_, that of the stack of this layer
  Tensor cross_attention(const std::string& prefix, const Tensor& x, const Tensor& memory);
  [[nodiscard]] bool is_recomputed(std::int64_t index) const;
  Tensor layer(std::int64_t index, const Tensor& x);
  Tensor layer_unit(std::int64_t index, const Tensor& x);
  // x + dropout(branch), the branch made by the row-split layer `name` from `inner`.
  Tensor add_branch(const std::string& name, const Tensor& inner, const Tensor& x);
  // A layer's input: the residual stream, its stack's bias, what the encoder gave (both empty where there is none).
  struct LayerInput {
    Tensor x, bias, memory, inputs, keys, values;
    std::vector<Tensor> groups;  // results of earlier groups of layers (residual_group)
  };
  Tensor layer_result(std::int64_t index, const LayerInput& input);
  // Inputs of their own for all layers (layer_inputs.cc): what the layers read of it, and a layer's branch of it.
  Tensor make_layer_inputs(const Tensor& ids, const Tensor& x);
  Tensor with_layer_input(std::int64_t index, const Tensor& x, const Tensor& inputs);
  // Layers of Transformer Engine (te_layer.cc).
  [[nodiscard]] bool captures_mixer(const Block& block) const {
    return setup_.captures(block.mixer == Mixer::mamba ? "mamba" : "attn");
  }
  Tensor engine_layer(std::int64_t index, const Tensor& x);
  Tensor without_norm(const std::string& name, const Tensor& normed, const Tensor& x, const Tensor& result);
  Tensor engine_branch(const std::string& name, const Tensor& inner, bool keeps_input = false);
  Tensor engine_add(const std::string& name, const Tensor& branch, const Tensor& x);
  Tensor engine_attention(std::int64_t index, const Tensor& x);
  Tensor engine_loss(const eager::Linear& head, const Tensor& x, const Tensor& labels);
  Tensor engine_feed_forward(const std::string& prefix, const Tensor& x);
  [[nodiscard]] eager::NormedLinear normed(const std::string& norm, const std::string& layer, bool with_bias);
  Tensor attention(std::int64_t index, const Tensor& x, const Tensor& bias);  // without the output projection
  // Multi-token prediction (mtp.cc): losses of all depths and the head's own.
  Tensor mtp_loss(const Tensor& x, const Tensor& labels);
  Tensor joined(const std::string& prefix, const Tensor& hidden, const Tensor& embedded);
  // Branches that read and write mixtures of residual streams, or of earlier groups' results (mixtures.cc).
  struct Mixture {
    Tensor read, shares;
  };
  Tensor spread_streams(const Tensor& x);
  Mixture read_streams(const std::string& name, const Tensor& x, std::int64_t shares);
  Tensor write_streams(const std::string& name, const Tensor& x, const Tensor& result, const Tensor& shares);
  Tensor read_groups(const std::string& name, const std::vector<Tensor>& groups, const Tensor& x);
  Tensor mixture_layer(std::int64_t index, const LayerInput& input);
  // A dense block, experts or both, with the last projection and without the residual.
  Tensor feed_forward_result(const std::string& prefix, const Block& block, const Tensor& normed, const Tensor& middle);
  // The result of the layer's mixer, with its output projection and without the residual.
  Tensor mixed(std::int64_t index, const Tensor& x, const Tensor& bias);
  Tensor dense_beside_experts(const std::string& prefix, const Tensor& normed, const Tensor& middle);
  void regroup(const std::string& name, std::vector<Tensor>& qkv);
  std::vector<Tensor> projections(const std::string& prefix, const Tensor& x, const Block& block);
  struct CoreInput {
    std::vector<Tensor> qkv;
    Tensor bias;
    bool causal = true;
    Block block;
  };
  Tensor attend(const std::string& name, const CoreInput& input);  // recomputed later, if the set-up says so
  Tensor core(const std::string& name, const CoreInput& input);
  Tensor with_sinks(const std::string& prefix, Tensor result);
  // The activation with learned slopes (xIELU).
  Tensor sloped(const std::string& name, const Tensor& x);
  Tensor mixed_again(std::int64_t index, const Tensor& x, const Tensor& bias);
  Tensor feed_forward(const std::string& prefix, const Tensor& x);  // without the last projection
  Tensor activated(const std::string& name, const Tensor& x, eager::Pointwise function);
  [[nodiscard]] double attention_dropout() const;
  Tensor embed_patches(const Tensor& images);
  Tensor parallel_blocks(std::int64_t index, const Tensor& normed, const Tensor& x);
  Tensor add_result(const std::string& name, Tensor branch, const Tensor& x);
  Tensor classifier_loss(const Tensor& x, const Tensor& labels);
  Tensor head_loss(const Tensor& x, const Tensor& labels);
  Tensor pretraining_loss(const Tensor& x, const Tensor& labels);
  void hold(const Tensor& logits);

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const ModelPart part_;
  EagerSession& session_;
  Autograd& autograd_;
  const DataType type_;
  EagerRecorder rec_;
  MoeBlock experts_;
  LatentAttentionBlock latent_;
  CompressedAttentionBlock compressed_;
  SparseIndex index_;  // of keys that have heads
  LinearAttentionBlock linear_;
  MambaBlock mamba_;
  SelectiveScanBlock scan_;
  ShortConvolutionBlock convolution_;
  std::deque<TrainedParameter> own_parameters_;  // stable addresses: autograd refers to them
  std::deque<TrainedParameter>& parameters_;
  ParametersByName by_name_;
  std::vector<Tensor> angles_;                            // by slice: cosines and sines of rotary positions
  std::map<std::int64_t, Tensor> other_angles_;           // of heads of other widths, by these
  std::vector<Tensor> position_ids_;                      // by slice
  std::map<std::string, eager::SlicedKeys> sliced_keys_;  // by the name of the attention
  std::size_t slice_ = 0;
  std::unique_ptr<VisionTower> tower_;  // null: none runs
  std::vector<Tensor> taps_;            // tokens that the first layers' results get (Projector::taps)
  Tensor next_sentence_labels_;
  Tensor bias_, memory_;        // of the micro-batch and the stack at hand
  Tensor layer_inputs_;         // of all layers
  std::vector<Tensor> groups_;  // results of groups of layers so far
  struct Keys {
    Tensor keys, values;
  };
  Keys shared_keys_[2];  // of the last layer that made them, without and with a window
  Keys given_keys_;      // to the layer at hand
  std::vector<Tensor> buffers_;
  std::vector<Tensor> judged_;  // logits and labels that metrics will read
  Tensor held_logits_;          // TrainingSetup::holds_logits
  bool keeps_logits_ = false;
  Tensor kept_logits_;
  Units units_;
  std::optional<Fp8Scaling> scaling_;
};

}  // namespace spillway::models
