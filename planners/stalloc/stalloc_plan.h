// A STAlloc plan: the profile of a step in, places for its static requests and room for its dynamic ones out.
//
//   pool  |weights, gradients|optimizer state|  scoped and transient requests  |    as published
//                            |initial ones...|
//   pool  |  one layout of all of them, as low as the layout solver gets it    |    best, or as above if that is lower
//
// Best also plans blocks from before the stream, and requests that as published are left to the cache (unreleased). It
// may give dynamic requests places in the pool, to try before the spaces: whichever reserves less on the profile.
//
// A dynamic request between layers a and b may use places that no static request alive in T(a, b) = [a begins, b ends)
// occupies (HomoLayer groups).
//
// Source: STAlloc (EuroSys 2026, arXiv 2507.16274), sections 5.1 and 5.2; address space of the authors' planner
// (infinigence/STAlloc 3a9f97f).
//
// Deviations. A request of the repeated period that is freed behind it holds its place for the whole period, in every
// algorithm. The published planner keeps a copy of it one period on, but uses that only when it forms layers. Spaces
// are made for every pair of passes around some dynamic request; the published code pairs layers by index arithmetic
// and has modes that depend on expert counts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planners/layout/layout_solver.h"
#include "planners/stalloc/memory_profile.h"
#include "sim/devices/memory/memory_plan.h"
#include "sim/devices/memory/memory_types.h"

namespace spillway::planners {

enum class StallocAlgorithm : std::uint8_t {
  group,           // the paper's: HomoPhase groups fused, then HomoSize layers
  split_and_fuse,  // the published code's default: HomoSize layers alone
  best,            // ours: the layout solver, over everything or over all but what is held to the end; or one of the
                   // above, or what PyTorch's allocator would make, where it is lower and not too long a search
};

struct StallocOptions {
  StallocAlgorithm algorithm = StallocAlgorithm::best;
  // For best: placements tried after the first layout (LayoutOptions::effort). 0: in proportion to the requests, so
  // that planning takes seconds at most.
  std::int64_t effort = 0;
  int threads = 0;  // without effect on the plan
};

struct StallocPlan {
  MemoryPlan plan;                   // of kind stalloc
  std::vector<RequestSpace> spaces;  // by request of the profile: what AllocationStreamOptions::spaces wants
  std::array<std::uint64_t, request_class_count> requests{};  // by class
  Bytes lower_bound;  // most that what has a place occupies at once: no pool for that is smaller
  Bytes allocated;    // most that all requests occupy at once, in steps of 512 bytes
};

// Every plan is checked by check_layout() before it is returned. Best: seconds for 300,000 requests.
StallocPlan plan_stalloc(const MemoryProfile& profile, const StallocOptions& options = {});

// The profile as a stream of memory events of device 0, for replay_allocation_stream(): by ordinal, the requests are
// the profile's.
Trace stream_of(const MemoryProfile& profile);

}  // namespace spillway::planners
