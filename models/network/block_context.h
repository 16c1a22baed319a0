// What the parts of a transformer that have files of their own need of it.
#pragma once

#include <functional>
#include <string>

#include "models/network/eager_ops.h"

namespace spillway::models {

// References must outlive the blocks; communication is null on a GPU of its own.
struct BlockContext {
  EagerSession& session;
  Autograd& autograd;
  EagerOps& ops;
  Communication* communication;
};

// The parameter NAME.weight.
using WeightLookup = std::function<TrainedParameter&(const std::string& name)>;
// The parameter NAME.bias, null where there is none.
using BiasLookup = std::function<TrainedParameter*(const std::string& name)>;

}  // namespace spillway::models
