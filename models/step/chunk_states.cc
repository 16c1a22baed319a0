#include "models/step/chunk_states.h"

#include <algorithm>
#include <string>
#include <utility>

#include "models/step/optimizer_step.h"

namespace spillway::models {

ChunkStates::ChunkStates(const TrainingSetup& setup, EagerSession& session, Communication& communication,
                         const std::vector<TrainedParameter*>& parameters, std::int64_t sharers)
    : setup_(setup), session_(session), communication_(communication), sharers_(sharers) {
  for (auto each = parameters.rbegin(); each != parameters.rend(); ++each) {
    TrainedParameter& parameter = **each;
    session.set_layer(parameter.shape.layer);
    if (parameter.share == 0) parameter.share = parameter.shape.elements();
    allocate_main_gradient(setup, session, parameter, setup.zero_stage >= 2);
    if (layers_.empty() || layers_.back().index != parameter.shape.layer)
      layers_.emplace_back().index = parameter.shape.layer;
    layers_.back().parameters.push_back(&parameter);
    layers_.back().elements += parameter.share;
  }
  for (Layer& layer : layers_) allocate(layer);
  if (!is_on_host()) allocate_buffers();
  session.set_layer(-1);
}

void ChunkStates::allocate(Layer& layer) {
  session_.set_layer(layer.index);
  const std::string name = "host.layers." + std::to_string(layer.index);
  const auto on_host = [&](const char* part, DataType type, TensorRole role) {
    return session_.empty(name + part, type, layer.elements, role, TensorPlace::host);
  };
  const DataType state = type_of_bytes(setup_.state_bytes());
  if (is_mixed(setup_.precision))
    layer.states.push_back(on_host(".master", DataType::fp32, TensorRole::optimizer_state));
  layer.states.push_back(on_host(".exp_avg", state, TensorRole::optimizer_state));
  layer.states.push_back(on_host(".exp_avg_sq", state, TensorRole::optimizer_state));
  if (!is_on_host()) return;
  layer.gradient = on_host(".grad", type_of_bytes(setup_.gradient_bytes()), TensorRole::gradient);
  layer.weights = on_host(".weights", type_of_bytes(setup_.weight_bytes()), TensorRole::buffer);
}

std::int64_t ChunkStates::state_bytes() const {
  return (is_mixed(setup_.precision) ? size_of(DataType::fp32) : 0) + 2 * setup_.state_bytes();
}

OpId ChunkStates::transfer(OpKind kind, const char* name, std::vector<Tensor> reads, std::vector<Tensor> writes,
                           Bytes bytes) {
  const bool out = kind == OpKind::copy_device_to_host;
  return session_.transfer({.name = name,
                            .kind = kind,
                            .lane = out ? "states out" : "states in",
                            .bytes = bytes,
                            .reads = std::move(reads),
                            .writes = std::move(writes)});
}

void ChunkStates::allocate_buffers() {
  std::int64_t most = 0;
  for (const Layer& layer : layers_) most = std::max(most, layer.elements);
  for (std::size_t i = 0; i < std::min(buffers_.size(), layers_.size()); ++i)
    for (const Tensor& state : layers_.front().states)
      buffers_[i].push_back(session_.empty("states.buffer", state.type(), most, TensorRole::optimizer_state));
}

void ChunkStates::update() {
  new_weights_.clear();
  buffer_use_ = {};
  session_.set_beside_step(true);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    session_.set_layer(layers_[i].index);
    is_on_host() ? update_on_host(layers_[i]) : update_on_device(layers_[i], i % buffers_.size());
    if (setup_.zero_stage > 0) gather_weights(layers_[i]);
  }
  session_.set_beside_step(false);
  session_.set_layer(-1);
}

void ChunkStates::update_on_host(Layer& layer) {
  std::vector<Tensor> gradients, weights;
  for (const TrainedParameter* parameter : layer.parameters) {
    gradients.push_back(parameter->gradient);
    weights.push_back(parameter->value);
  }
  transfer(OpKind::copy_device_to_host, "gradients_to_host", std::move(gradients), {layer.gradient},
           Bytes(layer.elements * setup_.gradient_bytes()));
  std::vector<Tensor> reads = layer.states, writes = layer.states;
  reads.push_back(layer.gradient);
  writes.push_back(layer.weights);
  const Bytes touched(layer.elements * (setup_.gradient_bytes() + 2 * state_bytes() + setup_.weight_bytes()));
  session_.host_work("cpu_adam", session_.cost().host_update(touched, sharers_).time, reads, writes, true);
  new_weights_.push_back(transfer(OpKind::copy_host_to_device, "weights_to_device", {layer.weights}, std::move(weights),
                                  Bytes(layer.elements * setup_.weight_bytes())));
}

void ChunkStates::update_on_device(Layer& layer, std::size_t buffer) {
  const std::vector<Tensor>& on_device = buffers_[buffer];
  const Bytes bytes(layer.elements * state_bytes());
  const OpId in = transfer(OpKind::copy_host_to_device, "states_to_device", layer.states, on_device, bytes);
  Kernel adam{.name = "fused_adam",
              .writes = on_device,
              .cost = {.memory = MemoryKind::optimizer},
              .bytes = Bytes(layer.elements * (setup_.gradient_bytes() + 2 * state_bytes() + setup_.weight_bytes())),
              .beside = true};
  for (const TrainedParameter* parameter : layer.parameters) {
    adam.reads.push_back(parameter->gradient);
    adam.writes.push_back(parameter->value);
  }
  new_weights_.push_back(session_.kernel(adam));
  BufferUse& use = buffer_use_[buffer];
  if (use.first_in == OpId::none) use.first_in = in;
  use.last_out = transfer(OpKind::copy_device_to_host, "states_to_host", on_device, layer.states, bytes);
}

void ChunkStates::gather_weights(const Layer& layer) {
  for (const CommGroup group : {CommGroup::updated_weights, CommGroup::updated_experts}) {
    std::vector<Tensor> values;
    Bytes bytes{};
    for (const TrainedParameter* parameter : layer.parameters) {
      if (parameter->is_expert != (group == CommGroup::updated_experts)) continue;
      values.push_back(parameter->value);
      bytes += parameter->value.bytes();
    }
    if (values.empty() || communication_.shape(group).ranks == 1) continue;
    communication_.gather_into(group, "all_gather_weights", values, values, bytes);
    new_weights_.push_back(session_.last_collective(to_string(group)));
  }
}

void ChunkStates::end_step() {
  for (Layer& layer : layers_) {
    session_.set_layer(layer.index);
    if (setup_.has_main_gradients()) {
      std::vector<Tensor> gradients;
      for (const TrainedParameter* parameter : layer.parameters) gradients.push_back(parameter->gradient);
      session_.kernel({.name = "zero_gradients", .writes = gradients, .cost = {.memory = MemoryKind::optimizer}});
    } else {
      for (TrainedParameter* parameter : layer.parameters) parameter->gradient = {};
    }
  }
  session_.set_layer(-1);
}

}  // namespace spillway::models
