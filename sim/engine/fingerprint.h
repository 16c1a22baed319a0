// Rolling 64-bit digest of what happened, to prove that two runs were the same run.
//
// Ingredients are kept apart, as OMNeT++ does: an *event* digest takes (time, kind, target) of every
// event in the order it was handled and so changes with the tie order; a *result* digest takes what a
// user sees (start and end of each activity, in id order) and changes only when an outcome changes.
// Not cryptographic: it guards against accident, not malice.
#pragma once

#include <bit>
#include <cstdint>

#include "base/units.h"

namespace spillway::sim {

class Fingerprint {
 public:
  // Order matters: add(a), add(b) differs from add(b), add(a).
  constexpr void add(std::uint64_t word) {
    digest_ = (std::rotl(digest_, 27) ^ (word * 0x9E3779B97F4A7C15u)) * 0xD6E8FEB86659FD93u;
  }
  constexpr void add(Picos time, std::uint32_t kind, std::uint32_t target) {
    add(static_cast<std::uint64_t>(time.count()) ^ std::rotl((std::uint64_t{kind} << 32) | target, 40));
  }

  // Finished value; adding may go on afterwards.
  [[nodiscard]] constexpr std::uint64_t value() const {
    std::uint64_t x = digest_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  friend constexpr bool operator==(const Fingerprint&, const Fingerprint&) = default;

 private:
  std::uint64_t digest_ = 0x5350494C4C574159u;
};

}  // namespace spillway::sim
