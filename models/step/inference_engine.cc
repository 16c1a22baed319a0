#include "models/step/inference_engine.h"

#include <algorithm>
#include <cmath>

namespace spillway::models {
namespace {

constexpr std::int64_t engine_type_bytes = 2;
constexpr double read_share = 0.7, product_share = 0.5;  // of memory_bandwidth, and of peak flops

std::int64_t split(std::int64_t whole, std::int64_t ranks) { return (whole + ranks - 1) / ranks; }

std::int64_t engine_weights(const ModelSpec& model, std::int64_t ranks) {
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters(model))
    elements += parameter.columns > 1 ? split(parameter.elements(), ranks) : parameter.elements();
  return engine_type_bytes * elements;
}

// Bytes of one sequence of so many tokens.
std::int64_t cached_bytes(const ModelSpec& model, std::int64_t tokens, std::int64_t ranks) {
  std::int64_t values = 0;
  for (std::int64_t layer = 0; layer < model.all_layers(); ++layer) {
    const Block block = model.block_of_all(layer);
    if (!block.attends() || block.shares_keys) continue;
    const std::int64_t seen = block.window > 0 ? std::min(block.window, tokens) : tokens;
    values += seen * (model.has_latent() ? model.latent.kv_rank + model.latent.rope_dim
                                         : split(block.kv_heads, ranks) * (block.head_dim + block.value_dim));
  }
  return engine_type_bytes * values;
}

}  // namespace

InferenceEngine inference_engine(const ModelSpec& model, const TrainingSetup& setup, const GpuProfile& gpu) {
  const std::int64_t ranks = setup.rollout_parallel, answer = setup.sequence - setup.prompt_tokens;
  InferenceEngine engine;
  engine.taken = Bytes(std::llround(setup.rollout_memory * static_cast<double>(gpu.memory.value.count())));
  engine.weights = Bytes(engine_weights(model, ranks));
  engine.cache = engine.taken - engine.weights;
  engine.answer_cache = Bytes(cached_bytes(model, setup.sequence, ranks));
  if (setup.rollout_sleep == 0) engine.asleep = engine.taken;
  if (setup.rollout_sleep == 1) engine.on_host = engine.weights;
  engine.answers = split(setup.step_sequences() * ranks, setup.gpus());
  engine.at_once = engine.cache <= Bytes(0) ? 0
                   : engine.answer_cache == Bytes(0)
                       ? engine.answers
                       : std::min(engine.answers, engine.cache.count() / engine.answer_cache.count());

  const auto answers = static_cast<double>(engine.answers);
  const double rounds = answers / static_cast<double>(std::max<std::int64_t>(1, engine.at_once));
  const auto half_way = static_cast<double>(cached_bytes(model, setup.prompt_tokens + answer / 2, ranks));
  const double read = rounds * static_cast<double>(engine.weights.count()) + answers * half_way;
  const double memory_time = read / (read_share * to_bytes_per_second(gpu.memory_bandwidth.value));
  const Maybe<double> peak = peak_flops_or_wider(gpu, Precision::bf16);
  const double flops = 2.0 * static_cast<double>(matmul_parameter_count(model)) / static_cast<double>(ranks);
  const double token_time = peak ? flops / (product_share * peak->value) : 0;
  const auto groups = static_cast<double>(split(engine.answers, setup.rollout_group));
  engine.prompts = from_seconds(groups * static_cast<double>(setup.prompt_tokens) * token_time);
  engine.tokens = from_seconds(static_cast<double>(answer) * std::max(memory_time, answers * token_time));
  return engine;
}

}  // namespace spillway::models
