// Expandable segments by hand: rules 17 to 21, after those of torch_pool_test.cc.
#include <gtest/gtest.h>

#include "sim/devices/memory/torch_pool.h"
#include "tests/sim/devices/memory/pool_fixture.h"

namespace spillway::sim {
namespace {

class TorchExpandable : public PoolTest<TorchPool> {
 protected:
  TorchExpandable() { limited(1024 * mib); }
  void limited(std::int64_t device_bytes, double fraction = 1) {
    TorchSettings settings;
    settings.expandable_segments = true;
    settings.device_memory = Bytes(device_bytes);
    settings.memory_fraction = fraction;
    pool = TorchPool(settings);
  }
  static std::int64_t between(const Allocation& a, const Allocation& b) {
    return static_cast<std::int64_t>(b.address.count()) - static_cast<std::int64_t>(a.address.count());
  }
};

// Rule 19: only what is missing is mapped, rounded up to g = 20 MiB (large) or 2 MiB (small); the segment grows in
// place.
TEST_F(TorchExpandable, GrowsByPages) {
  const Allocation a = take(30 * mib);
  EXPECT_EQ(reserved(), 40 * mib);
  EXPECT_EQ(a.cost.chunks_created, 2U);
  EXPECT_EQ(a.cost.maps, 2U);
  EXPECT_EQ(a.cost.access_changes, 1U);
  EXPECT_EQ(a.cost.reservations, 1U);
  EXPECT_EQ(a.cost.device_mallocs, 0U);
  const Allocation b = take(25 * mib);  // 10 MiB are left, 15 are missing: one page
  EXPECT_EQ(between(a, b), 30 * mib);
  EXPECT_EQ(b.cost.chunks_created, 1U);
  EXPECT_EQ(b.cost.reservations, 0U);
  EXPECT_EQ(reserved(), 60 * mib);
  take(mib);
  EXPECT_EQ(pool.statistics().of(PoolKind::small).reserved_bytes.current, 2 * mib);
  EXPECT_EQ(pool.statistics().all().segments.current, 0) << "mapping does not count as a segment";
  EXPECT_EQ(pool.statistics().device_mallocs, 3);
}

// Rule 12 with expandable segments: large blocks too are split from 512 bytes on, so no slack.
TEST_F(TorchExpandable, LeavesNoSlack) {
  const Allocation a = take(20 * mib - 512);
  EXPECT_EQ(a.size, Bytes(20 * mib - 512));
  const Allocation b = take(19 * mib);
  EXPECT_EQ(b.size, Bytes(19 * mib));
  EXPECT_EQ(between(a, b), 20 * mib - 512);
  EXPECT_EQ(pool.statistics().all().inactive_split.current, 0) << "rule 21: expandable blocks are not counted";
}

// Rule 18: of two sufficient free blocks the one at the segment's end is taken for as large as it could grow, so the
// larger one inside wins.
TEST_F(TorchExpandable, PrefersBlocksThatCannotGrow) {
  const Allocation a = take(8 * mib), b = take(2 * mib), c = take(4 * mib);  // 6 MiB left at the end
  give(a);                                                                   // 8 MiB inside
  const Allocation d = take(5 * mib);                                        // best fit by size is the 6 MiB at the end
  EXPECT_EQ(between(b, c), 2 * mib);
  EXPECT_EQ(d.address, a.address);
}

// Rules 8, 17: a segment for every stream.
TEST_F(TorchExpandable, StreamsHaveTheirOwn) {
  take(30 * mib, 1);
  EXPECT_EQ(take(5 * mib, 2).cost.reservations, 1U);
  EXPECT_EQ(reserved(), 60 * mib);
}

// Rules 13e, 21: when memory runs out, only whole pages inside free blocks are unmapped; rule 19: the next mapping
// fills the lowest hole, backwards over the free piece before it.
TEST_F(TorchExpandable, UnmapsWholePages) {
  limited(100 * mib);
  const Allocation a = take(10 * mib), b = take(50 * mib), c = take(10 * mib);  // |a 10|b 50|c 10|10 free|, 80 mapped
  give(b);  // pages [20, 40) and [40, 60) lie within it
  const Allocation other = take(40 * mib, 1);
  ASSERT_FALSE(other.out_of_memory);
  EXPECT_EQ(other.cost.chunks_released, 2U);
  EXPECT_EQ(other.cost.chunks_created, 2U);
  EXPECT_EQ(pool.statistics().alloc_retries, 1);
  EXPECT_EQ(reserved(), 80 * mib);
  const PoolState state = pool.state();  // two mapped ranges of the first segment, one of the second
  ASSERT_EQ(state.segments.size(), 3U);
  EXPECT_EQ(state.segments[0].total, Bytes(20 * mib));
  EXPECT_EQ(state.segments[1].total, Bytes(20 * mib));
  EXPECT_TRUE(state.segments[0].expandable);
  const Allocation d = take(25 * mib);  // 10 free + 15 missing: one page
  EXPECT_EQ(between(a, d), 10 * mib);
  EXPECT_EQ(d.cost.chunks_created, 1U);
  EXPECT_EQ(reserved(), 100 * mib);
  give(c);
  give(a);
}

// Rule 20: a mapping that fails leaves what was mapped before it; then the request fails.
TEST_F(TorchExpandable, RunsOut) {
  limited(50 * mib);
  take(15 * mib);
  const Allocation failed = take(40 * mib);
  EXPECT_TRUE(failed.out_of_memory);
  EXPECT_EQ(reserved(), 20 * mib);
  EXPECT_EQ(pool.statistics().ooms, 1);
  EXPECT_FALSE(take(25 * mib).out_of_memory);
  EXPECT_EQ(reserved(), 40 * mib);
}

// Rule 13b with a fraction: the segment size is checked, as without expandable segments, not what would be mapped.
TEST_F(TorchExpandable, FractionIsCheckedBeforeMapping) {
  limited(200 * mib, 0.5);
  take(75 * mib);  // 80 MiB
  EXPECT_EQ(reserved(), 80 * mib);
  EXPECT_TRUE(take(30 * mib).out_of_memory) << "80 + 30 > 100";
  EXPECT_FALSE(take(12 * mib).out_of_memory) << "80 + 12 <= 100; one page more";
  EXPECT_EQ(reserved(), 100 * mib);
}

// empty_cache() on an idle pool gives everything back, address ranges too.
TEST_F(TorchExpandable, EmptyCache) {
  give(take(30 * mib));
  give(take(mib));
  const DriverCost cost = pool.empty_cache(Picos{});
  expect_sound();
  EXPECT_EQ(cost.unmaps, 3U);
  EXPECT_EQ(reserved(), 0);
  EXPECT_EQ(pool.state().segments.size(), 0U);
  EXPECT_EQ(take(30 * mib).cost.reservations, 1U);
}

// A state with holes restores: same blocks, same bytes, and the hole is where the next page goes.
TEST_F(TorchExpandable, StateRestores) {
  limited(100 * mib);
  const Allocation a = take(10 * mib), b = take(50 * mib), c = take(10 * mib);
  give(b);
  pool.empty_cache(Picos{});
  const PoolState state = pool.state();
  ASSERT_EQ(state.segments.size(), 2U);
  const TorchSettings settings = pool.settings();
  pool = TorchPool(settings);
  pool.restore(state);
  expect_sound();
  EXPECT_EQ(reserved(), 40 * mib);
  EXPECT_EQ(pool.statistics().all().allocated_bytes.current, 20 * mib);
  EXPECT_EQ(take(12 * mib).address, a.address + Addr(10 * mib));
  EXPECT_EQ(reserved(), 60 * mib);
  EXPECT_EQ(between(a, c), 60 * mib);
}

}  // namespace
}  // namespace spillway::sim
