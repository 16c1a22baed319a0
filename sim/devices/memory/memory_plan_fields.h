// The fields of a memory plan's file (base/fields.h), for those who read one as a part of theirs; check_plan() is left
// to them.
#pragma once

#include "base/fields.h"
#include "sim/devices/memory/memory_plan.h"

namespace spillway::sim {

void describe(MemoryPlan& plan, FieldVisitor& visitor);

}  // namespace spillway::sim
