// Adapters of frozen linear layers, the way PEFT runs them (peft, tuners/lora/layer.py, Linear.forward): the frozen
// product; x times A, times B, a scaling and a sum as kernels of their own. Frozen weights in fewer bits are unpacked
// into a temporary for every product, forward and backward (bitsandbytes, autograd/_functions.py, MatMul4Bit).
//
//   fp32 adapters     in a mixed precision A and B are cast for each product (autocast), and x to fp32 and back unless
//                     the frozen matrix is packed; with everything in 16 bits x is cast to fp32, kept so, and the
//                     adapters' products are done in fp32
//   dropout           each adapter keeps its own copy of x and a mask of a byte per element
//   split over ranks  B A x is added to the partial sums of a row-split layer before these are summed
//
// Deviations. Casts of A and B are done once more in the backward instead of kept. PEFT's
// defensive copy of a 4-bit layer's result is left out. The matrices of stacked experts are unpacked all at once.
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models {

Tensor EagerOps::weight_operand(const TrainedParameter& weight, DataType type, std::int64_t parts) {
  const std::string& name = weight.shape.name;
  if (weight.storage == BaseWeights::same)
    return weight.value.type() == type ? weight.value : cast(name + ".cast", weight.value, type);
  Tensor scales = weight.scales;
  if (weight.second_scales) {
    scales = temporary(name + ".scales.unpacked", DataType::fp32, weight.scales.elements() / parts);
    session_.kernel({.name = "dequantise_scales",
                     .reads = {weight.scales, weight.second_scales},
                     .writes = {scales},
                     .bytes = (weight.scales.bytes() + weight.second_scales.bytes()) / parts + scales.bytes()});
  }
  Tensor unpacked = temporary(name + ".unpacked", type, weight.shape.elements() / parts);
  session_.kernel({.name = weight.storage == BaseWeights::int8  ? "dequantise_int8"
                           : weight.storage == BaseWeights::fp8 ? "dequantise_fp8"
                                                                : "dequantise_nf4",
                   .reads = {weight.value, scales},
                   .writes = {unpacked},
                   .bytes = weight.value.bytes() / parts + scales.bytes() + unpacked.bytes()});
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

// Under autocast a packed layer leaves its input as it is (peft, tuners/lora/bnb.py), another casts it to the adapters'
// type (tuners/lora/layer.py), and their products cast it back.
bool EagerOps::adapter_widens_input(const TrainedParameter& weight) const {
  return options_.wide_adapters || (options_.casts_adapters && weight.storage == BaseWeights::same);
}

bool EagerOps::adapter_reads_input(const TrainedParameter& weight) const {
  return !adapter_widens_input(weight) && options_.adapter_dropout == 0;
}

Tensor EagerOps::recorded_cast(const std::string& name, const Tensor& x, DataType type) {
  Tensor out = session_.empty(name, type, x.elements(), TensorRole::activation);
  session_.kernel({.name = "cast", .reads = {x}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, false, [this, name, from = x.type()](const Tensor& gradient) {
    return std::vector<Tensor>{cast(name + ".grad", gradient, from)};
  });
}

Tensor EagerOps::adapter_input(const std::string& name, const Tensor& x, const TrainedParameter& weight) {
  if (adapter_reads_input(weight)) return x;
  Tensor in = adapter_widens_input(weight) ? recorded_cast(name + ".lora.in.wide", x, DataType::fp32) : x;
  in = dropout(name + ".lora.in", in, options_.adapter_dropout);
  return in.type() == x.type() || options_.wide_adapters ? in : recorded_cast(name + ".lora.in", in, x.type());
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
