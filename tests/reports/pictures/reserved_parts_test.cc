#include "sim/pictures/reserved_parts.h"

#include <gtest/gtest.h>

#include "reports/pictures/memory_svg.h"
#include "sim/pictures/memory_picture.h"

namespace spillway::reports {
namespace {

// 700 bytes in a block of 1,024 of a small segment of 2 MiB; 3 MiB in a large one of 20 MiB, 5 MiB of it pending; a
// large segment of 30 MiB that is free; a block of 12 MiB and 100 bytes that took 12.5 MiB whole.
TEST(ReservedParts, AddUpToWhatIsReserved) {
  constexpr std::int64_t mebi = 1 << 20;
  PoolState state;
  const auto segment = [&](std::int64_t total, bool large, std::vector<MemoryBlock> blocks) {
    SegmentState added;
    added.total = Bytes(total);
    added.large = large;
    added.first_block = static_cast<std::uint32_t>(state.blocks.size());
    added.block_count = static_cast<std::uint32_t>(blocks.size());
    state.segments.push_back(added);
    state.blocks.insert(state.blocks.end(), blocks.begin(), blocks.end());
  };
  const auto block = [](std::int64_t size, std::int64_t requested, BlockState kind) {
    return MemoryBlock{Addr(0), Bytes(size), Bytes(requested), kind};
  };
  segment(2 * mebi, false, {block(1024, 700, BlockState::allocated), block(2 * mebi - 1024, 0, BlockState::inactive)});
  segment(20 * mebi, true,
          {block(3 * mebi, 3 * mebi, BlockState::allocated), block(5 * mebi, 5 * mebi, BlockState::pending_free),
           block(12 * mebi, 0, BlockState::inactive)});
  segment(30 * mebi, true, {block(30 * mebi, 0, BlockState::inactive)});
  segment(12 * mebi + mebi / 2, true, {block(12 * mebi + mebi / 2, 12 * mebi + 100, BlockState::allocated)});
  const ReservedParts parts = reserved_parts(state);
  EXPECT_EQ(parts.requested, Bytes(700 + 3 * mebi + 12 * mebi + 100));
  EXPECT_EQ(parts.rounding, Bytes(324 + 412));
  EXPECT_EQ(parts.slack, Bytes(mebi / 2 - 512));
  EXPECT_EQ(parts.pending, Bytes(5 * mebi));
  EXPECT_EQ(parts.partly_used_small, Bytes(2 * mebi - 1024));
  EXPECT_EQ(parts.partly_used_large, Bytes(12 * mebi));
  EXPECT_EQ(parts.cached_large, Bytes(30 * mebi));
  EXPECT_EQ(parts.cached_small, Bytes(0));
  EXPECT_EQ(parts.reserved(), Bytes(64 * mebi + mebi / 2));
}

// 30 MiB, freed; then 10 MiB in its place and 25 MiB elsewhere.
Trace three_requests() {
  Trace trace;
  trace.memory_size_is_requested = true;
  std::int64_t time = 0;
  const auto event = [&](MemoryAction action, std::uint64_t address, std::int64_t mebibytes) {
    MemoryEvent row;
    row.time = microseconds(time++);
    row.address = Addr(address);
    row.bytes = Bytes(mebibytes << 20);
    row.action = action;
    trace.memory_events.push_back(row);
  };
  event(MemoryAction::allocate, 1, 30);
  event(MemoryAction::free_requested, 1, 30);
  event(MemoryAction::allocate, 2, 10);
  event(MemoryAction::allocate, 3, 25);
  event(MemoryAction::free_requested, 2, 10);
  trace.set(Capability::memory);
  return trace;
}

// Most is reserved when the third request takes a segment of 26 MiB (steps of 2 MiB), whole, as 1 MiB is too little to
// split off; beside it 20 MiB of the first segment are free.
TEST(ReservedParts, AtThePeakOfAStream) {
  const ReservedParts parts = parts_at_reserved_peak(three_requests(), {});
  EXPECT_EQ(parts.reserved(), Bytes(56 << 20));
  EXPECT_EQ(parts.requested, Bytes(35 << 20));
  EXPECT_EQ(parts.slack, Bytes(1 << 20));
  EXPECT_EQ(parts.partly_used_large, Bytes(20 << 20));
  EXPECT_EQ(parts.fragmented(), parts.reserved() - parts.allocated());
}

TEST(MemoryPicture, BlocksLieWhereTheAllocatorPutThem) {
  const Trace trace = three_requests();
  AllocationStreamOptions options;
  options.keep_rows = options.keep_totals = true;
  MemoryPicture picture = memory_picture(trace, replay_allocation_stream(trace, options));
  EXPECT_TRUE(picture.timed);
  ASSERT_EQ(picture.blocks.size(), 3U);
  // The second lies at the beginning of the first's segment, after it.
  EXPECT_EQ(picture.blocks[0].address, picture.blocks[1].address);
  EXPECT_EQ(picture.blocks[0].begin, 0);
  EXPECT_EQ(picture.blocks[0].end, microseconds(1).count());
  EXPECT_EQ(picture.blocks[1].begin, microseconds(2).count());
  EXPECT_EQ(picture.blocks[2].end, picture.end);
  EXPECT_EQ(picture.kinds, std::vector<std::string>{"allocated"});
  picture.title = "three <requests>";
  for (const std::string& svg : {memory_curve_svg(picture), address_map_svg(picture)}) {
    EXPECT_NE(svg.find("three &lt;requests&gt;"), std::string::npos);
    EXPECT_NE(svg.find("</svg>"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
  }
  EXPECT_NE(memory_curve_svg(picture).find(">reserved 56"), std::string::npos);
  EXPECT_EQ(address_map_svg(picture), address_map_svg(picture));
}

TEST(MemoryPicture, NothingHeldIsAPictureToo) {
  MemoryPicture picture;
  picture.end = 1;
  picture.curve.push_back({0, Bytes(0), Bytes(0)});
  EXPECT_NE(memory_curve_svg(picture).find("</svg>"), std::string::npos);
  EXPECT_NE(address_map_svg(picture).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace spillway::reports
