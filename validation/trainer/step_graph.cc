#include "validation/trainer/step_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/input_error.h"

namespace spillway::validation {
namespace {

using Id = std::uint32_t;

class GraphBuilder {
 public:
  explicit GraphBuilder(const TrainerModel& model) : model_(model), tokens_(model.tokens()), hidden_(model.hidden) {
    graph_.model = model;
  }

  StepGraph build() {
    graph_.tokens = tensor("tokens", tokens_, ElementType::i32, TensorRole::input, true);
    graph_.targets = tensor("targets", tokens_, ElementType::i32, TensorRole::input, true);
    make_parameters();
    Id x = embed();
    std::vector<Layer> layers(static_cast<std::size_t>(model_.layers));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layer_ = static_cast<std::uint16_t>(l);
      x = forward_layer(layers[l], weights_[l], x);
    }
    layer_ = no_index16;
    const Norm last = norm("head.norm", x, final_norm_);
    const Id logits = linear("head.logits", last.out, head_, model_.vocabulary);
    graph_.loss = tensor("loss", 1, ElementType::f32, TensorRole::buffer, true);  // read when the step has ended
    const Id denominators = tensor("head.log_denominator", tokens_, ElementType::f32, TensorRole::activation);
    call(TrainerKernel::cross_entropy, "loss", {logits, graph_.targets}, {graph_.loss, denominators}, tokens_,
         model_.vocabulary);
    phase_ = Phase::backward;
    const Id d_logits = like(logits, "head.logits");
    call(TrainerKernel::cross_entropy_backward, "head.d_logits", {logits, graph_.targets, denominators}, {d_logits},
         tokens_, model_.vocabulary);
    Id d_x = linear_backward("head", d_logits, last.out, head_, model_.vocabulary);
    d_x = norm_backward("head.norm", d_x, last, final_norm_);
    for (std::size_t l = layers.size(); l-- > 0;) {
      layer_ = static_cast<std::uint16_t>(l);
      d_x = backward_layer(layers[l], weights_[l], d_x);
    }
    layer_ = no_index16;
    embed_backward(d_x);
    optimize();
    for (std::size_t i = 0; i < graph_.calls.size(); ++i) {
      const bool fresh = graph_.call_by_name.emplace(graph_.calls[i].name, i).second;
      SPILLWAY_ASSERT(fresh);
    }
    return std::move(graph_);
  }

 private:
  struct Linear {
    std::size_t weight = 0;           // parameter: inputs x outputs
    std::optional<std::size_t> bias;  // parameter
    std::int64_t inputs = 0;
  };
  struct NormWeights {
    std::size_t weight = 0, bias = 0;
  };
  struct LayerWeights {
    NormWeights attention_norm, mlp_norm;
    Linear qkv, projection, up, down;
  };
  struct Norm {
    Id in = 0, out = 0, mean = 0, inverse = 0;
  };
  struct Layer {
    Norm attention_norm, mlp_norm;
    Id qkv = 0, attention = 0, denominators = 0, up = 0, activated = 0;
  };

  Id tensor(const std::string& name, std::int64_t elements, ElementType type, TensorRole role,
            bool persistent = false) {
    graph_.tensors.push_back({name, elements, type, role, persistent});
    return static_cast<Id>(graph_.tensors.size() - 1);
  }
  Id activation(const std::string& name, std::int64_t columns) {
    return tensor(name, tokens_ * columns, model_.type, TensorRole::activation);
  }
  // The gradient of `value`, temporary: it goes when the backward has passed.
  Id like(Id value, const std::string& name) {
    return tensor("d_" + name, graph_.tensors[value].elements, model_.type, TensorRole::temporary);
  }

  KernelCall& call(TrainerKernel kernel, const std::string& name, std::vector<Id> reads, std::vector<Id> writes,
                   std::int64_t rows, std::int64_t columns) {
    KernelCall added;
    added.kernel = kernel;
    added.name = std::string(to_string(phase_)) + " " + name;
    added.phase = phase_;
    added.layer = layer_;
    added.reads = std::move(reads);
    added.writes = std::move(writes);
    added.m = rows;
    added.n = columns;
    graph_.calls.push_back(std::move(added));
    return graph_.calls.back();
  }

  std::size_t parameter(const std::string& name, std::int64_t elements, bool is_vector, bool is_norm_weight = false) {
    StepGraph::Parameter made;
    made.weight = tensor(name, elements, model_.type, TensorRole::weight, true);
    made.master = model_.type == ElementType::f32
                      ? made.weight
                      : tensor(name + ".master", elements, ElementType::f32, TensorRole::optimizer_state, true);
    made.first = tensor(name + ".exp_avg", elements, ElementType::f32, TensorRole::optimizer_state, true);
    made.second = tensor(name + ".exp_avg_sq", elements, ElementType::f32, TensorRole::optimizer_state, true);
    made.is_vector = is_vector;
    made.is_norm_weight = is_norm_weight;
    graph_.parameters.push_back(made);
    return graph_.parameters.size() - 1;
  }
  Linear linear_parameters(const std::string& name, std::int64_t inputs, std::int64_t outputs, bool has_bias = true) {
    Linear made{parameter(name + ".weight", inputs * outputs, false), std::nullopt, inputs};
    if (has_bias) made.bias = parameter(name + ".bias", outputs, true);
    return made;
  }
  NormWeights norm_parameters(const std::string& name) {
    return {parameter(name + ".weight", hidden_, true, true), parameter(name + ".bias", hidden_, true)};
  }

  void make_parameters() {
    table_ = parameter("embedding.table", model_.vocabulary * hidden_, false);
    positions_ = parameter("embedding.positions", model_.sequence * hidden_, false);
    for (std::int64_t l = 0; l < model_.layers; ++l) {
      const std::string name = fmt::format("layers.{}.", l);
      LayerWeights weights;
      weights.attention_norm = norm_parameters(name + "attention.norm");
      weights.qkv = linear_parameters(name + "attention.qkv", hidden_, 3 * hidden_);
      weights.projection = linear_parameters(name + "attention.projection", hidden_, hidden_);
      weights.mlp_norm = norm_parameters(name + "mlp.norm");
      weights.up = linear_parameters(name + "mlp.up", hidden_, 4 * hidden_);
      weights.down = linear_parameters(name + "mlp.down", 4 * hidden_, hidden_);
      weights_.push_back(weights);
    }
    final_norm_ = norm_parameters("head.norm");
    head_ = linear_parameters("head", hidden_, model_.vocabulary, false);
  }

  [[nodiscard]] Id weight(std::size_t parameter) const { return graph_.parameters[parameter].weight; }
  Id gradient(std::size_t parameter) {
    const Id value = weight(parameter);
    const Id made =
        tensor(graph_.tensors[value].name + ".grad", graph_.tensors[value].elements, model_.type, TensorRole::gradient);
    graph_.parameters[parameter].gradient = made;
    return made;
  }
  [[nodiscard]] std::string prefix() const { return layer_ == no_index16 ? "" : fmt::format("layers.{}.", layer_); }

  // c[m, n] = op(a) op(b) with inner size k.
  KernelCall& gemm(const std::string& name, std::vector<Id> reads, Id out, std::int64_t m, std::int64_t n,
                   std::int64_t k) {
    KernelCall& made = call(TrainerKernel::gemm, name, std::move(reads), {out}, m, n);
    made.k = k;
    made.flops = 2 * m * n * k;
    return made;
  }

  Id linear(const std::string& name, Id in, const Linear& parameters, std::int64_t outputs) {
    const Id out = activation(prefix() + name + ".out", outputs);
    std::vector<Id> reads = {in, weight(parameters.weight)};
    if (parameters.bias) reads.push_back(weight(*parameters.bias));
    gemm(prefix() + name + ".out", std::move(reads), out, tokens_, outputs, parameters.inputs).has_bias =
        parameters.bias.has_value();
    return out;
  }

  Id linear_backward(const std::string& name, Id d_out, Id in, const Linear& parameters, std::int64_t outputs) {
    const Id d_in = like(in, prefix() + name + ".in");
    gemm(prefix() + name + ".d_in", {d_out, weight(parameters.weight)}, d_in, tokens_, parameters.inputs, outputs)
        .transpose_b = true;
    const Id d_weight = gradient(parameters.weight);
    gemm(prefix() + name + ".d_weight", {in, d_out}, d_weight, parameters.inputs, outputs, tokens_).transpose_a = true;
    if (parameters.bias)
      call(TrainerKernel::bias_gradient, prefix() + name + ".d_bias", {d_out}, {gradient(*parameters.bias)}, tokens_,
           outputs);
    return d_in;
  }

  Norm norm(const std::string& name, Id in, const NormWeights& parameters) {
    Norm made;
    made.in = in;
    made.out = activation(prefix() + name + ".out", hidden_);
    made.mean = tensor(prefix() + name + ".mean", tokens_, ElementType::f32, TensorRole::activation);
    made.inverse = tensor(prefix() + name + ".inverse_deviation", tokens_, ElementType::f32, TensorRole::activation);
    call(TrainerKernel::layer_norm, prefix() + name + ".out", {in, weight(parameters.weight), weight(parameters.bias)},
         {made.out, made.mean, made.inverse}, tokens_, hidden_);
    return made;
  }
  Id norm_backward(const std::string& name, Id d_out, const Norm& forward, const NormWeights& parameters) {
    const Id d_in = like(forward.in, prefix() + name + ".in");
    call(TrainerKernel::layer_norm_backward, prefix() + name + ".d_in",
         {d_out, forward.in, weight(parameters.weight), forward.mean, forward.inverse}, {d_in}, tokens_, hidden_);
    const Id d_weight = gradient(parameters.weight), d_bias = gradient(parameters.bias);
    call(TrainerKernel::layer_norm_gradient, prefix() + name + ".d_weight",
         {d_out, forward.in, forward.mean, forward.inverse}, {d_weight, d_bias}, tokens_, hidden_);
    return d_in;
  }
  Id add(const std::string& name, Id a, Id b, TensorRole role) {
    const Id out = tensor(prefix() + name, tokens_ * hidden_, model_.type, role);
    call(TrainerKernel::add, prefix() + name, {a, b}, {out}, tokens_, hidden_);
    return out;
  }

  Id embed() {
    const Id x = activation("embedding.out", hidden_);
    call(TrainerKernel::embed, "embedding.out", {graph_.tokens, weight(table_), weight(positions_)}, {x}, tokens_,
         hidden_);
    return x;
  }
  void embed_backward(Id d_x) {
    call(TrainerKernel::embed_table_gradient, "embedding.d_table", {graph_.tokens, d_x}, {gradient(table_)}, tokens_,
         hidden_);
    call(TrainerKernel::embed_position_gradient, "embedding.d_positions", {d_x}, {gradient(positions_)}, tokens_,
         hidden_);
  }

  Id forward_layer(Layer& layer, const LayerWeights& weights, Id x) {
    layer.attention_norm = norm("attention.norm", x, weights.attention_norm);
    layer.qkv = linear("attention.qkv", layer.attention_norm.out, weights.qkv, 3 * hidden_);
    layer.attention = activation(prefix() + "attention.core.out", hidden_);
    layer.denominators = tensor(prefix() + "attention.core.log_denominator", tokens_ * model_.heads, ElementType::f32,
                                TensorRole::activation);
    call(TrainerKernel::attention, prefix() + "attention.core.out", {layer.qkv}, {layer.attention, layer.denominators},
         tokens_, hidden_)
        .flops = 2 * tokens_ * model_.sequence * hidden_;  // two products over half of the square
    const Id projected = linear("attention.projection", layer.attention, weights.projection, hidden_);
    const Id middle = add("attention.residual", x, projected, TensorRole::activation);
    layer.mlp_norm = norm("mlp.norm", middle, weights.mlp_norm);
    layer.up = linear("mlp.up", layer.mlp_norm.out, weights.up, 4 * hidden_);
    layer.activated = activation(prefix() + "mlp.activation.out", 4 * hidden_);
    call(TrainerKernel::gelu, prefix() + "mlp.activation.out", {layer.up}, {layer.activated}, tokens_, 4 * hidden_);
    const Id down = linear("mlp.down", layer.activated, weights.down, hidden_);
    return add("mlp.residual", middle, down, TensorRole::activation);
  }

  Id backward_layer(const Layer& layer, const LayerWeights& weights, Id d_out) {
    const Id d_activated = linear_backward("mlp.down", d_out, layer.activated, weights.down, hidden_);
    const Id d_up = like(layer.up, prefix() + "mlp.activation.in");
    call(TrainerKernel::gelu_backward, prefix() + "mlp.activation.d_in", {d_activated, layer.up}, {d_up}, tokens_,
         4 * hidden_);
    const Id d_norm = linear_backward("mlp.up", d_up, layer.mlp_norm.out, weights.up, 4 * hidden_);
    const Id d_branch = norm_backward("mlp.norm", d_norm, layer.mlp_norm, weights.mlp_norm);
    const Id d_middle = add("mlp.residual.d_in", d_out, d_branch, TensorRole::temporary);
    const Id d_attention =
        linear_backward("attention.projection", d_middle, layer.attention, weights.projection, hidden_);
    const Id d_qkv = like(layer.qkv, prefix() + "attention.core.in");
    call(TrainerKernel::attention_backward, prefix() + "attention.core.d_in",
         {d_attention, layer.qkv, layer.attention, layer.denominators}, {d_qkv}, tokens_, hidden_)
        .flops = 5 * tokens_ * model_.sequence * hidden_;
    const Id d_first = linear_backward("attention.qkv", d_qkv, layer.attention_norm.out, weights.qkv, 3 * hidden_);
    const Id d_first_branch = norm_backward("attention.norm", d_first, layer.attention_norm, weights.attention_norm);
    return add("attention.residual.d_in", d_middle, d_first_branch, TensorRole::temporary);
  }

  void optimize() {
    phase_ = Phase::optimizer;
    for (const StepGraph::Parameter& parameter : graph_.parameters) {
      std::vector<Id> state = {parameter.weight};
      if (parameter.master != parameter.weight) state.push_back(parameter.master);
      state.push_back(parameter.first);
      state.push_back(parameter.second);
      std::vector<Id> reads = {parameter.gradient};
      reads.insert(reads.end(), state.begin(), state.end());
      call(TrainerKernel::adamw, graph_.tensors[parameter.weight].name, std::move(reads), std::move(state), 1,
           graph_.tensors[parameter.weight].elements)
          .decays = !parameter.is_vector;
    }
  }

  TrainerModel model_;
  std::int64_t tokens_, hidden_;
  StepGraph graph_;
  Phase phase_ = Phase::forward;
  std::uint16_t layer_ = no_index16;
  std::size_t table_ = 0, positions_ = 0;
  std::vector<LayerWeights> weights_;
  NormWeights final_norm_;
  Linear head_;
};

}  // namespace

void check(const TrainerModel& model) {
  const auto refuse = [](const std::string& cause, const std::string& remedy) {
    throw InputError("trainer model", "", cause, remedy);
  };
  for (const std::int64_t size :
       {model.vocabulary, model.hidden, model.heads, model.layers, model.sequence, model.batch})
    if (size < 1 || size > (std::int64_t{1} << 24)) refuse("a size is not from 1 to 2^24", "check the sizes");
  if (model.layers > 1000) refuse("more than 1000 layers", "give fewer");
  if (model.hidden % model.heads != 0) refuse("hidden is no multiple of heads", "choose sizes that divide");
  const std::int64_t widest = std::max(4 * model.hidden, model.vocabulary);
  if (model.tokens() > (std::int64_t{1} << 31) / widest || model.vocabulary > (std::int64_t{1} << 31) / model.hidden)
    refuse("a tensor has 2^31 elements or more", "give a smaller batch, sequence or vocabulary");
  if (model.type == ElementType::i32) refuse("weights of integers", "use f32 or bf16");
}

std::string_view to_string(TrainerKernel kernel) {
  static constexpr std::array<std::string_view, kernel_count> names = {"embed",
                                                                       "embed_table_gradient",
                                                                       "embed_position_gradient",
                                                                       "gemm",
                                                                       "bias_gradient",
                                                                       "layer_norm",
                                                                       "layer_norm_backward",
                                                                       "layer_norm_gradient",
                                                                       "attention",
                                                                       "attention_backward",
                                                                       "gelu",
                                                                       "gelu_backward",
                                                                       "add",
                                                                       "cross_entropy",
                                                                       "cross_entropy_backward",
                                                                       "adamw"};
  return names[static_cast<std::size_t>(kernel)];
}

StepGraph step_graph(const TrainerModel& model) {
  check(model);
  return GraphBuilder(model).build();
}

}  // namespace spillway::validation
