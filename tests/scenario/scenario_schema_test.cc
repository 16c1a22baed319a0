// The published schema of scenarios against what the loader accepts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "scenario/scenario.h"

namespace spillway::scenario {
namespace {

using Json = nlohmann::ordered_json;

Json schema() {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/docs/schemas/scenario.schema.json");
  return Json::parse(file);
}

void collect(const Json& object, const std::string& prefix, std::vector<std::string>& keys) {
  if (!object.contains("properties")) return;
  EXPECT_EQ(object["additionalProperties"], Json(false)) << prefix;
  for (const auto& [key, value] : object["properties"].items()) {
    keys.push_back(prefix + key);
    collect(value, prefix + key + ".", keys);
  }
}

// Every key of the one is a key of the other.
TEST(ScenarioSchema, HasTheKeysTheLoaderAccepts) {
  std::vector<std::string> keys;
  collect(schema(), "", keys);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, scenario_keys());
}

// A word outside the list is refused with the list.
TEST(ScenarioSchema, ListsTheWordsTheLoaderAccepts) {
  const Json model = schema()["properties"]["model"]["properties"];
  int lists = 0;
  for (const auto& [key, value] : model.items()) {
    if (!value.contains("enum") || !value["enum"][0].is_string()) continue;
    ++lists;
    std::string words;
    for (const Json& word : value["enum"]) words += (words.empty() ? "" : ", ") + word.get<std::string>();
    TrainingSetup setup;
    try {
      set_field(setup, key, "no such word");
      ADD_FAILURE() << key;
    } catch (const InputError& error) {
      EXPECT_EQ(error.remedy(), "give one of " + words) << key;
    }
  }
  EXPECT_GT(lists, 0);
}

// A key the schema gives a default has it when a scenario leaves it out.
TEST(ScenarioSchema, StatesTheDefaults) {
  const Json model = schema()["properties"]["model"]["properties"];
  const TrainingSetup setup;
  for (const std::string& key : training_setup_keys()) {
    const Json& value = model[key]["default"];
    EXPECT_EQ(value.is_string() ? value.get<std::string>() : value.dump(), field_text(setup, key)) << key;
  }
  const Json memory = schema()["properties"]["memory"]["properties"];
  EXPECT_EQ(memory["allocator"]["default"], Json(Scenario().allocator));
  EXPECT_EQ(schema()["properties"]["version"]["const"], Json(scenario_version));
}

}  // namespace
}  // namespace spillway::scenario
