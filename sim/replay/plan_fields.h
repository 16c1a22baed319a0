// Fields of a plan's file (base/fields.h). Ids are those of the trace; -1 stands for none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/fields.h"
#include "models/pipeline/pipeline_document.h"
#include "sim/devices/memory/memory_plan_fields.h"
#include "sim/replay/offload_plan.h"
#include "sim/replay/order_plan.h"

namespace spillway::sim {

struct DevicePlaces {
  std::int16_t device = 0;
  std::optional<MemoryPlan> plan;
};

struct PlanDocument {
  std::optional<PipelineDocument> schedule;
  std::optional<OffloadPlan> fates;
  std::optional<OrderPlan> order;
  std::optional<MemoryPlan> memory;            // of device 0, where it is the only one
  std::vector<DevicePlaces> memory_by_device;  // else
};

void describe(PlanDocument& document, FieldVisitor& visitor);
void describe(OffloadPlan& plan, FieldVisitor& visitor);
void describe(OrderPlan& plan, FieldVisitor& visitor);

// The JSON Schema of a plan's file.
std::string plan_schema();

}  // namespace spillway::sim
