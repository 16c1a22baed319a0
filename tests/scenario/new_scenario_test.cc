#include "scenario/new_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "scenario/scenario.h"

namespace spillway::scenario {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What is written is a scenario as it is: the model on the machine, everything else as if it were not there.
TEST(NewScenario, IsReadAsItIs) {
  for (const char* machine : {"h100-80gb-1gpu", "hgx-h800", "rtx-4090"}) {
    const std::string text = new_scenario_text("llama-3-8b", machine);
    const Scenario scenario = parse_scenario(text, "new", "");
    EXPECT_EQ(scenario.model, "llama-3-8b");
    EXPECT_EQ(scenario.hardware, machine);
    TrainingSetup expected;
    expected.sequence = 4096;
    expected.data_parallel = ProfileLibrary::shared().load_system(machine).gpu_count;
    for (const std::string& key : training_setup_keys())
      EXPECT_EQ(field_text(scenario.training, key), field_text(expected, key)) << key;
    EXPECT_EQ(scenario.offload.technique, Scenario().offload.technique);
    EXPECT_THAT(text, AllOf(HasSubstr("// "), HasSubstr("\"micro_batch\": 1,"), HasSubstr("\"recompute\": \"none\"")));
  }
  EXPECT_EQ(parse_scenario(new_scenario_text("gpt2-small", "l4"), "new", "").training.sequence, 1024);
}

TEST(NewScenario, NamesAreChecked) {
  EXPECT_THROW(new_scenario_text("llama-3-8c", "dgx-h100"), InputError);
  EXPECT_THROW(new_scenario_text("llama-3-8b", "dgx-h101"), InputError);
}

TEST(Comments, MayStandInAScenario) {
  const std::string text = R"({
    // what it is
    "schema": "spillway-scenario", "version": 1, /* of the form */
    "model": {"name": "gpt2-small"},  // "sequence": 512
    "hardware": {"profile": "l4"}
  })";
  EXPECT_EQ(parse_scenario(text, "x", "").model, "gpt2-small");
  EXPECT_EQ(setting_of(text, "hardware.profile"), "l4");
  const std::string changed = with_setting(text, "model.sequence=256");
  EXPECT_EQ(parse_scenario(changed, "x", "").training.sequence, 256);
  EXPECT_EQ(changed.find("//"), std::string::npos);
  EXPECT_THROW(parse_scenario("{ // no end", "x", ""), InputError);
}

// A model, a machine or a sweep in a scenario's place: what it is, and the command to go on with.
TEST(OtherDocuments, AreToldByWhatTheyAre) {
  const auto file = [](const char* name, const std::string& text) {
    const std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
    std::ofstream(path) << text;
    return path;
  };
  const auto complaint = [](const std::string& path) {
    try {
      scenario_for_trace(path);
    } catch (const InputError& error) {
      return error.cause() + "; " + error.remedy();
    }
    return std::string("accepted");
  };
  const std::string config = file("config.json", R"({"model_type": "llama", "hidden_size": 64})");
  EXPECT_THAT(complaint(config), AllOf(HasSubstr("is a model"), HasSubstr("spillway fit " + config + " --on ")));
  EXPECT_THAT(complaint(file("m.json", R"({"schema": "spillway.model", "version": 1})")), HasSubstr("is a model"));
  EXPECT_THAT(complaint(file("p.json", R"({"schema": "spillway-hardware-profile/1", "kind": "gpu"})")),
              AllOf(HasSubstr("is a hardware profile"), HasSubstr("spillway fit MODEL --on ")));
  EXPECT_THAT(complaint(file("s.json", R"({"schema": "spillway-sweep", "version": 1})")), HasSubstr("spillway sweep"));
  EXPECT_THAT(
      complaint(file("n.json", R"({"model": {"name": "gpt2-small"}, "hardware": {"profile": "h100-80gb-1gpu"}})")),
      AllOf(HasSubstr("reads like a scenario"), HasSubstr(R"("schema": "spillway-scenario")")));
}

}  // namespace
}  // namespace spillway::scenario
