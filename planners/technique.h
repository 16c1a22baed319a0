// Technique: a row of the one table (planners/technique/technique_table.h). It has a name, a source, the part of a Plan
// that it makes, how a scenario says it, what it needs, and the planner that makes the part.
//
// Whatever offers a choice of techniques walks that table: the scenario's words, capacity, sweep and window, `spillway
// list`, the tables in docs. Each room provides the rows of its planners.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planners/replayer.h"
#include "sim/replay/plan.h"

namespace spillway::planners {

struct ChunkedLayers;
struct OffloadSettings;

// Keys of a scenario with techniques as their words.
inline constexpr std::string_view schedule_key = "model.pipeline_schedule", recompute_key = "model.recompute",
                                  offload_key = "offload.technique", order_key = "order.technique",
                                  allocator_key = "memory.allocator", zero_key = "model.zero_stage",
                                  optimizer_device_key = "model.optimizer_device";
// "offload.technique=mix", as from --set.
std::string setting(std::string_view key, std::string_view value);

// Parts in the order in which they are made. none: nothing of a plan; the set-up's layout of state over GPUs.
enum class PlanPart : std::uint8_t { schedule, fates, order, memory, none };
std::string_view to_string(PlanPart part);

struct TechniqueRequest {
  const Trace& trace;  // as the parts before this one leave it
  const Replayer& replayer;
  const OffloadSettings& settings;
  std::int64_t every = 1;                 // recompute: of every so many layers
  const ChunkedLayers* layers = nullptr;  // what a generated step's schedule moves; null: nothing
  const PipelinePlan* schedule = nullptr;
  const OffloadPlan* fates = nullptr;  // of the trace, for orders: they order what these leave
};

struct TechniquePart {
  Plan plan;  // the part alone
  // For `fates`: the trace with its transfers, and the replay that settled the plan. Empty: not replayed.
  std::optional<PlannedTrace> planned;
  Result result;
  std::vector<std::string> notes;  // what a user should know: what it could not do
};

// When `capacity` tries a way that nobody asked for.
enum class Offered : std::uint8_t { when_named, always, of_models, with_drives, with_stages, with_replicas };

// A name for settings of a scenario under which the technique runs.
struct TechniqueWay {
  std::string name;  // "ssdtrain-host"
  std::string about;
  std::vector<std::string> settings;  // as from --set
  Offered offered = Offered::when_named;
};

struct Technique {
  std::string name;
  std::string title, about, source;
  PlanPart part = PlanPart::fates;
  std::string key;   // "offload.technique"; empty: no scenario says it, a command or a plan does
  std::string word;  // of the key; empty: the name
  std::vector<Capability> needs;
  std::vector<TechniqueWay> ways;
  // Null: the generator of steps or the allocator does it by itself.
  TechniquePart (*make)(const TechniqueRequest& request) = nullptr;
  bool moves_state = false;  // weights and optimizer state leave the device
  // Each micro-batch is planned by itself, by its own times and figures of the whole: what a folded step shows is
  // planned as the whole would be (sim/replay/planned_fold.h).
  bool repeats = false;
};

}  // namespace spillway::planners
