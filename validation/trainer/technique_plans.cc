#include "validation/trainer/technique_plans.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "planners/offload/checkpoints.h"
#include "planners/offload/lifetimes.h"
#include "planners/order/trace_order.h"
#include "planners/recompute/recompute_techniques.h"
#include "planners/stalloc/stalloc_plan.h"
#include "planners/technique/technique_table.h"

namespace spillway::validation {
namespace {

struct TrainerTechnique {
  std::string_view name;
  std::vector<std::string_view> techniques;  // of the table
  Tier tier = Tier::drive;
  std::int64_t every = 1;
};

const std::vector<TrainerTechnique>& table() {
  static const std::vector<TrainerTechnique> rows = {
      {"keep", {}},
      {"recompute", {recompute_word}},
      {"recompute-every-2", {recompute_word}, Tier::drive, 2},
      {"offload-host", {ssdtrain_word}, Tier::host},
      {"offload-drive", {ssdtrain_word}},
      {"recompute-offload", {checkpoints_word}},
      {"stream", {streaming_word}},
      {"order-arena", {order_word, layout_word}},
      {stalloc_word, {stalloc_word}},
  };
  return rows;
}

OffloadSettings settings_of(Tier tier) {
  OffloadSettings settings;
  settings.tier = tier;
  settings.in_flight = Bytes(0);
  settings.forwards = false;
  settings.ssdtrain.least_elements = 1;
  settings.ssdtrain.adaptive = false;
  settings.stream = {.least = Bytes(1), .shortest_stay = Picos(0), .a_layer_ahead = false};
  return settings;
}

}  // namespace

std::span<const std::string_view> trainer_techniques() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const TrainerTechnique& row : table()) all.push_back(row.name);
    return all;
  }();
  return names;
}

TechniquePlan technique_plan(const Trace& trace, std::string_view technique, const HardwareProfile& hardware) {
  const auto row = std::find_if(table().begin(), table().end(),
                                [&](const TrainerTechnique& each) { return each.name == technique; });
  if (row == table().end())
    throw InputError("--technique", "", "no technique is called '" + std::string(technique) + "'",
                     suggest(technique, trainer_techniques()));
  const ReplayOptions options;
  const PlainReplayer replayer(hardware, options);
  const OffloadSettings settings = settings_of(row->tier);
  TechniquePlan made;
  made.technique = technique;
  made.plan =
      make_plan(row->techniques, {.trace = trace, .replayer = replayer, .settings = settings, .every = row->every})
          .plan;
  if (made.plan.memory.empty()) return made;
  made.allocator.plan = std::make_shared<const MemoryPlan>(made.plan.memory.begin()->second);
  made.allocator.policy = policy_of(*made.allocator.plan);
  return made;
}

}  // namespace spillway::validation
