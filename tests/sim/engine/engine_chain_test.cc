// Copies one behind the other, as copy engines make them: where one ends, the next one often takes its place in the
// same instant and leaves every other rate as it was. What the solver saves there must change nothing: rates are those
// of a plain solver that knows no history, and events come in the order they came when every instant was solved anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "base/digest.h"
#include "sim/engine/executor.h"
#include "tests/sim/engine/engine_random.h"
#include "tests/test_size.h"

namespace spillway::sim {
namespace {

using test::Random;

// What a lane's copies have in common.
struct Manner {
  PathId path{};
  Rate cap = unlimited_rate;
  std::uint32_t weight = 1;
};

std::vector<Manner> random_manners(Random& random, std::size_t lanes, std::uint32_t paths) {
  std::vector<Manner> manners;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    Manner manner;
    manner.path = PathId{static_cast<std::uint32_t>(random.below(paths))};
    if (random.one_in(5)) manner.cap = rate_from_bytes_per_second(1e9 * static_cast<double>(random.between(1, 9)));
    if (random.one_in(4)) manner.weight = static_cast<std::uint32_t>(random.between(2, 3));
    manners.push_back(manner);
  }
  return manners;
}

// Few amounts and rates where `coarse`, so that many ends tie; a copy in eight is of another lane's manner.
ActivityGraph chained_copies(std::uint64_t seed) {
  Random random(seed);
  ActivityGraph g;
  const bool coarse = seed % 2 == 0;
  const auto rate = [&] { return rate_from_bytes_per_second(1e10 * static_cast<double>(random.between(1, 3))); };
  const auto links = static_cast<std::uint32_t>(random.between(1, 5));
  for (std::uint32_t l = 0; l < links; ++l) g.add_link(rate());
  constexpr std::uint32_t paths = 6;
  for (std::uint32_t p = 0; p < paths; ++p) g.add_path(test::random_path(random, links));
  const auto lanes = static_cast<std::size_t>(random.between(2, 9));
  for (std::size_t lane = 0; lane < lanes; ++lane) g.add_lane(random.one_in(6) ? 2 : 1);
  const std::vector<Manner> manners = random_manners(random, lanes, paths);
  if (seed % 3 == 0)
    g.add_reservoir({.link = LinkId{0},
                     .size = 900'000,
                     .resume_level = 200'000,
                     .initial_level = 0,
                     .drain = rate() / 10,
                     .fast = rate(),
                     .slow = rate() / 4});
  for (int i = 0; i < 200; ++i) {
    const auto lane = static_cast<std::size_t>(random.below(lanes));
    const TrackId track{static_cast<std::uint32_t>(lane)};
    if (random.one_in(12)) g.add_delay(track, Picos(random.between(0, 3) * 5'000'000));
    const Manner& manner = manners[random.one_in(8) ? static_cast<std::size_t>(random.below(lanes)) : lane];
    const std::int64_t amount = coarse ? random.between(1, 2) * 100'000 : random.between(1, 200'000);
    const ActivityId copy = g.add_flow(track, amount, manner.path, manner.cap, manner.weight);
    if (random.one_in(20) && index(copy) > 0)
      g.add_edge(ActivityId{static_cast<std::uint32_t>(random.below(index(copy)))}, copy);
    if (random.one_in(40)) g.set_gap(copy, Picos(random.between(1, 1'000'000)));
  }
  if (seed % 3 == 1) {
    g.add_capacity_change(Picos(30'000'000), LinkId{links - 1}, links == 1 ? Rate{} : rate());
    g.add_capacity_change(Picos(60'000'000), LinkId{links - 1}, rate());
  }
  g.finish();
  return g;
}

struct RateDigest {
  Digest digest;
  void on_rate(ActivityId a, Picos t, Rate r) {
    digest.add(event_word(t, 0, index(a)));
    digest.add(static_cast<std::uint64_t>(r.count()));
  }
};

// Its components as labels of links: the least index of each.
std::vector<std::uint32_t> components(const FluidNetwork& network) {
  std::vector<std::uint32_t> label(network.link_count());
  for (std::uint32_t link = 0; link < label.size(); ++link) label[link] = link;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot) {
      if (!network.flow(slot).active) continue;
      std::uint32_t least = 0xFFFFFFFFu;
      const auto path = network.path(PathId{network.flow(slot).owner});
      for (const PathEntry& e : path) least = std::min(least, label[index(e.link)]);
      for (const PathEntry& e : path) {
        moved = moved || label[index(e.link)] != least;
        label[index(e.link)] = least;
      }
    }
  }
  return label;
}

// The header's definition in integers, with no history and nothing kept between its rounds. The owner of a flow is its
// path, and `of` says which flows there are.
void solve_plainly(const FluidNetwork& network, const std::vector<std::uint32_t>& of,
                   std::vector<std::int64_t>& rates) {
  std::set<std::uint32_t> open(of.begin(), of.end());
  while (!open.empty()) {
    std::int64_t level = std::numeric_limits<std::int64_t>::max();
    std::uint32_t least = 0;
    for (std::uint32_t link = 0; link < network.link_count(); ++link) {
      std::int64_t free = network.capacity(LinkId{link}).count() << 16, weight = 0;
      for (const std::uint32_t slot : of)
        for (const PathEntry& e : network.path(PathId{network.flow(slot).owner})) {
          if (index(e.link) != link) continue;
          if (open.contains(slot)) weight += std::int64_t{e.usage} * network.flow(slot).weight;
          if (!open.contains(slot)) free -= rates[slot] * e.usage;
        }
      if (weight == 0 || free / weight >= level) continue;
      level = free / weight;
      least = link;
    }
    std::map<std::uint32_t, std::int64_t> fixed;
    for (const std::uint32_t slot : open)
      if (static_cast<Wide>(level) * network.flow(slot).weight >= network.flow(slot).cap.count())
        fixed[slot] = network.flow(slot).cap.count();
    if (fixed.empty())
      for (const std::uint32_t slot : open)
        for (const PathEntry& e : network.path(PathId{network.flow(slot).owner}))
          if (index(e.link) == least) fixed[slot] = level * network.flow(slot).weight;
    for (const auto& [slot, rate] : fixed) {
      rates[slot] = rate;
      open.erase(slot);
    }
  }
}

// Rates and first ends against the plain solver.
void expect_plain(const FluidNetwork& network) {
  const std::vector<std::uint32_t> label = components(network);
  std::map<std::uint32_t, std::vector<std::uint32_t>> flows;  // by component
  std::vector<std::int64_t> rates(network.slot_count());
  for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot) {
    const FluidNetwork::Flow& flow = network.flow(slot);
    if (!flow.active) continue;
    const auto path = network.path(PathId{flow.owner});
    rates[slot] = flow.cap.count();  // of the empty path
    if (!path.empty()) flows[label[index(path.front().link)]].push_back(slot);
  }
  const std::set<std::uint32_t> first(network.earliest().begin(), network.earliest().end());
  const std::set<std::uint32_t> changed(network.changed_flows().begin(), network.changed_flows().end());
  for (const auto& [component, slots] : flows) {
    solve_plainly(network, slots, rates);
    Picos least = Picos::max();
    for (const std::uint32_t slot : slots) least = std::min(least, network.flow(slot).end);
    const bool is_solved =
        std::any_of(slots.begin(), slots.end(), [&](std::uint32_t slot) { return changed.contains(slot); });
    for (const std::uint32_t slot : slots) {
      const bool is_first = least != Picos::max() && network.flow(slot).end == least;
      if (is_solved || first.contains(slot)) {
        ASSERT_EQ(first.contains(slot), is_first) << "slot " << slot;
      }
    }
  }
  for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot)
    if (network.flow(slot).active) {
      ASSERT_EQ(network.flow(slot).rate, Rate(rates[slot])) << "slot " << slot;
    }
}

// What ended is followed by its like, by another's like or by nothing, at once or after others of the instant;
// capacities change in between.
TEST(EngineChain, RatesAreThoseOfAPlainSolver) {
  std::uint64_t followed = 0;
  for (std::uint64_t seed = 0; seed < spillway::test::seeds(60, 2000); ++seed) {
    Random random(seed);
    FluidNetwork network;
    const auto links = static_cast<std::uint32_t>(random.between(1, 6));
    const auto rate = [&] { return Rate(random.between(1, 4) * 10'000'000 + random.between(0, 2)); };
    for (std::uint32_t l = 0; l < links; ++l) network.add_link(rate());
    network.add_path({});
    for (int p = 1; p < 6; ++p) network.add_path(test::random_path(random, links));
    std::vector<Manner> manners = random_manners(random, 8, 6);
    for (Manner& manner : manners)
      if (manner.path == PathId{0} || random.one_in(3)) manner.cap = rate() / 4;
    std::map<std::uint32_t, std::size_t> running;  // slots, and how each runs
    const auto start = [&](Picos now, std::size_t how) {
      const Manner& m = manners[how];
      const std::int64_t amount = random.between(1, 3) * 1000;
      running[network.start(now, amount, m.path, m.cap, m.weight, index(m.path))] = how;
    };
    for (std::size_t how = 0; how < manners.size(); ++how) start(Picos{}, how);
    Picos now{};
    for (int step = 0; step < 60; ++step) {
      network.solve(now);
      ASSERT_NO_FATAL_FAILURE(expect_plain(network)) << "seed " << seed << ", step " << step;
      ASSERT_TRUE(network.conserves(now)) << "seed " << seed << ", step " << step;
      Picos next = Picos::max();
      for (const auto& [slot, how] : running) next = std::min(next, network.flow(slot).end);
      if (next == Picos::max()) break;
      now = next;
      std::vector<std::size_t> ended;
      for (const auto& [slot, how] : std::map(running)) {
        if (network.flow(slot).end != now) continue;
        network.finish(now, slot);
        running.erase(slot);
        if (random.one_in(2)) {
          start(now, how);
          ++followed;
        } else {
          ended.push_back(how);
        }
      }
      for (const std::size_t how : ended)
        if (!random.one_in(4)) start(now, random.one_in(3) ? static_cast<std::size_t>(random.below(8)) : how);
      if (random.one_in(8)) network.set_capacity(LinkId{static_cast<std::uint32_t>(random.below(links))}, rate());
    }
  }
  EXPECT_GT(followed, 60u);
}

// Flows without links begin their path where the next path begins, but take nobody's place.
TEST(EngineChain, AnEmptyPathReplacesNothing) {
  FluidNetwork network;
  const PathEntry entry{network.add_link(Rate(12'000))};
  const PathId empty = network.add_path({}), over = network.add_path({&entry, 1});
  const std::uint32_t first = network.start(Picos{}, 1, over, Rate(9000), 1, index(over));
  const std::uint32_t other = network.start(Picos{}, 1000, over, Rate(11'000), 1, index(over));
  network.solve(Picos{});
  const Picos end = network.flow(first).end;
  network.finish(end, first);
  network.start(end, 1000, empty, Rate(9000), 1, index(empty));
  network.solve(end);
  EXPECT_EQ(network.flow(other).rate, Rate(11'000));
  EXPECT_TRUE(network.conserves(end));
}

// Events, rates and results of 200 graphs as they were when each instant was solved anew, ties included.
TEST(EngineChain, PinnedDigests) {
  Digest all;
  std::uint64_t events = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Executor<RateDigest> executor(chained_copies(seed));
    const Outcome outcome = executor.run();
    ASSERT_TRUE(outcome.ok()) << seed << " " << outcome.text();
    ASSERT_EQ(executor.check_conservation(), "") << seed;
    events += outcome.events;
    all.add(outcome.event_digest);
    all.add(outcome.fingerprint);
    all.add(executor.sink().digest.value());
  }
  EXPECT_EQ(events, 89'244u);
  EXPECT_EQ(all.value(), 4173245932425744265u);
}

}  // namespace
}  // namespace spillway::sim
