// Rules that must hold between the numbers of a ModelSpec, wherever they were read from.
#pragma once

#include <optional>
#include <string>

#include "models/spec/model_spec.h"

namespace spillway::models {

struct ShapeFault {
  std::string key;  // of docs/schemas/model.schema.json, "/" between levels
  std::string cause, remedy;
};

// The first rule that the shape breaks. Every dimension must be in the schema's range. A shape without a fault has
// at most 10^16 parameters, so counts and bytes fit 64 bits.
std::optional<ShapeFault> shape_fault(const ModelSpec& spec);

}  // namespace spillway::models
