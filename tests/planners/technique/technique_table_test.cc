#include "planners/technique/technique_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "planners/offload/offload_settings.h"
#include "planners/offload/ssdtrain.h"
#include "planners/order/trace_order.h"
#include "planners/stalloc/stalloc_plan.h"
#include "scenario/evaluator.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/replay/plan_check.h"

namespace spillway::planners {
namespace {

using scenario::Evaluator;
using scenario::LoadedScenario;
using scenario::parse_scenario;
using scenario::ScenarioRun;
using testing::Contains;
using testing::HasSubstr;

std::string source_root() {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return root != nullptr ? root : ".";
}

// Two layers on a small machine with drives.
LoadedScenario small(std::vector<std::string> settings) {
  const std::string text = R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-small", "layers": 2, "sequence": 256, "micro_batch": 2, "gradient_accumulation": 2},
    "hardware": {"profile": "ssdtrain-testbed"},
    "offload": {"least_elements": 100000, "drives": "samsung-990-pro-2tb"}})";
  return scenario::load(parse_scenario(text, "small", "", settings));
}

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(TechniqueTable, ATechniqueOfOneWayGoesByItsNameToo) {
  EXPECT_EQ(find_way("torch-expandable"), find_way("expandable"));
  EXPECT_EQ(find_way("no such"), nullptr);
}

// People read what a way does; its name is for files and options.
TEST(TechniqueTable, WaysHaveWordsForPeople) {
  EXPECT_EQ(words_of_ways("full+ssdtrain-host"), "recompute whole layers, offload activations to host memory");
  EXPECT_EQ(words_of_ways("keep"), "keep everything on the GPU");
  EXPECT_EQ(words_of_ways("ssdtrain+keep"), "offload activations to SSD (SSDTrain)");
  EXPECT_EQ(words_of_ways("half the memory"), "half the memory");
  EXPECT_EQ(words_of_ways(plain_technique), "no technique");
  for (const TechniqueWay* way : technique_ways()) {
    EXPECT_NE(way->about.find(' '), std::string::npos) << way->name;
  }
}

TEST(TechniqueTable, NamesAreUniqueAndSaid) {
  std::set<std::string> names, ways;
  for (const Technique& row : techniques()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.title.empty() || row.about.empty()) << row.name;
    EXPECT_EQ(&technique_named(row.name), &row);
    if (row.key.empty()) continue;
    EXPECT_EQ(technique_said(row.key, row.word.empty() ? row.name : row.word), &row) << row.name;
  }
  for (const TechniqueWay* way : technique_ways()) {
    EXPECT_TRUE(ways.insert(way->name).second) << way->name;
    EXPECT_FALSE(way->settings.empty()) << way->name;
    EXPECT_EQ(&way_named(way->name, "", ""), way);
    EXPECT_EQ(find_way(way->name), way);
  }
  try {
    static_cast<void>(way_named("gradient-checkpointing", "", ""));
    FAIL() << "no way is called so";
  } catch (const InputError& error) {
    EXPECT_EQ(error.remedy(), "use full for whole layers, selective for attention alone");
  }
  try {
    static_cast<void>(technique_named("ssdtrian"));
    FAIL() << "an unknown technique was found";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::string(ssdtrain_word)));
  }
}

// Whatever a scenario can say is a word, and the scenario's reader takes it.
TEST(TechniqueTable, ScenariosTakeEveryWay) {
  EXPECT_EQ(schedule_words().size(), named_schedules().size());
  EXPECT_EQ(allocator_words().size(), memory_policy_table.size() + 4);  // and planned places
  EXPECT_THAT(offload_words().names(), Contains(no_offload));
  EXPECT_FALSE(offload_words().find(moved_by_schedule));  // the schedule says it
  const std::string text = R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small"},
                               "hardware": {"profile": "ssdtrain-testbed"}})";
  for (const TechniqueWay* way : technique_ways())
    EXPECT_NO_THROW(static_cast<void>(parse_scenario(text, way->name, "", way->settings))) << way->name;
}

// Each technique that plans for a step that is there, on one; what it makes is its part, names it and is sound.
TEST(TechniqueTable, PlannersMakeTheirPart) {
  const LoadedScenario loaded = small({});
  const Evaluator evaluator(loaded);
  int made = 0;
  for (const Technique& row : techniques()) {
    if (row.make == nullptr || row.name == moved_by_schedule) continue;
    SCOPED_TRACE(row.name);
    const TechniquePart part =
        row.make({.trace = loaded.trace, .replayer = evaluator, .settings = loaded.scenario.offload});
    EXPECT_EQ(part.plan.fates.has_value(), row.part == PlanPart::fates);
    EXPECT_EQ(part.plan.order.has_value(), row.part == PlanPart::order);
    EXPECT_EQ(part.plan.memory.size(), row.part == PlanPart::memory ? 1U : 0U);
    if (part.plan.fates) {
      EXPECT_NE(part.plan.fates->technique, "");
    }
    if (part.plan.order) {
      EXPECT_EQ(part.plan.order->technique, row.name);
    }
    if (!part.plan.memory.empty()) {
      EXPECT_EQ(part.plan.memory.at(0).technique, row.name);
    }
    ++made;
  }
  EXPECT_GE(made, 9);
}

// A scenario says a technique and gets what its planner makes: the same question, the same answer.
TEST(TechniqueTable, ScenarioAndPlannerAgree) {
  for (const Technique& row : techniques()) {
    if (row.make == nullptr || row.key != "offload.technique") continue;
    SCOPED_TRACE(row.name);
    const LoadedScenario said = small({row.key + "=" + row.name});
    const ScenarioRun ran = Evaluator(said).run();
    const LoadedScenario plain = small({});
    const Evaluator evaluator(plain);
    TechniquePart part = row.make({.trace = plain.trace, .replayer = evaluator, .settings = said.scenario.offload});
    EXPECT_EQ(ran.result.fingerprint, part.result.fingerprint);
    EXPECT_EQ(ran.result.step_time, part.result.step_time);
    ASSERT_TRUE(part.plan.fates && ran.result.offload);
    // And its plan, followed, is the same step.
    part.plan.fates->digest = digest_of_works(plain.trace);
    EXPECT_EQ(evaluator.run({.fates = part.plan.fates}).result.step_time, ran.result.step_time);
    EXPECT_EQ(&evaluator.run({.fates = part.plan.fates}), &evaluator.run({.fates = part.plan.fates}));
  }
}

TEST(TechniqueTable, PartsComposeInTheirOrder) {
  const LoadedScenario loaded = small({});
  const Evaluator evaluator(loaded);
  const TechniqueRequest request{.trace = loaded.trace, .replayer = evaluator, .settings = loaded.scenario.offload};
  const Plan plan = make_plan(std::array{layout_word, order_word}, request).plan;
  ASSERT_TRUE(plan.order && !plan.memory.empty());
  const Trace ordered = reordered(loaded.trace, *plan.order);
  EXPECT_TRUE(check_placement(ordered, 0, plan.memory.at(0), Bytes(0)).sound());
  EXPECT_THROW(make_plan(std::array{layout_word, stalloc_word}, request), InputError);  // both places
  EXPECT_THROW(make_plan(std::array{default_schedule}, request), InputError);           // made with the step
}

// docs/reference/techniques.md shows the table as it is; SPILLWAY_BLESS writes it.
TEST(TechniqueTable, IsTheOneInDocs) {
  const std::string path = source_root() + "/docs/reference/techniques.md", text = text_of(path);
  const std::string begin = "<!-- generated: techniques -->\n", end = "<!-- end -->\n";
  const std::size_t from = text.find(begin), until = text.find(end);
  ASSERT_TRUE(from != std::string::npos && until != std::string::npos) << path;
  const std::string shown = text.substr(from + begin.size(), until - from - begin.size());
  if (std::getenv("SPILLWAY_BLESS") != nullptr && shown != techniques_markdown()) {
    std::ofstream(path) << text.substr(0, from + begin.size()) << techniques_markdown() << text.substr(until);
    GTEST_SKIP() << "written: " << path;
  }
  EXPECT_EQ(shown, techniques_markdown()) << "write it with SPILLWAY_BLESS=1";
}

}  // namespace
}  // namespace spillway::planners
