#include "traces/formats/kineto/kineto_rows.h"
#include "traces/dtype.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "traces/formats/kineto/json_tokenizer.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

using Field = KinetoField;

// 25 days. Starts this far before and after the origin, a duration this long and the shift to the first event
// add up to less than 2^63 picoseconds.
constexpr std::int64_t span_limit_us = 2'200'000'000'000;

constexpr std::int64_t max_block_bytes = std::int64_t{1} << 60;

std::string at_byte(std::uint64_t place) { return "byte " + std::to_string(place); }

// "7", "stream 7": the last number in the text; `fallback` if there is none.
std::int64_t trailing_number(std::string_view text, std::int64_t fallback) {
  const std::size_t begin = text.find_last_not_of("0123456789") + 1;
  std::int64_t value = fallback;
  std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return value;
}

}  // namespace

StringId KinetoRows::intern(const KinetoEvent& event, KinetoField field) {
  const std::string_view text = event.text(field);
  const bool is_ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
  return is_ascii ? trace_.strings.intern(text) : trace_.strings.intern(to_valid_utf8(text));
}

void KinetoRows::add(const KinetoEvent& event, std::uint64_t place) {
  if (event.quotes_mended)
    trace_.note("unescaped_quotes", at_byte(place), "quotes inside a name were not escaped; the name was kept", false);
  if (event.phase == 'X')
    add_complete(event, place);
  else if (event.phase == 'i' || event.phase == 'I') {
    if (event.text(Field::name) == "[memory]") add_memory(event, place);
  } else if (event.phase == 'M')
    add_label(event);
  else if (event.phase == 'B' || event.phase == 'E')
    trace_.note("begin_end_events", at_byte(place), "only complete events (ph X) are read; export with torch.profiler",
                true);
}

bool KinetoRows::instant_of(const KinetoEvent& event, std::int64_t& at, std::uint64_t place) {
  const auto drop = [&](const char* kind, const char* why) {
    if (event.phase == 'X')
      trace_.note(kind, at_byte(place), why, true);
    else
      trace_.note("memory_without_time", at_byte(place), "a memory event without a usable \"ts\" was dropped", true);
    return false;
  };
  json::Micros micros;
  if (!json::parse_micros(event.text(Field::timestamp), micros))
    return drop("bad_time", "an event has no usable \"ts\"; it was dropped");
  if (micros.whole == 0 && origin_us_ != 0)
    return drop("zero_time", "the profiler had no time for this event; it was dropped");
  std::int64_t delta = 0;
  if (__builtin_sub_overflow(micros.whole, origin_us_, &delta) || delta > span_limit_us || delta < -span_limit_us)
    return drop("time_out_of_range", "more than 25 days from the first event; it was dropped");
  at = delta * 1'000'000 + micros.picos;
  return true;
}

bool KinetoRows::interval_of(const KinetoEvent& event, Interval& interval, std::uint64_t place) {
  if (!instant_of(event, interval.start, place)) return false;
  json::Micros micros;
  if (!json::parse_micros(event.text(Field::duration), micros)) {
    trace_.note("bad_duration", at_byte(place), "an event has no usable \"dur\"; it was dropped", true);
    return false;
  }
  if (micros.whole < 0) {
    trace_.note("negative_duration", at_byte(place), "the profiler's clocks disagree; the event was dropped", true);
    return false;
  }
  if (micros.whole > span_limit_us) {
    trace_.note("time_out_of_range", at_byte(place), "longer than 25 days; the event was dropped", true);
    return false;
  }
  interval.duration = micros.whole * 1'000'000 + micros.picos;
  memory_.add(sizeof(KinetoDeviceRow) + sizeof(OpRow));  // of what is made of it: about that, whatever it is
  return true;
}

void KinetoRows::add_complete(const KinetoEvent& event, std::uint64_t place) {
  if (event.category == KinetoCategory::python && !keep_python_) return;
  switch (event.category) {
    case KinetoCategory::gpu_annotation:  // repeats host annotations with lengths of its own
    case KinetoCategory::other:
      return;
    case KinetoCategory::none:
      add_uncategorised(event, place);
      return;
    case KinetoCategory::sync:
      add_sync(event);
      return;
    case KinetoCategory::cpu_operator:
    case KinetoCategory::annotation:
    case KinetoCategory::runtime:
    case KinetoCategory::driver:
    case KinetoCategory::kernel:
    case KinetoCategory::copy:
    case KinetoCategory::memset:
    case KinetoCategory::python:
      break;
  }
  Interval interval;
  if (!interval_of(event, interval, place)) return;
  if (event.category == KinetoCategory::cpu_operator)
    add_span(event, interval, SpanKind::cpu_operator);
  else if (event.category == KinetoCategory::annotation)
    add_span(event, interval, SpanKind::annotation);
  else if (event.category == KinetoCategory::python)
    add_span(event, interval, SpanKind::python);
  else if (event.category == KinetoCategory::runtime || event.category == KinetoCategory::driver)
    add_host_call(event, interval);
  else
    add_device_work(event, interval);
}

void KinetoRows::add_span(const KinetoEvent& event, const Interval& interval, SpanKind kind) {
  const StringId name = intern(event, Field::name);
  if (kind != SpanKind::python && event.text(Field::name).starts_with("ProfilerStep#"))
    steps.push_back({.name = name, .start = Picos(interval.start), .duration = Picos(interval.duration)});
  spans.push_back({.start = interval.start,
                   .duration = interval.duration,
                   .sequence = event.integer(Field::sequence, -1),
                   .record_id = event.integer(Field::record_id, -1),
                   .external_id = event.integer(Field::external_id, -1),
                   .name = name,
                   .lane = thread_lane(event),
                   .kind = kind});
}

void KinetoRows::add_host_call(const KinetoEvent& event, const Interval& interval) {
  const StringId name = intern(event, Field::name);
  const auto [found, is_new] = calls_.try_emplace(static_cast<std::int64_t>(name));
  if (is_new) found->second = classify_host_call(trace_.strings.text(name));
  host.push_back({.start = interval.start,
                  .duration = interval.duration,
                  .correlation = event.integer(Field::correlation, -1),
                  .name = name,
                  .lane = thread_lane(event),
                  .call = found->second});
}

void KinetoRows::add_device_work(const KinetoEvent& event, const Interval& interval) {
  KinetoDeviceRow row{.start = interval.start,
                      .duration = interval.duration,
                      .correlation = event.integer(Field::correlation, -1),
                      .bytes = std::max<std::int64_t>(event.integer(Field::bytes, 0), 0),
                      .flops = std::max<std::int64_t>(event.integer(Field::flops, 0), 0),
                      .name = intern(event, Field::name),
                      .lane = stream_lane(event)};
  if (event.category == KinetoCategory::memset) {
    row.kind = OpKind::memset;
  } else if (event.category == KinetoCategory::copy) {
    const CopyName copy = classify_copy(event.text(Field::name), event.text(Field::copy_kind));
    row.kind = copy.kind;
    if (copy.pageable) row.flags |= static_cast<std::uint8_t>(OpFlag::pageable);
  } else if (event.has(Field::collective_name) || is_collective_kernel(event.text(Field::name))) {
    row.kind = OpKind::collective;
    add_collective(event);
    row.bytes = collectives.back().what.bytes.count();
  }
  device.push_back(row);
}

void KinetoRows::add_collective(const KinetoEvent& event) {
  const Field named = event.has(Field::collective_name) ? Field::collective_name : Field::name;
  Collective what{.kind = classify_collective(event.text(named)),
                  .group = intern(event, Field::group_name),
                  .dtype = intern(event, Field::dtype)};
  std::int64_t elements = event.integer(Field::in_elements, 0), bytes = 0;
  if (elements <= 0) elements = event.integer(Field::out_elements, 0);  // a receiver has no input
  if (elements > 0 && !__builtin_mul_overflow(elements, element_bytes(event.text(Field::dtype)), &bytes))
    what.bytes = Bytes(bytes);
  const std::int64_t group = event.integer(Field::group_size, 0);
  if (group > 0 && group <= std::numeric_limits<std::uint32_t>::max())
    what.group_size = static_cast<std::uint32_t>(group);
  collectives.push_back({static_cast<std::uint32_t>(device.size()), what});
}

void KinetoRows::add_sync(const KinetoEvent& event) {
  memory_.add(sizeof(KinetoSyncRow));
  syncs.push_back(
      {.correlation = event.integer(Field::correlation, -1),
       .stream = event.integer(Field::stream, -1),
       .wait_stream = event.integer(Field::wait_on_stream, -1),
       .record_correlation = event.integer(Field::wait_on_record, -1),
       .device = static_cast<std::int16_t>(std::clamp<std::int64_t>(event.integer(Field::device, 0), 0, 32767))});
}

void KinetoRows::add_memory(const KinetoEvent& event, std::uint64_t place) {
  KinetoMemoryRow row;
  std::int64_t at = 0;
  if (!instant_of(event, at, place)) return;
  const std::int64_t bytes = event.integer(Field::block_bytes, 0);
  if (bytes == 0 || bytes > max_block_bytes || bytes < -max_block_bytes) {
    trace_.note("memory_without_bytes", at_byte(place), "a memory event without a usable size was dropped", true);
    return;
  }
  row.index = event.integer(Field::event_index, 0);
  row.event.time = Picos(at);
  row.event.bytes = Bytes(bytes < 0 ? -bytes : bytes);
  row.event.action = bytes < 0 ? MemoryAction::free_requested : MemoryAction::allocate;
  row.event.total_allocated = Bytes(event.integer(Field::total_allocated, -1));
  row.event.total_reserved = Bytes(event.integer(Field::total_reserved, -1));
  const bool on_device = event.integer(Field::device_type, 0) != 0;
  const std::int64_t ordinal = on_device ? event.integer(Field::device_id, 0) : -1;
  row.event.device = static_cast<std::int16_t>(std::clamp<std::int64_t>(ordinal, on_device ? 0 : -1, 32767));
  const std::string_view address = event.text(Field::address);
  std::uint64_t value = 0;
  if (std::from_chars(address.data(), address.data() + address.size(), value).ec != std::errc())
    value = static_cast<std::uint64_t>(event.integer(Field::address, 0));
  row.event.address = Addr(value);
  if (!event.has(Field::address) && row.event.device >= 0)
    trace_.note(
        "memory_without_address", at_byte(place),
        "memory events without addresses, of torch before 1.11, can't be paired; record again with a newer torch",
        false);
  memory_.add(sizeof row);
  memory.push_back(row);
}

void KinetoRows::set_key(const KinetoEvent& event) {
  scratch_.assign(event.text(Field::process));
  scratch_ += '\n';
  scratch_ += event.text(Field::thread);
}

void KinetoRows::add_label(const KinetoEvent& event) {
  if (!event.has(Field::label)) return;
  const std::string label(event.text(Field::label));
  memory_.add(sizeof label + label.size());
  const std::string_view what = event.text(Field::name);
  if (what == "process_name") {
    process_names_.insert_or_assign(std::string(event.text(Field::process)), label);
  } else if (what == "thread_name") {
    if (label.starts_with("Stream #")) with_streams_.emplace(event.text(Field::process));
    set_key(event);
    thread_names_.insert_or_assign(scratch_, label);
  }
}

// A device's threads are its streams, or on a TPU its line "XLA Ops"; the others say the same again by module or scope.
KinetoRows::NamedLine KinetoRows::named_line(const KinetoEvent& event) {
  const std::string key(event.text(Field::process));
  const auto process = process_names_.find(key);
  if (process == process_names_.end()) return {};
  const std::string_view name = process->second;
  const auto number_behind = [&](std::string_view text, std::string_view mark) {
    const std::size_t at = text.find(mark);
    std::int64_t value = 0;
    if (at != std::string_view::npos) std::from_chars(text.data() + at + mark.size(), text.data() + text.size(), value);
    return value;
  };
  const bool is_gpu = name.starts_with("/device:GPU:"), is_tpu = name.starts_with("/device:TPU:");
  if (is_gpu || is_tpu) {
    set_key(event);
    const auto thread = thread_names_.find(scratch_);
    const std::string_view line = thread == thread_names_.end() ? std::string_view() : thread->second;
    const bool works = with_streams_.contains(key) ? line.starts_with("Stream #") : line == "XLA Ops";
    if (!works) return {Line::left_out, LaneId::none};
    return {Line::device, stream_lane(number_behind(name, "PU:"), number_behind(line, "Stream #"))};
  }
  if (name.starts_with("/host:")) return {Line::host, thread_lane(event)};
  if (name.starts_with("GPU") && name.size() > 3 && name.find_first_not_of("0123456789", 3) == std::string_view::npos)
    return {Line::device, stream_lane(number_behind(name, "GPU"), event.integer(Field::thread, 0))};
  // Of rocprof, whose copies name no device and no stream: a number that no queue has.
  if (name == "COPY") return {Line::copies, stream_lane(0, 1'000'000)};
  if (name.starts_with("CPU HIP API") || name.starts_with("Markers")) return {Line::host, thread_lane(event)};
  return {};
}

void KinetoRows::add_uncategorised(const KinetoEvent& event, std::uint64_t place) {
  set_key(event);
  auto found = lines_.find(scratch_);
  if (found == lines_.end()) {
    const std::string key = scratch_;
    found = lines_.emplace(key, named_line(event)).first;
  }
  const NamedLine line = found->second;
  if (line.what == Line::unknown)
    trace_.note("no_category", at_byte(place), "a complete event without \"cat\" is ambiguous; ignored", true);
  Interval interval;
  if (line.what == Line::unknown || line.what == Line::left_out || !interval_of(event, interval, place)) return;
  trace_.note("times_only", at_byte(place), "read from a trace that says no more than when work ran", false);
  if (line.what == Line::host) return add_span(event, interval, SpanKind::annotation);
  const std::string_view name = event.text(Field::name);
  KinetoDeviceRow row{
      .start = interval.start, .duration = interval.duration, .name = intern(event, Field::name), .lane = line.lane};
  if (line.what == Line::copies || name.starts_with("Memcpy"))
    row.kind = classify_copy(name, name.starts_with("MemcpyH2D")   ? "HtoD"
                                   : name.starts_with("MemcpyD2H") ? "DtoH"
                                                                   : "")
                   .kind;
  else if (name.starts_with("Memset"))
    row.kind = OpKind::memset;
  else if (is_collective_kernel(name)) {
    row.kind = OpKind::collective;
    add_collective(event);
  }
  device.push_back(row);
}

// Threads of several processes may share a number: the second of them gets one made of both.
LaneId KinetoRows::thread_lane(const KinetoEvent& event) {
  set_key(event);
  if (last_thread_lane_ != LaneId::none && scratch_ == last_thread_) return last_thread_lane_;
  const auto [found, is_new] = threads_.try_emplace(scratch_, LaneId::none);
  if (is_new) {
    const std::int64_t process = event.integer(Field::process, 0);
    const std::int64_t unused = -2 - static_cast<std::int64_t>(threads_.size());
    std::int64_t number = trailing_number(event.text(Field::thread), unused);
    const auto taken = [&](std::int64_t n) {
      return lanes_.find({.kind = LaneKind::host_thread, .number = n}) != LaneId::none;
    };
    if (taken(number)) number = ((process & 0x7fffffff) << 32) | (number & 0xffffffff);
    if (taken(number)) number = unused;
    found->second = lanes_.lane({.kind = LaneKind::host_thread,
                                 .number = number,
                                 .name = trace_.strings.intern("thread " + to_valid_utf8(event.text(Field::thread)))});
  }
  last_thread_ = scratch_;
  last_thread_lane_ = found->second;
  return found->second;
}

LaneId KinetoRows::stream_lane(const KinetoEvent& event) {
  const std::int64_t ordinal = event.integer(Field::device, trailing_number(event.text(Field::process), 0));
  return stream_lane(ordinal, event.integer(Field::stream, trailing_number(event.text(Field::thread), 0)));
}

LaneId KinetoRows::stream_lane(std::int64_t recorded_device, std::int64_t stream) {
  const auto ordinal = static_cast<std::int16_t>(std::clamp<std::int64_t>(recorded_device, 0, 32767));
  const Lane wanted{.kind = LaneKind::stream, .device = ordinal, .number = stream};
  if (last_stream_ != LaneId::none) {
    const Lane& last = trace_.lanes[index_of(last_stream_)];
    if (last.number == stream && last.device == ordinal) return last_stream_;
  }
  last_stream_ = lanes_.find(wanted);
  if (last_stream_ == LaneId::none) {
    last_stream_ = lanes_.lane(wanted);
    trace_.lanes[index_of(last_stream_)].name = trace_.strings.intern("stream " + std::to_string(stream));
  }
  return last_stream_;
}

void KinetoRows::name_lanes() {
  std::vector<std::pair<std::string, LaneId>> known(threads_.begin(), threads_.end());
  std::sort(known.begin(), known.end());
  for (const auto& [key, lane] : known) {
    const auto named = thread_names_.find(key);
    if (named != thread_names_.end())
      trace_.lanes[index_of(lane)].name = trace_.strings.intern(to_valid_utf8(named->second));
  }
}

void KinetoRows::note_informational() {
  if (informational_calls == 0) return;
  trace_.note("informational_calls", "", "host calls that only ask or configure; their time stays in the gaps", false);
  std::find_if(trace_.findings.begin(), trace_.findings.end(), [](const Finding& f) {
    return f.kind == "informational_calls";
  })->count = informational_calls;
}

}  // namespace spillway::traces
