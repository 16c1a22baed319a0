// The kernels of training that cuDNN is asked for, as its graphs: attention and layer norms, forwards and backwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hwprofiles/calibrate/cudnn_graph.h"
#include "hwprofiles/gpu_points.h"

namespace spillway::hwprofiles {

// Operation points without a value: attention (batch, heads, kv_heads, sequence, head_dim, causal; bf16) and layer
// norms (m tokens of n, bytes as operator times count them). In an order without pattern: cut short anywhere, all sizes
// are there. Quick: fewer sizes.
std::vector<GpuPoint> cudnn_cases(bool quick);

namespace cudnn {

// Adds the operations of a case. Attention is products with a softmax and masks between them. NVIDIA's frontend to
// cuDNN, and PyTorch by it, builds it so for all of cuDNN 9 where there is a mask: the single operation for attention
// takes none before 9.21. Queries, keys and values lie by token; forwards also gives what backwards needs of the
// softmax, as training does. Throws Refusal. Precondition: the case is of cudnn_cases() or has its fields set alike.
void describe(const GpuPoint& point, Graph& graph);

}  // namespace cudnn
}  // namespace spillway::hwprofiles
