// The matrix products that a calibration measures.
//
// c[m, n] = op(a) op(b), inner size k. The pair (m, n) decides which tiles a library picks and how they fill the
// multiprocessors, and k how long they run. So the list has a few k of many pairs, in an order without pattern. Cut
// short anywhere, it still covers all sizes.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hwprofiles/gpu_profile.h"

namespace spillway::hwprofiles {

struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, has_bias = false;
  Precision precision = Precision::bf16;  // of a and b: bf16, fp32, or fp8 (e4m3) with a result in bf16
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

// Layout of the row-major operands, as models/cost names it: tn x w^T of a forward, nn of an input's gradient, nt of a
// weight's gradient.
std::string_view layout_name(const ProductShape& shape);

// fp8 products are tn alone, in multiples of 16; a twelfth of the bf16 ones are measured as nn and nt as well.
std::vector<ProductShape> calibration_shapes(Precision precision, bool quick);

}  // namespace spillway::hwprofiles
