// One training step of a TrainerModel as a list of kernels over tensors: what the backends run and what becomes a
// Trace.
//
//   forward    embed, layers x (norm, qkv, attention, projection, add, norm, up, gelu, down, add), norm, head, loss
//   backward   the same backwards, weight gradients beside
//   optimizer  AdamW on each parameter
//
// Every tensor is written whole by its first kernel; only weights and optimizer state are changed in place, by AdamW.
// Kernels are named after what they write ("forward layers.1.mlp.up.out"), each name once, so that a rewritten trace
// still tells which kernel an op is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "traces/trace.h"
#include "validation/trainer/trainer_model.h"

namespace spillway::validation {

enum class TrainerKernel : std::uint8_t {
  embed,                    // tokens, table, positions -> x
  embed_table_gradient,     // tokens, dx -> d table
  embed_position_gradient,  // dx -> d positions
  gemm,                     // a, b [, bias] -> c = op(a) op(b) + bias
  bias_gradient,            // dy -> column sums
  layer_norm,               // x, weight, bias -> y, mean, 1 / deviation
  layer_norm_backward,      // dy, x, weight, mean, 1 / deviation -> dx
  layer_norm_gradient,      // dy, x, mean, 1 / deviation -> d weight, d bias
  attention,                // qkv -> out, log of the softmax's denominator; causal
  attention_backward,       // d out, qkv, out, log denominator -> d qkv
  gelu,                     // x -> y, tanh form
  gelu_backward,            // dy, x -> dx
  add,                      // a, b -> a + b
  cross_entropy,            // logits, targets -> mean loss, log of each row's denominator
  cross_entropy_backward,   // logits, targets, log denominator -> d logits
  adamw,                    // gradient; weight, [master,] first and second moment in place
};
constexpr int kernel_count = static_cast<int>(TrainerKernel::adamw) + 1;
std::string_view to_string(TrainerKernel kernel);

struct KernelCall {
  TrainerKernel kernel = TrainerKernel::add;
  std::string name;
  Phase phase = Phase::forward;
  std::uint16_t layer = no_index16;
  std::vector<std::uint32_t> reads, writes;  // tensors, in the kernel's order of operands; AdamW's are in both
  // gemm: rows m, columns n and inner size k of c; others: rows and columns of what they work on.
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, has_bias = false;
  bool decays = false;     // adamw: weight decay applies (not to norms and biases)
  std::int64_t flops = 0;  // multiply-adds count twice; 0 for kernels bound by memory
};

struct GraphTensor {
  std::string name;
  std::int64_t elements = 0;
  ElementType type = ElementType::f32;
  TensorRole role = TensorRole::activation;
  bool persistent = false;  // there before the step and after it
  [[nodiscard]] Bytes bytes() const { return Bytes(elements * bytes_of(type)); }
};

struct StepGraph {
  TrainerModel model;
  std::vector<GraphTensor> tensors;
  std::vector<KernelCall> calls;
  std::uint32_t tokens = 0, targets = 0, loss = 0;  // tensors
  std::map<std::string, std::size_t> call_by_name;

  // Weights with their gradients, in AdamW's order. `master`, moments: tensors; master == weight for fp32.
  struct Parameter {
    std::uint32_t weight = 0, gradient = 0, master = 0, first = 0, second = 0;
    bool is_norm_weight = false;  // starts at 1
    bool is_vector = false;       // norms and biases: start at 0 (or 1), no weight decay
  };
  std::vector<Parameter> parameters;
};

// Throws InputError as check(). O(layers).
StepGraph step_graph(const TrainerModel& model);

}  // namespace spillway::validation
