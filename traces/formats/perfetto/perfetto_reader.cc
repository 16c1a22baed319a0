#include "traces/formats/perfetto/perfetto_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/input_error.h"
#include "base/memory_limit.h"
#include "traces/formats/perfetto/perfetto_capture.h"
#include "traces/formats/perfetto/perfetto_clocks.h"
#include "traces/formats/perfetto/perfetto_events.h"
#include "traces/formats/perfetto/perfetto_packet.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

constexpr std::size_t max_open = 65'536;
constexpr std::uint32_t not_kept = 0xffffffffU;

constexpr std::uint8_t no_key = 0xff;

// The field that an argument fills. Converters say "debug.x" or "args.x" for x.
std::uint8_t key_of(std::string_view name) {
  for (const std::string_view prefix : {"debug.", "args."})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  if (name == "corr_id") return static_cast<std::uint8_t>(KinetoField::correlation);
  if (name == "copy_bytes") return static_cast<std::uint8_t>(KinetoField::bytes);
  if (name == "src_agent") return static_cast<std::uint8_t>(PerfettoKey::source_agent);
  if (name == "dst_agent" || name == "agent") return static_cast<std::uint8_t>(PerfettoKey::target_agent);
  const KinetoField field = kineto_argument(name);
  return field == KinetoField::count_ || field == KinetoField::label ? no_key : static_cast<std::uint8_t>(field);
}

// What packets of one writer refer to by number.
struct Said {
  std::array<std::unordered_map<std::uint64_t, StringId>, 4> names;  // by PerfettoTable, but for arguments' names
  std::unordered_map<std::uint64_t, std::uint8_t> keys;              // of these
};

struct Sequence {
  std::unique_ptr<Said> said;  // nullptr until there is something: a file may have a million writers
  std::uint64_t clock = 0, track = 0;
};

class Reader {
 public:
  Reader(ByteSource& source, const ReadOptions& options)
      : options_(options), file_(source.name()), memory_(source.name()), packets_(source) {}

  Trace read();

 private:
  void take(std::string_view message, bool is_inside);
  void take_inside(std::string_view packets);
  void take_state(const PerfettoPacket& packet, Sequence& sequence);
  void take_track(std::string_view message);
  void take_event(const PerfettoPacket& packet, Sequence& sequence);
  void begin(const PerfettoEvent& event, Sequence& sequence, std::uint32_t track, std::int64_t at, PerfettoShape shape);
  void end(const PerfettoEvent& event, Sequence& sequence, std::uint32_t track, std::int64_t at);
  void add_values(const PerfettoEvent& event, Sequence& sequence, PerfettoSlice& slice);
  void pair_what_is_left();
  void finish();
  std::uint32_t track(std::uint64_t uuid);
  StringId name_of(const PerfettoName& name, PerfettoTable table, const Sequence& sequence);
  StringId intern(std::string_view text) { return trace_.strings.intern(to_valid_utf8(text)); }
  void require(bool sound) {
    if (!sound) packets_.fail("a damaged packet", "copy or record the trace again");
  }
  [[nodiscard]] std::string place(std::uint64_t at) const { return "byte " + std::to_string(at); }

  struct End {
    std::uint32_t track = 0;
    std::int64_t at = 0;
    std::uint64_t place = 0;
  };

  const ReadOptions& options_;
  std::string file_;
  FileMemory memory_;
  PerfettoPackets packets_;
  Trace trace_;
  PerfettoCapture capture_;
  PerfettoClocks clocks_;
  std::unordered_map<std::uint64_t, Sequence> sequences_;
  std::vector<End> ends_;  // that closed nothing
  std::vector<PerfettoInterned> interned_;
  std::vector<PerfettoClock> snapshot_;
  std::string inflated_;
};

std::uint32_t Reader::track(std::uint64_t uuid) {
  const auto [found, is_new] = capture_.track_of.try_emplace(uuid, static_cast<std::uint32_t>(capture_.tracks.size()));
  if (is_new) memory_.add(2 * sizeof(PerfettoTrack));
  if (is_new) capture_.tracks.push_back({.uuid = uuid, .place = packets_.start()});
  return found->second;
}

StringId Reader::name_of(const PerfettoName& name, PerfettoTable table, const Sequence& sequence) {
  if (name.text.data() != nullptr) return intern(name.text);
  if (name.number == 0) return intern("");
  if (sequence.said) {
    const auto& known = sequence.said->names[static_cast<std::size_t>(table)];
    const auto found = known.find(name.number);
    if (found != known.end()) return found->second;
  }
  trace_.note("lost_name", place(packets_.start()),
              "the packet that said this name is not in the file; record with a larger buffer", true);
  return intern("(name lost)");
}

void Reader::take_state(const PerfettoPacket& packet, Sequence& sequence) {
  if (packet.clears_state) sequence = {};
  if (packet.defaults.data() != nullptr)
    require(parse_perfetto_defaults(packet.defaults, sequence.clock, sequence.track));
  if (packet.interned.data() != nullptr) {
    interned_.clear();
    require(parse_perfetto_interned(packet.interned, interned_));
    memory_.add(interned_.size() * 2 * sizeof(PerfettoInterned));
    if (!sequence.said) {
      memory_.add(sizeof(Said));
      sequence.said = std::make_unique<Said>();
    }
    for (const PerfettoInterned& entry : interned_)
      if (entry.table == PerfettoTable::argument_names)
        sequence.said->keys.insert_or_assign(entry.number, key_of(entry.text));
      else
        sequence.said->names[static_cast<std::size_t>(entry.table)].insert_or_assign(entry.number, intern(entry.text));
  }
  if (packet.clocks.data() == nullptr) return;
  snapshot_.clear();
  std::uint64_t primary = 0;
  require(parse_perfetto_clocks(packet.clocks, snapshot_, primary));
  clocks_.take(packet.sequence, snapshot_, primary);
}

void Reader::take_track(std::string_view message) {
  PerfettoTrackMessage said;
  require(parse_perfetto_track(message, said));
  PerfettoTrack& known = capture_.tracks[track(said.uuid)];
  known.place = packets_.start();
  known.parent = said.parent;
  known.process = said.process;
  known.thread = said.thread;
  known.process_of_thread = said.process_of_thread;
  if (said.name.data() != nullptr) known.name = intern(said.name);
  if (said.process_name.data() != nullptr) known.process_name = intern(said.process_name);
  if (said.thread_name.data() != nullptr) known.thread_name = intern(said.thread_name);
}

void Reader::add_values(const PerfettoEvent& event, Sequence& sequence, PerfettoSlice& slice) {
  for (const PerfettoArgument& argument : event.arguments) {
    std::uint8_t key = no_key;
    if (argument.name.text.data() != nullptr) {
      key = key_of(argument.name.text);
    } else if (sequence.said) {
      const auto found = sequence.said->keys.find(argument.name.number);
      if (found != sequence.said->keys.end()) key = found->second;
    }
    if (key == no_key || slice.values == std::numeric_limits<std::uint16_t>::max()) continue;
    PerfettoValue value{.key = key};
    if (argument.integer) {
      value.integer = *argument.integer;
    } else if (argument.text.is_given()) {
      value.text = name_of(argument.text, PerfettoTable::argument_texts, sequence);
      value.is_text = true;
    } else {
      continue;
    }
    memory_.add(sizeof value);
    capture_.values.push_back(value);
    ++slice.values;
  }
}

void Reader::begin(const PerfettoEvent& event, Sequence& sequence, std::uint32_t track, std::int64_t at,
                   PerfettoShape shape) {
  auto& open = capture_.tracks[track].open;
  if (shape == PerfettoShape::open && open.size() >= max_open)
    packets_.fail("more than 65,536 ranges are open at once on one track", "record the trace again");
  PerfettoSlice slice{.start_ns = at,
                      .place = packets_.start(),
                      .flow = event.flow,
                      .track = track,
                      .first_value = static_cast<std::uint32_t>(capture_.values.size()),
                      .shape = shape,
                      .name = name_of(event.name, PerfettoTable::event_names, sequence),
                      .category = name_of(event.category, PerfettoTable::categories, sequence)};
  const bool keep = options_.keep_python || trace_.strings.text(slice.category) != "python_function";
  if (shape == PerfettoShape::open)
    open.push_back(keep ? static_cast<std::uint32_t>(capture_.slices.size()) : not_kept);
  if (!keep) return;
  if (capture_.slices.size() >= not_kept - 1U || capture_.values.size() >= not_kept - 65'536U)
    packets_.fail("more than 4 billion events", "record fewer steps");
  add_values(event, sequence, slice);
  if (event.legacy_phase == 'X' && !__builtin_mul_overflow(event.legacy_duration_us, 1000, &slice.duration_ns))
    slice.shape = PerfettoShape::slice;
  memory_.add(2 * sizeof slice);
  capture_.slices.push_back(slice);
}

void Reader::end(const PerfettoEvent& event, Sequence& sequence, std::uint32_t track, std::int64_t at) {
  auto& open = capture_.tracks[track].open;
  if (open.empty()) {
    memory_.add(sizeof(End));
    ends_.push_back({track, at, packets_.start()});
    return;
  }
  const std::uint32_t innermost = open.back();
  open.pop_back();
  if (innermost == not_kept) return;
  PerfettoSlice& slice = capture_.slices[innermost];
  slice.duration_ns = at - slice.start_ns;
  slice.shape = PerfettoShape::slice;
  if (event.arguments.empty()) return;
  memory_.add(slice.values * sizeof(PerfettoValue));
  // Values of the end stand behind those of the beginning, which move if others stand behind them by now.
  auto& values = capture_.values;
  if (slice.first_value + slice.values != values.size()) {
    const std::vector<PerfettoValue> first(values.begin() + slice.first_value,
                                           values.begin() + slice.first_value + slice.values);
    slice.first_value = static_cast<std::uint32_t>(values.size());
    values.insert(values.end(), first.begin(), first.end());
  }
  add_values(event, sequence, slice);
}

void Reader::take_event(const PerfettoPacket& packet, Sequence& sequence) {
  PerfettoEvent event;
  require(parse_perfetto_event(packet.event, event));
  ++trace_.source_events;
  if (event.type == PerfettoEventType::counter) return;
  const std::uint64_t clock = packet.clock != 0     ? packet.clock
                              : sequence.clock != 0 ? sequence.clock
                                                    : clocks_.primary();
  if (!packet.timestamp) {
    trace_.note("bad_time", place(packets_.start()), "an event has no time; it was dropped", true);
    return;
  }
  const auto at = clocks_.time(packet.sequence, clock, *packet.timestamp);
  // Half of the range, so that differences fit.
  if (!at || *at > std::numeric_limits<std::int64_t>::max() / 2 || *at < std::numeric_limits<std::int64_t>::min() / 2) {
    trace_.note("time_out_of_range", place(packets_.start()), "a time beyond 63 bits; the event was dropped", true);
    return;
  }
  if (!clocks_.is_known(packet.sequence, clock))
    trace_.note("unknown_clock", place(packets_.start()),
                "no snapshot relates its clock to the others; its times were taken as they are, in nanoseconds", false);
  const std::uint32_t on = track(event.track.value_or(sequence.track));
  const char phase = event.legacy_phase;
  if (event.type == PerfettoEventType::begin || (event.type == PerfettoEventType::none && phase == 'B'))
    begin(event, sequence, on, *at, PerfettoShape::open);
  else if (event.type == PerfettoEventType::end || (event.type == PerfettoEventType::none && phase == 'E'))
    end(event, sequence, on, *at);
  else if (event.type == PerfettoEventType::instant || phase == 'i' || phase == 'I' || phase == 'X')
    begin(event, sequence, on, *at, PerfettoShape::instant);
}

void Reader::take_inside(std::string_view packets) {
  const std::string name = file_ + ", compressed packets";
  // What unfolds to nothing that is kept still takes its time.
  memory_.add(packets.size());
  ByteSource source =
      ByteSource::from_memory(name, std::as_bytes(std::span(packets.data(), packets.size())), std::uint64_t{64} << 20);
  PerfettoPackets inside(source);
  std::string message;
  while (inside.next(message)) take(message, true);
  require(!inside.is_truncated());
}

void Reader::take(std::string_view message, bool is_inside) {
  PerfettoPacket packet;
  require(parse_perfetto_packet(message, packet));
  const auto [known, is_new] = sequences_.try_emplace(packet.sequence);
  if (is_new) memory_.add(3 * sizeof(Sequence));
  Sequence& sequence = known->second;
  take_state(packet, sequence);
  if (packet.track.data() != nullptr) take_track(packet.track);
  if (packet.event.data() != nullptr) take_event(packet, sequence);
  if (packet.has_render_stage)
    trace_.note("render_stages", place(packets_.start()), "stages of a graphics driver are not read", true);
  if (packet.deflated.data() == nullptr && packet.zstd.data() == nullptr) return;
  if (is_inside) packets_.fail("compressed packets inside compressed packets", "copy or record the trace again");
  if (packet.zstd.data() != nullptr) return take_inside(packet.zstd);
  require(inflate_perfetto_packets(packet.deflated, inflated_));
  take_inside(inflated_);
}

// A range may begin in one writer's packets and end in another's, which stand before: such are paired by time.
void Reader::pair_what_is_left() {
  std::stable_sort(ends_.begin(), ends_.end(),
                   [](const End& a, const End& b) { return std::tie(a.track, a.at) < std::tie(b.track, b.at); });
  std::size_t next = 0;
  for (std::uint32_t t = 0; t < capture_.tracks.size(); ++t) {
    auto& open = capture_.tracks[t].open;
    std::erase(open, not_kept);
    auto& slices = capture_.slices;
    std::stable_sort(open.begin(), open.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return slices[a].start_ns < slices[b].start_ns; });
    std::vector<std::uint32_t> stack;
    std::size_t begun = 0;
    for (; next < ends_.size() && ends_[next].track == t; ++next) {
      for (; begun < open.size() && slices[open[begun]].start_ns <= ends_[next].at; ++begun)
        stack.push_back(open[begun]);
      if (stack.empty()) {
        trace_.note("end_without_begin", place(ends_[next].place),
                    "a range ends that did not begin in this file; record with a larger buffer", true);
        continue;
      }
      PerfettoSlice& slice = slices[stack.back()];
      stack.pop_back();
      slice.duration_ns = ends_[next].at - slice.start_ns;
      slice.shape = PerfettoShape::slice;
    }
    stack.insert(stack.end(), open.begin() + static_cast<std::ptrdiff_t>(begun), open.end());
    for (const std::uint32_t slice : stack)
      trace_.note("begin_without_end", place(slices[slice].place),
                  "a range that does not end in this file was dropped; let the recording end before the program", true);
    open = {};
  }
}

void Reader::finish() {
  const auto is_whole = [](const PerfettoSlice& slice) { return slice.shape != PerfettoShape::open; };
  if (std::none_of(capture_.slices.begin(), capture_.slices.end(), is_whole))
    throw InputError(file_, "", "has no events of programs (track events) that begin and end",
                     "record with the Perfetto SDK or rocprofv3; a system's trace alone can't be replayed");
  assemble_perfetto(std::move(capture_), memory_, options_.keep_python, clocks_.to_epoch(), trace_);
}

Trace Reader::read() {
  trace_.provenance.push_back({.file = file_, .format = "perfetto", .producer = "Perfetto"});
  std::string message;
  while (packets_.next(message)) take(message, false);
  if (packets_.is_truncated())
    trace_.note("truncated_file", place(packets_.start()),
                "the file ends inside a packet (a killed job?); that packet was dropped", false);
  pair_what_is_left();
  finish();
  return std::move(trace_);
}

}  // namespace

Trace read_perfetto(ByteSource& source, const ReadOptions& options) { return Reader(source, options).read(); }

}  // namespace spillway::traces
