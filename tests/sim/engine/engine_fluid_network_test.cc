#include "sim/engine/fluid_network.h"

#include <gtest/gtest.h>

#include <limits>

#include "sim/engine/wide.h"
#include "tests/sim/engine/engine_random.h"
#include "tests/test_size.h"

namespace spillway::sim {
namespace {

using test::OracleFlow;
using test::Random;

constexpr Rate unit_per_pico{std::int64_t{1000} << 20};

// r_f <= cap_f;  sum r_f * usage <= C;  r_f == cap_f or f has the highest level on a link that is full to
// within the sum of w * usage. These are the conditions of weighted max-min fairness, in integers.
void expect_max_min(const FluidNetwork& network) {
  std::vector<Wide> used(network.link_count()), slack(network.link_count());
  std::vector<std::vector<std::uint32_t>> on(network.link_count());
  for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot) {
    const FluidNetwork::Flow& flow = network.flow(slot);
    if (!flow.active) continue;
    ASSERT_LE(flow.rate, flow.cap);
    for (const PathEntry& e : network.path(PathId{flow.owner})) {
      used[index(e.link)] += flow.rate.count() * static_cast<Wide>(e.usage);
      slack[index(e.link)] += std::int64_t{e.usage} * flow.weight;
      on[index(e.link)].push_back(slot);
    }
  }
  for (std::uint32_t link = 0; link < network.link_count(); ++link)
    ASSERT_LE(used[link], static_cast<Wide>(network.capacity(LinkId{link}).count()) << 16);
  for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot) {
    const FluidNetwork::Flow& flow = network.flow(slot);
    if (!flow.active || flow.rate == flow.cap) continue;
    bool bottleneck = false;
    for (const PathEntry& e : network.path(PathId{flow.owner})) {
      const std::uint32_t link = index(e.link);
      const auto full = static_cast<Wide>(network.capacity(e.link).count()) << 16;
      bool highest = full - used[link] < slack[link];
      for (const std::uint32_t other : on[link])
        highest =
            highest && flow.rate.count() * network.flow(other).weight >= network.flow(other).rate.count() * flow.weight;
      bottleneck = bottleneck || highest;
    }
    ASSERT_TRUE(bottleneck) << "slot " << slot;
  }
}

// To within the rounding of the integer solver: levels are rounded down, at most a few units each.
void expect_near_oracle(const FluidNetwork& network) {
  std::vector<double> capacity;
  for (std::uint32_t l = 0; l < network.link_count(); ++l)
    capacity.push_back(static_cast<double>(network.capacity(LinkId{l}).count()));
  std::vector<OracleFlow> flows;
  std::vector<double> solved;
  for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot) {
    const FluidNetwork::Flow& flow = network.flow(slot);
    if (!flow.active) continue;
    const auto path = network.path(PathId{flow.owner});
    const double cap =
        flow.cap == unlimited_rate ? std::numeric_limits<double>::infinity() : static_cast<double>(flow.cap.count());
    flows.push_back({{path.begin(), path.end()}, cap, static_cast<double>(flow.weight)});
    solved.push_back(static_cast<double>(flow.rate.count()));
  }
  const std::vector<double> exact = test::max_min_rates(capacity, flows);
  for (std::size_t f = 0; f < flows.size(); ++f) ASSERT_NEAR(solved[f], exact[f], exact[f] * 1e-3 + 100) << f;
}

// The owner of a flow is its path here, so that the checks above find it.
std::uint32_t start(FluidNetwork& network, std::int64_t amount, PathId path, Rate cap = unlimited_rate,
                    std::uint32_t weight = 1, Picos now = Picos{}) {
  return network.start(now, amount, path, cap, weight, index(path));
}

// C = 12:  r1 + r2 + r3 <= 12, w = 1, 2, 3  =>  r = 2, 4, 6
TEST(FluidNetwork, WeightsShareInProportion) {
  FluidNetwork network;
  const LinkId link = network.add_link(Rate(12));
  const PathEntry entry{link};
  const PathId path = network.add_path({&entry, 1});
  for (std::uint32_t w = 1; w <= 3; ++w) start(network, 1000, path, unlimited_rate, w);
  network.solve(Picos{});
  for (std::uint32_t slot = 0; slot < 3; ++slot) EXPECT_EQ(network.flow(slot).rate, Rate(2 * (slot + 1)));
}

// C = 12, caps 1 and 20: the capped flow gets 1, the other two (12 - 1) / 2 rounded down.
TEST(FluidNetwork, CapLeavesTheRestToOthers) {
  FluidNetwork network;
  const LinkId link = network.add_link(Rate(12));
  const PathEntry entry{link};
  const PathId path = network.add_path({&entry, 1});
  start(network, 1000, path, Rate(1));
  start(network, 1000, path, Rate(20));
  start(network, 1000, path);
  network.solve(Picos{});
  EXPECT_EQ(network.flow(0).rate, Rate(1));
  EXPECT_EQ(network.flow(1).rate, Rate(5));
  EXPECT_EQ(network.flow(2).rate, Rate(5));
}

// Three links in a line (10, 6, 20), one flow over all and one over each: the long one gets 6/2 = 3, then 7, 3, 17.
TEST(FluidNetwork, ThreeLinks) {
  FluidNetwork network;
  const LinkId a = network.add_link(Rate(10)), b = network.add_link(Rate(6)), c = network.add_link(Rate(20));
  const std::vector<PathEntry> all = {{a}, {b}, {c}}, one = {{a}}, two = {{b}}, three = {{c}};
  for (const auto& entries : {all, one, two, three}) start(network, 1000, network.add_path(entries));
  network.solve(Picos{});
  const std::int64_t expected[] = {3, 7, 3, 17};
  for (std::uint32_t slot = 0; slot < 4; ++slot) EXPECT_EQ(network.flow(slot).rate, Rate(expected[slot]));
}

// A flow that uses a quarter of the link per unit runs at 4 C alone.
TEST(FluidNetwork, UsageIsAFraction) {
  FluidNetwork network;
  const LinkId link = network.add_link(Rate(1000));
  const std::vector<PathEntry> quarter = {{link, full_usage / 4}}, twice = {{link}, {link}};
  start(network, 1'000'000, network.add_path(quarter));
  network.solve(Picos{});
  EXPECT_EQ(network.flow(0).rate, Rate(4000));
  start(network, 1'000'000, network.add_path(twice));  // entries of one link add up
  network.solve(Picos{});
  EXPECT_EQ(network.flow(1).rate, Rate(1000 * 4 / 9));
  EXPECT_EQ(network.totals(link, Picos{}).consumption, Rate(999));
}

// Without links a flow runs at its cap: 10 units at 1 unit/ps.
TEST(FluidNetwork, EmptyPath) {
  FluidNetwork network;
  start(network, 10, network.add_path({}), unit_per_pico);
  network.solve(Picos{});
  EXPECT_EQ(network.flow(0).end, Picos(10));
  ASSERT_EQ(network.earliest().size(), 1u);
}

// end = ceil(amount / rate): 10 units at 3 per ps need 3.33 ps.
TEST(FluidNetwork, CompletionRoundsUp) {
  FluidNetwork network;
  const PathEntry entry{network.add_link(unit_per_pico * 3)};
  start(network, 10, network.add_path({&entry, 1}));
  network.solve(Picos{});
  EXPECT_EQ(network.flow(0).end, Picos(4));
  EXPECT_EQ(network.moved(0, Picos(2)), 6);
  network.finish(Picos(4), 0);
  network.solve(Picos(4));
  EXPECT_TRUE(network.conserves(Picos(4)));
  EXPECT_EQ(network.totals(entry.link, Picos(4)).units, 10);
}

// The largest amount over the widest link with the largest usage, and the slowest: no product overflows.
TEST(FluidNetwork, OverflowEdges) {
  FluidNetwork network;
  const PathEntry wide{network.add_link(max_capacity), max_usage}, thin{network.add_link(Rate(1)), 1};
  const PathId wide_path = network.add_path({&wide, 1}), thin_path = network.add_path({&thin, 1});
  start(network, max_amount, wide_path, unlimited_rate, max_weight);
  start(network, max_amount, thin_path, Rate(1));
  network.solve(Picos{});
  EXPECT_EQ(network.flow(0).rate.count(), (max_capacity.count() >> 4) / max_weight * max_weight);
  EXPECT_LT(network.flow(0).end, Picos::max());
  EXPECT_EQ(network.flow(1).end, Picos::max());  // 2^62 units at 954 B/s never end
  EXPECT_TRUE(network.conserves(Picos(std::int64_t{1} << 50)));
}

// Random starts, ends and capacity changes: after each instant the whole network is max-min fair, though only the
// dirty components were solved.
TEST(FluidNetwork, RandomNetworksAreMaxMinFair) {
  for (std::uint64_t seed = 0; seed < spillway::test::seeds(50, 2000); ++seed) {
    Random random(seed);
    FluidNetwork network;
    const auto links = static_cast<std::uint32_t>(random.between(1, 12));
    const auto rate = [&] { return Rate(random.between(1'000'000, 100'000'000)); };
    for (std::uint32_t l = 0; l < links; ++l) network.add_link(rate());
    for (int p = 0; p < 12; ++p) network.add_path(test::random_path(random, links));
    Picos now{};
    for (int step = 0; step < 12; ++step) {
      const std::int64_t starts = random.between(0, 4);
      for (std::int64_t i = 0; i < starts; ++i) {
        const Rate cap = random.one_in(3) ? rate() / 4 : unlimited_rate;
        const std::int64_t amount = random.between(1, 1'000'000);
        const PathId path{static_cast<std::uint32_t>(random.below(12))};
        start(network, amount, path, cap, static_cast<std::uint32_t>(random.between(1, 9)), now);
      }
      if (random.one_in(4)) network.set_capacity(LinkId{static_cast<std::uint32_t>(random.below(links))}, rate());
      network.solve(now);
      ASSERT_NO_FATAL_FAILURE(expect_max_min(network)) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(expect_near_oracle(network)) << "seed " << seed;
      ASSERT_TRUE(network.conserves(now)) << "seed " << seed;
      Picos next = Picos::max();
      for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot)
        if (network.flow(slot).active) next = std::min(next, network.flow(slot).end);
      if (next == Picos::max()) continue;
      now = next;
      for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot)
        if (network.flow(slot).active && network.flow(slot).end == now) network.finish(now, slot);
      ASSERT_TRUE(network.conserves(now)) << "seed " << seed;
    }
  }
}

// The solved rates don't depend on the order in which the flows arrived.
TEST(FluidNetwork, OrderOfArrivalDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < spillway::test::seeds(50, 1000); ++seed) {
    Random random(seed);
    FluidNetwork forward, backward;
    for (int l = 0; l < 6; ++l) {
      const Rate capacity(random.between(7, 9));  // coarse, so that rounding and ties are frequent
      forward.add_link(capacity);
      backward.add_link(capacity);
    }
    std::vector<PathId> paths;
    for (int p = 0; p < 10; ++p) {
      const std::vector<PathEntry> entries = test::random_path(random, 6);
      paths.push_back(forward.add_path(entries));
      backward.add_path(entries);
    }
    for (int f = 0; f < 10; ++f) {
      start(forward, 100, paths[static_cast<std::size_t>(f)]);
      start(backward, 100, paths[static_cast<std::size_t>(9 - f)]);
    }
    forward.solve(Picos{});
    backward.solve(Picos{});
    for (std::uint32_t f = 0; f < 10; ++f) ASSERT_EQ(forward.flow(f).rate, backward.flow(9 - f).rate) << seed;
  }
}

}  // namespace
}  // namespace spillway::sim
