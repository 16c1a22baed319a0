// Decompression: any bytes either unfold within the bound or are refused with an InputError; what read() delivers in
// small pieces is what read_all() delivers at once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr std::uint64_t kBound = 1 << 20;

spillway::ByteSource source(const std::uint8_t* data, std::size_t size) {
  return spillway::ByteSource::from_memory("fuzz", std::as_bytes(std::span(data, size)), kBound);
}

std::optional<std::string> at_once(const std::uint8_t* data, std::size_t size) {
  try {
    return source(data, size).read_all(kBound);
  } catch (const spillway::InputError&) {
    return std::nullopt;
  }
}

std::optional<std::string> in_pieces(const std::uint8_t* data, std::size_t size) {
  std::string all;
  try {
    spillway::ByteSource bytes = source(data, size);
    std::byte piece[997];
    for (std::size_t got = sizeof piece; got == sizeof piece;) {
      if (bytes.peek(16).size() > 16) std::abort();
      got = bytes.read(piece);
      all.append(reinterpret_cast<const char*>(piece), got);
      if (all.size() != bytes.position()) std::abort();
    }
  } catch (const spillway::InputError&) {
    return std::nullopt;
  }
  return all;
}

}  // namespace

SPILLWAY_FUZZ_TARGET(byte_source) {
  if (size > kBound) return 0;
  if (at_once(data, size) != in_pieces(data, size)) std::abort();
  return 0;
}
