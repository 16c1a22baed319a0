// Best buffer inside a range of time: a k-d tree over lifetimes finds the one with the largest key.
//
//   upper ^  . |  o |        Lifetimes as points. Nodes are halved by birth and by end in turn. The buffers inside
//         |----+--+ | x      [lower, upper) are the corner with later births and earlier ends. A node with all of
//         | o  | o|-+--      its lifetimes there answers at once, one with none there is left out: a search visits
//         +----------> lower some 2 sqrt(n) nodes at most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/layout/layout_sections.h"

namespace spillway::planners {

class BestInside {
 public:
  explicit BestInside(std::span<const SectionSpan> lives);

  // All are there again, with these keys.
  void reset(std::span<const float> keys);
  // The buffer with the largest key, of equal ones the last born, of those the last; -1 if there is none.
  [[nodiscard]] std::int32_t find(SectionSpan stretch);
  void remove(std::int32_t buffer);
  [[nodiscard]] std::int64_t visits() const { return visits_; }  // of nodes by find() since reset()

 private:
  struct Box {
    std::int32_t first_born, last_born, first_end, last_end;
  };
  struct Best {
    float key;
    std::int32_t place;  // in the order of births; none: -1
    [[nodiscard]] bool beats(Best other) const {
      return place >= 0 && (other.place < 0 || key > other.key || (key == other.key && place > other.place));
    }
  };

  void split(std::span<std::int32_t> buffers, std::int32_t from, std::int32_t size, bool by_end,
             std::span<const SectionSpan> lives);
  void find(std::size_t node, SectionSpan stretch, Best& best);
  void refresh(std::size_t node);

  std::int32_t leaves_ = 1;             // a power of two
  std::vector<std::int32_t> by_birth_;  // place -> buffer
  std::vector<std::int32_t> place_of_;  // buffer -> place
  std::vector<std::int32_t> leaf_of_;   // buffer -> leaf
  std::vector<Box> boxes_;              // of nodes: 1 is the root, those below n are 2 n and 2 n + 1
  std::vector<Best> best_;
  std::int64_t visits_ = 0;
};

}  // namespace spillway::planners
