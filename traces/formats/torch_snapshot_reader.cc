#include "traces/formats/torch_snapshot_reader.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/input_error.h"
#include "traces/formats/pickle_reader.h"
#include "traces/lane_index.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

constexpr std::uint64_t max_pickle_bytes = std::uint64_t{8} << 30;
constexpr std::uint64_t max_size_bytes = std::uint64_t{1} << 60;  // sums of a few stay inside int64
constexpr std::size_t max_devices = 4096;
constexpr std::size_t deepest_stack = 512, most_frames = std::size_t{1} << 22;

constexpr std::array<std::pair<std::string_view, MemoryAction>, 9> actions = {{
    {"alloc", MemoryAction::allocate},
    {"free_requested", MemoryAction::free_requested},
    {"free_completed", MemoryAction::free_completed},
    {"segment_alloc", MemoryAction::segment_allocate},
    {"segment_free", MemoryAction::segment_free},
    {"segment_map", MemoryAction::segment_map},
    {"segment_unmap", MemoryAction::segment_unmap},
    {"oom", MemoryAction::out_of_memory},
    {"snapshot", MemoryAction::snapshot},
}};

class SnapshotReader {
 public:
  SnapshotReader(const Pickle& pickle, FileMemory& memory) : pickle_(pickle), memory_(memory), file_(memory.file()) {}

  Trace read() {
    const Ref root = pickle_.root();
    const bool is_snapshot = pickle_.kind(root) == Pickle::Kind::dictionary;
    const Ref segments = is_snapshot ? pickle_.find(root, "segments") : Pickle::no_value;
    const Ref traces = is_snapshot ? pickle_.find(root, "device_traces") : Pickle::no_value;
    if (is_snapshot && segments == Pickle::no_value && traces == Pickle::no_value)
      throw InputError(file_, "", "a pickle without \"segments\" and \"device_traces\": not a memory snapshot",
                       "save it with torch.cuda.memory._dump_snapshot");
    const bool is_list = pickle_.kind(root) == Pickle::Kind::list && !pickle_.items(root).empty();
    if (!is_snapshot && !is_list)
      throw InputError(file_, "", "a pickle of something else than a memory snapshot",
                       "save it with torch.cuda.memory._dump_snapshot");
    trace_.provenance.push_back(
        {.file = file_, .format = "torch-snapshot", .producer = "PyTorch", .schema_version = ""});
    trace_.memory_size_is_requested = true;
    find_time_base(traces, pickle_.find(root, "external_annotations"));
    read_settings(pickle_.find(root, "allocator_settings"));
    // The oldest snapshots are a bare list of segments.
    read_segments(is_snapshot ? segments : root);
    read_traces(traces);
    read_annotations(pickle_.find(root, "external_annotations"));
    if (!trace_.memory_events.empty() || !trace_.memory_segments.empty()) trace_.set(Capability::memory);
    trace_.check_invariants();
    return std::move(trace_);
  }

 private:
  using Ref = Pickle::Ref;

  // The rows of a list. A pickle can put one list, or one row, in many places: whoever reads each of them as often as
  // it stands somewhere never ends, so the items that are looked at are counted. Nothing that PyTorch writes shares
  // rows; the rows with times are read twice.
  std::span<const Ref> rows(Ref list) {
    const std::span<const Ref> found = pickle_.items(list);
    walk(found.size());
    for (const Ref row : found) walk(pickle_.items(row).size());
    return found;
  }

  void walk(std::size_t items) {
    constexpr std::uint64_t often = 4;
    walked_ += items;
    if (walked_ > often * pickle_.item_count())
      throw InputError(file_, "", "the same rows stand in it over and over: not a memory snapshot",
                       "save it with torch.cuda.memory._dump_snapshot");
  }

  std::optional<std::int64_t> integer(Ref row, std::string_view key) const {
    return pickle_.integer(pickle_.find(row, key));
  }

  // A size in [0, 2^60); anything else is noted under the row's name and left out.
  std::optional<Bytes> size(Ref row, std::string_view key) const {
    const auto value = integer(row, key);
    if (!value || *value < 0 || static_cast<std::uint64_t>(*value) > max_size_bytes) return {};
    return Bytes(*value);
  }

  void consider_time(Ref row) {
    const auto time = integer(row, "time_us");
    if (time && *time > 0 && (!base_us_ || *time < *base_us_)) base_us_ = time;
  }

  void find_time_base(Ref traces, Ref annotations) {
    for (const Ref device : rows(traces))
      for (const Ref row : rows(device)) consider_time(row);
    for (const Ref row : rows(annotations)) consider_time(row);
    std::int64_t base_ns = 0;
    if (base_us_ && __builtin_mul_overflow(*base_us_, std::int64_t{1000}, &base_ns)) base_us_.reset();
    trace_.time_base_ns = base_us_ ? base_ns : 0;
  }

  Picos time(Ref row) {
    const auto recorded = integer(row, "time_us");
    if (!recorded || !base_us_ || *recorded <= 0) return unknown_time;
    std::int64_t picos = 0;
    if (__builtin_mul_overflow(*recorded - *base_us_, picos_per_microsecond.count(), &picos)) {
      trace_.note("time_out_of_range", std::to_string(*recorded) + " us",
                  "the event is kept without its time; it lies more than 106 days after the first", false);
      return unknown_time;
    }
    return Picos(picos);
  }

  std::string value_text(Ref value) const {
    using Kind = Pickle::Kind;
    switch (pickle_.kind(value)) {
      case Kind::text:
        return std::string(pickle_.text(value));
      case Kind::boolean:
        return *pickle_.integer(value) != 0 ? "True" : "False";
      case Kind::integer:
        return std::to_string(*pickle_.integer(value));
      case Kind::unsigned_integer:
        return std::to_string(*pickle_.unsigned_integer(value));
      case Kind::floating:
        return std::to_string(*pickle_.floating(value));
      case Kind::none:
        return "None";
      case Kind::list:
      case Kind::tuple:
      case Kind::dictionary:
        break;
    }
    return "...";
  }

  void read_settings(Ref settings) {
    const auto entries = pickle_.items(settings);
    if (entries.empty() || settings == Pickle::no_value || pickle_.kind(settings) != Pickle::Kind::dictionary) return;
    std::string text;
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
      memory_.add(pickle_.text(entries[i]).size() + pickle_.text(entries[i + 1]).size());
      text += (text.empty() ? "" : " ") + value_text(entries[i]) + "=" + value_text(entries[i + 1]);
    }
    trace_.note("allocator_settings", text, "the settings the recorded allocator ran with", false);
    trace_.provenance.front().producer = "PyTorch, " + text;
  }

  std::int16_t device(std::int64_t number) {
    if (number >= 0 && number < static_cast<std::int64_t>(max_devices)) return static_cast<std::int16_t>(number);
    trace_.note("device_out_of_range", std::to_string(number),
                "a device's number is out of range and counts as device 0", false);
    return 0;
  }

  LaneId stream(Ref row, std::int16_t device) {
    const Ref value = pickle_.find(row, "stream");
    const auto small = pickle_.integer(value);
    const auto wide = pickle_.unsigned_integer(value);
    if (!small && !wide) return LaneId::none;
    const std::int64_t number = small ? *small : static_cast<std::int64_t>(*wide);
    Lane lane{.kind = LaneKind::stream, .device = device, .number = number};
    if (const LaneId known = lanes_.find(lane); known != LaneId::none) return known;
    lane.name = trace_.strings.intern("stream " + std::to_string(number));
    return lanes_.lane(lane);
  }

  void read_segments(Ref segments) {
    std::size_t index = 0;
    for (const Ref row : rows(segments)) {
      const std::string place = "segments[" + std::to_string(index++) + "]";
      const auto total = size(row, "total_size");
      const auto address = pickle_.unsigned_integer(pickle_.find(row, "address"));
      if (!total || !address || *address + static_cast<std::uint64_t>(total->count()) < *address) {
        trace_.note("bad_segment", place, "the segment has no usable address or size and is left out", true);
        continue;
      }
      MemorySegment segment{.address = Addr(*address), .total = *total};
      segment.device = device(integer(row, "device").value_or(0));
      segment.stream = stream(row, segment.device);
      segment.large = pickle_.text(pickle_.find(row, "segment_type")) == "large";
      segment.expandable = integer(row, "is_expandable").value_or(0) != 0;
      segment.first_block = static_cast<std::uint32_t>(trace_.memory_blocks.size());
      read_blocks(pickle_.find(row, "blocks"), *address, place);
      segment.block_count = static_cast<std::uint32_t>(trace_.memory_blocks.size()) - segment.first_block;
      memory_.add(sizeof segment);
      trace_.memory_segments.push_back(segment);
    }
  }

  void read_blocks(Ref blocks, std::uint64_t next_address, const std::string& segment) {
    for (const Ref row : rows(blocks)) {
      const auto bytes = size(row, "size");
      if (!bytes) {
        trace_.note("bad_block", segment, "the block has no usable size and is left out", true);
        continue;
      }
      // Without an address a block lies right behind the one before it.
      const auto address = pickle_.unsigned_integer(pickle_.find(row, "address"));
      MemoryBlock block{.address = Addr(address.value_or(next_address)), .size = *bytes, .requested = *bytes};
      block.requested = size(row, "requested_size").value_or(*bytes);
      const std::string_view state = pickle_.text(pickle_.find(row, "state"));
      if (state == "active_allocated") block.state = BlockState::allocated;
      if (state == "active_pending_free" || state == "active_awaiting_free") block.state = BlockState::pending_free;
      block.stack = stack(row);
      next_address = block.address.count() + static_cast<std::uint64_t>(bytes->count());
      memory_.add(sizeof block);
      trace_.memory_blocks.push_back(block);
    }
  }

  void read_traces(Ref traces) {
    std::int64_t number = 0;
    std::size_t devices_with_events = 0;
    for (const Ref events : rows(traces)) {
      const std::size_t before = trace_.memory_events.size();
      std::size_t index = 0;
      for (const Ref row : rows(events)) {
        ++trace_.source_events;
        read_event(row, device(number),
                   "device_traces[" + std::to_string(number) + "][" + std::to_string(index++) + "]");
      }
      if (trace_.memory_events.size() > before) ++devices_with_events;
      ++number;
    }
    const auto by_time = [](const MemoryEvent& a, const MemoryEvent& b) { return a.time < b.time; };
    // One device's list is in call order already; several are merged by time.
    if (devices_with_events > 1) std::stable_sort(trace_.memory_events.begin(), trace_.memory_events.end(), by_time);
  }

  void read_event(Ref row, std::int16_t device, const std::string& place) {
    const std::string_view name = pickle_.text(pickle_.find(row, "action"));
    const auto* known = std::find_if(actions.begin(), actions.end(), [&](const auto& a) { return a.first == name; });
    if (known == actions.end()) {
      const bool is_memory = name != "annotate";
      trace_.note(is_memory ? "unknown_memory_action" : "annotation_of_memory",
                  place + ": \"" + std::string(name.substr(0, 40)) + "\"",
                  "a kind of event this version does not know; left out", is_memory);
      return;
    }
    MemoryEvent event{.time = time(row), .action = known->second, .device = device};
    event.stream = stream(row, device);
    const bool has_bytes = event.action != MemoryAction::snapshot;
    const bool has_address = has_bytes && event.action != MemoryAction::out_of_memory;
    const auto bytes = size(row, "size");
    const auto address = pickle_.unsigned_integer(pickle_.find(row, "addr"));
    if ((has_bytes && !bytes) || (has_address && !address)) {
      trace_.note("bad_memory_event", place, "the event has no usable size or address and is left out", true);
      return;
    }
    event.bytes = bytes.value_or(Bytes(0));
    event.stack = stack(row);
    const Ref free = pickle_.find(row, "device_free");
    if (event.action == MemoryAction::out_of_memory)
      if (const auto left = pickle_.unsigned_integer(free)) event.address = Addr(*left);
    if (has_address) event.address = Addr(*address);
    memory_.add(sizeof event);
    trace_.memory_events.push_back(event);
  }

  void read_annotations(Ref annotations) {
    // Open STARTs per (device, name); an END closes the latest.
    std::map<std::pair<std::int64_t, std::string_view>, std::vector<std::size_t>> open;
    for (const Ref row : rows(annotations)) {
      const std::string_view name = pickle_.text(pickle_.find(row, "name"));
      memory_.add(name.size());  // each time: rows share it
      const auto key = std::pair(integer(row, "device").value_or(0), name);
      const Picos at = time(row);
      if (at == unknown_time) continue;
      if (pickle_.text(pickle_.find(row, "stage")) == "START") {
        open[key].push_back(trace_.spans.size());
        append_span(name, at);
        continue;
      }
      auto& starts = open[key];
      if (starts.empty()) {
        trace_.note("annotation_without_start", name, "it began before the recording; left out", true);
        continue;
      }
      trace_.spans.duration[starts.back()] = std::max(at - trace_.spans.start[starts.back()], Picos(0));
      starts.pop_back();
    }
    for (const auto& entry : open)
      for (std::size_t i = 0; i < entry.second.size(); ++i)
        trace_.note("annotation_without_end", entry.first.second, "kept with length 0", false);
  }

  // "train.py:31 step" from {filename, line, name}.
  StringId place_of(Ref frame) {
    const auto known = place_of_frame_.find(frame);
    if (known != place_of_frame_.end()) return known->second;
    const std::string_view file = pickle_.text(pickle_.find(frame, "filename"));
    const std::string_view function = pickle_.text(pickle_.find(frame, "name"));
    memory_.add(file.size() + function.size());
    std::string text = file.empty() ? std::string("?") : to_valid_utf8(file);
    if (const auto line = integer(frame, "line"); line && *line > 0) text += ":" + std::to_string(*line);
    if (!function.empty()) text += " " + to_valid_utf8(function);
    return place_of_frame_.emplace(frame, trace_.strings.intern(text)).first->second;
  }

  // Rows share their lists of frames, innermost first. Without frames, or where they were not kept: none.
  std::uint32_t stack(Ref row) {
    const Ref list = pickle_.find(row, "frames");
    const auto frames = pickle_.items(list);
    if (frames.empty()) return no_stack;
    const auto known = stack_of_list_.find(list);
    if (known != stack_of_list_.end()) return known->second;
    std::uint32_t at = no_stack;
    const std::size_t depth = std::min(frames.size(), deepest_stack);
    for (std::size_t i = depth; i-- > 0;) {
      if (pickle_.kind(frames[i]) != Pickle::Kind::dictionary) continue;
      const StringId place = place_of(frames[i]);
      const auto [found, is_new] = frame_at_.try_emplace(std::pair(at, place), 0U);
      if (is_new) {
        if (trace_.stack_frames.size() >= most_frames) break;
        memory_.add(sizeof(StackFrame) + sizeof *found);
        found->second = static_cast<std::uint32_t>(trace_.stack_frames.size());
        trace_.stack_frames.push_back({place, at});
      }
      at = found->second;
    }
    stack_of_list_.emplace(list, at);
    return at;
  }

  void append_span(std::string_view name, Picos start) {
    Spans& spans = trace_.spans;
    memory_.add(64);
    spans.name.push_back(trace_.strings.intern(name));
    spans.kind.push_back(SpanKind::annotation);
    spans.lane.push_back(lanes_.lane({.kind = LaneKind::host_thread, .name = trace_.strings.intern("annotations")}));
    spans.start.push_back(start);
    spans.duration.push_back(Picos(0));
    spans.sequence.push_back(-1);
    spans.record_id.push_back(-1);
  }

  const Pickle& pickle_;
  FileMemory& memory_;
  std::string file_;
  std::uint64_t walked_ = 0;
  Trace trace_;
  std::optional<std::int64_t> base_us_;
  LaneIndex lanes_{trace_};
  std::unordered_map<Ref, StringId> place_of_frame_;
  std::unordered_map<Ref, std::uint32_t> stack_of_list_;
  std::map<std::pair<std::uint32_t, StringId>, std::uint32_t> frame_at_;
};

}  // namespace

Trace read_torch_snapshot(ByteSource& source, const ReadOptions& options) {
  FileMemory memory(source.name());
  PickleLimits limits;
  if (!options.keep_stacks) limits.skipped_key = "frames";
  const Pickle pickle(source.read_all(std::min(options.max_decompressed_bytes, max_pickle_bytes)), memory, limits);
  return SnapshotReader(pickle, memory).read();
}

}  // namespace spillway::traces
