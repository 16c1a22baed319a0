// Real memory snapshots, recorded on PyTorch by others: the torch policy must place every block where PyTorch did.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/devices/memory/allocation_stream.h"
#include "sim/devices/memory/recorded_state.h"
#include "tests/traces/test_files.h"
#include "traces/formats/torch_snapshot_reader.h"

namespace spillway::sim {
namespace {

struct Snapshot {
  const char* file;  // under shared/data/memory
  std::uint64_t allocations;
  std::uint64_t final_blocks;
  std::int64_t final_reserved;  // sum of the recorded segments
};

constexpr Snapshot snapshots[] = {
    {"bcrafton__assignment2-systems/memory_snapshot.pickle", 2162, 447, 4238344192},
    {"notHanmin__assignment2-systems/memory_snapshot.pickle", 6488, 1313, 23842521088},
    {"notHanmin__assignment2-systems/memory_snapshot_forward.pickle", 4138, 3478, 47234154496},
    {"notHanmin__assignment2-systems/memory_snapshot_forward_without_mixed.pickle", 3368, 2997, 45730496512},
    {"silmont2000__assignment2-systems/mem_snapshot.pickle", 36, 10, 3781165056},
    {"silmont2000__assignment2-systems/memory_forward_bf16_128.pickle", 937, 137, 861929472},
    {"silmont2000__assignment2-systems/memory_forward_fp32_128.pickle", 681, 137, 610271232},
    {"wedsonlin__cs336/medium_128_training_memory_snapshot.pickle.gz", 6526, 885, 7235174400},
    {"wedsonlin__cs336/medium_256_training_memory_snapshot.pickle.gz", 6624, 885, 9265217536},
    {"wedsonlin__cs336/medium_512_training_memory_snapshot.pickle.gz", 7591, 885, 12660506624},
    {"wedsonlin__cs336/medium_1024_training_memory_snapshot.pickle.gz", 7591, 885, 25178406912},
};

Trace read(const std::string& path) {
  ByteSource source = ByteSource::open(path, test::no_limit);
  return read_torch_snapshot(source, {});
}

class RecordedSnapshots : public testing::TestWithParam<Snapshot> {};

// Addresses, segment allocations, final live blocks: all of them. Reserved: equal at the peak and at the end.
// The policy's own addresses only break ties, so without the recorded ones reserved memory is the same.
TEST_P(RecordedSnapshots, AreReproducedExactly) {
  const auto path = test::shared_file(std::string("memory/") + GetParam().file);
  if (!path) GTEST_SKIP() << "third-party snapshots are not beside this checkout";
  const Trace trace = read(*path);
  AllocationStreamOptions options;
  const AllocationStreamResult result = replay_allocation_stream(trace, options);
  EXPECT_EQ(result.addresses.total, GetParam().allocations);
  EXPECT_EQ(result.addresses.matched, result.addresses.total);
  EXPECT_EQ(result.segments.matched, result.segments.total);
  EXPECT_EQ(result.segments_allocated, result.segments.total);
  EXPECT_EQ(result.final_blocks.total, GetParam().final_blocks);
  EXPECT_EQ(result.final_blocks.matched, result.final_blocks.total);
  EXPECT_EQ(result.statistics.all().reserved_bytes.peak, result.recorded.peak_reserved.count());
  EXPECT_EQ(result.statistics.all().reserved_bytes.current, GetParam().final_reserved);
  EXPECT_EQ(result.statistics.all().requested_bytes.peak, result.recorded.peak_requested.count());
  EXPECT_EQ(result.ignored_frees + result.repeated_addresses + result.unusable_events, 0U);

  options.use_recorded_segments = false;
  const AllocationStreamResult own = replay_allocation_stream(trace, options);
  EXPECT_EQ(own.statistics.all().reserved_bytes, result.statistics.all().reserved_bytes);
  EXPECT_EQ(own.segments_allocated, result.segments_allocated);

  options.pool.policy = "ideal";
  const AllocationStreamResult ideal = replay_allocation_stream(trace, options);
  EXPECT_EQ(ideal.statistics.all().allocated_bytes.peak, result.recorded.peak_requested.count());
  EXPECT_LE(ideal.statistics.all().reserved_bytes.peak, result.statistics.all().allocated_bytes.peak);
}

// Conservation: blocks live before the history + allocations - frees = blocks live in the final picture.
TEST_P(RecordedSnapshots, BlocksBeforeTheHistoryBalance) {
  const auto path = test::shared_file(std::string("memory/") + GetParam().file);
  if (!path) GTEST_SKIP() << "third-party snapshots are not beside this checkout";
  const Trace trace = read(*path);
  const RecordedState before = recorded_state(trace, 0, TorchSettings{});
  const auto is_live = [](const MemoryBlock& block) { return block.state != BlockState::inactive; };
  const auto acts = [&](MemoryAction action) {
    return std::count_if(trace.memory_events.begin(), trace.memory_events.end(),
                         [&](const MemoryEvent& event) { return event.action == action; });
  };
  const auto live_before = std::count_if(before.state.blocks.begin(), before.state.blocks.end(), is_live) +
                           static_cast<std::ptrdiff_t>(before.loose_blocks.size());
  const auto live_after = std::count_if(trace.memory_blocks.begin(), trace.memory_blocks.end(), is_live);
  EXPECT_EQ(live_before + acts(MemoryAction::allocate) - acts(MemoryAction::free_completed), live_after);
}

INSTANTIATE_TEST_SUITE_P(Files, RecordedSnapshots, testing::ValuesIn(snapshots),
                         [](const auto& name_of) { return "snapshot_" + std::to_string(name_of.index); });

// The mosaic project's synthetic snapshot matches no allocator; it must replay all the same.
TEST(SyntheticSnapshot, Replays) {
  const auto path = test::shared_file("memory/facebookresearch__mosaic/test__snapshots__output.pickle");
  if (!path) GTEST_SKIP() << "third-party snapshots are not beside this checkout";
  AllocationStreamOptions options;
  const AllocationStreamResult result = replay_allocation_stream(read(*path), options);
  EXPECT_EQ(result.allocations, 520U);
  EXPECT_EQ(result.out_of_memory, 0U);
  EXPECT_EQ(result.statistics.all().allocations.current,
            static_cast<std::int64_t>(result.allocations) - static_cast<std::int64_t>(result.frees));
}

}  // namespace
}  // namespace spillway::sim
