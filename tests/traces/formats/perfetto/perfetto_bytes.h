// Writes Perfetto traces byte by byte, from the published field numbers and nothing of the reader.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::traces::perfetto_bytes {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value /= 128) bytes += static_cast<char>(128 + value % 128);
  return bytes + static_cast<char>(value);
}
inline std::string number(std::uint64_t field, std::uint64_t value) { return varint(field * 8) + varint(value); }
inline std::string bytes(std::uint64_t field, std::string_view value) {
  return varint(field * 8 + 2) + varint(value.size()) + std::string(value);
}
inline std::string fixed64(std::uint64_t field, std::uint64_t value) {
  std::string eight(8, '\0');
  for (char& byte : eight) byte = static_cast<char>(value & 0xff), value >>= 8;
  return varint(field * 8 + 1) + eight;
}

// A packet of sequence `sequence`, which stands in the trace.
inline std::string packet(const std::string& inside, std::uint64_t sequence = 1) {
  return bytes(1, inside + number(10, sequence));
}
inline std::string at(std::uint64_t ns) { return number(8, ns); }

// Debug annotations.
inline std::string argument(std::string_view name, std::uint64_t value) {
  return bytes(4, bytes(10, name) + number(3, value));
}
inline std::string text_argument(std::string_view name, std::string_view value) {
  return bytes(4, bytes(10, name) + bytes(6, value));
}

inline std::string begin_event(std::uint64_t ns, std::uint64_t track, std::string_view category, std::string_view name,
                               const std::string& arguments = "") {
  return packet(at(ns) +
                bytes(11, number(9, 1) + number(11, track) + bytes(22, category) + bytes(23, name) + arguments));
}
inline std::string end_event(std::uint64_t ns, std::uint64_t track) {
  return packet(at(ns) + bytes(11, number(9, 2) + number(11, track)));
}
inline std::string slice(std::uint64_t from, std::uint64_t to, std::uint64_t track, std::string_view category,
                         std::string_view name, const std::string& arguments = "") {
  return begin_event(from, track, category, name, arguments) + end_event(to, track);
}

inline std::string process_track(std::uint64_t uuid, std::uint64_t pid, std::string_view name) {
  return packet(bytes(60, number(1, uuid) + bytes(3, number(1, pid) + bytes(6, name))));
}
inline std::string thread_track(std::uint64_t uuid, std::uint64_t parent, std::uint64_t pid, std::uint64_t tid,
                                std::string_view name) {
  return packet(
      bytes(60, number(1, uuid) + number(5, parent) + bytes(4, number(1, pid) + number(2, tid) + bytes(5, name))));
}
inline std::string named_track(std::uint64_t uuid, std::string_view name, std::uint64_t parent = 0) {
  return packet(bytes(60, number(1, uuid) + bytes(2, name) + (parent == 0 ? "" : number(5, parent))));
}

}  // namespace spillway::traces::perfetto_bytes
