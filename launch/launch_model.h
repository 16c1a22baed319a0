// The model that a launch trains: a bundled one by its name or its shape, or one of the launch's own sizes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/floors.h"
#include "launch/launch_ledger.h"
#include "models/spec/model_spec.h"

namespace spillway::launch {

struct LaunchModel {
  std::string name;  // as in model.name
  ModelSpec spec;
  std::int64_t layers = 0;  // model.layers: as the bundled model, but so many; 0: its own
  bool is_new = false;      // not bundled: a file is to be written
  bool states_vocabulary = true;
};

// The model that the facts say. `tensor_parallel` pads Megatron's vocabulary. Nothing where they say none. Throws
// InputError for a name that isn't bundled, and for sizes that are no model.
std::optional<LaunchModel> model_of(LaunchLedger& ledger, std::int64_t tensor_parallel);

// Facts of a model's shape, as Megatron's flags say them, and what they can't say of it.
struct ShapeFacts {
  std::map<std::string, std::string, std::less<>> facts;
  std::vector<std::string> unsaid;
};
ShapeFacts shape_facts(const ModelSpec& spec);

// torchtitan's name and flavor of a bundled model; nullopt: it has none.
struct TitanModel {
  std::string_view name, flavor, bundled;
};
std::optional<TitanModel> titan_model(std::string_view bundled);

// A model file of a shape, by docs/schemas/model.schema.json.
std::string model_text(const ModelSpec& spec);

}  // namespace spillway::launch
