// A memory plan: where each request of a step goes, found beforehand by a planner, followed by the planned and the
// arena policies.
//
//   pool    |====== requests with places, reused over time ======|            one allocation from the driver
//   order   r0 r1 ... | r_p r_p+1 ... r_last | r_p ...                        the p-th to the last repeat for ever
//
// Blocks that live when the plan begins to be followed have places too, if the plan knows of them.
//
// Sources: STAlloc (EuroSys 2026, arXiv 2507.16274; run time as in infinigence/STAlloc) for kind stalloc; ROAM's layout
// (arXiv 2310.19295), fixed places for every tensor, for kind layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/units.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/devices/memory/memory_types.h"

namespace spillway::sim {

// Kinds, as files have them; and the techniques that make them.
inline constexpr std::string_view stalloc_word = "stalloc", layout_word = "layout";

enum class PlanKind : std::uint8_t {
  stalloc,  // requests above 512 bytes, matched by their ordinal and size (both rounded to 512)
  layout,   // all requests, matched by their ordinal; a smaller request than planned fits too
};

struct PlannedPlace {
  Bytes offset{-1};  // from the pool's beginning; -1: left to the caching allocator
  Bytes size{};
};

// Half-open, from the pool's beginning.
struct PlanRange {
  Bytes begin{}, end{};
};

// Pool bytes that no planned request uses between the two layers the space is named after: for requests of a size not
// known beforehand (RequestSpace).
struct DynamicSpace {
  std::string name;
  std::vector<PlanRange> ranges;  // ascending, disjoint
};

// A request, by ordinal among all of more than 0 bytes, that is not to go to its planned place.
struct PlannedSpace {
  std::uint64_t request = 0;
  RequestSpace space = RequestSpace::planned;
};

struct MemoryPlan {
  std::string technique;  // who made it; for people
  PlanKind kind = PlanKind::stalloc;
  Bytes pool{};                       // size of the pool
  std::vector<PlannedPlace> places;   // by ordinal among planned requests
  std::size_t period_begin = 0;       // after the last place comes this one
  std::vector<std::uint64_t> cached;  // ordinals among all requests above 512 bytes left to the caching allocator;
                                      // ascending
  Bytes small_peak{};                 // stalloc: profiled peak of requests of at most 512 bytes, in 512-byte slots
  std::vector<DynamicSpace> spaces;
  std::vector<PlannedSpace> dynamic;  // ascending by request
  // First choice of each of `dynamic`, if large enough: its place in the profiled step. Empty: none.
  std::vector<PlannedPlace> dynamic_places;
  // Blocks from before the first request, in the order of blocks_before(). Behind the end: the caching allocator.
  std::vector<PlannedPlace> before;
};

// The memory policy that follows it.
std::string_view policy_of(const MemoryPlan& plan);

// By ordinal, as far as the last of plan.dynamic: what AllocationStreamOptions::spaces wants.
std::vector<RequestSpace> request_spaces(const MemoryPlan& plan);

// JSON, schema "spillway-memory-plan". Keys: technique (left out if unknown), kind, pool_bytes, period_begin,
// small_peak_bytes, places[[offset, size]], cached[], spaces[{name, ranges[[begin, end]]}], dynamic[[request, space]],
// dynamic_places[[offset, size]], before[[offset, size]].
// Or a layout as CSV, MiniMalloc's form with an offset: columns id, size and offset, others ignored. Ids are ordinals
// of requests, or "before-" and the ordinal of a block from before them. Missing ones are left to the caching
// allocator, and the whole repeats. Throws InputError for other text: see check_plan().
MemoryPlan read_memory_plan(ByteSource& source);
std::string memory_plan_json(const MemoryPlan& plan);
// Places in the pool, sizes not negative, period_begin within the places, ranges ascending and in the pool. Says
// nothing about overlaps in time: that is the validator's business, and the policies fall back where a place is taken.
void check_plan(const MemoryPlan& plan, const std::string& file);

}  // namespace spillway::sim
