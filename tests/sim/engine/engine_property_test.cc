// Properties of whole runs on random graphs: against an independent slow simulator, under every tie order, forked,
// appended to, and repeated (pinned digests).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sim/engine/executor.h"
#include "tests/sim/engine/engine_random.h"
#include "tests/test_size.h"

namespace spillway::sim {
namespace {

using test::GraphShape;
using test::random_graph;

// A simulator in doubles written from the definitions: look at everything, find the next instant, repeat.
class SlowSimulator {
 public:
  explicit SlowSimulator(const ActivityGraph& g) : g_(g), n_(g.size()), start_(n_, -1), end_(n_, -1), left_(n_, 0) {
    for (std::uint32_t l = 0; l < g.link_count(); ++l)
      capacity_.push_back(static_cast<double>(g.network().capacity(LinkId{l}).count()));
    previous_.assign(n_, -1);
    for (std::uint32_t a = 0; a < n_; ++a)
      if (g.lane_next(a) != no_activity) previous_[index(g.lane_next(a))] = static_cast<std::int64_t>(a);
  }
  void run() {
    for (int guard = 0; guard < 20'000; ++guard) {
      while (start_what_can() || end_instants()) {
      }
      const std::vector<double> rate = rates();
      double next = std::numeric_limits<double>::infinity();
      for (std::uint32_t a = 0; a < n_; ++a) next = std::min(next, next_for(a, rate[a]));
      for (const CapacityChange& change : g_.capacity_changes())
        if (time(change.at) > now_) next = std::min(next, time(change.at));
      if (!std::isfinite(next)) return;
      advance(next, rate);
    }
    FAIL() << "no end";
  }
  [[nodiscard]] double start(std::uint32_t a) const { return start_[a]; }
  [[nodiscard]] double end(std::uint32_t a) const { return end_[a]; }

 private:
  static double time(Picos t) { return static_cast<double>(t.count()); }
  static constexpr double tiny = 1e-3;  // picoseconds; below any input
  [[nodiscard]] bool running(std::uint32_t a) const { return start_[a] >= 0 && end_[a] < 0; }

  // Earliest start; infinity while a condition is open. Lanes of width 1 only.
  [[nodiscard]] double ready(std::uint32_t a) const {
    double at = time(g_.release(a));
    for (std::uint32_t from = 0; from < n_; ++from)
      for (const ActivityGraph::Edge& e : g_.edges(from)) {
        if (e.target != a) continue;
        const double since = e.type == EdgeType::end_to_start ? end_[from] : start_[from];
        at = since < 0 ? std::numeric_limits<double>::infinity() : std::max(at, since + time(e.lag));
      }
    if (previous_[a] < 0) return at;
    const auto before = static_cast<std::uint32_t>(previous_[a]);
    return end_[before] < 0 ? std::numeric_limits<double>::infinity() : std::max(at, end_[before] + time(g_.gap(a)));
  }
  bool start_what_can() {
    bool any = false;
    for (std::uint32_t a = 0; a < n_; ++a) {
      if (start_[a] >= 0 || ready(a) > now_ + tiny) continue;
      start_[a] = now_;
      left_[a] = static_cast<double>(g_.work(a));
      if (g_.kind(a) == ActivityKind::flow) left_[a] *= 1048576000.0;
      any = true;
    }
    return any;
  }
  bool end_instants() {
    bool any = false;
    for (std::uint32_t a = 0; a < n_; ++a)
      if (running(a) && g_.work(a) == 0) {
        end_[a] = now_;
        any = true;
      }
    return any;
  }
  [[nodiscard]] std::vector<double> rates() const {
    std::vector<double> rate(n_, 0);
    std::vector<test::OracleFlow> flows;
    std::vector<std::uint32_t> owner;
    for (std::uint32_t a = 0; a < n_; ++a) {
      if (!running(a) || g_.kind(a) != ActivityKind::flow) continue;
      const auto path = g_.network().path(g_.flow(a).path);
      const double cap = g_.flow(a).cap == unlimited_rate ? std::numeric_limits<double>::infinity()
                                                          : static_cast<double>(g_.flow(a).cap.count());
      flows.push_back({{path.begin(), path.end()}, cap, static_cast<double>(g_.flow(a).weight)});
      owner.push_back(a);
    }
    const std::vector<double> solved = test::max_min_rates(capacity_, flows);
    for (std::size_t f = 0; f < owner.size(); ++f) rate[owner[f]] = solved[f];
    return rate;
  }
  [[nodiscard]] double next_for(std::uint32_t a, double rate) const {
    if (end_[a] >= 0) return std::numeric_limits<double>::infinity();
    if (start_[a] < 0) return ready(a) > now_ ? ready(a) : std::numeric_limits<double>::infinity();
    if (g_.kind(a) == ActivityKind::delay) return start_[a] + static_cast<double>(g_.work(a));
    return now_ + left_[a] / rate;
  }
  void advance(double next, const std::vector<double>& rate) {
    for (std::uint32_t a = 0; a < n_; ++a) {
      if (!running(a)) continue;
      const double due = next_for(a, rate[a]);
      left_[a] -= rate[a] * (next - now_);
      if (due <= next + tiny) end_[a] = next;
    }
    now_ = next;
    for (const CapacityChange& change : g_.capacity_changes())
      if (std::abs(time(change.at) - next) < tiny)
        capacity_[index(change.link)] = static_cast<double>(change.capacity.count());
  }

  const ActivityGraph& g_;
  std::uint32_t n_;
  std::vector<double> start_, end_, left_, capacity_;
  std::vector<std::int64_t> previous_;
  double now_ = 0;
};

// Same starts and ends as the slow simulator, to within the integer rounding of rates (1e-6) piled up.
TEST(EngineProperty, MatchesSlowSimulator) {
  for (std::uint64_t seed = 0; seed < spillway::test::seeds(50, 400); ++seed) {
    GraphShape shape;
    shape.activities = 30;
    shape.wide_lanes = false;
    const ActivityGraph g = random_graph(seed, shape);
    SlowSimulator slow(g);
    ASSERT_NO_FATAL_FAILURE(slow.run());
    Executor<> executor(g);
    ASSERT_TRUE(executor.run().ok()) << seed;
    for (std::uint32_t a = 0; a < g.size(); ++a) {
      const double tolerance = 1e-5 * slow.end(a) + 100;
      ASSERT_NEAR(static_cast<double>(executor.start(ActivityId{a}).count()), slow.start(a), tolerance)
          << seed << " " << a;
      ASSERT_NEAR(static_cast<double>(executor.end(ActivityId{a}).count()), slow.end(a), tolerance) << seed << " " << a;
    }
  }
}

TEST(EngineProperty, ConservationOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < spillway::test::seeds(50, 3000); ++seed) {
    GraphShape shape;
    shape.reservoirs = seed % 2 == 0;
    Executor<> executor(random_graph(seed, shape));
    const Outcome outcome = executor.run();
    ASSERT_TRUE(outcome.ok()) << seed << " " << outcome.text();
    ASSERT_EQ(executor.check_conservation(), "") << seed;
  }
}

// A graph says all there is to say about order, so the tie order may change the events but never the result.
TEST(EngineProperty, ResultsDoNotDependOnTieOrder) {
  const std::uint64_t seeds = spillway::test::seeds(50, 500);
  std::uint64_t event_orders_differ = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    GraphShape shape;
    shape.reservoirs = seed % 3 == 0;
    const ActivityGraph g = random_graph(seed, shape);
    Executor<> fifo(g);
    const Outcome expected = fifo.run();
    for (const TieOrder tie : {TieOrder{TieOrder::Kind::reverse}, TieOrder{TieOrder::Kind::shuffle, seed}}) {
      Executor<> other(g, {.tie_order = tie});
      const Outcome outcome = other.run();
      ASSERT_EQ(outcome.fingerprint, expected.fingerprint) << seed;
      event_orders_differ += outcome.event_digest != expected.event_digest ? 1 : 0;
    }
  }
  EXPECT_GT(event_orders_differ, seeds);
}

// A fork continues identically; that one copy runs on leaves the other alone.
TEST(EngineProperty, ForkContinuesIdentically) {
  for (std::uint64_t seed = 0; seed < spillway::test::seeds(50, 500); ++seed) {
    GraphShape shape;
    shape.reservoirs = seed % 2 == 1;
    Executor<> whole(random_graph(seed, shape));
    Executor<> executor = whole;
    const Outcome expected = whole.run();
    executor.run_until(expected.end_time / static_cast<std::int64_t>(2 + seed % 5));
    ASSERT_EQ(executor.check_conservation(), "") << seed;
    Executor<> fork = executor, other = executor;
    ASSERT_EQ(fork.state_digest(), executor.state_digest());
    ASSERT_EQ(other.run().fingerprint, expected.fingerprint) << seed;
    ASSERT_EQ(fork.state_digest(), executor.state_digest());
    for (Executor<>* copy : {&executor, &fork}) {
      const Outcome outcome = copy->run();
      ASSERT_EQ(outcome.event_digest, expected.event_digest) << seed;
      ASSERT_EQ(outcome.fingerprint, expected.fingerprint) << seed;
    }
    ASSERT_EQ(fork.state_digest(), whole.state_digest());
  }
}

// The same bits from every compiler, optimisation level and run. A change here is a change of results: explain it
// in the commit that makes it.
TEST(EngineProperty, PinnedDigests) {
  GraphShape shape;
  shape.activities = 2000;
  shape.reservoirs = true;
  for (int repeat = 0; repeat < 2; ++repeat) {
    Executor<> executor(random_graph(1, shape));
    const Outcome outcome = executor.run();
    EXPECT_TRUE(outcome.ok()) << outcome.text();
    EXPECT_EQ(outcome.event_digest, 12898671709902095434u);
    EXPECT_EQ(outcome.fingerprint, 16474171811749485656u);
    EXPECT_EQ(outcome.end_time, Picos(52170870094));
  }
}

}  // namespace
}  // namespace spillway::sim
