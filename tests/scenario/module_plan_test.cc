#include "scenario/module_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/input_error.h"
#include "scenario/scenario.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {
namespace {

constexpr int layers = 3;

ModulePlan planned(const std::vector<std::string>& settings) {
  const std::string text =
      R"({"schema": "spillway-scenario", "version": 1, "title": "small",
          "model": {"name": "gpt2-small", "layers": 3, "sequence": 128, "micro_batch": 2},
          "hardware": {"profile": "h100-80gb-1gpu"}})";
  const LoadedScenario loaded = load(parse_scenario(text, "test.json", "/folder", settings));
  const Evaluator evaluator(loaded);
  return module_plan(loaded, evaluator.run());
}

const SavedFate* find(const LayerModules& layer, const std::string& tensor) {
  const auto found = std::find_if(layer.saved.begin(), layer.saved.end(),
                                  [&](const SavedFate& each) { return each.tensor == tensor; });
  return found == layer.saved.end() ? nullptr : &*found;
}

std::set<ModuleFate> fates(const LayerModules& layer) {
  std::set<ModuleFate> all;
  for (const SavedFate& each : layer.saved) all.insert(each.fate);
  return all;
}

TEST(ModulePlan, SaysWhoMakesAndWhoSavesATensorFirst) {
  const ModulePlan plan = planned({});
  ASSERT_EQ(plan.layers.size(), layers);
  const SavedFate* gelu = find(plan.layers[1], "mlp.gelu.out");
  ASSERT_NE(gelu, nullptr);
  EXPECT_EQ(gelu->module, "mlp.down");  // a product saves its input
  EXPECT_EQ(gelu->made_by, "mlp.gelu");
  EXPECT_EQ(gelu->bytes.count(), 2 * 128 * 3072 * 2);  // tokens x width in 16 bits
  const SavedFate* input = find(plan.layers[1], "layers.0.mlp.down.residual.out");
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->module, "attention.norm");
  EXPECT_EQ(input->made_by, "");  // the layer before
  EXPECT_TRUE(plan.refused.empty());
  EXPECT_EQ(fates(plan.layers[0]), std::set{ModuleFate::keep});
}

TEST(ModulePlan, FollowsAnOffloadPlan) {
  const ModulePlan plan = planned(
      {"offload.technique=ssdtrain", "offload.tier=host", "offload.least_elements=0", "offload.adaptive=false"});
  EXPECT_EQ(plan.technique, "ssdtrain");
  EXPECT_TRUE(plan.refused.empty());
  EXPECT_GT(plan.in_flight.count(), 0);
  EXPECT_EQ(fates(plan.layers[0]), std::set{ModuleFate::host});
  EXPECT_EQ(fates(plan.layers[1]), std::set{ModuleFate::host});
  EXPECT_TRUE(fates(plan.layers[2]).contains(ModuleFate::keep));  // the last module of the forward stays
}

TEST(ModulePlan, FollowsTheGeneratorsOwnRecomputation) {
  const ModulePlan full = planned({"model.recompute=full", "model.recompute_every=2"});
  EXPECT_EQ(full.layers[0].whole, ModuleFate::keep);
  EXPECT_EQ(full.layers[1].whole, ModuleFate::recompute);
  EXPECT_EQ(full.layers[2].whole, ModuleFate::keep);
  const ModulePlan selective = planned({"model.recompute=selective"});
  for (const LayerModules& layer : selective.layers) {
    EXPECT_EQ(layer.whole, ModuleFate::keep);
    EXPECT_EQ(layer.core, ModuleFate::recompute);
  }
}

TEST(ModulePlan, MicroBatchesAreOne) {
  const ModulePlan plan = planned({"model.gradient_accumulation=3", "model.recompute=full"});
  ASSERT_EQ(plan.layers.size(), layers);
  EXPECT_EQ(plan.layers[1].saved.size(), 1U);  // its input
  EXPECT_EQ(plan.layers[1].whole, ModuleFate::recompute);
}

TEST(ModulePlan, RefusesByName) {
  const auto refused = [](const std::vector<std::string>& settings) {
    const ModulePlan plan = planned(settings);
    return plan.refused.empty() ? std::string() : plan.refused.front();
  };
  EXPECT_EQ(refused({"order.technique=order"}), "the order order: PyTorch runs operators as the program calls them");
  EXPECT_EQ(refused({"memory.allocator=layout"}), "the places of layout: PyTorch's allocator takes none");
  EXPECT_EQ(refused({"memory.allocator=gmlake"}), "the allocator gmlake: it isn't PyTorch's");
  EXPECT_NE(refused({"offload.technique=stream"}).find("aren't activations"), std::string::npos);
  EXPECT_NE(refused({"model.recompute=operators"}).find("model.recompute=operators"), std::string::npos);
  EXPECT_NE(refused({"model.optimizer_device=cpu"}).find("optimizer_device"), std::string::npos);
}

TEST(ModulePlan, AllocatorSettingsAreThoseOfPyTorch) {
  EXPECT_EQ(planned({}).allocator_config, "");
  EXPECT_EQ(planned({"memory.allocator=torch-expandable"}).allocator_config, "expandable_segments:True");
  EXPECT_EQ(planned({"memory.config=max_split_size_mb:128"}).allocator_config, "max_split_size_mb:128");
}

TEST(ModulePlan, ItsFileSaysAllOfIt) {
  const ModulePlan plan = planned({"model.recompute=full"});
  const auto file = nlohmann::json::parse(module_plan_json(plan));
  EXPECT_EQ(file.size(), 11U);
  const auto layer = file.find("layers")->front();
  EXPECT_EQ(layer.value("whole", ""), "recompute");
  EXPECT_EQ(layer.find("saved")->front().value("module", ""), "attention.norm");
  EXPECT_EQ(nlohmann::json::parse(module_plan_schema()).value("$id", ""), "spillway-module-plan.v1");
}

TEST(ModulePlan, ACaptureHasNoModules) {
  LoadedScenario loaded;
  loaded.scenario.path = "captured.json";
  EXPECT_THROW(static_cast<void>(module_plan(loaded, {})), InputError);
}

}  // namespace
}  // namespace spillway::scenario
