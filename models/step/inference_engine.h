// InferenceEngine: the engine that gives the answers of a group loss on the GPUs that train, as trl's vllm_mode
// "colocate" does. It has a memory, a number of answers that its cache holds at once, and a time.
//
//   taken     rollout_memory of the whole memory: its weights, and the cache is the rest (vLLM's
//             gpu_memory_utilization, vllm/v1/worker/gpu_worker.py)
//   weights   16 bits; matrices are split over rollout_parallel GPUs, vectors are whole
//   cache     of a token and a layer with attention its keys and values in 16 bits; of latent attention the latent and
//             the rotary part, whole on every GPU; of a window its tokens alone
//   asleep    what it keeps while the model is trained: all at sleep level 0, nothing at 1 and 2
//   at_once   the answers of an engine, or as many as the cache holds at their full length (trl sets max_num_seqs so)
//
// Times are bounds of the memory and of products, at assumed shares of the GPU's rates (operator-times.md). Each token
// reads the weights once for the answers at once, and the answer's own cache. Prompts go through once for a group of
// answers (prefix caching). Deviations: the engine's own activations, graphs and the sampler are in
// neither memory nor time; nor is the weights' way to the engine, or from the host at level 1.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "hwprofiles/gpu_profile.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

struct InferenceEngine {
  Bytes taken{}, weights{}, cache{};      // of one GPU; cache below 0: the weights alone take more
  Bytes answer_cache{};                   // of a prompt and its answer at full length
  Bytes asleep{}, on_host{};              // while the model is trained: of one GPU, and beside it in host memory
  std::int64_t answers = 0, at_once = 0;  // of one engine and step; 0 at once: the cache holds none
  Picos prompts{}, tokens{};

  [[nodiscard]] Picos time() const { return prompts + tokens; }
};

// Precondition: `setup` is resolved and has_engine().
InferenceEngine inference_engine(const ModelSpec& model, const TrainingSetup& setup, const GpuProfile& gpu);

}  // namespace spillway::models
