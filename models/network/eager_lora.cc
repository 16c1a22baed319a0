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

#include "models/network/eager_lora.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {
namespace {

// Under autocast a packed layer leaves its input as it is (peft, tuners/lora/bnb.py), another casts it to the adapters'
// type (tuners/lora/layer.py), and their products cast it back.
bool adapter_widens_input(const EagerRecorder& rec, const TrainedParameter& weight) {
  return rec.options.wide_adapters || (rec.options.casts_adapters && weight.storage == BaseWeights::same);
}

}  // namespace

Tensor weight_operand(EagerRecorder& rec, const TrainedParameter& weight, DataType type, std::int64_t parts) {
  const std::string& name = weight.shape.name;
  if (weight.storage == BaseWeights::same)
    return weight.value.type() == type ? weight.value : cast(rec, name + ".cast", weight.value, type);
  Tensor scales = weight.scales;
  if (weight.second_scales) {
    scales = temporary(rec, name + ".scales.unpacked", DataType::fp32, weight.scales.elements() / parts);
    rec.session.kernel({.name = "dequantise_scales",
                        .reads = {weight.scales, weight.second_scales},
                        .writes = {scales},
                        .bytes = (weight.scales.bytes() + weight.second_scales.bytes()) / parts + scales.bytes()});
  }
  Tensor unpacked = temporary(rec, name + ".unpacked", type, weight.shape.elements() / parts);
  rec.session.kernel({.name = weight.storage == BaseWeights::int8  ? "dequantise_int8"
                              : weight.storage == BaseWeights::fp8 ? "dequantise_fp8"
                                                                   : "dequantise_nf4",
                      .reads = {weight.value, scales},
                      .writes = {unpacked},
                      .bytes = weight.value.bytes() / parts + scales.bytes() + unpacked.bytes()});
  return unpacked;
}

void accumulate(EagerRecorder& rec, TrainedParameter& weight, Tensor gradient) {
  if (weight.in_fp8 || weight.type() == gradient.type()) return rec.autograd.accumulate(weight, std::move(gradient));
  Tensor own =
      rec.session.empty(weight.shape.name + ".grad.cast", weight.type(), gradient.elements(), TensorRole::gradient);
  rec.session.kernel({.name = "cast", .reads = {gradient}, .writes = {own}});
  gradient = {};
  rec.autograd.accumulate(weight, std::move(own));
}

bool adapter_reads_input(const EagerRecorder& rec, const TrainedParameter& weight) {
  return !adapter_widens_input(rec, weight) && rec.setup.lora_dropout == 0;
}

Tensor recorded_cast(EagerRecorder& rec, const std::string& name, const Tensor& x, DataType type) {
  if (x.type() == type) return x;
  Tensor out = rec.session.empty(name, type, x.elements(), TensorRole::activation);
  rec.session.kernel({.name = "cast", .reads = {x}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, from = x.type()](const Tensor& gradient) {
    return std::vector<Tensor>{cast(rec, name + ".grad", gradient, from)};
  });
}

Tensor adapter_input(EagerRecorder& rec, const std::string& name, const Tensor& x, const TrainedParameter& weight) {
  if (adapter_reads_input(rec, weight)) return x;
  Tensor in = adapter_widens_input(rec, weight) ? recorded_cast(rec, name + ".lora.in.wide", x, DataType::fp32) : x;
  in = dropout(rec, name + ".lora.in", in, rec.setup.lora_dropout);
  return in.type() == x.type() || rec.options.wide_adapters ? in : recorded_cast(rec, name + ".lora.in", in, x.type());
}

Tensor add_adapter(EagerRecorder& rec, const std::string& name, const Tensor& out, const Tensor& adapted) {
  Tensor sum;
  {
    const Tensor scaled = like(rec, name + ".lora.scaled", adapted, TensorRole::temporary);
    rec.session.kernel({.name = "scale", .reads = {adapted}, .writes = {scaled}});
    sum = like(rec, name + ".lora.out", scaled);
    rec.session.kernel({.name = "add", .reads = {out, scaled}, .writes = {sum}});
  }
  const DataType wide = adapted.type();
  if (wide != out.type()) {
    Tensor narrow = like(rec, name + ".lora.out.cast", out);
    rec.session.kernel({.name = "cast", .reads = {sum}, .writes = {narrow}});
    sum = std::move(narrow);
  }
  return rec.autograd.record(std::move(sum), {out, adapted}, false, [&rec, name, wide](const Tensor& gradient) {
    const Tensor cast_gradient = cast(rec, name + ".lora.grad", gradient, wide);
    Tensor scaled = like(rec, name + ".lora.scaled.grad", cast_gradient, TensorRole::temporary);
    rec.session.kernel({.name = "scale", .reads = {cast_gradient}, .writes = {scaled}});
    return std::vector<Tensor>{gradient, std::move(scaled)};
  });
}

}  // namespace spillway::models::eager
