// Numbers in the virtual device's memory.
#pragma once

#include <cstdint>

namespace spillway::virtual_gpu {

// Column-major d = op(a) op(b) [+ bias of m], packed; bf16 or fp32, summed in fp32 in the order of k.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, is_bf16 = true;
};
void multiply(const Product& product, const void* a, const void* b, const void* bias, void* d);

}  // namespace spillway::virtual_gpu
