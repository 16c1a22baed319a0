#include "traces/formats/perfetto/perfetto_packet.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "base/input_error.h"
#include "traces/formats/perfetto/protobuf_fields.h"

namespace spillway::traces {
namespace {

using Field = ProtobufField;

// Fields of the wire type that their numbers ask for.
class Typed {
 public:
  void number(const Field& field, std::uint64_t& into) {
    sound_ &= !field.is_bytes;
    into = field.value;
  }
  void number(const Field& field, std::optional<std::uint64_t>& into) { number(field, into.emplace()); }
  void integer(const Field& field, std::optional<std::int64_t>& into) {
    sound_ &= !field.is_bytes;
    into = static_cast<std::int64_t>(field.value);
  }
  void bytes(const Field& field, std::string_view& into) {
    sound_ &= field.is_bytes;
    into = field.bytes;
  }
  // Repeated numbers come packed or one by one; the first counts.
  void first_number(const Field& field, std::uint64_t& into) {
    if (into != 0) return;
    if (!field.is_bytes) {
      into = field.value;
      return;
    }
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(field.bytes.data()),
                                              static_cast<int>(field.bytes.size()));
    if (!field.bytes.empty()) sound_ &= in.ReadVarint64(&into);
  }
  void first_fixed(const Field& field, std::uint64_t& into) {
    if (into != 0) return;
    if (!field.is_bytes) {
      into = field.value;
      return;
    }
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(field.bytes.data()),
                                              static_cast<int>(field.bytes.size()));
    if (!field.bytes.empty()) sound_ &= in.ReadLittleEndian64(&into);
  }
  void expect(bool holds) { sound_ &= holds; }
  [[nodiscard]] bool sound() const { return sound_; }

 private:
  bool sound_ = true;
};

bool is_whole(double value) {
  return value >= -9.0e15 && value <= 9.0e15 && value == static_cast<double>(static_cast<std::int64_t>(value));
}

// One level of dictionaries is opened: JSON events that were converted may have their arguments in one.
bool parse_argument(std::string_view message, bool is_inside, std::vector<PerfettoArgument>& arguments) {
  Typed typed;
  PerfettoArgument argument;
  std::vector<std::string_view> members;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    switch (field.number) {
      case 1:
        return typed.number(field, argument.name.number);
      case 10:
        return typed.bytes(field, argument.name.text);
      case 2:  // bool
      case 3:  // uint64
      case 4:  // int64
      case 7:  // pointer
        return typed.integer(field, argument.integer);
      case 5: {
        typed.expect(!field.is_bytes);
        const double value = std::bit_cast<double>(field.value);
        if (is_whole(value)) argument.integer = static_cast<std::int64_t>(value);
        return;
      }
      case 6:
        return typed.bytes(field, argument.text.text);
      case 17:
        return typed.number(field, argument.text.number);
      case 11:
        typed.expect(field.is_bytes);
        if (!is_inside) members.push_back(field.bytes);
        return;
      default:
        return;
    }
  });
  if (!complete || !typed.sound()) return false;
  if (members.empty()) {
    arguments.push_back(argument);
    return true;
  }
  return std::all_of(members.begin(), members.end(), [&](auto m) { return parse_argument(m, true, arguments); });
}

bool parse_legacy(std::string_view message, PerfettoEvent& event) {
  Typed typed;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    std::uint64_t value = 0;
    if (field.number < 1 || field.number > 3) return;
    typed.number(field, value);
    if (field.number == 1) event.name.number = value;
    if (field.number == 2) event.legacy_phase = value < 127 ? static_cast<char>(value) : '?';
    if (field.number == 3) event.legacy_duration_us = static_cast<std::int64_t>(value);
  });
  return complete && typed.sound();
}

// ProcessDescriptor and ThreadDescriptor: 32 bit numbers, which come as 64 bit ones where they are negative.
std::int64_t short_number(const Field& field) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value));
}

bool parse_process(std::string_view message, PerfettoTrackMessage& track) {
  Typed typed;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    if (field.number == 1) {
      typed.expect(!field.is_bytes);
      track.process = short_number(field);
    } else if (field.number == 6) {
      typed.bytes(field, track.process_name);
    }
  });
  if (!track.process) track.process = 0;
  return complete && typed.sound();
}

bool parse_thread(std::string_view message, PerfettoTrackMessage& track) {
  Typed typed;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    if (field.number == 1 || field.number == 2) {
      typed.expect(!field.is_bytes);
      (field.number == 1 ? track.process_of_thread : track.thread) = short_number(field);
    } else if (field.number == 5) {
      typed.bytes(field, track.thread_name);
    }
  });
  if (!track.thread) track.thread = 0;
  return complete && typed.sound();
}

bool parse_interned_entry(std::string_view message, PerfettoInterned& entry) {
  Typed typed;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    if (field.number == 1) typed.number(field, entry.number);
    if (field.number == 2) typed.bytes(field, entry.text);
  });
  return complete && typed.sound();
}

bool parse_clock(std::string_view message, PerfettoClock& clock) {
  Typed typed;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    std::uint64_t value = 0;
    if (field.number < 1 || field.number > 4) return;
    typed.number(field, value);
    if (field.number == 1) clock.id = value;
    if (field.number == 2) clock.timestamp = value;
    if (field.number == 3) clock.is_incremental = value != 0;
    if (field.number == 4) clock.unit_ns = std::max<std::uint64_t>(value, 1);
  });
  return complete && typed.sound();
}

// A varint at `at`, which moves behind it; nothing where it has no end before `text` has.
std::optional<std::uint64_t> varint_at(std::string_view text, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && at < text.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text[at++]);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// What a first packet is made of, by number; 'v' for varints, 'm' for what has a length. Fields 1, 4 and 5 are left
// out: their tags are a line feed, a quote and a star, which follow a line feed and a brace in JSON.
char packet_wire_type(std::uint64_t number) {
  constexpr std::array<std::uint64_t, 9> varints = {3, 8, 10, 13, 41, 42, 58, 79, 87};
  constexpr std::array<std::uint64_t, 29> messages = {2,  6,  7,  9,  11, 12, 33, 34, 35, 36, 37,  43,  44,  45, 46,
                                                      48, 50, 51, 53, 59, 60, 67, 69, 72, 89, 124, 126, 128, 133};
  if (std::find(varints.begin(), varints.end(), number) != varints.end()) return 'v';
  return std::find(messages.begin(), messages.end(), number) != messages.end() ? 'm' : '?';
}

}  // namespace

bool parse_perfetto_packet(std::string_view message, PerfettoPacket& packet) {
  Typed typed;
  std::uint64_t flags = 0;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    switch (field.number) {
      case 6:
        return typed.bytes(field, packet.clocks);
      case 8:
        return typed.number(field, packet.timestamp);
      case 10:
        return typed.number(field, packet.sequence);
      case 11:
        return typed.bytes(field, packet.event);
      case 12:
        return typed.bytes(field, packet.interned);
      case 13:
        return typed.number(field, flags);
      case 50:
        return typed.bytes(field, packet.deflated);
      case 53:
        packet.has_render_stage = true;
        return;
      case 58:
        return typed.number(field, packet.clock);
      case 59:
        return typed.bytes(field, packet.defaults);
      case 60:
        return typed.bytes(field, packet.track);
      case 133:
        return typed.bytes(field, packet.zstd);
      default:
        return;
    }
  });
  packet.clears_state = (flags & 1U) != 0;
  return complete && typed.sound();
}

bool parse_perfetto_event(std::string_view message, PerfettoEvent& event) {
  Typed typed;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    switch (field.number) {
      case 3:
        return typed.first_number(field, event.category.number);
      case 4:
        return typed.expect(field.is_bytes && parse_argument(field.bytes, false, event.arguments));
      case 6:
        return typed.expect(field.is_bytes && parse_legacy(field.bytes, event));
      case 9:
        typed.expect(!field.is_bytes);
        event.type = field.value <= 4 ? static_cast<PerfettoEventType>(field.value) : PerfettoEventType::none;
        return;
      case 10:
        return typed.number(field, event.name.number);
      case 11:
        return typed.number(field, event.track);
      case 22:
        typed.expect(field.is_bytes);
        if (event.category.text.data() == nullptr) event.category.text = field.bytes;
        return;
      case 23:
        return typed.bytes(field, event.name.text);
      case 36:  // arrows as varints, of old files
      case 42:
        return typed.first_number(field, event.flow);
      case 47:
      case 48:
        return typed.first_fixed(field, event.flow);
      default:
        return;
    }
  });
  return complete && typed.sound();
}

bool parse_perfetto_track(std::string_view message, PerfettoTrackMessage& track) {
  Typed typed;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    switch (field.number) {
      case 1:
        return typed.number(field, track.uuid);
      case 2:
      case 10:  // static_name
      case 13:  // atrace_name
        return typed.bytes(field, track.name);
      case 3:
        return typed.expect(field.is_bytes && parse_process(field.bytes, track));
      case 4:
        return typed.expect(field.is_bytes && parse_thread(field.bytes, track));
      case 5:
        return typed.number(field, track.parent);
      default:
        return;
    }
  });
  return complete && typed.sound();
}

bool parse_perfetto_interned(std::string_view message, std::vector<PerfettoInterned>& entries) {
  bool sound = true;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    PerfettoInterned entry;
    switch (field.number) {
      case 1:
        entry.table = PerfettoTable::categories;
        break;
      case 2:
        entry.table = PerfettoTable::event_names;
        break;
      case 3:
        entry.table = PerfettoTable::argument_names;
        break;
      case 29:
        entry.table = PerfettoTable::argument_texts;
        break;
      default:
        return;
    }
    sound &= field.is_bytes && parse_interned_entry(field.bytes, entry);
    entries.push_back(entry);
  });
  return complete && sound;
}

bool parse_perfetto_clocks(std::string_view message, std::vector<PerfettoClock>& clocks, std::uint64_t& primary) {
  bool sound = true;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    if (field.number == 1) sound &= field.is_bytes && parse_clock(field.bytes, clocks.emplace_back());
    if (field.number == 2) {
      sound &= !field.is_bytes;
      primary = field.value;
    }
  });
  return complete && sound;
}

bool parse_perfetto_defaults(std::string_view message, std::uint64_t& clock, std::uint64_t& track) {
  Typed typed;
  const bool complete = for_protobuf_fields(message, [&](const Field& field) {
    if (field.number == 58) typed.number(field, clock);
    if (field.number != 11) return;
    typed.expect(field.is_bytes && for_protobuf_fields(field.bytes, [&](const Field& inner) {
                   if (inner.number == 11) typed.number(inner, track);
                 }));
  });
  return complete && typed.sound();
}

bool looks_like_perfetto(std::string_view head) {
  if (head.size() < 3 || head[0] != '\x0a') return false;
  std::size_t at = 1;
  const auto length = varint_at(head, at);
  if (!length || *length == 0 || *length > max_protobuf_message) return false;
  const std::size_t end = at + static_cast<std::size_t>(*length);
  while (at < end && at < head.size()) {
    const auto tag = varint_at(head, at);
    if (!tag) return at >= head.size();
    const char wanted = packet_wire_type(*tag >> 3U);
    if ((*tag & 7U) != (wanted == 'v' ? 0U : 2U) || wanted == '?') return false;
    const auto value = varint_at(head, at);
    if (!value) return at >= head.size();
    if (wanted == 'm') {
      if (*value > max_protobuf_message) return false;
      at += static_cast<std::size_t>(*value);
    }
    if (at > end) return false;
  }
  return true;
}

void PerfettoPackets::fail(const std::string& cause, const std::string& remedy) const {
  throw InputError(source_.name(), "byte " + std::to_string(start_), cause, remedy);
}

// Nothing where the file ends in it.
std::optional<std::uint64_t> PerfettoPackets::read_varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    std::byte byte{};
    if (source_.read(std::span(&byte, 1)) != 1) return std::nullopt;
    value |= (std::to_integer<std::uint64_t>(byte) & 0x7fU) << shift;
    if ((std::to_integer<unsigned>(byte) & 0x80U) == 0) return value;
  }
  fail("a number of more than 64 bits", "the file is damaged, or no Perfetto trace; copy or record it again");
}

bool PerfettoPackets::skip(std::uint64_t bytes) {
  std::array<std::byte, 4096> scratch;
  while (bytes > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, scratch.size()));
    if (source_.read(std::span(scratch.data(), wanted)) != wanted) return false;
    bytes -= wanted;
  }
  return true;
}

bool PerfettoPackets::next(std::string& packet) {
  while (true) {
    start_ = source_.position();
    if (source_.peek(1).empty()) return false;
    const auto tag = read_varint();
    truncated_ = !tag;
    if (!tag) return false;
    const std::uint64_t wire_type = *tag & 7U;
    if (wire_type != 2) {
      // Another field beside the packets, of a later schema.
      if (*tag >> 3U == 1 || *tag >> 3U == 0 || wire_type == 3 || wire_type == 4 || wire_type > 5)
        fail("a packet does not begin with its length", "the file is damaged; copy or record it again");
      truncated_ = wire_type == 0 ? !read_varint() : !skip(wire_type == 1 ? 8 : 4);
      if (truncated_) return false;
      continue;
    }
    const auto length = read_varint();
    truncated_ = !length;
    if (!length) return false;
    if (*length > max_protobuf_message)
      fail("a packet claims " + std::to_string(*length) + " bytes, more than 64 MiB",
           "the file is damaged; copy or record it again");
    if (*tag >> 3U != 1) {
      truncated_ = !skip(*length);
      if (truncated_) return false;
      continue;
    }
    packet.resize(static_cast<std::size_t>(*length));
    truncated_ = source_.read(std::as_writable_bytes(std::span(packet.data(), packet.size()))) != packet.size();
    return !truncated_;
  }
}

bool inflate_perfetto_packets(std::string_view deflated, std::string& packets) {
  packets.clear();
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(deflated.data()));
  stream.avail_in = static_cast<uInt>(deflated.size());
  std::array<char, 64 << 10> chunk;
  int state = Z_OK;
  while (state == Z_OK && packets.size() <= max_protobuf_message) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    state = inflate(&stream, Z_NO_FLUSH);
    packets.append(chunk.data(), chunk.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  return state == Z_STREAM_END && packets.size() <= max_protobuf_message;
}

}  // namespace spillway::traces
