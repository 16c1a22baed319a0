// Linear layers of EagerOps, alone and split over a tensor group.
#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "models/network/eager_ops.h"

namespace spillway::models {
namespace {

// Calls of torch.nn.functional.linear that launch nothing, counted in a layer of transformers' Llama (PyTorch's
// dispatch mode): the weight's transpose, its input as a matrix and back; backwards for each of its two products.
constexpr double product_views = 3, product_views_backward = 4;
constexpr std::int64_t padded_side = 8;  // elements

}  // namespace

void EagerOps::product(std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write,
                       Bytes bias) {
  Bytes bytes = bias;
  const DataType of_data = reads[0].type();
  const bool apart = is_narrow(of_data) || (of_data == DataType::fp32 && type_ != DataType::fp32);
  const DataType type = apart ? of_data : options_.product;
  const bool accumulates =
      write.type() == DataType::fp32 &&
      std::any_of(reads.begin(), reads.end(), [&](const Tensor& read) { return read.id() == write.id(); });
  bytes += Bytes(bytes_of(reads[0].type(), shape.m * shape.k) + bytes_of(reads[1].type(), shape.k * shape.n) +
                 bytes_of(write.type(), shape.m * shape.n));
  GemmShape sides = shape;
  if (options_.pads_products)
    for (std::int64_t* const side : {&sides.m, &sides.n, &sides.k})
      *side = (*side + padded_side - 1) / padded_side * padded_side;
  session_.kernel({.name = kernel,
                   .reads = std::move(reads),
                   .writes = {std::move(write)},
                   .cost = {.kind = KernelClass::gemm,
                            .type = type,
                            .gemm = sides,
                            .flops = Flops(2 * shape.m * shape.n * shape.k),
                            .is_cast_before = true,
                            .scaling = scaling(),
                            .accumulates = accumulates},
                   .bytes = bytes,
                   .host = {.views = session_.phase() == Phase::backward ? product_views_backward : product_views}});
}

void EagerOps::part_product(std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write) {
  const DataType type = reads[0].type();
  const std::int64_t each = size_of(type);
  session_.kernel({.name = kernel,
                   .reads = std::move(reads),
                   .writes = {std::move(write)},
                   .cost = {.kind = KernelClass::gemm,
                            .type = type == type_ ? options_.product : type,
                            .gemm = shape,
                            .flops = Flops(2 * shape.m * shape.n * shape.k)},
                   .bytes = Bytes((shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * each)});
}

bool EagerOps::is_fp8(const std::vector<Linear>& layers) {
  return std::all_of(layers.begin(), layers.end(), [](const Linear& layer) { return layer.weight->in_fp8; });
}

Tensor EagerOps::linear(const Linear& layer, const Tensor& x) {
  if (options_.autocast && x.type() != type_) return linear(layer, recorded_cast(layer.name + ".in", x, type_));
  const auto saved = std::make_shared<SavedInput>(SavedInput{.kept = x,
                                                             .width = layer.weight->shape.columns,
                                                             .users = readers_of(*layer.weight),
                                                             .wants_gradient = x.node() != 0});
  const bool is_packed = layer.weight->storage != BaseWeights::same;
  const bool stays = options_.keeps_packed_inputs && is_packed && saved->wants_gradient;
  if (saved->users == 0 && !stays) saved->kept = {};
  Tensor operand = x;
  if (layer.weight->in_fp8 && keeps_wide(layer)) {
    operand = narrow_rows(layer.name + ".in", x, TensorRole::temporary);
    saved->casts = true;
  } else if (layer.weight->in_fp8) {
    Narrowed both =
        narrow(layer.name + ".in", x, TensorRole::activation, nullptr, x.elements() / layer.weight->shape.columns);
    operand = std::move(both.rows);
    saved->kept = std::move(both.columns);
  }
  return linear(layer, x, operand, saved);
}

std::size_t EagerOps::readers_of(const TrainedParameter& weight) const {
  return (weight.trains ? 1U : 0U) + (weight.adapter_a != nullptr && adapter_reads_input(weight) ? 1U : 0U);
}

// Plus its adapters' result, if it has any. `saved`: of the layer.
Tensor EagerOps::adapted(const std::string& name, const Tensor& x, Tensor out, const TrainedParameter& weight,
                         const std::shared_ptr<SavedInput>& saved) {
  if (weight.adapter_a == nullptr) return out;
  const Tensor low = adapter_reads_input(weight)
                         ? linear({name + ".lora_a", weight.adapter_a, nullptr}, x, x, saved)
                         : linear({name + ".lora_a", weight.adapter_a}, adapter_input(name, x, weight));
  return add_adapter(name, out, linear({name + ".lora_b", weight.adapter_b}, low));
}

Tensor EagerOps::linear(const Linear& layer, const Tensor& x, const Tensor& operand,
                        std::shared_ptr<SavedInput> saved) {
  TrainedParameter& weight = *layer.weight;
  const std::int64_t inputs = weight.shape.columns, outputs = weight.shape.rows;
  const std::int64_t rows = x.elements() / inputs;
  const bool in_fp8 = is_narrow(operand.type());
  const DataType type = in_fp8 ? type_ : x.type();
  if (workspaces_ != nullptr) workspaces_->use_product();
  const bool keeps = kept_ != nullptr && kept_->is_kept_product();
  Tensor out = keeps ? kept_result() : Tensor();
  const bool adds_after = layer.bias != nullptr && options_.separate_passes;
  if (!out) {
    out = session_.empty(layer.name + ".out", type, rows * outputs, TensorRole::activation);
    std::vector<Tensor> reads = {operand, in_fp8 ? narrow_weight(weight, false) : weight_operand(weight, type)};
    if (options_.autocast && autograd_.is_recording()) saved->weight = reads.back();
    const bool adds = layer.bias != nullptr && !adds_after;
    if (adds) reads.push_back(cast(layer.name + ".bias.cast", layer.bias->value, type));
    product("gemm", {.m = rows, .n = outputs, .k = inputs}, std::move(reads), out,
            adds ? layer.bias->value.bytes() : Bytes(0));
    if (keeps) keep_result(out);
  }
  if (adds_after) {
    const Tensor unbiased = std::exchange(out, make(layer.name + ".biased", rows * outputs));
    session_.kernel({.name = "add_bias", .reads = {unbiased, layer.bias->value}, .writes = {out}});
  }
  const bool trains = weight.trains || (layer.bias != nullptr && layer.bias->trains);
  out = autograd_.record(std::move(out), {x}, trains, [this, layer, saved](const Tensor& gradient) {
    std::vector<Tensor> gradients(1);
    linear_backward(layer, saved, gradient, saved->wants_gradient ? &gradients[0] : nullptr);
    return gradients;
  });
  return adapted(layer.name, x, std::move(out), weight, saved);
}

// The input as weight gradients read it.
Tensor EagerOps::saved_for_weights(const std::string& name, SavedInput& saved) {
  if (!saved.parts && !saved.casts && !saved.turns) return saved.kept;
  if (saved.whole) return saved.whole;
  const bool casts_columns = saved.casts && (!saved.parts || options_.recipe == Fp8Recipe::rowwise);
  Tensor rows = saved.kept;
  if (saved.parts) {
    if (saved.casts && !casts_columns) rows = narrow_rows(name + ".in.part", rows, TensorRole::temporary);
    rows = gather_input(name + ".in.again", rows);
  }
  if (casts_columns)
    rows = narrow_columns(name + ".in.again", rows, saved.width > 0 ? rows.elements() / saved.width : 0);
  else if (is_narrow(rows.type()) && transposes())
    rows = transposed(name + ".in.again", rows);
  return saved.whole = rows;
}

// Sequence parallel, the input is gathered for the weight gradient while the product before it runs, or when that is
// put off, then.
void EagerOps::linear_backward(const Linear& layer, const std::shared_ptr<SavedInput>& saved, const Tensor& gradient,
                               Tensor* x_gradient) {
  TrainedParameter& weight = *layer.weight;
  const std::int64_t inputs = weight.shape.columns, outputs = weight.shape.rows;
  const std::int64_t rows = gradient.elements() / outputs;
  if (!autograd_.is_deferring() && weight.trains && saved->parts)
    static_cast<void>(saved_for_weights(layer.name, *saved));
  const bool in_fp8 = weight.trains && (saved->casts || is_narrow(saved->kept.type()));
  Narrowed both{.rows = gradient, .columns = gradient};
  const bool is_cast = is_narrow(gradient.type());  // before it was gathered
  if (is_cast && transposes())
    both.columns = transposed(layer.name + ".out.grad", gradient);
  else if (in_fp8 && !is_cast)
    both = narrow(layer.name + ".out.grad", gradient, TensorRole::temporary, layer.bias, rows);
  if (x_gradient != nullptr) {
    const DataType type = is_cast ? type_ : gradient.type();
    *x_gradient = session_.empty(layer.name + ".in.grad", type, rows * inputs, TensorRole::temporary);
    product("gemm_dgrad", {.m = rows, .n = inputs, .k = outputs, .layout = in_fp8 ? GemmLayout::tn : GemmLayout::nn},
            {both.rows, in_fp8          ? narrow_weight(weight, true)
                        : saved->weight ? saved->weight
                                        : weight_operand(weight, type)},
            *x_gradient, {});
  }
  if (layer.bias != nullptr && !in_fp8) sum_bias_gradient(*layer.bias, gradient);
  if (!weight.trains) return;
  autograd_.weight_work([this, layer, saved, columns = std::move(both.columns)] {
    weight_gradient(layer, columns, saved_for_weights(layer.name, *saved));
    use_dummy(*layer.weight);
    if (--saved->users == 0) saved->kept = saved->whole = {};
  });
}

void EagerOps::weight_gradient(const Linear& layer, const Tensor& gradient, const Tensor& x) {
  TrainedParameter& weight = *layer.weight;
  const std::int64_t inputs = weight.shape.columns, outputs = weight.shape.rows;
  const bool in_fp8 = is_narrow(x.type());  // its products take both operands with k contiguous
  const GemmShape shape{
      .m = outputs, .n = inputs, .k = x.elements() / inputs, .layout = in_fp8 ? GemmLayout::tn : GemmLayout::nt};
  if (options_.fused_accumulation) {
    product("gemm_wgrad_accumulate", shape, {gradient, x, weight.gradient}, weight.gradient, weight.gradient.bytes());
    autograd_.accumulate(weight, {});
    return;
  }
  const DataType type = is_narrow(gradient.type()) ? type_ : gradient.type();
  Tensor result = session_.empty(weight.shape.name + ".grad", type, weight.shape.elements(), TensorRole::gradient);
  product("gemm_wgrad", shape, {gradient, x}, result, {});
  accumulate(weight, std::move(result));
}

void EagerOps::use_dummy(const TrainedParameter& weight) {
  if (workspaces_ != nullptr && options_.fused_accumulation) workspaces_->use_dummy(weight);
}

void EagerOps::sum_bias_gradient(TrainedParameter& bias, const Tensor& gradient) {
  if (!bias.trains) return;
  autograd_.weight_work([this, &bias, gradient] {
    Tensor sum = gradient_of(bias);
    session_.kernel(
        {.name = "bias_gradient", .reads = {gradient}, .writes = {sum}, .cost = {.access = MemoryAccess::column_sum}});
    autograd_.accumulate(bias, std::move(sum));
  });
}

Picos EagerOps::product_time(const GemmShape& shape) const {
  return session_.cost()
      .duration({.kind = KernelClass::gemm, .type = options_.product, .gemm = shape, .is_cast_before = true})
      .time;
}

bool EagerOps::cut_up_gather(const Sides& product) {
  if (!options_.overlap_tensor || tensor_ranks() == 1 || product.rows < tensor_ranks()) return false;
  if (options_.dtensor && product.in_fp8 && options_.recipe == Fp8Recipe::rowwise) return false;
  const std::int64_t pieces = tensor_ranks();
  const Picos whole = product_time({.m = product.rows, .n = product.outputs, .k = product.inputs});
  const Picos piece = product_time({.m = product.rows / pieces, .n = product.outputs, .k = product.inputs});
  communication_->expose_next([pieces, whole, piece](Picos gather) {
    const Picos late = std::max(Picos{}, gather / (pieces - 1) - piece) * (pieces - 1);
    return std::min(gather, std::max(Picos{}, piece * pieces - whole) + late);
  });
  return true;
}

bool EagerOps::cut_up_scatter(const Sides& product) {
  if (!options_.overlap_tensor || tensor_ranks() == 1 || product.rows == 0) return false;
  if (options_.dtensor && product.products > 1) return false;
  constexpr std::int64_t pieces = 4;
  const Picos piece = product_time({.m = product.rows, .n = product.outputs, .k = product.inputs}) / pieces;
  communication_->expose_next(
      [piece](Picos scatter) { return scatter / pieces + std::max(Picos{}, scatter / pieces - piece) * (pieces - 1); });
  return true;
}

Tensor EagerOps::in_order(const std::string& name, const Tensor& x, TensorRole role, bool in_pieces) {
  if (!options_.dtensor || options_.sequences == 1 || in_pieces) return x;
  Tensor copy = session_.empty(name + ".ordered", x.type(), x.elements(), role);
  session_.kernel({.name = "cat", .reads = {x}, .writes = {copy}});
  return copy;
}

Tensor EagerOps::gather_sequence(const std::string& name, const Tensor& x, TensorRole role, const Sides& beside) {
  const bool in_pieces = cut_up_gather(beside);
  return in_order(name, communication_->all_gather(CommGroup::tensor, name, x, role), role, in_pieces);
}

Tensor EagerOps::gather_input(const std::string& name, const Tensor& part) {
  const bool fits = gather_buffer_ && gather_buffer_.elements() == part.elements() * tensor_ranks() &&
                    gather_buffer_.type() == part.type();
  if (!fits) return communication_->all_gather(CommGroup::tensor, name, part, TensorRole::temporary);
  communication_->gather_into(CommGroup::tensor, "all_gather", {part}, {gather_buffer_}, gather_buffer_.bytes());
  return gather_buffer_;
}

Tensor EagerOps::scatter_sequence(const std::string& name, const Tensor& x, TensorRole role, const Sides& beside) {
  const bool in_pieces = cut_up_scatter(beside);
  return communication_->reduce_scatter(CommGroup::tensor, name, in_order(name, x, TensorRole::temporary, in_pieces),
                                        role);
}

std::vector<Tensor> EagerOps::column_linears(const std::vector<Linear>& layers, const Tensor& x) {
  std::vector<Tensor> results;
  const bool in_fp8 = is_fp8(layers), parts = tensor_ranks() > 1 && options_.sequence_parallel;
  if (tensor_ranks() == 1 && !in_fp8) {
    for (const Linear& layer : layers) results.push_back(linear(layer, x));
    return results;
  }
  const std::string& name = layers.front().name;
  const bool casts = in_fp8 && keeps_wide(layers.front()), casts_late = options_.recipe == Fp8Recipe::rowwise;
  const auto saved = std::make_shared<SavedInput>(
      SavedInput{.kept = x, .parts = parts, .casts = casts, .width = layers.front().weight->shape.columns, .users = 0});
  for (const Linear& layer : layers) saved->users += readers_of(*layer.weight);
  Sides sides{.inputs = layers.front().weight->shape.columns,
              .products = static_cast<std::int64_t>(layers.size()),
              .in_fp8 = in_fp8};
  sides.rows = x.elements() / sides.inputs * (parts ? tensor_ranks() : 1);
  for (const Linear& layer : layers) sides.outputs += layer.weight->shape.rows;
  Tensor sent = x;
  if (parts && in_fp8 && !casts_late)
    sent = narrow_rows(name + ".in", x, casts ? TensorRole::temporary : TensorRole::activation);
  if (!casts) saved->kept = sent;
  const bool keeps = parts && options_.keeps_gathered;
  const Tensor entered = enter_tensor_region(name, sent, keeps ? TensorRole::activation : TensorRole::temporary, sides);
  sent = {};
  if (keeps) {
    saved->kept = entered;
    saved->parts = false;
    saved->turns = is_narrow(entered.type());
  }
  saved->wants_gradient = entered.node() != 0;
  Tensor operand = entered;
  if (casts && (!parts || casts_late)) {
    operand = narrow_rows(name + ".in", entered, TensorRole::temporary);
  } else if (in_fp8 && !parts) {
    Narrowed both = narrow(name + ".in", x, TensorRole::activation, nullptr);
    operand = std::move(both.rows);
    saved->kept = std::move(both.columns);
  }
  if (saved->users == 0) saved->kept = {};
  for (const Linear& layer : layers) results.push_back(linear(layer, entered, operand, saved));
  return results;
}

Tensor EagerOps::enter_tensor_region(const std::string& name, const Tensor& x, TensorRole role, const Sides& beside) {
  if (tensor_ranks() == 1) return x;
  const bool parts = options_.sequence_parallel;
  Tensor entered = !parts ? x
                   : role == TensorRole::temporary && gather_buffer_
                       ? gather_input(name + ".in.whole", x)
                       : gather_sequence(name + ".in.whole", x, role, beside);
  return autograd_.record(std::move(entered), {x}, false, [this, name, parts, beside](const Tensor& gradient) {
    if (parts)
      return std::vector<Tensor>{
          scatter_sequence(name + ".in.grad.part", gradient, TensorRole::temporary, turned(beside))};
    communication_->all_reduce(CommGroup::tensor, "all_reduce", {gradient});
    return std::vector<Tensor>{gradient};
  });
}

EagerOps::Sides EagerOps::turned(Sides sides) {
  std::swap(sides.inputs, sides.outputs);
  return sides;
}

Tensor EagerOps::row_linear(const Linear& layer, const Tensor& x) {
  if (tensor_ranks() == 1) return linear(layer, x);
  Linear product = layer;
  product.bias = nullptr;
  Tensor out = linear(product, x);
  const std::int64_t inputs = layer.weight->shape.columns, outputs = layer.weight->shape.rows;
  out = leave_tensor_region(layer.name, out, options_.sequence_parallel,
                            {.rows = x.elements() / inputs,
                             .inputs = inputs,
                             .outputs = outputs,
                             .in_fp8 = layer.weight->in_fp8 && layer.weight->trains});
  if (layer.bias == nullptr) return out;
  session_.kernel({.name = "add_bias_", .reads = {out, layer.bias->value}, .writes = {out}});
  return autograd_.record(out, {out}, layer.bias->trains, [this, bias = layer.bias](const Tensor& gradient) {
    sum_bias_gradient(*bias, gradient);
    return std::vector<Tensor>{gradient};
  });
}

// torchao casts a gradient before it is gathered, unless rows have scales of their own.
Tensor EagerOps::leave_tensor_region(const std::string& name, const Tensor& x, bool scatter, const Sides& beside) {
  if (tensor_ranks() == 1) return x;
  if (!scatter) {
    communication_->all_reduce(CommGroup::tensor, "all_reduce", {x});
    return x;
  }
  Tensor part = kept_result();
  if (!part) {
    part = scatter_sequence(name + ".part", x, TensorRole::activation, beside);
    keep_result(part);
  }
  return autograd_.record(std::move(part), {x}, false, [this, name, beside](const Tensor& gradient) {
    const bool casts = options_.dtensor && beside.in_fp8 && options_.recipe != Fp8Recipe::rowwise;
    const Tensor sent = casts ? narrow_rows(name + ".out.grad", gradient, TensorRole::temporary) : gradient;
    return std::vector<Tensor>{gather_sequence(name + ".out.grad.whole", sent, TensorRole::temporary, turned(beside))};
  });
}

Tensor EagerOps::gather_columns(const std::string& name, const Tensor& x) {
  if (tensor_ranks() == 1) return x;
  Tensor whole = make(name + ".whole", x.elements() * tensor_ranks());
  {
    const Tensor parts = communication_->all_gather(CommGroup::tensor, name + ".parts", x, TensorRole::temporary);
    session_.kernel({.name = "cat", .reads = {parts}, .writes = {whole}});
  }
  return autograd_.record(std::move(whole), {x}, false, [this, name, elements = x.elements()](const Tensor& gradient) {
    Tensor own = session_.empty(name + ".own.grad", gradient.type(), elements, TensorRole::temporary);
    session_.kernel({.name = "copy",
                     .reads = {gradient},
                     .writes = {own},
                     .cost = {.access = MemoryAccess::strided},
                     .bytes = own.bytes() + own.bytes()});
    return std::vector<Tensor>{std::move(own)};
  });
}

Tensor EagerOps::split_sequence(const std::string& name, const Tensor& x) {
  if (tensor_ranks() == 1) return x;
  Tensor part = make(name + ".part", x.elements() / tensor_ranks());
  session_.kernel({.name = "copy", .reads = {x}, .writes = {part}, .bytes = part.bytes() + part.bytes()});
  return autograd_.record(std::move(part), {x}, false, [this, name](const Tensor& gradient) {
    return std::vector<Tensor>{gather_sequence(name + ".grad.whole", gradient, TensorRole::temporary, {})};
  });
}

}  // namespace spillway::models
