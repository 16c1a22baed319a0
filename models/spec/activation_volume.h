// SSDTrain's own projection: what a step writes to the drives, how fast, and how long these last.
//
// The model its authors use before measuring anything (SSDTrain, arXiv 2408.10013, sections II-B and III-D): closed
// forms for a GPT of `layers` equal layers, feed-forward 4 x hidden, 2 bytes a value. Per GPU and pass of one
// micro-batch: s tokens, b sequences, h hidden, a heads, V vocabulary, tp and pp degrees, e = 2 bytes. sp is tp if
// sequence parallelism shards what tensor parallelism does not, else 1.
//
//   volume  = {layers [sbh ((2e + 9) / sp + 14e / tp) + 4e a s b / tp] + e sbh / tp + e V s b / tp + 4 sbh / sp} / pp
//   forward = (layers x layer + logits) / pp + embedding
//     layer      max(attention or MLP flops / F, weights / M), one after the other, two layer norms and two all-reduces
//     layer norm 2e sbh / tp / M           all-reduce  2e sbh (1 - 1 / tp) / link
//     logits     2 sbhV / tp / F           embedding   e V h / M + one all-reduce, on every stage
//     ZeRO-3     the next layer's weights are gathered meanwhile: max(layer, its weights (1 - 1 / dp) / gather)
//   step    = 3 x forward x accumulation + optimizer,  optimizer = 18 bytes a parameter of the GPU / M
//   write   = volume / (1.5 forward): writing may use half of a step's time
//   life    = endurance x training time / bytes written
//
// F: achieved flop rate, M: memory bandwidth at its peak. The formulas of time were found from the published rows, of
// which they give every digit; no constant is fitted. All rows' ZeRO traffic hides behind compute, so they say nothing
// of `gather`. Logits and embeddings count though SSDTrain does not offload them; a measured volume lies below.
#pragma once

#include <cstdint>

namespace spillway::models {

struct ActivationProjection {
  std::int64_t layers = 1, hidden = 1, heads = 1, vocabulary = 1, sequence = 1;
  std::int64_t micro_batch = 1;  // sequences in flight over all pipeline stages
  std::int64_t tensor_parallel = 1, pipeline_parallel = 1, data_parallel = 1, gradient_accumulation = 1;
  std::int64_t zero_stage = 0;
  bool sequence_parallel = true;
  double flops_per_second = 1;  // achieved
  double memory_bandwidth = 1;  // bytes a second
  double link_bandwidth = 1;    // of tensor parallelism's all-reduces, per direction
  double gather_bandwidth = 0;  // of ZeRO-3's weights; 0: hidden behind compute
};

// Bytes per GPU and micro-batch pass, seconds, bytes a second. O(1) each. Precondition: all fields in range (> 0).
double activation_volume(const ActivationProjection& p);
double forward_seconds(const ActivationProjection& p);
double step_seconds(const ActivationProjection& p);
double required_write_bandwidth(const ActivationProjection& p);

// A training run of `tokens`, in whole steps.
double step_count(const ActivationProjection& p, double tokens);
double bytes_written(const ActivationProjection& p, double tokens);  // per GPU
double training_seconds(const ActivationProjection& p, double tokens);
// Years (of 365 days) until each GPU's drives, which take `endurance` bytes together, are worn out.
double projected_life_years(const ActivationProjection& p, double endurance);

}  // namespace spillway::models
