#include "planners/layout/layout_chain.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#define SPILLWAY_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define SPILLWAY_WIDE_VECTORS
#endif

namespace spillway::planners {
namespace {

using Lanes = std::int32_t __attribute__((vector_size(32)));
using Halves = std::uint64_t __attribute__((vector_size(32)));
static_assert(sizeof(Lanes) / sizeof(std::int32_t) == chain_padding);

#define SPILLWAY_INLINE __attribute__((always_inline)) inline

// Vectors go by reference: between functions for different instructions clang passes none by value.
SPILLWAY_INLINE void load(Lanes& lanes, const std::int32_t* from) { std::memcpy(&lanes, from, sizeof lanes); }

SPILLWAY_INLINE void store(std::int32_t* to, const Lanes& lanes) { std::memcpy(to, &lanes, sizeof lanes); }

SPILLWAY_INLINE bool any(const Lanes& lanes) {
  Halves halves;
  std::memcpy(&halves, &lanes, sizeof halves);
  return (halves[0] | halves[1] | halves[2] | halves[3]) != 0;
}

}  // namespace

SPILLWAY_WIDE_VECTORS ChainEnd stack_chains(ChainPass& pass) {
  const Lanes zero = {}, first = {0, 1, 2, 3, 4, 5, 6, 7};
  const Lanes capacity = zero + pass.capacity;
  const std::int32_t lower = pass.lower, upper = pass.upper;
  for (std::int32_t position = pass.position; position < pass.count; ++position) {
    const SearchKey key = pass.list[position];
    const SearchItem& item = pass.items[pass.order[rank_of(key)]];
    const std::int32_t from = std::max(item.lower, lower), to = std::min(item.upper, upper);
    if (from >= to) continue;
    const Lanes bound = zero + bound_of(key);
    Lanes raised = zero;
    for (std::int32_t s = from; s < to; s += chain_padding) {
      Lanes lowest, latest;
      load(lowest, pass.lowest_top + s);
      load(latest, pass.latest + s);
      const Lanes higher = (bound > latest) & (lowest > bound) & (first < zero + (to - s)) & lowest;
      raised = raised > higher ? raised : higher;
    }
    if (any(raised)) {
      pass.position = position;
      pass.raised = 0;
      for (std::int32_t lane = 0; lane < chain_padding; ++lane) pass.raised = std::max(pass.raised, raised[lane]);
      return ChainEnd::raise;
    }
    Lanes over = zero;
    const Lanes size = zero + item.size, own_top = bound + size;
    for (std::int32_t s = from; s < to; s += chain_padding) {
      const Lanes within = first < zero + (to - s);
      Lanes top, lowest, latest, choices;
      load(top, pass.top + s);
      load(lowest, pass.lowest_top + s);
      load(latest, pass.latest + s);
      load(choices, pass.choices + s);
      const Lanes stacked = (top > bound ? top : bound) + size;
      over |= within & (stacked > capacity);
      store(pass.top + s, within ? stacked : top);
      store(pass.lowest_top + s, (within & (own_top < lowest)) ? own_top : lowest);
      store(pass.choices + s, choices - (within & (bound <= latest)));
    }
    if (any(over)) {
      pass.position = position;
      return ChainEnd::overflow;
    }
  }
  pass.position = pass.count;
  return ChainEnd::done;
}

}  // namespace spillway::planners
