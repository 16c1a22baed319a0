// c tanh(x / c), as Gemma 2 caps its logits: three elementwise kernels; keeps the tanh.
#pragma once

#include <string>

#include "models/session/autograd.h"
#include "models/session/eager_session.h"

namespace spillway::models {

Tensor soft_cap(const std::string& name, const Tensor& x, EagerSession& session, Autograd& autograd);

}  // namespace spillway::models
