#include "tests/virtual_gpu/elements.h"

#include <cstddef>
#include <vector>

#include "validation/trainer/cpu_kernels.h"

namespace spillway::virtual_gpu {
namespace {

std::vector<float> wide(const void* from, std::int64_t count, bool is_bf16) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        is_bf16 ? validation::to_float(static_cast<const std::uint16_t*>(from)[i]) : static_cast<const float*>(from)[i];
  return values;
}

}  // namespace

void multiply(const Product& product, const void* a, const void* b, const void* bias, void* d) {
  const std::int64_t m = product.m, n = product.n, k = product.k;
  const std::vector<float> left = wide(a, m * k, product.is_bf16), right = wide(b, k * n, product.is_bf16);
  const std::vector<float> added = bias != nullptr ? wide(bias, m, product.is_bf16) : std::vector<float>();
  const auto at = [](const std::vector<float>& values, std::int64_t row, std::int64_t column, std::int64_t rows) {
    return values[static_cast<std::size_t>(column * rows + row)];
  };
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < m; ++row) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i)
        sum += (product.transpose_a ? at(left, i, row, k) : at(left, row, i, m)) *
               (product.transpose_b ? at(right, column, i, n) : at(right, i, column, k));
      if (!added.empty()) sum += added[static_cast<std::size_t>(row)];
      const auto place = static_cast<std::size_t>(column * m + row);
      if (product.is_bf16)
        static_cast<std::uint16_t*>(d)[place] = validation::to_bf16(sum);
      else
        static_cast<float*>(d)[place] = sum;
    }
}

}  // namespace spillway::virtual_gpu
