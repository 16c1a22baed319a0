// Editing scenarios as text, and what the faces make of a result.
#include <gtest/gtest.h>

#include "base/input_error.h"
#include "reports/step_report.h"
#include "scenario/relaxation_setting.h"
#include "scenario/scenario.h"
#include "scenario/scenario_memory.h"
#include "scenario/scenario_run.h"
#include "studies/offload/result_figures.h"
#include "studies/offload/roofline.h"

namespace spillway::reports {
namespace {

const std::string plain = R"({"schema": "spillway-scenario", "version": 1,
  "model": {"name": "gpt2-small", "sequence": 128, "micro_batch": 2}, "hardware": {"profile": "rtx-4090"}})";

// settings_between(a, b) applied to a gives what b says.
TEST(ScenarioEdit, SettingsBetweenTurnOneIntoTheOther) {
  std::string edited = plain;
  for (const char* const setting : {"model.micro_batch=4", "hardware.set.gpu.memory=30 GiB", "memory.allocator=ideal",
                                    "model.sequence=null", "title=4", "offload.tier=host"})
    edited = with_setting(edited, setting);
  const auto settings = settings_between(plain, edited);
  ASSERT_TRUE(settings);
  EXPECT_EQ(*settings,
            (std::vector<std::string>{"hardware.set.gpu.memory=30 GiB", "memory.allocator=ideal", "model.micro_batch=4",
                                      "offload.tier=host", "title=4", "model.sequence=null"}));
  std::string again = plain;
  for (const std::string& setting : *settings) again = with_setting(again, setting);
  EXPECT_EQ(settings_between(again, edited), std::vector<std::string>{});
  EXPECT_EQ(setting_of(edited, "model.micro_batch"), "4");
  EXPECT_EQ(setting_of(edited, "hardware.set.gpu.memory"), "30 GiB");
  EXPECT_EQ(setting_of(edited, "model.sequence"), std::nullopt);
}

// Objects left empty go, so that taking back the only key of one gives the scenario before it.
TEST(ScenarioEdit, EmptyObjectsGo) {
  const std::string with = with_setting(plain, "what_if.pcie=2");
  EXPECT_EQ(with_setting(with, "what_if.pcie=null"), with_setting(plain, "what_if=null"));
}

// A machine's own values have dots in their names; taken back, the scenario is the one before.
TEST(ScenarioEdit, AValueOfTheMachineIsTakenOut) {
  const std::string before = with_setting(plain, "title=null");
  const std::string one = with_setting(plain, "hardware.set.gpu.memory=30 GiB");
  const std::string two = with_setting(one, "hardware.set.gpu.pcie_generation=3");
  EXPECT_EQ(with_setting(two, "hardware.set.gpu.pcie_generation=null"), one);
  EXPECT_EQ(with_setting(one, "hardware.set.gpu.memory=null"), before);
  std::string again = two;
  const auto settings = settings_between(two, before);
  ASSERT_TRUE(settings);
  for (const std::string& setting : *settings) again = with_setting(again, setting);
  EXPECT_EQ(again, before);
  EXPECT_THROW(with_setting(one, "hardware.set.gpu.memry=null"), InputError);
  EXPECT_THROW(with_setting(R"({"hardware": "rtx-4090"})", "hardware.set.gpu.memory=30 GiB"), InputError);
}

// --set can't say lists.
// Taking out what is no key is a mistyped name, as setting it is.
TEST(ScenarioEdit, WhatIsTakenOutIsAKey) {
  const std::string text = R"({"model": {"name": "gpt2-xl"}})";
  EXPECT_THROW(with_setting(text, "model.sequnce=null"), InputError);
  EXPECT_THROW(with_setting(text, "nosuch.key=null"), InputError);
  EXPECT_EQ(with_setting(text, "model.sequence=null"), with_setting(text, "offload=null"));
  EXPECT_EQ(with_setting(R"({"ours": {"key": 1}})", "ours.key=null"), "{}\n");
}

TEST(ScenarioEdit, ListsAreNoSettings) {
  const std::string slow =
      R"({"schema": "spillway-scenario", "version": 1, "hardware": {"jitter": {"slow_stages": [[0, 2]]}}})";
  EXPECT_EQ(settings_between(plain, slow), std::nullopt);
  EXPECT_EQ(settings_between(slow, slow), std::vector<std::string>{});
}

TEST(ScenarioEdit, WhatIsNoScenarioIsRefused) {
  EXPECT_THROW(with_setting("[1, 2", "a=1"), InputError);
  EXPECT_THROW(with_setting(plain, "no equals sign"), InputError);
}

TEST(ScenarioEdit, PathsAreMovedNamesAreNot) {
  const std::string text = R"({"trace": "a/b.json", "model": {"name": "gpt2-small"}, "plan": "/abs/plan.json"})";
  const std::string moved = moved_scenario(text, "/root/x", "/root/x/y");
  EXPECT_EQ(setting_of(moved, "trace"), "../a/b.json");
  EXPECT_EQ(setting_of(moved, "model.name"), "gpt2-small");
  EXPECT_EQ(setting_of(moved, "plan"), "/abs/plan.json");
  EXPECT_EQ(moved_scenario(plain, "/root/x", "/root/y"), plain);
  EXPECT_EQ(moved_scenario(text, "", ""), moved_scenario(text, ".", "."));  // both are the current folder
  for (const char* id : {"meta-llama/Llama-3.1-8B", "hf:meta-llama/Llama-3.1-8B"}) {
    const std::string named = with_setting(plain, std::string("model.name=") + id);
    EXPECT_EQ(setting_of(moved_scenario(named, "/root/x", "/root/y"), "model.name"), id);
    EXPECT_EQ(parse_scenario(named, "a.json", "/root/x").model, id);
  }
}

TEST(ScenarioEdit, FilesInAMachinesWordsAreSeenFromTheFolder) {
  const std::string text = with_setting(plain, "hardware.profile=dgx-h100x2+gpu=parts/mine.json+roce-400");
  EXPECT_EQ(parse_scenario(text, "a.json", "/root/x").hardware, "dgx-h100x2+gpu=/root/x/parts/mine.json+roce-400");
  EXPECT_EQ(setting_of(moved_scenario(text, "/root/x", "/root/y"), "hardware.profile"),
            "dgx-h100x2+gpu=/root/x/parts/mine.json+roce-400");
  const std::string counted = with_setting(plain, "hardware.profile=4xmine.json");
  EXPECT_EQ(setting_of(moved_scenario(counted, "/root/x", "/root/x/y"), "hardware.profile"), "../4xmine.json");
}

struct Replayed {
  LoadedScenario loaded = load(parse_scenario(plain, "plain", ""));
  ScenarioRun run = run_traced(loaded);
};

// Operations over bytes and time are those of the trace; nothing lies above the roof.
TEST(Roofline, KernelsLieUnderTheRoof) {
  const Replayed step;
  const Roofline roof = roofline(step.loaded, step.run);
  ASSERT_FALSE(roof.kernels.empty());
  double flops = 0, all = 0;
  for (std::size_t i = 0; i < step.loaded.trace.ops.size(); ++i)
    if (step.loaded.trace.ops.bytes[i] > Bytes(0) && step.loaded.trace.ops.kind[i] == OpKind::kernel)
      all += static_cast<double>(std::max<std::int64_t>(0, step.loaded.trace.ops.flops[i].count()));
  for (const RooflineKernel& kernel : roof.kernels) {
    flops += kernel.flops;
    EXPECT_LE(kernel.rate(), roof.peak_flops * 1.001) << kernel.name;
  }
  EXPECT_DOUBLE_EQ(flops, all);
}

// What explain() tries can be said by a scenario, which comes to the same; copies of states that are not on the GPU
// count as those of an offload do.
TEST(Relaxation, IsASettingOfTheScenario) {
  const std::string on_cpu = with_setting(with_setting(plain, "model.zero_stage=3"), "model.optimizer_device=cpu");
  for (const std::string& scenario : {std::string(plain), on_cpu, with_setting(on_cpu, "model.weight_device=cpu")}) {
    SCOPED_TRACE(scenario);
    const LoadedScenario loaded = load(parse_scenario(scenario, "plain", ""));
    const Result result = run(loaded);
    int settings = 0;
    std::vector<std::string> others;
    for (const Relaxation& one : explain(loaded, result)) {
      const std::string key = setting_of_relaxation(one.resource);
      if (key.empty()) {
        others.push_back(one.resource);
        continue;
      }
      ++settings;
      const std::string text = with_setting(scenario, key + "=" + std::to_string(relaxation_factor));
      EXPECT_EQ(run_traced(load(parse_scenario(text, "faster", ""))).result.step_time, one.step_time) << key;
    }
    EXPECT_EQ(settings, 6);
    EXPECT_EQ(others,
              scenario == plain ? std::vector<std::string>() : std::vector<std::string>{"links infinitely fast"});
  }
  EXPECT_EQ(setting_of_relaxation("drives infinitely fast"), "");
}

// The report begins with the answer, and has every figure of the comparison with its change.
TEST(StepReport, SaysTheAnswerAndTheChanges) {
  const Replayed step;
  const Result& result = step.run.result;
  Result slower = result;
  slower.step_time = Picos(result.step_time.count() * 2);
  const ReportDocument alone = step_report(result, nullptr);
  EXPECT_EQ(alone.answer, Verdict::fits);
  EXPECT_EQ(alone.verdict.rfind("Yes: " + verdict_sentence(result), 0), 0U) << alone.verdict;
  const ReportDocument both = step_report(slower, &result);
  const ReportTable& figures = both.sections.front().tables.front();
  EXPECT_EQ(figures.rows.size(), compared_figures(result, slower).size());
  EXPECT_EQ(figures.rows.front().front().text, "step time");
  EXPECT_EQ(figures.rows.front().back().text, "+100.00 %");
  for (const ReportSection& section : both.sections)
    for (const ReportTable& table : section.tables)
      for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << table.caption;
}

// A peak that isn't known is no number beside one that is, in the comparison and in the report.
TEST(StepReport, UnknownPeaksHaveNoFigure) {
  const Replayed step;
  Result unknown = step.run.result;
  unknown.memory.known = false;
  const std::vector<ComparedFigure> figures = compared_figures(step.run.result, unknown);
  ASSERT_EQ(figures[1].name, "peak allocated");
  EXPECT_TRUE(figures[1].a);
  EXPECT_EQ(ComparedFigure::text(figures[1].b), "not known");
  EXPECT_EQ(figures[1].change(), "-");
  const ReportDocument report = step_report(unknown, &step.run.result);
  EXPECT_EQ(report.sections.front().tables.front().rows[1][2].text, "not known");
}

// No is said once, and of many layers the largest and what the others hold.
TEST(StepReport, SaysNoOnceAndManyLayersInShort) {
  const Replayed step;
  Result refused = step.run.result;
  refused.drives_refuse = "the drives wear out";
  refused.memory.owners_by_layer.clear();
  for (int layer = 0; layer < 40; ++layer)
    refused.memory.owners_by_layer.push_back({"layer " + std::to_string(layer), Bytes(std::int64_t{1} << 30), true});
  const ReportDocument report = step_report(refused, nullptr);
  EXPECT_EQ(report.verdict.rfind("No: the drives wear out. ", 0), 0U) << report.verdict;
  for (const ReportSection& section : report.sections)
    for (const ReportTable& table : section.tables)
      if (table.caption == "At the peak, by layer") {
        ASSERT_EQ(table.rows.size(), 15U);
        EXPECT_EQ(table.rows.back().front().text, "26 others");
        EXPECT_DOUBLE_EQ(table.rows.back().back().number.value_or(0), 26);
      }
}

TEST(ResultFigures, BusiestSlotAndShortestLife) {
  Result result;
  EXPECT_EQ(pcie_busy(result), std::nullopt);
  EXPECT_EQ(shortest_lived(result), nullptr);
  result.links = {{"gpu0 HBM", {}, {}, 0.9}, {"gpu0 up", {}, {}, 0.25}, {"gpu0 down", {}, {}, 0.5}};
  EXPECT_EQ(pcie_busy(result), 0.5);
  result.drives.resize(3);
  result.drives[0].life = DriveLife{.years = 3};
  result.drives[1].life = DriveLife{.years = 2};
  EXPECT_EQ(shortest_lived(result), &result.drives[1]);
}

}  // namespace
}  // namespace spillway::reports
