#include "traces/formats/kineto/kineto_assemble.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "base/give_back.h"
#include "traces/derive.h"

namespace spillway::traces {
namespace {

constexpr std::uint32_t no_launch = 0xffffffffU;

class Assembler {
 public:
  Assembler(KinetoRows& rows, Trace& trace) : rows_(rows), trace_(trace) {}

  Picos run() {
    const std::int64_t zero = earliest();
    shift(zero);
    sort_host_calls();
    sort_spans();
    sort_steps();
    const bool cpu_only = rows_.device.empty() && rows_.host.empty();
    append_spans();
    if (cpu_only)
      append_outermost_operators();
    else
      append_host_calls();
    host_ops_ = trace_.ops.size();
    match_launches();
    append_device_work();
    assign_steps(trace_);
    note_launches_without_work();
    resolve_kineto_syncs(rows_.syncs, calls_, host_ops_, trace_);
    append_memory();
    if (trace_.ops.size() != 0) trace_.set(Capability::times);
    return Picos(zero);
  }

 private:
  std::int64_t earliest() const;
  void shift(std::int64_t zero);
  void sort_host_calls();
  void sort_spans();
  void sort_steps();
  void append_spans();
  void append_outermost_operators();
  void append_host_calls();
  void match_launches();
  void append_device_work();
  void append_stream(std::vector<std::uint32_t>& order);
  OpId append_device_row(const KinetoDeviceRow& row);
  void note_launches_without_work();
  void append_memory();

  KinetoRows& rows_;
  Trace& trace_;
  std::size_t host_ops_ = 0;
  std::vector<KinetoCallOfCorrelation> calls_;
  std::vector<OpId> op_of_device_row_;
};

// Rounded down to a microsecond.
std::int64_t Assembler::earliest() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& row : rows_.host) first = std::min(first, row.start);
  for (const auto& row : rows_.device) first = std::min(first, row.start);
  for (const auto& row : rows_.spans) first = std::min(first, row.start);
  for (const auto& row : rows_.memory) first = std::min(first, row.event.time.count());
  if (first == std::numeric_limits<std::int64_t>::max()) return 0;
  constexpr std::int64_t unit = 1'000'000;
  const std::int64_t rest = first % unit;
  return first - (rest < 0 ? rest + unit : rest);
}

void Assembler::shift(std::int64_t zero) {
  for (auto& row : rows_.host) row.start -= zero;
  for (auto& row : rows_.device) row.start -= zero;
  for (auto& row : rows_.spans) row.start -= zero;
  for (auto& row : rows_.memory) row.event.time = row.event.time - Picos(zero);
  for (auto& step : rows_.steps) step.start = step.start - Picos(zero);
}

void Assembler::sort_host_calls() {
  auto& host = rows_.host;
  const auto informational = [](const KinetoHostRow& row) { return row.call.informational; };
  // An unnamed or informational call that did start work is a launch after all.
  std::vector<std::int64_t> working;
  working.reserve(rows_.device.size());
  for (const auto& row : rows_.device) working.push_back(row.correlation);
  std::sort(working.begin(), working.end());
  for (auto& row : host) {
    if (row.call.kind != OpKind::host_work && !row.call.informational) continue;
    if (row.correlation <= 0 || !std::binary_search(working.begin(), working.end(), row.correlation)) continue;
    row.call = {.kind = OpKind::launch};
  }
  const std::size_t before = host.size();
  std::erase_if(host, informational);
  rows_.informational_calls = before - host.size();
  const auto longer_first = [](const KinetoHostRow& a, const KinetoHostRow& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  };
  std::stable_sort(host.begin(), host.end(), longer_first);
  std::vector<std::int64_t> busy_until(trace_.lanes.size(), std::numeric_limits<std::int64_t>::min());
  bool moved = false;
  for (auto& row : host) {
    std::int64_t& busy = busy_until[index_of(row.lane)];
    if (row.start < busy) {
      trace_.note("host_overlap", trace_.strings.text(row.name),
                  "nested or rounded host calls on one thread: the later begins where the earlier ends", false);
      const std::int64_t end = std::max(row.start + row.duration, busy);
      row.start = busy;
      row.duration = end - busy;
      moved = true;
    }
    busy = row.start + row.duration;
  }
  if (!moved) return;
  std::stable_sort(host.begin(), host.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
}

void Assembler::sort_spans() {
  std::stable_sort(rows_.spans.begin(), rows_.spans.end(), [](const KinetoSpanRow& a, const KinetoSpanRow& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
}

// The same step may be annotated on several threads; the longest range is the step.
void Assembler::sort_steps() {
  auto& steps = rows_.steps;
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.name != b.name ? a.name < b.name : a.duration > b.duration;
  });
  const auto repeated =
      std::unique(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.name == b.name; });
  if (repeated != steps.end())
    trace_.note("repeated_step", trace_.strings.text(repeated->name),
                "a step was annotated more than once; its longest range counts", false);
  steps.erase(repeated, steps.end());
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.start < b.start; });
  if (steps.size() >= no_index16) {
    trace_.note("too_many_steps", "", "only the first 65,534 steps are kept", true);
    steps.resize(no_index16 - 1U);
  }
  trace_.steps = std::move(steps);
}

void Assembler::append_spans() {
  auto& spans = trace_.spans;
  const std::size_t count = rows_.spans.size();
  spans.name.reserve(count), spans.kind.reserve(count), spans.lane.reserve(count), spans.start.reserve(count);
  spans.duration.reserve(count), spans.sequence.reserve(count), spans.record_id.reserve(count);
  spans.external_id.reserve(count);
  for (const auto& row : rows_.spans) {
    spans.name.push_back(row.name);
    spans.kind.push_back(row.kind);
    spans.lane.push_back(row.lane);
    spans.start.push_back(Picos(row.start));
    spans.duration.push_back(Picos(row.duration));
    spans.sequence.push_back(row.sequence);
    spans.record_id.push_back(row.record_id);
    spans.external_id.push_back(row.external_id);
  }
  give_back(rows_.spans);
}

void Assembler::append_outermost_operators() {
  const auto& spans = trace_.spans;
  std::vector<std::int64_t> busy_until(trace_.lanes.size(), std::numeric_limits<std::int64_t>::min());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans.kind[i] != SpanKind::cpu_operator || spans.start[i].count() < busy_until[index_of(spans.lane[i])])
      continue;
    if (trace_.strings.text(spans.name[i]).starts_with("ProfilerStep#")) continue;
    busy_until[index_of(spans.lane[i])] = (spans.start[i] + spans.duration[i]).count();
    trace_.append_op({.name = spans.name[i],
                      .kind = OpKind::host_work,
                      .lane = spans.lane[i],
                      .start = spans.start[i],
                      .duration = spans.duration[i],
                      .span = SpanId(static_cast<std::uint32_t>(i))});
  }
  trace_.note("no_device_work", "", "a capture of the CPU alone: its outermost operators are replayed as host work",
              false);
}

// Walks host calls and spans together in order of start; each thread has a stack of open spans.
void Assembler::append_host_calls() {
  const auto& spans = trace_.spans;
  trace_.ops.reserve(rows_.host.size() + rows_.device.size());
  calls_.reserve(rows_.host.size());
  std::vector<std::vector<std::uint32_t>> open(trace_.lanes.size());
  const auto ended = [&](std::uint32_t span, std::int64_t start, std::int64_t end) {
    const std::int64_t span_end = (spans.start[span] + spans.duration[span]).count();
    return span_end < start || (span_end == start && end > start);
  };
  std::uint32_t next = 0;
  for (const auto& row : rows_.host) {
    for (; next < spans.size() && spans.start[next].count() <= row.start; ++next) {
      auto& stack = open[index_of(spans.lane[next])];
      const std::int64_t start = spans.start[next].count();
      while (!stack.empty() && ended(stack.back(), start, start + spans.duration[next].count())) stack.pop_back();
      stack.push_back(next);
    }
    auto& stack = open[index_of(row.lane)];
    while (!stack.empty() && ended(stack.back(), row.start, row.start + row.duration)) stack.pop_back();
    const OpId op =
        trace_.append_op({.name = row.name,
                          .kind = row.call.kind,
                          .lane = row.lane,
                          .flags = static_cast<std::uint8_t>(row.call.blocking ? OpFlag::blocking : OpFlag{}),
                          .start = Picos(row.start),
                          .duration = Picos(row.duration),
                          .span = stack.empty() ? SpanId::none : SpanId(stack.back())});
    if (row.correlation > 0) calls_.push_back({row.correlation, static_cast<std::uint32_t>(index_of(op))});
  }
  give_back(rows_.host);
  if (rows_.device.empty())
    trace_.note("no_device_work", "", "host calls without any GPU activity: was ProfilerActivity.CUDA on?", false);
}

void Assembler::match_launches() {
  if (!std::is_sorted(calls_.begin(), calls_.end())) std::sort(calls_.begin(), calls_.end());
  for (auto& row : rows_.device) {
    if (row.correlation <= 0) continue;
    const auto found = std::lower_bound(calls_.begin(), calls_.end(), KinetoCallOfCorrelation{row.correlation, 0});
    if (found != calls_.end() && found->correlation == row.correlation) row.launch = found->op;
  }
}

void Assembler::append_device_work() {
  const auto& device = rows_.device;
  std::vector<std::uint32_t> order(device.size());
  std::iota(order.begin(), order.end(), 0U);
  // By stream, then by launch (host ops are in order of start), then by recorded start; without launch last.
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto &x = device[a], &y = device[b];
    if (x.lane != y.lane) return x.lane < y.lane;
    return x.launch != y.launch ? x.launch < y.launch : x.start < y.start;
  });
  op_of_device_row_.assign(device.size(), OpId::none);
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && device[order[end]].lane == device[order[begin]].lane) ++end;
    std::vector<std::uint32_t> stream(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                      order.begin() + static_cast<std::ptrdiff_t>(end));
    append_stream(stream);
    begin = end;
  }
  for (const auto& row : rows_.collectives) {
    Collective what = row.what;
    what.op = op_of_device_row_[row.device_row];
    trace_.collectives.push_back(what);
  }
  std::sort(trace_.collectives.begin(), trace_.collectives.end(),
            [](const Collective& a, const Collective& b) { return a.op < b.op; });
  give_back(rows_.device);
  give_back(op_of_device_row_);
}

// Merges work without a launch into the launched work of one stream, before the first that started later.
void Assembler::append_stream(std::vector<std::uint32_t>& order) {
  auto& device = rows_.device;
  const auto launched_end =
      std::partition_point(order.begin(), order.end(), [&](std::uint32_t i) { return device[i].launch != no_launch; });
  std::vector<std::uint32_t> merged;
  merged.reserve(order.size());
  auto lost = launched_end;
  for (auto it = order.begin(); it != launched_end; ++it) {
    while (lost != order.end() && device[*lost].start < device[*it].start) merged.push_back(*lost++);
    merged.push_back(*it);
  }
  merged.insert(merged.end(), lost, order.end());
  std::int64_t busy = std::numeric_limits<std::int64_t>::min();
  for (const std::uint32_t i : merged) {
    KinetoDeviceRow& row = device[i];
    if (row.start < busy) {
      trace_.note("stream_overlap", trace_.strings.text(row.name),
                  "work of one stream overlapped (rounded clocks, dependent launches); the later part was clipped",
                  false);
      const std::int64_t end = std::max(row.start + row.duration, busy);
      row.start = busy;
      row.duration = end - busy;
    }
    busy = row.start + row.duration;
    op_of_device_row_[i] = append_device_row(row);
  }
}

OpId Assembler::append_device_row(const KinetoDeviceRow& row) {
  OpRow op{.name = row.name,
           .kind = row.kind,
           .lane = row.lane,
           .flags = row.flags,
           .start = Picos(row.start),
           .duration = Picos(row.duration),
           .bytes = Bytes(row.bytes),
           .flops = Flops(row.flops)};
  if (row.launch == no_launch) {
    op.flags |= static_cast<std::uint8_t>(OpFlag::missing_launch);
    trace_.note("missing_launch", trace_.strings.text(row.name),
                "GPU work without a recorded launch (before the window, or dropped); it keeps its recorded place",
                false);
    return trace_.append_op(op);
  }
  trace_.ops.flags[row.launch] |= row.flags;  // pageable copies block their call
  op.launched_by = OpId(row.launch);
  op.span = trace_.ops.span[row.launch];
  return trace_.append_op(op);
}

void Assembler::note_launches_without_work() {
  if (trace_.ops.size() == host_ops_) return;
  std::vector<bool> works(host_ops_, false);
  for (std::size_t i = host_ops_; i < trace_.ops.size(); ++i)
    if (trace_.ops.launched_by[i] != OpId::none) works[index_of(trace_.ops.launched_by[i])] = true;
  for (std::size_t i = 0; i < host_ops_; ++i)
    if (trace_.ops.kind[i] == OpKind::launch && !works[i])
      trace_.note("launch_without_work", trace_.strings.text(trace_.ops.name[i]),
                  "its GPU work was not recorded (after the window, dropped, or of size 0)", false);
}

void Assembler::append_memory() {
  auto& memory = rows_.memory;
  std::stable_sort(memory.begin(), memory.end(), [](const KinetoMemoryRow& a, const KinetoMemoryRow& b) {
    return a.event.time != b.event.time ? a.event.time < b.event.time : a.index < b.index;
  });
  const auto& starts = trace_.ops.start;
  std::size_t next = 0;
  std::unordered_set<std::uint64_t> live;
  bool usable = false;
  trace_.memory_events.reserve(memory.size());
  for (auto& row : memory) {
    MemoryEvent& event = row.event;
    while (next < host_ops_ && starts[next] <= event.time) ++next;
    if (next != 0) event.anchor = OpId(static_cast<std::uint32_t>(next - 1));
    trace_.memory_events.push_back(event);
    if (event.device < 0 || event.address.count() == 0) continue;
    usable = true;
    if (event.action == MemoryAction::allocate) {
      live.insert(event.address.count());
    } else if (live.erase(event.address.count()) == 0) {
      trace_.note("free_of_earlier_block", "", "blocks allocated before the capture were freed in it", false);
      if (event.total_allocated < Bytes(0))
        trace_.note("memory_before_unknown", "",
                    "blocks allocated before the capture were freed in it, and no total "
                    "says how much was there",
                    false);
    }
  }
  trace_.memory_size_is_requested = false;
  if (usable)
    trace_.set(Capability::memory);
  else if (!memory.empty())
    trace_.note("no_device_memory_events", "", "no memory event names a GPU block; record with a newer torch", false);
}

}  // namespace

Picos assemble_kineto(KinetoRows& rows, Trace& trace) { return Assembler(rows, trace).run(); }

}  // namespace spillway::traces
