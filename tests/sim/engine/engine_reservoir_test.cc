#include "sim/engine/reservoir.h"

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "sim/engine/fingerprint.h"
#include "tests/sim/engine/engine_random.h"
#include "tests/test_size.h"

namespace spillway::sim {
namespace {

constexpr Rate reservoir_unit{std::int64_t{1000} << 20};
constexpr std::int64_t scaled_unit = reservoir_unit.count() << 16;

ReservoirSpec cache_of(std::int64_t size) {
  return {.link = LinkId{0},
          .size = size,
          .resume_level = size / 2,
          .initial_level = 0,
          .drain = reservoir_unit,
          .fast = reservoir_unit * 4,
          .slow = reservoir_unit * 2};
}

// full at ceil(size / (inflow - drain)) = ceil(100 / 3) = 34; 34 * 3 - 100 = 2 units passed by in the last picosecond.
TEST(Reservoir, FullInstantRoundsUp) {
  Reservoir cache(cache_of(100));
  EXPECT_EQ(cache.next_event(), Picos::max());
  cache.set_inflow(Picos(0), 4 * scaled_unit);
  EXPECT_EQ(cache.next_event(), Picos(34));
  cache.settle(Picos(33));
  EXPECT_EQ(cache.level(), 99);
  EXPECT_TRUE(cache.advance(Picos(34)));
  EXPECT_TRUE(cache.full());
  EXPECT_EQ(cache.capacity(), reservoir_unit * 2);
  EXPECT_EQ(cache.level(), 100);
  EXPECT_EQ(cache.bypassed(), 2);
  EXPECT_TRUE(cache.conserves());
}

// Three stages: fast to 40 in ceil(40 / 3) = 14 ps (2 over), folding to 100 in ceil(58 / 2) = 29 ps, then slow; idle,
// all of it drains at 1 and the fast rate is back at 20.
TEST(Reservoir, FoldingLiesBetweenFastAndSlow) {
  ReservoirSpec spec = cache_of(100);
  spec.fold_level = 40;
  spec.resume_level = 20;
  spec.fold = reservoir_unit * 3;
  Reservoir cache(spec);
  cache.set_inflow(Picos(0), 4 * scaled_unit);
  EXPECT_EQ(cache.next_event(), Picos(14));
  EXPECT_TRUE(cache.advance(Picos(14)));
  EXPECT_EQ(cache.stage(), Reservoir::Stage::fold);
  EXPECT_EQ(cache.capacity(), reservoir_unit * 3);
  cache.set_inflow(Picos(14), 3 * scaled_unit);
  EXPECT_EQ(cache.next_event(), Picos(14 + 29));
  EXPECT_TRUE(cache.advance(Picos(43)));
  EXPECT_TRUE(cache.full());
  cache.set_inflow(Picos(43), 0);
  EXPECT_EQ(cache.next_event(), Picos(43 + 80));
  EXPECT_TRUE(cache.advance(Picos(123)));
  EXPECT_EQ(cache.stage(), Reservoir::Stage::fast);
  EXPECT_EQ(cache.level(), 20);
  EXPECT_TRUE(cache.conserves());
  spec.fold_level = 15;
  EXPECT_THROW(Reservoir{spec}, InputError);
}

// Full and fed above the drain it stays full: 10 ps at 2 - 1 pass by 10 units. Idle, it falls to half in 50 ps
// and is fast again, then is empty after another 50.
TEST(Reservoir, HysteresisAndEmpty) {
  ReservoirSpec spec = cache_of(100);
  spec.initial_level = 100;
  Reservoir cache(spec);
  EXPECT_TRUE(cache.full());
  cache.set_inflow(Picos(0), 2 * scaled_unit);
  EXPECT_EQ(cache.next_event(), Picos::max());
  cache.set_inflow(Picos(10), 0);
  EXPECT_EQ(cache.bypassed(), 10);
  EXPECT_EQ(cache.next_event(), Picos(60));
  cache.settle(Picos(59));
  EXPECT_TRUE(cache.full());
  EXPECT_TRUE(cache.advance(Picos(60)));
  EXPECT_EQ(cache.capacity(), reservoir_unit * 4);
  EXPECT_EQ(cache.next_event(), Picos(110));
  EXPECT_FALSE(cache.advance(Picos(110)));
  EXPECT_EQ(cache.level(), 0);
  EXPECT_EQ(cache.next_event(), Picos::max());
  cache.settle(Picos(1000));
  EXPECT_EQ(cache.drained(), 110);
  EXPECT_TRUE(cache.conserves());
}

// initial + inflow == level + drained + bypassed at every step of random inflows, and 0 <= level <= size.
TEST(Reservoir, ConservesOnRandomInflows) {
  for (std::uint64_t seed = 0; seed < spillway::test::seeds(50, 1000); ++seed) {
    test::Random random(seed);
    ReservoirSpec spec = cache_of(random.between(1, 1000));
    spec.initial_level = random.between(0, spec.size);
    spec.drain = Rate(random.between(0, 5'000'000'000));
    Reservoir cache(spec);
    Picos now{};
    for (int step = 0; step < 50; ++step) {
      cache.set_inflow(now, random.between(0, 5 * scaled_unit));
      const Picos due = cache.next_event();
      ASSERT_GT(due, now);
      now = std::min(due, now + Picos(random.between(0, 300)));
      cache.advance(now);
      ASSERT_TRUE(cache.conserves()) << seed;
      ASSERT_GE(cache.level(), 0);
      ASSERT_LE(cache.level(), spec.size);
    }
  }
}

TEST(Reservoir, RefusesValuesOutOfRange) {
  ReservoirSpec spec = cache_of(100);
  spec.resume_level = 100;
  EXPECT_THROW(Reservoir{spec}, InputError);
  spec = cache_of(0);
  EXPECT_THROW(Reservoir{spec}, InputError);
  spec = cache_of(100);
  spec.initial_level = 101;
  EXPECT_THROW(Reservoir{spec}, InputError);
  spec = cache_of(100);
  spec.drain = Rate(-1);
  EXPECT_THROW(Reservoir{spec}, InputError);
}

}  // namespace
}  // namespace spillway::sim
