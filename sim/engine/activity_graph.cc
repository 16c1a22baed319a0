#include "sim/engine/activity_graph.h"

#include "base/give_back.h"
#include "base/input_error.h"

namespace spillway::sim {

TrackId ActivityGraph::add_lane(std::uint32_t width) {
  SPILLWAY_ASSERT(width >= 1);
  lanes_.push_back(Lane{width, none, none});
  return TrackId{lane_count() - 1};
}

ReservoirId ActivityGraph::add_reservoir(const ReservoirSpec& spec) {
  SPILLWAY_ASSERT(index(spec.link) < link_count());
  reservoirs_.push_back(spec);
  return ReservoirId{static_cast<std::uint32_t>(reservoirs_.size() - 1)};
}

void ActivityGraph::add_capacity_change(Picos at, LinkId link, Rate capacity) {
  SPILLWAY_ASSERT(at >= Picos{} && index(link) < link_count());
  SPILLWAY_ASSERT(capacity >= Rate{} && capacity <= max_capacity);
  capacity_changes_.push_back(CapacityChange{at, link, capacity});
}

ActivityId ActivityGraph::add(std::uint8_t traits, TrackId lane, std::int64_t work) {
  SPILLWAY_ASSERT(!finished_ && work >= 0 && work_.size() < 0xFFFFFFF0u);
  const std::uint32_t a = size();
  if (lane != no_lane) {
    Lane& row = lanes_.at(index(lane));
    (row.last == none ? row.first : lane_next_[row.last]) = a;
    row.last = a;
    if (row.width > 1) traits = static_cast<std::uint8_t>(traits | on_wide_lane);
  }
  work_.push_back(work);
  lane_.push_back(index(lane));
  lane_next_.push_back(none);
  flow_index_.push_back((traits & is_flow) != 0 ? static_cast<std::uint32_t>(flows_.size()) - 1 : none);
  traits_.push_back(traits);
  return ActivityId{a};
}

ActivityId ActivityGraph::add_delay(TrackId lane, Picos duration) { return add(0, lane, duration.count()); }

ActivityId ActivityGraph::add_instant(TrackId lane) { return add(is_instant, lane, 0); }

ActivityId ActivityGraph::add_flow(TrackId lane, std::int64_t amount, PathId path, Rate cap, std::uint32_t weight) {
  SPILLWAY_ASSERT(amount >= 0 && amount <= max_amount);
  SPILLWAY_ASSERT(index(path) < network_.path_count() && weight >= 1 && weight <= max_weight && cap >= Rate{});
  SPILLWAY_ASSERT(cap != unlimited_rate || !network_.path(path).empty());
  flows_.push_back(FlowSpec{cap, path, weight});
  return add(is_flow, lane, amount);
}

void ActivityGraph::set_release(ActivityId activity, Picos at) {
  SPILLWAY_ASSERT(at >= Picos{} && index(activity) < size());
  if (release_.size() < size()) release_.resize(size());
  release_[index(activity)] = at;
}

void ActivityGraph::set_gap(ActivityId activity, Picos gap) {
  SPILLWAY_ASSERT(gap >= Picos{} && index(activity) < size());
  if (gap_.size() < size()) gap_.resize(size());
  gap_[index(activity)] = gap;
}

void ActivityGraph::add_edge(ActivityId from, ActivityId to, EdgeType type, Picos lag) {
  const std::uint32_t source = index(from), target = index(to);
  SPILLWAY_ASSERT(!finished_ && source < size() && target < size() && lag >= Picos{});
  if (type == EdgeType::start_to_start) traits_[source] = static_cast<std::uint8_t>(traits_[source] | has_start_edges);
  staged_.push_back(StagedEdge{{lag, target, type}, source});
}

void ActivityGraph::reserve(std::size_t activities, std::size_t edges) {
  work_.reserve(activities);
  lane_.reserve(activities);
  lane_next_.reserve(activities);
  flow_index_.reserve(activities);
  traits_.reserve(activities);
  staged_.reserve(edges);
}

// Counting sort by source; the order in which a source's edges were added is kept.
void ActivityGraph::finish() {
  SPILLWAY_ASSERT(!finished_ && staged_.size() < 0xFFFFFFF0u);
  first_edge_.assign(size() + std::size_t{1}, 0);
  for (const StagedEdge& row : staged_) ++first_edge_[row.source + 1];
  for (std::size_t a = 0; a < size(); ++a) first_edge_[a + 1] += first_edge_[a];
  std::vector<std::uint32_t> cursor(first_edge_.begin(), first_edge_.end() - 1);
  edges_.resize(staged_.size());
  for (const StagedEdge& row : staged_) edges_[cursor[row.source]++] = row.edge;
  give_back(staged_);
  finished_ = true;
}

std::size_t ActivityGraph::memory_bytes() const {
  const auto bytes = [](const auto& column) { return column.capacity() * sizeof(column[0]); };
  return bytes(work_) + bytes(lane_) + bytes(lane_next_) + bytes(flow_index_) + bytes(traits_) + bytes(release_) +
         bytes(gap_) + bytes(flows_) + bytes(lanes_) + bytes(staged_) + bytes(first_edge_) + bytes(edges_);
}

}  // namespace spillway::sim
