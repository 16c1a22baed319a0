#include "studies/recorded/step_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/input_error.h"
#include "base/output_file.h"
#include "models/spec/model_spec.h"
#include "studies/recorded/operator_kinds.h"
#include "traces/formats/spillway_binary.h"

namespace spillway::studies {
namespace {

Scenario step_of(const std::string& more) {
  return parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "hardware": {"profile": "h100-sxm5-80gb"},
                           "model": {"name": "llama-3.2-1b", "precision": "bf16", "optimizer_form": "fused", )" +
                            more + "}}",
                        "step", "");
}

// A generated step as if it were recorded on such a GPU.
class Recorded {
 public:
  Recorded(const Scenario& scenario, const GpuProfile& gpu)
      : path_(std::filesystem::temp_directory_path() /
              ("spillway_test_" + std::to_string(::getpid()) + "_recorded.spillway")) {
    HardwareProfile hardware = hardware_of(scenario);
    hardware.gpu = gpu;
    OutputFile out(path_);
    write_spillway_binary(generated_step(scenario, find_model(scenario.model), ScenarioMachine(hardware)), out);
    out.commit();
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  ~Recorded() { std::filesystem::remove(path_); }
  [[nodiscard]] Scenario scenario() const { return scenario_for_trace(path_); }

 private:
  std::string path_;
};

const KindJoin& row_of(const StepJoin& join, ScaledOperator of) {
  return *std::find_if(join.kinds.begin(), join.kinds.end(), [of](const KindJoin& row) { return row.of == of; });
}

// A GPU slower by kind is found again, and with its profile a step of another batch is as long as on that GPU.
TEST(StepJoin, FindsTheFactorsOfAnotherGpu) {
  const Scenario scenario = step_of(R"("layers": 2, "sequence": 1024, "micro_batch": 4)");
  const Scenario larger = step_of(R"("layers": 3, "sequence": 1024, "micro_batch": 8)");
  const HardwareProfile hardware = hardware_of(scenario);
  const struct {
    ScaledOperator of;
    double factor;
  } slower[] = {{ScaledOperator::product, 1.3},
                {ScaledOperator::attention_backward, 1.5},
                {ScaledOperator::norm_backward, 1.1},
                {ScaledOperator::optimizer, 0.9}};
  GpuProfile gpu = hardware.gpu;
  for (const auto& [of, factor] : slower) lengthen(gpu, of, factor, TrainingPrecision::bf16, {});
  const Recorded recorded(scenario, gpu);
  const StepJoin join = join_step(recorded.scenario(), scenario, "2026-11-29");
  for (const auto& [of, factor] : slower) {
    EXPECT_NEAR(row_of(join, of).factor, factor, 0.02) << scaled_operator_name(of);
    EXPECT_NEAR(row_of(join, of).least, 1, 0.05) << scaled_operator_name(of);
    EXPECT_NEAR(row_of(join, of).most, 1, 0.05) << scaled_operator_name(of);
  }
  EXPECT_NEAR(row_of(join, ScaledOperator::memory_bound).factor, 1, 0.01);
  EXPECT_EQ(join.profile.name, "checked-h100-sxm5-80gb");
  EXPECT_EQ(join.profile.operator_times_of, "h100-sxm5-80gb");
  EXPECT_GT(to_seconds(join.measured) / to_seconds(join.generated), 1.05);
  EXPECT_NEAR(to_seconds(join.corrected) / to_seconds(join.measured), 1, 0.01);
  const auto step = [&](const GpuProfile& on) {
    HardwareProfile other = hardware;
    other.gpu = on;
    return to_seconds(run(load(larger, find_model(larger.model), ScenarioMachine(other))).step_time);
  };
  EXPECT_NEAR(step(join.profile) / step(gpu), 1, 0.01);
  EXPECT_GT(step(gpu) / step(hardware.gpu), 1.05);
}

// Collectives have no factor, and kernels of a rank among several are told as those of one alone.
TEST(StepJoin, TakesStepsOfSeveralRanks) {
  for (const char* layout :
       {R"("data_parallel": 8, "zero_stage": 3)", R"("pipeline_parallel": 2, "gradient_accumulation": 4)"}) {
    Scenario scenario = step_of(R"("layers": 4, "sequence": 1024, "micro_batch": 2, )" + std::string(layout));
    scenario.hardware = "dgx-h100";
    GpuProfile gpu = hardware_of(scenario).gpu;
    lengthen(gpu, ScaledOperator::product, 1.2, TrainingPrecision::bf16, {});
    const Recorded recorded(scenario, gpu);
    const StepJoin join = join_step(recorded.scenario(), scenario, "2026-11-29");
    EXPECT_NEAR(row_of(join, ScaledOperator::product).factor, 1.2, 0.02) << layout;
    EXPECT_EQ(row_of(join, ScaledOperator::product).recorded_kernels,
              row_of(join, ScaledOperator::product).generated_kernels)
        << layout;
    EXPECT_GT(join.generated_collectives, Picos(0)) << layout;
    EXPECT_EQ(join.recorded_collectives, join.generated_collectives) << layout;
    EXPECT_NEAR(to_seconds(join.corrected) / to_seconds(join.measured), 1, 0.01) << layout;
  }
}

TEST(StepJoin, RefusesAnotherStep) {
  const Scenario scenario = step_of(R"("layers": 2, "sequence": 512, "micro_batch": 2)");
  const Recorded recorded(scenario, hardware_of(scenario).gpu);
  const auto said = [&](const Scenario& recording, const Scenario& of) {
    try {
      join_step(recording, of, "2026-11-29");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(said(recorded.scenario(), step_of(R"("layers": 2, "sequence": 512, "micro_batch": 32)")),
              testing::HasSubstr("not the same step"));
  EXPECT_THAT(said(recorded.scenario(), step_of(R"("layers": 3, "sequence": 512, "micro_batch": 1)")),
              testing::HasSubstr("kernels of product"));
  Scenario other = scenario;
  other.hardware = "a100-sxm4-80gb";
  EXPECT_THAT(said(recorded.scenario(), other), testing::HasSubstr("NVIDIA H100"));
  EXPECT_THAT(said(scenario, scenario), testing::HasSubstr("is no recording"));
  EXPECT_THAT(said(recorded.scenario(), recorded.scenario()), testing::HasSubstr("has no model"));
}

}  // namespace
}  // namespace spillway::studies
