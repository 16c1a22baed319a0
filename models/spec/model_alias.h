// Published models (Hugging Face ids) that have a bundled model's shape, and how names of models may be spelt.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::models {

struct ModelAlias {
  std::string id;     // as it was written
  std::string shape;  // the bundled model
  std::vector<std::string>
      overrides;           // "vocabulary=32768": keys of a model file that the published model has otherwise
  bool is_nf4 = false;     // bitsandbytes' 4 bits: nf4_double, of which adapters alone are trained
  bool is_narrow = false;  // published in 8 or 4 bits that training doesn't start from
};

// A bundled model's name or an id, whatever their letters' case and owner. `_`, `.`, blanks and `-` are alike; between
// a letter and a digit none of them counts. Endings that leave the shape as it is ("-Instruct", "-bnb-4bit", "-FP8")
// fall away. nullopt: none that is known.
std::optional<ModelAlias> find_alias(std::string_view name);

// Ids of a bundled model's shape, by the published owners.
std::vector<std::string> published_ids(std::string_view shape);

// True of weights that are made for inference alone ("-GGUF", "-AWQ").
bool is_inference_format(std::string_view name);

}  // namespace spillway::models
