// What the description of a scenario offers, the loader takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "models/spec/training_setup_fields.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario_fields.h"
#include "sim/devices/memory/memory_pool.h"

namespace spillway::scenario {
namespace {

const std::string sound = R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2"},
                              "hardware": {"profile": "h100-sxm5-80gb"}})";

std::string setting_complaint(const std::string& setting) {
  try {
    static_cast<void>(parse_scenario(sound, "test", "/", std::vector<std::string>{setting}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Every word of every list; those that a schedule excludes aside.
TEST(ScenarioSchema, TheLoaderTakesEachWord) {
  int words = 0;
  for (const FieldRow& row : scenario_rows()) {
    if (row.words == nullptr || row.inside_list) continue;
    for (const std::string_view word : row.words->spellings()) {
      EXPECT_EQ(setting_complaint(row.path + "=" + std::string(word)), "") << row.path << " " << word;
      ++words;
    }
    EXPECT_NE(setting_complaint(row.path + "=no-such-word").find("no-such-word"), std::string::npos) << row.path;
  }
  EXPECT_GT(words, 70);
}

TEST(ScenarioSchema, OffersEverySchedulePolicyAndTechnique) {
  for (const NamedSchedule& schedule : named_schedules()) EXPECT_TRUE(schedule_words().find(schedule.name));
  for (const std::string_view policy : memory_policies()) EXPECT_TRUE(allocator_words().find(policy)) << policy;
  for (const Technique& technique : techniques()) {
    const std::string& word = technique.word.empty() ? technique.name : technique.word;
    if (technique.key != "offload.technique" || word == moved_by_schedule) continue;
    EXPECT_TRUE(offload_words().find(word)) << word;
  }
  EXPECT_EQ(tier_words()[Tier::drive].name, to_string(Tier::drive));
  EXPECT_EQ(prefetch_words()[Prefetch::module].name, to_string(Prefetch::module));
}

// Bounds are the loader's: one beyond is out of range, the bound itself is not.
TEST(ScenarioSchema, TheLoaderKeepsTheRanges) {
  int ranges = 0;
  for (const FieldRow& row : scenario_rows()) {
    if (row.kind != FieldKind::integer || row.inside_list || row.info.max > 1e15 || row.path == "version") continue;
    const auto most = static_cast<std::int64_t>(row.info.max), least = static_cast<std::int64_t>(row.info.min);
    EXPECT_NE(setting_complaint(row.path + "=" + std::to_string(most + 1)).find("whole number"), std::string::npos)
        << row.path;
    EXPECT_NE(setting_complaint(row.path + "=" + std::to_string(least - 1)).find("whole number"), std::string::npos);
    EXPECT_EQ(setting_complaint(row.path + "=" + std::to_string(least)), "");
    ++ranges;
  }
  EXPECT_GT(ranges, 15);
}

// A key with a default has it when a scenario leaves it out.
TEST(ScenarioSchema, StatesTheDefaults) {
  const auto schema = nlohmann::json::parse(scenario_schema());
  const auto& model = schema["properties"]["model"]["properties"];
  for (const std::string& key : training_setup_keys()) {
    const std::string text = field_text(TrainingSetup(), key);
    ASSERT_TRUE(model.contains(key)) << key;
    if (!model[key].contains("default")) {  // of a text that is empty
      EXPECT_EQ(text, "") << key;
      continue;
    }
    const auto& value = model[key]["default"];
    EXPECT_EQ(value.is_string() ? value.get<std::string>() : value.dump(), text) << key;
  }
  EXPECT_EQ(schema["properties"]["memory"]["properties"]["allocator"]["default"], Scenario().allocator);
}

}  // namespace
}  // namespace spillway::scenario
