#include "traces/formats/chrome_writer.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "traces/utf8.h"

namespace spillway::traces {
namespace {

constexpr std::int64_t pids_per_rank = 1000;
constexpr std::int64_t first_extra_row = 10'000'000;

std::string quoted_text(std::string_view text) { return nlohmann::json(to_valid_utf8(text)).dump(); }

// Picoseconds as microseconds, exactly: "12.000345".
std::string microseconds_text(Picos time) {
  const std::int64_t count = time.count(), whole = count / 1'000'000, rest = std::abs(count % 1'000'000);
  std::string text = (count < 0 && whole == 0 ? "-" : "") + std::to_string(whole);
  if (rest == 0) return text;
  const std::string digits = std::to_string(1'000'000 + rest).substr(1);
  return text + "." + digits.substr(0, digits.find_last_not_of('0') + 1);
}

std::string_view category(OpKind kind) {
  if (is_host_call(kind)) return kind == OpKind::host_work ? "cpu_op" : "cuda_runtime";
  if (is_copy(kind)) return "gpu_memcpy";
  return kind == OpKind::memset ? "gpu_memset" : "kernel";
}

// A name that says what the call is to a reader that knows only names.
std::string_view call_name(OpKind kind) {
  switch (kind) {
    case OpKind::launch:
      return "cudaLaunchKernel";
    case OpKind::device_sync:
      return "cudaDeviceSynchronize";
    case OpKind::stream_sync:
      return "cudaStreamSynchronize";
    case OpKind::event_sync:
      return "cudaEventSynchronize";
    case OpKind::event_record:
      return "cudaEventRecord";
    case OpKind::stream_wait:
      return "cudaStreamWaitEvent";
    case OpKind::device_malloc:
      return "cudaMalloc";
    case OpKind::device_free:
      return "cudaFree";
    case OpKind::copy_host_to_device:
      return "Memcpy HtoD (Pinned -> Device)";
    case OpKind::copy_device_to_host:
      return "Memcpy DtoH (Device -> Pinned)";
    case OpKind::copy_device_to_device:
      return "Memcpy DtoD (Device -> Device)";
    case OpKind::copy_peer:
      return "Memcpy PtoP (Device -> Device)";
    case OpKind::memset:
      return "Memset (Device)";
    case OpKind::host_work:
    case OpKind::kernel:
    case OpKind::collective:
    case OpKind::storage_read:
    case OpKind::storage_write:
      break;
  }
  return to_string(kind);
}

class ChromeWriter {
 public:
  ChromeWriter(const Trace& trace, std::span<const ChromeCounter> counters, OutputFile& out)
      : trace_(trace), counters_(counters), out_(out), moved_(trace.ops.size(), TensorId::none) {
    find_rows();
    for (const Use& use : trace.uses)
      if (const OpKind kind = trace.ops.kind[index_of(use.op)]; is_storage(kind) || is_copy(kind))
        moved_[index_of(use.op)] = use.tensor;
  }

  void write() {
    out_.write("{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": " +
               std::to_string(trace_.time_base_ns) + ", \"traceEvents\": [");
    write_names();
    for (std::size_t i = 0; i < trace_.spans.size(); ++i) write_span(i);
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) write_op(i);
    write_counters();
    for (const ChromeCounter& counter : counters_) write_curve(counter);
    write_memory();
    out_.write("\n]}\n");
  }

 private:
  void event(const std::string& body) {
    out_.write((first_ ? "\n{" : ",\n{") + body + "}");
    first_ = false;
  }

  std::int64_t process_of(const Lane& lane) const {
    return lane.rank * pids_per_rank +
           (lane.kind == LaneKind::host_thread ? 999 : std::clamp<std::int64_t>(lane.device, 0, 998));
  }
  // Threads keep their numbers; other lanes are told apart by kind.
  std::int64_t thread_of(const Lane& lane) const {
    const std::int64_t numbers_per_kind = 1'000'000;
    if (lane.kind == LaneKind::communication) return lane.number + numbers_per_kind;
    return lane.kind == LaneKind::storage ? lane.number + 2 * numbers_per_kind : lane.number;
  }
  static std::string place(std::int64_t process, std::int64_t thread) {
    return ", \"pid\": " + std::to_string(process) + ", \"tid\": " + std::to_string(thread);
  }
  std::string place(LaneId id) const {
    const Lane& lane = trace_.lanes[index_of(id)];
    return place(process_of(lane), thread_of(lane));
  }
  [[nodiscard]] std::int64_t thread_of_op(std::size_t op) const {
    const auto found = extra_row_.find(op);
    return found == extra_row_.end() ? thread_of(trace_.lanes[index_of(trace_.ops.lane[op])]) : found->second;
  }
  std::string place_of_op(std::size_t op) const {
    return place(process_of(trace_.lanes[index_of(trace_.ops.lane[op])]), thread_of_op(op));
  }

  struct Row {
    Picos end{};
    std::int64_t thread = 0;  // 0: the lane's own
  };

  // Slices of a thread lie in each other or apart. Lanes of several workers get more threads; a stream has one.
  void find_rows() {
    const Ops& ops = trace_.ops;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops.start[i] != unknown_time && ops.duration[i] != unknown_time &&
          trace_.lanes[index_of(ops.lane[i])].kind == LaneKind::storage)
        order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return ops.start[a] < ops.start[b]; });
    std::vector<std::vector<Row>> rows(trace_.lanes.size());
    for (const std::size_t i : order) {
      std::vector<Row>& of_lane = rows[index_of(ops.lane[i])];
      auto row = std::find_if(of_lane.begin(), of_lane.end(), [&](const Row& r) { return r.end <= ops.start[i]; });
      if (row == of_lane.end()) {
        if (!of_lane.empty()) row_names_.push_back({ops.lane[i], of_lane.size() + 1});
        const auto thread = static_cast<std::int64_t>(row_names_.size()) + first_extra_row - 1;
        row = of_lane.insert(of_lane.end(), {.thread = of_lane.empty() ? 0 : thread});
      }
      row->end = ops.start[i] + ops.duration[i];
      if (row->thread != 0) extra_row_[i] = row->thread;
    }
  }

  void write_names() {
    std::map<std::int64_t, std::string> processes;
    for (std::size_t i = 0; i < trace_.lanes.size(); ++i) {
      const Lane& lane = trace_.lanes[i];
      const std::string rank = trace_.rank_count > 1 ? "rank " + std::to_string(lane.rank) + " " : "";
      processes[process_of(lane)] =
          rank + (lane.kind == LaneKind::host_thread ? "host" : "GPU " + std::to_string(lane.device));
      const std::string_view name = trace_.strings.text(lane.name);
      const std::string shown =
          name.empty() ? std::string(to_string(lane.kind)) + " " + std::to_string(lane.number) : std::string(name);
      write_thread_name(place(static_cast<LaneId>(i)), shown);
      for (std::size_t k = 0; k < row_names_.size(); ++k)
        if (index_of(row_names_[k].first) == i)
          write_thread_name(place(process_of(lane), first_extra_row + static_cast<std::int64_t>(k)),
                            shown + " (" + std::to_string(row_names_[k].second) + ")");
    }
    for (const auto& entry : processes)
      event("\"ph\": \"M\", \"name\": \"process_name\", \"pid\": " + std::to_string(entry.first) +
            ", \"args\": {\"name\": " + quoted_text(entry.second) + "}");
  }

  void write_thread_name(const std::string& where, const std::string& name) {
    event("\"ph\": \"M\", \"name\": \"thread_name\"" + where + ", \"args\": {\"name\": " + quoted_text(name) + "}");
  }

  void write_span(std::size_t i) {
    const Spans& s = trace_.spans;
    if (s.start[i] == unknown_time || s.duration[i] == unknown_time || s.lane[i] == LaneId::none) return;
    const char* kind = s.kind[i] == SpanKind::cpu_operator ? "cpu_op"
                       : s.kind[i] == SpanKind::python     ? "python_function"
                                                           : "user_annotation";
    std::string arguments;
    if (s.record_id[i] >= 0) arguments = "\"Record function id\": " + std::to_string(s.record_id[i]);
    if (s.sequence[i] >= 0)
      arguments += (arguments.empty() ? "" : ", ") + ("\"Sequence number\": " + std::to_string(s.sequence[i]));
    event("\"ph\": \"X\", \"cat\": \"" + std::string(kind) +
          "\", \"name\": " + quoted_text(trace_.strings.text(s.name[i])) + place(s.lane[i]) +
          ", \"ts\": " + microseconds_text(s.start[i]) + ", \"dur\": " + microseconds_text(s.duration[i]) +
          ", \"args\": {" + arguments + "}");
  }

  // Kineto joins a call and its work by one number. A call takes its own; work takes its call's.
  [[nodiscard]] std::size_t correlation(std::size_t i) const {
    const OpId launch = trace_.ops.launched_by[i];
    return (launch == OpId::none ? i : index_of(launch)) + 1;
  }

  void write_op(std::size_t i) {
    const Ops& ops = trace_.ops;
    if (ops.start[i] == unknown_time || ops.duration[i] == unknown_time) return;
    const Lane& lane = trace_.lanes[index_of(ops.lane[i])];
    const std::string_view own = trace_.strings.text(ops.name[i]);
    std::string arguments = "\"correlation\": " + std::to_string(correlation(i));
    if (!is_host_call(ops.kind[i]))
      arguments += ", \"device\": " + std::to_string(lane.device) + ", \"stream\": " + std::to_string(thread_of_op(i));
    if (ops.bytes[i] > Bytes(0)) arguments += ", \"bytes\": " + std::to_string(ops.bytes[i].count());
    // Our own field: readers tell by it what binds a kernel. PyTorch writes one of that name at operators.
    if (!is_host_call(ops.kind[i]) && ops.flops[i] > Flops(0))
      arguments += ", \"flops\": " + std::to_string(ops.flops[i].count());
    if (moved_[i] != TensorId::none)
      if (const std::string_view tensor = trace_.strings.text(trace_.tensors.name[index_of(moved_[i])]);
          !tensor.empty())
        arguments += ", \"tensor\": " + quoted_text(tensor);
    if (ops.phase[i] != Phase::unknown) arguments += ", \"phase\": \"" + std::string(to_string(ops.phase[i])) + "\"";
    event("\"ph\": \"X\", \"cat\": \"" + std::string(category(ops.kind[i])) +
          "\", \"name\": " + quoted_text(own.empty() ? call_name(ops.kind[i]) : own) + place_of_op(i) +
          ", \"ts\": " + microseconds_text(ops.start[i]) + ", \"dur\": " + microseconds_text(ops.duration[i]) +
          ", \"args\": {" + arguments + "}");
    write_flow(i);
  }

  void write_flow(std::size_t i) {
    const OpId launch = trace_.ops.launched_by[i];
    if (launch == OpId::none || trace_.ops.start[index_of(launch)] == unknown_time) return;
    const std::string common = ", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"id\": " + std::to_string(i + 1);
    event("\"ph\": \"s\"" + common + place_of_op(index_of(launch)) +
          ", \"ts\": " + microseconds_text(trace_.ops.start[index_of(launch)]));
    event("\"ph\": \"f\", \"bp\": \"e\"" + common + place_of_op(i) +
          ", \"ts\": " + microseconds_text(trace_.ops.start[i]));
  }

  // Of several ranks the one whose GPU it is.
  [[nodiscard]] std::int64_t process_of_memory(std::int16_t device) const {
    if (device < 0) return 999;
    for (const Lane& lane : trace_.lanes)
      if (lane.kind != LaneKind::host_thread && lane.device == device) return process_of(lane);
    return std::min<std::int64_t>(device, 998);
  }
  [[nodiscard]] std::string thread_of_memory(std::int16_t device) const {
    const std::int64_t rank = process_of_memory(device) / pids_per_rank;
    const Lane* first = nullptr;
    for (const Lane& lane : trace_.lanes) {
      if (lane.kind != LaneKind::host_thread) continue;
      if (lane.rank == rank) return place(process_of(lane), thread_of(lane));
      if (first == nullptr) first = &lane;
    }
    return first != nullptr ? place(process_of(*first), thread_of(*first)) : place(999, 0);
  }

  // The recorded total where there is one, else the running sum.
  void write_counters() {
    std::map<std::int16_t, Bytes> allocated;
    for (const MemoryEvent& e : trace_.memory_events) {
      Bytes& total = allocated[e.device];
      if (e.action == MemoryAction::allocate)
        total += e.bytes;
      else if (e.action == MemoryAction::free_completed)
        total = std::max(total - e.bytes, Bytes(0));
      else
        continue;
      if (e.total_allocated >= Bytes(0)) total = e.total_allocated;
      if (e.time == unknown_time) continue;
      const std::string where = e.device < 0 ? "host" : "GPU " + std::to_string(e.device);
      const std::int64_t process = process_of_memory(e.device);
      write_point("memory", where + " allocated bytes", process, e.time, "bytes", std::to_string(total.count()));
      Bytes& reserved = reserved_[e.device];
      if (e.total_reserved < Bytes(0) || e.total_reserved == reserved) continue;
      reserved = e.total_reserved;
      write_point("memory", where + " reserved bytes", process, e.time, "bytes", std::to_string(reserved.count()));
    }
  }
  void write_point(const char* category, const std::string& name, std::int64_t process, Picos at,
                   const std::string& unit, const std::string& value) {
    event("\"ph\": \"C\", \"cat\": \"" + std::string(category) + "\", \"name\": " + quoted_text(name) +
          ", \"pid\": " + std::to_string(process) + ", \"ts\": " + microseconds_text(at) + ", \"args\": {" +
          quoted_text(unit) + ": " + value + "}");
  }
  // Beside the rank's first GPU.
  void write_curve(const ChromeCounter& counter) {
    const auto lane = std::find_if(trace_.lanes.begin(), trace_.lanes.end(), [&](const Lane& one) {
      return one.rank == counter.rank && one.kind != LaneKind::host_thread;
    });
    const std::int64_t process = lane == trace_.lanes.end() ? counter.rank * pids_per_rank : process_of(*lane);
    for (std::size_t i = 0; i < counter.at.size(); ++i)
      write_point("counter", counter.name, process, Picos(counter.at[i]), counter.unit,
                  std::to_string(counter.value[i]));
  }

  // As torch.profiler has them: blocks at their addresses, frees with negative sizes.
  void write_memory() {
    const bool requests = std::any_of(trace_.memory_events.begin(), trace_.memory_events.end(),
                                      [](const MemoryEvent& e) { return e.action == MemoryAction::free_requested; });
    const MemoryAction freed = requests ? MemoryAction::free_requested : MemoryAction::free_completed;
    std::map<std::int16_t, std::string> threads;  // by device
    for (const MemoryEvent& e : trace_.memory_events) {
      if (e.time == unknown_time || e.address == Addr(0) || (e.action != MemoryAction::allocate && e.action != freed))
        continue;
      std::string arguments = "\"Device Type\": " + std::to_string(e.device < 0 ? 0 : 1) +
                              ", \"Device Id\": " + std::to_string(e.device) +
                              ", \"Addr\": " + std::to_string(e.address.count()) +
                              ", \"Bytes\": " + std::to_string(e.action == freed ? -e.bytes.count() : e.bytes.count());
      if (e.total_allocated >= Bytes(0))
        arguments += ", \"Total Allocated\": " + std::to_string(e.total_allocated.count());
      if (e.total_reserved >= Bytes(0))
        arguments += ", \"Total Reserved\": " + std::to_string(e.total_reserved.count());
      const auto [thread, is_new] = threads.try_emplace(e.device);
      if (is_new) thread->second = thread_of_memory(e.device);
      event("\"ph\": \"i\", \"s\": \"t\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\"" + thread->second +
            ", \"ts\": " + microseconds_text(e.time) + ", \"args\": {" + arguments + "}");
    }
  }

  const Trace& trace_;
  std::span<const ChromeCounter> counters_;
  OutputFile& out_;
  std::vector<TensorId> moved_;  // by op: by copies and transfers
  std::map<std::int16_t, Bytes> reserved_;
  std::map<std::size_t, std::int64_t> extra_row_;          // thread by op, of those not in their lane's own
  std::vector<std::pair<LaneId, std::size_t>> row_names_;  // of extra threads: lane, and which of its rows
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(const Trace& trace, OutputFile& out) { ChromeWriter(trace, {}, out).write(); }

void write_chrome_timeline(const Trace& trace, std::span<const ChromeCounter> counters, OutputFile& out) {
  ChromeWriter(trace, counters, out).write();
}

}  // namespace spillway::traces
