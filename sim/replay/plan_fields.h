// What a plan's file says: its fields (base/fields.h). Ids are those of the trace; -1 stands for none.
#pragma once

#include <optional>

#include "base/fields.h"
#include "models/pipeline/pipeline_document.h"
#include "sim/devices/memory/memory_plan_fields.h"
#include "sim/replay/offload_plan.h"
#include "sim/replay/order_plan.h"

namespace spillway::sim {

struct PlanDocument {
  std::optional<PipelineDocument> schedule;
  std::optional<OffloadPlan> fates;
  std::optional<OrderPlan> order;
  std::optional<MemoryPlan> memory;
};

void describe(PlanDocument& document, FieldVisitor& visitor);
void describe(OffloadPlan& plan, FieldVisitor& visitor);
void describe(OrderPlan& plan, FieldVisitor& visitor);

// The JSON Schema of a plan's file.
std::string plan_schema();

}  // namespace spillway::sim
