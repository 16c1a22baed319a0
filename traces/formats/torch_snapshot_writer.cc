#include "traces/formats/torch_snapshot_writer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::traces {
namespace {

// Emits pickle instructions; containers are written as they are opened and closed.
class PickleWriter {
 public:
  explicit PickleWriter(OutputFile& out) : out_(out) { text_ = "\x80\x04"; }

  void begin_dictionary() { text_ += "}("; }
  void end_dictionary() {
    text_ += 'u';
    flush();
  }
  void begin_list() { text_ += "]("; }
  void end_list() {
    text_ += 'e';
    flush();
  }

  void text(std::string_view value) {
    const auto found = known_.find(value);
    if (found != known_.end()) return recall(found->second);
    text_ += 'X';
    little_endian(value.size(), 4);
    text_ += value;
    known_.emplace(value, remember());
  }
  void integer(std::int64_t value) {
    if (value >= 0 && value <= UINT8_MAX) {
      text_ += 'K';
      return little_endian(static_cast<std::uint64_t>(value), 1);
    }
    if (value >= 0 && value <= UINT16_MAX) {
      text_ += 'M';
      return little_endian(static_cast<std::uint64_t>(value), 2);
    }
    if (value >= INT32_MIN && value <= INT32_MAX) {
      text_ += 'J';
      return little_endian(static_cast<std::uint64_t>(value), 4);
    }
    text_ += "\x8a\x08";
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
  void address(std::uint64_t value) {
    if (value <= INT64_MAX) return integer(static_cast<std::int64_t>(value));
    text_ += "\x8a\x09";
    little_endian(value, 8);
    text_ += '\0';
  }
  void boolean(bool value) { text_ += value ? '\x88' : '\x89'; }
  void number(double value) {
    text_ += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 7; i >= 0; --i) text_ += static_cast<char>(bits >> (8 * i) & 0xffU);
  }
  void pool_id() {
    text_ += "K";
    text_ += '\0';
    text_ += "K";
    text_ += '\0';
    text_ += '\x86';
  }

  // The value on top gets a number under which recall() brings it back.
  std::uint64_t remember() {
    text_ += '\x94';
    return remembered_++;
  }
  void recall(std::uint64_t index) {
    if (index <= UINT8_MAX) {
      text_ += 'h';
      return little_endian(index, 1);
    }
    text_ += 'j';
    little_endian(index, 4);
  }

  void finish() {
    text_ += '.';
    out_.write(text_);
  }

 private:
  void little_endian(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xffU);
  }
  void flush() {
    if (text_.size() < (std::size_t{1} << 16)) return;
    out_.write(text_);
    text_.clear();
  }
  OutputFile& out_;
  std::string text_;
  std::map<std::string, std::uint64_t, std::less<>> known_;
  std::uint64_t remembered_ = 0;
};

class SnapshotWriter {
 public:
  SnapshotWriter(const Trace& trace, OutputFile& out, std::span<const SnapshotSetting> settings)
      : trace_(trace), out_(out), settings_(settings), work_of_(trace.ops.size(), OpId::none) {
    find_makers();
    for (std::size_t i = trace.ops.size(); i-- > 0;)
      if (const OpId call = trace.ops.launched_by[i]; call != OpId::none)
        work_of_[index_of(call)] = static_cast<OpId>(i);
  }

  void write() {
    out_.begin_dictionary();
    out_.text("segments");
    out_.begin_list();
    for (const MemorySegment& segment : trace_.memory_segments) write_segment(segment);
    out_.end_list();
    out_.text("device_traces");
    write_traces();
    out_.text("allocator_settings");
    write_settings();
    out_.text("external_annotations");
    write_annotations();
    out_.end_dictionary();
    out_.finish();
  }

 private:
  void field(std::string_view key, Bytes value) {
    out_.text(key);
    out_.integer(value.count());
  }
  void field(std::string_view key, std::int64_t value) {
    out_.text(key);
    out_.integer(value);
  }
  void field(std::string_view key, Addr value) {
    out_.text(key);
    out_.address(value.count());
  }
  void field(std::string_view key, std::string_view value) {
    out_.text(key);
    out_.text(value);
  }

  void no_frames() {
    out_.text("frames");
    out_.begin_list();
    out_.end_list();
  }

  std::int64_t stream_number(LaneId lane) const {
    return lane == LaneId::none ? 0 : trace_.lanes[index_of(lane)].number;
  }

  std::int64_t microseconds(Picos time) const {
    return trace_.time_base_ns / 1000 + (time == unknown_time ? 0 : time / picos_per_microsecond);
  }

  void write_settings() {
    out_.begin_dictionary();
    for (const auto& [name, setting] : settings_) {
      out_.text(name);
      if (const auto* flag = std::get_if<bool>(&setting)) out_.boolean(*flag);
      if (const auto* whole = std::get_if<std::int64_t>(&setting)) out_.integer(*whole);
      if (const auto* number = std::get_if<double>(&setting)) out_.number(*number);
      if (const auto* text = std::get_if<std::string>(&setting)) out_.text(*text);
    }
    out_.end_dictionary();
  }

  // Which events made what is there in the end.
  void find_makers() {
    for (const MemoryEvent& event : trace_.memory_events) {
      const auto place = std::pair(event.device, event.address);
      if (event.action == MemoryAction::allocate) block_maker_[place] = &event;
      if (event.action == MemoryAction::segment_allocate || event.action == MemoryAction::segment_map)
        segment_maker_[place] = &event;
    }
  }

  using Makers = std::map<std::pair<std::int16_t, Addr>, const MemoryEvent*>;

  void write_frames_of_maker(const Makers& makers, std::int16_t device, Addr address) {
    const auto maker = makers.find({device, address});
    if (maker == makers.end()) return no_frames();
    write_frames(*maker->second);
  }

  void write_segment(const MemorySegment& segment) {
    Bytes allocated{}, active{}, requested{};
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const MemoryBlock& block = trace_.memory_blocks[segment.first_block + i];
      if (block.state == BlockState::inactive) continue;
      active += block.size;
      requested += block.requested;
      if (block.state == BlockState::allocated) allocated += block.size;
    }
    out_.begin_dictionary();
    field("device", std::int64_t{segment.device});
    field("address", segment.address);
    field("total_size", segment.total);
    field("allocated_size", allocated);
    field("active_size", active);
    field("requested_size", requested);
    field("stream", stream_number(segment.stream));
    field("segment_type", segment.large ? "large" : "small");
    out_.text("segment_pool_id");
    out_.pool_id();
    out_.text("is_expandable");
    out_.boolean(segment.expandable);
    write_frames_of_maker(segment_maker_, segment.device, segment.address);
    out_.text("blocks");
    out_.begin_list();
    for (std::uint32_t i = 0; i < segment.block_count; ++i)
      write_block(trace_.memory_blocks[segment.first_block + i], segment.device);
    out_.end_list();
    out_.end_dictionary();
  }

  void write_block(const MemoryBlock& block, std::int16_t device) {
    constexpr std::string_view states[] = {"active_allocated", "active_pending_free", "inactive"};
    out_.begin_dictionary();
    field("address", block.address);
    field("size", block.size);
    field("requested_size", block.requested);
    field("state", states[static_cast<std::size_t>(block.state)]);
    if (block.state == BlockState::inactive)
      no_frames();
    else if (block.stack != no_stack)
      write_stack(block.stack);
    else
      write_frames_of_maker(block_maker_, device, block.address);
    out_.end_dictionary();
  }

  void write_traces() {
    std::int16_t last_device = -1;
    for (const MemoryEvent& event : trace_.memory_events) last_device = std::max(last_device, event.device);
    for (const MemorySegment& segment : trace_.memory_segments) last_device = std::max(last_device, segment.device);
    out_.begin_list();
    for (std::int16_t device = 0; device <= last_device; ++device) {
      out_.begin_list();
      for (const MemoryEvent& event : trace_.memory_events)
        if (event.device == device) write_event(event);
      out_.end_list();
    }
    out_.end_list();
  }

  void write_event(const MemoryEvent& event) {
    out_.begin_dictionary();
    field("action", to_string(event.action));
    const bool is_oom = event.action == MemoryAction::out_of_memory;
    field(is_oom ? "device_free" : "addr", event.address);
    field("size", event.bytes);
    field("stream", stream_number(event.stream));
    if (event.time != unknown_time) field("time_us", microseconds(event.time));
    write_frames(event);
    out_.end_dictionary();
  }

  // Not a program's stack, but what is known of the block, the innermost first: viewers group by it.
  void write_frames(const MemoryEvent& event) {
    if (event.stack != no_stack) return write_stack(event.stack);
    const bool has_op = event.anchor != OpId::none, has_tensor = event.tensor != TensorId::none;
    if (!has_op && !has_tensor) return no_frames();
    const auto key = std::pair(event.tensor, event.anchor);
    out_.text("frames");
    const auto found = frames_.find(key);
    if (found != frames_.end()) return out_.recall(found->second);
    out_.begin_list();
    if (has_tensor) {
      frame("tensor", trace_.strings.text(trace_.tensors.name[index_of(event.tensor)]));
      frame("role", to_string(trace_.tensors.role[index_of(event.tensor)]));
    }
    if (has_op) write_op_frames(index_of(event.anchor));
    out_.end_list();
    frames_.emplace(key, out_.remember());
  }

  // A call is told by the first work that it launched.
  void write_op_frames(std::size_t op) {
    const Ops& ops = trace_.ops;
    if (work_of_[op] != OpId::none) op = index_of(work_of_[op]);
    frame("operator", trace_.strings.text(ops.name[op]));
    if (ops.layer[op] != no_index16) frame("layer", "layer " + std::to_string(ops.layer[op]));
    if (ops.micro_batch[op] != no_index16) frame("micro-batch", "micro-batch " + std::to_string(ops.micro_batch[op]));
    if (ops.phase[op] != Phase::unknown) frame("phase", to_string(ops.phase[op]));
  }

  void frame(std::string_view what, std::string_view name, std::int64_t line = 0) {
    if (name.empty()) return;
    out_.begin_dictionary();
    field("name", name);
    field("filename", what);
    field("line", line);
    out_.end_dictionary();
  }

  void write_stack(std::uint32_t innermost) {
    out_.text("frames");
    const auto found = stacks_.find(innermost);
    if (found != stacks_.end()) return out_.recall(found->second);
    out_.begin_list();
    for (std::uint32_t at = innermost; at != no_stack; at = trace_.stack_frames[at].caller)
      write_place(trace_.strings.text(trace_.stack_frames[at].place));
    out_.end_list();
    stacks_.emplace(innermost, out_.remember());
  }

  // "train.py:31 step", as the reader has it; without a line a file's name ends at its first blank.
  void write_place(std::string_view place) {
    for (std::size_t colon = place.find(':'); colon != std::string_view::npos; colon = place.find(':', colon + 1)) {
      std::int64_t line = 0;
      const auto [end, error] = std::from_chars(place.data() + colon + 1, place.data() + place.size(), line);
      const auto behind = static_cast<std::size_t>(end - place.data());
      if (error != std::errc{} || (behind < place.size() && place[behind] != ' ')) continue;
      return frame(place.substr(0, colon), behind < place.size() ? place.substr(behind + 1) : "?", line);
    }
    const std::size_t blank = place.find(' ');
    frame(place.substr(0, blank), blank == std::string_view::npos ? "?" : place.substr(blank + 1));
  }

  void write_annotations() {
    out_.begin_list();
    const Spans& spans = trace_.spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (spans.kind[i] != SpanKind::annotation || spans.start[i] == unknown_time) continue;
      write_annotation("START", i, spans.start[i]);
      write_annotation("END", i, spans.start[i] + std::max(spans.duration[i], Picos(0)));
    }
    out_.end_list();
  }

  void write_annotation(std::string_view stage, std::size_t span, Picos time) {
    out_.begin_dictionary();
    field("stage", stage);
    field("name", trace_.strings.text(trace_.spans.name[span]));
    field("device", std::int64_t{0});
    field("time_us", microseconds(time));
    out_.end_dictionary();
  }

  const Trace& trace_;
  PickleWriter out_;
  std::span<const SnapshotSetting> settings_;
  std::vector<OpId> work_of_;  // by op
  Makers block_maker_, segment_maker_;
  std::map<std::pair<TensorId, OpId>, std::uint64_t> frames_;  // written before
  std::map<std::uint32_t, std::uint64_t> stacks_;              // written before
};

}  // namespace

void write_torch_snapshot(const Trace& trace, OutputFile& out) { SnapshotWriter(trace, out, {}).write(); }

void write_allocator_snapshot(const Trace& trace, OutputFile& out, std::span<const SnapshotSetting> settings) {
  SnapshotWriter(trace, out, settings).write();
}

}  // namespace spillway::traces
