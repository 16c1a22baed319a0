// Allocations per second of the memory policies, on a stream shaped like training steps: activations taken in
// order and given back in reverse, temporaries in between.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "sim/devices/memory/memory_pool.h"

namespace spillway {
namespace {

// Sizes of one step; positive: take an activation, negative: a temporary, given back at once.
std::vector<std::int64_t> step_sizes(std::size_t count) {
  std::mt19937 random(1);
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto size = static_cast<std::int64_t>(512 + random() % (std::uint32_t{1} << (10 + random() % 16)));
    sizes.push_back(random() % 3 == 0 ? size : -size);
  }
  return sizes;
}

void run_step(MemoryPool& pool, const std::vector<std::int64_t>& sizes, std::vector<BlockId>& kept) {
  for (const std::int64_t size : sizes) {
    AllocationRequest request;
    request.bytes = Bytes(size < 0 ? -size : size);
    const BlockId block = pool.allocate(request).block;
    if (size > 0)
      kept.push_back(block);
    else
      pool.free(block, Picos{});
  }
  for (; !kept.empty(); kept.pop_back()) pool.free(kept.back(), Picos{});
}

void training_step(benchmark::State& state, const char* policy) {
  const std::vector<std::int64_t> sizes = step_sizes(static_cast<std::size_t>(state.range(0)));
  MemoryPoolOptions options;
  options.policy = policy;
  MemoryPool pool = make_memory_pool(options);
  std::vector<BlockId> kept;
  for (auto _ : state) run_step(pool, sizes, kept);
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["reserved_MiB"] = static_cast<double>(pool.statistics().all().reserved_bytes.peak >> 20);
}
BENCHMARK_CAPTURE(training_step, torch, "torch")->Arg(1000)->Arg(10000)->Arg(100000);
BENCHMARK_CAPTURE(training_step, torch_expandable, "torch-expandable")->Arg(10000);
BENCHMARK_CAPTURE(training_step, gmlake, "gmlake")->Arg(10000);
BENCHMARK_CAPTURE(training_step, ideal, "ideal")->Arg(10000);

// The worst case of the flat free set: as many free blocks as given, none mergeable.
void scattered_free_blocks(benchmark::State& state) {
  MemoryPool pool = make_memory_pool({});
  std::vector<BlockId> blocks;
  AllocationRequest request;
  for (std::int64_t i = 0; i < 2 * state.range(0); ++i) {
    request.bytes = Bytes(512 * (1 + i % 64));
    blocks.push_back(pool.allocate(request).block);
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) pool.free(blocks[i], Picos{});
  for (auto _ : state) {
    request.bytes = Bytes(512 * (1 + state.iterations() % 64));
    pool.free(pool.allocate(request).block, Picos{});
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(scattered_free_blocks)->Arg(100)->Arg(1000)->Arg(10000)->Arg(100000);

// A fork copies the pool.
void fork_of_a_pool(benchmark::State& state) {
  MemoryPool pool = make_memory_pool({});
  AllocationRequest request;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    request.bytes = Bytes(512 * (1 + i % 5000));
    pool.allocate(request);
  }
  for (auto _ : state) {
    MemoryPool fork = pool;
    benchmark::DoNotOptimize(fork);
  }
}
BENCHMARK(fork_of_a_pool)->Arg(1000)->Arg(10000);

}  // namespace
}  // namespace spillway

BENCHMARK_MAIN();
