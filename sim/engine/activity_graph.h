// The work to be simulated, without its meaning: activities, lanes, links, edges.
//
//   lane 1   A ──delay──▶ B ──flow──▶ C       in order: B starts after A has ended (plus B's gap)
//                         │ │
//   lane 2                │ └─ end_to_start, lag 3 us ──▶ D
//   lane 3                └── start_to_start, lag 0 ──▶ E
//
// A *delay* lasts a given time. A *flow* moves `amount` units over a path of shared links and lasts as long as max-min
// sharing makes it. An *instant* lasts nothing (a join, a marker). An activity starts as soon as its release time has
// come, all its edges are satisfied and its lane lets it. Lanes are host threads, GPU streams, copy engines and
// communicators. Edges with lags are launches, event waits, syncs and launch-queue limits. Copies are flows; compute
// may be a flow of work units.
//
// Columns, not objects: an activity is an index. Fill, then finish() once, and run.
// Errors: a value out of its range is a programmer error (SPILLWAY_ASSERT).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/units.h"
#include "sim/engine/fluid_network.h"
#include "sim/engine/ids.h"
#include "sim/engine/reservoir.h"

namespace spillway::sim {

enum class ActivityKind : std::uint8_t { delay, flow, instant };

// When the edge's source lets its target go: at its end, or already at its start (plus the lag).
enum class EdgeType : std::uint8_t { end_to_start, start_to_start };

struct CapacityChange {
  Picos at{};
  LinkId link{};
  Rate capacity{};
};

class ActivityGraph {
 public:
  struct Edge {
    Picos lag{};
    std::uint32_t target = 0;
    EdgeType type = EdgeType::end_to_start;
  };
  struct FlowSpec {
    Rate cap{};
    PathId path{};
    std::uint32_t weight = 1;
  };

  // A lane starts its activities in the order they were added, at most `width` (>= 1) running at once.
  TrackId add_lane(std::uint32_t width = 1);
  LinkId add_link(Rate capacity) { return network_.add_link(capacity); }
  PathId add_path(std::span<const PathEntry> entries) { return network_.add_path(entries); }
  PathId add_path(std::initializer_list<PathEntry> entries) {
    return network_.add_path(std::span(entries.begin(), entries.size()));
  }
  ReservoirId add_reservoir(const ReservoirSpec& spec);
  // The link's capacity becomes `capacity` at `at`. Don't combine with a reservoir on the same link.
  void add_capacity_change(Picos at, LinkId link, Rate capacity);

  // duration >= 0; lane may be no_lane.
  ActivityId add_delay(TrackId lane, Picos duration);
  ActivityId add_instant(TrackId lane = no_lane);
  // amount >= 0 units; rate never above cap; weight in [1, max_weight] scales its share. The path may be
  // empty only when cap is finite.
  ActivityId add_flow(TrackId lane, std::int64_t amount, PathId path, Rate cap = unlimited_rate,
                      std::uint32_t weight = 1);
  // The activity never starts before `at` (default 0).
  void set_release(ActivityId activity, Picos at);
  // Least time between the end of the lane predecessor and the start of this one (default 0).
  void set_gap(ActivityId activity, Picos gap);
  // lag >= 0. Cycles are allowed here and reported by the run.
  void add_edge(ActivityId from, ActivityId to, EdgeType type = EdgeType::end_to_start, Picos lag = Picos{});
  // Room for so many activities and edges; optional.
  void reserve(std::size_t activities, std::size_t edges);
  // Builds the compact edge table, O(activities + edges). Call once, before running.
  void finish();

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(work_.size()); }
  [[nodiscard]] std::uint32_t lane_count() const { return static_cast<std::uint32_t>(lanes_.size()); }
  [[nodiscard]] std::uint32_t link_count() const { return network_.link_count(); }
  [[nodiscard]] bool finished() const { return finished_; }

  // Bits of traits().
  static constexpr std::uint8_t is_flow = 1, is_instant = 2, has_start_edges = 4, on_wide_lane = 8;
  [[nodiscard]] std::uint8_t traits(std::uint32_t a) const { return traits_[a]; }
  [[nodiscard]] ActivityKind kind(std::uint32_t a) const {
    return (traits_[a] & is_flow) != 0      ? ActivityKind::flow
           : (traits_[a] & is_instant) != 0 ? ActivityKind::instant
                                            : ActivityKind::delay;
  }
  [[nodiscard]] std::int64_t work(std::uint32_t a) const { return work_[a]; }  // picoseconds or units
  [[nodiscard]] TrackId lane(std::uint32_t a) const { return TrackId{lane_[a]}; }
  [[nodiscard]] std::uint32_t lane_width(TrackId lane) const { return lanes_[index(lane)].width; }
  [[nodiscard]] ActivityId lane_first(TrackId lane) const { return ActivityId{lanes_[index(lane)].first}; }
  [[nodiscard]] ActivityId lane_next(std::uint32_t a) const { return ActivityId{lane_next_[a]}; }
  [[nodiscard]] Picos release(std::uint32_t a) const { return a < release_.size() ? release_[a] : Picos{}; }
  [[nodiscard]] Picos gap(std::uint32_t a) const { return a < gap_.size() ? gap_[a] : Picos{}; }
  [[nodiscard]] const FlowSpec& flow(std::uint32_t a) const { return flows_[flow_index_[a]]; }
  [[nodiscard]] const std::vector<CapacityChange>& capacity_changes() const { return capacity_changes_; }
  [[nodiscard]] const std::vector<ReservoirSpec>& reservoirs() const { return reservoirs_; }
  // Links and paths, with no flow running.
  [[nodiscard]] const FluidNetwork& network() const { return network_; }
  // Bytes of all columns, for the memory budget.
  [[nodiscard]] std::size_t memory_bytes() const;

  // Out-edges of an activity.
  [[nodiscard]] std::span<const Edge> edges(std::uint32_t a) const {
    return std::span(edges_.data() + first_edge_[a], first_edge_[a + 1] - first_edge_[a]);
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFFu;
  struct Lane {
    std::uint32_t width = 1, first = none, last = none;
  };
  struct StagedEdge {
    Edge edge;
    std::uint32_t source = 0;
  };
  ActivityId add(std::uint8_t traits, TrackId lane, std::int64_t work);

  std::vector<std::int64_t> work_;
  std::vector<std::uint32_t> lane_, lane_next_, flow_index_;
  std::vector<std::uint8_t> traits_;
  std::vector<Picos> release_, gap_;  // empty until first set
  std::vector<FlowSpec> flows_;       // one row per flow activity
  std::vector<Lane> lanes_;
  std::vector<StagedEdge> staged_;         // until finish()
  std::vector<std::uint32_t> first_edge_;  // size() + 1 offsets into edges_
  std::vector<Edge> edges_;
  std::vector<CapacityChange> capacity_changes_;
  std::vector<ReservoirSpec> reservoirs_;
  FluidNetwork network_;
  bool finished_ = false;
};

}  // namespace spillway::sim
