// Kind of a framework operator, from its name, schema and its tensors' devices. Inferred, never recorded.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/trace.h"

namespace spillway::traces {

struct OperatorShape {
  std::string_view name;        // "aten::mm"
  std::string_view schema;      // "aten::mm(Tensor self, Tensor mat2) -> Tensor"; may be empty
  std::int16_t input_gpu = -1;  // -1: no input on a GPU
  std::int16_t output_gpu = -1;
  bool has_inputs = false;  // any tensor input
  bool to_host = false;     // has outputs, none of them on a GPU
};

// kernel, a copy, memset or collective for device work; host_work for views, allocations, CPU operators.
OpKind operator_kind(const OperatorShape& shape);
// unknown when the name says nothing.
Phase phase_of_name(std::string_view name);
CollectiveKind collective_kind_of_name(std::string_view name);
// "cuda:3" -> 3, "cuda" -> 0 (also "hip", "xpu"); -1 otherwise.
std::int16_t gpu_ordinal(std::string_view device);

}  // namespace spillway::traces
