// The panel offers what scenarios take, and all of it where there is a list.
#include "gui/panels/scenario_controls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planners/technique/technique_table.h"
#include "scenario/scenario.h"

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
