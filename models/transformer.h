// Transformer: a model's parameters on the device and its forward pass, written with EagerOps in the order of a plain
// implementation (Hugging Face's for the Llama kind and BERT, Megatron-LM's core attention for the GPT kind).
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "models/eager_ops.h"
#include "models/model_spec.h"
#include "models/training_setup.h"

namespace spillway {

class Transformer {
 public:
  // Allocates the weights. `setup` is resolved. References must outlive the transformer.
  Transformer(const ModelSpec& model, const TrainingSetup& setup, EagerSession& session, Autograd& autograd);

  // The loss of one micro-batch. ids and labels have one element per token.
  Tensor forward(const Tensor& ids, const Tensor& labels);

  // In the order of parameters(model).
  [[nodiscard]] std::deque<TrainedParameter>& parameters() { return parameters_; }

 private:
  // "NAME.weight" and "NAME.bias"; the latter null where the model has none.
  [[nodiscard]] TrainedParameter& weight(const std::string& name);
  [[nodiscard]] TrainedParameter* bias(const std::string& name);
  Tensor linear(const std::string& name, const Tensor& x) { return ops_.linear(name, x, weight(name), bias(name)); }
  Tensor norm(const std::string& name, const Tensor& x);
  Tensor rotary(const std::string& name, const Tensor& x);

  Tensor embed(const Tensor& ids);
  Tensor layer(std::int64_t index, const Tensor& x);
  Tensor attention(const std::string& prefix, const Tensor& x);
  std::vector<Tensor> projections(const std::string& prefix, const Tensor& x);
  Tensor core(const std::string& name, const std::vector<Tensor>& qkv);
  Tensor feed_forward(const std::string& prefix, const Tensor& x);
  Tensor head_loss(const Tensor& x, const Tensor& labels);
  Tensor pretraining_loss(const Tensor& x, const Tensor& labels);

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  EagerSession& session_;
  Autograd& autograd_;
  EagerOps ops_;
  std::deque<TrainedParameter> parameters_;  // stable addresses: autograd refers to them
  std::map<std::string, TrainedParameter*, std::less<>> by_name_;
  Tensor angles_;  // cosines and sines of rotary positions
  Tensor position_ids_, next_sentence_labels_;
};

}  // namespace spillway
