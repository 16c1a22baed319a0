#include "models/training_setup.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "models/model_spec.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

void check_range(const char* name, std::int64_t value, std::int64_t high) {
  if (value < 1 || value > high)
    throw InputError("", name, fmt::format("{} is out of range", value), fmt::format("give 1 .. {}", high));
}

// Keeps every count of one kernel within 64 bits, a step within the clock's 106 days on the slowest GPU worth the name,
// and a trace within a few gigabytes.
void check_size(const TrainingSetup& setup, const ModelSpec& model) {
  constexpr double most_per_kernel = 4e18, most_per_step = 5e19;
  constexpr std::int64_t most_layer_runs = 200'000;
  const auto tokens = static_cast<double>(setup.tokens());
  const auto widest = static_cast<double>(
      std::max({model.vocabulary, model.feed_forward, model.query_width() + 2 * model.kv_width(), model.hidden}));
  const double product = 2 * tokens * widest * static_cast<double>(std::max(model.hidden, model.query_width()));
  const double square = tokens * static_cast<double>(setup.sequence) * static_cast<double>(model.heads);
  const double attention = 10 * square * static_cast<double>(std::max<std::int64_t>(model.head_dim, 2));
  const double step = (6 * tokens * static_cast<double>(matmul_parameter_count(model)) +
                       attention * static_cast<double>(model.layers)) *
                      static_cast<double>(setup.gradient_accumulation);
  if (product > most_per_kernel || attention > most_per_kernel || step > most_per_step)
    throw InputError("", "micro_batch x sequence", fmt::format("one step would be {:.1e} operations", step),
                     fmt::format("stay below {:.0e} in all and {:.0e} in one kernel", most_per_step, most_per_kernel));
  if (model.layers * setup.gradient_accumulation > most_layer_runs)
    throw InputError(
        "", "gradient_accumulation",
        fmt::format("{} layers x {} micro-batches make too long a trace", model.layers, setup.gradient_accumulation),
        fmt::format("stay below {} layer runs", most_layer_runs));
}

}  // namespace

std::int64_t TrainingSetup::model_state_bytes_per_parameter() const {
  const std::int64_t master = precision == TrainingPrecision::bf16_mixed ? 4 : 0;
  const std::int64_t moments = optimizer == OptimizerKind::adamw ? 2 : 0;
  return weight_bytes() + gradient_bytes() + master + moments * state_bytes();
}

TrainingSetup resolve(const TrainingSetup& setup, const ModelSpec& model) {
  TrainingSetup result = setup;
  if (result.sequence == 0) result.sequence = model.max_positions;
  check_range("sequence", result.sequence, 1 << 24);
  check_range("micro_batch", result.micro_batch, 1 << 16);
  check_range("gradient_accumulation", result.gradient_accumulation, most_micro_batches);
  check_range("micro_batch x sequence", result.tokens(), std::int64_t{1} << 28);
  if (model.positions == Positions::learned && result.sequence > model.max_positions)
    throw InputError(
        "", "sequence",
        fmt::format("{} tokens, but {} has {} learned positions", result.sequence, model.title, model.max_positions),
        "shorten the sequence or choose a model with rotary positions");
  if (result.dropout == -1) result.dropout = model.dropout;
  if (!(result.dropout >= 0 && result.dropout < 1))
    throw InputError("", "dropout", fmt::format("{} is not a probability", result.dropout), "give a number in [0, 1)");
  if (result.fp32_gradients && result.precision != TrainingPrecision::bf16_mixed)
    throw InputError("", "fp32_gradients", "only mixed precision has gradients wider than its weights",
                     "set precision to bf16_mixed or fp32_gradients to false");
  check_size(result, model);
  return result;
}

std::string_view to_string(TrainingPrecision precision) {
  switch (precision) {
    case TrainingPrecision::fp32:
      return "fp32";
    case TrainingPrecision::bf16_mixed:
      return "bf16_mixed";
    case TrainingPrecision::bf16:
      return "bf16";
  }
  return "";
}

std::string_view to_string(OptimizerKind optimizer) {
  switch (optimizer) {
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::sgd:
      return "sgd";
  }
  return "";
}

std::string_view to_string(OptimizerForm form) {
  switch (form) {
    case OptimizerForm::foreach:
      return "foreach";
    case OptimizerForm::fused:
      return "fused";
  }
  return "";
}

std::string_view to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "";
}

}  // namespace spillway
