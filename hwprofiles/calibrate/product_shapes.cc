#include "hwprofiles/calibrate/product_shapes.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/splitmix64.h"

namespace spillway::hwprofiles {
namespace {

constexpr std::int64_t rows[] = {1,   2,   4,   8,    16,   32,   48,   64,   96,   128,  192,
                                 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384};
constexpr std::int64_t columns[] = {256,  512,  768,  1024, 1536,  2048,  2560, 3072,
                                    4096, 5120, 6144, 8192, 10240, 12288, 16384};
constexpr std::int64_t depths[] = {256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr std::int64_t more_columns[] = {32, 64, 128, 3584, 7168, 51200};
constexpr double most_flops = 5e12;  // a few milliseconds of the largest GPUs
constexpr std::uint64_t fp8_share = 3, fp32_share = 12, other_layouts_share = 12;

std::uint64_t hash_of(const ProductShape& shape) {
  const std::uint64_t sides =
      splitmix64(static_cast<std::uint64_t>(shape.m) * odd_multiplier ^
                 static_cast<std::uint64_t>(shape.n) * other_odd_multiplier ^ static_cast<std::uint64_t>(shape.k));
  return splitmix64(sides ^ (shape.transpose_b ? 1U : 0U) ^ (shape.transpose_a ? 2U : 0U));
}

void add_products(std::vector<ProductShape>& shapes, Precision precision, std::span<const std::int64_t> ns) {
  for (const std::int64_t m : rows)
    for (const std::int64_t n : ns)
      for (const std::int64_t k : depths)
        shapes.push_back({.m = m, .n = n, .k = k, .transpose_b = true, .precision = precision});
}

bool is_measured(const ProductShape& shape, bool quick) {
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const std::uint64_t hash = splitmix64(hash_of(shape));
  if (shape.precision == Precision::fp8) return shape.m % 16 == 0 && (!quick || hash % fp8_share == 0);
  if (shape.precision == Precision::fp32) return flops <= most_flops / 20 && hash % fp32_share == 0;
  return flops <= most_flops;
}

}  // namespace

std::string_view layout_name(const ProductShape& shape) {
  return shape.transpose_a ? "nt" : shape.transpose_b ? "tn" : "nn";
}

std::vector<ProductShape> calibration_shapes(Precision precision, bool quick) {
  std::vector<ProductShape> shapes;
  add_products(shapes, precision, columns);
  if (!quick) add_products(shapes, precision, more_columns);
  std::erase_if(shapes, [&](const ProductShape& shape) { return !is_measured(shape, quick); });
  if (precision == Precision::bf16)
    for (std::size_t i = 0, plain = shapes.size(); i < plain; ++i) {
      if (hash_of(shapes[i]) % other_layouts_share != 0) continue;
      for (const bool transpose_a : {false, true}) {
        ProductShape other = shapes[i];
        other.transpose_b = false;
        other.transpose_a = transpose_a;
        shapes.push_back(other);
      }
    }
  std::sort(shapes.begin(), shapes.end(), [](const ProductShape& a, const ProductShape& b) {
    return std::pair(hash_of(a), a) < std::pair(hash_of(b), b);
  });
  return shapes;
}

}  // namespace spillway::hwprofiles
