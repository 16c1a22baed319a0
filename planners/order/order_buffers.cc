#include "planners/order/order_buffers.h"

#include <algorithm>

namespace spillway::planners {

std::vector<LayoutBuffer> buffers_of_order(const OrderGraph& graph, std::span<const OperatorIndex> order) {
  std::vector<std::int64_t> step(graph.operators.size());
  for (std::size_t i = 0; i < order.size(); ++i) step[order[i]] = static_cast<std::int64_t>(i);
  std::vector<LayoutBuffer> buffers;
  for (const OrderTensor& tensor : graph.tensors) {
    if (tensor.size == 0) continue;
    std::int64_t last = step[tensor.source];
    for (const OperatorIndex sink : tensor.sinks) last = std::max(last, step[sink]);
    LayoutBuffer buffer;
    buffer.lower = step[tensor.source];
    buffer.upper = last + 1;
    buffer.size = tensor.size;
    buffers.push_back(buffer);
  }
  return buffers;
}

}  // namespace spillway::planners
