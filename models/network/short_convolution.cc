#include "models/network/short_convolution.h"

#include <memory>
#include <vector>
#include "models/network/eager_linear.h"

namespace spillway::models {

Tensor ShortConvolutionBlock::backward(const std::string& name, const Tensor& all, const Tensor& gated,
                                       const Tensor& convolved, const Tensor& gradient) {
  EagerSession& session = context_.session;
  TrainedParameter& taps = context_.weight(name + ".filter");
  TrainedParameter* const offsets = context_.bias(name + ".filter");
  const auto temporary = [&](const char* of, std::int64_t elements) {
    return session.empty(name + of, all.type(), elements, TensorRole::temporary);
  };
  Tensor all_back = temporary(".in.out.grad", all.elements());
  Tensor convolved_back = temporary(".convolved.grad", convolved.elements());
  session.kernel({.name = "multiply_backward",
                  .reads = {gradient, all, convolved},
                  .writes = {convolved_back, all_back},
                  .bytes = gradient.bytes() * 5});
  Tensor gated_back = temporary(".gated.grad", gated.elements());
  std::vector<Tensor> writes = {gated_back};
  for (const TrainedParameter* each :
       {static_cast<const TrainedParameter*>(&taps), static_cast<const TrainedParameter*>(offsets)})
    if (each != nullptr)
      writes.push_back(
          session.empty(each->shape.name + ".grad", all.type(), each->shape.elements(), TensorRole::gradient));
  session.kernel({.name = "causal_convolution_backward",
                  .reads = {convolved_back, gated, taps.value},
                  .writes = writes,
                  .cost = {.type = all.type(), .flops = Flops(4 * gated.elements() * model_.convolution.tokens)}});
  context_.give(taps, std::move(writes[1]));
  if (offsets != nullptr) context_.give(*offsets, std::move(writes[2]));
  writes.clear();
  convolved_back = {};
  session.kernel(
      {.name = "multiply_backward", .reads = {gated_back, all}, .writes = {all_back}, .bytes = gated_back.bytes() * 5});
  return all_back;
}

Tensor ShortConvolutionBlock::run(const std::string& prefix, const Tensor& x) {
  EagerSession& session = context_.session;
  const std::string name = prefix + "convolution";
  TrainedParameter& taps = context_.weight(name + ".filter");
  const Tensor all = eager::column_linears(
      context_.rec, {{name + ".in", &context_.weight(name + ".in"), context_.bias(name + ".in")}}, x)[0];
  const auto make = [&](const char* of) {
    return session.empty(name + of, all.type(), all.elements() / 3, TensorRole::activation);
  };
  const Tensor gated = make(".gated");
  session.kernel({.name = "multiply", .reads = {all}, .writes = {gated}, .bytes = gated.bytes() * 3});
  const Tensor convolved = make(".convolved");
  std::vector<Tensor> reads = {gated, taps.value};
  if (const TrainedParameter* offsets = context_.bias(name + ".filter")) reads.push_back(offsets->value);
  session.kernel({.name = "causal_convolution",
                  .reads = std::move(reads),
                  .writes = {convolved},
                  .cost = {.type = all.type(), .flops = Flops(2 * gated.elements() * model_.convolution.tokens)}});
  Tensor out = make(".result");
  session.kernel({.name = "multiply", .reads = {all, convolved}, .writes = {out}, .bytes = out.bytes() * 3});
  return context_.autograd.record(std::move(out), {all}, taps.trains,
                                  [this, name, all, gated, convolved](const Tensor& gradient) {
                                    return std::vector<Tensor>{backward(name, all, gated, convolved, gradient)};
                                  });
}

}  // namespace spillway::models
