#include "scenario/scenario.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/input_error.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {
namespace {

std::string source(const std::string& file) {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return (std::filesystem::path(root == nullptr ? "." : root) / file).string();
}

const std::string head = R"({"schema": "spillway-scenario", "version": 1, )";
const std::string model_part = R"("model": {"name": "gpt2-small"}, "hardware": {"profile": "h100-80gb-1gpu"})";

Scenario parse(const std::string& text, const std::vector<std::string>& settings = {}) {
  return parse_scenario(text, "test.json", "/folder", settings);
}

// What went wrong and where, as the user would read it.
std::string complaint(const std::string& text, const std::vector<std::string>& settings = {}) {
  try {
    parse(text, settings);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Scenario, SettingsChangeWhatTheFileSays) {
  const Scenario scenario =
      parse(head + model_part + "}", {"model.sequence=512", "what_if.gpu=2", "hardware.set.gpu.memory=x0.5"});
  EXPECT_EQ(scenario.training.sequence, 512);
  EXPECT_EQ(scenario.what_if.compute, 2);
  EXPECT_EQ(scenario.what_if.memory, 2);
  EXPECT_EQ(scenario.what_if.host, 1);
  ASSERT_EQ(scenario.hardware_overrides.size(), 1U);
  EXPECT_EQ(scenario.hardware_overrides[0].first, "gpu.memory");
  EXPECT_EQ(scenario.hardware_overrides[0].second, "x0.5");
}

TEST(Scenario, PathsAreRelativeToItsFolder) {
  EXPECT_EQ(parse(head + R"("trace": "../a.json.gz"})").trace, "/a.json.gz");
}

TEST(Scenario, NewerVersionsAreRefused) {
  const std::string text = R"({"schema": "spillway-scenario", "version": 2, )" + model_part + "}";
  EXPECT_NE(complaint(text).find("newer than this program's 1"), std::string::npos);
}

TEST(Scenario, MistakesNamePlaceAndRemedy) {
  EXPECT_NE(complaint(head + model_part + R"(, "memmory": {}})").find("/memmory"), std::string::npos);
  EXPECT_NE(complaint(head + model_part + R"(, "memmory": {}})").find("did you mean memory?"), std::string::npos);
  EXPECT_NE(complaint(head + model_part + "}", {"model.sequnce=1"}).find("did you mean sequence?"), std::string::npos);
  EXPECT_NE(complaint(head + model_part + R"(, "what_if": {"gpu": -1}})").find("/what_if/gpu"), std::string::npos);
  EXPECT_NE(complaint(head + R"("title": "nothing"})").find("neither a trace nor a model"), std::string::npos);
  EXPECT_NE(complaint(head + model_part + R"(, "trace": "t"})").find("both a trace and a model"), std::string::npos);
  EXPECT_NE(complaint("{").find("not valid JSON"), std::string::npos);
  EXPECT_NE(complaint(head + model_part + "}", {"model"}).find("KEY=VALUE"), std::string::npos);
}

// Weights, gradients, master weights and moments of 8.03e9 parameters alone are 128 GB.
TEST(ScenarioRun, Llama3DoesNotFitOneH100AndGpt2Does) {
  const Result llama = run(load(load_scenario(source("cli/scenarios/llama3-8b-8k-h100.json"))));
  EXPECT_FALSE(llama.fits());
  EXPECT_GT(llama.memory.peak_allocated, Bytes(128'000'000'000));
  EXPECT_FALSE(llama.memory.explanation.empty());
  const Result gpt2 = run(load(load_scenario(source("cli/scenarios/gpt2-xl-1k-h100.json"))));
  EXPECT_TRUE(gpt2.fits());
  EXPECT_GT(gpt2.mfu, 0.2);
  EXPECT_LT(gpt2.mfu, 0.7);
}

// The parts of the critical path add up to the replayed time, and relaxing a resource never slows the step.
TEST(ScenarioRun, ExplainsWhatBinds) {
  const LoadedScenario loaded = load(parse(head + model_part + "}", {"model.sequence=256"}));
  const Result result = run(loaded);
  Picos sum{};
  for (const Picos part : result.breakdown) sum += part;
  EXPECT_EQ(sum, result.replayed);
  for (const Relaxation& relaxation : explain(loaded, result))
    EXPECT_LE(relaxation.step_time, result.step_time) << relaxation.resource;
}

// A capture replays to its own recorded times: the bundled one has no device work, so the host is all of it.
TEST(ScenarioRun, ReplaysTheBundledCaptureAsRecorded) {
  const Result result = run(load(load_scenario(source("cli/scenarios/gpt2-tiny-captured-cpu.json"))));
  ASSERT_EQ(result.steps.size(), 3U);
  for (const StepResult& step : result.steps)
    EXPECT_NEAR(to_seconds(step.span()) / to_seconds(step.recorded_span), 1, 0.001) << step.name;
  EXPECT_EQ(result.binding, Binding::host);
}

TEST(ScenarioRun, MatchesCapturedDevicesByNameAndMemory) {
  const ProfileLibrary library = ProfileLibrary::standard();
  EXPECT_EQ(match_gpu(library, "Tesla V100-SXM2-32GB", Bytes(34089730048)), "v100-sxm2-32gb");
  EXPECT_EQ(match_gpu(library, "Tesla V100-SXM2-16GB", Bytes(16914055168)), "v100-sxm2-16gb");
  EXPECT_EQ(match_gpu(library, "NVIDIA H100 80GB HBM3", Bytes(85031714816)), "h100-sxm5-80gb");
  EXPECT_EQ(match_gpu(library, "NVIDIA H100 PCIe", Bytes(84929216512)), "h100-pcie-80gb");
  EXPECT_EQ(match_gpu(library, "NVIDIA H200", Bytes(150108504064)), "h200-sxm-141gb");
  EXPECT_EQ(match_gpu(library, "NVIDIA A100-PCIE-40GB", Bytes(42505273344)), "a100-pcie-40gb");
  EXPECT_EQ(match_gpu(library, "NVIDIA A100-SXM4-80GB", Bytes(84987740160)), "a100-sxm4-80gb");
  EXPECT_EQ(match_gpu(library, "NVIDIA A100 80GB PCIe", Bytes(85198045184)), "a100-pcie-80gb");
  EXPECT_EQ(match_gpu(library, "NVIDIA GeForce RTX 2080 Ti", Bytes(11546394624)), "rtx-2080-ti");
  EXPECT_EQ(match_gpu(library, "AMD Instinct MI300X", Bytes(206141652992)), "mi300x-192gb");
  EXPECT_EQ(match_gpu(library, "Some Other Accelerator", Bytes(1)), "");
}

}  // namespace
}  // namespace spillway::scenario
