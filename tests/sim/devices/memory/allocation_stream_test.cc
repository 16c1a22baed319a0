#include "sim/devices/memory/allocation_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "base/input_error.h"
#include "sim/devices/memory/recorded_state.h"
#include "sim/devices/memory/request_lives.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t mib = 1 << 20;
constexpr std::uint64_t base = 0x7f0000000000;

// A capture written by hand: offsets from `base`.
struct Capture {
  Capture() { trace.memory_size_is_requested = true; }
  void event(MemoryAction action, std::int64_t offset, std::int64_t bytes) {
    MemoryEvent event;
    event.action = action;
    event.address = Addr(base + static_cast<std::uint64_t>(offset));
    event.bytes = Bytes(bytes);
    event.time = Picos(static_cast<std::int64_t>(trace.memory_events.size()));
    event.stream = trace.lane({LaneKind::stream, 0, 0, 0});
    trace.memory_events.push_back(event);
  }
  void alloc(std::int64_t offset, std::int64_t bytes) { event(MemoryAction::allocate, offset, bytes); }
  void free(std::int64_t offset, std::int64_t bytes) {
    event(MemoryAction::free_requested, offset, bytes);
    event(MemoryAction::free_completed, offset, bytes);
  }
  void segment(std::int64_t offset, std::int64_t total) {
    MemorySegment segment;
    segment.address = Addr(base + static_cast<std::uint64_t>(offset));
    segment.total = Bytes(total);
    segment.large = total > 2 * mib;
    segment.stream = trace.lane({LaneKind::stream, 0, 0, 0});
    segment.first_block = static_cast<std::uint32_t>(trace.memory_blocks.size());
    trace.memory_segments.push_back(segment);
  }
  void block(std::int64_t offset, std::int64_t size, BlockState state) {
    trace.memory_blocks.push_back({Addr(base + static_cast<std::uint64_t>(offset)), Bytes(size),
                                   state == BlockState::inactive ? Bytes{} : Bytes(size), state});
    ++trace.memory_segments.back().block_count;
  }
  [[nodiscard]] AllocationStreamResult replay(const char* policy = "torch") const {
    AllocationStreamOptions options;
    options.pool.policy = policy;
    return replay_allocation_stream(trace, options);
  }
  Trace trace;
};

// A history from the process's start: the first segment gets its recorded address, all else follows.
TEST(AllocationStream, MatchesACompleteHistory) {
  Capture capture;
  capture.event(MemoryAction::segment_allocate, 0, 20 * mib);
  capture.alloc(0, 2 * mib);
  capture.alloc(2 * mib, 3 * mib);
  capture.free(0, 2 * mib);
  capture.alloc(0, 2 * mib - 100);
  capture.segment(0, 20 * mib);
  capture.block(0, 2 * mib, BlockState::allocated);
  capture.block(2 * mib, 3 * mib, BlockState::allocated);
  capture.block(5 * mib, 15 * mib, BlockState::inactive);
  const AllocationStreamResult result = capture.replay();
  EXPECT_EQ(result.addresses.matched, 3U);
  EXPECT_EQ(result.addresses.total, 3U);
  EXPECT_EQ(result.segments.matched, 1U);
  EXPECT_EQ(result.segments.total, 1U);
  EXPECT_EQ(result.segments_allocated, 1U);
  EXPECT_EQ(result.initial_segments, 0U);
  EXPECT_EQ(result.final_blocks.matched, 2U);
  EXPECT_EQ(result.recorded.peak_reserved, Bytes(20 * mib));
  EXPECT_EQ(result.statistics.all().allocated_bytes.peak, 5 * mib);
  EXPECT_EQ(result.recorded.peak_requested, Bytes(5 * mib));
  EXPECT_DOUBLE_EQ(result.fragmentation.by_allocated, 0.75);
}

// A history with expandable segments: pages mapped where and as large as recorded, also when the history begins late.
TEST(AllocationStream, MatchesExpandableSegments) {
  Capture capture;
  capture.event(MemoryAction::segment_map, 0, 40 * mib);
  capture.alloc(0, 30 * mib);
  capture.alloc(30 * mib, 5 * mib);
  capture.event(MemoryAction::segment_map, 40 * mib, 20 * mib);
  capture.alloc(35 * mib, 20 * mib);
  capture.free(0, 30 * mib);
  capture.event(MemoryAction::segment_unmap, 0, 20 * mib);
  capture.segment(20 * mib, 40 * mib);
  capture.trace.memory_segments.back().expandable = true;
  capture.block(20 * mib, 10 * mib, BlockState::inactive);
  capture.block(30 * mib, 5 * mib, BlockState::allocated);
  capture.block(35 * mib, 20 * mib, BlockState::allocated);
  capture.block(55 * mib, 5 * mib, BlockState::inactive);
  for (const std::uint64_t missed : {0U, 3U}) {
    auto& events = capture.trace.memory_events;
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(missed));
    const AllocationStreamResult result = capture.replay("torch-expandable");
    EXPECT_EQ(result.addresses.total, missed == 0 ? 3U : 1U);
    EXPECT_EQ(result.addresses.matched, result.addresses.total);
    EXPECT_EQ(result.segments.total, missed == 0 ? 2U : 1U);
    EXPECT_EQ(result.segments.matched, result.segments.total);
    EXPECT_EQ(result.final_blocks.matched, 2U);
    EXPECT_EQ(result.statistics.all().reserved_bytes.peak, 60 * mib);
    EXPECT_EQ(result.statistics.all().reserved_bytes.current, 40 * mib);
    EXPECT_EQ(result.recorded.peak_reserved, Bytes(60 * mib));
  }
}

// Requests as lives: [event of the allocation, event of the free), to the end if there is none.
TEST(AllocationStream, RequestLives) {
  Capture capture;
  capture.free(64 * mib, 512);  // from before
  capture.alloc(0, 1000);
  capture.alloc(4096, 512);
  capture.alloc(8192, 0);
  capture.free(0, 1000);
  const std::vector<RequestLife> lives = request_lives(capture.trace, 0);
  EXPECT_EQ(request_lives_csv(lives), "id,lower,upper,size\n0,2,5,1024\n1,3,7,512\n");
}

// A block freed that was never allocated, and what a plan of all lives makes of it: it has its place too, as the stream
// asks for it first.
TEST(AllocationStream, BlocksFromBeforeAreLaidOut) {
  Capture capture;
  capture.alloc(0, mib);
  capture.free(8 * mib, 2 * mib);
  capture.alloc(16 * mib, 2 * mib);
  const std::vector<RequestLife> before = lives_before(capture.trace, 0);
  ASSERT_EQ(before.size(), 1U);
  const std::string csv = request_lives_csv(request_lives(capture.trace, 0), before);
  EXPECT_EQ(csv, "id,lower,upper,size\nbefore-0,0,2,2097152\n0,1,5,1048576\n1,4,5,2097152\n");
  const std::string laid = "id,size,offset\nbefore-0,2097152,0\n0,1048576,2097152\n1,2097152,0\n";
  auto source = ByteSource::from_memory("layout", std::as_bytes(std::span(laid)), 1 << 20);
  AllocationStreamOptions options;
  options.pool.policy = "arena";
  options.pool.plan = std::make_shared<const MemoryPlan>(read_memory_plan(source));
  const AllocationStreamResult result = replay_allocation_stream(capture.trace, options);
  EXPECT_EQ(result.plan->placed, 2U);
  EXPECT_EQ(result.statistics.all().reserved_bytes.peak, 3 * mib);
}

// A layout of those lives, followed: every request in its place, the pool all there is.
TEST(AllocationStream, FollowsALayout) {
  Capture capture;
  capture.alloc(0, mib);
  capture.alloc(mib, 2 * mib);
  capture.free(0, mib);
  capture.alloc(5 * mib, mib);
  auto plan = std::make_shared<MemoryPlan>();
  plan->kind = PlanKind::layout;
  plan->pool = Bytes(3 * mib);
  plan->places = {{Bytes(0), Bytes(mib)}, {Bytes(mib), Bytes(2 * mib)}, {Bytes(0), Bytes(mib)}};
  AllocationStreamOptions options;
  options.pool.policy = "arena";
  options.pool.plan = plan;
  const AllocationStreamResult result = replay_allocation_stream(capture.trace, options);
  ASSERT_TRUE(result.plan.has_value());
  EXPECT_EQ(result.plan->placed, 3U);
  EXPECT_EQ(result.statistics.all().reserved_bytes.peak, 3 * mib);
  EXPECT_EQ(result.fragmentation.by_allocated, 0);
}

// Dynamic requests of a stream: what the options say of each, in order.
TEST(AllocationStream, DynamicRequests) {
  Capture capture;
  for (const std::int64_t offset : {0, 2, 4, 6}) capture.alloc(offset * mib, mib);
  auto plan = std::make_shared<MemoryPlan>();
  plan->pool = Bytes(4 * mib);
  plan->places = {{Bytes(0), Bytes(mib)}};
  plan->spaces = {{"moe-1", {{Bytes(3 * mib), Bytes(4 * mib)}}}};
  AllocationStreamOptions options;
  options.pool.policy = "planned";
  options.pool.plan = plan;
  options.spaces = {RequestSpace::planned, RequestSpace{0}, RequestSpace::anywhere, RequestSpace::cached};
  const AllocationStreamResult result = replay_allocation_stream(capture.trace, options);
  EXPECT_EQ(result.plan->placed, 1U);
  EXPECT_EQ(result.plan->reused, 2U);
  EXPECT_EQ(result.plan->dynamic_cached, 1U);
}

// A history that begins late: blocks live at the end but not allocated, or freed without an allocation, were there.
TEST(AllocationStream, RebuildsTheStateBeforeTheHistory) {
  Capture capture;
  capture.free(2 * mib, 3 * mib);
  capture.alloc(2 * mib, 2 * mib);
  capture.segment(0, 20 * mib);
  capture.block(0, 2 * mib, BlockState::allocated);
  capture.block(2 * mib, 2 * mib, BlockState::allocated);
  capture.block(4 * mib, 16 * mib, BlockState::inactive);
  const RecordedState state = recorded_state(capture.trace, 0, TorchSettings{});
  ASSERT_EQ(state.state.blocks.size(), 3U);
  EXPECT_EQ(state.state.blocks[1].size, Bytes(3 * mib));
  EXPECT_EQ(state.state.blocks[2].size, Bytes(15 * mib));
  EXPECT_EQ(state.ambiguous_blocks, 1U) << "no allocation behind the 3 MiB block while it lived";
  const AllocationStreamResult result = capture.replay();
  EXPECT_EQ(result.addresses.matched, 1U);
  EXPECT_EQ(result.final_blocks.matched, 2U);
  EXPECT_EQ(result.initial_segments, 1U);
  EXPECT_EQ(result.recorded.peak_requested, Bytes(5 * mib));
}

// Unsplit slack before the history: an allocation 1000 KiB behind a live block's end tells that the block owns them.
TEST(AllocationStream, ReadsSlackOffTheNextAllocation) {
  constexpr std::int64_t slack = 1000 * 1024;
  Capture capture;
  capture.alloc(4 * mib + slack, 5 * mib);
  capture.free(0, 4 * mib);
  capture.free(4 * mib + slack, 5 * mib);
  capture.segment(0, 20 * mib);
  capture.block(0, 20 * mib, BlockState::inactive);
  const RecordedState state = recorded_state(capture.trace, 0, TorchSettings{});
  EXPECT_EQ(state.ambiguous_blocks, 0U);
  EXPECT_EQ(state.state.blocks[0].size, Bytes(4 * mib + slack));
  EXPECT_EQ(state.state.blocks[1].size, Bytes(16 * mib - slack));
  EXPECT_EQ(capture.replay().addresses.matched, 1U);
}

// A gap of at most 1 MiB in the large pool can't be a block (rule 12): it is the slack of the block before it.
TEST(AllocationStream, SmallGapsAreSlack) {
  Capture capture;
  capture.free(0, 19 * mib);
  capture.segment(0, 20 * mib);
  capture.block(0, 20 * mib, BlockState::inactive);
  const RecordedState state = recorded_state(capture.trace, 0, TorchSettings{});
  ASSERT_EQ(state.state.blocks.size(), 1U);
  EXPECT_EQ(state.state.blocks[0].size, Bytes(20 * mib));
  EXPECT_EQ(state.ambiguous_blocks, 0U);
}

// free_completed later than free_requested: another stream used the block, so it is not reused in between.
TEST(AllocationStream, LateCompletionKeepsTheBlock) {
  Capture capture;
  capture.event(MemoryAction::segment_allocate, 0, 20 * mib);
  capture.alloc(0, 2 * mib);
  capture.event(MemoryAction::free_requested, 0, 2 * mib);
  capture.alloc(2 * mib, 2 * mib);
  capture.event(MemoryAction::free_completed, 0, 2 * mib);
  capture.alloc(0, 2 * mib);
  const AllocationStreamResult result = capture.replay();
  EXPECT_EQ(result.addresses.matched, 3U);
  EXPECT_EQ(result.statistics.all().active_bytes.peak, 4 * mib);
  EXPECT_EQ(result.statistics.all().allocated_bytes.peak, 4 * mib);
}

// segment_free is the program's empty_cache(): the pool gives back the same segment.
TEST(AllocationStream, FollowsRecordedSegmentFrees) {
  Capture capture;
  capture.event(MemoryAction::segment_allocate, 0, 30 * mib);
  capture.alloc(0, 30 * mib);
  capture.free(0, 30 * mib);
  capture.event(MemoryAction::segment_free, 0, 30 * mib);
  capture.event(MemoryAction::segment_allocate, 64 * mib, 30 * mib);
  capture.alloc(64 * mib, 30 * mib);
  const AllocationStreamResult result = capture.replay();
  EXPECT_EQ(result.addresses.matched, 2U);
  EXPECT_EQ(result.segments.matched, 2U);
  EXPECT_EQ(result.statistics.all().reserved_bytes.peak, 30 * mib);
  EXPECT_EQ(result.recorded.peak_reserved, Bytes(30 * mib));
  EXPECT_EQ(result.recorded.final_reserved, Bytes(30 * mib));
}

// Under a limit of its own the pool frees what it must and when it must: what the record gave back for a request is not
// given back again, and the request that failed fails here too.
TEST(AllocationStream, FreesByItsLimit) {
  Capture capture;
  capture.event(MemoryAction::segment_allocate, 0, 40 * mib);
  capture.alloc(0, 40 * mib);
  capture.free(0, 40 * mib);
  capture.event(MemoryAction::segment_free, 0, 40 * mib);  // makes room
  capture.event(MemoryAction::segment_allocate, 64 * mib, 50 * mib);
  capture.alloc(64 * mib, 50 * mib);
  capture.event(MemoryAction::out_of_memory, 0, 30 * mib);
  capture.free(64 * mib, 50 * mib);
  capture.event(MemoryAction::segment_free, 64 * mib, 50 * mib);  // empty_cache(): nothing was asked for
  const auto replay = [&](std::int64_t limit) {
    AllocationStreamOptions options;
    options.pool.policy = "torch";
    options.pool.device_memory = Bytes(limit);
    options.frees_by_limit = true;
    return replay_allocation_stream(capture.trace, options);
  };
  const AllocationStreamResult tight = replay(60 * mib), wide = replay(200 * mib);
  EXPECT_EQ(tight.statistics.alloc_retries, 2);  // for the second segment, and for what failed
  EXPECT_EQ(tight.statistics.ooms, 1);
  EXPECT_EQ(tight.statistics.device_frees, 2);
  EXPECT_EQ(wide.statistics.alloc_retries, 0);
  EXPECT_EQ(wide.statistics.ooms, 0);
  EXPECT_EQ(wide.statistics.device_frees, 1);
  EXPECT_EQ(wide.statistics.device_mallocs, 2);  // the request finds room in the first, which is cached
  EXPECT_EQ(wide.out_of_memory, 0U);
  EXPECT_EQ(tight.out_of_memory, 1U) << "the request that failed in the record fails here too";
  EXPECT_EQ(tight.recorded.out_of_memory, 1U);
  ASSERT_TRUE(tight.first_out_of_memory);
  EXPECT_EQ(tight.first_out_of_memory->limit, Bytes(60 * mib));
}

// Kineto: block sizes, no segments, running totals. What was resident before is held throughout, so the peak is
// the recorded one.
TEST(AllocationStream, HoldsWhatWasResidentBefore) {
  Capture capture;
  capture.trace.memory_size_is_requested = false;
  capture.alloc(0, 4 * mib);
  capture.trace.memory_events.back().total_allocated = Bytes(104 * mib);
  capture.trace.memory_events.back().total_reserved = Bytes(140 * mib);
  capture.event(MemoryAction::free_requested, 8 * mib, 2 * mib);
  capture.trace.memory_events.back().total_allocated = Bytes(102 * mib);
  capture.event(MemoryAction::free_requested, 0, 4 * mib);
  capture.trace.memory_events.back().total_allocated = Bytes(98 * mib);
  const AllocationStreamResult result = capture.replay();
  EXPECT_EQ(result.unexplained, Bytes(98 * mib)) << "104 - 4 before the first event, 2 of them freed later";
  EXPECT_EQ(result.statistics.all().allocated_bytes.peak, 104 * mib);
  EXPECT_EQ(result.statistics.all().allocated_bytes.current, 98 * mib);
  EXPECT_EQ(result.recorded.peak_allocated, Bytes(104 * mib));
  EXPECT_EQ(result.recorded.peak_reserved, Bytes(140 * mib));
  EXPECT_EQ(result.frees, 2U);
}

// Rows that make no sense are counted, not fatal.
TEST(AllocationStream, CountsWhatItCannotUse) {
  Capture capture;
  capture.alloc(0, 2 * mib);
  capture.alloc(0, 3 * mib);
  capture.alloc(8 * mib, std::int64_t{1} << 60);
  capture.alloc(8 * mib, -5);
  const AllocationStreamResult result = capture.replay();
  EXPECT_EQ(result.repeated_addresses, 1U);
  EXPECT_EQ(result.unusable_events, 2U);
  EXPECT_EQ(result.allocations, 2U);
  EXPECT_THROW((void)replay_allocation_stream(Trace{}, {}), InputError);
}

// Out of memory is counted and explained; the stream goes on.
TEST(AllocationStream, RunsOutOfMemoryAndGoesOn) {
  Capture capture;
  capture.alloc(0, 30 * mib);
  capture.alloc(64 * mib, 30 * mib);
  capture.free(64 * mib, 30 * mib);
  capture.free(0, 30 * mib);
  AllocationStreamOptions options;
  options.pool.device_memory = Bytes(50 * mib);
  const AllocationStreamResult result = replay_allocation_stream(capture.trace, options);
  EXPECT_EQ(result.out_of_memory, 1U);
  ASSERT_TRUE(result.first_out_of_memory.has_value());
  EXPECT_EQ(result.first_out_of_memory->tag, 1U);
  EXPECT_EQ(result.ignored_frees, 0U);
  EXPECT_EQ(result.statistics.all().allocated_bytes.current, 0);
}

// Asked to, it stops there: what follows is neither counted nor placed.
TEST(AllocationStream, StopsWhenOutOfMemory) {
  Capture capture;
  capture.alloc(0, 30 * mib);
  capture.alloc(64 * mib, 30 * mib);
  capture.alloc(128 * mib, mib);
  AllocationStreamOptions options;
  options.pool.device_memory = Bytes(50 * mib);
  options.repeat = true;
  EXPECT_EQ(replay_allocation_stream(capture.trace, options).allocations, 3U);
  options.stop_when_out_of_memory = options.keep_totals = true;
  const AllocationStreamResult result = replay_allocation_stream(capture.trace, options);
  EXPECT_EQ(result.allocations, 2U);
  EXPECT_EQ(result.first_failed_event, 1U);
  EXPECT_EQ(result.held.size(), 2U);
  EXPECT_EQ(result.repeated_peak_reserved, Bytes(0));
}

// A second run for steps that reserve no more than they may. What the first leaves, the second gives back before.
TEST(AllocationStream, RepeatsWhatReservesNoMore) {
  Capture capture;
  capture.alloc(0, 30 * mib);
  capture.alloc(64 * mib, 40 * mib);
  capture.free(0, 30 * mib);
  AllocationStreamOptions options;
  options.repeat = true;
  options.repeat_up_to = Bytes(70 * mib);
  EXPECT_EQ(replay_allocation_stream(capture.trace, options).repeated_peak_reserved, Bytes(70 * mib));
  options.repeat_up_to = Bytes(70 * mib - 1);
  EXPECT_EQ(replay_allocation_stream(capture.trace, options).repeated_peak_reserved, Bytes(0));
}

// A history that frees what it never allocated begins with that block, wherever the free is, and however many events
// of allocations came before it; events of other devices don't count.
TEST(AllocationStream, AFreeOfAnUnknownBlockShowsItWasThere) {
  Capture capture;
  capture.alloc(0, 30 * mib);
  capture.free(0, 30 * mib);
  EXPECT_EQ(capture.replay().statistics.all().allocated_bytes.peak, 30 * mib);
  capture.event(MemoryAction::free_requested, 64 * mib, 12 * mib);
  EXPECT_EQ(capture.replay().statistics.all().allocated_bytes.peak, 42 * mib);
  EXPECT_EQ(capture.replay().ignored_frees, 0U);
  capture.event(MemoryAction::free_requested, 256 * mib, 7 * mib);
  capture.trace.memory_events.back().device = 1;
  EXPECT_EQ(capture.replay().statistics.all().allocated_bytes.peak, 42 * mib);
  const auto index = index_memory_events(capture.trace);
  ASSERT_EQ(index.size(), 2U);
  EXPECT_EQ(index[0].second, (EventIndex{0, 1, 2, 3}));
  EXPECT_EQ(index[1].first, 1);
  EXPECT_EQ(index[1].second, (EventIndex{4}));
  EXPECT_EQ(memory_devices(capture.trace), (std::vector<std::int16_t>{0, 1}));
}

// Record a random program on the torch policy itself, cut the history anywhere, replay: every address again.
TEST(AllocationStream, ReproducesItsOwnRecordings) {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    std::mt19937 random(seed);
    TorchPool pool;
    Capture capture;
    struct Live {
      Allocation made;
      std::int64_t bytes;
    };
    std::vector<Live> live;
    const auto cut = 500 + random() % 500;
    for (std::uint32_t step = 0; step < 2000; ++step) {
      if (live.size() < 20 || (random() % 2 == 0 && live.size() < 120)) {
        const auto bytes = static_cast<std::int64_t>(1 + random() % (std::uint32_t{1} << (8 + random() % 15)));
        const Allocation made = pool.allocate({Bytes(bytes), 0});
        live.push_back({made, bytes});
        const auto offset = static_cast<std::int64_t>(made.address.count() - base);
        if (step >= cut && made.cost.device_mallocs > 0)
          capture.event(MemoryAction::segment_allocate, offset, made.cost.malloc_bytes.count());
        if (step >= cut) capture.alloc(offset, bytes);
      } else {
        const std::size_t i = random() % live.size();
        pool.free(live[i].made.block, Picos{});
        if (step >= cut) capture.free(static_cast<std::int64_t>(live[i].made.address.count() - base), live[i].bytes);
        live[i] = live.back();
        live.pop_back();
      }
    }
    for (const SegmentState& segment : pool.state().segments) {
      capture.segment(static_cast<std::int64_t>(segment.address.count() - base), segment.total.count());
      const PoolState state = pool.state();
      for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
        const MemoryBlock& block = state.blocks[i];
        capture.trace.memory_blocks.push_back(block);
        ++capture.trace.memory_segments.back().block_count;
      }
    }
    const AllocationStreamResult result = capture.replay();
    EXPECT_EQ(result.addresses.matched, result.addresses.total) << "seed " << seed;
    EXPECT_EQ(result.segments.matched, result.segments.total) << "seed " << seed;
    EXPECT_EQ(result.final_blocks.matched, live.size()) << "seed " << seed;
    EXPECT_EQ(result.recorded.final_reserved.count(), pool.statistics().all().reserved_bytes.current);
    EXPECT_EQ(result.statistics.all().reserved_bytes.current, pool.statistics().all().reserved_bytes.current);
  }
}

}  // namespace
}  // namespace spillway::sim
