// 64-bit digests, to prove that two things are the same thing. They guard against accident, not malice.
//
//   Digest          of words and texts in their order
//   SequenceDigest  the same of words alone, with an algebra: the digest of one sequence followed by another, and of a
//                   sequence n times over, follow from digests without looking at the words again
//
//   Fnv1a           that of Fowler, Noll and Vo, for digests that files keep
//
// Integers only, so every compiler and machine gives the same bits.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/splitmix64.h"

namespace spillway {

class Digest {
 public:
  // Order matters: add(a), add(b) differs from add(b), add(a).
  constexpr void add(std::uint64_t word) { state_ = (std::rotl(state_, 27) ^ (word * golden_gamma)) * odd_multiplier; }
  constexpr void add(std::string_view text) {
    add(text.size());
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      word = word << 8 | static_cast<unsigned char>(text[i]);
      if (i % 8 == 7 || i + 1 == text.size()) add(word);
    }
  }

  // Finished value; adding may go on afterwards.
  [[nodiscard]] constexpr std::uint64_t value() const { return scramble(state_); }

  friend constexpr bool operator==(const Digest&, const Digest&) = default;

 private:
  std::uint64_t state_ = 0x5350494C4C574159u;
};

// The words are the coefficients of a polynomial, taken at a fixed point of the field of 2^61 - 1 (Carter and Wegman's
// hash, rolled as Karp and Rabin do):
//
//   sum(w1 .. wn) = w1 x^(n-1) + .. + wn
//   sum(A then B) = sum(A) x^|B| + sum(B)
//   A n times over: by squaring, in log2(n) steps
//
// A field and not the integers modulo 2^64, where 2^k equal parts in a row would cost k bits.
class SequenceDigest {
 public:
  constexpr void add(std::uint64_t word) {
    sum_ = reduced(times(sum_, point) + reduced(scramble(word)));
    ++size_;
  }
  // Behind these the words of the other, in log2(their number) steps.
  constexpr void append(const SequenceDigest& next) {
    sum_ = reduced(times(sum_, power(next.size_)) + next.sum_);
    size_ += next.size_;
  }
  [[nodiscard]] constexpr SequenceDigest repeated(std::uint64_t times_over) const {
    SequenceDigest all, part = *this;
    for (; times_over > 0; times_over >>= 1) {
      if (times_over % 2 == 1) all.append(part);
      part.append(part);
    }
    return all;
  }
  [[nodiscard]] constexpr std::uint64_t size() const { return size_; }
  [[nodiscard]] constexpr std::uint64_t value() const { return scramble(sum_ ^ scramble(size_)); }

  friend constexpr bool operator==(const SequenceDigest&, const SequenceDigest&) = default;

 private:
  __extension__ typedef unsigned __int128 Wide;
  static constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
  static constexpr std::uint64_t point = golden_gamma & prime;

  static constexpr std::uint64_t reduced(std::uint64_t x) {
    x = (x & prime) + (x >> 61);
    return x >= prime ? x - prime : x;
  }
  static constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    const Wide product = static_cast<Wide>(a) * b;
    return reduced((static_cast<std::uint64_t>(product) & prime) + static_cast<std::uint64_t>(product >> 61));
  }
  static constexpr std::uint64_t power(std::uint64_t exponent) {  // of the point
    std::uint64_t result = 1;
    for (std::uint64_t square = point; exponent > 0; exponent >>= 1, square = times(square, square))
      if (exponent % 2 == 1) result = times(result, square);
    return result;
  }

  std::uint64_t sum_ = 0, size_ = 0;
};

class Fnv1a {
 public:
  // A byte, or a word in one piece.
  constexpr void add(std::uint64_t piece) { value_ = (value_ ^ piece) * 0x100000001B3u; }
  constexpr void add(std::string_view bytes) {
    for (const char byte : bytes) add(std::uint64_t{static_cast<unsigned char>(byte)});
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace spillway
