// The trainer's model: a decoder-only transformer in GPT-2's shape (Radford et al. 2019), with layer norms in front of
// attention and feed-forward, learned positions, a separate head (not tied to the embedding) and no dropout.
#pragma once

#include <cstdint>

namespace spillway::validation {

enum class ElementType : std::uint8_t { f32, bf16, i32 };
constexpr std::int64_t bytes_of(ElementType type) { return type == ElementType::bf16 ? 2 : 4; }

struct TrainerModel {
  std::int64_t vocabulary = 64, hidden = 32, heads = 4, layers = 2, sequence = 16, batch = 2;
  // Type of weights, activations and gradients. With bf16 a master copy of each weight in fp32 is kept beside it, as
  // mixed-precision training does (Micikevicius et al., ICLR 2018). Optimizer state and statistics are fp32 either way.
  ElementType type = ElementType::f32;
  std::uint64_t seed = 1;  // of weights and data
  // AdamW (Loshchilov, Hutter, ICLR 2019).
  float learning_rate = 3e-3F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, weight_decay = 0.01F;

  [[nodiscard]] std::int64_t tokens() const { return batch * sequence; }
  [[nodiscard]] std::int64_t head_size() const { return hidden / heads; }
};

// Throws InputError naming what is out of range: sizes at least 1, hidden a multiple of heads, fewer than 2^31 elements
// in any tensor.
void check(const TrainerModel& model);

}  // namespace spillway::validation
