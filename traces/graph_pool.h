// The lane of CUDA graphs' private memory pool: a program's allocations while a graph is captured. No other work is
// given memory from it, and it goes back to the driver with the graphs alone (torch.cuda.graph_pool_handle(),
// c10/cuda/CUDACachingAllocator.cpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/trace.h"

namespace spillway::traces {

inline constexpr std::int64_t graph_pool_number = 197;  // Lane::number and name, of generated traces
inline constexpr std::string_view graph_pool_name = "graph pool";

inline bool is_graph_pool(const Trace& trace, LaneId lane) {
  if (lane == LaneId::none) return false;
  const Lane& of = trace.lanes[index_of(lane)];
  return of.kind == LaneKind::stream && of.number == graph_pool_number &&
         trace.strings.text(of.name) == graph_pool_name;
}

}  // namespace spillway::traces
