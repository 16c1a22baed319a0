// The "capacity" object of a scenario: its fields, and what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "studies/capacity/capacity_request.h"

namespace spillway::studies {

// 0, empty and nullopt: not said.
struct CapacitySection : LayoutSizes {
  struct Technique {
    std::string name;
    std::optional<std::string> set;  // JSON
  };
  std::string axis, prices;
  std::int64_t from = 0, to = 0, step = 0, replays = CapacityLayouts().replays;
  std::optional<CapacityGoal> goal;
  std::vector<Technique> techniques;
  bool has_layouts = false;
  std::vector<std::string> machines, drives;
  Constraints constraints;
};

void describe(CapacitySection& section, FieldVisitor& visitor);

const Words& capacity_goal_words();

}  // namespace spillway::studies
