#include "models/session/autograd.h"

#include <algorithm>
#include <utility>

#include "base/input_error.h"

namespace spillway::models {

Tensor Autograd::record(Tensor output, const std::vector<Tensor>& inputs, bool has_parameters, Backward backward) {
  if (!recording_) return output;
  Node node{.backward = std::move(backward),
            .layer = session_.layer(),
            .is_captured = session_.is_captured(),
            .crowding = session_.crowding()};
  bool wanted = has_parameters;
  for (const Tensor& input : inputs) {
    node.inputs.push_back(input.node());
    wanted = wanted || input.node() != 0;
  }
  if (!wanted) return output;
  nodes_.push_back(std::move(node));
  return output.with_node(static_cast<std::uint32_t>(nodes_.size() - 1));
}

Tensor Autograd::leaf(const Tensor& tensor) {
  nodes_.emplace_back();
  return tensor.with_node(static_cast<std::uint32_t>(nodes_.size() - 1));
}

Tensor Autograd::checkpoint(const std::vector<Tensor>& inputs, const Function& function, bool has_parameters) {
  const auto is_wanted = [](const Tensor& input) { return input.node() != 0; };
  if (!recording_ || (!has_parameters && std::none_of(inputs.begin(), inputs.end(), is_wanted)))
    return function(inputs);
  recording_ = false;
  Tensor output = function(inputs);
  recording_ = true;
  return record(std::move(output), inputs, true, [this, inputs, function](Tensor gradient) {
    const std::size_t floor = nodes_.size();
    std::vector<Tensor> leaves;
    leaves.reserve(inputs.size());
    for (const Tensor& input : inputs) leaves.push_back(input.node() != 0 ? leaf(input) : input);
    const std::size_t above = nodes_.size();
    const Phase outer = session_.phase();
    session_.set_phase(Phase::recompute);
    {
      Tensor again = function(leaves);
      pass(again.node(), std::move(gradient));
      if (retention_ == Retention::none) again = {};
      session_.set_phase(outer);
      run_down_to(above);
    }
    std::vector<Tensor> gradients;
    for (const Tensor& each : leaves)
      gradients.push_back(each.node() != 0 ? std::move(nodes_[each.node()].gradient) : Tensor());
    if (retention_ == Retention::inputs)
      for (std::size_t i = 0; i < leaves.size(); ++i)
        if (gradients[i]) retained_.insert(retained_.end(), {inputs[i], gradients[i]});
    nodes_.resize(floor);
    return gradients;
  });
}

void Autograd::backward(const Tensor& root, Tensor gradient) {
  pass(root.node(), std::move(gradient));
  run_down_to(1);
  retained_.clear();
}

std::vector<Tensor> Autograd::backward_to(std::uint32_t first, std::size_t leaves, std::uint32_t root,
                                          Tensor gradient) {
  SPILLWAY_ASSERT(first > 0 && first + leaves <= nodes_.size());
  pass(root, std::move(gradient));
  run_down_to(first + leaves);
  std::vector<Tensor> gradients;
  for (std::size_t i = first; i < first + leaves; ++i) gradients.push_back(std::move(nodes_[i].gradient));
  nodes_.resize(first);
  retained_.clear();
  return gradients;
}

void Autograd::run_down_to(std::size_t floor) {
  while (nodes_.size() > floor) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    if (!node.gradient) continue;
    session_.set_layer(node.layer);
    const CapturedScope scope(session_, node.is_captured);
    const CrowdedScope crowd(session_, node.crowding);
    std::vector<Tensor> gradients = node.backward(std::move(node.gradient));
    SPILLWAY_ASSERT(gradients.size() == node.inputs.size());
    node.backward = nullptr;  // what it saved goes before gradients are added up
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (node.inputs[i] != 0 && gradients[i]) pass(node.inputs[i], std::move(gradients[i]));
  }
}

void Autograd::pass(std::uint32_t node, Tensor gradient) {
  if (node == 0) return;
  Tensor& held = nodes_[node].gradient;
  if (!held) {
    held = std::move(gradient);
  } else if (held.is_only_handle()) {
    session_.kernel({.name = "add_", .reads = {held, gradient}, .writes = {held}});
  } else {
    Tensor sum = session_.empty("gradient_sum", held.type(), held.elements(), TensorRole::temporary);
    session_.kernel({.name = "add", .reads = {held, gradient}, .writes = {sum}});
    held = std::move(sum);
  }
}

void Autograd::accumulate(TrainedParameter& parameter, Tensor gradient) {
  if (sink_) return sink_(parameter, std::move(gradient));
  add(parameter, std::move(gradient));
}

void Autograd::weight_work(std::function<void()> work) {
  if (!deferring_) return work();
  deferred_.push_back({std::move(work), session_.layer(), session_.is_captured(), session_.crowding()});
}

void Autograd::run_deferred() {
  SPILLWAY_ASSERT(!deferring_);
  std::vector<Deferred> all = std::exchange(deferred_, {});
  for (Deferred& one : all) {
    session_.set_layer(one.layer);
    const CapturedScope scope(session_, one.is_captured);
    const CrowdedScope crowd(session_, one.crowding);
    one.work();
    one.work = nullptr;  // what it held goes
  }
}

void Autograd::add(TrainedParameter& parameter, Tensor gradient, bool beside) {
  if (!parameter.gradient) {
    parameter.gradient = std::move(gradient);
    return;
  }
  if (!gradient) return;  // added by the kernel that made it
  session_.kernel({.name = "accumulate_gradient",
                   .reads = {parameter.gradient, gradient},
                   .writes = {parameter.gradient},
                   .beside = beside});
}

}  // namespace spillway::models
