// Inputs of their own for the layers (Gemma 4 E2B and E4B; transformers, gemma4/modeling_gemma4.py), w wide each, L
// layers:
//
//   once    a token's row of a second table, and a product of its embedding, normed in pieces of w; their sum [t, L w]
//   layer   gelu(x W1) times the layer's w of it, a product back to the model's width, a norm, added to x
//
// Kept with 2-byte activations: once 2 t L w of each of the product and the sum; in a layer 2 t (h + 3 w) and what the
// norm reads and its statistics. A layer's gradient of its part is written into zeros as wide as all parts, and added
// up.
//
// Deviation: with recomputed layers, the gradient of shared keys and values is left out, as a reentrant checkpoint
// loses it; they are narrow.
#include <utility>

#include "models/network/eager_ops.h"
#include "models/network/transformer.h"

namespace spillway::models {

Tensor Transformer::make_layer_inputs(const Tensor& ids, const Tensor& x) {
  const Tensor rows = eager::embedding(rec_, "layer_inputs", ids, weight("layer_inputs"));
  const Tensor projected = norm("layer_inputs.norm", linear("layer_inputs.projection", x));
  return eager::add(rec_, "layer_inputs.sum", projected, rows);
}

Tensor Transformer::with_layer_input(std::int64_t index, const Tensor& x, const Tensor& inputs) {
  const std::string prefix = model_.layer_prefix(index) + "input";
  const Tensor gate = activated(prefix + ".gelu", linear(prefix + ".gate", x), eager::Pointwise::gelu);
  Tensor product = session_.empty(prefix + ".product", gate.type(), gate.elements(), TensorRole::activation);
  const Bytes once = product.bytes();
  session_.kernel({.name = "multiply",
                   .reads = {gate, inputs},
                   .writes = {product},
                   .cost = {.access = MemoryAccess::strided},
                   .bytes = once * 3});
  product = autograd_.record(
      std::move(product), {gate, inputs}, false, [this, prefix, gate, inputs, once](const Tensor& gradient) {
        const auto of = [&](const char* name, const Tensor& like) {
          return session_.empty(prefix + name, like.type(), like.elements(), TensorRole::temporary);
        };
        Tensor gate_back = of(".gate.grad", gate), part = of(".part.grad", gate);
        session_.kernel({.name = "multiply",
                         .reads = {gradient, inputs},
                         .writes = {gate_back},
                         .cost = {.access = MemoryAccess::strided},
                         .bytes = once * 3});
        session_.kernel({.name = "multiply", .reads = {gradient, gate}, .writes = {part}});
        Tensor whole = of(".inputs.grad", inputs);
        session_.kernel({.name = "fill_zero", .writes = {whole}});
        session_.kernel({.name = "copy",
                         .reads = {part},
                         .writes = {whole},
                         .cost = {.access = MemoryAccess::strided},
                         .bytes = once * 2});
        return std::vector<Tensor>{std::move(gate_back), std::move(whole)};
      });
  return eager::add(rec_, prefix + ".residual", x, norm(prefix + ".norm", linear(prefix + ".projection", product)));
}

}  // namespace spillway::models
