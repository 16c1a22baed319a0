#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "validation/published/case_file.h"

namespace spillway::validation {
namespace {

// Every bundled case reads as one, and a file's ids are its own. Counts are those of the published tables' rows.
TEST(PublishedCases, AreAllSound) {
  std::size_t cases = 0, skipped = 0;
  for (const std::string& path : published_case_files())
    for (const Case& one : load_cases(path).cases) {
      ++cases;
      skipped += !one.skip.empty();
    }
  const std::size_t blind = 28U + 12U + 6U + 16U + 19U + 21U + 3U;  // of seven sources, make_blind.py
  const std::size_t eager = 7U + 18U;                               // build-nanogpt, qwen-finetuning
  EXPECT_EQ(cases, 1386U + 109U + 18U + 156U + 28U + 108U + 207U + 20U + 40U + 5U + 1U + 17U + blind + eager);
  EXPECT_LT(skipped, cases / 2);
}

// A fifth of vTrain's single-node rows may be fitted to, a part of llm-foundry's (to which nothing is), and the two
// shortest sequences of Qwen-1.8B's adapters; nothing else.
TEST(PublishedCases, OnlyThreeSourcesHaveFitCases) {
  std::size_t fit = 0, adapters = 0;
  for (const std::string& path : published_case_files())
    for (const Case& one : load_cases(path).cases)
      if (one.role == "fit") {
        const bool is_vtrain = one.source == "vTrain single node";
        fit += is_vtrain ? 1 : 0;
        const bool is_adapter = one.source == "Qwen LoRA 1.8B";
        adapters += is_adapter ? 1 : 0;
        EXPECT_TRUE(is_vtrain || is_adapter || one.source.starts_with("llm-foundry")) << one.source;
      }
  EXPECT_EQ(adapters, 2U);
  EXPECT_GT(fit, 747U / 7);
  EXPECT_LT(fit, 747U / 4);
}

}  // namespace
}  // namespace spillway::validation
