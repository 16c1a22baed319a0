// The yardstick of bench/gate.py: work in the standard library alone, timed in the same process as what is gated, so
// that ratios to it compare between machines and loads. A heap that is popped and pushed (comparisons, memory that
// fits the caches) and a map of nodes in random order (memory that waits).
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <queue>
#include <random>

namespace spillway::bench {

inline void reference(benchmark::State& state) {
  constexpr std::uint64_t count = 16'384;
  for (auto _ : state) {
    std::mt19937_64 random(1);
    std::priority_queue<std::uint64_t> heap;
    std::map<std::uint64_t, std::uint64_t> nodes;
    for (std::uint64_t i = 0; i < count; ++i) {
      heap.push(random());
      nodes[random()] = i;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      nodes.erase(nodes.begin());
      nodes[random()] = heap.top();
      heap.pop();
      heap.push(random());
    }
    benchmark::DoNotOptimize(heap.top() + nodes.begin()->second);
  }
}
BENCHMARK(reference)->Unit(benchmark::kMillisecond);

}  // namespace spillway::bench
