#include "gui/workspace/variant.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "base/number_text.h"
#include "gui/workspace/simulation.h"

namespace spillway::gui {
namespace {

const std::string plain = R"({"schema": "spillway-scenario", "version": 1,
  "model": {"name": "gpt2-small", "sequence": 128, "micro_batch": 2}, "hardware": {"profile": "rtx-4090"}})";
const std::string edited = R"({"schema": "spillway-scenario", "version": 1, "title": "another",
  "model": {"name": "gpt2-small", "sequence": 128, "micro_batch": 4, "recompute": "full"},
  "hardware": {"profile": "rtx-4090"}})";

VariantFigures figures_of(const std::string& text) {
  std::shared_ptr<const CapturedTrace> captured;
  return *simulate({text, "variant", ""}, {}, captured, nullptr)->figures;
}

TEST(Workspace, IsReadAsItWasWritten) {
  StoredWorkspace workspace;
  workspace.current = 7;
  workspace.variants = {{3, -1, "root", "/a/b.json", "/a", plain, plain}, {7, 3, "child", "", "/a", edited, plain}};
  workspace.variants[1].notes = {{MemoryClock::program, 12, "here"}, {MemoryClock::gpu, 5, "\"quoted\""}};
  const std::string text = workspace_text(workspace);
  EXPECT_TRUE(is_workspace_text(text.substr(0, 100)));
  const StoredWorkspace read = parse_workspace(text, "w");
  EXPECT_EQ(read.current, 7);
  ASSERT_EQ(read.variants.size(), 2U);
  EXPECT_EQ(read.variants[1].parent, 3);
  EXPECT_EQ(read.variants[1].text, edited);
  EXPECT_EQ(read.variants[1].notes, workspace.variants[1].notes);
  EXPECT_EQ(workspace_text(read), text);
}

TEST(Workspace, BrokenOnesAreRefusedWithTheirPlace) {
  const auto place = [](const std::string& text) {
    try {
      static_cast<void>(parse_workspace(text, "w.spillway"));
    } catch (const InputError& error) {
      return error.place();
    }
    return std::string("taken");
  };
  const std::string head = R"({"schema": "spillway-workspace", "version": 1, "current": 0, "variants": )";
  EXPECT_NE(place("garbage"), "taken");
  EXPECT_EQ(place(head + "[]}"), "/variants");
  EXPECT_TRUE(place(head + "[{}]}").starts_with("/variants/0"));
  EXPECT_EQ(
      place(head + R"([{"id": 0, "parent": 5, "name": "", "file": "", "folder": "", "scenario": "{}", "saved": ""}]})"),
      "/variants/0/parent");
}

// What its file has is not known: it is as it is there.
TEST(Workspace, AVariantNeedsNoSavedText) {
  const auto read = [](const std::string& saved) {
    const std::string one =
        R"({"id": 0, "parent": -1, "name": "a", "scenario": )" + nlohmann::json(plain).dump() + saved + "}";
    return parse_workspace(R"({"schema": "spillway-workspace", "version": 1, "current": 0, "variants": [)" + one + "]}",
                           "w.spillway");
  };
  EXPECT_EQ(read("").variants.front().saved, plain);
  EXPECT_THROW(read(R"(, "saved": "garbage")"), InputError);
}

TEST(Workspace, StepsAreNamedByWhatChanged) {
  EXPECT_EQ(step_words(plain, plain), "edit");
  const std::string words = step_words(plain, edited);
  EXPECT_NE(words.find(", 2 more"), std::string::npos) << words;
}

TEST(VariantFigures, KeysThatDifferAreNamed) {
  const std::vector<ChangedKey> changed = changed_keys({plain, edited, plain});
  ASSERT_EQ(changed.size(), 2U);  // the title says nothing
  EXPECT_EQ(changed[0].key, "model.micro_batch");
  EXPECT_EQ(changed[1].key, "model.recompute");
  EXPECT_EQ(changed[1].values[0], std::nullopt);
  EXPECT_EQ(changed[1].values[1], "full");
}

// Kernels sum to the GPU's work, owners to the peak; recomputation costs time a token and saves activations.
TEST(VariantFigures, AreThoseOfTheReplay) {
  const VariantFigures a = figures_of(plain), b = figures_of(edited);
  const auto sum = [](const VariantFigures& figures) {
    double all = 0;
    for (const auto& [owner, gib] : figures.owners) all += gib;
    return all;
  };
  for (const VariantFigures* const one : {&a, &b}) {
    const double allocated = in_gib(one->result.memory.peak_allocated);
    ASSERT_GT(allocated, 0);
    EXPECT_NEAR(sum(*one), allocated, 1e-6);
    ASSERT_EQ(one->curve.size(), static_cast<std::size_t>(figure_columns));
    double most = 0, kernels = 0;
    for (const auto& column : one->curve) {
      double held = 0;
      for (const float gib : column) held += static_cast<double>(gib);
      most = std::max(most, held);
    }
    EXPECT_NEAR(most, allocated, 1e-4);
    for (const auto& [name, us] : one->kernels) kernels += us;
    EXPECT_GT(kernels * static_cast<double>(one->tokens_per_step) * 1e-3,
              0.3 * step_ms(*one));  // us a token against ms a step
    EXPECT_LT(kernels * static_cast<double>(one->tokens_per_step) * 1e-3, 1.001 * step_ms(*one));
  }
  EXPECT_EQ(a.tokens_per_step, 256);
  EXPECT_EQ(b.tokens_per_step, 512);
}

}  // namespace
}  // namespace spillway::gui
