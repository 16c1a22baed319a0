#include "traces/formats/nsys_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "traces/formats/sqlite_rows.h"
#include "traces/lane_index.h"
#include "traces/operator_kind.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

constexpr std::int64_t max_time_ns = 9'000'000'000'000'000;  // 104 days: fits int64 picoseconds
constexpr int thread_bits = 24;                              // of globalTid; the rest names the process

struct HostRow {
  std::int64_t start = 0, end = -1, tid = 0, correlation = 0;
  StringId name{};
};

struct DeviceRow {
  std::int64_t start = 0, end = -1, process = 0, correlation = 0, stream = 0;
  std::int16_t device = 0;
  StringId name{};
  OpKind kind = OpKind::kernel;
  std::int64_t bytes = 0;
  bool pageable = false;
  OpId launch = OpId::none;
};

using CallKey = std::pair<std::int64_t, std::int64_t>;  // process, correlation

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return text.starts_with(p); });
}

OpKind call_kind(std::string_view name, bool launches) {
  if (launches) return OpKind::launch;
  if (starts_with_any(name, {"cudaDeviceSynchronize", "cuCtxSynchronize"})) return OpKind::device_sync;
  if (starts_with_any(name, {"cudaStreamSynchronize", "cuStreamSynchronize"})) return OpKind::stream_sync;
  if (starts_with_any(name, {"cudaEventSynchronize", "cuEventSynchronize"})) return OpKind::event_sync;
  if (starts_with_any(name, {"cudaEventRecord", "cuEventRecord"})) return OpKind::event_record;
  if (starts_with_any(name, {"cudaStreamWaitEvent", "cuStreamWaitEvent"})) return OpKind::stream_wait;
  const bool on_host = name.find("Host") != std::string_view::npos;
  if (!on_host && starts_with_any(name, {"cudaMalloc", "cuMemAlloc"})) return OpKind::device_malloc;
  if (!on_host && starts_with_any(name, {"cudaFree", "cuMemFree"})) return OpKind::device_free;
  return OpKind::host_work;
}

// Numbers of CUPTI's CUpti_ActivityMemcpyKind.
OpKind copy_kind(std::int64_t kind) {
  switch (kind) {
    case 1:
    case 3:
      return OpKind::copy_host_to_device;
    case 2:
    case 4:
      return OpKind::copy_device_to_host;
    case 10:
      return OpKind::copy_peer;
    default:
      return OpKind::copy_device_to_device;
  }
}

bool is_collective_kernel(std::string_view name) {
  return starts_with_any(name, {"ncclKernel", "ncclDevKernel", "rcclKernel"});
}

class NsysReader {
 public:
  NsysReader(const std::string& path, const ReadOptions& options) : path_(path), options_(options), file_(path) {}

  Trace read() {
    trace_.provenance.push_back({.file = path_, .format = "nsys", .producer = "Nsight Systems"});
    read_about();
    file_.for_rows("StringIds", {"id", "value"}, [&](const SqliteRow& row) {
      if (const auto id = row.integer(0)) strings_[*id] = trace_.strings.intern(to_valid_utf8(row.text(1)));
    });
    read_calls();
    read_device_work();
    read_graphs();
    if (calls_.empty() && work_.empty() && !file_.has_table("NVTX_EVENTS")) {
      if (file_.has_table("StringIds") && file_.has_table("TARGET_INFO_GPU"))
        throw InputError(path_, "", "an Nsight Systems export without calls, GPU work or ranges",
                         "record with nsys profile --trace=cuda,nvtx, of a program that uses the GPU");
      throw InputError(path_, "", "an SQLite file without Nsight Systems tables",
                       "export with nsys export --type sqlite");
    }
    number_ranks();
    append_calls();
    append_work();
    read_syncs();
    read_ranges();
    tie_calls_to_ranges();
    read_memory();
    read_devices();
    if (trace_.ops.size() > 0) trace_.set(Capability::times);
    if (!trace_.memory_events.empty()) trace_.set(Capability::memory);
    trace_.check_invariants();
    return std::move(trace_);
  }

 private:
  void count() {
    ++trace_.source_events;
    if (options_.progress && trace_.source_events % 65536 == 0 && !options_.progress(trace_.source_events, 0))
      throw Cancelled{};
  }

  void read_about() {
    for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA"})
      file_.for_rows(table, {"name", "value"}, [&](const SqliteRow& row) {
        if (row.text(0) == "EXPORT_SCHEMA_VERSION")
          trace_.provenance.front().schema_version = to_valid_utf8(row.text(1));
        if (row.text(0) == "EXPORT_PRODUCT_VERSION")
          trace_.provenance.front().producer = "Nsight Systems " + to_valid_utf8(row.text(1));
      });
  }

  // Start and end in nanoseconds; -1 as end when it was not recorded. Nothing when the row can't be placed.
  std::optional<std::pair<std::int64_t, std::int64_t>> times(const SqliteRow& row, std::string_view table) {
    const auto start = row.integer(0), end = row.integer(1);
    const std::string place(table);
    if (!start || *start < 0 || *start > max_time_ns) {
      trace_.note("time_out_of_range", place, "the row has no usable start; left out", true);
      return {};
    }
    if (!end) {
      trace_.note("missing_end", place, "the recording stopped before its end; kept with unknown duration", false);
      return std::pair(*start, std::int64_t{-1});
    }
    if (*end < *start || *end > max_time_ns) {
      trace_.note("negative_duration", place, "the row ends before it starts; left out", true);
      return {};
    }
    return std::pair(*start, *end);
  }

  StringId name(const SqliteRow& row, std::size_t column, std::string_view fallback) {
    if (const auto id = row.integer(column))
      if (const auto found = strings_.find(*id); found != strings_.end()) return found->second;
    const std::string_view text = row.text(column);
    return trace_.strings.intern(text.empty() ? std::string(fallback) : to_valid_utf8(text));
  }

  void read_calls() {
    const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    file_.for_rows(table, {"start", "end", "globalTid", "correlationId", "nameId"}, [&](const SqliteRow& row) {
      count();
      const auto when = times(row, table);
      if (!when) return;
      HostRow call{.start = when->first, .end = when->second, .tid = row.integer(2).value_or(0)};
      call.correlation = row.integer(3).value_or(0);
      call.name = name(row, 4, "call");
      calls_.push_back(call);
    });
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const HostRow& a, const HostRow& b) { return a.start < b.start; });
  }

  std::optional<DeviceRow> device_row(const SqliteRow& row, const std::string& table) {
    count();
    const auto when = times(row, table);
    if (!when) return {};
    DeviceRow work{.start = when->first, .end = when->second};
    work.process = row.integer(2).value_or(0) >> thread_bits;
    work.correlation = row.integer(3).value_or(0);
    work.stream = row.integer(4).value_or(0);
    const std::int64_t device = row.integer(5).value_or(0);
    work.device = static_cast<std::int16_t>(device >= 0 && device < 4096 ? device : 0);
    return work;
  }

  std::int64_t bytes(const SqliteRow& row, std::size_t column) const {
    const std::int64_t value = row.integer(column).value_or(0);
    return value >= 0 && value < std::int64_t{1} << 60 ? value : 0;
  }

  void read_device_work() {
    const std::string kernels = "CUPTI_ACTIVITY_KIND_KERNEL", copies = "CUPTI_ACTIVITY_KIND_MEMCPY",
                      sets = "CUPTI_ACTIVITY_KIND_MEMSET";
    file_.for_rows(kernels,
                   {"start", "end", "globalPid", "correlationId", "streamId", "deviceId", "demangledName", "shortName"},
                   [&](const SqliteRow& row) {
                     auto work = device_row(row, kernels);
                     if (!work) return;
                     work->name = name(row, row.integer(6) ? 6 : 7, "kernel");
                     if (is_collective_kernel(trace_.strings.text(work->name))) work->kind = OpKind::collective;
                     work_.push_back(*work);
                   });
    const std::set<std::int64_t> pageable = pageable_kinds();
    file_.for_rows(copies,
                   {"start", "end", "globalPid", "correlationId", "streamId", "deviceId", "bytes", "copyKind",
                    "srcKind", "dstKind"},
                   [&](const SqliteRow& row) {
                     auto work = device_row(row, copies);
                     if (!work) return;
                     work->kind = copy_kind(row.integer(7).value_or(8));
                     work->bytes = bytes(row, 6);
                     const bool to_device = work->kind == OpKind::copy_host_to_device;
                     const bool host_side = to_device || work->kind == OpKind::copy_device_to_host;
                     const auto memory = row.integer(to_device ? 8 : 9);
                     work->pageable = host_side && memory && pageable.contains(*memory);
                     work->name = trace_.strings.intern(to_string(work->kind));
                     work_.push_back(*work);
                   });
    file_.for_rows(sets, {"start", "end", "globalPid", "correlationId", "streamId", "deviceId", "bytes"},
                   [&](const SqliteRow& row) {
                     auto work = device_row(row, sets);
                     if (!work) return;
                     work->kind = OpKind::memset;
                     work->bytes = bytes(row, 6);
                     work->name = trace_.strings.intern("memset");
                     work_.push_back(*work);
                   });
  }

  // nsys --cuda-graph-trace=graph records a graph's launch as one piece of work and none of its nodes.
  void read_graphs() {
    const std::string table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
    file_.for_rows(
        table, {"start", "end", "globalPid", "correlationId", "streamId", "deviceId", "graphId"},
        [&](const SqliteRow& row) {
          auto work = device_row(row, table);
          if (!work) return;
          work->name = trace_.strings.intern("CUDA graph " + std::to_string(row.integer(6).value_or(0)));
          trace_.note("graph_without_nodes", trace_.strings.text(work->name),
                      "a CUDA graph recorded as a whole; nsys profile --cuda-graph-trace=node has its kernels", false);
          work_.push_back(*work);
        });
  }

  // Files that list the numbers of memory kinds are believed; else the numbering nsys has used.
  std::set<std::int64_t> pageable_kinds() {
    std::set<std::int64_t> kinds;
    file_.for_rows("ENUM_CUDA_MEM_KIND", {"id", "label"}, [&](const SqliteRow& row) {
      if (row.integer(0) && row.text(1) == "Pageable") kinds.insert(*row.integer(0));
    });
    if (kinds.empty()) kinds.insert(0);
    return kinds;
  }

  void number_ranks() {
    for (const DeviceRow& work : work_) ranks_.emplace(work.process, 0);
    if (ranks_.empty())
      for (const HostRow& call : calls_) ranks_.emplace(call.tid >> thread_bits, 0);
    if (ranks_.size() > 65'000) throw InputError(path_, "", "more than 65,000 processes", "split the recording");
    std::uint16_t next = 0;
    for (auto& entry : ranks_) entry.second = next++;
    trace_.rank_count = std::max<std::uint16_t>(next, 1);
  }

  std::uint16_t rank(std::int64_t process) const {
    const auto found = ranks_.find(process);
    return found == ranks_.end() ? std::uint16_t{0} : found->second;
  }

  LaneId host_lane(std::int64_t tid) {
    return named_lane({.kind = LaneKind::host_thread, .rank = rank(tid >> thread_bits), .number = tid}, "thread ",
                      tid & ((1 << thread_bits) - 1));
  }

  LaneId stream_lane(std::int64_t process, std::int16_t device, std::int64_t stream) {
    return named_lane({.kind = LaneKind::stream, .rank = rank(process), .device = device, .number = stream}, "stream ",
                      stream);
  }

  LaneId named_lane(Lane lane, const char* what, std::int64_t number) {
    if (const LaneId known = lanes_.find(lane); known != LaneId::none) return known;
    lane.name = trace_.strings.intern(what + std::to_string(number));
    return lanes_.lane(lane);
  }

  static Picos duration(std::int64_t start, std::int64_t end) {
    return end < 0 ? unknown_time : nanoseconds(end - start);
  }

  void append_calls() {
    std::set<CallKey> launching;
    for (const DeviceRow& work : work_) launching.emplace(work.process, work.correlation);
    for (const HostRow& call : calls_) {
      const CallKey key(call.tid >> thread_bits, call.correlation);
      const std::string_view called = trace_.strings.text(call.name);
      OpRow row{.name = call.name, .kind = call_kind(called, launching.contains(key)), .lane = host_lane(call.tid)};
      row.start = nanoseconds(call.start);
      row.duration = duration(call.start, call.end);
      const bool blocks =
          starts_with_any(called, {"cudaMemcpy", "cuMemcpy"}) && called.find("Async") == std::string_view::npos;
      if (row.kind == OpKind::launch && blocks) row.flags |= static_cast<std::uint8_t>(OpFlag::blocking);
      call_ops_.emplace(key, trace_.append_op(row));
    }
  }

  void append_work() {
    for (DeviceRow& work : work_) {
      const auto found = call_ops_.find(CallKey(work.process, work.correlation));
      if (found != call_ops_.end()) work.launch = found->second;
    }
    const auto launched = [&](const DeviceRow& w) {
      return w.launch == OpId::none ? nanoseconds(w.start) : trace_.ops.start[index_of(w.launch)];
    };
    std::stable_sort(work_.begin(), work_.end(), [&](const DeviceRow& a, const DeviceRow& b) {
      return std::pair(launched(a), a.start) < std::pair(launched(b), b.start);
    });
    for (const DeviceRow& work : work_) {
      OpRow row{.name = work.name, .kind = work.kind, .lane = stream_lane(work.process, work.device, work.stream)};
      row.start = nanoseconds(work.start);
      row.duration = duration(work.start, work.end);
      row.launched_by = work.launch;
      row.bytes = Bytes(work.bytes);
      if (work.pageable) row.flags |= static_cast<std::uint8_t>(OpFlag::pageable);
      if (work.launch == OpId::none) {
        row.flags |= static_cast<std::uint8_t>(OpFlag::missing_launch);
        trace_.note("missing_launch", trace_.strings.text(work.name), "the call that launched it was not recorded",
                    false);
      }
      const OpId op = trace_.append_op(row);
      if (work.kind == OpKind::collective)
        trace_.collectives.push_back({.op = op, .kind = collective_kind_of_name(trace_.strings.text(work.name))});
    }
  }

  // The calls that recorded each event, in order, and the streams they recorded it on.
  void read_events() {
    const std::string table = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
    file_.for_rows(table, {"globalPid", "correlationId", "streamId", "deviceId", "eventId"}, [&](const SqliteRow& row) {
      count();
      const std::int64_t process = row.integer(0).value_or(0) >> thread_bits;
      const auto call = call_ops_.find(CallKey(process, row.integer(1).value_or(0)));
      const LaneId lane = stream_of(process, row.integer(3), row.integer(2));
      if (call == call_ops_.end() || lane == LaneId::none) return;
      if (trace_.ops.kind[index_of(call->second)] != OpKind::event_record) return;
      trace_.syncs.push_back({.op = call->second, .lane = lane});
      if (const auto event = row.integer(4)) records_[{process, *event}].push_back(call->second);
    });
    for (auto& entry : records_) std::sort(entry.second.begin(), entry.second.end());
  }

  // none: the row names no stream.
  LaneId stream_of(std::int64_t process, std::optional<std::int64_t> device, std::optional<std::int64_t> stream) {
    if (!stream || *stream < 0 || *stream > 0xfffffffeLL) return LaneId::none;
    const std::int64_t ordinal = device.value_or(0);
    return stream_lane(process, static_cast<std::int16_t>(ordinal >= 0 && ordinal < 4096 ? ordinal : 0), *stream);
  }

  // The last record of the event before the call; none: not recorded.
  OpId record_before(std::int64_t process, std::optional<std::int64_t> event, OpId call) const {
    const auto found = event ? records_.find({process, *event}) : records_.end();
    if (found == records_.end()) return OpId::none;
    const auto after = std::lower_bound(found->second.begin(), found->second.end(), call);
    return after == found->second.begin() ? OpId::none : *std::prev(after);
  }

  void read_syncs() {
    read_events();
    const std::string table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
    file_.for_rows(table, {"globalPid", "correlationId", "streamId", "deviceId", "eventId"}, [&](const SqliteRow& row) {
      count();
      const std::int64_t process = row.integer(0).value_or(0) >> thread_bits;
      const auto call = call_ops_.find(CallKey(process, row.integer(1).value_or(0)));
      if (call == call_ops_.end()) return;
      const OpKind kind = trace_.ops.kind[index_of(call->second)];
      if (kind < OpKind::stream_sync || kind > OpKind::stream_wait) return;
      Sync sync{.op = call->second, .lane = stream_of(process, row.integer(3), row.integer(2))};
      if (kind == OpKind::event_sync || kind == OpKind::stream_wait)
        sync.event = record_before(process, row.integer(4), call->second);
      if (sync.lane != LaneId::none || sync.event != OpId::none) trace_.syncs.push_back(sync);
    });
    const auto same_op = [](const Sync& a, const Sync& b) { return a.op == b.op; };
    std::stable_sort(trace_.syncs.begin(), trace_.syncs.end(),
                     [](const Sync& a, const Sync& b) { return a.op < b.op; });
    trace_.syncs.erase(std::unique(trace_.syncs.begin(), trace_.syncs.end(), same_op), trace_.syncs.end());
  }

  struct Range {
    StringId name{};
    LaneId lane = LaneId::none;
    Picos start{}, duration{};
  };

  // Sorted by (start, longest first), whatever the table's order.
  void read_ranges() {
    constexpr std::int64_t push_pop = 59, start_end = 60;
    std::vector<Range> ranges;
    file_.for_rows(
        "NVTX_EVENTS", {"start", "end", "eventType", "text", "textId", "globalTid"}, [&](const SqliteRow& row) {
          count();
          const auto type = row.integer(2);
          if (type != push_pop && type != start_end) return;
          const auto when = times(row, "NVTX_EVENTS");
          if (!when) return;
          ranges.push_back(
              {row.text(3).empty() ? name(row, 4, "range") : trace_.strings.intern(to_valid_utf8(row.text(3))),
               host_lane(row.integer(5).value_or(0)), nanoseconds(when->first), duration(when->first, when->second)});
        });
    std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
      return a.start != b.start ? a.start < b.start : a.duration > b.duration;
    });
    Spans& spans = trace_.spans;
    for (const Range& range : ranges) {
      spans.name.push_back(range.name);
      spans.kind.push_back(SpanKind::annotation);
      spans.lane.push_back(range.lane);
      spans.start.push_back(range.start);
      spans.duration.push_back(range.duration);
      spans.sequence.push_back(-1);
      spans.record_id.push_back(-1);
    }
  }

  // A call belongs to the innermost range of its thread that is open then, and so does the work it launched.
  void tie_calls_to_ranges() {
    const Spans& spans = trace_.spans;
    Ops& ops = trace_.ops;
    std::vector<std::vector<std::size_t>> open(trace_.lanes.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < ops.size() && is_host_call(ops.kind[i]); ++i) {
      for (; next < spans.size() && spans.start[next] <= ops.start[i]; ++next)
        if (spans.duration[next] != unknown_time) open[index_of(spans.lane[next])].push_back(next);
      auto& stack = open[index_of(ops.lane[i])];
      while (!stack.empty() && spans.start[stack.back()] + spans.duration[stack.back()] <= ops.start[i])
        stack.pop_back();
      if (!stack.empty()) ops.span[i] = SpanId(static_cast<std::uint32_t>(stack.back()));
    }
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops.launched_by[i] != OpId::none) ops.span[i] = ops.span[index_of(ops.launched_by[i])];
  }

  void read_memory() {
    const std::string table = "CUDA_GPU_MEMORY_USAGE_EVENTS";
    file_.for_rows(table, {"start", "deviceId", "address", "bytes", "memoryOperationType"}, [&](const SqliteRow& row) {
      count();
      const auto start = row.integer(0), address = row.integer(2), type = row.integer(4);
      const std::int64_t size = row.integer(3).value_or(-1), device = row.integer(1).value_or(0);
      const bool sane = start && *start >= 0 && *start <= max_time_ns && address && type &&
                        (*type == 0 || *type == 1) && size >= 0 && size < std::int64_t{1} << 60;
      if (!sane)
        return trace_.note("bad_memory_event", table,
                           "a memory event has no usable time, address or size; it is left out", true);
      trace_.memory_events.push_back({.time = nanoseconds(*start),
                                      .address = Addr(static_cast<std::uint64_t>(*address)),
                                      .bytes = Bytes(size),
                                      .action = *type == 0 ? MemoryAction::allocate : MemoryAction::free_completed,
                                      .device = static_cast<std::int16_t>(device >= 0 && device < 4096 ? device : 0)});
    });
    std::stable_sort(trace_.memory_events.begin(), trace_.memory_events.end(),
                     [](const MemoryEvent& a, const MemoryEvent& b) { return a.time < b.time; });
  }

  void read_devices() {
    file_.for_rows("TARGET_INFO_GPU", {"name", "id", "totalMemory", "smCount"}, [&](const SqliteRow& row) {
      const std::int64_t ordinal = row.integer(1).value_or(0), multiprocessors = row.integer(3).value_or(0);
      if (ordinal < 0 || ordinal >= 4096) return;
      trace_.devices.push_back(
          {.name = trace_.strings.intern(to_valid_utf8(row.text(0))),
           .ordinal = static_cast<std::int16_t>(ordinal),
           .memory = Bytes(bytes(row, 2)),
           .multiprocessors = static_cast<std::int32_t>(std::clamp<std::int64_t>(multiprocessors, 0, 1 << 20))});
    });
  }

  const std::string& path_;
  const ReadOptions& options_;
  SqliteFile file_;
  Trace trace_;
  LaneIndex lanes_{trace_};
  std::unordered_map<std::int64_t, StringId> strings_;
  std::vector<HostRow> calls_;
  std::vector<DeviceRow> work_;
  std::map<std::int64_t, std::uint16_t> ranks_;
  std::map<CallKey, OpId> call_ops_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<OpId>> records_;  // by process and event, in order
};

}  // namespace

Trace read_nsys(const std::string& path, const ReadOptions& options) { return NsysReader(path, options).read(); }

}  // namespace spillway::traces
