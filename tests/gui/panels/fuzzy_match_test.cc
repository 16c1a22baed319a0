#include "gui/panels/fuzzy_match.h"

#include <gtest/gtest.h>

namespace spillway::gui {
namespace {

TEST(FuzzyMatch, LettersInOrderName) {
  EXPECT_TRUE(fuzzy_match("mb", "micro_batch"));
  EXPECT_TRUE(fuzzy_match("micro-batch", "micro-batch"));
  EXPECT_TRUE(fuzzy_match("COPY com", "Copy as command"));
  EXPECT_TRUE(fuzzy_match("gpt2xl", "gpt2-xl"));
  EXPECT_TRUE(fuzzy_match("", "anything"));
  EXPECT_FALSE(fuzzy_match("bm", "micro_batch"));
  EXPECT_FALSE(fuzzy_match("copy zebra", "Copy as command"));
  // Scattered letters are no name.
  EXPECT_FALSE(fuzzy_match("mndl", "command palette"));
}

TEST(FuzzyMatch, StartsOfWordsCountMost) {
  EXPECT_GT(*fuzzy_match("mb", "micro_batch"), *fuzzy_match("mb", "number"));
  EXPECT_GT(*fuzzy_match("gpt2-xl", "gpt2-xl"), *fuzzy_match("gpt2-xl", "gpt2-xl-longer-name"));
  EXPECT_GT(*fuzzy_match("recompute", "model.recompute"), *fuzzy_match("recompute", "model.recomputed_chunks"));
}

}  // namespace
}  // namespace spillway::gui
