// The memory policies by name: the words of memory.allocator and --allocator.
#pragma once

#include <array>
#include <string_view>

#include "base/floors.h"

namespace spillway::sim {

inline constexpr std::string_view arena_policy = "arena", gmlake_policy = "gmlake", ideal_policy = "ideal",
                                  planned_policy = "planned", torch_policy = "torch",
                                  expandable_policy = "torch-expandable";

struct MemoryPolicy {
  std::string_view name, about;
  bool follows_plan = false;      // needs a MemoryPlan
  std::string_view short_name{};  // among techniques; empty: the name
};
inline constexpr std::array<MemoryPolicy, 6> memory_policy_table = {{
    {arena_policy, "fixed places for every tensor, as a layout has them", true},
    {gmlake_policy, "GMLake: blocks stitched together from pieces of physical memory"},
    {ideal_policy, "an ideal allocator: a bound", false, "no-fragmentation"},
    {planned_policy, "STAlloc's run time: requests go where its plan has them", true},
    {torch_policy, "PyTorch's caching allocator"},
    {expandable_policy, "PyTorch's expandable segments", false, "expandable"},
}};

}  // namespace spillway::sim
