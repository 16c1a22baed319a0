// The trained parts of a model, and how frozen matrices are stored.
//
//   full         all but the embeddings and the first `frozen_layers` layers; with `trained_layers` so many of the
//                layers behind these, and nothing else
//   lora, qlora  adapters of the linear layers that lora_targets names, W x + B A x: A [rank, in], B [out, rank]; and
//                copies of the embedding and the head that modules_to_save names
//
// Frozen matrices inside layers (attention, feed-forward blocks, experts, routers; not embeddings, norms, biases,
// heads) may be stored in fewer bits, n weights in:
//
//   nf4         ceil(n / 2) bytes, and a fp32 scale (the largest absolute value) per 64: 4.5 bits a weight
//   nf4_double  ceil(n / 2) bytes, a byte per 64, and a fp32 scale per 256 of these: 4.127 bits
//   int8        n bytes, and a fp32 scale per row
//   fp8         n bytes, and a fp32 scale per block of 128 rows and 128 columns
//
// NF4: QLoRA (Dettmers et al. 2023, arXiv 2305.14314), section 3, "4-bit NormalFloat Quantization" and "Double
// Quantization". int8: LLM.int8() (arXiv 2208.07339), section 3. Deviation: there, products are done in int8 except
// outlying columns. Here the matrix is unpacked for its product, as for NF4. fp8: blocks of DeepSeek-V3
// (arXiv 2412.19437, section 3.3.2), as fp8 checkpoints are published. Deviation: Unsloth (unsloth/kernels/fp8.py) does
// the forward's product in fp8 and unpacks in the backward; here it is unpacked for both.
#pragma once

#include <cstdint>

#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// A matrix as it is stored: packed weights, their scales, and the scales of those.
struct StoredWeight {
  std::int64_t packed_bytes = 0;
  std::int64_t scales = 0, scale_bytes = 4;  // of each
  std::int64_t second_scales = 0;            // of 4 bytes

  [[nodiscard]] std::int64_t bytes() const { return packed_bytes + scales * scale_bytes + 4 * second_scales; }
};
// Precondition: weights is not same. `parameter`: of one rank.
StoredWeight stored_weight(BaseWeights weights, const Parameter& parameter);

// Whether a parameter of the model (not an adapter) is trained, has adapters, and may be stored in fewer bits. A copy
// is trained beside adapters (modules_to_save).
bool is_trained(const Parameter& parameter, const TrainingSetup& setup, const ModelSpec& model);
bool is_adapted(const Parameter& parameter, const TrainingSetup& setup);
bool is_packed(const Parameter& parameter, const TrainingSetup& setup);
// The copy's original, "embedding.original.weight": frozen, and no product reads it.
Parameter original_of(const Parameter& copy);
// Its adapters: A, then B. Stacked experts have their A one below the other.
Parameter adapter_a(const Parameter& base, std::int64_t rank);
Parameter adapter_b(const Parameter& base, std::int64_t rank);

struct TrainableCounts {
  std::int64_t all = 0, trained = 0;  // both with adapters

  [[nodiscard]] bool is_partial() const { return trained < all; }
};
// The count of the whole model, however it is split. `setup` is resolved.
TrainableCounts trainable_counts(const ModelSpec& model, const TrainingSetup& setup);

// Operations of matrix products for one token, forward and backward. Each weight has two for the product, two for the
// gradient of its input in layers that aren't frozen, and two for its gradient if it is trained. 6 N when all is.
double product_flops_per_token(const ModelSpec& model, const TrainingSetup& setup);

}  // namespace spillway::models
