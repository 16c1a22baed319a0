// Of the buffers whose lives lie inside a stretch of time, the one with the best key: a k-d tree over lives.
//
//   upper ^  . |  o |        Lives as points. Halves of a node part its buffers by birth, their halves by end, and so
//   on;
//         |----+--+ | x      what lies inside of [lower, upper) is the corner with later births and earlier ends. A
//         node | o  | o|-+--      all of whose lives lie there answers at once, one that has none there is left out, so
//         that a
//         +----------> lower search visits some 2 sqrt(n) nodes at most.
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
