// Random normal numbers as the bits of an element, by its place: the same on the GPU and on the processor.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define SPILLWAY_ANYWHERE __host__ __device__
#else
#define SPILLWAY_ANYWHERE
#endif

namespace spillway::hwprofiles {

// A hash of 32 bits (triple32 of github.com/skeeto/hash-prospector, public domain).
SPILLWAY_ANYWHERE inline std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 17U;
  x *= 0xed5ad4bbU;
  x ^= x >> 11U;
  x *= 0xac4c1b51U;
  x ^= x >> 15U;
  x *= 0x31848babU;
  return x ^ (x >> 14U);
}

// Mean 0, variance 1 (Box and Muller, Annals of Mathematical Statistics 29, 1958).
SPILLWAY_ANYWHERE inline float normal_number(std::uint64_t place, std::uint32_t seed) {
  const auto low = static_cast<std::uint32_t>(place), high = static_cast<std::uint32_t>(place >> 32U);
  const std::uint32_t first = mixed(low ^ mixed(high + seed)), second = mixed(first + 0x68bc21ebU);
  const float above_zero = (static_cast<float>(first >> 8U) + 1) * 0x1p-24F;
  const float turn = static_cast<float>(second >> 8U) * 0x1p-24F;
  return sqrtf(-2 * logf(above_zero)) * cosf(6.2831853F * turn);
}

SPILLWAY_ANYWHERE inline std::uint32_t bits_of(float value) {
  union {
    float value;
    std::uint32_t bits;
  } both;
  both.value = value;
  return both.bits;
}

// Cut off, not rounded.
SPILLWAY_ANYWHERE inline std::uint16_t normal_bf16(std::uint64_t place, std::uint32_t seed) {
  return static_cast<std::uint16_t>(bits_of(normal_number(place, seed)) >> 16U);
}

// e4m3: bias 7, largest 448, no infinity; a pattern of ones is NaN, which 5.8 sigma, the most there is, is far below.
SPILLWAY_ANYWHERE inline std::uint8_t normal_fp8(std::uint64_t place, std::uint32_t seed) {
  const std::uint32_t bits = bits_of(normal_number(place, seed));
  const auto sign = static_cast<std::uint8_t>(bits >> 24U & 0x80U);
  const int exponent = static_cast<int>(bits >> 23U & 0xffU) - 127 + 7;
  if (exponent <= 0) return sign;  // below the smallest normal number, a 64th
  return static_cast<std::uint8_t>(sign | static_cast<std::uint8_t>(exponent << 3) | (bits >> 20U & 7U));
}

}  // namespace spillway::hwprofiles
