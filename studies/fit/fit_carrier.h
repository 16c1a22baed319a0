// Who carries a way out today: what people can run comes before what only a simulation does.
#pragma once

#include <cstdint>
#include <string_view>

#include "studies/fit/fit_point.h"

namespace spillway::studies {

enum class Carrier : std::uint8_t {
  frameworks,  // PyTorch, DeepSpeed, Megatron, torchtitan or Trainer have it
  planner,     // a PyTorch program under a plan of ours (spillway.torch) for activations
  nobody,      // research: schedules, orders, allocators and moved states that no program at hand has
};
// "frameworks", "spillway.torch", "simulation": in results and tables.
std::string_view to_string(Carrier carrier);

// Carrier of what the point has and the scenario as given has not: the scenario itself is run already.
Carrier carrier_of(const FitPoints& points, const FitPoint& point);

}  // namespace spillway::studies
