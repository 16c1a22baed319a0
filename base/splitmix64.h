// SplitMix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), and its parts:
//
//   scramble        each bit of x reaches each bit of the result; 0 stays 0
//   splitmix64      the first number of the generator of seed x: a hash of x
//   SplitMix64      the generator. Its distributions are the same everywhere, those of the standard library are not
#pragma once

#include <cstdint>

namespace spillway {

// 2^64 over the golden ratio, odd: multiples of it spread evenly.
inline constexpr std::uint64_t golden_gamma = 0x9E3779B97F4A7C15u;
inline constexpr std::uint64_t scramble_first = 0xBF58476D1CE4E5B9u, scramble_second = 0x94D049BB133111EBu;
// Odd numbers without pattern, for hashes of several words.
inline constexpr std::uint64_t odd_multiplier = 0xD6E8FEB86659FD93u, other_odd_multiplier = 0xA3B195354A39B70Du;

constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * scramble_first;
  x = (x ^ (x >> 27)) * scramble_second;
  return x ^ (x >> 31);
}

constexpr std::uint64_t splitmix64(std::uint64_t x) { return scramble(x + golden_gamma); }

class SplitMix64 {
 public:
  // `skipped` numbers have been drawn already.
  explicit constexpr SplitMix64(std::uint64_t seed, std::uint64_t skipped = 0)
      : state_(seed + skipped * golden_gamma) {}

  constexpr std::uint64_t next() { return scramble(state_ += golden_gamma); }
  // In [0, bound); even enough for bounds far below 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // In [0, 1).
  constexpr float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24F; }
  // Bell-shaped around 0 with variance 1/2.
  constexpr float bell() { return uniform() + uniform() + uniform() + uniform() + uniform() + uniform() - 3; }

 private:
  std::uint64_t state_;
};

}  // namespace spillway
