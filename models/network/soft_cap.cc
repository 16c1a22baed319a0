#include "models/network/soft_cap.h"

#include <utility>

namespace spillway::models {
namespace {

Tensor step(EagerSession& session, const char* kernel, const std::string& name, std::vector<Tensor> reads,
            TensorRole role) {
  Tensor out = session.empty(name, reads[0].type(), reads[0].elements(), role);
  session.kernel({.name = kernel, .reads = std::move(reads), .writes = {out}});
  return out;
}

}  // namespace

Tensor soft_cap(const std::string& name, const Tensor& x, EagerSession& session, Autograd& autograd) {
  Tensor small = step(session, "scale", name + ".divided", {x}, TensorRole::temporary);
  const Tensor tanh = step(session, "tanh", name + ".tanh", {small}, TensorRole::activation);
  small = {};
  Tensor out = step(session, "scale", name + ".capped", {tanh}, TensorRole::activation);
  return autograd.record(std::move(out), {x}, false, [&session, name, tanh](const Tensor& gradient) {
    Tensor back = step(session, "scale", name + ".tanh.grad", {gradient}, TensorRole::temporary);
    back = step(session, "tanh_backward", name + ".divided.grad", {back, tanh}, TensorRole::temporary);
    return std::vector<Tensor>{step(session, "scale", name + ".grad", {back}, TensorRole::temporary)};
  });
}

}  // namespace spillway::models
