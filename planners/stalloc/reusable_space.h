// Dynamic reusable space: which parts of a plan's pool are free all the time a group of dynamic requests may live.
//
//   offset ^      a begins       b ends
//          | ######  |             |           # static requests that live within T(a, b) are in the way;
//          |         | ####        |           what lies between them is the group's space
//          | ====================================
//          |   ##    |             |
//          +-------------------------------> time
//
// Source: STAlloc (EuroSys 2026, arXiv 2507.16274), section 5.2: HomoLayer groups G(a, b), occupied addresses A_o,
// idle addresses A_i.
#pragma once

#include <span>
#include <vector>

#include "planners/layout/layout_check.h"
#include "planners/stalloc/memory_profile.h"
#include "sim/devices/memory/memory_plan.h"
#include "sim/devices/memory/memory_types.h"

namespace spillway::planners {

struct ReusableSpaces {
  std::vector<DynamicSpace> spaces;
  std::vector<RequestSpace> of_request;  // by request of the profile; those of later iterations share the second's
};

// `statics`: the places of the plan. A pair of passes is known by its layers' names, which pass of the layer in its
// iteration they are, and whether that is the first iteration. O(groups x statics + requests log requests).
ReusableSpaces reusable_spaces(const MemoryProfile& profile, std::span<const LaidBuffer> statics, Bytes pool);

}  // namespace spillway::planners
