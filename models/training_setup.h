// TrainingSetup: how one GPU trains a model: batch, precision, optimizer, recomputation.
//
// Parallel layouts are not part of it yet; everything here is per GPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

struct ModelSpec;

enum class TrainingPrecision : std::uint8_t {
  fp32,        // weights, gradients, optimizer state 4 bytes
  bf16_mixed,  // bf16 weights and activations, fp32 master weights and optimizer state
  bf16,        // everything 2 bytes
};

enum class OptimizerKind : std::uint8_t {
  adamw,  // two moments
  sgd,    // no momentum: no state
};

// foreach: PyTorch's default, one pass over each list of tensors per elementary operation, with a temporary as big as
// the parameter group. fused: one kernel does the whole update, no temporary.
enum class OptimizerForm : std::uint8_t { foreach, fused };

// none: every activation the backward needs is kept. selective: the attention core (scores, softmax, dropout, context)
// is recomputed, Korthikanti et al. 2022 section 5; no effect with flash attention, which recomputes by itself. full:
// only each layer's input is kept.
enum class Recompute : std::uint8_t { none, selective, full };

constexpr std::int64_t most_micro_batches = 65'534;  // of one step

struct TrainingSetup {
  std::int64_t micro_batch = 1;            // sequences per micro-batch, >= 1
  std::int64_t sequence = 0;               // tokens per sequence; 0: the model's longest
  std::int64_t gradient_accumulation = 1;  // micro-batches per optimizer step, 1 .. most_micro_batches
  TrainingPrecision precision = TrainingPrecision::bf16_mixed;
  bool fp32_gradients = false;  // bf16_mixed: accumulate gradients in fp32 buffers that live all the time
  OptimizerKind optimizer = OptimizerKind::adamw;
  OptimizerForm optimizer_form = OptimizerForm::foreach;
  Recompute recompute = Recompute::none;
  bool flash_attention = true;
  // RMSNorm and rotary embedding as one kernel each (Apex, Transformer Engine, a compiler). false: the sequence of
  // elementwise kernels of Hugging Face's code run eagerly, with its fp32 copies; slower and larger.
  bool fused_kernels = true;
  double dropout = -1;  // [0, 1) replaces the model's; -1: the model's own

  [[nodiscard]] std::int64_t tokens() const { return micro_batch * sequence; }  // of one micro-batch
  [[nodiscard]] std::int64_t weight_bytes() const { return precision == TrainingPrecision::fp32 ? 4 : 2; }
  [[nodiscard]] std::int64_t gradient_bytes() const { return fp32_gradients ? 4 : weight_bytes(); }
  [[nodiscard]] std::int64_t state_bytes() const {
    return precision == TrainingPrecision::bf16 ? 2 : 4;
  }  // of one moment
  // Weights, gradients, master weights and optimizer state per parameter: 16 for bf16_mixed AdamW.
  [[nodiscard]] std::int64_t model_state_bytes_per_parameter() const;
};

// Fills the defaults in from the model (sequence, dropout). Throws InputError, naming the value, when the set-up is
// out of range, the model can't run it (sequence longer than a learned position table), or the step is too large to
// count in 64 bits.
TrainingSetup resolve(const TrainingSetup& setup, const ModelSpec& model);

// A field by its name and a text, for scenario files and --set: "micro_batch" "4", "precision" "fp32", "recompute"
// "full", "flash_attention" "true". Throws InputError (place = key) for an unknown key, with the nearest one offered,
// or a text that is no value of it. Ranges are resolve()'s.
void set_field(TrainingSetup& setup, std::string_view key, std::string_view text);
[[nodiscard]] std::string field_text(const TrainingSetup& setup, std::string_view key);
// In the order of the struct.
const std::vector<std::string>& training_setup_keys();

std::string_view to_string(TrainingPrecision precision);
std::string_view to_string(OptimizerKind optimizer);
std::string_view to_string(OptimizerForm form);
std::string_view to_string(Recompute recompute);

}  // namespace spillway
