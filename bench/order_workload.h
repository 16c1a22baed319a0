// The graph of a made-up training step, for measuring the order solver at any size.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/floors.h"
#include "base/splitmix64.h"
#include "planners/order/order_graph.h"

namespace spillway::bench {

// Layers of 49 operators: forward (three projections, two steps of attention, an addition, two steps of a network with
// a wide middle, an addition), backward in reverse, four gradients of weights, and seven operators that update each,
// one of which waits for nothing. Program order: forward, loss, backward with gradients, then all updates. Sizes are
// drawn per layer: hidden state 1 to 4 MiB, weights 1 to 16 MiB.
class TrainingGraph {
 public:
  TrainingGraph(std::size_t layers, std::uint64_t seed) : random_(seed) {
    std::vector<Layer> all;
    OperatorIndex state = run({}).op;
    TensorOf previous = make(state, mebi);
    for (std::size_t l = 0; l < layers; ++l) {
      all.push_back(forward(previous));
      previous = all.back().out;
    }
    TensorOf gradient = make(run({previous}).op, mebi);
    for (std::size_t l = layers; l-- > 0;) gradient = backward(all[l], gradient);
    for (const auto& [weight, bytes] : weights_) update(weight, bytes);
    for (OperatorIndex op = 0; op < graph_.operators.size(); ++op) graph_.program_order.push_back(op);
  }
  OrderGraph take() { return std::move(graph_); }

 private:
  static constexpr std::int64_t mebi = std::int64_t{1} << 20;
  struct TensorOf {
    std::size_t tensor = 0;
  };
  struct Run {
    OperatorIndex op = 0;
  };
  struct Layer {
    TensorOf in, q, k, v, scores, mixed, attended, middle, narrow, out;
    std::int64_t hidden = 0, weight = 0;
  };

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(most - least + 1));
  }
  Run run(const std::vector<TensorOf>& reads) {
    const auto op = static_cast<OperatorIndex>(graph_.operators.size());
    graph_.operators.push_back("op" + std::to_string(op));
    for (const TensorOf read : reads) {
      std::vector<OperatorIndex>& sinks = graph_.tensors[read.tensor].sinks;
      if (sinks.empty() || sinks.back() != op) sinks.push_back(op);
    }
    return {op};
  }
  TensorOf make(OperatorIndex op, std::int64_t bytes) {
    graph_.tensors.push_back({op, bytes, {}});
    return {graph_.tensors.size() - 1};
  }
  TensorOf step(const std::vector<TensorOf>& reads, std::int64_t bytes) { return make(run(reads).op, bytes); }

  Layer forward(TensorOf in) {
    Layer layer;
    layer.in = in;
    layer.hidden = mebi * between(1, 4);
    layer.weight = mebi * between(1, 16);
    layer.q = step({in}, layer.hidden);
    layer.k = step({in}, layer.hidden);
    layer.v = step({in}, layer.hidden);
    layer.scores = step({layer.q, layer.k}, 2 * layer.hidden);
    layer.mixed = step({layer.scores, layer.v}, layer.hidden);
    layer.attended = step({in, layer.mixed}, layer.hidden);
    layer.middle = step({layer.attended}, 4 * layer.hidden);
    layer.narrow = step({layer.middle}, layer.hidden);
    layer.out = step({layer.attended, layer.narrow}, layer.hidden);
    return layer;
  }
  TensorOf backward(const Layer& layer, TensorOf above) {
    const TensorOf middle = step({above, layer.middle}, 4 * layer.hidden);
    weight(middle, layer.attended, layer.weight);
    const TensorOf attended = step({middle, above}, layer.hidden);
    weight(above, layer.middle, layer.weight);
    const TensorOf scores = step({attended, layer.scores, layer.v}, 2 * layer.hidden);
    weight(attended, layer.mixed, layer.weight / 2);
    const TensorOf v = step({attended, layer.scores}, layer.hidden);
    const TensorOf q = step({scores, layer.k}, layer.hidden);
    const TensorOf k = step({scores, layer.q}, layer.hidden);
    const TensorOf sum = step({q, k, v}, layer.hidden);
    weight(sum, layer.in, layer.weight);
    return step({sum, attended}, layer.hidden);
  }
  void weight(TensorOf gradient, TensorOf activation, std::int64_t bytes) {
    weights_.emplace_back(step({gradient, activation}, bytes), bytes);
  }
  void update(TensorOf gradient, std::int64_t bytes) {
    const TensorOf moment = step({}, bytes);
    const TensorOf decayed = step({gradient}, bytes);
    const TensorOf first = step({decayed, moment}, bytes);
    const TensorOf second = step({decayed}, bytes);
    const TensorOf root = step({second}, bytes);
    const TensorOf scale = step({root}, bytes);
    run({first, scale});
  }

  SplitMix64 random_;
  OrderGraph graph_;
  std::vector<std::pair<TensorOf, std::int64_t>> weights_;
};

}  // namespace spillway::bench
