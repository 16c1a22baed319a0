// ROAM as published, piece by piece, and its results on random graphs against brute force.
#include "planners/order/roam.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/input_error.h"
#include "planners/layout/layout_check.h"
#include "planners/order/order_buffers.h"
#include "planners/order/order_check.h"
#include "planners/order/order_method.h"
#include "planners/order/roam_branches.h"
#include "planners/order/roam_dag.h"
#include "planners/order/roam_layout.h"
#include "planners/order/roam_segments.h"
#include "planners/order/roam_tree.h"
#include "planners/order/roam_updates.h"
#include "tests/planners/order/order_cases.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

// Layers 0 to 3, the loss 4, backward 5 to 8 with a gradient each (9 to 12), updates 13 to 20 in pairs.
//   0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8;   activation of layer i feeds backward 8 - i;   8 - i -> 12 - i
OrderGraph training_graph(std::int64_t activation, std::int64_t weight) {
  std::vector<OrderTensor> tensors;
  for (OperatorIndex layer = 0; layer < 4; ++layer)
    tensors.push_back(
        {layer, activation, {static_cast<OperatorIndex>(layer + 1), static_cast<OperatorIndex>(8 - layer)}});
  tensors.push_back({4, 1, {5}});
  for (OperatorIndex i = 0; i < 4; ++i) {
    const OperatorIndex backward = 5 + i, gradient = 9 + i, update = 13 + 2 * i;
    tensors.push_back({backward, 2, {gradient}});
    if (i < 3) tensors.back().sinks.insert(tensors.back().sinks.begin(), backward + 1);
    tensors.push_back({3 - i, 3, {gradient}});  // what else the gradient reads: made in the forward pass
    tensors.push_back({gradient, weight, {update}});
    tensors.push_back({update, weight, {static_cast<OperatorIndex>(update + 1)}});
  }
  return graph_of(21, std::move(tensors));
}

TEST(Roam, FindsTheLossAndTheUpdates) {
  const OrderGraph graph = training_graph(10, 5);
  const RoamBranches found = find_branches(graph, RoamDag(graph));
  EXPECT_EQ(found.loss, 4U);
  ASSERT_EQ(found.branches.size(), 4U);
  for (OperatorIndex i = 0; i < 4; ++i) {
    EXPECT_EQ(found.branches[i].end, 14 + 2 * i);
    EXPECT_EQ(found.branches[i].gradient, 9 + i);
    EXPECT_EQ(found.branches[i].bytes, 5);
  }
  EXPECT_EQ(std::count(found.update.begin(), found.update.end(), true), 8);
}

// With small weights every update runs before the backward pass goes on; with large ones all but the anchor's wait.
TEST(Roam, UpdatesRunPromptlyOrWait) {
  const auto scheduled = [](std::int64_t weight, std::size_t& delayed) {
    const OrderGraph graph = training_graph(10, weight);
    RoamDag dag(graph);
    delayed = schedule_updates(graph, find_branches(graph, RoamDag(graph)), {}, dag);
    return dag;
  };
  std::size_t delayed = 0;
  const RoamDag small = scheduled(1, delayed);
  EXPECT_EQ(delayed, 0U);
  EXPECT_TRUE(small.reaches(14, 7));  // the first update before the backward pass of two layers on
  EXPECT_TRUE(small.reaches(16, 8));
  const RoamDag large = scheduled(100, delayed);
  EXPECT_GT(delayed, 0U);
  EXPECT_TRUE(large.reaches(20, 9));  // the anchor, whose gradient is last, before the first gradient
}

TEST(Roam, DependenciesNeverCloseACycle) {
  RoamDag dag(graph_of(3, {{0, 1, {1}}, {1, 1, {2}}}));
  EXPECT_FALSE(dag.add(2, 0));
  EXPECT_FALSE(dag.add(1, 1));
  EXPECT_TRUE(dag.add(0, 2));
  EXPECT_EQ(dag.added().size(), 1U);
}

// Taken are all but those from an operator to one that it waits for already.
TEST(Roam, DependenciesAreTakenWhereTheyCloseNone) {
  std::mt19937 random(8);
  int taken = 0, refused = 0;
  for (int cases = 0; cases < spillway::test::cases(50, 1000); ++cases) {
    RoamDag dag(random_graph(random, 25));
    for (int tries = 0; tries < 40; ++tries) {
      const auto from = static_cast<OperatorIndex>(random() % dag.operators());
      const auto to = static_cast<OperatorIndex>(random() % dag.operators());
      const bool closes = dag.reaches(to, from);
      ASSERT_EQ(dag.add(from, to), !closes) << "case " << cases << ": " << from << " to " << to;
      ++(closes ? refused : taken);
    }
  }
  EXPECT_GT(taken, 300);
  EXPECT_GT(refused, 300);
}

// A key point is an operator with n - 1 ancestors and descendants.
TEST(Roam, KeyPointsAreOrderedWithAll) {
  std::mt19937 random(5);
  const int wanted = spillway::test::cases(50, 3000);
  std::size_t keys = 0, others = 0;
  for (int cases = 0; cases < wanted; ++cases) {
    const OrderGraph graph = random_graph(random, 25);
    const RoamDag dag(graph);
    std::vector<std::size_t> expected;
    for (OperatorIndex op = 0; op < graph.operators.size(); ++op) {
      const std::vector<bool> before = dag.ancestors(op), after = dag.descendants(op);
      const auto ordered =
          std::count(before.begin(), before.end(), true) + std::count(after.begin(), after.end(), true);
      if (static_cast<std::size_t>(ordered) == graph.operators.size() + 1) expected.push_back(op);
    }
    ASSERT_EQ(key_positions(dag, graph.program_order), expected) << "case " << cases;
    keys += expected.size();
    others += graph.operators.size() - expected.size();
  }
  EXPECT_GT(keys, static_cast<std::size_t>(wanted) / 6);
  EXPECT_GT(others, static_cast<std::size_t>(wanted) / 3);
}

// Segments ordered one by one reach the optimum of the whole where no dependency was added.
TEST(Roam, SegmentsAreIndependent) {
  std::mt19937 random(6);
  const int wanted = spillway::test::cases(50, 3000);
  int plain = 0, several = 0;
  for (int cases = 0; cases < wanted; ++cases) {
    const OrderGraph graph = random_graph(random, 25);
    const std::int64_t optimum = brute_force(graph, 1500);
    if (optimum < 0) continue;
    const RoamResult result = plan_roam(graph);
    const OrderVerdict verdict = check_order(graph, result.order);
    ASSERT_TRUE(verdict.legal()) << verdict.fault;
    ASSERT_EQ(verdict.peak_bytes, result.peak_bytes);
    ASSERT_GE(result.peak_bytes, optimum);
    RoamDag dag(graph);
    schedule_updates(graph, find_branches(graph, dag), {}, dag);
    if (!dag.added().empty() || result.unproven_segments > 0) continue;
    ++plain;
    several += result.segments > 2 ? 1 : 0;
    ASSERT_EQ(result.peak_bytes, optimum) << "case " << cases;
  }
  EXPECT_GT(plain, wanted / 30);
  EXPECT_GT(several, wanted / 60);
}

TEST(Roam, TheTreeHoldsEveryStepOnce) {
  std::mt19937 random(7);
  for (int cases = 0; cases < spillway::test::cases(50, 2000); ++cases) {
    const std::size_t count = 1 + random() % 60, limit = 1 + random() % 20;
    std::vector<std::size_t> keys;
    for (std::size_t i = 0; i < count; ++i)
      if (random() % 3 == 0) keys.push_back(i);
    const std::vector<RoamLeaf> leaves = subgraph_tree(keys, random() % count, count, limit);
    std::vector<int> held(count, 0);
    for (std::size_t l = 0; l < leaves.size(); ++l) {
      const RoamLeaf& leaf = leaves[l];
      for (std::size_t i = leaf.forward_begin; i < leaf.forward_end; ++i) ++held[i];
      for (std::size_t i = leaf.backward_begin; i < leaf.backward_end; ++i) ++held[i];
      if (l == 0) continue;
      EXPECT_GE(leaf.forward_begin, leaves[l - 1].forward_end);
      EXPECT_LE(leaf.backward_end, leaves[l - 1].backward_begin);
    }
    EXPECT_EQ(held, std::vector<int>(count, 1)) << "case " << cases;
  }
  // Key points everywhere, the loss in the middle: leaves of as many operators as may be.
  std::vector<std::size_t> all(41);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<RoamLeaf> leaves = subgraph_tree(all, 20, 41, 10);
  ASSERT_EQ(leaves.size(), 5U);
  EXPECT_EQ(leaves.back(), (RoamLeaf{16, 21, 21, 26}));
  EXPECT_EQ(leaves.back().operators(), 10U);
}

// Activations read in reverse need no more than what is alive.
TEST(Roam, ActivationsStackUp) {
  std::vector<LayoutBuffer> buffers;
  for (std::int64_t i = 0; i < 4; ++i) {
    LayoutBuffer buffer;
    buffer.lower = i;
    buffer.upper = 9 - i;
    buffer.size = 3 + i;
    buffers.push_back(buffer);
  }
  const std::vector<RoamLeaf> leaves = {{0, 2, 7, 9}, {2, 5, 5, 7}};
  const RoamLayout layout = roam_layout(buffers, leaves, 4);
  EXPECT_EQ(layout.offsets, (std::vector<std::int64_t>{0, 3, 7, 12}));
  EXPECT_EQ(layout.height, max_live(buffers));
  EXPECT_EQ(layout.evicted, 0U);
}

TEST(Roam, LayoutsNeverOverlap) {
  std::mt19937 random(8);
  std::size_t evicted = 0;
  for (int cases = 0; cases < spillway::test::cases(50, 1000); ++cases) {
    const OrderGraph graph = random_graph(random, 60);
    RoamOptions options;
    options.node_limit = 1 + random() % 20;
    options.ratio = 1 + static_cast<double>(random() % 3);
    const RoamResult result = plan_roam(graph, options);
    const std::vector<LayoutBuffer> buffers = buffers_of_order(graph, result.order);
    ASSERT_EQ(result.offsets.size(), buffers.size());
    std::vector<LaidBuffer> laid;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      laid.push_back({buffers[i].lower, buffers[i].upper, buffers[i].size, result.offsets[i], 1});
    const LayoutVerdict verdict = check_layout(laid, result.height_bytes);
    ASSERT_TRUE(verdict.legal()) << verdict.fault;
    ASSERT_GE(result.height_bytes, result.peak_bytes);
    evicted += result.evicted;
  }
  if (spillway::test::is_full_size()) {
    EXPECT_GT(evicted, 30U);  // rare
  }
}

// Every method gives a legal order with a legal layout (which order_by() and layout_by() assert), none below the best.
TEST(OrderMethods, NoneIsBelowTheBest) {
  std::mt19937 random(9);
  for (int cases = 0; cases < spillway::test::cases(30, 300); ++cases) {
    const OrderGraph graph = random_graph(random, 40);
    const OrderOutcome best = order_by(OrderMethod::best, graph);
    for (const OrderMethod method :
         {OrderMethod::program, OrderMethod::greedy, OrderMethod::lescea, OrderMethod::roam}) {
      const OrderOutcome outcome = order_by(method, graph);
      ASSERT_GE(outcome.peak_bytes, best.lower_bound_bytes) << to_string(method);
      if (best.proven) {
        ASSERT_GE(outcome.peak_bytes, best.peak_bytes) << to_string(method);
      }
      const LayoutResult layout = layout_by(method, graph, outcome);
      ASSERT_GE(layout.height + graph.constant_bytes, outcome.peak_bytes) << to_string(method);
    }
  }
}

// Of two operators alike, greedy takes the first of the program and LESCEA the first by name.
TEST(OrderMethods, TiesOfListOrders) {
  OrderGraph graph = graph_of(2, {{0, 5, {}}, {1, 5, {}}});
  graph.operators = {"b", "a"};
  EXPECT_EQ(order_by(OrderMethod::greedy, graph).order, (std::vector<OperatorIndex>{0, 1}));
  EXPECT_EQ(order_by(OrderMethod::lescea, graph).order, (std::vector<OperatorIndex>{1, 0}));
}

}  // namespace
}  // namespace spillway::planners
