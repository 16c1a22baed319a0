// Every plan of every planner passes the independent validators, on random problems: 100,000 here at full size, beside
// the 34,000 runs under three algorithms in stalloc_test.cc. The cases are small, so that all kinds of meeting occur.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/splitmix64.h"
#include "planners/layout/layout_check.h"
#include "planners/order/order_check.h"
#include "planners/order/trace_order.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/devices/memory/request_lives.h"
#include "sim/replay/plan_check.h"
#include "tests/planners/random_trace.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

class Plans : public ::testing::Test {
 protected:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.next() % n); }
  SplitMix64 random_{20261121};
};

// No two buffers alive together overlap: all pairs, sharing no code with check_layout() or the solver.
bool pairs_apart(const std::vector<LayoutBuffer>& buffers, const std::vector<std::int64_t>& offsets) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (buffers[i].lower < buffers[j].upper && buffers[j].lower < buffers[i].upper &&
          offsets[i] < offsets[j] + buffers[j].size && offsets[j] < offsets[i] + buffers[i].size &&
          buffers[i].size > 0 && buffers[j].size > 0)
        return false;
  return true;
}

TEST_F(Plans, LayoutsNeverOverlapNorPassTheirCapacity) {
  const int wanted = spillway::test::cases(50, 40'000);
  int cases = 0, in_capacity = 0;
  for (; cases < wanted; ++cases) {
    std::vector<LayoutBuffer> buffers(below(12));
    for (LayoutBuffer& buffer : buffers) {
      buffer.lower = static_cast<std::int64_t>(below(10));
      buffer.upper = buffer.lower + 1 + static_cast<std::int64_t>(below(6));
      buffer.size = static_cast<std::int64_t>(below(20));
      buffer.alignment = below(4) == 0 ? 4 : 1;
    }
    LayoutOptions options;
    options.effort = 200;
    options.threads = 1;
    options.capacity = below(2) == 0 ? 0 : static_cast<std::int64_t>(10 + below(60));
    const LayoutResult result = solve_layout(buffers, options);
    std::vector<LaidBuffer> laid;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      laid.push_back({buffers[i].lower, buffers[i].upper, buffers[i].size, result.offsets[i], buffers[i].alignment});
    const LayoutVerdict verdict = check_layout(laid, result.height);
    ASSERT_TRUE(verdict.legal()) << "case " << cases << ": " << verdict.fault;
    ASSERT_TRUE(pairs_apart(buffers, result.offsets)) << "case " << cases;
    ASSERT_EQ(verdict.height, result.height);
    ASSERT_LE(max_live(buffers), result.lower_bound);
    ASSERT_LE(result.lower_bound, result.height);
    in_capacity += options.capacity > 0 && result.fits(options.capacity) ? 1 : 0;
  }
  EXPECT_EQ(cases, wanted);
  EXPECT_GT(in_capacity, cases / 10);
}

TEST_F(Plans, OrdersKeepDependenciesAndTheirPeak) {
  const int wanted = spillway::test::cases(50, 30'000);
  int cases = 0, proven = 0;
  for (; cases < wanted; ++cases) {
    OrderGraph graph;
    const std::size_t n = 1 + below(16);
    for (std::size_t i = 0; i < n; ++i) {
      graph.operators.push_back(std::to_string(i));
      graph.program_order.push_back(static_cast<OperatorIndex>(i));
      OrderTensor tensor{static_cast<OperatorIndex>(i), static_cast<std::int64_t>(below(10)), {}};
      for (std::size_t sink = i + 1; sink < n; ++sink)
        if (below(n) < 2) tensor.sinks.push_back(static_cast<OperatorIndex>(sink));
      graph.tensors.push_back(tensor);
    }
    graph.constant_bytes = static_cast<std::int64_t>(below(3));
    OrderOptions options;
    options.effort = static_cast<std::int64_t>(below(300));
    const OrderResult result = solve_order(graph, options);
    const OrderVerdict verdict = check_order(graph, result.order);
    ASSERT_TRUE(verdict.legal()) << "case " << cases << ": " << verdict.fault;
    ASSERT_EQ(verdict.peak_bytes, result.peak_bytes);
    ASSERT_LE(result.lower_bound_bytes, result.peak_bytes);
    ASSERT_LE(result.peak_bytes, result.program_order_peak_bytes);
    proven += result.proven ? 1 : 0;
  }
  EXPECT_EQ(cases, wanted);
  EXPECT_GT(proven, cases / 2);
}

// Planned by order and layout, rewritten, and followed by the arena: no block touches another that is alive.
TEST_F(Plans, TracesInTheirNewOrderFitTheirLayout) {
  const int wanted = spillway::test::cases(50, 30'000);
  int cases = 0, lower = 0;
  for (; cases < wanted; ++cases) {
    const Trace trace = random_trace(random_);
    TraceOrderOptions options;
    options.order.best.effort = 200;
    options.layout = true;
    options.layout_options.effort = 100;
    options.layout_options.threads = 1;
    const TraceOrder found = plan_order(trace, options);  // refuses by check_reordering(), asserts check_placement()
    ASSERT_EQ(found.widest().graph.edges_left_out, 0U);
    lower += found.widest().peak < found.widest().program_peak ? 1 : 0;
    const std::int16_t device = found.widest().graph.device;
    if (found.trace.memory_events.empty() || device < 0) continue;
    ASSERT_TRUE(check_placement(found.trace, device, found.plan.memory.begin()->second,
                                Bytes(found.layouts.begin()->second.height))
                    .sound());
    AllocationStreamOptions stream;
    stream.pool.policy = "arena";
    stream.pool.plan = std::make_shared<const MemoryPlan>(found.plan.memory.begin()->second);
    stream.device = device;
    const AllocationStreamResult followed = replay_allocation_stream(found.trace, stream);
    ASSERT_EQ(followed.plan->overlap + followed.plan->size_mismatch + followed.plan->unplanned, 0U) << "case " << cases;
    ASSERT_EQ(followed.statistics.all().reserved_bytes.peak, found.layouts.begin()->second.height) << "case " << cases;
    ASSERT_EQ(followed.plan->placed, followed.allocations);
  }
  EXPECT_EQ(cases, wanted);
  EXPECT_GT(lower, cases / 100);
}

// The validators find what is wrong: a place moved onto a neighbour, a pool too large, a request too big.
TEST_F(Plans, PlacementsThatOverlapAreFound) {
  const int wanted = spillway::test::cases(50, 1000);
  int found_faults = 0, cases = 0;
  while (cases < wanted) {
    const Trace trace = random_trace(random_);
    TraceOrderOptions options;
    options.layout = true;
    options.layout_options.effort = 100;
    options.layout_options.threads = 1;
    const TraceOrder found = plan_order(trace, options);
    if (found.widest().graph.device < 0 || found.plan.memory.begin()->second.places.size() < 2) continue;
    ++cases;
    EXPECT_FALSE(check_placement(found.trace, 0, found.plan.memory.begin()->second,
                                 found.plan.memory.begin()->second.pool - Bytes(1))
                     .sound());
    MemoryPlan bent = found.plan.memory.begin()->second;
    const std::vector<RequestLife> lives = request_lives(found.trace, 0);
    for (std::size_t i = 1; i < lives.size(); ++i) {
      if (lives[i].lower >= lives[0].upper) continue;
      bent.places[i].offset = bent.places[0].offset;
      bent.pool = Bytes(1 << 30);
      EXPECT_FALSE(check_placement(found.trace, 0, bent, Bytes(0)).sound());
      ++found_faults;
      break;
    }
    bent = found.plan.memory.begin()->second;
    bent.places[0].size = lives[0].bytes - Bytes(1);
    EXPECT_FALSE(check_placement(found.trace, 0, bent, Bytes(0)).sound());
  }
  EXPECT_GT(found_faults, wanted * 3 / 10);
}

}  // namespace
}  // namespace spillway::planners
