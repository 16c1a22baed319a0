// Initial elements of a tensor, and the words of the digest at its end. The code is for the GPU, and compiled for the
// processor as well, so that both give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/splitmix64.h"
#include "validation/trainer/backend.h"
#include "validation/trainer/kernel_bodies.h"

namespace spillway::validation::bodies {

inline constexpr std::uint64_t draws_of_normal = 12;

// Exact up to the product: a sum below 2^28 over 2^24.
SPILLWAY_DEVICE inline float initial_element(const Filling& filling, std::int64_t i) {
  if (filling.deviation == 0) return filling.value;
  SplitMix64 random(filling.seed, static_cast<std::uint64_t>(i) * draws_of_normal);
  constexpr std::int64_t mean_of_two = std::int64_t{1} << 24;
  std::int64_t sum = 0;
  for (std::uint64_t draw = 0; draw < draws_of_normal; ++draw) sum += static_cast<std::int64_t>(random.next() >> 40U);
  sum -= static_cast<std::int64_t>(draws_of_normal / 2) * mean_of_two;
  return filling.deviation * (static_cast<float>(sum) / static_cast<float>(mean_of_two));
}

// Digest of the i-th word of `size` bytes. Precondition: 8 i < size, and the bytes are aligned to 8.
SPILLWAY_DEVICE inline std::uint64_t digest_word(const std::byte* bytes, std::int64_t size, std::int64_t i) {
  constexpr std::int64_t word_bytes = sizeof(std::uint64_t);
  const std::int64_t begin = i * word_bytes, left = size - begin;
  std::uint64_t word = 0;
  memcpy(&word, bytes + begin, static_cast<std::size_t>(left < word_bytes ? left : word_bytes));
  return scramble(word ^ scramble(static_cast<std::uint64_t>(i) + 1));
}

}  // namespace spillway::validation::bodies
