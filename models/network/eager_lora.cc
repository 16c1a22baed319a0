// Adapters of frozen linear layers, the way PEFT runs them (peft, tuners/lora/layer.py, Linear.forward): the frozen
// product; x times A, times B, a scaling and a sum as kernels of their own. Frozen weights in fewer bits are unpacked
// into a temporary for every product, forward and backward (bitsandbytes, autograd/_functions.py, MatMul4Bit).
//
//   fp32 adapters     in a mixed precision A and B are cast for each product (autocast); with everything in 16 bits
//                     x is cast to fp32, kept so, and the adapters' products are done in fp32
//   split over ranks  B A x is added to the partial sums of a row-split layer before these are summed
//
// Deviations. No dropout inside adapters. Casts of A and B are done once more in the backward instead of kept. PEFT's
// defensive copy of a 4-bit layer's result is left out. The matrices of stacked experts are unpacked all at once.
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models {

Tensor EagerOps::weight_operand(const TrainedParameter& weight, DataType type) {
  const std::string& name = weight.shape.name;
  if (weight.storage == BaseWeights::same)
    return weight.value.type() == type ? weight.value : cast(name + ".cast", weight.value, type);
  Tensor scales = weight.scales;
  if (weight.second_scales) {
    scales = temporary(name + ".scales.unpacked", DataType::fp32, weight.scales.elements());
    session_.kernel({.name = "dequantise_scales", .reads = {weight.scales, weight.second_scales}, .writes = {scales}});
  }
  Tensor unpacked = temporary(name + ".unpacked", type, weight.shape.elements());
  session_.kernel({.name = weight.storage == BaseWeights::int8 ? "dequantise_int8" : "dequantise_nf4",
                   .reads = {weight.value, scales},
                   .writes = {unpacked}});
  return unpacked;
}

void EagerOps::accumulate(TrainedParameter& weight, Tensor gradient) {
  if (weight.in_fp8 || weight.type() == gradient.type()) return autograd_.accumulate(weight, std::move(gradient));
  Tensor own =
      session_.empty(weight.shape.name + ".grad.cast", weight.type(), gradient.elements(), TensorRole::gradient);
  session_.kernel({.name = "cast", .reads = {gradient}, .writes = {own}});
  gradient = {};
  autograd_.accumulate(weight, std::move(own));
}

Tensor EagerOps::adapter_input(const std::string& name, const Tensor& x) {
  if (!options_.wide_adapters) return x;
  Tensor wide = session_.empty(name + ".lora.in", DataType::fp32, x.elements(), TensorRole::activation);
  session_.kernel({.name = "cast", .reads = {x}, .writes = {wide}});
  return autograd_.record(std::move(wide), {x}, false, [this, name, type = x.type()](const Tensor& gradient) {
    return std::vector<Tensor>{cast(name + ".lora.in.grad", gradient, type)};
  });
}

Tensor EagerOps::add_adapter(const std::string& name, const Tensor& out, const Tensor& adapted) {
  Tensor sum;
  {
    const Tensor scaled = like(name + ".lora.scaled", adapted, TensorRole::temporary);
    session_.kernel({.name = "scale", .reads = {adapted}, .writes = {scaled}});
    sum = like(name + ".lora.out", scaled);
    session_.kernel({.name = "add", .reads = {out, scaled}, .writes = {sum}});
  }
  const DataType wide = adapted.type();
  if (wide != out.type()) {
    Tensor narrow = like(name + ".lora.out.cast", out);
    session_.kernel({.name = "cast", .reads = {sum}, .writes = {narrow}});
    sum = std::move(narrow);
  }
  return autograd_.record(std::move(sum), {out, adapted}, false, [this, name, wide](const Tensor& gradient) {
    const Tensor cast_gradient = cast(name + ".lora.grad", gradient, wide);
    Tensor scaled = like(name + ".lora.scaled.grad", cast_gradient, TensorRole::temporary);
    session_.kernel({.name = "scale", .reads = {cast_gradient}, .writes = {scaled}});
    return std::vector<Tensor>{gradient, std::move(scaled)};
  });
}

}  // namespace spillway::models
