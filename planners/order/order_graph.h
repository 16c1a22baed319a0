// The graph an order is sought for: operators, and the tensors that pass between them.
//
//   operator --- tensor (bytes) ---> operators      A tensor without bytes only says what comes before what: an
//                                                   in-place write after the last read of what it overwrites, or an
//                                                   update of a parameter after its last use.
//
// Memory model: operators run one after another. A tensor is alive from the step of its source until after the step of
// its last sink. Inputs and outputs of the running operator are alive together, and nothing is reused in place. A
// tensor without sinks is alive during its source's step only. Bytes alive all along (parameters) are one constant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::planners {

using OperatorIndex = std::uint32_t;

struct OrderTensor {
  OperatorIndex source = 0;
  std::int64_t size = 0;             // bytes, >= 0
  std::vector<OperatorIndex> sinks;  // no repetitions, never the source
};

struct OrderGraph {
  std::vector<std::string> operators;        // names
  std::vector<OrderTensor> tensors;          // all sizes together below 2^62
  std::vector<OperatorIndex> program_order;  // every operator once; may break dependencies without bytes
  std::int64_t constant_bytes = 0;           // alive all along, >= 0, below 2^62
};

// Bytes alive during each step of an order of all operators, without the constant. O(operators + tensors and their
// sinks).
std::vector<std::int64_t> live_bytes(const OrderGraph& graph, std::span<const OperatorIndex> order);

// The most that is alive in any step, with the constant.
std::int64_t peak_of_order(const OrderGraph& graph, std::span<const OperatorIndex> order);

// The program's order where it is legal, else as near it as dependencies allow: of the operators that can run the one
// that comes first in the program. Shorter than the graph if dependencies form a cycle. n log n + m.
std::vector<OperatorIndex> legal_order(const OrderGraph& graph);

// Dependencies (pairs of a tensor and a sink) that an order of all operators breaks. n + m.
std::size_t broken_dependencies(const OrderGraph& graph, std::span<const OperatorIndex> order);

}  // namespace spillway::planners
