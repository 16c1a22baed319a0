#include "sim/devices/memory/torch_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/devices/memory/pool_fixture.h"

namespace spillway::sim {
namespace {

class TorchPoolTest : public PoolTest<TorchPool> {
 protected:
  void limited(const char* settings, std::int64_t device_bytes, double fraction = 1) {
    TorchSettings parsed = parse_torch_settings(settings);
    parsed.device_memory = Bytes(device_bytes);
    parsed.memory_fraction = fraction;
    pool = TorchPool(parsed);
  }
  [[nodiscard]] std::int64_t segments() const { return pool.statistics().all().segments.current; }
};

Addr operator+(Addr address, std::int64_t bytes) { return address + Addr(static_cast<std::uint64_t>(bytes)); }

// Rule 2: size 0 -> null, no event.
TEST_F(TorchPoolTest, NothingAskedNothingDone) {
  const Allocation made = take(0);
  EXPECT_EQ(made.block, BlockId::none);
  EXPECT_FALSE(made.out_of_memory);
  EXPECT_EQ(pool.statistics(), MemoryStatistics{});
}

// Rules 5 and 13b: rounded n <= 1 MiB comes from a 2 MiB segment of the small pool, more from the large one.
TEST_F(TorchPoolTest, SmallAndLargePools) {
  take(mib);
  EXPECT_EQ(pool.statistics().of(PoolKind::small).reserved_bytes.current, 2 * mib);
  const Allocation large = take(mib + 1);
  EXPECT_EQ(pool.statistics().of(PoolKind::large).reserved_bytes.current, 20 * mib);
  EXPECT_EQ(large.cost.device_mallocs, 1U);
  EXPECT_EQ(large.cost.malloc_bytes, Bytes(20 * mib));
  EXPECT_EQ(take(512).cost.device_mallocs, 0U);
}

// Rule 12, small pool: split iff the remainder is at least 512; the low part is used.
TEST_F(TorchPoolTest, SmallSplitsUseTheLowPart) {
  const Allocation first = take(1000);
  const Allocation second = take(512);
  EXPECT_EQ(first.size, Bytes(1024));
  EXPECT_EQ(second.address, first.address + 1024);
  const Allocation whole = take(mib, 1);
  const Allocation rest = take(mib, 1);
  EXPECT_EQ(rest.address, whole.address + mib);
  EXPECT_EQ(pool.statistics().all().inactive_split.current, 1) << "stream 0 only";
}

// Rule 12, large pool: split iff the remainder is more than 1 MiB; otherwise the slack belongs to the block.
TEST_F(TorchPoolTest, LargeSplitsOnlyAboveOneMebibyte) {
  const Allocation slack = take(19 * mib);  // 20 MiB segment, exactly 1 MiB left
  EXPECT_EQ(slack.size, Bytes(20 * mib));
  EXPECT_EQ(pool.statistics().all().allocated_bytes.current, 20 * mib);
  EXPECT_EQ(pool.statistics().all().requested_bytes.current, 19 * mib);
  give(slack);
  const Allocation split = take(19 * mib - 512);
  EXPECT_EQ(split.size, Bytes(19 * mib - 512));
  EXPECT_EQ(split.address, slack.address);
  EXPECT_EQ(pool.statistics().all().inactive_split_bytes.current, mib + 512);
}

// Rule 10: the smallest sufficient block wins; of equal sizes, the lowest address.
TEST_F(TorchPoolTest, BestFitThenLowestAddress) {
  const Allocation a = take(30 * mib), b = take(24 * mib), c = take(24 * mib), d = take(22 * mib);
  give(a);
  give(c);
  give(b);
  give(d);
  EXPECT_EQ(take(23 * mib).address, b.address) << "24 MiB blocks fit better than 30, the first taken is lower";
  EXPECT_EQ(take(23 * mib).address, c.address);
  EXPECT_EQ(take(23 * mib).address, a.address);
  EXPECT_EQ(reserved(), 100 * mib);
}

// Rule 8: cached memory is never shared between streams.
TEST_F(TorchPoolTest, StreamsDoNotShareCachedMemory) {
  const Allocation made = take(30 * mib, 1);
  give(made);
  EXPECT_NE(take(30 * mib, 2).address, made.address);
  EXPECT_EQ(segments(), 2);
  EXPECT_EQ(take(30 * mib, 1).address, made.address);
}

// Rule 5: private pools have segments of their own.
TEST_F(TorchPoolTest, PrivatePoolsAreApart) {
  give(take(30 * mib, 0, 7));
  take(30 * mib, 0, 0);
  EXPECT_EQ(segments(), 2);
  take(30 * mib, 0, 7);
  EXPECT_EQ(segments(), 2);
}

// Rule 15: free neighbours coalesce; the driver gets nothing.
TEST_F(TorchPoolTest, FreeCoalescesBothWays) {
  const Allocation a = take(4 * mib), b = take(4 * mib), c = take(4 * mib);
  give(a);
  give(c);  // merges with the 8 MiB behind it
  EXPECT_EQ(pool.statistics().all().inactive_split.current, 2);
  EXPECT_EQ(pool.statistics().all().inactive_split_bytes.current, 16 * mib);
  give(b);
  EXPECT_EQ(pool.statistics().all().inactive_split.current, 0) << "one whole free segment is not a split one";
  EXPECT_EQ(reserved(), 20 * mib);
  const PoolState state = pool.state();
  ASSERT_EQ(state.blocks.size(), 1U);
  EXPECT_EQ(state.blocks[0].state, BlockState::inactive);
}

// Rules 15 and 22: a block used on another stream stays active, not allocated, until the event completes, and the
// allocator notices at its next allocation.
TEST_F(TorchPoolTest, CrossStreamUseDelaysReuse) {
  const Allocation made = take(30 * mib);
  pool.record_stream(made.block, 1);
  pool.record_stream(made.block, 1);
  pool.record_stream(made.block, 2);
  pool.record_stream(made.block, 0);  // its own stream: ignored
  EXPECT_EQ(pool.free(made.block, Picos{}), 2U);
  EXPECT_EQ(pool.statistics().all().allocated_bytes.current, 0);
  EXPECT_EQ(pool.statistics().all().active_bytes.current, 30 * mib);
  EXPECT_EQ(pool.statistics().all().requested_bytes.current, 30 * mib);
  EXPECT_NE(take(30 * mib).address, made.address);
  pool.complete_event(made.block, 1);
  EXPECT_NE(take(30 * mib).address, made.address) << "one of two events done";
  pool.complete_event(made.block, 2);
  EXPECT_EQ(pool.statistics().all().active_bytes.current, 90 * mib) << "not yet noticed";
  EXPECT_EQ(take(30 * mib).address, made.address);
}

// Rule 15: no merging with a neighbour that waits for an event.
TEST_F(TorchPoolTest, PendingNeighboursDoNotMerge) {
  const Allocation a = take(4 * mib), b = take(4 * mib);
  take(4 * mib);
  pool.record_stream(a.block, 1);
  pool.free(a.block, Picos{});
  give(b);
  EXPECT_EQ(take(8 * mib).address, a.address + 12 * mib) << "a and b are not one block yet";
  pool.complete_event(a.block, 1);
  EXPECT_EQ(take(8 * mib).address, a.address);
}

// Rule 11: a request below max_split never takes a block of at least max_split, and the search stops there.
TEST_F(TorchPoolTest, OversizeBlocksAreKeptForOversizeRequests) {
  limited("max_split_size_mb:30", 1000 * mib);
  const Allocation oversize = take(40 * mib);
  EXPECT_EQ(pool.statistics().oversize_allocations.current, 1);
  EXPECT_EQ(pool.statistics().oversize_segments.current, 1);
  give(oversize);
  EXPECT_NE(take(20 * mib).address, oversize.address);
  // n >= max_split: served while the block is smaller than n + 20 MiB, and never split (rule 12).
  const Allocation smaller = take(32 * mib);
  EXPECT_EQ(smaller.address, oversize.address);
  EXPECT_EQ(smaller.size, Bytes(40 * mib));
}

// Rule 11: a block of exactly max_split is oversize, and so is a request.
TEST_F(TorchPoolTest, ExactlyMaxSplitIsOversize) {
  limited("max_split_size_mb:30", 1000 * mib);
  const Allocation exact = take(30 * mib);
  EXPECT_EQ(pool.statistics().oversize_allocations.current, 1);
  give(exact);
  EXPECT_NE(take(29 * mib).address, exact.address);
  EXPECT_EQ(take(30 * mib).address, exact.address);
}

// Rule 11: n >= max_split and candidate >= n + 20 MiB -> miss.
TEST_F(TorchPoolTest, OversizeSlackIsBounded) {
  limited("max_split_size_mb:30", 1000 * mib);
  const Allocation big = take(60 * mib);
  give(big);
  EXPECT_NE(take(40 * mib).address, big.address);
  EXPECT_EQ(take(42 * mib).address, big.address);
}

// Rule 13d: with max_split set, a failing request frees one sufficient oversize block, without a retry.
TEST_F(TorchPoolTest, ReleasesASufficientOversizeBlock) {
  limited("max_split_size_mb:30", 200 * mib);
  give(take(60 * mib));
  give(take(90 * mib));
  const Allocation made = take(65 * mib);  // 50 MiB are left; the 90 MiB block is too large to use
  EXPECT_FALSE(made.out_of_memory);
  EXPECT_EQ(made.cost.device_frees, 1U);
  EXPECT_EQ(made.cost.free_bytes, Bytes(90 * mib));
  EXPECT_EQ(made.cost.synchronizations, 0U);
  EXPECT_EQ(pool.statistics().alloc_retries, 0);
}

// Rule 13d: no single block suffices -> the largest ones downwards until the sum does.
TEST_F(TorchPoolTest, ReleasesOversizeBlocksLargestFirst) {
  limited("max_split_size_mb:30", 130 * mib);
  const Allocation a = take(32 * mib), b = take(36 * mib), c = take(40 * mib);
  give(a);
  give(b);
  give(c);
  const Allocation made = take(70 * mib);
  EXPECT_FALSE(made.out_of_memory);
  EXPECT_EQ(made.cost.free_bytes, Bytes(76 * mib)) << "40 + 36, the 32 stays";
  EXPECT_EQ(pool.statistics().alloc_retries, 0);
}

// Rule 13e: else every unsplit cached segment of both pools goes, after waiting for all events; num_alloc_retries++.
TEST_F(TorchPoolTest, RetryReleasesUnsplitSegments) {
  limited("", 66 * mib);
  const Allocation split = take(4 * mib);  // 20 MiB segment, stays: it is in use
  const Allocation waits = take(30 * mib);
  give(take(512));
  pool.record_stream(waits.block, 1);
  pool.free(waits.block, Picos{});
  const Allocation made = take(40 * mib);
  EXPECT_FALSE(made.out_of_memory);
  EXPECT_EQ(made.cost.synchronizations, 1U);
  EXPECT_EQ(made.cost.device_frees, 2U);
  EXPECT_EQ(pool.statistics().alloc_retries, 1);
  EXPECT_EQ(pool.statistics().sync_all_streams, 1);
  EXPECT_EQ(pool.statistics().ooms, 0);
  EXPECT_EQ(reserved(), 60 * mib);
  EXPECT_TRUE(pool.pending_events().empty());
  give(split);
}

// Rule 13f: nothing helps -> num_ooms++, and the explanation says what was held. The pool stays usable.
TEST_F(TorchPoolTest, OutOfMemoryIsAnOutcome) {
  limited("", 50 * mib);
  take(4 * mib);
  const Allocation failed = take(40 * mib);
  EXPECT_TRUE(failed.out_of_memory);
  EXPECT_EQ(failed.block, BlockId::none);
  EXPECT_EQ(pool.statistics().ooms, 1);
  EXPECT_EQ(pool.statistics().alloc_retries, 1);
  const OutOfMemory& why = pool.last_out_of_memory();
  EXPECT_EQ(why.requested, Bytes(40 * mib));
  EXPECT_EQ(why.allocated, Bytes(4 * mib));
  EXPECT_EQ(why.reserved, Bytes(20 * mib));
  EXPECT_EQ(why.cached_large, Bytes(16 * mib));
  EXPECT_EQ(why.largest_free_block, Bytes(16 * mib));
  EXPECT_EQ(why.limit, Bytes(50 * mib));
  EXPECT_THAT(describe(why), testing::HasSubstr("10.00 MiB more would have had to be free"));
  EXPECT_FALSE(take(16 * mib).out_of_memory);
}

// Rule 13b: fails if reserved + segment > fraction * device, though the device has room.
TEST_F(TorchPoolTest, MemoryFractionIsALimit) {
  limited("", 100 * mib, 0.5);
  take(30 * mib);
  EXPECT_TRUE(take(22 * mib).out_of_memory);
  EXPECT_FALSE(take(20 * mib).out_of_memory);
}

// Rule 13c (last resort): a registered private pool serves when all else failed.
TEST_F(TorchPoolTest, OverflowPoolIsTheLastResort) {
  limited("", 50 * mib);
  const Allocation cached = take(40 * mib, 0, 3);
  give(cached);
  EXPECT_TRUE(take(30 * mib).out_of_memory) << "private segments are not given back while a graph uses them";
  pool.use_on_out_of_memory(3);
  EXPECT_EQ(take(30 * mib).address, cached.address);
}

// Rule 13e: segments of a private pool that no graph uses any more are given back too.
TEST_F(TorchPoolTest, FreeablePrivatePoolsAreReleased) {
  limited("", 50 * mib);
  give(take(40 * mib, 0, 3));
  pool.make_freeable(3);
  EXPECT_FALSE(take(30 * mib).out_of_memory);
  EXPECT_EQ(reserved(), 30 * mib);
}

// Rule 16: reserved 102 MiB > 0.5 * 200 MiB, so a miss frees unsplit cached blocks of at least mean age. Ages count
// the searches in the pool since a block was cached: a 3, b 2, mean 2.5. Only a goes.
TEST_F(TorchPoolTest, GarbageCollectionFreesTheOld) {
  limited("garbage_collection_threshold:0.5", 400 * mib, 0.5);
  take(2 * mib, 1);
  const Allocation a = take(20 * mib), b = take(22 * mib);
  take(40 * mib);
  give(a);
  take(2 * mib, 1);
  give(b);
  take(2 * mib, 1);
  const Allocation made = take(30 * mib);
  EXPECT_EQ(made.cost.free_bytes, Bytes(20 * mib));
  EXPECT_EQ(made.cost.synchronizations, 0U);
  EXPECT_EQ(reserved(), (102 - 20 + 30) * mib);
}

// Rule 16: one pass does not stop early: of equal age, both go although a alone would reclaim the 2 MiB excess.
TEST_F(TorchPoolTest, GarbageCollectionFinishesItsPass) {
  limited("garbage_collection_threshold:0.5", 400 * mib, 0.5);
  take(2 * mib, 1);
  const Allocation a = take(20 * mib), b = take(22 * mib);
  take(40 * mib);
  give(a);
  give(b);
  EXPECT_EQ(take(30 * mib).cost.free_bytes, Bytes(42 * mib));
}

// Rule 16: passes repeat with a new mean until the excess is reclaimed. Excess 42 MiB, ages 2 and 1, mean 1.5: a
// goes first (20 MiB), then b (22 MiB) in a second pass.
TEST_F(TorchPoolTest, GarbageCollectionRepeatsItsPass) {
  limited("garbage_collection_threshold:0.5", 400 * mib, 0.5);
  take(2 * mib, 1);
  const Allocation a = take(20 * mib), b = take(22 * mib);
  take(80 * mib);
  give(a);
  take(2 * mib, 1);
  give(b);
  EXPECT_EQ(take(30 * mib).cost.free_bytes, Bytes(42 * mib));
}

// Rule 16 is off without a memory fraction below 1.
TEST_F(TorchPoolTest, GarbageCollectionNeedsAFraction) {
  limited("garbage_collection_threshold:0.1", 400 * mib);
  give(take(30 * mib));
  take(40 * mib);
  EXPECT_EQ(reserved(), 70 * mib);
}

// empty_cache() gives every unsplit cached segment back.
TEST_F(TorchPoolTest, EmptyCache) {
  const Allocation kept = take(4 * mib);
  give(take(30 * mib));
  const DriverCost cost = pool.empty_cache(Picos{});
  EXPECT_EQ(cost.device_frees, 1U);
  EXPECT_EQ(cost.free_bytes, Bytes(30 * mib));
  EXPECT_EQ(reserved(), 20 * mib);
  give(kept);
}

// Rule 22: current, peak, allocated and freed of one sequence, by hand.
TEST_F(TorchPoolTest, StatisticsByHand) {
  const Allocation a = take(1000), b = take(5 * mib);
  give(a);
  const PoolStatistics& all = pool.statistics().all();
  EXPECT_EQ(all.allocations, (Statistic{1, 2, 2, 1}));
  EXPECT_EQ(all.allocated_bytes, (Statistic{5 * mib, 5 * mib + 1024, 5 * mib + 1024, 1024}));
  EXPECT_EQ(all.requested_bytes, (Statistic{5 * mib, 5 * mib + 1000, 5 * mib + 1000, 1000}));
  EXPECT_EQ(all.segments, (Statistic{2, 2, 2, 0}));
  EXPECT_EQ(all.reserved_bytes, (Statistic{22 * mib, 22 * mib, 22 * mib, 0}));
  EXPECT_EQ(pool.statistics().of(PoolKind::small).inactive_split, (Statistic{0, 1, 1, 1}));
  EXPECT_EQ(pool.statistics().of(PoolKind::large).inactive_split_bytes, (Statistic{15 * mib, 15 * mib, 15 * mib, 0}));
  EXPECT_EQ(pool.statistics().device_mallocs, 2);
  give(b);
}

// Rule 23: 1 - peak allocated / peak reserved.
TEST_F(TorchPoolTest, FragmentationDefinitions) {
  const Allocation made = take(5 * mib);
  pool.record_stream(made.block, 1);
  EXPECT_DOUBLE_EQ(fragmentation(pool.statistics()).by_allocated, 0.75);
  EXPECT_DOUBLE_EQ(fragmentation(pool.statistics()).by_active, 0.75);
  EXPECT_EQ(fragmentation(pool.statistics()).irreducible, Bytes(15 * mib));
  EXPECT_EQ(fragmentation(MemoryStatistics{}).by_allocated, 0);
}

// Value semantics: a fork goes its own way.
TEST_F(TorchPoolTest, ACopyIsAFork) {
  const Allocation made = take(30 * mib);
  TorchPool fork = pool;
  fork.free(made.block, Picos{});
  fork.empty_cache(Picos{});
  EXPECT_EQ(fork.statistics().all().reserved_bytes.current, 0);
  EXPECT_EQ(reserved(), 30 * mib);
  give(made);
}

// state() and restore() are inverse: the same blocks, the same next placement.
TEST_F(TorchPoolTest, StateRestores) {
  const Allocation a = take(4 * mib), b = take(4 * mib);
  take(700);
  give(a);
  const PoolState state = pool.state();
  TorchPool copy;
  const std::vector<BlockId> ids = copy.restore(state);
  EXPECT_FALSE(copy.check().has_value());
  EXPECT_EQ(copy.statistics().all().inactive_split_bytes.current, pool.statistics().all().inactive_split_bytes.current);
  EXPECT_EQ(copy.statistics().all().allocated_bytes.current, pool.statistics().all().allocated_bytes.current);
  AllocationRequest request;
  request.bytes = Bytes(3 * mib);
  EXPECT_EQ(copy.allocate(request).address, pool.allocate(request).address);
  EXPECT_EQ(ids.size(), state.blocks.size());
  give(b);
}

// Rule 24: suggested segment addresses are used for segments of that size, others stay synthetic.
TEST_F(TorchPoolTest, SuggestedSegmentAddresses) {
  pool.suggest_segment(Addr(0x7f0000000000), Bytes(30 * mib));
  EXPECT_GE(take(40 * mib).address, Addr(std::uint64_t{1} << 48));
  EXPECT_EQ(take(30 * mib).address, Addr(0x7f0000000000));
  EXPECT_EQ(pool.suggestions(), 0U);
}

// Rows: one per life, half-open, with the caller's tag.
TEST_F(TorchPoolTest, RowsTellEveryLife) {
  pool.keep_rows(true);
  const Allocation a = pool.allocate({Bytes(100), 0, 0, Picos(5), 1});
  pool.allocate({Bytes(200), 0, 0, Picos(6), 2});
  pool.free(a.block, Picos(9));
  const std::vector<AllocationRow> rows = pool.rows();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].allocated, Picos(5));
  EXPECT_EQ(rows[0].freed, Picos(9));
  EXPECT_EQ(rows[0].tag, 1U);
  EXPECT_EQ(rows[1].freed, unknown_time);
  EXPECT_EQ(rows[1].size, Bytes(512));
}

}  // namespace
}  // namespace spillway::sim
