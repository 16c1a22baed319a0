// Narrow operands of linear layers (fp8, or NVFP4), as Transformer Engine and torchao make them. Products want both
// operands along k, and the forward and one of the two backward products read an operand along different sides: a cast
// writes its result twice, as it is and transposed, but for rowwise scales, which differ between the two.
//
//   tensorwise, NVFP4   a pass over the operand finds its largest value first
//   rowwise             rows are cast in one pass; columns in two, of which one finds their largest values
//
// Deviations: scales, a byte to four for 16 to 128 elements, are counted neither as bytes nor as traffic; the largest
// value is not reduced over tensor ranks; NVFP4's Hadamard transform of a weight gradient's operands is free.
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models {
namespace {

// What torch.compile makes of the largest values of columns takes so long a row, whatever its width: blocks that each
// go down a strip of columns. Found on Llama 3 8B over 8 and 70B over 8 tensor ranks (torchtitan, June 2025), whose
// steps lack 0.22 us a token and layer of eleven such kernels; 8B over 2 (torchtitan issue 1207) lacks 0.21.
constexpr Picos column_row_time = nanoseconds(23);

// The kernel's name for fp8, and for fp4.
std::string_view named(DataType type, std::string_view fp8, std::string_view fp4) {
  return type == DataType::fp4 ? fp4 : fp8;
}

}  // namespace

ProductScaling EagerOps::scaling() const {
  switch (options_.recipe) {
    case Fp8Recipe::delayed:
    case Fp8Recipe::tensorwise:
      return ProductScaling::tensor;
    case Fp8Recipe::rowwise:
      return ProductScaling::row;
    case Fp8Recipe::blockwise:
      return ProductScaling::block;
    case Fp8Recipe::mxfp8:
      return ProductScaling::micro_block;
  }
  return ProductScaling::tensor;
}

Tensor EagerOps::narrow_copy(const std::string& name, const char* suffix, std::int64_t elements, TensorRole role) {
  return session_.empty(name + (options_.narrow == DataType::fp4 ? ".fp4" : ".fp8") + suffix, options_.narrow, elements,
                        role);
}

// What torch.compile makes of a cast that writes its result transposed reaches 1.4 TB/s where other casts reach 2.2
// (H100; pytorch/pytorch issue 133242). torchao's recipes are compiled; the others are Transformer Engine's.
KernelCost EagerOps::turning() const {
  const bool compiled = options_.recipe == Fp8Recipe::tensorwise || options_.recipe == Fp8Recipe::rowwise;
  return {.access = options_.dtensor && compiled ? MemoryAccess::strided : MemoryAccess::streamed};
}

void EagerOps::find_largest(const std::string& name, const Tensor& x) {
  if (options_.recipe != Fp8Recipe::tensorwise && options_.narrow != DataType::fp4) return;
  const Tensor largest = session_.empty(name + ".amax", DataType::fp32, 1, TensorRole::temporary);
  session_.kernel({.name = named(options_.narrow, "amax_fp8", "amax_fp4"), .reads = {x}, .writes = {largest}});
}

void EagerOps::cast_rows(const std::string& name, const Tensor& x, const Tensor& rows) {
  find_largest(name, x);
  session_.kernel({.name = named(options_.narrow, "cast_fp8", "cast_fp4"), .reads = {x}, .writes = {rows}});
}

void EagerOps::cast_columns(const std::string& name, const Tensor& x, const Tensor& columns, std::int64_t rows) {
  if (options_.recipe == Fp8Recipe::rowwise) {
    const Tensor largest = session_.empty(name + ".amax", DataType::fp32, 1, TensorRole::temporary);
    session_.kernel({.name = "amax_columns_fp8",
                     .reads = {x},
                     .writes = {largest},
                     .cost = {.least = options_.dtensor ? column_row_time * rows : Picos(0)}});
  }
  find_largest(name, x);
  session_.kernel(
      {.name = named(options_.narrow, "cast_fp8", "cast_fp4"), .reads = {x}, .writes = {columns}, .cost = turning()});
}

void EagerOps::cast_both(const std::string& name, const Tensor& x, const Tensor& rows, const Tensor& columns,
                         std::int64_t count) {
  if (options_.recipe == Fp8Recipe::rowwise) {
    cast_rows(name, x, rows);
    return cast_columns(name, x, columns, count);
  }
  find_largest(name, x);
  session_.kernel({.name = named(options_.narrow, "cast_transpose_fp8", "cast_transpose_fp4"),
                   .reads = {x},
                   .writes = {rows, columns},
                   .cost = turning()});
}

// `bias`: its gradient, the sum over the rows of x, comes out of the same kernel where one casts both ways.
EagerOps::Narrowed EagerOps::narrow(const std::string& name, const Tensor& x, TensorRole role, TrainedParameter* bias,
                                    std::int64_t rows) {
  Narrowed both{.rows = narrow_copy(name, "", x.elements(), TensorRole::temporary), .columns = {}};
  // Else there is no backward that would read them.
  if (autograd_.is_recording()) both.columns = narrow_copy(name, ".transposed", x.elements(), role);
  if (options_.recipe == Fp8Recipe::rowwise) {
    if (both.columns)
      cast_both(name, x, both.rows, both.columns, rows);
    else
      cast_rows(name, x, both.rows);
    if (bias != nullptr) sum_bias_gradient(*bias, x);
    return both;
  }
  find_largest(name, x);
  std::vector<Tensor> writes = {both.rows};
  if (both.columns) writes.push_back(both.columns);
  Tensor sum = bias == nullptr ? Tensor() : gradient_of(*bias);
  if (sum) writes.push_back(sum);
  session_.kernel({.name = sum ? named(options_.narrow, "cast_transpose_bias_fp8", "cast_transpose_bias_fp4")
                               : named(options_.narrow, "cast_transpose_fp8", "cast_transpose_fp4"),
                   .reads = {x},
                   .writes = std::move(writes),
                   .cost = turning()});
  if (sum) autograd_.accumulate(*bias, std::move(sum));
  return both;
}

// Cached copies are cast in the step's first micro-batch. Weights that are there only while they are used (ZeRO stage
// 3) are cast for each use.
Tensor EagerOps::narrow_weight(TrainedParameter& weight, bool transposed) {
  const std::string& name = weight.shape.name;
  if (weight.narrow) {
    if (std::exchange(weight.is_narrowed, true)) return transposed ? weight.narrow_transposed : weight.narrow;
    if (is_narrow(weight.value.type()))  // the update wrote it so
      session_.kernel({.name = "transpose_fp8", .reads = {weight.value}, .writes = {weight.narrow_transposed}});
    else
      cast_both(name, weight.value, weight.narrow, weight.narrow_transposed);
    return transposed ? weight.narrow_transposed : weight.narrow;
  }
  Tensor once = narrow_copy(name, "", weight.shape.elements(), TensorRole::temporary);
  if (transposed)
    cast_columns(name, weight.value, once);
  else
    cast_rows(name, weight.value, once);
  return once;
}

Tensor EagerOps::narrow_rows(const std::string& name, const Tensor& x, TensorRole role) {
  Tensor rows = narrow_copy(name, "", x.elements(), role);
  cast_rows(name, x, rows);
  return rows.with_node(x.node());
}

Tensor EagerOps::narrow_columns(const std::string& name, const Tensor& x, std::int64_t rows) {
  Tensor columns = narrow_copy(name, ".transposed", x.elements(), TensorRole::temporary);
  cast_columns(name, x, columns, rows);
  return columns;
}

Tensor EagerOps::transposed(const std::string& name, const Tensor& x) {
  Tensor turned = session_.empty(name + ".fp8.transposed", x.type(), x.elements(), TensorRole::temporary);
  session_.kernel({.name = "transpose_fp8", .reads = {x}, .writes = {turned}, .cost = turning()});
  return turned;
}

}  // namespace spillway::models
