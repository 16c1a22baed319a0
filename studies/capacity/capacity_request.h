// The request of `spillway capacity`: which value of a scenario, under which techniques, within which constraints.
//
//   "capacity": {
//     "axis": "layers",                         // or sequence, micro_batch, global_batch, gpus, any key of a scenario
//     "from": 8, "to": 1024, "step": 8, "goal": "largest",
//     "techniques": ["keep", "full", "full+zero1",
//                    {"name": "half the memory", "set": {"memory": {"capacity_bytes": 32000000000}}}],
//     "layouts": {"tensor_parallel": [1, 2, 4, 8]},     // or true: search them for every value
//     "machines": ["dgx-a100", "dgx-h100"], "drives": ["micron-9550-max-6.4tb"],    // each with every technique
//     "constraints": {"step_time_seconds": 30, "tokens_per_second": 1000, "mfu": 0.2, "life_years": 5,
//                     "budget_usd": 2e6, "power_kw": 80},
//     "replays": 5, "prices": "prices.json"
//   }
//
// A technique is a name for settings of the scenario, so that whatever a scenario can say can be compared. `set` is
// merged into the scenario (null takes a key out); "a+b" is one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hwprofiles/price_list.h"
#include "studies/candidates/evaluate.h"
#include "studies/capacity/capacity_fields.h"

namespace spillway::studies {

// Values from, from + step, ..., at most `to`, of a scenario's key that takes a whole number.
struct CapacityAxis {
  std::string name;  // "layers"
  std::string key;   // "model.layers"
  std::int64_t from = 1, to = 1, step = 1;
  std::int64_t first = 1;  // tried first: the scenario's own
  CapacityGoal goal = CapacityGoal::largest;

  std::vector<std::int64_t> values;  // ascending; those that are possible, where that is known; empty: all of them

  [[nodiscard]] std::int64_t count() const {
    return values.empty() ? (to - from) / step + 1 : static_cast<std::int64_t>(values.size());
  }
  [[nodiscard]] std::int64_t value(std::int64_t index) const {
    return values.empty() ? from + index * step : values[static_cast<std::size_t>(index)];
  }
  // Index of the value, or of the one before it.
  [[nodiscard]] std::int64_t index(std::int64_t value) const {
    if (values.empty()) return value < from ? 0 : (value - from) / step;
    const auto behind = std::upper_bound(values.begin(), values.end(), value);
    return behind == values.begin() ? 0 : behind - values.begin() - 1;
  }
};

struct CapacityTechnique : Candidate {
  std::string words;         // its name as people read it
  bool is_planned = false;   // under its edits the best plan of all (studies/offload/best_offload.h)
  bool is_thorough = false;  // with the replays of a plan on its own, not the few of a look along the axis
};

inline constexpr std::string_view planned_technique = "planned";

// Layouts to be searched at every value of the axis.
struct CapacityLayouts : LayoutSizes {
  bool searched = false;
  std::int64_t replays = 5;           // at most, at a value
  std::int64_t smallest_replays = 3;  // more, of those that should hold least, where none of the first fits
};

inline constexpr std::string_view gpus_axis = "gpus";  // no scenario's key: replicas follow from it and the layout

struct CapacityRequest {
  std::string path;                   // of the scenario
  std::vector<std::string> settings;  // for every technique, as from --set
  CapacityAxis axis;
  std::vector<CapacityTechnique> techniques;  // not empty
  bool is_open = false;                       // the best plan of all is tried beyond them
  Constraints constraints;
  CapacityLayouts layouts;
  std::int64_t gpus = 1;   // of the scenario: layouts are searched on so many
  bool is_priced = false;  // answers have their cost: machines, drives or a budget are given
  PriceList prices;
  ReplayStore* store = nullptr;  // what replays are taken from and kept in
};

// The command line's values, over the file's.
struct CapacityFlags {
  CapacitySection said = unsaid<CapacitySection>();
  std::vector<std::string> techniques{};  // "full+zero1", bundled or the file's own, or "NAME:key=value,key=value"
  bool layouts = false;
  bool planned = false;  // the best plan of all beyond the named techniques: minutes for a large step
};

// Defaults: axis layers, or memory.capacity_bytes smallest for a scenario of a trace. Layers go in steps of the
// pipeline's stages, sequences of 1,024 tokens, batches of one per replica. Techniques are keep, selective, full, and
// those that the scenario has drives, several stages or several replicas for. Throws InputError (file, JSON pointer or
// flag) for what is unknown, contradicts itself or can't vary.
CapacityRequest read_capacity_request(const std::string& path, std::span<const std::string> settings,
                                      const CapacityFlags& flags = {});

// The scenario's key for an axis: short names first. Throws InputError for one that is no key, or holds no number.
std::string capacity_key(std::string_view axis);
// The unit of its values; an axis that isn't named may be memory, with sizes in units of bytes.
Dimension dimension_of_axis(std::string_view axis);

}  // namespace spillway::studies
