// Plans as STAlloc's planner writes them, plan/dev_N.txt:
//
//   7 4711                                         ordinals (above 512 bytes) left to the caching allocator; may be
//   empty MAX_ALLOCATED POOL BEFORE PERIOD SMALL         bytes, bytes, places before the repeated part, in it, bytes of
//   slots 0 1048576                                      offset and size of each place, in order
//
// Source: infinigence/STAlloc 3a9f97f.
#pragma once

#include <string>
#include <string_view>

#include "sim/devices/memory/memory_plan.h"

namespace spillway::sim {

// Precondition: the plan is of kind stalloc and every place has an offset. `allocated`: most ever allocated at once.
std::string stalloc_plan_text(const MemoryPlan& plan, Bytes allocated);

// Throws InputError with the line of whatever is wrong: see also check_plan(). Without spaces.
MemoryPlan parse_stalloc_plan(std::string_view text, const std::string& file);

}  // namespace spillway::sim
