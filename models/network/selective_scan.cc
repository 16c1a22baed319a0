#include "models/network/selective_scan.h"

#include <utility>

#include "models/network/eager_linear.h"

namespace spillway::models {
namespace {

constexpr double flops_of_state = 9, exponentials_per_clock = 16;
constexpr double state_rate = flops_of_state * exponentials_per_clock;

}  // namespace

Tensor SelectiveScanBlock::make(const std::string& name, std::int64_t elements, TensorRole role) {
  return context_.session.empty(name, context_.rec.options.type, elements, role);
}

Tensor SelectiveScanBlock::sum_for(TrainedParameter& parameter) {
  return make(parameter.shape.name + ".grad", parameter.shape.elements(), TensorRole::gradient);
}

Tensor SelectiveScanBlock::convolve(const std::string& name, const Tensor& projected) {
  TrainedParameter& filter = context_.weight(name + ".convolution");
  TrainedParameter* const bias = context_.bias(name + ".convolution");
  const std::int64_t flops = 2 * setup_.tokens() * model_.mamba.width() * model_.mamba.convolution;
  Tensor out = make(name + ".convolved", setup_.tokens() * model_.mamba.width());
  std::vector<Tensor> reads = {projected, filter.value};
  if (bias != nullptr) reads.push_back(bias->value);
  context_.session.kernel({.name = "causal_convolution",
                           .reads = std::move(reads),
                           .writes = {out},
                           .cost = {.type = out.type(), .flops = Flops(flops)},
                           .bytes = out.bytes() * 2});
  return context_.autograd.record(
      std::move(out), {projected}, filter.trains,
      [this, name, projected, flops, &filter, bias](const Tensor& gradient) {
        const Tensor back = make(name + ".convolved.back", projected.elements(), TensorRole::temporary);
        std::vector<Tensor> writes = {back, sum_for(filter)};
        if (bias != nullptr) writes.push_back(sum_for(*bias));
        context_.session.kernel({.name = "causal_convolution_backward",
                                 .reads = {gradient, projected, filter.value},
                                 .writes = writes,
                                 .cost = {.type = gradient.type(), .flops = Flops(2 * flops)},
                                 .bytes = gradient.bytes() * 4});
        context_.give(filter, std::move(writes[1]));
        if (bias != nullptr) context_.give(*bias, std::move(writes[2]));
        return std::vector<Tensor>{back};
      });
}

Tensor SelectiveScanBlock::part(const std::string& name, const Tensor& entered, std::int64_t columns) {
  TrainedParameter* const weight = model_.mamba.inner_norms ? &context_.weight(name + "_norm") : nullptr;
  const std::int64_t t = setup_.tokens();
  Tensor out = make(name, t * columns), statistics;
  std::vector<Tensor> reads = {entered}, writes = {out};
  if (weight != nullptr) {
    statistics = context_.wide(name + "_norm.statistics", t, TensorRole::activation);
    reads.push_back(weight->value);
    writes.push_back(statistics);
  }
  context_.session.kernel({.name = weight != nullptr ? "rms_norm" : "copy",
                           .reads = std::move(reads),
                           .writes = std::move(writes),
                           .bytes = out.bytes() * 2});
  const Tensor kept = weight != nullptr ? entered : Tensor();  // the gradient of a copy reads nothing
  return context_.autograd.record(
      std::move(out), {entered}, weight != nullptr && weight->trains,
      [this, name, kept, whole = entered.elements(), weight, statistics](const Tensor& gradient) {
        const Tensor back = make(name + ".back", whole, TensorRole::temporary);
        std::vector<Tensor> from = {gradient}, to = {back};
        if (weight != nullptr) {
          from.insert(from.end(), {kept, statistics, weight->value});
          to.push_back(sum_for(*weight));
        }
        context_.session.kernel({.name = weight != nullptr ? "rms_norm_backward" : "copy_backward",
                                 .reads = std::move(from),
                                 .writes = to,
                                 .bytes = gradient.bytes() * (weight != nullptr ? 3 : 2)});
        if (weight != nullptr) context_.give(*weight, std::move(to[1]));
        return std::vector<Tensor>{back};
      });
}

Tensor SelectiveScanBlock::scan(const std::string& name, const Operands& of) {
  const Mamba& mamba = model_.mamba;
  const std::int64_t t = setup_.tokens(), d = mamba.width(), n = mamba.state;
  TrainedParameter &log = context_.weight(name + ".decay_log"), &skip = context_.weight(name + ".skip"),
                   &bias = context_.weight(name + ".time_bias");
  const std::int64_t chunks = setup_.micro_batch * ((setup_.sequence + chunk - 1) / chunk);
  const Tensor ungated = make(name + ".ungated", t * d);
  const Tensor states = context_.wide(name + ".states", chunks * d * 2 * n, TensorRole::activation);
  Tensor out = make(name + ".result", t * d);
  const DataType type = out.type();
  context_.chunk_kernel(type, "selective_scan",
                        {of.values, of.steps, of.inputs, of.outputs, of.projected, log.value, skip.value, bias.value},
                        {ungated, states, out},
                        {.flops = static_cast<std::int64_t>(flops_of_state) * t * d * n,
                         .flops_per_clock = state_rate,
                         .unread = Bytes(of.projected.bytes().count() / 2)});  // of both halves the gate alone
  return context_.autograd.record(
      std::move(out), {of.values, of.steps, of.inputs, of.outputs, of.projected}, log.trains,
      [this, name, of, ungated, states, t, d, n, type, &log, &skip, &bias](const Tensor& gradient) {
        const auto like = [&](const char* what, const Tensor& tensor) {
          return make(name + what, tensor.elements(), TensorRole::temporary);
        };
        const std::vector<Tensor> back = {like(".values.grad", of.values), like(".steps.grad", of.steps),
                                          like(".inputs.grad", of.inputs), like(".outputs.grad", of.outputs),
                                          like(".gate.grad", of.projected)};
        std::vector<Tensor> sums = {sum_for(log), sum_for(skip), sum_for(bias)}, writes = back;
        writes.insert(writes.end(), sums.begin(), sums.end());
        context_.chunk_kernel(type, "selective_scan_backward",
                              {gradient, of.values, of.steps, of.inputs, of.outputs, of.projected, ungated, states,
                               log.value, skip.value, bias.value},
                              std::move(writes),
                              {.flops = 2 * static_cast<std::int64_t>(flops_of_state) * t * d * n,
                               .flops_per_clock = state_rate,
                               .unread = of.projected.bytes()});
        context_.give(log, std::move(sums[0]));
        context_.give(skip, std::move(sums[1]));
        context_.give(bias, std::move(sums[2]));
        return back;
      });
}

Tensor SelectiveScanBlock::run(const std::string& prefix, const Tensor& x) {
  const Mamba& mamba = model_.mamba;
  const std::string name = prefix + "mamba";
  const auto through = [&](const char* of, const Tensor& from) {
    return eager::column_linears(context_.rec, {{name + of, &context_.weight(name + of), context_.bias(name + of)}},
                                 from)[0];
  };
  const Tensor projected = through(".in", x);
  const Tensor values = convolve(name, projected);
  const Tensor entered = through(".enter", values);
  const Tensor steps = through(".step", part(name + ".step_input", entered, mamba.step_rank));
  const Tensor inputs = part(name + ".inputs", entered, mamba.state),
               outputs = part(name + ".outputs", entered, mamba.state);
  return scan(name, {values, steps, inputs, outputs, projected});
}

}  // namespace spillway::models
