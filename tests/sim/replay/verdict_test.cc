#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/replay/peak_owners.h"
#include "sim/replay/result.h"
#include "sim/replay/verdict_words.h"

namespace spillway::sim {
namespace {

Result with_limit() {
  Result result;
  result.memory.known = true;
  result.memory.peak_reserved = Bytes(5);
  result.memory.capacity = Bytes(10);
  return result;
}

TEST(Verdict, OfNoMemoryIsUnknown) {
  EXPECT_EQ(Result().verdict(), Verdict::unknown);
  EXPECT_FALSE(Result().fits());
  EXPECT_TRUE(Result().may_fit());
  Result result = with_limit();
  EXPECT_TRUE(result.fits());
  result.memory.capacity = Bytes(0);
  EXPECT_EQ(result.verdict(), Verdict::unknown);
  result = with_limit();
  result.memory.on_host = true;
  EXPECT_EQ(result.verdict(), Verdict::unknown);
}

// Tight is a yes, but not a clear one: before unknown, behind fits.
TEST(Verdict, TightIsAYesThatIsNotKept) {
  Result result = with_limit();
  result.memory.is_tight = true;
  EXPECT_EQ(result.verdict(), Verdict::tight);
  EXPECT_FALSE(result.fits());
  EXPECT_TRUE(result.may_fit());
  EXPECT_EQ(fits_json(Verdict::tight).dump(), "true");
  EXPECT_EQ(both(Verdict::fits, Verdict::tight), Verdict::tight);
  EXPECT_EQ(both(Verdict::unknown, Verdict::tight), Verdict::unknown);
  result.ranks.resize(1);
  EXPECT_EQ(result.verdict(), Verdict::unknown);
}

TEST(Verdict, IsThatOfTheWorstPart) {
  Result result = with_limit();
  result.ranks.resize(2);
  result.ranks[0].verdict = Verdict::fits;
  EXPECT_EQ(result.verdict(), Verdict::unknown);
  result.ranks[1].verdict = Verdict::does_not_fit;
  EXPECT_EQ(result.verdict(), Verdict::does_not_fit);
  result = with_limit();
  result.host_memory = {true, Bytes(3), Bytes(2)};
  EXPECT_FALSE(result.may_fit());
}

// What is in doubt takes a yes away, however the memory is; a no stays. Without a limit nobody asked.
TEST(Verdict, OfARecordInDoubtIsUnknown) {
  Result result = with_limit();
  result.memory.doubt = "bad_block (2): left out";
  EXPECT_EQ(result.verdict(), Verdict::unknown);
  EXPECT_TRUE(result.is_in_doubt());
  EXPECT_NE(result.why_unknown().find("bad_block (2): left out"), std::string::npos) << result.why_unknown();
  result.memory.is_tight = true;
  EXPECT_EQ(result.verdict(), Verdict::unknown);
  result.memory.out_of_memory = true;
  EXPECT_EQ(result.verdict(), Verdict::does_not_fit);
  EXPECT_FALSE(result.is_in_doubt());
  result = with_limit();
  result.memory.doubt = "bad_block (2): left out";
  result.memory.capacity = Bytes(0);
  EXPECT_EQ(result.verdict(), Verdict::unknown);
  EXPECT_FALSE(result.is_in_doubt());
  EXPECT_EQ(result.why_unknown(), "no memory limit is known");
}

TEST(Verdict, IsNullInJsonWhereItIsUnknown) {
  EXPECT_EQ(fits_json(Verdict::unknown).dump(), "null");
  for (const Verdict verdict : {Verdict::fits, Verdict::tight, Verdict::unknown, Verdict::does_not_fit})
    EXPECT_EQ(verdict_of_json(fits_json(verdict), to_string(verdict)), verdict);
  EXPECT_EQ(verdict_of_json(true), Verdict::fits) << "of older files, which have no words";
  EXPECT_EQ(verdict_of(Bytes(1), Bytes(0)), Verdict::unknown);
}

// The sum stays, and nobody reads of "1 others".
TEST(PeakOwners, TheLargestAndTheRest) {
  std::vector<PeakOwner> owners;
  for (std::int64_t i = 0; i < 6; ++i) owners.push_back({"layer " + std::to_string(i), Bytes(10 - i), true});
  EXPECT_EQ(largest_owners(owners, 5).size(), 6U) << "one alone is shown";
  EXPECT_EQ(largest_owners(owners, 9).size(), 6U);
  const std::vector<PeakOwner> cut = largest_owners(owners, 4);
  ASSERT_EQ(cut.size(), 5U);
  EXPECT_EQ(cut[3].name, "layer 3");
  EXPECT_EQ(cut[4].name, "2 others");
  EXPECT_EQ(cut[4].bytes, Bytes(6 + 5));
}

TEST(FoundWays, AreToldByTheBestOfThem) {
  EXPECT_EQ(search_heading({.same = 1, .numerics = 2}), "✔ Fits in 1 set-up that trains the same");
  EXPECT_EQ(search_heading({.same = 2, .how = "as deepspeed launches it"}),
            "✔ Fits as deepspeed launches it in 2 set-ups that train the same");
  EXPECT_EQ(search_heading({.numerics = 2, .research = 1}), "▲ Fits in 2 set-ups, with other numerics alone");
  EXPECT_EQ(search_heading({.research = 2}), "▲ Fits in 2 set-ups that no program runs today");
  EXPECT_EQ(search_heading({.tried = 7}), "✖ Does not fit in any of 7 set-ups that were tried");
}

// A doubt takes every yes away, and says what is known all the same.
TEST(FoundWays, OfARecordInDoubtAreAsReplayed) {
  EXPECT_EQ(search_heading({.same = 3, .unknown = "the launch states no batch"}),
            "▲ Not known: as replayed it fits in 3 set-ups that train the same; the launch states no batch");
  EXPECT_EQ(search_heading({.tight = 1, .tried = 4, .unknown = "the launch states no batch"}).find("✔"),
            std::string::npos);
  EXPECT_EQ(search_heading({.unknown = "the trace has no memory events"}),
            "▲ Not known whether any set-up fits: the trace has no memory events");
}

}  // namespace
}  // namespace spillway::sim
