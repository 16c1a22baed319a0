// Several bytes compared with a given one at once. Two kinds answer alike; ByteBlock is this machine's.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace spillway::traces {

// Eight bytes as one word, for any machine.
class WordBlock {
 public:
  static constexpr std::size_t size = 8;
  // Each byte that matches has its highest bit set.
  using Matches = std::uint64_t;

  explicit WordBlock(const char* at) { std::memcpy(&bytes_, at, size); }

  [[nodiscard]] Matches matches(char wanted) const {
    const std::uint64_t other = bytes_ ^ ones * static_cast<unsigned char>(wanted);  // 0 where they are the same
    return ~(((other & low_bits) + low_bits) | other | low_bits);
  }
  // With 0x20 set in each byte.
  [[nodiscard]] WordBlock folded() const {
    WordBlock result = *this;
    result.bytes_ |= ones * 0x20;
    return result;
  }
  // The first byte that matches; there must be one.
  static std::size_t first(Matches found) { return static_cast<std::size_t>(std::countr_zero(found)) / 8; }

 private:
  static_assert(std::endian::native == std::endian::little, "the first byte is a word's lowest");
  static constexpr std::uint64_t ones = 0x0101010101010101, low_bits = ones * 0x7f;

  std::uint64_t bytes_ = 0;
};

#ifdef __SSE2__
class SseBlock {
 public:
  static constexpr std::size_t size = 16;
  using Matches = unsigned;  // a bit a byte

  explicit SseBlock(const char* at) : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))) {}

  [[nodiscard]] Matches matches(char wanted) const {
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes_, _mm_set1_epi8(wanted))));
  }
  [[nodiscard]] SseBlock folded() const {
    SseBlock result = *this;
    result.bytes_ = _mm_or_si128(bytes_, _mm_set1_epi8(0x20));
    return result;
  }
  static std::size_t first(Matches found) { return static_cast<std::size_t>(std::countr_zero(found)); }

 private:
  __m128i bytes_;
};
using ByteBlock = SseBlock;
#else
using ByteBlock = WordBlock;
#endif

}  // namespace spillway::traces
