#include "launch/launch_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "launch/launch_facts.h"
#include "scenario/scenario.h"
#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

std::vector<std::string> our_values(const LaunchFlag& row) {
  std::vector<std::string> values;
  std::string_view rest = row.values;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view pair = rest.substr(0, end);
    if (const std::size_t equals = pair.rfind('='); equals != std::string_view::npos)
      values.emplace_back(pair.substr(equals + 1));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return values;
}

TEST(LaunchTable, KeysAreAScenariosAndValuesOnesThatItTakes) {
  const std::vector<std::string> keys = scenario_keys();
  const std::string text = R"({"schema": "spillway-scenario", "version": 1,
      "model": {"name": "gpt2-small"}, "hardware": {"profile": "dgx-h100"}})";
  for (const LaunchFlag& row : launch_flags()) {
    if (row.role != FlagRole::value) continue;
    EXPECT_TRUE(row.values.empty() || row.values == "#" || row.values.find('=') != std::string_view::npos) << row.flag;
    EXPECT_TRUE(std::find(keys.begin(), keys.end(), row.key) != keys.end()) << row.flag << ": " << row.key;
    if (row.fact != row.key || row.values == "#") continue;
    for (const std::string& value : our_values(row)) {
      if (value == "-") continue;
      const std::string set = with_setting(text, std::string(row.key) + "=" + value);
      EXPECT_EQ(test::complaint([&] { return parse_scenario(set, "x", ""); }), "") << row.flag << " " << value;
    }
  }
}

TEST(LaunchTable, WhatIsLeftOutHasAReason) {
  for (const LaunchFlag& row : launch_flags())
    EXPECT_FALSE(row.note.empty() && row.role >= FlagRole::no_effect) << row.flag;
}

TEST(LaunchTable, NamesAreFoundHoweverTheyAreSpelt) {
  const auto key_of = [](LaunchFormat format, std::string_view shown) {
    const LaunchFlag* row = find_flag(format, flag_name(format, shown));
    return row == nullptr ? std::string_view("(unknown)") : row->key;
  };
  EXPECT_EQ(key_of(LaunchFormat::megatron, "--tensor-model-parallel-size"), "model.tensor_parallel");
  EXPECT_EQ(key_of(LaunchFormat::megatron, "model_parallel.tensor_model_parallel_size"), "model.tensor_parallel");
  EXPECT_EQ(key_of(LaunchFormat::hf, "--per-device-train-batch-size"), "model.micro_batch");
  EXPECT_EQ(key_of(LaunchFormat::torchtitan, "--parallelism.tensor_parallel_degree"), "model.tensor_parallel");
  EXPECT_EQ(key_of(LaunchFormat::torchtitan, "other.tensor_parallel_degree"), "(unknown)");
  EXPECT_EQ(key_of(LaunchFormat::accelerate, "fsdp_config.fsdp_sharding_strategy"), "model.zero_stage");
}

TEST(LaunchTable, ExportedValuesAreReadBackAsThemselves) {
  for (const LaunchFlag& row : launch_flags()) {
    if (!row.exported) continue;
    for (const std::string& ours : our_values(row)) {
      if (ours == "-") continue;
      const auto theirs = their_value(row, ours);
      if (!theirs) continue;  // a word that only * stands for
      EXPECT_EQ(our_value(row, *theirs), ours) << row.flag;
    }
  }
}

TEST(LaunchTable, WholeNumbersAsPeopleWriteThem) {
  EXPECT_EQ(whole_number("16"), 16);
  EXPECT_EQ(whole_number("5e8"), 500'000'000);
  EXPECT_EQ(whole_number("1_000"), 1000);
  EXPECT_EQ(whole_number("-1"), -1);
  for (const char* text : {"", "x", "1.5", "1e30", "8x", "nan", "inf"}) EXPECT_FALSE(whole_number(text)) << text;
}

TEST(LaunchTable, DefaultsAreOfFactsThatFlagsSayToo) {
  std::set<std::string_view> facts;
  for (const LaunchFlag& row : launch_flags()) facts.insert(row.fact);
  for (const LaunchDefault& each : launch_defaults())
    EXPECT_TRUE(facts.contains(each.fact) || each.fact == "model.framework" || each.fact == "model.optimizer_form" ||
                each.fact == "model.fused_kernels")
        << each.fact;
}

// A name among many that say nothing is somebody's with a letter amiss.
TEST(LaunchTable, SlipsOfALetterAreFound) {
  for (const char* name : {"eval-intervl", "eval-intervals", "eval-intervak", "eval-intevral"}) {
    const LaunchFlag* row = misspelt_flag(LaunchFormat::megatron, name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_EQ(row->flag, "eval-interval");
  }
  for (const char* name : {"eval-interval", "eval-intrevla", "eval-interval-7", "no"})
    EXPECT_EQ(misspelt_flag(LaunchFormat::megatron, name), nullptr) << name;
}

}  // namespace
}  // namespace spillway::launch
