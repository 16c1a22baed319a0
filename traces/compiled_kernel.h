// Names of the kernels that torch.compile writes.
#pragma once

#include <string>
#include <string_view>

namespace spillway::traces {

// The operators that a Triton kernel of torch.compile fuses: "add, native_layer_norm" of
// "triton_per_fused_add_native_layer_norm_5"; empty for names of another form. TorchInductor calls its kernels
// triton_{poi,red,per,tem,for}_fused_OPERATORS_NUMBER: pointwise, reduction, persistent reduction, template, foreach;
// once triton_fused_OPERATORS_NUMBER.
// Operators' own underscores can't be told from those between them, so known operators of several words are put
// together and the rest is taken word by word.
std::string compiled_operators(std::string_view kernel);

}  // namespace spillway::traces
