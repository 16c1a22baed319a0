// A workload as the engine's activity graph.
#pragma once

#include <map>
#include <vector>

#include "bench/engine_workloads.h"
#include "sim/engine/activity_graph.h"

namespace spillway::bench {

inline ActivityGraph to_graph(const Workload& workload) {
  ActivityGraph g;
  g.reserve(workload.operators.size(), workload.operators.size() * 2);
  for (std::uint32_t lane = 0; lane < workload.lanes; ++lane) g.add_lane();
  for (std::uint32_t link = 0; link < workload.links; ++link)
    g.add_link(rate_from_bytes_per_second(bench::link_bytes_per_second));
  std::map<std::vector<std::uint32_t>, PathId> paths;
  for (const Operator& op : workload.operators) {
    ActivityId a{};
    if (op.is_copy) {
      auto [place, is_new] = paths.try_emplace(op.links);
      if (is_new) {
        std::vector<PathEntry> entries;
        for (const std::uint32_t link : op.links) entries.push_back({LinkId{link}});
        place->second = g.add_path(entries);
      }
      a = g.add_flow(workload.copies_in_lanes ? TrackId{op.lane} : no_lane, op.bytes, place->second);
    } else {
      a = g.add_delay(TrackId{op.lane}, nanoseconds(op.nanoseconds));
    }
    for (const std::uint32_t before : op.after) g.add_edge(ActivityId{before}, a);
  }
  g.finish();
  return g;
}

}  // namespace spillway::bench
