// The order solver against the independent check and against brute force.
#include "planners/order/order_solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/input_error.h"
#include "planners/order/order_bound.h"
#include "planners/order/order_check.h"
#include "planners/order/order_exact.h"
#include "planners/order/order_greedy.h"
#include "planners/order/order_json.h"
#include "planners/order/order_links.h"
#include "planners/order/order_pass.h"
#include "tests/planners/order/order_cases.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

TEST(Order, InputsAndOutputsOfTheRunningOperatorLiveTogether) {
  // 0 makes 5 for 1 and 2; 1 makes 3 for 2; 2 makes 2 for nobody.
  const OrderGraph graph = graph_of(3, {{0, 5, {1, 2}}, {1, 3, {2}}, {2, 2, {}}});
  EXPECT_EQ(live_bytes(graph, graph.program_order), (std::vector<std::int64_t>{5, 8, 10}));
  EXPECT_EQ(peak_of_order(graph, graph.program_order), 10);
}

TEST(Order, TheCheckFindsEveryKindOfFault) {
  OrderGraph graph = graph_of(3, {{0, 5, {1}}, {1, 3, {2}}});
  graph.constant_bytes = 100;
  const auto fault = [&](const std::vector<OperatorIndex>& order) { return check_order(graph, order).fault; };
  EXPECT_EQ(fault({0, 1, 2}), "");
  EXPECT_EQ(check_order(graph, graph.program_order).peak_bytes, 108);
  EXPECT_NE(fault({1, 0, 2}).find("runs before"), std::string::npos);
  EXPECT_NE(fault({0, 0, 2}).find("twice"), std::string::npos);
  EXPECT_NE(fault({0, 1}).find("do not run"), std::string::npos);
  EXPECT_NE(fault({0, 1, 3}).find("does not exist"), std::string::npos);
}

// A tensor without bytes is a hazard: the in-place write 2 may not come before the read 1, although that would be
// lower.
TEST(Order, HazardsAreKept) {
  const std::vector<OrderTensor> tensors = {{0, 4, {1, 2}}, {1, 10, {3}}, {2, 1, {3}}, {4, 6, {2}}};
  OrderGraph free = graph_of(5, tensors), hazard = graph_of(5, tensors);
  hazard.tensors.push_back({1, 0, {2}});
  for (OrderGraph* graph : {&free, &hazard}) graph->program_order = {0, 1, 4, 2, 3};
  EXPECT_EQ(solve_order(free).peak_bytes, 15);    // 4 and 6 with 2's output, then 1 makes 10 beside it
  EXPECT_EQ(solve_order(hazard).peak_bytes, 21);  // 10 is there when 2 runs
}

// The counter-example beside XLA's list scheduler: A feeds B, D and E with one buffer; B => C -> G; D, E -> F => G.
TEST(Order, SevenOperatorCounterExampleOfXla) {
  const OrderGraph graph =
      graph_of(7, {{0, 1, {1, 3, 4}}, {1, 2, {2}}, {2, 1, {6}}, {3, 1, {5}}, {4, 1, {5}}, {5, 2, {6}}});
  const OrderResult result = solve_order(graph);
  EXPECT_EQ(result.peak_bytes, 5);
  EXPECT_TRUE(result.proven);
  EXPECT_EQ(brute_force(graph, 1000), 5);
}

TEST(Order, EmptyAndSingleGraphs) {
  EXPECT_EQ(solve_order(graph_of(0, {})).peak_bytes, 0);
  const OrderResult one = solve_order(graph_of(1, {{0, 7, {}}}));
  EXPECT_EQ(one.peak_bytes, 7);
  EXPECT_TRUE(one.proven);
}

// What brute force finds is found and proven, in every one of 10,000 graphs (at full size) of up to 30 operators.
TEST(Order, EqualsBruteForce) {
  std::mt19937 random(1);
  const int wanted = spillway::test::cases(50, 10'000);
  int cases = 0, large = 0, above_bound = 0;
  while (cases < wanted) {
    const OrderGraph graph = random_graph(random, 30);
    const std::int64_t optimum = brute_force(graph, 1500);
    if (optimum < 0) continue;
    ++cases;
    large += graph.operators.size() > 20 ? 1 : 0;
    const OrderResult result = solve_order(graph);
    ASSERT_EQ(result.peak_bytes, optimum) << "case " << cases;
    ASSERT_TRUE(result.proven) << "case " << cases;
    ASSERT_EQ(check_order(graph, result.order).peak_bytes, optimum);
    const std::int64_t bound = forced_live_bound(OrderLinks(graph));
    ASSERT_LE(bound, optimum);
    above_bound += bound < optimum ? 1 : 0;
  }
  EXPECT_GT(large, wanted / 10);
  EXPECT_GT(above_bound, wanted / 10);  // so that the exhaustive search was needed for the proofs
}

// The exhaustive search alone says that nothing is below an optimum and finds it from above it.
TEST(Order, ExhaustiveSearchDecides) {
  std::mt19937 random(2);
  for (int cases = 0; cases < spillway::test::cases(50, 1000);) {
    const OrderGraph graph = random_graph(random, 16);
    const std::int64_t optimum = brute_force(graph, 1500);
    if (optimum < 0) continue;
    ++cases;
    const OrderLinks links(graph);
    const std::vector<std::int64_t> rank(graph.operators.size(), 0);
    ASSERT_TRUE(search_order(links, {optimum, rank, 1'000'000}).complete);
    const OrderSearchResult found = search_order(links, {optimum + 1, rank, 1'000'000});
    ASSERT_EQ(found.peak, optimum);
    ASSERT_TRUE(check_order(graph, found.order).legal());
  }
}

// Whatever the graph and the bound, a pass and the greedy order are legal, and the solver is never above the program.
TEST(Order, RandomGraphsGetLegalOrders) {
  std::mt19937 random(3);
  for (int cases = 0; cases < spillway::test::cases(50, 20'000); ++cases) {
    const OrderGraph graph = random_graph(random, 120);
    const OrderLinks links(graph);
    std::vector<std::int64_t> rank(graph.operators.size());
    for (std::int64_t& r : rank) r = static_cast<std::int64_t>(random() % 10);
    const std::int64_t looks = cases % 3 == 0 ? static_cast<std::int64_t>(random() % 60) : -1;
    const OrderPassResult pass = order_pass(links, {static_cast<std::int64_t>(random() % 200), rank, 48, -1, looks});
    const OrderVerdict verdict = check_order(graph, pass.order);
    ASSERT_TRUE(verdict.legal()) << verdict.fault;
    ASSERT_EQ(verdict.peak_bytes, pass.peak);
    ASSERT_GE(pass.peak, forced_live_bound(links));
    ASSERT_TRUE(check_order(graph, greedy_order(links, graph.program_order)).legal());
    if (cases % 20 != 0) continue;
    const OrderResult result = solve_order(graph, {20'000, {}});
    ASSERT_TRUE(check_order(graph, result.order).legal());
    ASSERT_EQ(check_order(graph, result.order).peak_bytes, result.peak_bytes);
    ASSERT_LE(result.peak_bytes, result.program_order_peak_bytes);
    ASSERT_LE(result.lower_bound_bytes, result.peak_bytes);
  }
}

// The program 0 1 2 breaks a hazard from 2 to 1: the start of the search does not.
TEST(Order, ProgramsThatBreakHazards) {
  const OrderGraph graph = graph_of(3, {{0, 5, {1, 2}}, {1, 3, {}}, {2, 0, {1}}});
  EXPECT_EQ(broken_dependencies(graph, graph.program_order), 1U);
  EXPECT_EQ(legal_order(graph), (std::vector<OperatorIndex>{0, 2, 1}));
  EXPECT_TRUE(check_order(graph, solve_order(graph).order).legal());
  const OrderGraph cycle = graph_of(2, {{0, 5, {1}}, {1, 0, {0}}});
  EXPECT_LT(legal_order(cycle).size(), 2U);
}

// Two operators make 9 each, whose readers leave 1. With excursions the first is read before the second is made,
// without them the ranks' order stands.
TEST(Order, APassWithoutLooksGoesByRanks) {
  const OrderGraph graph =
      graph_of(6, {{0, 1, {1, 3}}, {1, 9, {2}}, {2, 1, {5}}, {3, 9, {4}}, {4, 1, {5}}, {5, 0, {}}});
  const OrderLinks links(graph);
  const std::vector<std::int64_t> rank = {9, 8, 1, 7, 2, 0};
  const OrderPassResult with = order_pass(links, {100, rank, 48, -1}),
                        without = order_pass(links, {100, rank, 48, -1, 0});
  EXPECT_EQ(with.order, (std::vector<OperatorIndex>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(with.peak, 11);
  EXPECT_EQ(without.order, (std::vector<OperatorIndex>{0, 1, 3, 4, 2, 5}));
  EXPECT_EQ(without.peak, 19);
}

// A pass that gives up returns nothing, and only where it needs more.
TEST(Order, PassGivesUp) {
  const OrderGraph graph = graph_of(3, {{0, 5, {1}}, {1, 3, {2}}, {2, 2, {}}});
  const OrderLinks links(graph);
  const std::vector<std::int64_t> rank(3, 0);
  EXPECT_EQ(order_pass(links, {0, rank, 48, 8}).order.size(), 3U);
  EXPECT_TRUE(order_pass(links, {0, rank, 48, 7}).order.empty());
}

// Below the bound that a pass names, bounds make no difference to it; at that bound they may.
TEST(Order, PassSaysUpToWhatBoundItIsTheSame) {
  std::mt19937 random(4);
  int others = 0;
  for (int cases = 0; cases < spillway::test::cases(200, 20'000); ++cases) {
    const OrderGraph graph = random_graph(random, 60);
    const OrderLinks links(graph);
    std::vector<std::int64_t> rank(graph.operators.size());
    for (std::int64_t& r : rank) r = static_cast<std::int64_t>(random() % 10);
    const auto bound = static_cast<std::int64_t>(random() % 200);
    const std::int64_t looks = cases % 3 == 0 ? static_cast<std::int64_t>(random() % 60) : -1;
    const OrderPassResult pass = order_pass(links, {bound, rank, 48, -1, looks});
    ASSERT_GT(pass.same_below, bound);
    const bool ends = pass.same_below < 100'000;
    const std::int64_t last = ends ? pass.same_below - 1 : bound + 1000;
    for (const std::int64_t other : {last, bound + (last - bound) / 2}) {
      const OrderPassResult again = order_pass(links, {other, rank, 48, -1, looks});
      ASSERT_EQ(again.order, pass.order);
      ASSERT_EQ(again.peak, pass.peak);
    }
    if (ends) others += order_pass(links, {last + 1, rank, 48, -1, looks}).order != pass.order ? 1 : 0;
  }
  EXPECT_GT(others, 5);
}

// Many independent chains with a hump each, in an order that opens all before it closes any: 100,000 operators.
TEST(Order, HundredThousandOperators) {
  constexpr OperatorIndex chains = 25'000;
  std::vector<OrderTensor> tensors;
  for (OperatorIndex c = 0; c < chains; ++c) {
    tensors.push_back({c, 1, {chains + c}});
    tensors.push_back({chains + c, 10 + c % 7, {2 * chains + c}});
    tensors.push_back({2 * chains + c, 1, {3 * chains + c}});
  }
  const OrderGraph graph = graph_of(4 * std::size_t{chains}, std::move(tensors));
  const OrderResult result = solve_order(graph);
  EXPECT_EQ(result.peak_bytes, 17);
  EXPECT_TRUE(result.proven);
  EXPECT_GT(result.program_order_peak_bytes, 10 * std::int64_t{chains});
  EXPECT_TRUE(check_order(graph, result.order).legal());
}

TEST(Order, ProgressEndsTheSearch) {
  const OrderGraph graph = graph_of(5, {{0, 4, {1, 3}}, {1, 10, {4}}, {2, 6, {3}}, {3, 1, {4}}});
  const OrderResult result = solve_order(graph, {1000, [](std::int64_t, std::int64_t) { return false; }});
  EXPECT_TRUE(result.stopped);
  EXPECT_TRUE(check_order(graph, result.order).legal());
}

TEST(OrderJson, ReadsAGraph) {
  const OrderGraph graph = read_order_graph(R"({"nodes": [{"name": "a"}, {"name": "b"}], "param_MiB": 0.5,
      "edges": [{"src": [1], "sinks": [0, 0], "size": 8}], "pt_order": [1, 0]})",
                                            "g.json");
  EXPECT_EQ(graph.operators, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(graph.tensors[0].sinks, (std::vector<OperatorIndex>{0}));
  EXPECT_EQ(graph.constant_bytes, 524288);
  EXPECT_EQ(graph.program_order, (std::vector<OperatorIndex>{1, 0}));
}

TEST(OrderJson, SaysWhatIsWrong) {
  const std::string nodes = R"({"nodes": [{"name": "a"}, {"name": "b"}], "edges": )";
  for (const std::string& text : std::vector<std::string>{
           "nothing", "[]", R"({"nodes": 3, "edges": []})", R"({"nodes": [{}], "edges": []})",
           nodes + R"([{"src": [2], "sinks": [], "size": 8}]})",
           nodes + R"([{"src": [0, 1], "sinks": [], "size": 8}]})",
           nodes + R"([{"src": [0], "sinks": [0], "size": 8}]})",
           nodes + R"([{"src": [0], "sinks": [1], "size": -8}]})",
           nodes + R"([{"src": [0], "sinks": [1], "size": 9000000000000000000}]})", nodes + R"([3]})",
           nodes + R"([{"src": [1], "sinks": [0], "size": 8}]})", nodes + R"([], "pt_order": [0, 0]})",
           nodes + R"([], "pt_order": [0]})",
           nodes + R"([{"src": [1], "sinks": [0], "size": 0}, {"src": [0], "sinks": [1], "size": 0}]})",
           nodes + R"([], "param_MiB": -1})"})
    EXPECT_THROW(read_order_graph(text, "g.json"), InputError) << text;
}

}  // namespace
}  // namespace spillway::planners
