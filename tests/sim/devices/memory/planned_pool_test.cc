// The run time of STAlloc and of fixed layouts, rule by rule of planned_pool.h.
#include "sim/devices/memory/planned_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/input_error.h"
#include "tests/traces/test_files.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t planned_mib = 1 << 20;

class Planned : public testing::Test {
 protected:
  // Two requests before the period, three within it; 4 MiB.
  Planned() {
    plan.pool = Bytes(4 * planned_mib);
    plan.places = {{Bytes(0), Bytes(planned_mib)},
                   {Bytes(planned_mib), Bytes(1024)},
                   {Bytes(2 * planned_mib), Bytes(planned_mib)},
                   {Bytes(3 * planned_mib), Bytes(512 * 1024)},
                   {Bytes(planned_mib), Bytes(planned_mib)}};
    plan.period_begin = 2;
    plan.small_peak = Bytes(1024);
    plan.spaces = {{"mlp-1", {{Bytes(0), Bytes(planned_mib)}, {Bytes(3 * planned_mib), Bytes(4 * planned_mib)}}}};
  }
  PlannedPool& start(std::int64_t device_bytes = Bytes::max().count()) {
    TorchSettings limits;
    limits.device_memory = Bytes(device_bytes);
    pool_.emplace(std::make_shared<const MemoryPlan>(plan), limits);
    return *pool_;
  }
  Allocation take(std::int64_t bytes, RequestSpace space = RequestSpace::planned) {
    AllocationRequest request;
    request.bytes = Bytes(bytes);
    request.space = space;
    const Allocation made = pool_->allocate(request);
    expect_sound();
    return made;
  }
  void give(const Allocation& made) {
    pool_->free(made.block, Picos{});
    expect_sound();
  }
  void expect_sound() const {
    const auto violation = pool_->check();
    EXPECT_FALSE(violation.has_value()) << *violation;
  }
  static std::int64_t offset(const Allocation& from, const Allocation& made) {
    return static_cast<std::int64_t>(made.address.count()) - static_cast<std::int64_t>(from.address.count());
  }

  MemoryPlan plan;
  std::optional<PlannedPool> pool_;
};

// Blocks from before the stream have places of their own, in order; one that is too large, and those behind the last,
// are cached. They take no part in the order of requests.
TEST_F(Planned, BlocksFromBeforeHavePlaces) {
  plan.before = {
      {Bytes(2 * planned_mib), Bytes(planned_mib)}, {Bytes(-1), Bytes(0)}, {Bytes(3 * planned_mib), Bytes(1024)}};
  start();
  const auto before = [&](std::int64_t bytes) {
    AllocationRequest request;
    request.bytes = Bytes(bytes);
    request.before = true;
    return pool_->allocate(request);
  };
  const Allocation a = before(planned_mib - 100), b = before(300), c = before(2000), d = before(300);
  EXPECT_EQ(pool_->statistics().all().reserved_bytes.current,
            4 * planned_mib + 2 * planned_mib);  // the pool, a small segment
  const Allocation first = take(planned_mib);
  EXPECT_EQ(offset(first, a), 2 * planned_mib);
  for (const Allocation& cached : {b, c, d}) EXPECT_GE(std::abs(offset(first, cached)), 4 * planned_mib);
  const Allocation second = take(1024);
  EXPECT_EQ(offset(first, second), planned_mib);
  EXPECT_EQ(pool_->outcome().placed, 2U);
  EXPECT_EQ(pool_->outcome().unplanned, 0U);
  const Allocation third = take(planned_mib);  // where a block from before lives
  EXPECT_EQ(pool_->outcome().overlap, 1U);
  give(a);
  EXPECT_EQ(offset(first, before(planned_mib)), 2 * planned_mib);  // the stream begins anew, and lost that one
  EXPECT_GE(std::abs(offset(first, before(planned_mib))), 4 * planned_mib);
  for (const Allocation& made : {b, c, d, first, second, third}) give(made);
}

// A dynamic request tries its place in the profiled step first, if it is no larger; the space's ranges say nothing
// there.
TEST_F(Planned, DynamicRequestsTryTheirPlaceFirst) {
  plan.dynamic = {{0, RequestSpace(0)}, {1, RequestSpace(0)}, {2, RequestSpace(0)}};
  plan.dynamic_places = {{Bytes(2 * planned_mib), Bytes(planned_mib)},
                         {Bytes(2 * planned_mib), Bytes(planned_mib)},
                         {Bytes(2 * planned_mib), Bytes(planned_mib / 2)}};
  start();
  const Allocation first = take(planned_mib / 2, RequestSpace(0)), taken = take(planned_mib / 2, RequestSpace(0));
  EXPECT_EQ(offset(first, taken), -2 * planned_mib);  // best fit in the ranges
  give(first);
  const Allocation larger = take(planned_mib, RequestSpace(0)), again = take(planned_mib, RequestSpace(0));
  EXPECT_EQ(offset(first, larger), planned_mib);
  EXPECT_EQ(offset(first, again), 0);  // the list begins anew
  EXPECT_EQ(pool_->outcome().reused, 4U);
}

// Every request goes to the place of its ordinal; after the last comes the period's first.
TEST_F(Planned, FollowsTheOrder) {
  start();
  const Allocation first = take(planned_mib), second = take(1000);
  EXPECT_EQ(first.cost.device_mallocs, 1U);
  EXPECT_EQ(first.cost.malloc_bytes, Bytes(4 * planned_mib));
  EXPECT_EQ(offset(first, second), planned_mib);
  EXPECT_EQ(second.size, Bytes(1024));
  give(second);
  for (int period = 0; period < 3; ++period) {
    const Allocation a = take(planned_mib), b = take(512 * 1024), c = take(planned_mib);
    EXPECT_EQ(offset(first, a), 2 * planned_mib);
    EXPECT_EQ(offset(first, b), 3 * planned_mib);
    EXPECT_EQ(offset(first, c), planned_mib);
    for (const Allocation& made : {a, b, c}) give(made);
  }
  EXPECT_EQ(pool_->outcome().placed, 11U);
  EXPECT_EQ(pool_->statistics().all().reserved_bytes.current, 4 * planned_mib);
}

// An inserted request takes its successor's place in the order: all behind it mismatch until the period comes round.
TEST_F(Planned, AnInsertedRequestShiftsTheRest) {
  start();
  take(planned_mib);
  take(1024);
  const Allocation odd = take(3 * planned_mib);  // instead of 1 MiB
  EXPECT_EQ(odd.cost.malloc_bytes, Bytes(20 * planned_mib));
  take(planned_mib);  // planned: 512 KiB
  take(512 * 1024);   // planned: 1 MiB
  EXPECT_EQ(pool_->outcome().size_mismatch, 3U);
  take(planned_mib);
  EXPECT_EQ(pool_->outcome().placed, 3U) << "back in step";
}

// A place with a live block in it is not handed out twice.
TEST_F(Planned, OverlapFallsBack) {
  start();
  take(planned_mib);
  take(1024);  // [1 MiB, +1024) stays live
  take(planned_mib);
  take(512 * 1024);
  take(planned_mib);  // planned at 1 MiB
  EXPECT_EQ(pool_->outcome().overlap, 1U);
  EXPECT_EQ(pool_->outcome().placed, 4U);
}

// Up to 512 bytes: slots, twice the profiled peak, doubled when they are out; no part in the order.
TEST_F(Planned, SmallRequestsHaveSlots) {
  start();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(take(512).size, Bytes(512));
  EXPECT_EQ(pool_->statistics().all().reserved_bytes.current, 2048);
  const Allocation fifth = take(1);
  EXPECT_EQ(fifth.cost.malloc_bytes, Bytes(2048));
  give(fifth);
  EXPECT_EQ(take(8).address, fifth.address);
  take(planned_mib);
  EXPECT_EQ(pool_->outcome().placed, 1U);
}

// Ordinals the profile never saw released go to the caching allocator; they don't advance the plan.
TEST_F(Planned, UnreleasedOrdinals) {
  plan.cached = {1};
  start();
  take(planned_mib);
  take(700 * 1024);
  take(1024);
  EXPECT_EQ(pool_->outcome().unplanned, 1U);
  EXPECT_EQ(pool_->outcome().placed, 2U);
}

// Its segments are multiples of 512 bytes from 10 MiB on, not of 2 MiB.
TEST_F(Planned, CachingAllocatorRoundsTo512) {
  start();
  EXPECT_EQ(take(11 * planned_mib + 1, RequestSpace::cached).cost.malloc_bytes, Bytes(11 * planned_mib + 512));
  EXPECT_EQ(pool_->outcome().dynamic_cached, 1U);
}

// Dynamic requests: best fit in what is free now, of the space or of the pool; else the caching allocator.
TEST_F(Planned, DynamicRequestsReusePlanSpace) {
  start();
  const Allocation first = take(planned_mib);  // takes the space's first range
  const Allocation a = take(600 * 1024, RequestSpace{0});
  EXPECT_EQ(offset(first, a), 3 * planned_mib);
  const Allocation b = take(planned_mib - 600 * 1024, RequestSpace{0});
  EXPECT_EQ(offset(first, b), 3 * planned_mib + 600 * 1024);
  EXPECT_NE(take(512 * 2, RequestSpace{0}).cost.device_mallocs, 0U) << "the space is full";
  EXPECT_EQ(offset(first, take(2 * planned_mib, RequestSpace::anywhere)), planned_mib);
  EXPECT_EQ(pool_->outcome().reused, 3U);
  EXPECT_EQ(pool_->outcome().dynamic_cached, 1U);
  take(1024);
  EXPECT_EQ(pool_->outcome().overlap, 1U) << "a reused place is not planned over";
}

// A pool that does not fit is an outcome, not a crash.
TEST_F(Planned, PoolThatDoesNotFit) {
  start(3 * planned_mib);
  EXPECT_TRUE(take(planned_mib).out_of_memory);
  EXPECT_EQ(pool_->last_out_of_memory().needed, Bytes(4 * planned_mib));
  EXPECT_FALSE(take(100).out_of_memory);
}

// Layouts: every request counts, small ones too; smaller than planned fits, larger does not.
TEST_F(Planned, Layouts) {
  plan.kind = PlanKind::layout;
  plan.period_begin = 0;
  plan.places = {{Bytes(0), Bytes(100)}, {Bytes(1024), Bytes(2048)}, {Bytes(-1), Bytes(64)}};
  start();
  EXPECT_EQ(pool_->name(), "arena");
  const Allocation first = take(100);
  EXPECT_EQ(first.size, Bytes(100));
  EXPECT_EQ(offset(first, take(1500)), 1024);
  take(64);
  EXPECT_EQ(pool_->outcome().unplanned, 1U);
  give(first);
  EXPECT_EQ(take(101).size, Bytes(512));
  EXPECT_EQ(pool_->outcome().size_mismatch, 1U);
}

// Blocks from before the stream take no part in the order.
TEST_F(Planned, RestoresBesideThePlan) {
  start();
  PoolState state;
  state.segments.push_back({Addr(1 << 21), Bytes(2 * planned_mib), 0, 0, true, false, 0, 2});
  state.blocks = {{Addr(1 << 21), Bytes(planned_mib), Bytes(planned_mib), BlockState::allocated},
                  {Addr(3 << 20), Bytes(planned_mib), Bytes(0), BlockState::inactive}};
  const std::vector<BlockId> ids = pool_->restore(state);
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_NE(ids[0], BlockId::none);
  EXPECT_EQ(ids[1], BlockId::none);
  take(planned_mib);
  EXPECT_EQ(pool_->outcome().placed, 1U);
}

// Plans the published planner made for recorded steps, run three times over: every request in its place, nothing
// reserved but the pool. Lines: start, end (half-open), size, offset; the first line is the pool's size.
TEST_F(Planned, PublishedPlansRun) {
  for (const char* name : {"bcrafton_train_step", "notHanmin_train", "silmont_bf16_ctx128", "silmont_fp32_ctx128"}) {
    const auto path = test::shared_file("memory/stalloc/" + std::string(name) + ".STAllocPlanner.plan.txt");
    if (!path) GTEST_SKIP() << "third-party plans are not beside this checkout";
    std::ifstream in(*path);
    std::int64_t size = 0;
    in >> size;
    struct Life {
      std::int64_t start, end, size, offset;
    };
    std::vector<Life> lives;
    for (Life life{}; in >> life.start >> life.end >> life.size >> life.offset;) lives.push_back(life);
    std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.start < b.start; });
    plan = MemoryPlan{};
    plan.pool = Bytes(size);
    for (const Life& life : lives) plan.places.push_back({Bytes(life.offset), Bytes(life.size)});
    start();
    for (int period = 0; period < 3; ++period) {
      std::multimap<std::int64_t, BlockId> ends;
      for (const Life& life : lives) {
        for (; !ends.empty() && ends.begin()->first <= life.start; ends.erase(ends.begin()))
          pool_->free(ends.begin()->second, Picos{});
        AllocationRequest request;
        request.bytes = Bytes(life.size);
        ends.emplace(life.end, pool_->allocate(request).block);
      }
      expect_sound();
      for (const auto& [end, block] : ends) pool_->free(block, Picos{});
    }
    EXPECT_EQ(pool_->outcome().placed, 3 * lives.size()) << name;
    EXPECT_EQ(pool_->statistics().all().reserved_bytes.peak, size) << name;
  }
}

MemoryPlan reread(const std::string& text) {
  ByteSource source = ByteSource::from_memory("plan.json", std::as_bytes(std::span(text.data(), text.size())), 1 << 20);
  return read_memory_plan(source);
}

// Written and read: the same plan.
TEST_F(Planned, FilesRoundTrip) {
  plan.cached = {7, 9};
  const MemoryPlan read = reread(memory_plan_json(plan));
  EXPECT_EQ(read.pool, plan.pool);
  EXPECT_EQ(read.period_begin, 2U);
  EXPECT_EQ(read.cached, plan.cached);
  ASSERT_EQ(read.places.size(), 5U);
  EXPECT_EQ(read.places[4].offset, Bytes(planned_mib));
  ASSERT_EQ(read.spaces.size(), 1U);
  EXPECT_EQ(read.spaces[0].ranges[1].begin, Bytes(3 * planned_mib));
  EXPECT_EQ(memory_plan_json(read), memory_plan_json(plan));
}

// A layout as CSV: ids are ordinals, gaps among them have no place; the pool ends where the highest place does.
TEST_F(Planned, LayoutsAsCsv) {
  const MemoryPlan read = reread("id,lower,upper,size,offset\r\n2,0,9,1024,512\n0,1,2,512,0\n");
  EXPECT_EQ(read.kind, PlanKind::layout);
  EXPECT_EQ(read.pool, Bytes(1536));
  ASSERT_EQ(read.places.size(), 3U);
  EXPECT_EQ(read.places[0].offset, Bytes(0));
  EXPECT_EQ(read.places[1].offset, Bytes(-1));
  EXPECT_EQ(read.places[2].size, Bytes(1024));
  for (const char* text : {"", "\n", "id,lower,upper,size\n0,0,1,2\n", "id,size,offset\n0,1\n",
                           "id,size,offset\n0,1,-1\n", "id,size,offset\nx,1,1\n", "id,size,offset\n0,1,1,1\n",
                           "id,size,offset\n999999999999,1,1\n", "id,size,offset\n0,99999999999999999999,1\n"})
    EXPECT_THROW(reread(text), InputError) << text;
}

TEST_F(Planned, BadFilesAreRefused) {
  const auto with = [](const char* part) {
    return std::string("{\"schema\":\"spillway-memory-plan\",\"kind\":\"stalloc\",") + part + "}";
  };
  for (const std::string& text :
       {std::string("{"), std::string("[]"), std::string("{\"schema\":\"x\"}"), with("\"pool_bytes\":1"),
        with("\"pool_bytes\":-1,\"places\":[]"), with("\"pool_bytes\":10,\"places\":[[0,11]]"),
        with("\"pool_bytes\":10,\"places\":[[-2,1]]"), with("\"pool_bytes\":10,\"places\":[[0]]"),
        with("\"pool_bytes\":10,\"places\":[[9223372036854775807,9223372036854775807]]"),
        with("\"pool_bytes\":10,\"places\":[[0,1]],\"period_begin\":1"),
        with("\"pool_bytes\":10,\"places\":[],\"spaces\":[{\"name\":\"a\",\"ranges\":[[5,6],[4,5]]}]"),
        with("\"pool_bytes\":1.5,\"places\":[]"), with("\"pool_bytes\":\"1\",\"places\":[]")})
    EXPECT_THROW(reread(text), InputError) << text;
}

}  // namespace
}  // namespace spillway::sim
