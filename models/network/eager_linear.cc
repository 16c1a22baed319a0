// Linear layers, alone and split over a tensor group.
#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "models/network/eager_fp8.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_lora.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {
namespace {

// Calls of torch.nn.functional.linear that launch nothing, counted in a layer of transformers' Llama (PyTorch's
// dispatch mode): the weight's transpose, its input as a matrix and back; backwards for each of its two products.
constexpr double product_views = 3, product_views_backward = 4;
constexpr std::int64_t padded_side = 8;  // elements

// Whether a layer with narrow operands keeps its input as it came.
bool keeps_wide(const EagerRecorder& rec, const Linear& layer) {
  return layer.keeps_input || rec.setup.fp8_recipe == Fp8Recipe::rowwise;
}

// Whether what was sent along rows is turned for the weight gradient; else it comes along columns as well.
bool transposes(const EagerRecorder& rec) { return rec.setup.fp8_recipe != Fp8Recipe::mxfp8; }

bool is_fp8(const std::vector<Linear>& layers) {
  return std::all_of(layers.begin(), layers.end(), [](const Linear& layer) { return layer.weight->in_fp8; });
}

// Weight gradients that read a layer's input as it is kept.
std::size_t readers_of(const EagerRecorder& rec, const TrainedParameter& weight) {
  return (weight.trains ? 1U : 0U) + (weight.adapter_a != nullptr && adapter_reads_input(rec, weight) ? 1U : 0U);
}

// `operand`: x, or its cast to fp8. Without adapters.
Tensor frozen_linear_of(EagerRecorder& rec, const Linear& layer, const Tensor& x, const Tensor& operand,
                        const std::shared_ptr<SavedInput>& saved);

// With them, if there are any.
Tensor linear_of(EagerRecorder& rec, const Linear& layer, const Tensor& x, const Tensor& operand,
                 const std::shared_ptr<SavedInput>& saved);

// Plus its adapters' result, if it has any. `saved`: of the layer.
Tensor adapted(EagerRecorder& rec, const std::string& name, const Tensor& x, Tensor out, const TrainedParameter& weight,
               const std::shared_ptr<SavedInput>& saved) {
  if (weight.adapter_a == nullptr) return out;
  const Tensor low = adapter_reads_input(rec, weight)
                         ? linear_of(rec, {name + ".lora_a", weight.adapter_a, nullptr}, x, x, saved)
                         : linear(rec, {name + ".lora_a", weight.adapter_a}, adapter_input(rec, name, x, weight));
  return add_adapter(rec, name, out, linear(rec, {name + ".lora_b", weight.adapter_b}, low));
}

// Sequence parallel, the input is gathered for the weight gradient while the product before it runs, or when that is
// put off, then.
void linear_backward(EagerRecorder& rec, const Linear& layer, const std::shared_ptr<SavedInput>& saved,
                     const Tensor& gradient, Tensor* x_gradient) {
  TrainedParameter& weight = *layer.weight;
  const std::int64_t inputs = weight.shape.columns, outputs = weight.shape.rows;
  const std::int64_t rows = gradient.elements() / outputs;
  if (!rec.autograd.is_deferring() && weight.trains && saved->parts)
    static_cast<void>(saved_for_weights(rec, layer.name, *saved));
  const bool in_fp8 = weight.trains && (saved->casts || is_narrow(saved->kept.type()));
  Narrowed both{.rows = gradient, .columns = gradient};
  const bool is_cast = is_narrow(gradient.type());  // before it was gathered
  if (is_cast && transposes(rec))
    both.columns = transposed(rec, layer.name + ".out.grad", gradient);
  else if (in_fp8 && !is_cast)
    both = narrow(rec, layer.name + ".out.grad", gradient, TensorRole::temporary, layer.bias, rows);
  if (x_gradient != nullptr) {
    const DataType type = is_cast ? rec.options.type : gradient.type();
    *x_gradient = rec.session.empty(layer.name + ".in.grad", type, rows * inputs, TensorRole::temporary);
    product(rec, "gemm_dgrad",
            {.m = rows, .n = inputs, .k = outputs, .layout = in_fp8 ? GemmLayout::tn : GemmLayout::nn},
            {both.rows, in_fp8          ? narrow_weight(rec, weight, true)
                        : saved->weight ? saved->weight
                                        : weight_operand(rec, weight, type)},
            *x_gradient, {});
  }
  if (layer.bias != nullptr && !in_fp8) sum_bias_gradient(rec, *layer.bias, gradient);
  if (!weight.trains) return;
  rec.autograd.weight_work([&rec, layer, saved, columns = std::move(both.columns)] {
    weight_gradient(rec, layer, columns, saved_for_weights(rec, layer.name, *saved));
    use_dummy(rec, *layer.weight);
    if (--saved->users == 0) saved->kept = saved->whole = {};
  });
}

Tensor frozen_linear_of(EagerRecorder& rec, const Linear& layer, const Tensor& x, const Tensor& operand,
                        const std::shared_ptr<SavedInput>& saved) {
  TrainedParameter& weight = *layer.weight;
  const std::int64_t inputs = weight.shape.columns, outputs = weight.shape.rows;
  const std::int64_t rows = x.elements() / inputs;
  const bool in_fp8 = is_narrow(operand.type());
  const DataType type = in_fp8 ? rec.options.type : x.type();
  if (rec.workspaces != nullptr) rec.workspaces->use_product();
  const bool keeps = rec.kept != nullptr && rec.kept->is_kept_product();
  Tensor out = keeps ? rec.kept_result() : Tensor();
  const bool adds_after = layer.bias != nullptr && rec.options.separate_passes;
  if (!out) {
    out = rec.session.empty(layer.name + ".out", type, rows * outputs, TensorRole::activation);
    std::vector<Tensor> reads = {operand,
                                 in_fp8 ? narrow_weight(rec, weight, false) : weight_operand(rec, weight, type)};
    if (rec.setup.autocast && rec.autograd.is_recording()) saved->weight = reads.back();
    const bool adds = layer.bias != nullptr && !adds_after;
    if (adds) reads.push_back(cast(rec, layer.name + ".bias.cast", layer.bias->value, type));
    product(rec, "gemm", {.m = rows, .n = outputs, .k = inputs}, std::move(reads), out,
            adds ? layer.bias->value.bytes() : Bytes(0));
    if (keeps) rec.keep_result(out);
  }
  if (adds_after) {
    const Tensor unbiased = std::exchange(out, make(rec, layer.name + ".biased", rows * outputs));
    rec.session.kernel({.name = "add_bias", .reads = {unbiased, layer.bias->value}, .writes = {out}});
  }
  const bool trains = weight.trains || (layer.bias != nullptr && layer.bias->trains);
  return rec.autograd.record(std::move(out), {x}, trains, [&rec, layer, saved](const Tensor& gradient) {
    std::vector<Tensor> gradients(1);
    linear_backward(rec, layer, saved, gradient, saved->wants_gradient ? &gradients[0] : nullptr);
    return gradients;
  });
}

Tensor linear_of(EagerRecorder& rec, const Linear& layer, const Tensor& x, const Tensor& operand,
                 const std::shared_ptr<SavedInput>& saved) {
  Tensor out = frozen_linear_of(rec, layer, x, operand, saved);
  return adapted(rec, layer.name, x, std::move(out), *layer.weight, saved);
}

// A packed product in 16 bits between tensors in fp32; its adapters read x as it is.
Tensor narrowed_linear(EagerRecorder& rec, const Linear& layer, const Tensor& x) {
  const auto saved_input = [&](const Tensor& kept, std::size_t users) {
    return std::make_shared<SavedInput>(SavedInput{
        .kept = kept, .width = layer.weight->shape.columns, .users = users, .wants_gradient = x.node() != 0});
  };
  const Tensor in = recorded_cast(rec, layer.name + ".in", x, rec.options.type);
  Tensor out = frozen_linear_of(rec, layer, in, in, saved_input(rec.setup.keeps_packed_inputs ? in : Tensor(), 0));
  out = recorded_cast(rec, layer.name + ".out.wide", out, x.type());
  const std::size_t readers = readers_of(rec, *layer.weight);
  return adapted(rec, layer.name, x, std::move(out), *layer.weight, saved_input(readers > 0 ? x : Tensor(), readers));
}

Picos product_time(const EagerRecorder& rec, const GemmShape& shape) {
  return rec.session.cost()
      .duration({.kind = KernelClass::gemm, .type = rec.options.product, .gemm = shape, .is_cast_before = true})
      .time;
}

Tensor in_order(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role, bool in_pieces) {
  if (!rec.setup.traits().dtensor || rec.setup.micro_batch == 1 || in_pieces) return x;
  Tensor copy = rec.session.empty(name + ".ordered", x.type(), x.elements(), role);
  rec.session.kernel({.name = "cat", .reads = {x}, .writes = {copy}});
  return copy;
}

// Parts of the sequence to the whole of it and back. torch.distributed gathers and scatters along the first side:
// of several sequences a copy puts the parts in order, unless a product takes them piece by piece
// (_functional_collectives.py).
Tensor gather_sequence(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role,
                       const Sides& beside) {
  const bool in_pieces = cut_up_gather(rec, beside);
  return in_order(rec, name, rec.communication->all_gather(CommGroup::tensor, name, x, role), role, in_pieces);
}

// The whole input of a layer split by outputs, for one product.
Tensor gather_input(EagerRecorder& rec, const std::string& name, const Tensor& part) {
  const Tensor& buffer = rec.gather_buffer;
  const bool fits = buffer && buffer.elements() == part.elements() * rec.tensor_ranks() && buffer.type() == part.type();
  if (!fits) return rec.communication->all_gather(CommGroup::tensor, name, part, TensorRole::temporary);
  rec.communication->gather_into(CommGroup::tensor, "all_gather", {part}, {buffer}, buffer.bytes());
  return buffer;
}

Tensor scatter_sequence(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role,
                        const Sides& beside) {
  const bool in_pieces = cut_up_scatter(rec, beside);
  return rec.communication->reduce_scatter(CommGroup::tensor, name,
                                           in_order(rec, name, x, TensorRole::temporary, in_pieces), role);
}

// Of the backward's product.
Sides turned(Sides sides) {
  std::swap(sides.inputs, sides.outputs);
  return sides;
}

}  // namespace

void product(EagerRecorder& rec, std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads,
             Tensor write, Bytes bias) {
  Bytes bytes = bias;
  const DataType of_data = reads[0].type();
  const bool apart = is_narrow(of_data) || (of_data == DataType::fp32 && rec.options.type != DataType::fp32);
  const DataType type = apart ? of_data : rec.options.product;
  const bool accumulates =
      write.type() == DataType::fp32 &&
      std::any_of(reads.begin(), reads.end(), [&](const Tensor& read) { return read.id() == write.id(); });
  bytes += Bytes(bytes_of(reads[0].type(), shape.m * shape.k) + bytes_of(reads[1].type(), shape.k * shape.n) +
                 bytes_of(write.type(), shape.m * shape.n));
  GemmShape sides = shape;
  if (rec.setup.compile)
    for (std::int64_t* const side : {&sides.m, &sides.n, &sides.k})
      *side = (*side + padded_side - 1) / padded_side * padded_side;
  rec.session.kernel(
      {.name = kernel,
       .reads = std::move(reads),
       .writes = {std::move(write)},
       .cost = {.kind = KernelClass::gemm,
                .type = type,
                .gemm = sides,
                .flops = Flops(2 * shape.m * shape.n * shape.k),
                .is_cast_before = true,
                .scaling = scaling(rec),
                .accumulates = accumulates},
       .bytes = bytes,
       .host = {.views = rec.session.phase() == Phase::backward ? product_views_backward : product_views}});
}

void part_product(EagerRecorder& rec, std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads,
                  Tensor write) {
  const DataType type = reads[0].type();
  const std::int64_t each = size_of(type);
  rec.session.kernel({.name = kernel,
                      .reads = std::move(reads),
                      .writes = {std::move(write)},
                      .cost = {.kind = KernelClass::gemm,
                               .type = type == rec.options.type ? rec.options.product : type,
                               .gemm = shape,
                               .flops = Flops(2 * shape.m * shape.n * shape.k)},
                      .bytes = Bytes((shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * each)});
}

Tensor linear(EagerRecorder& rec, const Linear& layer, const Tensor& x) {
  if (rec.setup.autocast && x.type() != rec.options.type)
    return linear(rec, layer, recorded_cast(rec, layer.name + ".in", x, rec.options.type));
  const bool is_packed = layer.weight->storage != BaseWeights::same;
  if (rec.setup.fp32_unpacked && is_packed && x.type() != rec.options.type) return narrowed_linear(rec, layer, x);
  const auto saved = std::make_shared<SavedInput>(SavedInput{.kept = x,
                                                             .width = layer.weight->shape.columns,
                                                             .users = readers_of(rec, *layer.weight),
                                                             .wants_gradient = x.node() != 0});
  const bool stays = rec.setup.keeps_packed_inputs && is_packed && saved->wants_gradient;
  if (saved->users == 0 && !stays) saved->kept = {};
  Tensor operand = x;
  if (layer.weight->in_fp8 && keeps_wide(rec, layer)) {
    operand = narrow_rows(rec, layer.name + ".in", x, TensorRole::temporary);
    saved->casts = true;
  } else if (layer.weight->in_fp8) {
    Narrowed both =
        narrow(rec, layer.name + ".in", x, TensorRole::activation, nullptr, x.elements() / layer.weight->shape.columns);
    operand = std::move(both.rows);
    saved->kept = std::move(both.columns);
  }
  return linear_of(rec, layer, x, operand, saved);
}

// The input as weight gradients read it.
Tensor saved_for_weights(EagerRecorder& rec, const std::string& name, SavedInput& saved) {
  if (!saved.parts && !saved.casts && !saved.turns) return saved.kept;
  if (saved.whole) return saved.whole;
  const bool casts_columns = saved.casts && (!saved.parts || rec.setup.fp8_recipe == Fp8Recipe::rowwise);
  Tensor rows = saved.kept;
  if (saved.parts) {
    if (saved.casts && !casts_columns) rows = narrow_rows(rec, name + ".in.part", rows, TensorRole::temporary);
    rows = gather_input(rec, name + ".in.again", rows);
  }
  if (casts_columns)
    rows = narrow_columns(rec, name + ".in.again", rows, saved.width > 0 ? rows.elements() / saved.width : 0);
  else if (is_narrow(rows.type()) && transposes(rec))
    rows = transposed(rec, name + ".in.again", rows);
  return saved.whole = rows;
}

void weight_gradient(EagerRecorder& rec, const Linear& layer, const Tensor& gradient, const Tensor& x) {
  TrainedParameter& weight = *layer.weight;
  const std::int64_t inputs = weight.shape.columns, outputs = weight.shape.rows;
  const bool in_fp8 = is_narrow(x.type());  // its products take both operands with k contiguous
  const GemmShape shape{
      .m = outputs, .n = inputs, .k = x.elements() / inputs, .layout = in_fp8 ? GemmLayout::tn : GemmLayout::nt};
  if (rec.options.fused_accumulation) {
    product(rec, "gemm_wgrad_accumulate", shape, {gradient, x, weight.gradient}, weight.gradient,
            weight.gradient.bytes());
    rec.autograd.accumulate(weight, {});
    return;
  }
  const DataType type = is_narrow(gradient.type()) ? rec.options.type : gradient.type();
  Tensor result = rec.session.empty(weight.shape.name + ".grad", type, weight.shape.elements(), TensorRole::gradient);
  product(rec, "gemm_wgrad", shape, {gradient, x}, result, {});
  accumulate(rec, weight, std::move(result));
}

void use_dummy(EagerRecorder& rec, const TrainedParameter& weight) {
  if (rec.workspaces != nullptr && rec.options.fused_accumulation) rec.workspaces->use_dummy(weight);
}

void sum_bias_gradient(EagerRecorder& rec, TrainedParameter& bias, const Tensor& gradient) {
  if (!bias.trains) return;
  rec.autograd.weight_work([&rec, &bias, gradient] {
    Tensor sum = gradient_of(rec, bias);
    rec.session.kernel(
        {.name = "bias_gradient", .reads = {gradient}, .writes = {sum}, .cost = {.access = MemoryAccess::column_sum}});
    rec.autograd.accumulate(bias, std::move(sum));
  });
}

bool cut_up_gather(EagerRecorder& rec, const Sides& product) {
  if (!rec.options.overlap_tensor || rec.tensor_ranks() == 1 || product.rows < rec.tensor_ranks()) return false;
  if (rec.setup.traits().dtensor && product.in_fp8 && rec.setup.fp8_recipe == Fp8Recipe::rowwise) return false;
  const std::int64_t pieces = rec.tensor_ranks();
  const Picos whole = product_time(rec, {.m = product.rows, .n = product.outputs, .k = product.inputs});
  const Picos piece = product_time(rec, {.m = product.rows / pieces, .n = product.outputs, .k = product.inputs});
  rec.communication->expose_next([pieces, whole, piece](Picos gather) {
    const Picos late = std::max(Picos{}, gather / (pieces - 1) - piece) * (pieces - 1);
    return std::min(gather, std::max(Picos{}, piece * pieces - whole) + late);
  });
  return true;
}

bool cut_up_scatter(EagerRecorder& rec, const Sides& product) {
  if (!rec.options.overlap_tensor || rec.tensor_ranks() == 1 || product.rows == 0) return false;
  if (rec.setup.traits().dtensor && product.products > 1) return false;
  constexpr std::int64_t pieces = 4;
  const Picos piece = product_time(rec, {.m = product.rows, .n = product.outputs, .k = product.inputs}) / pieces;
  rec.communication->expose_next(
      [piece](Picos scatter) { return scatter / pieces + std::max(Picos{}, scatter / pieces - piece) * (pieces - 1); });
  return true;
}

std::vector<Tensor> column_linears(EagerRecorder& rec, const std::vector<Linear>& layers, const Tensor& x) {
  std::vector<Tensor> results;
  const bool in_fp8 = is_fp8(layers), parts = rec.tensor_ranks() > 1 && rec.setup.sequence_parallel;
  if (rec.tensor_ranks() == 1 && !in_fp8) {
    for (const Linear& layer : layers) results.push_back(linear(rec, layer, x));
    return results;
  }
  const std::string& name = layers.front().name;
  const bool casts = in_fp8 && keeps_wide(rec, layers.front()), casts_late = rec.setup.fp8_recipe == Fp8Recipe::rowwise;
  const auto saved = std::make_shared<SavedInput>(
      SavedInput{.kept = x, .parts = parts, .casts = casts, .width = layers.front().weight->shape.columns, .users = 0});
  for (const Linear& layer : layers) saved->users += readers_of(rec, *layer.weight);
  Sides sides{.inputs = layers.front().weight->shape.columns,
              .products = static_cast<std::int64_t>(layers.size()),
              .in_fp8 = in_fp8};
  sides.rows = x.elements() / sides.inputs * (parts ? rec.tensor_ranks() : 1);
  for (const Linear& layer : layers) sides.outputs += layer.weight->shape.rows;
  Tensor sent = x;
  if (parts && in_fp8 && !casts_late)
    sent = narrow_rows(rec, name + ".in", x, casts ? TensorRole::temporary : TensorRole::activation);
  if (!casts) saved->kept = sent;
  const bool keeps = parts && rec.setup.traits().keeps_gathered;
  const Tensor entered =
      enter_tensor_region(rec, name, sent, keeps ? TensorRole::activation : TensorRole::temporary, sides);
  sent = {};
  if (keeps) {
    saved->kept = entered;
    saved->parts = false;
    saved->turns = is_narrow(entered.type());
  }
  saved->wants_gradient = entered.node() != 0;
  Tensor operand = entered;
  if (casts && (!parts || casts_late)) {
    operand = narrow_rows(rec, name + ".in", entered, TensorRole::temporary);
  } else if (in_fp8 && !parts) {
    Narrowed both = narrow(rec, name + ".in", x, TensorRole::activation, nullptr);
    operand = std::move(both.rows);
    saved->kept = std::move(both.columns);
  }
  if (saved->users == 0) saved->kept = {};
  for (const Linear& layer : layers) results.push_back(linear_of(rec, layer, entered, operand, saved));
  return results;
}

Tensor enter_tensor_region(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role,
                           const Sides& beside) {
  if (rec.tensor_ranks() == 1) return x;
  const bool parts = rec.setup.sequence_parallel;
  Tensor entered = !parts ? x
                   : role == TensorRole::temporary && rec.gather_buffer
                       ? gather_input(rec, name + ".in.whole", x)
                       : gather_sequence(rec, name + ".in.whole", x, role, beside);
  return rec.autograd.record(std::move(entered), {x}, false, [&rec, name, parts, beside](const Tensor& gradient) {
    if (parts)
      return std::vector<Tensor>{
          scatter_sequence(rec, name + ".in.grad.part", gradient, TensorRole::temporary, turned(beside))};
    rec.communication->all_reduce(CommGroup::tensor, "all_reduce", {gradient});
    return std::vector<Tensor>{gradient};
  });
}

Tensor row_linear(EagerRecorder& rec, const Linear& layer, const Tensor& x) {
  if (rec.tensor_ranks() == 1) return linear(rec, layer, x);
  Linear product = layer;
  product.bias = nullptr;
  Tensor out = linear(rec, product, x);
  const std::int64_t inputs = layer.weight->shape.columns, outputs = layer.weight->shape.rows;
  out = leave_tensor_region(rec, layer.name, out, rec.setup.sequence_parallel,
                            {.rows = x.elements() / inputs,
                             .inputs = inputs,
                             .outputs = outputs,
                             .in_fp8 = layer.weight->in_fp8 && layer.weight->trains});
  if (layer.bias == nullptr) return out;
  rec.session.kernel({.name = "add_bias_", .reads = {out, layer.bias->value}, .writes = {out}});
  return rec.autograd.record(out, {out}, layer.bias->trains, [&rec, bias = layer.bias](const Tensor& gradient) {
    sum_bias_gradient(rec, *bias, gradient);
    return std::vector<Tensor>{gradient};
  });
}

// torchao casts a gradient before it is gathered, unless rows have scales of their own.
Tensor leave_tensor_region(EagerRecorder& rec, const std::string& name, const Tensor& x, bool scatter,
                           const Sides& beside) {
  if (rec.tensor_ranks() == 1) return x;
  if (!scatter) {
    rec.communication->all_reduce(CommGroup::tensor, "all_reduce", {x});
    return x;
  }
  Tensor part = rec.kept_result();
  if (!part) {
    part = scatter_sequence(rec, name + ".part", x, TensorRole::activation, beside);
    rec.keep_result(part);
  }
  return rec.autograd.record(std::move(part), {x}, false, [&rec, name, beside](const Tensor& gradient) {
    const bool casts = rec.setup.traits().dtensor && beside.in_fp8 && rec.setup.fp8_recipe != Fp8Recipe::rowwise;
    const Tensor sent = casts ? narrow_rows(rec, name + ".out.grad", gradient, TensorRole::temporary) : gradient;
    return std::vector<Tensor>{
        gather_sequence(rec, name + ".out.grad.whole", sent, TensorRole::temporary, turned(beside))};
  });
}

Tensor gather_columns(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  if (rec.tensor_ranks() == 1) return x;
  Tensor whole = make(rec, name + ".whole", x.elements() * rec.tensor_ranks());
  {
    const Tensor parts = rec.communication->all_gather(CommGroup::tensor, name + ".parts", x, TensorRole::temporary);
    rec.session.kernel({.name = "cat", .reads = {parts}, .writes = {whole}});
  }
  return rec.autograd.record(
      std::move(whole), {x}, false, [&rec, name, elements = x.elements()](const Tensor& gradient) {
        Tensor own = rec.session.empty(name + ".own.grad", gradient.type(), elements, TensorRole::temporary);
        rec.session.kernel({.name = "copy",
                            .reads = {gradient},
                            .writes = {own},
                            .cost = {.access = MemoryAccess::strided},
                            .bytes = own.bytes() + own.bytes()});
        return std::vector<Tensor>{std::move(own)};
      });
}

Tensor split_sequence(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  if (rec.tensor_ranks() == 1) return x;
  Tensor part = make(rec, name + ".part", x.elements() / rec.tensor_ranks());
  rec.session.kernel({.name = "copy", .reads = {x}, .writes = {part}, .bytes = part.bytes() + part.bytes()});
  return rec.autograd.record(std::move(part), {x}, false, [&rec, name](const Tensor& gradient) {
    return std::vector<Tensor>{gather_sequence(rec, name + ".grad.whole", gradient, TensorRole::temporary, {})};
  });
}

}  // namespace spillway::models::eager
