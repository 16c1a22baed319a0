// The "capacity" object of a scenario: its fields, and what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "studies/candidates/objective.h"
#include "studies/candidates/request_parts.h"

namespace spillway::studies {

enum class CapacityGoal : std::uint8_t {
  largest,   // the last value that holds: layers, sequence, batch
  smallest,  // the first one: GPUs, memory, drives
};
std::string_view to_string(CapacityGoal goal);

// 0, empty and nullopt: not said.
struct CapacitySection : LayoutSizes {
  struct Technique {
    std::string name;
    std::optional<std::string> set;  // JSON
  };
  std::string axis, prices;
  std::int64_t from = 0, to = 0, step = 0, replays = 5;
  std::optional<CapacityGoal> goal;
  std::vector<Technique> techniques;
  bool has_layouts = false;
  std::vector<std::string> machines, drives;
  Constraints constraints;
};

void describe(CapacitySection& section, FieldVisitor& visitor);

const Words& capacity_goal_words();

}  // namespace spillway::studies
