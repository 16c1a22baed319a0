#include "traces/compiled_kernel.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace spillway::traces {
namespace {

// Longer before those they begin with.
constexpr std::array<std::string_view, 34> long_names = {"_to_copy",
                                                         "_log_softmax_backward_data",
                                                         "_log_softmax",
                                                         "_softmax_backward_data",
                                                         "_softmax",
                                                         "_unsafe_view",
                                                         "_unsafe_index_put",
                                                         "_unsafe_index",
                                                         "_scaled_dot_product_flash_attention",
                                                         "_scaled_dot_product_efficient_attention",
                                                         "_foreach_add",
                                                         "native_layer_norm_backward",
                                                         "native_layer_norm",
                                                         "native_group_norm",
                                                         "native_batch_norm_backward",
                                                         "_native_batch_norm_legit_functional",
                                                         "native_dropout_backward",
                                                         "native_dropout",
                                                         "native_batch_norm",
                                                         "embedding_dense_backward",
                                                         "nll_loss_backward",
                                                         "nll_loss_forward",
                                                         "threshold_backward",
                                                         "convolution_backward",
                                                         "gelu_backward",
                                                         "silu_backward",
                                                         "max_pool2d_with_indices",
                                                         "constant_pad_nd",
                                                         "scatter_add",
                                                         "index_select",
                                                         "masked_fill",
                                                         "index_put",
                                                         "zeros_like",
                                                         "new_zeros"};

std::string_view next_operator(std::string_view text) {
  for (const std::string_view name : long_names)
    if (text.starts_with(name) && (text.size() == name.size() || text[name.size()] == '_')) return name;
  return text.substr(0, text.find('_', 1));
}

}  // namespace

std::string compiled_operators(std::string_view kernel) {
  constexpr std::array<std::string_view, 6> kinds = {"triton_fused_",     "triton_poi_fused_", "triton_red_fused_",
                                                     "triton_per_fused_", "triton_tem_fused_", "triton_for_fused_"};
  const auto* kind = std::find_if(kinds.begin(), kinds.end(), [&](auto k) { return kernel.starts_with(k); });
  if (kind == kinds.end()) return "";
  std::string_view rest = kernel.substr(kind->size());
  // "_5", and behind it sometimes a mangled suffix of digits and letters: "_0d1d2d3de".
  const std::size_t number = rest.find_last_of('_');
  if (number != std::string_view::npos && number + 1 < rest.size() &&
      std::isdigit(static_cast<unsigned char>(rest[number + 1])) != 0)
    rest = rest.substr(0, number);
  std::string text;
  while (!rest.empty()) {
    const std::string_view name = next_operator(rest);
    const bool is_number = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!is_number) text += (text.empty() ? "" : ", ") + std::string(name);
    rest = rest.size() > name.size() ? rest.substr(name.size() + 1) : std::string_view();
  }
  return text;
}

}  // namespace spillway::traces
