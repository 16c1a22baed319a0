#include "models/training_setup.h"

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
