// Speed of the event engine: queue, solver, executor. Run with the peers beside it in one go:
//   ninja -C build-release bench/engine_bench bench/peers/simgrid_bench
#include <benchmark/benchmark.h>

#include <queue>
#include <vector>

#include "bench/engine_workload_graph.h"
#include "bench/reference.h"
#include "sim/engine/executor.h"

namespace spillway::bench {
namespace {

using bench::to_graph;
using bench::Workload;

// Hold model: `pending` events; each popped event schedules one at a random distance ahead.
template <class Pop, class Push>
void hold(benchmark::State& state, std::uint32_t pending, Pop pop, Push push) {
  bench::Lcg random;
  for (std::uint32_t i = 0; i < pending; ++i) push(Picos(static_cast<std::int64_t>(random.below(100'000))), i);
  std::vector<std::uint64_t> counts(pending);
  for (auto _ : state) {
    const auto [time, target] = pop();
    ++counts[target];
    push(time + Picos(static_cast<std::int64_t>(random.below(100'000))), target);
  }
  benchmark::DoNotOptimize(counts.data());
  state.SetItemsProcessed(state.iterations());
}

void BM_QueueSpillway(benchmark::State& state) {
  EventQueue queue;
  hold(
      state, static_cast<std::uint32_t>(state.range(0)),
      [&] {
        if (queue.empty()) std::abort();
        const EventQueue::Event event = queue.pop();
        return std::pair(event.time, event.target);
      },
      [&](Picos time, std::uint32_t target) { queue.schedule(time, EventPhase::completion, 1, target); });
}

// The same events, ordered the same way, in the standard library's heap: the bare bound.
void BM_QueueStandard(benchmark::State& state) {
  struct Later {
    bool operator()(const EventQueue::Event& a, const EventQueue::Event& b) const {
      return a.time != b.time ? a.time > b.time : a.key > b.key;
    }
  };
  std::priority_queue<EventQueue::Event, std::vector<EventQueue::Event>, Later> queue;
  std::uint64_t sequence = 0;
  hold(
      state, static_cast<std::uint32_t>(state.range(0)),
      [&] {
        const EventQueue::Event event = queue.top();
        queue.pop();
        return std::pair(event.time, event.target);
      },
      [&](Picos time, std::uint32_t target) {
        queue.push({time, sequence++, 1, target});
      });
}

BENCHMARK(BM_QueueSpillway)->Arg(64)->Arg(1024)->Arg(16384)->Arg(262144);
BENCHMARK(BM_QueueStandard)->Arg(64)->Arg(1024)->Arg(16384)->Arg(262144);

void run_workload(benchmark::State& state, const Workload& workload) {
  const ActivityGraph graph = to_graph(workload);
  std::uint64_t events = 0;
  for (auto _ : state) {
    Executor<> executor(graph);
    const Outcome outcome = executor.run();
    if (!outcome.ok()) state.SkipWithError(outcome.text().c_str());
    events += outcome.events;
    benchmark::DoNotOptimize(outcome.fingerprint);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(workload.operators.size()));
  state.counters["events/s"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
  state.counters["bytes/node"] = [&] {
    Executor<> executor(graph);
    executor.run();
    return static_cast<double>(executor.memory_bytes()) / static_cast<double>(workload.operators.size());
  }();
}

void BM_ExecSpillway(benchmark::State& state) { run_workload(state, bench::exec_workload(8, 20'000)); }
void BM_CommSpillway(benchmark::State& state) { run_workload(state, bench::comm_workload(8, 5'000)); }
void BM_GraphSpillway(benchmark::State& state) {
  run_workload(state, bench::graph_workload(static_cast<std::uint32_t>(state.range(0))));
}
// What setting up costs: building, finishing.
void BM_GraphBuild(benchmark::State& state) {
  const Workload workload = bench::graph_workload(100'000);
  for (auto _ : state) benchmark::DoNotOptimize(to_graph(workload).size());
  state.SetItemsProcessed(state.iterations() * 100'000);
}
// Solver alone: `flows` flows over 2 or 3 of 10 links, one replaced per solve.
void BM_Solve(benchmark::State& state) {
  bench::Lcg random;
  FluidNetwork network;
  for (int l = 0; l < 10; ++l) network.add_link(rate_from_bytes_per_second(1e10 + 1e9 * l));
  for (std::uint32_t p = 0; p < 20; ++p) {
    const std::vector<PathEntry> path = {{LinkId{p % 10}}, {LinkId{(p * 3 + 1) % 10}}};
    network.add_path(path);
  }
  const auto start = [&](Picos now) {
    network.start(now, static_cast<std::int64_t>(1 + random.below(1 << 20)),
                  PathId{static_cast<std::uint32_t>(random.below(20))}, unlimited_rate, 1, 0);
  };
  for (std::int64_t f = 0; f < state.range(0); ++f) start(Picos{});
  network.solve(Picos{});
  for (auto _ : state) {
    Picos next = Picos::max();
    std::uint32_t first = 0;
    for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot)
      if (network.flow(slot).active && network.flow(slot).end < next) next = network.flow(first = slot).end;
    network.finish(next, first);
    start(next);
    // What ties with it is finished at the next step, one picosecond early at most by definition.
    for (std::uint32_t slot = 0; slot < network.slot_count(); ++slot)
      if (network.flow(slot).active && network.flow(slot).end == next) {
        network.finish(next, slot);
        start(next);
      }
    network.solve(next);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(BM_ExecSpillway)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_CommSpillway)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_GraphSpillway)->Arg(2'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_GraphBuild)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Solve)->Arg(8)->Arg(32)->Arg(128);

}  // namespace
}  // namespace spillway::bench

BENCHMARK_MAIN();
