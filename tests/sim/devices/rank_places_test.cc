#include "sim/devices/rank_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace spillway::sim {
namespace {

// GPU g of the job is on machine g / G and belongs to rank g / (gpus / ranks).
TEST(RankPlaces, EveryGpuIsSomewhereOnce) {
  for (const auto& [ranks, gpus, machine] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{4, 8, 8},
                                             {8, 8, 8},
                                             {4, 64, 8},
                                             {16, 16, 8},
                                             {2, 24, 8},
                                             {6, 18, 8},
                                             {3, 3, 1},
                                             {5, 35, 8},
                                             {1, 8, 8}}) {
    const RankPlaces places(static_cast<std::size_t>(ranks), gpus, machine);
    std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> wanted;  // GPUs by machine and rank
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu) ++wanted[gpu / machine][gpu / (gpus / ranks)];
    for (const auto& [number, by_rank] : wanted) {
      std::map<std::int64_t, std::int64_t> found;
      std::int64_t next = -1;
      for (const RankShare& share : places.on(number)) {
        if (next >= 0) {
          EXPECT_EQ(share.first, next);
        }
        next = share.first + share.gpus;
        found[share.rank] = share.gpus;
      }
      EXPECT_EQ(found, by_rank) << ranks << " ranks, machine " << number;
    }
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      std::int64_t most = 0;
      for (const auto& [number, by_rank] : wanted)
        if (by_rank.contains(rank)) most = std::max(most, by_rank.at(rank));
      EXPECT_EQ(wanted.at(places.home(static_cast<std::size_t>(rank))).at(rank), most) << rank;
    }
  }
}

TEST(RankPlaces, MachinesThatDifferAreNamed) {
  const RankPlaces four(4, 8, 8);
  EXPECT_EQ(four.kinds(), std::vector<std::int64_t>{0});
  EXPECT_EQ(four.prefix(0), "ranks 0-3 ");
  const RankPlaces wide(2, 32, 8);  // two machines each
  EXPECT_EQ(wide.kinds(), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(wide.prefix(2), "rank 1 ");
  const RankPlaces uneven(2, 24, 8);  // one machine each, and one between them
  EXPECT_EQ(uneven.kinds(), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(uneven.prefix(1), "ranks 0-1 ");
  EXPECT_EQ(RankPlaces(1, 64, 8).on(0).front().gpus, 8);
  EXPECT_EQ(RankPlaces(1, 64, 8).prefix(0), "");
  EXPECT_EQ(RankPlaces(4, 1, 8).on(0).size(), 4U) << "of a capture: one GPU each";
}

// Sets shared alike are one.
TEST(RankPlaces, SetsAreSharedByWhoUsesThem) {
  const RankPlaces places(4, 8, 8);
  const auto one = places.sets_on(0, std::vector<std::size_t>(8, 0));
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one.front().shares.size(), 4U);
  EXPECT_EQ(one.front().shares.back().gpus, 2);
  EXPECT_EQ(places.sets_on(0, {0, 1, 0, 1, 0, 1, 0, 1}).size(), 1U) << "each by one GPU of every rank";
  const auto own = places.sets_on(0, {0, 1, 2, 3, 4, 5, 6, 7});
  ASSERT_EQ(own.size(), 4U) << "two of each rank are alike";
  EXPECT_EQ(own[1].set, 2U);
  EXPECT_EQ(own[1].shares.front().rank, 1);
  EXPECT_EQ(RankPlaces(1, 8, 8).sets_on(0, {0, 1, 2, 3, 4, 5, 6, 7}).size(), 1U);
}

}  // namespace
}  // namespace spillway::sim
