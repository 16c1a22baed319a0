// Random numbers, networks and graphs for the engine's tests: the same from every standard library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/splitmix64.h"
#include "sim/engine/activity_graph.h"

namespace spillway::sim::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : draws_(seed * golden_gamma + 1) {}
  // Uniform in [0, bound).
  std::uint64_t below(std::uint64_t bound) { return draws_.below(bound); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  SplitMix64 draws_;
};

struct GraphShape {
  std::uint32_t activities = 60, lanes = 5, links = 4, paths = 8;
  bool wide_lanes = true, capacity_changes = true, reservoirs = false;
};

// A path over one to four random links; a third of the entries use a fraction or a multiple of the link.
inline std::vector<PathEntry> random_path(Random& random, std::uint32_t links) {
  std::vector<PathEntry> entries;
  const std::int64_t hops = random.between(1, 4);
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    PathEntry entry{LinkId{static_cast<std::uint32_t>(random.below(links))}};
    if (random.one_in(3)) entry.usage = static_cast<std::uint32_t>(random.between(1 << 12, 1 << 17));
    entries.push_back(entry);
  }
  return entries;
}

// Rates of 1 to 100 GB/s, durations and releases up to about 10 us: the engine's home ground. Acyclic.
inline ActivityGraph random_graph(std::uint64_t seed, const GraphShape& shape) {
  Random random(seed);
  ActivityGraph g;
  const auto rate = [&] { return rate_from_bytes_per_second(1e9 * static_cast<double>(random.between(1, 100))); };
  for (std::uint32_t i = 0; i < shape.lanes; ++i)
    g.add_lane(shape.wide_lanes && random.one_in(4) ? static_cast<std::uint32_t>(random.between(2, 3)) : 1);
  for (std::uint32_t i = 0; i < shape.links; ++i) g.add_link(rate());
  for (std::uint32_t i = 0; i < shape.paths; ++i) g.add_path(random_path(random, shape.links));
  if (shape.reservoirs) {
    const std::int64_t size = random.between(10'000, 200'000);
    g.add_reservoir({.link = LinkId{0},
                     .size = size,
                     .resume_level = random.between(0, size - 1),
                     .initial_level = random.between(0, size),
                     .drain = rate() / 10,
                     .fast = rate(),
                     .slow = rate() / 4});
  }
  for (std::uint32_t i = 0; i < shape.activities; ++i) {
    const TrackId lane = random.one_in(5) ? no_lane : TrackId{static_cast<std::uint32_t>(random.below(shape.lanes))};
    ActivityId a{};
    if (random.one_in(8)) {
      a = g.add_instant(lane);
    } else if (random.one_in(2)) {
      a = g.add_delay(lane, Picos(random.between(0, 200) * 50'000));
    } else {
      const Rate cap = random.one_in(3) ? rate() / 3 : unlimited_rate;
      const PathId path{static_cast<std::uint32_t>(random.below(shape.paths))};
      // Draws are statements of their own: the order of evaluation of arguments is the compiler's choice.
      const std::int64_t amount = random.between(0, 300) * 1000;
      const auto weight = static_cast<std::uint32_t>(random.between(1, 4));
      a = g.add_flow(lane, amount, path, cap, weight);
    }
    if (random.one_in(6)) g.set_release(a, Picos(random.between(0, 20'000'000)));
    if (random.one_in(6)) g.set_gap(a, Picos(random.between(0, 1'000'000)));
    for (int e = 0; e < 3 && i > 0; ++e) {
      if (!random.one_in(2)) continue;
      const ActivityId from{static_cast<std::uint32_t>(random.below(i))};
      const EdgeType type = random.one_in(3) ? EdgeType::start_to_start : EdgeType::end_to_start;
      const Picos lag(random.one_in(2) ? 0 : random.between(0, 2'000'000));
      g.add_edge(from, a, type, lag);
    }
  }
  for (int i = 0; shape.capacity_changes && i < 3; ++i) {
    const LinkId link{static_cast<std::uint32_t>(random.below(shape.links))};
    const Picos at(random.between(0, 30'000'000));
    const Rate capacity = rate();
    if (!shape.reservoirs || index(link) != 0) g.add_capacity_change(at, link, capacity);
  }
  g.finish();
  return g;
}

// Oracle: weighted max-min rates in doubles by raising one common level until something binds. Written from the
// definition, O(flows * links) per step; shares nothing with FluidNetwork but the input types.
struct OracleFlow {
  std::vector<PathEntry> path;
  double cap = 0;  // infinity when none
  double weight = 1;
};
inline std::vector<double> max_min_rates(const std::vector<double>& capacity, const std::vector<OracleFlow>& flows) {
  std::vector<double> rates(flows.size(), 0), left = capacity;
  std::vector<char> frozen(flows.size(), 0);
  for (std::size_t open = flows.size(); open > 0;) {
    std::vector<double> growth(capacity.size(), 0);
    double step = 1e300;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (frozen[f] != 0) continue;
      step = std::min(step, (flows[f].cap - rates[f]) / flows[f].weight);
      for (const PathEntry& e : flows[f].path) growth[index(e.link)] += flows[f].weight * e.usage / full_usage;
    }
    for (std::size_t l = 0; l < capacity.size(); ++l)
      if (growth[l] > 0) step = std::min(step, left[l] / growth[l]);
    for (std::size_t l = 0; l < capacity.size(); ++l) left[l] -= step * growth[l];
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (frozen[f] != 0) continue;
      rates[f] += step * flows[f].weight;
      bool bound = rates[f] >= flows[f].cap * (1 - 1e-12);
      for (const PathEntry& e : flows[f].path) bound = bound || left[index(e.link)] <= capacity[index(e.link)] * 1e-12;
      if (!bound) continue;
      frozen[f] = 1;
      --open;
    }
  }
  return rates;
}

}  // namespace spillway::sim::test
