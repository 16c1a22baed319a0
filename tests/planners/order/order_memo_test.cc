#include "planners/order/order_memo.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/planners/order/order_cases.h"

namespace spillway::planners {
namespace {

// More graphs than are kept, asked for twice over by two threads: what is remembered is what would be found.
TEST(OrderMemo, RemembersWhatIsFound) {
  std::mt19937 random(5);
  std::vector<OrderGraph> graphs;
  for (int i = 0; i < 24; ++i) graphs.push_back(random_graph(random, 40));
  const auto ask = [&] {
    for (int round = 0; round < 2; ++round)
      for (const OrderGraph& graph : graphs)
        for (const OrderMethod method : {OrderMethod::greedy, OrderMethod::best}) {
          const OrderOutcome known = known_order(method, graph), found = order_by(method, graph);
          EXPECT_EQ(known.order, found.order);
          EXPECT_EQ(known.peak_bytes, found.peak_bytes);
          EXPECT_EQ(known.lower_bound_bytes, found.lower_bound_bytes);
          EXPECT_EQ(known.proven, found.proven);
        }
  };
  std::thread other(ask);
  ask();
  other.join();
}

// Whatever an order depends on tells two questions apart.
TEST(OrderMemo, EveryPartOfTheQuestionCounts) {
  const OrderGraph graph = graph_of(3, {{0, 5, {1}}, {1, 3, {2}}, {2, 2, {}}});
  std::set<std::uint64_t> digests{digest_of_order(OrderMethod::best, graph, {})};
  std::size_t asked = 1;
  const auto differs = [&](const OrderGraph& other, const OrderMethodOptions& options, OrderMethod method) {
    digests.insert(digest_of_order(method, other, options));
    EXPECT_EQ(digests.size(), ++asked);
  };
  differs(graph, {}, OrderMethod::roam);
  const auto with_graph = [&](auto change) {
    OrderGraph other = graph;
    change(other);
    differs(other, {}, OrderMethod::best);
  };
  with_graph([](OrderGraph& g) { g.operators[1] = "other"; });
  with_graph([](OrderGraph& g) { std::swap(g.program_order[0], g.program_order[1]); });
  with_graph([](OrderGraph& g) { g.constant_bytes = 1; });
  with_graph([](OrderGraph& g) { g.tensors[0].size = 6; });
  with_graph([](OrderGraph& g) { g.tensors[0].source = 2; });
  with_graph([](OrderGraph& g) { g.tensors[0].sinks = {2}; });
  with_graph([](OrderGraph& g) { g.tensors[0].sinks = {1, 2}; });
  with_graph([](OrderGraph& g) { g.tensors.pop_back(); });
  const auto with_options = [&](auto change) {
    OrderMethodOptions other;
    change(other);
    differs(graph, other, OrderMethod::best);
  };
  with_options([](OrderMethodOptions& o) { o.best.effort = 1; });
  with_options([](OrderMethodOptions& o) { o.roam.node_limit = 1; });
  with_options([](OrderMethodOptions& o) { o.roam.ratio = 2; });
  with_options([](OrderMethodOptions& o) { o.roam.segment_effort = 1; });
  with_options([](OrderMethodOptions& o) { o.roam.layout = false; });
}

}  // namespace
}  // namespace spillway::planners
