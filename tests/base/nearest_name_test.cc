#include "base/nearest_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway {
namespace {

using std::string;
using testing::ElementsAre;
using testing::IsEmpty;
using Names = std::vector<std::string_view>;

// Levenshtein distance: memry -> memory 1, vendor 5; allowed is max(2, 5 / 3).
TEST(NearestName, OffersTheClosest) {
  EXPECT_THAT(nearest_names("memry", Names{"memory", "memory_bandwidth", "vendor"}), ElementsAre("memory"));
  EXPECT_EQ(suggest("memry", Names{"memory", "vendor"}), "did you mean memory?");
}

// Nearest first, ties in the order given, at most the limit.
TEST(NearestName, RanksByDistance) {
  const Names known = {"gpu2", "gpu1", "gpu", "gpus22"};
  EXPECT_THAT(nearest_names("gpu", known), ElementsAre("gpu", "gpu2", "gpu1"));
  EXPECT_THAT(nearest_names("gpu", known, 1), ElementsAre("gpu"));
  EXPECT_EQ(suggest("gpu3", Names{"gpu1", "gpu2", "gpu4"}), "did you mean gpu1, gpu2 or gpu4?");
}

TEST(NearestName, OffersANameOnce) {
  EXPECT_EQ(suggest("a1", Names{"a10", "a100", "a10"}), "did you mean a10 or a100?");
}

TEST(NearestName, OffersAFamilyBeforeALikeness) {
  const std::vector<std::string> names = {"a10", "a100-80gb-1gpu", "h100-80gb-1gpu", "h1000", "h200"};
  EXPECT_EQ(suggest("h100", names), "did you mean h100-80gb-1gpu, h1000 or h200?");
}

TEST(NearestName, IgnoresCaseAndFindsParts) {
  EXPECT_THAT(nearest_names("H100", Names{"h100", "v100x"}), ElementsAre("h100", "v100x"));
  EXPECT_THAT(nearest_names("bandwidth", Names{"memory/read_bandwidth", "vendor"}),
              ElementsAre("memory/read_bandwidth"));
}

// "llama-3-8b" is five letters away from "llama3", and begins with it.
TEST(NearestName, IgnoresWhatSeparatesParts) {
  EXPECT_THAT(nearest_names("llama3", Names{"gpt2-xl", "llama-2-7b", "llama-3-8b"}), ElementsAre("llama-3-8b"));
}

// Two letters are within distance 2 of any two others: no letter is kept, so that is no suggestion.
TEST(NearestName, ShortWordsMatchNothingForeign) {
  EXPECT_THAT(nearest_names("zz", Names{"ab", "c"}), IsEmpty());
  EXPECT_THAT(nearest_names("", Names{"a", "bb"}), IsEmpty());
}

TEST(NearestName, ListsAllWhenNothingIsNear) {
  const std::vector<string> known = {"memory", "vendor"};
  EXPECT_EQ(suggest("zzzzzz", known, "remove it"), "remove it");
  EXPECT_EQ(suggest("zzzzzz", known), "use one of memory, vendor");
}

// Hostile length: only the first 128 letters are compared.
TEST(NearestName, LongWordsAreCut) {
  const string known(128, 'a');
  EXPECT_THAT(nearest_names(string(1 << 20, 'a'), Names{known}), ElementsAre(known));
}

}  // namespace
}  // namespace spillway
