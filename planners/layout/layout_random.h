// Random numbers that are the same everywhere: the standard's distributions differ between libraries.
#pragma once

#include <cstdint>

namespace spillway::planners {

class LayoutRandom {
 public:
  explicit LayoutRandom(std::uint64_t seed) : state_(seed) {}

  // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }
  // In [0, 1).
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24F; }
  // Bell-shaped around 0 with variance 1/2.
  float bell() { return uniform() + uniform() + uniform() + uniform() + uniform() + uniform() - 3; }

 private:
  std::uint64_t state_;
};

}  // namespace spillway::planners
