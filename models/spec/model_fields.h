// The fields of a model file.
#pragma once

#include <string>

#include "base/fields.h"
#include "models/spec/model_spec.h"

namespace spillway::models {

// The reader fills in what a file leaves out and the shape gives (kv_heads, head_dim, attention_dropout).
void describe(ModelSpec& spec, FieldVisitor& visitor);

// docs/schemas/model.schema.json
std::string model_schema();

}  // namespace spillway::models
