// Virtual memory stitching by hand: the states named in gmlake_pool.h.
#include "sim/devices/memory/gmlake_pool.h"

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "tests/sim/devices/memory/pool_fixture.h"

namespace spillway::sim {
namespace {

class Gmlake : public PoolTest<GmlakePool> {
 protected:
  Gmlake() { use("fragLimit:2097152"); }
  void use(const char* text, std::int64_t device_bytes = Bytes::max().count()) {
    GmlakeSettings settings = parse_gmlake_settings(text);
    settings.torch.device_memory = Bytes(device_bytes);
    pool = GmlakePool(settings);
  }
};

// More than 1 MiB: multiples of 2 MiB on chunks of 2 MiB; up to 1 MiB: the torch policy's small pool.
TEST_F(Gmlake, ChunksAndSmallPool) {
  const Allocation large = take(30 * mib + 1);
  EXPECT_EQ(large.size, Bytes(32 * mib));
  EXPECT_EQ(large.cost.chunks_created, 16U);
  EXPECT_EQ(large.cost.maps, 16U);
  EXPECT_EQ(reserved(), 32 * mib);
  const Allocation small = take(1000);
  EXPECT_EQ(small.size, Bytes(1024));
  EXPECT_EQ(small.cost.device_mallocs, 1U);
  EXPECT_EQ(pool.statistics().of(PoolKind::small).reserved_bytes.current, 2 * mib);
}

// S1, S2: the smallest sufficient piece, its low part; the rest stays free and comes back together.
TEST_F(Gmlake, SplitsTheBestFit) {
  const Allocation big = take(40 * mib), fit = take(30 * mib);
  give(big);
  give(fit);
  const Allocation a = take(24 * mib);
  EXPECT_EQ(a.address, fit.address);
  EXPECT_EQ(pool.statistics().all().inactive_split_bytes.current, 6 * mib);
  EXPECT_EQ(take(40 * mib).address, big.address) << "exact";
  give(a);
  EXPECT_EQ(pool.statistics().all().inactive_split.current, 0);
  EXPECT_EQ(reserved(), 70 * mib);
}

// S3: 40 + 30 free, 60 wanted: 40 and 20 of the 30 are mapped into one new range; no new memory.
TEST_F(Gmlake, StitchesFreePieces) {
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  const Allocation stitched = take(60 * mib);
  EXPECT_EQ(reserved(), 70 * mib);
  EXPECT_NE(stitched.address, a.address);
  EXPECT_EQ(stitched.cost.chunks_created, 0U);
  EXPECT_EQ(stitched.cost.maps, 30U);
  EXPECT_EQ(stitched.cost.access_changes, 1U);
  EXPECT_EQ(take(10 * mib).address, b.address + Addr(20 * mib)) << "what is over is served as usual";
  give(stitched);
  EXPECT_EQ(pool.stitched_blocks(), 1U) << "kept after use";
}

// S1 on an sBlock: the second time it is there already, without any call of the driver; a smaller request leaves the
// pieces behind it free.
TEST_F(Gmlake, ReusesStitchedBlocks) {
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  const Allocation first = take(60 * mib);
  give(first);
  const Allocation again = take(60 * mib);
  EXPECT_EQ(again.address, first.address);
  EXPECT_TRUE(again.cost.empty());
  give(again);
  const Allocation smaller = take(50 * mib);
  EXPECT_EQ(smaller.address, first.address);
  EXPECT_EQ(smaller.size, Bytes(50 * mib));
  const Allocation rest = take(20 * mib);
  EXPECT_EQ(rest.address, b.address + Addr(10 * mib));
  EXPECT_EQ(reserved(), 70 * mib);
  EXPECT_EQ(pool.stitches(), 1U);
}

// reuseLimit: an sBlock of 60 MiB serves nothing below 60 / limit.
TEST_F(Gmlake, ReuseLimit) {
  use("fragLimit:2097152,reuseLimit:1.1");
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  give(take(60 * mib));
  take(50 * mib);
  EXPECT_EQ(pool.stitches(), 2U) << "60 > 1.1 x 50: stitched anew";
}

// Below the fragmentation limit (512 MiB by default) new memory is taken instead.
TEST_F(Gmlake, FragmentationLimit) {
  use("");
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  take(60 * mib);
  EXPECT_EQ(reserved(), 130 * mib);
  EXPECT_EQ(pool.stitches(), 0U);
}

// defragLevel 1: only when the driver has no more.
TEST_F(Gmlake, DefragmentationLevel) {
  use("fragLimit:2097152,defragLevel:1", 140 * mib);
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  const Allocation fresh = take(60 * mib);
  EXPECT_EQ(reserved(), 130 * mib);
  EXPECT_EQ(pool.stitches(), 0U);
  EXPECT_FALSE(take(60 * mib).out_of_memory);
  EXPECT_EQ(pool.stitches(), 1U);
  EXPECT_EQ(reserved(), 130 * mib);
  give(fresh);
}

// S4: 70 MiB free, 100 wanted: 30 more are taken, all of it stitched.
TEST_F(Gmlake, GrowsAndStitches) {
  use("fragLimit:2097152,reAlloc:1");
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  const Allocation made = take(100 * mib);
  EXPECT_EQ(made.size, Bytes(100 * mib));
  EXPECT_EQ(reserved(), 100 * mib);
  EXPECT_EQ(made.cost.chunks_created, 15U);
}

// S5: unused segments are given back, with the ranges stitched from them; then out of memory.
TEST_F(Gmlake, GivesBackThenFails) {
  use("fragLimit:536870912", 100 * mib);
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  const Allocation made = take(90 * mib);
  EXPECT_FALSE(made.out_of_memory);
  EXPECT_EQ(made.cost.chunks_released, 35U);
  EXPECT_EQ(pool.statistics().alloc_retries, 1);
  EXPECT_TRUE(take(20 * mib).out_of_memory);
  EXPECT_EQ(pool.last_out_of_memory().reserved, Bytes(90 * mib));
  EXPECT_EQ(pool.statistics().ooms, 1);
}

// autoGC: ranges that are not in use are unmapped before more than that many bytes are stitched.
TEST_F(Gmlake, StitchedLimit) {
  use("fragLimit:2097152,reuseLimit:1,autoGC:0");
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  give(take(60 * mib));
  const Allocation other = take(64 * mib);
  EXPECT_EQ(other.cost.unmaps, 30U);
  EXPECT_EQ(pool.stitched_blocks(), 1U);
}

// A range goes with its memory, even while the part of it that is in use stays.
TEST_F(Gmlake, RangesGoWithTheirMemory) {
  const Allocation a = take(40 * mib), b = take(30 * mib);
  give(a);
  give(b);
  give(take(60 * mib));
  const Allocation part = take(42 * mib);  // all of a, 2 MiB of b
  pool.empty_cache(Picos{});
  expect_sound();
  EXPECT_EQ(reserved(), 70 * mib);
  give(part);
  pool.empty_cache(Picos{});
  expect_sound();
  EXPECT_EQ(reserved(), 0);
  EXPECT_EQ(pool.stitched_blocks(), 0U);
}

TEST_F(Gmlake, SettingsAreChecked) {
  const GmlakeSettings settings = parse_gmlake_settings(
      "fragLimit:64,reuseLimit:2.5,defragLevel:2,autoGC:3,reAlloc:1,roundup_power2_divisions:[256:1,>:8]");
  EXPECT_EQ(settings.fragment_limit, Bytes(64));
  EXPECT_DOUBLE_EQ(settings.reuse_limit, 2.5);
  EXPECT_EQ(settings.defragment_level, 2);
  EXPECT_EQ(settings.stitched_limit, Bytes(std::int64_t{3} << 30));
  EXPECT_TRUE(settings.grow_and_stitch);
  EXPECT_EQ(settings.torch.roundup_power2_divisions[15], 8U);
  for (const char* text : {"fraglimit:1", "fragLimit", "fragLimit:x", "reuseLimit:0.5", "reuseLimit:nan", "autoGC:-1",
                           "max_split_size_mb:20", "expandable_segments:True", ","})
    EXPECT_THROW(parse_gmlake_settings(text), InputError) << text;
}

}  // namespace
}  // namespace spillway::sim
