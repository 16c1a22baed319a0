// Replays a captured stream of allocations through a memory policy alone: no time, no kernels, only who asks for
// how much and when it comes back. Says what the policy would have reserved, and how well that matches the record.
//
// The stream comes from Trace::memory_events (PyTorch memory snapshots, Kineto [memory] instants). The state before the
// first event is rebuilt from the capture (recorded_state.h). A segment that the policy takes with the same size for
// the same request gets its recorded address. Every later block address is then the policy's own and can be compared
// with the record.
//
// A generated step is one of many. If the trace says how it came about (Trace::start_up), the policy first runs the
// allocations of building the model. A first iteration follows: the step's events, and late ones at the first use of
// their tensors. Then come the step with other draws, an evaluation, and the step, with its initial tensors in place.
// Peaks include all of it. Planned places need no cache. A step in which initial tensors go (streamed state) is run as
// it stands.
//
// Kineto records block sizes, rounding and slack included, and no segments. So the torch policy may add its own slack
// (up to 1 MiB a block), addresses can't match, and the cache's content before the capture is unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/devices/memory/memory_pool.h"
#include "traces/event_index.h"
#include "traces/step_fold.h"
#include "traces/trace.h"

namespace spillway::sim {

struct AllocationStreamOptions {
  MemoryPoolOptions pool;
  std::int16_t device = 0;
  bool keep_rows = false;             // the life of every block, tagged with its index in Trace::memory_events
  bool keep_totals = false;           // what is held after every event
  bool keep_segments = false;         // which segments are taken and given back, and when
  bool use_recorded_segments = true;  // give segments their recorded addresses
  // The pool's own limit decides when cached segments go. Segments that the record gave back for a request aren't given
  // back again, and requests that failed are retried. false: the record's segments go, whatever its limit was.
  bool frees_by_limit = false;
  // The space in a plan for each allocation of the stream, by ordinal; behind the end: in its planned place.
  std::vector<RequestSpace> spaces;
  // Run the stream a second time from where it ended, for what a step costs that is one of many: see repeated_costs.
  // Not after running out of memory, nor when the first run reserved more than this.
  bool repeat = false;
  Bytes repeat_up_to = Bytes::max();
  static constexpr std::int64_t before_all = -1;
  std::optional<std::int64_t>
      state_after{};                     // this event (in Trace::memory_events), or before all of them: wanted_state
  bool stop_when_out_of_memory = false;  // at the first allocation that fails; statistics are those until then
  // The trace shows fewer micro-batches than its step has; null: all of them. Only for the torch and ideal policies.
  // Must outlive the replay. Statistics, costs and failures cover the whole step; rows, totals and counts cover the
  // events of the trace. Refused if the peak lies in a micro-batch that the trace does not have, or one of these asks
  // the driver for anything in a second run.
  const StepFold* fold = nullptr;
};

// Tags rows of an evaluation's blocks, which no event of the trace makes.
inline constexpr std::uint32_t evaluation_tag = no_tag - 1;

// Driver calls of an allocation.
struct EventCost {
  std::uint32_t event = 0;  // index in Trace::memory_events
  DriverCost cost;
};

// Memory held after an event.
struct HeldMemory {
  std::uint32_t event = 0;  // index in Trace::memory_events
  Bytes allocated{}, reserved{};
};

// A segment that the policy took or gave back for an event, before it; of expandable ones, the part mapped or unmapped.
struct SegmentChange {
  std::uint32_t event = 0;  // index in Trace::memory_events
  MemoryAction action = MemoryAction::segment_allocate;
  Addr address{};
  Bytes bytes{};
};

struct MatchCount {
  std::uint64_t matched = 0, total = 0;
};

// As recorded; -1 where the capture does not say.
struct RecordedMemory {
  Bytes peak_reserved{-1};
  Bytes final_reserved{-1};
  Bytes peak_allocated{-1};  // block bytes (Kineto totals)
  Bytes peak_requested{-1};  // bytes before rounding (snapshots)
  std::uint64_t out_of_memory = 0;
};

struct AllocationStreamResult {
  const char* refused = nullptr;  // of a fold: why it can't be told of the whole step; then nothing else is known
  std::string policy;
  std::int16_t device = 0;
  MemoryStatistics statistics;  // peaks include the initial state
  Fragmentation fragmentation;
  std::uint64_t allocations = 0;  // replayed
  std::uint64_t frees = 0;
  std::uint64_t initial_segments = 0;
  std::uint64_t segments_allocated = 0;  // by the policy during the stream
  std::uint64_t out_of_memory = 0;
  std::optional<OutOfMemory> first_out_of_memory;
  std::uint32_t first_failed_event = 0;  // of first_out_of_memory, index in Trace::memory_events
  Bytes least_refused = Bytes::max();    // torch: see TorchPool; Bytes::max() for other policies, too
  bool stopped_before = false;           // the step: statistics, and rows where they are kept, are of that moment
  DriverCost cost;                       // of the whole stream
  std::vector<EventCost> costs;          // by event, those with any
  // Costs of a second run that begins with the blocks the first began with. Blocks the first left stand for lost ones
  // of the same size and stream, others are given back, and blocks still lost are allocated before.
  std::vector<EventCost> repeated_costs;
  Bytes repeated_peak_reserved{};   // of both runs; 0 without a second
  std::optional<PlanOutcome> plan;  // planned and arena
  std::uint64_t stitches = 0;       // gmlake: ranges stitched
  RecordedMemory recorded;
  MatchCount addresses;     // allocations placed where the record placed them
  MatchCount segments;      // recorded segment allocations (or mappings) the policy made too, for the same request
  MatchCount final_blocks;  // live blocks at the end: same address and size as in the snapshot
  // What the stream leaves open.
  std::uint64_t ignored_frees = 0;       // of blocks never seen
  std::uint64_t repeated_addresses = 0;  // allocated again without a free; the older block is freed
  std::uint64_t unusable_events = 0;     // sizes out of range
  std::uint64_t unusable_segments = 0;   // of the snapshot: empty, overlapping, of implausible size
  std::uint64_t ambiguous_blocks = 0;    // see recorded_state.h
  Bytes unexplained{};                   // resident from before the capture, place unknown; held throughout
  PoolState final_state, wanted_state;
  std::vector<AllocationRow> rows;
  HeldMemory initial;       // before the first event (`event` means nothing)
  bool started_up = false;  // initial tensors lie in what `initial` holds; those with rows have blocks of their own
  std::vector<HeldMemory> held;                // by event of the device, with keep_totals
  std::vector<SegmentChange> segment_changes;  // in the order of events, with keep_segments
};

// Throws InputError if the device has no memory events, or for bad pool options. Running out of memory is a
// result, not an error: the failed allocation is skipped. O(events log live blocks).
AllocationStreamResult replay_allocation_stream(const Trace& trace, const AllocationStreamOptions& options);
// Precondition: `events` are those of options.device. The index is not copied.
AllocationStreamResult replay_allocation_stream(const Trace& trace, const EventIndex& events,
                                                const AllocationStreamOptions& options);
// The same until so much is allocated: to see who holds the peak of a run.
AllocationStreamResult replay_until_allocated(const Trace& trace, const EventIndex& events,
                                              const AllocationStreamOptions& options, Bytes allocated);

}  // namespace spillway::sim
