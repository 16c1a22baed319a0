// Linear layers of EagerOps, alone and split over a tensor group.
#include <utility>

#include "models/eager_ops.h"
#include "traces/base/input_error.h"

namespace spillway {

// What the weight gradients of layers that share an input need of it.
struct EagerOps::SavedInput {
  Tensor kept;         // whole, or this rank's part of the sequence
  bool parts = false;  // kept is a part
  std::size_t users = 1;
  bool wants_gradient = true;
  Tensor whole;  // of parts, from the first use of the backward to the last
};

void EagerOps::product(std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write,
                       Bytes bias) {
  Bytes bytes = bias;
  bytes += Bytes(shape.m * shape.k * size_of(reads[0].type()) + shape.k * shape.n * size_of(reads[1].type()) +
                 shape.m * shape.n * size_of(write.type()));
  session_.kernel({.name = kernel,
                   .reads = std::move(reads),
                   .writes = {std::move(write)},
                   .cost = {.kind = KernelClass::gemm,
                            .type = options_.product,
                            .gemm = shape,
                            .flops = Flops(2 * shape.m * shape.n * shape.k)},
                   .bytes = bytes});
}

Tensor EagerOps::operand(const std::string& name, const Tensor& x, TensorRole role) {
  if (options_.product != DataType::fp8 || x.type() == DataType::fp8) return x;
  Tensor narrow = session_.empty(name + ".fp8", DataType::fp8, x.elements(), role);
  session_.kernel({.name = "cast_fp8", .reads = {x}, .writes = {narrow}});
  return narrow;
}

Tensor EagerOps::linear(const std::string& name, const Tensor& x, TrainedParameter& weight, TrainedParameter* bias) {
  return linear({name, &weight, bias}, x,
                std::make_shared<SavedInput>(SavedInput{.kept = x, .wants_gradient = x.node() != 0}));
}

Tensor EagerOps::linear(const Linear& layer, const Tensor& x, std::shared_ptr<SavedInput> saved) {
  const std::int64_t inputs = layer.weight->shape.columns, outputs = layer.weight->shape.rows;
  const std::int64_t rows = x.elements() / inputs;
  const Tensor narrow = operand(layer.name + ".in", x, TensorRole::activation);
  if (!saved->parts && saved->users == 1) saved->kept = narrow;
  Tensor out = make(layer.name + ".out", rows * outputs);
  {
    std::vector<Tensor> reads = {narrow, operand(layer.name + ".weight", layer.weight->value, TensorRole::temporary)};
    if (layer.bias != nullptr) reads.push_back(layer.bias->value);
    product("gemm", {.m = rows, .n = outputs, .k = inputs}, std::move(reads), out,
            layer.bias != nullptr ? layer.bias->value.bytes() : Bytes(0));
  }
  return autograd_.record(std::move(out), {x}, true, [this, layer, saved = std::move(saved)](const Tensor& gradient) {
    std::vector<Tensor> gradients(1);
    linear_backward(layer, *saved, gradient, saved->wants_gradient ? &gradients[0] : nullptr);
    return gradients;
  });
}

void EagerOps::linear_backward(const Linear& layer, SavedInput& saved, const Tensor& gradient, Tensor* x_gradient) {
  const std::int64_t inputs = layer.weight->shape.columns, outputs = layer.weight->shape.rows;
  const std::int64_t rows = gradient.elements() / outputs;
  if (saved.parts && !saved.whole)
    saved.whole =
        communication_->all_gather(CommGroup::tensor, layer.name + ".in.again", saved.kept, TensorRole::temporary);
  const Tensor narrow = operand(layer.name + ".out.grad", gradient, TensorRole::temporary);
  if (x_gradient != nullptr) {
    *x_gradient = make(layer.name + ".in.grad", rows * inputs, TensorRole::temporary);
    product("gemm_dgrad", {.m = rows, .n = inputs, .k = outputs},
            {narrow, operand(layer.name + ".weight", layer.weight->value, TensorRole::temporary)}, *x_gradient, {});
  }
  if (layer.bias != nullptr) sum_bias_gradient(*layer.bias, gradient);
  weight_gradient(layer, narrow,
                  operand(layer.name + ".in", saved.parts ? saved.whole : saved.kept, TensorRole::temporary));
  if (--saved.users == 0) saved.kept = saved.whole = {};
}

void EagerOps::weight_gradient(const Linear& layer, const Tensor& gradient, const Tensor& x) {
  TrainedParameter& weight = *layer.weight;
  const std::int64_t inputs = weight.shape.columns, outputs = weight.shape.rows;
  const GemmShape shape{.m = outputs, .n = inputs, .k = x.elements() / inputs};
  if (options_.fused_accumulation) {
    product("gemm_wgrad_accumulate", shape, {gradient, x, weight.gradient}, weight.gradient, weight.gradient.bytes());
    autograd_.accumulate(weight, {});
    return;
  }
  Tensor result = gradient_of(weight);
  product("gemm_wgrad", shape, {gradient, x}, result, {});
  autograd_.accumulate(weight, std::move(result));
}

void EagerOps::sum_bias_gradient(TrainedParameter& bias, const Tensor& gradient) {
  Tensor sum = gradient_of(bias);
  session_.kernel({.name = "bias_gradient", .reads = {gradient}, .writes = {sum}});
  autograd_.accumulate(bias, std::move(sum));
}

std::vector<Tensor> EagerOps::column_linears(const std::vector<Linear>& layers, const Tensor& x) {
  std::vector<Tensor> results;
  if (tensor_ranks() == 1) {
    for (const Linear& layer : layers) results.push_back(linear(layer.name, x, *layer.weight, layer.bias));
    return results;
  }
  const bool parts = options_.sequence_parallel;
  const Tensor entered = enter_tensor_region(layers.front().name, x, TensorRole::temporary);
  const auto saved = std::make_shared<SavedInput>(
      SavedInput{.kept = x, .parts = parts, .users = layers.size(), .wants_gradient = entered.node() != 0});
  for (const Linear& layer : layers) results.push_back(linear(layer, entered, saved));
  return results;
}

Tensor EagerOps::enter_tensor_region(const std::string& name, const Tensor& x, TensorRole role) {
  if (tensor_ranks() == 1) return x;
  const bool parts = options_.sequence_parallel;
  Tensor entered = parts ? communication_->all_gather(CommGroup::tensor, name + ".in.whole", x, role) : x;
  return autograd_.record(std::move(entered), {x}, false, [this, name, parts](const Tensor& gradient) {
    if (parts)
      return std::vector<Tensor>{
          communication_->reduce_scatter(CommGroup::tensor, name + ".in.grad.part", gradient, TensorRole::temporary)};
    communication_->all_reduce(CommGroup::tensor, "all_reduce", {gradient});
    return std::vector<Tensor>{gradient};
  });
}

Tensor EagerOps::row_linear(const Linear& layer, const Tensor& x) {
  if (tensor_ranks() == 1) return linear(layer.name, x, *layer.weight, layer.bias);
  Tensor out = linear(layer.name, x, *layer.weight, nullptr);
  out = leave_tensor_region(layer.name, out, options_.sequence_parallel);
  if (layer.bias == nullptr) return out;
  session_.kernel({.name = "add_bias_", .reads = {out, layer.bias->value}, .writes = {out}});
  return autograd_.record(out, {out}, true, [this, bias = layer.bias](const Tensor& gradient) {
    sum_bias_gradient(*bias, gradient);
    return std::vector<Tensor>{gradient};
  });
}

Tensor EagerOps::leave_tensor_region(const std::string& name, const Tensor& x, bool scatter) {
  if (tensor_ranks() == 1) return x;
  if (!scatter) {
    communication_->all_reduce(CommGroup::tensor, "all_reduce", {x});
    return x;
  }
  Tensor part = communication_->reduce_scatter(CommGroup::tensor, name + ".part", x, TensorRole::activation);
  return autograd_.record(std::move(part), {x}, false, [this, name](const Tensor& gradient) {
    return std::vector<Tensor>{
        communication_->all_gather(CommGroup::tensor, name + ".out.grad.whole", gradient, TensorRole::temporary)};
  });
}

Tensor EagerOps::split_sequence(const std::string& name, const Tensor& x) {
  if (tensor_ranks() == 1) return x;
  Tensor part = make(name + ".part", x.elements() / tensor_ranks());
  session_.kernel({.name = "copy", .reads = {x}, .writes = {part}, .bytes = part.bytes() + part.bytes()});
  return autograd_.record(std::move(part), {x}, false, [this, name](const Tensor& gradient) {
    return std::vector<Tensor>{
        communication_->all_gather(CommGroup::tensor, name + ".grad.whole", gradient, TensorRole::temporary)};
  });
}

}  // namespace spillway
