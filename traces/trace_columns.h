// Every field of a Trace, once: the one list from which spillway's own two file forms are written and read.
//
// visit_trace(trace, visitor) calls, in a fixed order,
//   visitor.table(name, rows)                           a table begins
//   visitor.optional_table(name, rows)                  likewise, left out of files where it is empty; false: none
//   visitor.column(name, type, resize, get, set)        one column of it; values as int64
// `get(i)` gives row i; `set(i, value)` puts it back and returns false when the value is out of the field's range.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

// Times beyond this (26 days) are refused: sums of three must not overflow.
inline constexpr Picos longest_time{std::int64_t{1} << 61};

// A field as int64 and back. Unsigned 64-bit values keep their bits.
template <class T>
std::int64_t to_number(const T& value) {
  if constexpr (requires { value.count(); }) {
    return static_cast<std::int64_t>(value.count());
  } else {
    return static_cast<std::int64_t>(value);
  }
}

template <class T>
struct FieldRange {
  static bool from_number(std::int64_t number, T& value) {
    if constexpr (requires { value.count(); }) {
      value = T(static_cast<typename T::rep>(number));
      if constexpr (std::is_same_v<T, Picos>)
        return value == unknown_time || (value >= -longest_time && value <= longest_time);
      return true;
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> plain{};
      if (!FieldRange<std::underlying_type_t<T>>::from_number(number, plain)) return false;
      value = static_cast<T>(plain);
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {
      value = number != 0;
      return number == 0 || number == 1;
    } else {
      if constexpr (sizeof(T) < sizeof(std::int64_t))
        if (number < static_cast<std::int64_t>(std::numeric_limits<T>::min()) ||
            number > static_cast<std::int64_t>(std::numeric_limits<T>::max()))
          return false;
      value = static_cast<T>(number);
      return true;
    }
  }
};

// Names of the values of an enumeration, in order.
std::span<const std::string_view> names_of(OpKind);
std::span<const std::string_view> names_of(Phase);
std::span<const std::string_view> names_of(LaneKind);
std::span<const std::string_view> names_of(SpanKind);
std::span<const std::string_view> names_of(TensorRole);
std::span<const std::string_view> names_of(Access);
std::span<const std::string_view> names_of(EdgeKind);
std::span<const std::string_view> names_of(MemoryAction);
std::span<const std::string_view> names_of(BlockState);
std::span<const std::string_view> names_of(CollectiveKind);

// Meaning of a column's numbers.
struct ColumnType {
  bool is_text = false;                       // index into Trace::strings
  std::span<const std::string_view> names{};  // of an enumeration
  std::optional<std::int64_t> unknown{};      // the number that stands for "not known"
  bool is_flag = false;                       // 0 or 1
};
template <class T>
ColumnType column_type() {
  if constexpr (std::is_same_v<T, StringId>)
    return {.is_text = true};
  else if constexpr (std::is_same_v<T, Picos>)
    return {.unknown = unknown_time.count()};
  else if constexpr (std::is_same_v<T, OpId> || std::is_same_v<T, SpanId> || std::is_same_v<T, TensorId> ||
                     std::is_same_v<T, LaneId>)
    return {.unknown = static_cast<std::int64_t>(T::none)};
  else if constexpr (std::is_same_v<T, bool>)
    return {.is_flag = true};
  else if constexpr (std::is_enum_v<T>)
    return {.names = names_of(T{})};
  else
    return {};
}

namespace detail {

// Columns kept as parallel vectors.
template <class Visitor, class T>
void parallel(Visitor& visitor, const char* name, std::vector<T>& column) {
  ColumnType type = column_type<T>();
  if constexpr (std::is_same_v<T, std::uint16_t>) type.unknown = no_index16;  // layer, micro-batch, step
  if constexpr (std::is_same_v<T, std::int64_t>) type.unknown = -1;           // sequence and record numbers
  visitor.column(
      name, type, [&](std::size_t rows) { column.resize(rows); }, [&](std::size_t i) { return to_number(column[i]); },
      [&](std::size_t i, std::int64_t number) { return FieldRange<T>::from_number(number, column[i]); });
}

// Columns kept as members of rows.
template <class Visitor, class Row, class T>
void member(Visitor& visitor, const char* name, std::vector<Row>& rows, T Row::*field) {
  visitor.column(
      name, column_type<T>(), [&](std::size_t count) { rows.resize(count); },
      [&](std::size_t i) { return to_number(rows[i].*field); },
      [&](std::size_t i, std::int64_t number) { return FieldRange<T>::from_number(number, rows[i].*field); });
}

template <class Visitor>
void visit_ops(Ops& t, Visitor& v) {
  v.table("ops", t.size());
  parallel(v, "name", t.name), parallel(v, "kind", t.kind), parallel(v, "phase", t.phase), parallel(v, "lane", t.lane);
  parallel(v, "layer", t.layer), parallel(v, "micro_batch", t.micro_batch), parallel(v, "step", t.step);
  parallel(v, "flags", t.flags), parallel(v, "start_ps", t.start), parallel(v, "duration_ps", t.duration);
  parallel(v, "launched_by", t.launched_by), parallel(v, "span", t.span), parallel(v, "bytes", t.bytes);
  parallel(v, "flops", t.flops);
}

template <class Visitor>
void visit_spans(Spans& t, Visitor& v) {
  v.table("spans", t.size());
  parallel(v, "name", t.name), parallel(v, "kind", t.kind), parallel(v, "lane", t.lane),
      parallel(v, "start_ps", t.start);
  parallel(v, "duration_ps", t.duration), parallel(v, "sequence", t.sequence), parallel(v, "record_id", t.record_id);
  v.table("span_externals", t.external_id.size());  // none, or one per span
  parallel(v, "id", t.external_id);
}

template <class Visitor>
void visit_tensors(Tensors& t, Visitor& v) {
  v.table("tensors", t.size());
  parallel(v, "name", t.name), parallel(v, "bytes", t.bytes), parallel(v, "storage", t.storage);
  parallel(v, "role", t.role), parallel(v, "dtype", t.dtype);
}

template <class Visitor>
void visit_dependencies(Trace& t, Visitor& v) {
  v.table("syncs", t.syncs.size());
  member(v, "op", t.syncs, &Sync::op), member(v, "lane", t.syncs, &Sync::lane),
      member(v, "event", t.syncs, &Sync::event);
  member(v, "inferred", t.syncs, &Sync::inferred);
  v.table("uses", t.uses.size());
  member(v, "op", t.uses, &Use::op), member(v, "tensor", t.uses, &Use::tensor),
      member(v, "access", t.uses, &Use::access);
  v.table("edges", t.edges.size());
  member(v, "from", t.edges, &Edge::from), member(v, "to", t.edges, &Edge::to), member(v, "kind", t.edges, &Edge::kind);
  member(v, "inferred", t.edges, &Edge::inferred), member(v, "lag_ps", t.edges, &Edge::lag);
  v.table("collectives", t.collectives.size());
  member(v, "op", t.collectives, &Collective::op), member(v, "kind", t.collectives, &Collective::kind);
  member(v, "bytes", t.collectives, &Collective::bytes),
      member(v, "group_size", t.collectives, &Collective::group_size);
  member(v, "group", t.collectives, &Collective::group), member(v, "dtype", t.collectives, &Collective::dtype);
}

template <class Visitor>
void visit_memory(Trace& t, Visitor& v) {
  auto& e = t.memory_events;
  v.table("memory_events", e.size());
  member(v, "time_ps", e, &MemoryEvent::time), member(v, "address", e, &MemoryEvent::address);
  member(v, "bytes", e, &MemoryEvent::bytes), member(v, "total_allocated_bytes", e, &MemoryEvent::total_allocated);
  member(v, "total_reserved_bytes", e, &MemoryEvent::total_reserved), member(v, "anchor", e, &MemoryEvent::anchor);
  member(v, "tensor", e, &MemoryEvent::tensor), member(v, "action", e, &MemoryEvent::action);
  member(v, "device", e, &MemoryEvent::device), member(v, "stream", e, &MemoryEvent::stream);
  auto& s = t.memory_segments;
  v.table("memory_segments", s.size());
  member(v, "address", s, &MemorySegment::address), member(v, "total_bytes", s, &MemorySegment::total);
  member(v, "device", s, &MemorySegment::device), member(v, "stream", s, &MemorySegment::stream);
  member(v, "large", s, &MemorySegment::large), member(v, "expandable", s, &MemorySegment::expandable);
  member(v, "first_block", s, &MemorySegment::first_block), member(v, "block_count", s, &MemorySegment::block_count);
  auto& b = t.memory_blocks;
  v.table("memory_blocks", b.size());
  member(v, "address", b, &MemoryBlock::address), member(v, "size_bytes", b, &MemoryBlock::size);
  member(v, "requested_bytes", b, &MemoryBlock::requested), member(v, "state", b, &MemoryBlock::state);
}

template <class Visitor>
void visit_places(Trace& t, Visitor& v) {
  v.table("lanes", t.lanes.size());
  member(v, "kind", t.lanes, &Lane::kind), member(v, "rank", t.lanes, &Lane::rank),
      member(v, "device", t.lanes, &Lane::device);
  member(v, "number", t.lanes, &Lane::number), member(v, "name", t.lanes, &Lane::name);
  v.table("steps", t.steps.size());
  member(v, "name", t.steps, &Step::name), member(v, "rank", t.steps, &Step::rank),
      member(v, "start_ps", t.steps, &Step::start);
  member(v, "duration_ps", t.steps, &Step::duration);
  v.table("devices", t.devices.size());
  member(v, "name", t.devices, &Device::name), member(v, "rank", t.devices, &Device::rank);
  member(v, "ordinal", t.devices, &Device::ordinal), member(v, "memory_bytes", t.devices, &Device::memory);
  member(v, "multiprocessors", t.devices, &Device::multiprocessors);
}

template <class Visitor>
void visit_fit(CaptureFit& t, Visitor& v) {
  v.table("stream_gaps", t.gaps.size());
  member(v, "stream", t.gaps, &StreamGap::stream), member(v, "launcher", t.gaps, &StreamGap::launcher);
  member(v, "after_copy", t.gaps, &StreamGap::after_copy), member(v, "is_copy", t.gaps, &StreamGap::is_copy);
  member(v, "gap_ps", t.gaps, &StreamGap::gap), member(v, "samples", t.gaps, &StreamGap::samples);
}

template <class Visitor>
void visit_carried(std::vector<Edge>& t, Visitor& v) {
  if (!v.optional_table("carried", t.size())) return;
  member(v, "from", t, &Edge::from), member(v, "to", t, &Edge::to), member(v, "kind", t, &Edge::kind);
}

template <class Visitor>
void visit_unprofiled(std::vector<StepTime>& t, Visitor& v) {
  if (!v.optional_table("unprofiled_steps", t.size())) return;
  member(v, "duration_ps", t, &StepTime::duration);
}

template <class Visitor>
void visit_waits(std::vector<UnexplainedWait>& t, Visitor& v) {
  if (!v.optional_table("unexplained_waits", t.size())) return;
  member(v, "op", t, &UnexplainedWait::op), member(v, "time_ps", t, &UnexplainedWait::time);
}

template <class Visitor>
void visit_stacks(Trace& t, Visitor& v) {
  if (!v.optional_table("stack_frames", t.stack_frames.size())) return;
  member(v, "place", t.stack_frames, &StackFrame::place), member(v, "caller", t.stack_frames, &StackFrame::caller);
  v.table("memory_event_stacks", t.memory_events.size());
  member(v, "stack", t.memory_events, &MemoryEvent::stack);
  v.table("memory_block_stacks", t.memory_blocks.size());
  member(v, "stack", t.memory_blocks, &MemoryBlock::stack);
}

template <class Visitor>
void visit_start_up(Trace& t, Visitor& v) {
  auto& e = t.start_up;
  if (!v.optional_table("start_up", e.size())) return;
  member(v, "bytes", e, &StartUpEvent::bytes), member(v, "block", e, &StartUpEvent::block);
  member(v, "allocates", e, &StartUpEvent::allocates), member(v, "late", e, &StartUpEvent::late);
  member(v, "device", e, &StartUpEvent::device), member(v, "stream", e, &StartUpEvent::stream);
  member(v, "tensor", e, &StartUpEvent::tensor);
}

template <class Visitor>
void visit_powers(std::vector<DevicePower>& t, Visitor& v) {
  if (!v.optional_table("powers", t.size())) return;
  member(v, "rank", t, &DevicePower::rank), member(v, "clock_millionths", t, &DevicePower::clock_millionths);
  member(v, "idle_milliwatts", t, &DevicePower::idle_milliwatts);
  member(v, "limit_milliwatts", t, &DevicePower::limit_milliwatts);
  member(v, "work_microjoules", t, &DevicePower::work_microjoules);
}

}  // namespace detail

template <class Visitor>
void visit_trace(Trace& trace, Visitor& visitor) {
  detail::visit_places(trace, visitor);
  detail::visit_ops(trace.ops, visitor);
  detail::visit_spans(trace.spans, visitor);
  detail::visit_tensors(trace.tensors, visitor);
  detail::visit_dependencies(trace, visitor);
  detail::visit_memory(trace, visitor);
  detail::visit_fit(trace.capture_fit, visitor);
  detail::visit_carried(trace.carried, visitor);
  detail::visit_start_up(trace, visitor);
  detail::visit_powers(trace.powers, visitor);
  detail::visit_waits(trace.unexplained_waits, visitor);
  detail::visit_stacks(trace, visitor);
  detail::visit_unprofiled(trace.unprofiled_steps, visitor);
}

// The rest of a Trace: a few numbers, and texts in groups of fixed length.
struct TraceRemainder {
  std::vector<std::int64_t> numbers;  // see remainder_of
  std::vector<std::string> texts;
};
TraceRemainder remainder_of(const Trace& trace);
// False when it does not fit together.
bool restore_remainder(const TraceRemainder& remainder, Trace& trace);

// Whether ids, enumerations and ranges of a trace from a file are in range, so that check_invariants holds.
// Gives the first thing that is not; empty when all is well. O(size).
std::string first_inconsistency(const Trace& trace);

}  // namespace spillway::traces
