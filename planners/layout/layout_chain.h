// The inner loop of the exhaustive search: the unplaced buffers of a window of sections stacked by their bounds.
//
// Written for vectors of eight sections; integers alone, so that the answer is the same whichever version a machine
// runs. Arrays over sections have `chain_padding` more entries than sections, which are read but never matter.
#pragma once

#include <cstdint>
#include <limits>

namespace spillway::planners {

inline constexpr std::int32_t chain_padding = 8;
inline constexpr std::int32_t beyond_any_capacity = std::numeric_limits<std::int32_t>::max() / 2;

struct SearchItem {
  std::int32_t lower, upper;  // its sections
  std::int32_t size, alignment, fixed, twin;
};

// An entry of a list of items: bound above, position in the order below, so that entries sort by both.
using SearchKey = std::uint64_t;
inline SearchKey search_key(std::int32_t bound, std::int32_t rank) {
  return std::uint64_t{static_cast<std::uint32_t>(bound)} << 32 | static_cast<std::uint32_t>(rank);
}
inline std::int32_t bound_of(SearchKey key) { return static_cast<std::int32_t>(key >> 32); }
inline std::int32_t rank_of(SearchKey key) { return static_cast<std::int32_t>(key & 0xFFFFFFFFU); }

struct ChainPass {
  const SearchKey* list;       // the frame's items, ascending
  std::int32_t count;          // of the list
  const std::int32_t* order;   // rank -> item
  const SearchItem* items;     //
  const std::int32_t* latest;  // of sections: how high the next can lie
  std::int32_t* top;           // of sections: of the chain
  std::int32_t* lowest_top;    // of sections: of those that can be next
  std::int32_t* choices;       // of sections: how many can be next
  std::int32_t lower, upper;   // the window
  std::int32_t capacity;       //
  std::int32_t position = 0;   // in the list: where it goes on, or what ended it
  std::int32_t raised = 0;     // the bound the item at the position really has
};

enum class ChainEnd : std::uint8_t { done, raise, overflow };

// Stacks items from `position` on. `raise`: an item can't be next in some section and lies higher than its bound; it is
// not stacked yet. `overflow`: an item does not fit below the capacity.
ChainEnd stack_chains(ChainPass& pass);

}  // namespace spillway::planners
