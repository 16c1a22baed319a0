// A made-up training run of a mixture of experts, as STAlloc's profiler would log it, for measuring planners.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/splitmix64.h"

namespace spillway::bench {

struct MoeRun {
  int layers = 24, micro_batches = 32, experts = 8;
  std::uint64_t seed = 1;
};

// Three iterations of one stage. Each layer of each micro-batch: attention and router (static, in the forward freed in
// the backward, with temporaries), then experts whose requests are dynamic: sizes vary by a factor of two between
// micro-batches. Weights, gradients and, in the first iteration, optimizer state are held to the end. One forward, one
// backward, with two micro-batches in flight.
inline std::string moe_log(const MoeRun& run) {
  SplitMix64 random(run.seed);
  std::string log;
  std::uint64_t pointer = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
  const auto row = [&](char action, std::uint64_t id, std::uint64_t bytes) {
    log += action;
    log += ' ' + std::to_string(id) + ' ' + std::to_string(bytes) + " 0\n";
  };
  const auto allocate = [&](std::uint64_t bytes) {
    row('1', ++pointer, bytes);
    return pointer;
  };
  constexpr std::uint64_t tokens = 8 * 4096, hidden = 2048, slice = tokens * hidden * 2 / 8;
  using Saved = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  const auto keep = [&](Saved& saved, std::uint64_t bytes) { saved.emplace_back(allocate(bytes), bytes); };
  const auto pass = [&](std::uint64_t bytes) { row('0', allocate(bytes), bytes); };
  const auto layer_mark = [&](int layer, char direction, const char* what) {
    log += "moe-" + std::to_string(layer) + "->MoELayer Layer : " + direction + '-' + what + '\n';
  };
  const auto forward = [&](Saved& fixed, Saved& experts, int layer) {
    for (const std::uint64_t part : {8, 24, 8, 1, 8, 4}) keep(fixed, slice * part / 8);
    for (int t = 0; t < 6; ++t) pass(slice * static_cast<std::uint64_t>(1 + t % 3) / 2);
    layer_mark(layer, 'F', "start");
    for (int e = 0; e < run.experts; ++e) {
      const std::uint64_t share = slice / 8 + random.next() % (slice / 8);
      for (int k = 0; k < 3; ++k) keep(experts, share * static_cast<std::uint64_t>(k + 1));
      pass(share);
    }
    layer_mark(layer, 'F', "end");
    keep(fixed, slice);
  };
  const auto backward = [&](Saved& fixed, Saved& experts, int layer) {
    const auto free_all = [&](Saved& saved) {
      for (; !saved.empty(); saved.pop_back()) row('0', saved.back().first, saved.back().second);
    };
    pass(slice * 2);
    layer_mark(layer, 'B', "start");
    for (int e = 0; e < run.experts; ++e) pass(slice / 8 + random.next() % (slice / 8));
    free_all(experts);
    layer_mark(layer, 'B', "end");
    for (int t = 0; t < 8; ++t) pass(slice * static_cast<std::uint64_t>(1 + t % 4) / 2);
    free_all(fixed);
  };
  for (int l = 0; l < 2 * run.layers; ++l) held.emplace_back(allocate(100'000'000), 100'000'000);
  for (int iteration = 0; iteration < 3; ++iteration) {
    log += "Iteration Index : " + std::to_string(iteration) + "\n";
    const std::size_t layers = static_cast<std::size_t>(run.layers);
    const std::size_t batches = static_cast<std::size_t>(run.micro_batches);
    std::vector<std::vector<Saved>> fixed(batches, std::vector<Saved>(layers)), experts = fixed;
    for (std::size_t b = 0; b < batches + 1; ++b) {
      if (b < batches) {
        log += std::to_string(b) + " : F\n";
        for (std::size_t l = 0; l < layers; ++l) forward(fixed[b][l], experts[b][l], static_cast<int>(l));
      }
      if (b == 0) continue;
      log += std::to_string(b - 1) + " : B\n";
      for (std::size_t l = layers; l-- > 0;) backward(fixed[b - 1][l], experts[b - 1][l], static_cast<int>(l));
    }
    if (iteration == 0)
      for (int l = 0; l < run.layers; ++l) held.emplace_back(allocate(400'000'000), 400'000'000);
  }
  log += "Iteration Index : end\n";
  for (const auto& [id, bytes] : held) row('0', id, bytes);
  return log;
}

}  // namespace spillway::bench
