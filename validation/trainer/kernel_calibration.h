// Measures the kernels of training steps that are no matrix products, each kind by itself over a range of sizes: the
// trainer's own kernels, on any backend.
//
//   elementwise         GeLU over the inner width            gather              embedding of tokens and positions
//   norm_forward        layer norm                           optimizer           AdamW of the embedding table
//   norm_backward       its gradient to the input            attention_forward   causal, heads of 64
//   cross_entropy       loss of logits, row by row           attention_backward
//   softmax             its gradient: a softmax of each row
//
// A size is timed as batches of calls back to back, over operands that rotate through twice the cache. The gap between
// two kernels is part of it, as it is in a step. Attention is a plain kernel (one warp a row), far from a library's
// best.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hwprofiles/calibrate/gpu_measurement.h"
#include "validation/trainer/backend.h"

namespace spillway::validation {

struct KernelCalibrationOptions {
  // Each size is that of a model with a layer of this width and so many tokens.
  std::vector<std::int64_t> tokens = {256, 1024, 4096, 16384};
  std::int64_t hidden = 1024, vocabulary = 32768, sequence = 256;
  std::int64_t most_attention_tokens = 4096;
  Bytes cache;                  // of the device
  int batches = 5;              // per size
  double seconds = 0;           // stops adding sizes when so long has passed; 0: never
  double batch_seconds = 5e-3;  // calls of a batch take about so long
};

struct KernelCalibration {
  std::vector<KernelPoint> points;  // by kind, then size
  bool is_cut = false;              // the time did not suffice
};

// progress(done, all) before each size; false throws Cancelled. Throws InputError when the device has no memory for a
// single set of operands, and what the backend throws.
KernelCalibration measure_kernels(Backend& backend, const KernelCalibrationOptions& options,
                                  const std::function<bool(std::size_t, std::size_t)>& progress);

// Bytes that a call moves: operands once each, of an embedding's table only the rows picked. O(operands).
Bytes bytes_moved(const StepGraph& graph, const KernelCall& call);

}  // namespace spillway::validation
