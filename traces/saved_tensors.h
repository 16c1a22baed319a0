// The tensors a step's forward keeps for its backward: what activation offloading and recomputation are about.
//
//   written_by .. last_forward      used forwards
//   last_forward .. first_backward  idle: the gap in which it may leave device memory
//   first_backward .. last_backward used backwards
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

struct SavedTensor {
  TensorId tensor = TensorId::none;  // the largest of its storage
  std::uint32_t storage = 0;
  Bytes bytes{};              // of its block, as allocated
  std::int64_t elements = 0;  // of the tensor; 0 when its type is unknown
  OpId written_by = OpId::none, last_forward = OpId::none, first_backward = OpId::none, last_backward = OpId::none;
  std::uint16_t rank = 0;
  std::uint16_t micro_batch = no_index16;
  // Layer of the op that needs it first in the backward, hence of the module that saved it. no_index16: outside the
  // layers (head, loss, embeddings).
  std::uint16_t layer = no_index16;
};

// Storages allocated within the step that forward ops use and backward (or recompute) ops need again, by written_by.
// Weights, gradients, optimizer state, buffers and inputs are none of them. Needs memory, uses and phases; throws
// InputError naming what is missing. O(uses log).
std::vector<SavedTensor> saved_tensors(const Trace& trace);

// Whether any op knows its layer: captures of programs without named modules have none.
bool names_layers(const Trace& trace);

// The module an op works for: the first `parts` dotted parts of the name of what it writes first
// ("layers.3.mlp.up.out" -> "layers.3.mlp.up" for 4). Empty where tensors have no such names.
std::string module_of(const Trace& trace, OpId op, std::size_t parts);

}  // namespace spillway::traces
