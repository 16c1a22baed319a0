// Who holds memory, cut to what people read.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/replay/result.h"

namespace spillway::sim {

inline Bytes sum_of(const std::vector<PeakOwner>& owners) {
  Bytes sum{};
  for (const PeakOwner& owner : owners) sum += owner.bytes;
  return sum;
}

// The first `most` of owners, largest first, and behind them the sum of the others as one; one too many is no reason to
// hide it.
inline std::vector<PeakOwner> largest_owners(std::vector<PeakOwner> owners, std::size_t most) {
  if (owners.size() <= most + 1) return owners;
  PeakOwner rest{std::to_string(owners.size() - most) + " others", Bytes(0), true};
  for (std::size_t i = most; i < owners.size(); ++i) rest.bytes += owners[i].bytes;
  owners.resize(most);
  owners.push_back(std::move(rest));
  return owners;
}

}  // namespace spillway::sim
