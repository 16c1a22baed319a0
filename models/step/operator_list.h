// A step as a program noted its operators, without times: what each reads, writes, allocates and frees, in the
// program's order, and how much there is to it. Priced on a machine it is a trace like a generated one, of one GPU.
//
// Written by spillway.fits() of the Python package (python/spillway/torch/noting.py), for modules that have no model
// file. Allocations before the first row of the step are those of the iterations before it: they have no time, and
// leave the allocator as they did.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "models/cost/cost_model.h"
#include "traces/trace.h"

namespace spillway::models {

inline constexpr std::string_view operator_list_schema_name = "spillway-operators";

// One allocation.
struct ListedTensor {
  std::string name;
  std::int64_t bytes = 1;
  TensorRole role = TensorRole::unknown;
};

// Allocations, then a kernel, then frees; any of them may be none. Tensors by their numbers.
struct ListedOperator {
  std::string name;  // empty: no kernel
  Phase phase = Phase::unknown;
  std::int64_t layer = -1, micro_batch = -1;  // -1: none
  std::vector<std::int64_t> allocates, reads, writes, frees;
  KernelCost cost;  // flops are counted from its shape
};

struct OperatorList {
  std::string title, producer;
  std::vector<ListedTensor> tensors;
  std::vector<ListedOperator> operators;
  std::int64_t first = 0;  // operator of the step
};

void describe(OperatorList& list, FieldVisitor& visitor);
std::string operator_list_schema();

// Whether a file is one, by its beginning; false where it can't be opened.
bool is_operator_list(const std::string& path);
// Throws InputError (file, JSON pointer): also for a tensor that is allocated twice, used before it is allocated or
// after it was freed.
OperatorList read_operator_list(const std::string& path);

// As EagerSession records it, at the clock that it settles at. O(rows).
Trace priced_step(const OperatorList& list, const CostModel& cost);
// Whether a trace was made so: nothing recorded how it ran.
bool is_priced(const Trace& trace);

}  // namespace spillway::models
