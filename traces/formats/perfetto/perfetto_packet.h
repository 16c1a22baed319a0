// The messages of a Perfetto trace that a replay needs, as views into one packet.
//
// Source of the numbers: google/perfetto, protos/perfetto/trace/ (trace_packet, track_event/track_event,
// track_event/track_descriptor, track_event/debug_annotation, interned_data/interned_data, clock_snapshot). Messages
// and fields not named here are skipped unread. All parse functions: false when the bytes are damaged, which includes a
// field of another wire type than its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace spillway::traces {

struct PerfettoPacket {
  std::optional<std::uint64_t> timestamp;  // units of its clock
  std::uint64_t clock = 0;                 // 0: the sequence's default
  std::uint64_t sequence = 0;
  bool clears_state = false;
  bool has_render_stage = false;
  // Messages inside; null data if absent.
  std::string_view event, track, clocks, interned, defaults, deflated, zstd;
};
bool parse_perfetto_packet(std::string_view message, PerfettoPacket& packet);

// A name that stands there or was said before under a number (0: it stands there).
struct PerfettoName {
  std::string_view text;
  std::uint64_t number = 0;
  [[nodiscard]] bool is_given() const { return number != 0 || text.data() != nullptr; }
};

struct PerfettoArgument {
  PerfettoName name;
  PerfettoName text;                    // of texts
  std::optional<std::int64_t> integer;  // of whole numbers, also unsigned ones, pointers and truths
};

enum class PerfettoEventType : std::uint8_t { none = 0, begin = 1, end = 2, instant = 3, counter = 4 };

struct PerfettoEvent {
  PerfettoEventType type = PerfettoEventType::none;
  std::optional<std::uint64_t> track;
  PerfettoName name, category;  // the first category counts
  std::uint64_t flow = 0;       // the first arrow from or to this event; 0: none
  char legacy_phase = 0;        // 'X', 'B', ... of events taken over from JSON
  std::int64_t legacy_duration_us = 0;
  std::vector<PerfettoArgument> arguments;  // members of dictionaries stand beside the others
};
bool parse_perfetto_event(std::string_view message, PerfettoEvent& event);

struct PerfettoTrackMessage {
  std::uint64_t uuid = 0, parent = 0;  // parent 0: none
  std::string_view name, process_name, thread_name;
  std::optional<std::int64_t> process, thread;
  std::optional<std::int64_t> process_of_thread;
};
bool parse_perfetto_track(std::string_view message, PerfettoTrackMessage& track);

enum class PerfettoTable : std::uint8_t { categories, event_names, argument_names, argument_texts };
struct PerfettoInterned {
  PerfettoTable table{};
  std::uint64_t number = 0;
  std::string_view text;
};
bool parse_perfetto_interned(std::string_view message, std::vector<PerfettoInterned>& entries);

struct PerfettoClock {
  std::uint64_t id = 0, timestamp = 0, unit_ns = 1;
  bool is_incremental = false;
};
// `primary`: the trace's own clock where the snapshot says it, else 0.
bool parse_perfetto_clocks(std::string_view message, std::vector<PerfettoClock>& clocks, std::uint64_t& primary);

// Parses TracePacketDefaults; values it doesn't state stay.
bool parse_perfetto_defaults(std::string_view message, std::uint64_t& clock, std::uint64_t& track);

// Could these be the first bytes of a Perfetto trace (which may go on behind them)? Asks that the first packet holds
// fields of a packet only, with their wire types, and ends where it says.
bool looks_like_perfetto(std::string_view head);

// A file's packets, one in memory at a time.
class PerfettoPackets {
 public:
  explicit PerfettoPackets(ByteSource& source) : source_(source) {}

  // False at the end. Throws InputError (place: byte offset) for what is no packet, or one of more than 64 MiB.
  bool next(std::string& packet);
  [[nodiscard]] std::uint64_t start() const { return start_; }  // of the last packet
  [[nodiscard]] bool is_truncated() const { return truncated_; }
  [[noreturn]] void fail(const std::string& cause, const std::string& remedy) const;

 private:
  std::optional<std::uint64_t> read_varint();
  bool skip(std::uint64_t bytes);

  ByteSource& source_;
  std::uint64_t start_ = 0;
  bool truncated_ = false;
};

// Unfolds the packets of TracePacket.compressed_packets (zlib). False when damaged or more than 64 MiB come of it.
bool inflate_perfetto_packets(std::string_view deflated, std::string& packets);

}  // namespace spillway::traces
