// A whole plan from techniques of its parts, or from parts that are there, in one replay.
//
//   schedule (in the step as generated) -> fates -> order -> memory
//
// Decisions for tensors are planned on the step. The order is planned on what they leave: transfers and repeated ops
// travel with the unit they hang on (sim/replay/order_plan.h), then forwarding is settled again. Places are planned on
// the requests of a replay without fragmentation, those of transfers and repeated ops among them, on every device. The
// replay with places may bring them in another order, so that is repeated while it lowers what is reserved.
//
// A planned order (not a given one) is kept if the step, with its places if any, holds less with it than in the
// program's order. An order that is all that was asked for is always kept. Decisions searched within a budget are
// searched again with less memory while what the other parts leave doesn't fit and the last search brought it nearer.
// Deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planners/technique.h"

namespace spillway::planners {

// For each part a technique, a part that is there, or neither: as the step has it.
struct Composition {
  const Technique* fates = nullptr;
  const OffloadPlan* given_fates = nullptr;  // of the trace, or of the trace in the given order
  const Technique* order = nullptr;
  const OrderPlan* given_order = nullptr;
  const Technique* memory = nullptr;
  const std::map<std::int16_t, MemoryPlan>* given_memory = nullptr;
  std::string given_file;  // where the given parts stand, for messages

  [[nodiscard]] bool moves() const { return fates != nullptr || given_fates != nullptr; }
  [[nodiscard]] bool orders() const { return order != nullptr || given_order != nullptr; }
  [[nodiscard]] bool places() const { return memory != nullptr || given_memory != nullptr; }
};

struct ComposedStep {
  Plan plan;                            // with decisions and order of the trace as it was given
  std::optional<PlannedTrace> planned;  // the trace of `result`, where decisions for tensors change it
  std::optional<Trace> ordered;         // the trace of `result`, where an order alone does
  Result result;
  std::vector<std::string> notes;  // what a user should know: an order not kept, what an order costs
};

// `request.trace` is the step. The replayer's allocator is that of a step without places; where places are planned it
// is to be one that fragments nothing. Throws InputError as the techniques do, naming what the trace lacks, and for
// given parts of another trace, or under which the step can't run.
ComposedStep compose(const Composition& parts, const TechniqueRequest& request);

}  // namespace spillway::planners
