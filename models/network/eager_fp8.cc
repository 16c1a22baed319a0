// Narrow operands of linear layers (fp8, or NVFP4), as Transformer Engine and torchao make them. Products want both
// operands along k, and the forward and one of the two backward products read an operand along different sides: a cast
// writes its result twice, as it is and transposed, but for rowwise scales, which differ between the two.
//
//   tensorwise, NVFP4   a pass over the operand finds its largest value first
//   rowwise             rows are cast in one pass; columns in two, of which one finds their largest values
//
// NVFP4's operands have a byte of scale for 16 elements (DataType::fp4). Transformer Engine rounds gradients
// stochastically, and multiplies a weight gradient's operands by Hadamard matrices of 16: both are done while casting,
// and take no time of their own.
//
// Deviations: scales of fp8, a byte to four for 32 to 128 elements, are counted neither as bytes nor as traffic; the
// largest value is not reduced over tensor ranks.
#include <utility>

#include "models/network/eager_fp8.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {
namespace {

// What torch.compile makes of the largest values of columns takes so long a row, whatever its width: blocks that each
// go down a strip of columns. Found on Llama 3 8B over 8 and 70B over 8 tensor ranks (torchtitan, June 2025), whose
// steps lack 0.22 us a token and layer of eleven such kernels; 8B over 2 (torchtitan issue 1207) lacks 0.21.
constexpr Picos column_row_time = nanoseconds(23);

// The kernel's name for fp8, and for fp4.
std::string_view named(DataType type, std::string_view fp8, std::string_view fp4) {
  return type == DataType::fp4 ? fp4 : fp8;
}

// Of a kernel that writes a transposed copy.
// What torch.compile makes of a cast that writes its result transposed reaches 1.4 TB/s where other casts reach 2.2
// (H100; pytorch/pytorch issue 133242). torchao's recipes are compiled; the others are Transformer Engine's.
KernelCost turning(const EagerRecorder& rec) {
  const bool compiled = rec.setup.fp8_recipe == Fp8Recipe::tensorwise || rec.setup.fp8_recipe == Fp8Recipe::rowwise;
  return {.access = rec.setup.traits().dtensor && compiled ? MemoryAccess::strided : MemoryAccess::streamed};
}

void find_largest(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  if (rec.setup.fp8_recipe != Fp8Recipe::tensorwise && rec.options.narrow != DataType::fp4) return;
  const Tensor largest = rec.session.empty(name + ".amax", DataType::fp32, 1, TensorRole::temporary);
  rec.session.kernel({.name = named(rec.options.narrow, "amax_fp8", "amax_fp4"), .reads = {x}, .writes = {largest}});
}

}  // namespace

ProductScaling scaling(const EagerRecorder& rec) {
  switch (rec.setup.fp8_recipe) {
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

Tensor narrow_copy(EagerRecorder& rec, const std::string& name, const char* suffix, std::int64_t elements,
                   TensorRole role) {
  return rec.session.empty(name + (rec.options.narrow == DataType::fp4 ? ".fp4" : ".fp8") + suffix, rec.options.narrow,
                           elements, role);
}

void cast_rows(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& rows) {
  find_largest(rec, name, x);
  rec.session.kernel({.name = named(rec.options.narrow, "cast_fp8", "cast_fp4"), .reads = {x}, .writes = {rows}});
}

void cast_columns(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& columns,
                  std::int64_t rows) {
  if (rec.setup.fp8_recipe == Fp8Recipe::rowwise) {
    const Tensor largest = rec.session.empty(name + ".amax", DataType::fp32, 1, TensorRole::temporary);
    rec.session.kernel({.name = "amax_columns_fp8",
                        .reads = {x},
                        .writes = {largest},
                        .cost = {.least = rec.setup.traits().dtensor ? column_row_time * rows : Picos(0)}});
  }
  find_largest(rec, name, x);
  rec.session.kernel({.name = named(rec.options.narrow, "cast_fp8", "cast_fp4"),
                      .reads = {x},
                      .writes = {columns},
                      .cost = turning(rec)});
}

void cast_both(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& rows, const Tensor& columns,
               std::int64_t count) {
  if (rec.setup.fp8_recipe == Fp8Recipe::rowwise) {
    cast_rows(rec, name, x, rows);
    return cast_columns(rec, name, x, columns, count);
  }
  find_largest(rec, name, x);
  rec.session.kernel({.name = named(rec.options.narrow, "cast_transpose_fp8", "cast_transpose_fp4"),
                      .reads = {x},
                      .writes = {rows, columns},
                      .cost = turning(rec)});
}

// `bias`: its gradient, the sum over the rows of x, comes out of the same kernel where one casts both ways.
Narrowed narrow(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role, TrainedParameter* bias,
                std::int64_t rows) {
  Narrowed both{.rows = narrow_copy(rec, name, "", x.elements(), TensorRole::temporary), .columns = {}};
  // Else there is no backward that would read them.
  if (rec.autograd.is_recording()) both.columns = narrow_copy(rec, name, ".transposed", x.elements(), role);
  if (rec.setup.fp8_recipe == Fp8Recipe::rowwise) {
    if (both.columns)
      cast_both(rec, name, x, both.rows, both.columns, rows);
    else
      cast_rows(rec, name, x, both.rows);
    if (bias != nullptr) sum_bias_gradient(rec, *bias, x);
    return both;
  }
  find_largest(rec, name, x);
  std::vector<Tensor> writes = {both.rows};
  if (both.columns) writes.push_back(both.columns);
  Tensor sum = bias == nullptr ? Tensor() : gradient_of(rec, *bias);
  if (sum) writes.push_back(sum);
  rec.session.kernel({.name = sum ? named(rec.options.narrow, "cast_transpose_bias_fp8", "cast_transpose_bias_fp4")
                                  : named(rec.options.narrow, "cast_transpose_fp8", "cast_transpose_fp4"),
                      .reads = {x},
                      .writes = std::move(writes),
                      .cost = turning(rec)});
  if (sum) rec.autograd.accumulate(*bias, std::move(sum));
  return both;
}

// Cached copies are cast in the step's first micro-batch. Weights that are there only while they are used (ZeRO stage
// 3) are cast for each use.
Tensor narrow_weight(EagerRecorder& rec, TrainedParameter& weight, bool transposed) {
  const std::string& name = weight.shape.name;
  if (weight.narrow) {
    if (std::exchange(weight.is_narrowed, true)) return transposed ? weight.narrow_transposed : weight.narrow;
    if (is_narrow(weight.value.type()))  // the update wrote it so
      rec.session.kernel({.name = "transpose_fp8", .reads = {weight.value}, .writes = {weight.narrow_transposed}});
    else
      cast_both(rec, name, weight.value, weight.narrow, weight.narrow_transposed);
    return transposed ? weight.narrow_transposed : weight.narrow;
  }
  Tensor once = narrow_copy(rec, name, "", weight.shape.elements(), TensorRole::temporary);
  if (transposed)
    cast_columns(rec, name, weight.value, once);
  else
    cast_rows(rec, name, weight.value, once);
  return once;
}

Tensor narrow_rows(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role) {
  Tensor rows = narrow_copy(rec, name, "", x.elements(), role);
  cast_rows(rec, name, x, rows);
  return rows.with_node(x.node());
}

Tensor narrow_columns(EagerRecorder& rec, const std::string& name, const Tensor& x, std::int64_t rows) {
  Tensor columns = narrow_copy(rec, name, ".transposed", x.elements(), TensorRole::temporary);
  cast_columns(rec, name, x, columns, rows);
  return columns;
}

Tensor transposed(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  Tensor turned = rec.session.empty(name + ".fp8.transposed", x.type(), x.elements(), TensorRole::temporary);
  rec.session.kernel({.name = "transpose_fp8", .reads = {x}, .writes = {turned}, .cost = turning(rec)});
  return turned;
}

}  // namespace spillway::models::eager
