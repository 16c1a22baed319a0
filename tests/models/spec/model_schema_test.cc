// The published schema of model files against what the loader accepts.
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "models/spec/model_spec.h"

namespace spillway::models {
namespace {

using Json = nlohmann::json;

Json read(const std::string& path) {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/" + path);
  return Json::parse(file);
}

std::string schema_error(const Json& model) {
  try {
    parse_model(model.dump(), "model.json");
  } catch (const InputError& error) {
    return error.place() + ": " + error.cause();
  }
  return "accepted";
}

// A sound model with most objects that a file can have.
Json sound() { return read("models/data/deepseek-v3.json"); }

// A list is of no key's type: the loader must say that, not that it does not know the key.
TEST(ModelSchema, TheLoaderKnowsEveryKey) {
  const Json schema = read("docs/schemas/model.schema.json");
  ASSERT_GT(schema["properties"].size(), 40U);
  for (const auto& [key, value] : schema["properties"].items()) {
    Json model = sound();
    model.erase("parameters");
    model[key] = value.value("type", "") == "array" ? Json(3) : Json::array();
    const std::string error = schema_error(model);
    EXPECT_TRUE(error.starts_with("/" + key)) << key << ": " << error;
    EXPECT_EQ(error.find("unknown key"), std::string::npos) << key << ": " << error;
    const Json inner_keys = value.value("properties", Json::object());
    for (const auto& [inner, unused] : inner_keys.items()) {
      Json part = sound();
      if (key == "patches") part[key] = {{"image", 8}, {"patch", 2}, {"channels", 1}};
      if (key == "indexer") part[key] = read("models/data/deepseek-v3.2.json")[key];
      if (key == "linear_attention") part[key] = read("models/data/qwen3-next-80b-a3b.json")[key];
      if (key == "mamba") part[key] = {{"heads", 8}, {"head_dim", 64}, {"state", 16}};
      if (key == "layer_inputs") part[key] = {{"width", 64}, {"vocabulary", 512}};
      if (key == "compressed_attention")
        part[key] = {{"query_rank", 64}, {"rope_dim", 16}, {"output_groups", 2}, {"output_rank", 32}};
      if (key == "short_convolution") part[key] = {{"tokens", 3}};
      part[key][inner] = Json::array();
      const std::string inner_error = schema_error(part);
      EXPECT_TRUE(inner_error.starts_with("/" + key + "/" + inner)) << inner_error;
      EXPECT_EQ(inner_error.find("unknown key"), std::string::npos) << inner_error;
    }
  }
}

// Bounds of the schema are the loader's: one beyond is out of range.
TEST(ModelSchema, RangesAgree) {
  const Json schema = read("docs/schemas/model.schema.json");
  for (const auto& [key, value] : schema["properties"].items()) {
    if (value.value("type", "") != "integer") continue;
    Json model = sound();
    model.erase("parameters");
    for (const std::int64_t beyond :
         {value["minimum"].get<std::int64_t>() - 1, value["maximum"].get<std::int64_t>() + 1}) {
      model[key] = beyond;
      const std::string error = schema_error(model);
      if (key == "head_dim") continue;  // not with latent attention, which the sound model has
      EXPECT_TRUE(error.starts_with("/" + key + ": expected a whole number")) << beyond << ": " << error;
    }
  }
}

}  // namespace
}  // namespace spillway::models
