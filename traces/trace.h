// Trace: one or several training steps of one or more ranks, as columns.
//
// It holds what is computed, in which order, and what memory it touches; captured or generated. Readers fill it
// (traces/*_reader.h), traces/derive.h adds what can be inferred, sim/replay runs it.
//
//   lanes      where ops run in order: host threads, GPU streams, communication channels
//   ops        host calls (launch, sync, ...) and device work (kernels, copies, collectives)
//   spans      CPU operators and annotations: names, nesting and phases; never executed
//   tensors, uses, edges, memory events, collectives, steps
//
//   host lane   |launch k1|launch k2|......|stream sync        |     ops with is_host_call(kind)
//                    \         \                       ^
//   stream 7          [k1     ][k2   ]-----------------+             ops with is_device_work(kind)
//
// An op's position in the columns is its OpId. Within a lane, ops run in column order. Host lanes are
// sorted by recorded start; a stream's ops are in the order of their launches (recorded start for work
// without a launch record). Intervals are half-open.
//
// A trace states its capabilities; consumers ask `require()` and never invent what is missing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "base/units.h"

namespace spillway::traces {

enum class OpId : std::uint32_t { none = 0xffffffffU };
enum class SpanId : std::uint32_t { none = 0xffffffffU };
enum class TensorId : std::uint32_t { none = 0xffffffffU };
enum class LaneId : std::uint16_t { none = 0xffffU };

template <class Id>
constexpr std::size_t index_of(Id id) {
  return static_cast<std::size_t>(id);
}

enum class OpKind : std::uint8_t {
  // Host calls, on a host lane.
  launch,         // starts the device work that names it in `launched_by`
  device_sync,    // returns when all work launched before it on the device is done
  stream_sync,    // ... on stream `sync.lane`
  event_sync,     // returns when the record `sync.event` has passed
  event_record,   // marks the present end of stream `sync.lane`
  stream_wait,    // later work of stream `sync.lane` waits for the record `sync.event`
  device_malloc,  // cudaMalloc and kin
  device_free,    // cudaFree and kin; synchronises the device
  host_work,      // any other host call or CPU operator that takes host time
  // Device work, on a stream or communication lane.
  kernel,
  copy_host_to_device,
  copy_device_to_host,
  copy_device_to_device,
  copy_peer,
  memset,
  collective,  // details in Trace::collectives
  // Storage traffic, on a storage lane: between drives and a GPU, or host memory where the lane has no device.
  storage_read,
  storage_write,
};
constexpr int op_kind_count = static_cast<int>(OpKind::storage_write) + 1;
constexpr bool is_host_call(OpKind kind) { return kind <= OpKind::host_work; }
constexpr bool is_device_work(OpKind kind) { return kind >= OpKind::kernel && kind <= OpKind::collective; }
constexpr bool is_storage(OpKind kind) { return kind >= OpKind::storage_read; }
constexpr bool is_copy(OpKind kind) { return kind >= OpKind::copy_host_to_device && kind <= OpKind::copy_peer; }
std::string_view to_string(OpKind kind);

enum class Phase : std::uint8_t { unknown, forward, backward, optimizer, communication, recompute };
constexpr int phase_count = static_cast<int>(Phase::recompute) + 1;
std::string_view to_string(Phase phase);

enum class Capability : std::uint8_t { times, memory, uses, edges, phases };
constexpr int capability_count = static_cast<int>(Capability::phases) + 1;
std::string_view to_string(Capability capability);

enum class LaneKind : std::uint8_t { host_thread, stream, communication, storage };
std::string_view to_string(LaneKind kind);

struct Lane {
  LaneKind kind = LaneKind::stream;
  std::uint16_t rank = 0;
  std::int16_t device = -1;  // GPU ordinal within the rank; -1 for host lanes
  std::int64_t number = 0;   // thread id or stream number as recorded
  StringId name{};           // for people: "stream 7", "thread 4711"
};

constexpr std::uint16_t no_index16 = 0xffffU;
constexpr Picos unknown_time = Picos(std::numeric_limits<std::int64_t>::min());

// Flags of an op; combined by |.
enum class OpFlag : std::uint8_t {
  pageable = 1,        // a copy from or to pageable host memory: the host call blocks until it is done
  missing_launch = 2,  // device work without a launch record in the capture
  phase_inferred = 4,  // phase deduced from names or threads, not stamped
  blocking = 8,        // a launch that returns only when its work is done (cudaMemcpy without Async)
  queue_blocked = 16,  // a launch that took longer, as recorded, for lack of room in the launch queue
  by_bytes = 32,       // a transfer that takes what the links it crosses need for its bytes; all ops of its lane are so
};

// True when a host call with these flags returns only when the copy it launched is done.
constexpr bool waits_for_copy(std::uint8_t call_flags, OpKind copy, std::uint8_t copy_flags) {
  const auto has = [](std::uint8_t flags, OpFlag flag) { return (flags & static_cast<std::uint8_t>(flag)) != 0; };
  return (has(call_flags, OpFlag::blocking) && copy != OpKind::copy_host_to_device) ||
         (has(copy_flags, OpFlag::pageable) && copy == OpKind::copy_device_to_host);
}

// Columns of equal length, one row per op. 64 bytes a row.
struct Ops {
  std::vector<StringId> name;
  std::vector<OpKind> kind;
  std::vector<Phase> phase;
  std::vector<LaneId> lane;
  std::vector<std::uint16_t> layer;        // no_index16: unknown
  std::vector<std::uint16_t> micro_batch;  // no_index16: unknown
  std::vector<std::uint16_t> step;         // index into Trace::steps; no_index16: outside every step
  std::vector<std::uint8_t> flags;         // OpFlag
  std::vector<Picos> start;                // since Trace::time_base; unknown_time if not recorded
  std::vector<Picos> duration;             // >= 0; unknown_time if not recorded
  std::vector<OpId> launched_by;           // device work: its host call
  std::vector<SpanId> span;                // innermost enclosing span, where known
  std::vector<Bytes> bytes;                // payload of copies and collectives; memory traffic of kernels; 0 unknown
  std::vector<Flops> flops;                // 0 unknown

  [[nodiscard]] std::size_t size() const { return kind.size(); }
  void reserve(std::size_t count);
};

// One row to append; what a reader leaves out is unknown.
struct OpRow {
  StringId name{};
  OpKind kind = OpKind::kernel;
  Phase phase = Phase::unknown;
  LaneId lane = LaneId::none;
  std::uint16_t layer = no_index16;
  std::uint16_t micro_batch = no_index16;
  std::uint16_t step = no_index16;
  std::uint8_t flags = 0;
  Picos start = unknown_time;
  Picos duration = unknown_time;
  OpId launched_by = OpId::none;
  SpanId span = SpanId::none;
  Bytes bytes{};
  Flops flops{};
};

enum class SpanKind : std::uint8_t { cpu_operator, annotation, python, runtime_other };

// CPU operators and annotations. Columns, one row per span.
struct Spans {
  std::vector<StringId> name;
  std::vector<SpanKind> kind;
  std::vector<LaneId> lane;
  std::vector<Picos> start;
  std::vector<Picos> duration;
  std::vector<std::int64_t> sequence;     // autograd "Sequence number"; -1 if none
  std::vector<std::int64_t> record_id;    // record-function id (joins an ExecutionTrace); -1 if none
  std::vector<std::int64_t> external_id;  // Kineto's "External id"; -1 if none. Empty when the format has none at all

  [[nodiscard]] std::size_t size() const { return kind.size(); }
};

// Reference of a host call of kind stream_sync, event_*, stream_wait. Sparse: only such ops have one.
struct Sync {
  OpId op = OpId::none;
  LaneId lane = LaneId::none;  // stream synchronised, recorded on, or made to wait; none: unknown
  OpId event = OpId::none;     // for event_sync and stream_wait: the event_record waited for; none: unknown
  bool inferred = false;       // deduced from call order because the capture does not say
};

enum class TensorRole : std::uint8_t {
  unknown,
  weight,
  gradient,
  optimizer_state,
  activation,
  temporary,
  buffer,
  input
};
std::string_view to_string(TensorRole role);

// Columns, one row per tensor. Tensors with the same storage alias each other.
struct Tensors {
  std::vector<StringId> name;
  std::vector<Bytes> bytes;
  std::vector<std::uint32_t> storage;  // dense storage index
  std::vector<TensorRole> role;
  std::vector<StringId> dtype;

  [[nodiscard]] std::size_t size() const { return bytes.size(); }
};

enum class Access : std::uint8_t { read, write };

struct Use {
  OpId op = OpId::none;
  TensorId tensor = TensorId::none;
  Access access = Access::read;
};

// unexplained: `to` was seen to start this late and nothing in the capture says why; kept, so that the step reproduces.
enum class EdgeKind : std::uint8_t { data, control, cross_stream, unexplained };

// `to` starts no earlier than `lag` after `from` has ended. A lag may be negative where `from` is the host call that
// launched `to` and kind is unexplained: the call still lasted.
struct Edge {
  OpId from = OpId::none;
  OpId to = OpId::none;
  EdgeKind kind = EdgeKind::data;
  bool inferred = false;
  Picos lag{};
};

// A host call lasted this much longer than what it waited for explains: GPU work that was not recorded, mostly.
struct UnexplainedWait {
  OpId op = OpId::none;
  Picos time{};
};

// How long a stream of the recorded machine pauses between two queued ops, by who launched the second and
// whether they are copies. Statistics over the whole capture, never one op's own start.
struct StreamGap {
  LaneId stream = LaneId::none;
  LaneId launcher = LaneId::none;
  bool after_copy = false;
  bool is_copy = false;
  Picos gap{};  // mean of the unexplained ones; never negative
  std::uint32_t samples = 0;
};

// A capture's figures of the machine it ran on (traces/capture_fit.h). unknown_time / 0: too few samples.
struct CaptureFit {
  Picos launch_to_start = unknown_time;  // from the start of the host call to the work's start on an idle stream
  std::vector<StreamGap> gaps;
  std::uint32_t launch_queue_depth = 0;   // works in flight when launches were seen to block
  Picos unblocked_launch = unknown_time;  // median duration of launches that did not block
  // For copies the host call waits for, on an idle stream: median of (duration of the call - duration of the copy).
  Picos blocking_copy_overhead = unknown_time;
  Picos unexplained_delay{};  // late starts no dependency explains, summed
};

enum class MemoryAction : std::uint8_t {
  allocate,
  free_requested,    // the program gave the block back
  free_completed,    // the allocator may reuse it (differs from requested for cross-stream use)
  segment_allocate,  // the allocator took memory from the driver
  segment_free,
  segment_map,
  segment_unmap,
  out_of_memory,
  snapshot,
};
std::string_view to_string(MemoryAction action);

// Frames of recorded call stacks as a tree: a stack is known by its innermost frame, and each frame by the one that
// called it, which stands before it. Stacks that begin alike share their frames.
constexpr std::uint32_t no_stack = 0xffffffffU;
struct StackFrame {
  StringId place{};  // "train.py:31 step"
  std::uint32_t caller = no_stack;
};

// In host call order. `bytes` is positive for every action.
struct MemoryEvent {
  Picos time = unknown_time;
  Addr address{};
  Bytes bytes{};              // size_is_requested tells whether before or after allocator rounding
  Bytes total_allocated{-1};  // as recorded after the event; -1 if not recorded
  Bytes total_reserved{-1};
  OpId anchor = OpId::none;  // last op launched before the event, where known
  TensorId tensor = TensorId::none;
  MemoryAction action = MemoryAction::allocate;
  std::int16_t device = 0;  // -1: host memory
  LaneId stream = LaneId::none;
  std::uint32_t stack = no_stack;  // innermost of Trace::stack_frames, where they were recorded and kept
};

// A program's request to its allocator before its first step, beside what a step does; late, in that step or before the
// one shown (sim/devices/memory/start_up_order.h). Blocks are numbered apart from tensors: a buffer may hold many.
struct StartUpEvent {
  Bytes bytes{};
  std::uint32_t block = 0;
  bool allocates = true;  // else frees
  bool late = false;      // where `tensor` is first used: optimizer states, workspaces; or a size before, or without it
  std::int16_t device = 0;
  LaneId stream = LaneId::none;
  TensorId tensor = TensorId::none;  // one of those that lie in the block for good
};

// A block or segment that the capture shows as living at its end (memory snapshots) or before its start.
struct MemorySegment {
  Addr address{};
  Bytes total{};
  std::int16_t device = 0;
  LaneId stream = LaneId::none;
  bool large = false;
  bool expandable = false;
  std::uint32_t first_block = 0;  // range in Trace::memory_blocks
  std::uint32_t block_count = 0;
};
enum class BlockState : std::uint8_t { allocated, pending_free, inactive };
struct MemoryBlock {
  Addr address{};
  Bytes size{};
  Bytes requested{};
  BlockState state = BlockState::inactive;
  std::uint32_t stack = no_stack;
};

enum class CollectiveKind : std::uint8_t {
  unknown,
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send,
  receive,
  barrier
};
std::string_view to_string(CollectiveKind kind);

struct Collective {
  OpId op = OpId::none;
  CollectiveKind kind = CollectiveKind::unknown;
  Bytes bytes{};                 // of one rank's input
  std::uint32_t group_size = 0;  // 0 unknown
  StringId group{};
  StringId dtype{};
};

struct Step {
  StringId name{};
  std::uint16_t rank = 0;
  Picos start{};
  Picos duration{};
};

struct StepTime {
  Picos duration{};
};

struct Device {
  StringId name{};  // "NVIDIA H100 80GB HBM3"
  std::uint16_t rank = 0;
  std::int16_t ordinal = 0;
  Bytes memory{};  // 0 unknown
  std::int32_t multiprocessors = 0;
};

// Power of a device during a generated step, as models/cost/gpu_power.h finds it.
struct DevicePower {
  std::uint16_t rank = 0;
  std::int64_t clock_millionths = 0;  // share of its highest clock that the device settles at
  std::int64_t idle_milliwatts = 0, limit_milliwatts = 0;
  std::int64_t work_microjoules = 0;  // of one step's kernels, beyond what it draws idle
};

// Rows that could not be used, by kind, with the first few places. Never silently dropped.
struct Finding {
  std::string kind;    // stable key: "negative_duration", "missing_launch", ...
  std::string remedy;  // what it means, what to do
  std::uint64_t count = 0;
  std::vector<std::string> examples;  // at most `finding_examples`
  bool is_error = false;              // the row was dropped (true) or only noted (false)
};
constexpr std::size_t finding_examples = 5;

struct Provenance {
  std::string file;
  std::string format;    // "kineto", "torch-snapshot", "execution-trace", "chakra", ...
  std::string producer;  // program and version where the file says so
  std::string schema_version;
  std::int64_t rank = -1;  // as the file says, among `world_size`; -1 unknown
  std::int64_t world_size = -1;
};

struct Trace {
  StringPool strings;
  std::vector<Lane> lanes;
  Ops ops;
  Spans spans;
  std::vector<Sync> syncs;  // sorted by op
  Tensors tensors;
  std::vector<Use> uses;  // sorted by op
  std::vector<Edge> edges;
  std::vector<UnexplainedWait> unexplained_waits;  // sorted by op
  // `to`, in the next step, waits for `from` of this one; lags are none. Of generated traces.
  std::vector<Edge> carried;
  std::vector<MemoryEvent> memory_events;
  // Of generated traces. Policies that emulate an allocator need it, as its cache remembers how the step came about
  // (see sim/devices/memory/allocation_stream.h). On a device with early events these stand for all that is there when
  // the step begins; with late ones alone, for their tensors.
  std::vector<StartUpEvent> start_up;
  std::vector<MemorySegment> memory_segments;  // state at the capture's end
  std::vector<MemoryBlock> memory_blocks;
  std::vector<StackFrame> stack_frames;
  bool memory_size_is_requested = false;   // bytes before the allocator's rounding (snapshots)
  std::vector<Collective> collectives;     // sorted by op
  std::vector<Step> steps;                 // sorted by (rank, start)
  std::vector<StepTime> unprofiled_steps;  // of the same program as it ran without a profiler; of recordings
  std::vector<Device> devices;
  std::vector<DevicePower> powers;     // of a generated step's devices; empty: unknown
  std::vector<Provenance> provenance;  // several after a join
  std::vector<Finding> findings;
  CaptureFit capture_fit;
  std::uint64_t source_events = 0;  // rows in the source file, used or not
  std::int64_t time_base_ns = 0;    // epoch nanoseconds of time 0; 0 unknown
  std::uint16_t rank_count = 1;

  [[nodiscard]] bool has(Capability capability) const;
  [[nodiscard]] bool is_inferred(Capability capability) const;
  void set(Capability capability, bool inferred = false);
  // Throws InputError that says which capabilities are missing and how to record them.
  void require(std::span<const Capability> needed, std::string_view purpose) const;

  OpId append_op(const OpRow& row);
  [[nodiscard]] OpRow op(OpId id) const;
  LaneId lane(const Lane& lane);  // finds (kind, rank, device, number) or appends
  // O(number of kinds). `example` is kept for the first few only.
  void note(std::string_view kind, std::string_view example, std::string_view remedy, bool is_error);
  [[nodiscard]] const Finding* finding(std::string_view kind) const;
  [[nodiscard]] const Sync* sync_of(OpId op) const;              // O(log n)
  [[nodiscard]] const Collective* collective_of(OpId op) const;  // O(log n)
  [[nodiscard]] Picos unexplained_wait_of(OpId op) const;        // 0: none; O(log n)

  // Programmer errors (columns of unequal length, ids out of range) assert. O(size).
  void check_invariants() const;

 private:
  std::uint8_t capabilities_ = 0;
  std::uint8_t inferred_ = 0;
};

}  // namespace spillway::traces
