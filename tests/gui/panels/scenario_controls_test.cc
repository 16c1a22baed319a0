// The panel offers what scenarios take, and all of it where there is a list.
#include "gui/panels/scenario_controls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planners/technique/technique_table.h"
#include "scenario/scenario.h"
#include "scenario/scenario_fields.h"

namespace spillway::gui {
namespace {

const std::string sound = R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2"},
                              "hardware": {"profile": "h100-sxm5-80gb"}})";

TEST(ScenarioControls, TheLoaderTakesEveryChoice) {
  int choices = 0;
  for (const Control& control : scenario_controls()) {
    std::vector<std::string> values = control.choices;
    if (control.kind == ControlKind::toggle) values = {control.on, control.off};
    if (control.kind == ControlKind::number)
      values = {std::to_string(static_cast<int>(control.least)), std::to_string(static_cast<int>(control.most))};
    if (control.key == "model.name") values.resize(1);  // which models there are is tested elsewhere
    for (const std::string& value : values) {
      if (value.empty()) continue;
      EXPECT_NO_THROW(parse_scenario(sound, "panel", "/", std::vector<std::string>{control.key + "=" + value}))
          << control.key << "=" << value;
      ++choices;
    }
    EXPECT_FALSE(control.label.empty()) << control.key;
    EXPECT_FALSE(control.about.empty()) << control.key;
  }
  EXPECT_GT(choices, 100);
}

// Any key can be shown and taken back: as the panel has it, as the description has it, or as a text.
TEST(ScenarioControls, OfAnyKey) {
  EXPECT_EQ(control_of("model.micro_batch").group, "Model");
  const Control loss = control_of("model.loss");
  EXPECT_EQ(loss.group, control_groups().back());
  EXPECT_THAT(loss.choices, testing::Contains("fused"));
  const Control own = control_of("hardware.set.gpu.memory_bandwidth");
  EXPECT_EQ(own.kind, ControlKind::entry);
  EXPECT_EQ(own.label, "gpu memory bandwidth");
  for (const FieldRow& row : scenario_rows())
    EXPECT_EQ(control_of(std::string(row.path)).label.find_first_of("_."), std::string::npos) << row.path;
}

TEST(ScenarioControls, AccumulationIsDerivedFromAGlobalBatch) {
  const Control accumulation = control_of("model.gradient_accumulation");
  const auto derived = [&](const std::string& more) {
    const ScenarioDocument document(
        R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "micro_batch": 2)" + more +
            R"(}, "hardware": {"profile": "dgx-h100"}})",
        "", "/");
    EXPECT_EQ(steps_of(control_of("model.global_batch"), document), more.find("parallel") == std::string::npos ? 2 : 8);
    return std::pair(is_derived(accumulation, document), derived_value(accumulation, document));
  };
  EXPECT_FALSE(derived("").first);
  EXPECT_EQ(derived(R"(, "global_batch": 8)"), std::pair(true, std::string("4")));
  EXPECT_EQ(derived(R"(, "global_batch": 8, "data_parallel": 4)"), std::pair(true, std::string("1")));
  EXPECT_EQ(derived(R"(, "global_batch": 7)"), std::pair(true, std::string())) << "no multiple";
}

TEST(ScenarioControls, OfferEveryWord) {
  const std::vector<Control> controls = scenario_controls();
  const auto offered = [&](std::string_view key) {
    const auto found = std::find_if(controls.begin(), controls.end(), [&](const Control& control) {
      return control.key == key && !control.choices.empty();
    });
    return found == controls.end() ? std::vector<std::string>() : found->choices;
  };
  const auto all = [](const Words& words) {
    const std::vector<std::string_view> names = words.names();
    return std::vector<std::string>(names.begin(), names.end());
  };
  EXPECT_EQ(offered("offload.technique"), all(offload_words()));
  EXPECT_EQ(offered("memory.allocator"), all(allocator_words()));
  EXPECT_EQ(offered("model.pipeline_schedule"), all(schedule_words()));
  EXPECT_THAT(offered("memory.allocator"), testing::Contains("stalloc"));
}

}  // namespace
}  // namespace spillway::gui
