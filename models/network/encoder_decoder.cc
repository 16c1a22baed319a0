// What Transformer does for an encoder beside the decoder, in the order of Hugging Face's T5 (transformers,
// modeling_t5.py; Raffel et al. 2020, arXiv:1910.10683, section 2.1).
//
// The relative bias of a stack [heads, s, s] is made once, before its first layer, and added to the scores of all its
// self-attentions; its gradients meet there again. Deviation: padding is part of the masked softmax and not added to
// the bias, which so has no batch dimension.
#include <utility>

#include "base/input_error.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"
#include "models/network/transformer.h"

namespace spillway::models {

Tensor Transformer::leave_encoder(const Tensor& x) {
  session_.set_layer(-1);
  Tensor encoded = norm("encoder.final_norm", x);
  return is_t5() ? eager::dropout(rec_, "encoder.dropout", encoded, setup_.dropout) : encoded;
}

Tensor Transformer::enter_decoder(const Tensor& encoded, const Tensor& labels) {
  session_.set_layer(-1);
  memory_ = encoded;
  const Tensor ids = session_.empty("decoder.ids", DataType::int64, labels.elements(), TensorRole::input);
  session_.kernel({.name = "shift_right", .reads = {labels}, .writes = {ids}});
  Tensor x = embed(ids);
  session_.set_layer(model_.encoder_layers);
  return x;
}

// A bucket for each pair of positions, then its row of the table, one number per head. The table is named after the
// first layer of its stack.
void Transformer::make_bias(std::int64_t index) {
  bias_ = {};
  if (model_.positions != Positions::relative_bias) return;
  const std::string name =
      model_.layer_prefix(model_.is_encoder_layer(index) ? 0 : model_.encoder_layers) + "attention.relative_bias";
  if (units_.before) units_.before(index);
  TrainedParameter& table = weight(name);
  const std::int64_t pairs = setup_.sequence * setup_.sequence;
  const Tensor buckets = session_.empty(name + ".buckets", DataType::int64, pairs, TensorRole::activation);
  session_.kernel({.name = "relative_position_buckets", .writes = {buckets}});
  bias_ = eager::embedding(rec_, name, buckets, table);
}

Tensor Transformer::cross_attention(const std::string& prefix, const Tensor& x, const Tensor& memory) {
  const std::string name = prefix + "cross_attention";
  std::vector<Tensor> qkv = eager::column_linears(rec_, {layer_of(name + ".q")}, x);
  for (Tensor& part : eager::column_linears(rec_, {layer_of(name + ".k"), layer_of(name + ".v")}, memory))
    qkv.push_back(std::move(part));
  return attend(name + ".core", {.qkv = std::move(qkv), .bias = {}, .causal = false, .block = model_.block_of_all(0)});
}

}  // namespace spillway::models
