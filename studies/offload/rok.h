// The recompute-offload-keep curve of a scenario: what each way of holding activations costs in memory and gives in
// throughput, per batch (SSDTrain, arXiv 2408.10013, figure 7).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "studies/offload/best_offload.h"

namespace spillway::studies {

// Its candidate's name is its family: "keep", "recompute", "offload", "mix".
struct RokPoint : Row {
  std::int64_t micro_batch = 0;
  Bytes activations{};                // most held at once (most_activations())
  double model_flops_per_second = 0;  // of the step without recomputation, over its time, all GPUs
  bool on_frontier = false;           // fits, and no other that fits has less memory and more throughput
};

// The most activations that a generated step holds at once, on the GPU that needs most memory. These are what its
// passes make, without weights, gradients, optimizer state, buffers and inputs, and without the update's own tensors.
// O(events log events).
Bytes most_activations(const LoadedScenario& loaded, ScenarioRun run);

// Replays the scenario's model at each micro-batch under each family; offload is SSDTrain's rule with the scenario's
// offload settings, recompute the generator's full recomputation. Throws InputError when the scenario is of a trace.
// progress: before each replay (done, all); false stops with the points so far.
std::vector<RokPoint> rok_curve(const ScenarioWith& with, std::span<const std::int64_t> micro_batches, bool with_mix,
                                const std::function<bool(std::size_t, std::size_t)>& progress = {});

// A family as people read it, behind "activations are": "kept", "as planned, per tensor".
std::string family_words(std::string_view family);

std::string rok_svg(const std::string& title, const std::vector<RokPoint>& points);

}  // namespace spillway::studies
