// Walks the fields of one protobuf message in memory, without a schema.
//
// Source of the encoding: protobuf.dev, "Encoding": a tag (number << 3 | wire type), then a varint, 8 or 4 bytes, or a
// length and that many bytes. Groups (wire types 3 and 4) are refused. Includes protobuf: for .cc files only.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spillway::traces {

// A message beyond this is damaged: readers refuse it before they walk it.
constexpr std::uint64_t max_protobuf_message = std::uint64_t{64} << 20;

// One field of a message: its number and its value in one of two shapes.
struct ProtobufField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // varint and fixed fields
  std::string_view bytes;   // length-delimited fields
  bool is_bytes = false;
};

// Calls `visit` for each field, in order; false when the message is damaged. `message` holds at most
// max_protobuf_message bytes. O(fields).
template <class Visit>
bool for_protobuf_fields(std::string_view message, const Visit& visit) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()),
                                            static_cast<int>(message.size()));
  while (const std::uint32_t tag = in.ReadTag()) {
    ProtobufField field{.number = tag >> 3U};
    std::uint32_t small = 0;
    switch (tag & 7U) {
      case 0:
        if (!in.ReadVarint64(&field.value)) return false;
        break;
      case 1:
        if (!in.ReadLittleEndian64(&field.value)) return false;
        break;
      case 5:
        if (!in.ReadLittleEndian32(&small)) return false;
        field.value = small;
        break;
      case 2: {
        if (!in.ReadVarint32(&small)) return false;
        const auto at = static_cast<std::size_t>(in.CurrentPosition());
        if (small > message.size() - at) return false;
        field.bytes = message.substr(at, small);
        field.is_bytes = true;
        if (!in.Skip(static_cast<int>(small))) return false;
        break;
      }
      default:
        return false;
    }
    visit(field);
  }
  return static_cast<std::size_t>(in.CurrentPosition()) == message.size();
}

}  // namespace spillway::traces
