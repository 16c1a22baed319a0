#include "traces/operator_kind.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace spillway::traces {
namespace {

constexpr std::array<std::string_view, 30> host_operators = {"aten::empty",
                                                             "aten::empty_strided",
                                                             "aten::empty_like",
                                                             "aten::resize_",
                                                             "aten::result_type",
                                                             "aten::as_strided",
                                                             "aten::_reshape_alias",
                                                             "aten::_unsafe_view",
                                                             "aten::view",
                                                             "aten::reshape",
                                                             "aten::lift_fresh",
                                                             "aten::detach",
                                                             "aten::detach_",
                                                             "detach",
                                                             "detach_",
                                                             "aten::set_",
                                                             "aten::to",
                                                             "aten::is_nonzero",
                                                             "aten::item",
                                                             "aten::stride",
                                                             "aten::size",
                                                             "aten::contiguous",
                                                             "aten::expand_as",
                                                             "aten::view_as",
                                                             "aten::resize_as_",
                                                             "aten::new_empty",
                                                             "aten::requires_grad_",
                                                             "aten::unbind",
                                                             "aten::data",
                                                             "aten::alias"};

// "Tensor(a)" without "!" in the arguments: the result is a view.
bool is_view_schema(std::string_view schema) {
  const auto arrow = schema.find(") ->");
  const std::string_view arguments = schema.substr(0, arrow);
  return arguments.find("Tensor(a)") != std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool is_collective_name(std::string_view name) {
  return name.starts_with("c10d::") || name.starts_with("nccl:") || name == "record_param_comms" ||
         name.starts_with("_c10d_functional::");
}

}  // namespace

OpKind operator_kind(const OperatorShape& shape) {
  const bool on_gpu = shape.input_gpu >= 0 || shape.output_gpu >= 0;
  if (is_collective_name(shape.name)) return on_gpu ? OpKind::collective : OpKind::host_work;
  if (!on_gpu) return OpKind::host_work;
  if (shape.name == "aten::_local_scalar_dense") return OpKind::copy_device_to_host;
  const bool listed = std::find(host_operators.begin(), host_operators.end(), shape.name) != host_operators.end();
  // Operators of the framework have "::" in their names; annotations and autograd nodes only wrap.
  if (listed || shape.name.find("::") == std::string_view::npos || is_view_schema(shape.schema))
    return OpKind::host_work;
  if (shape.name == "aten::copy_" && shape.has_inputs) {
    if (shape.to_host) return OpKind::copy_device_to_host;
    if (shape.input_gpu >= 0 && shape.output_gpu >= 0 && shape.input_gpu != shape.output_gpu) return OpKind::copy_peer;
  }
  if (shape.name == "aten::zero_") return OpKind::memset;
  return OpKind::kernel;
}

Phase phase_of_name(std::string_view name) {
  if (name.starts_with("Optimizer.")) return Phase::optimizer;
  if (name == "## forward ##") return Phase::forward;
  if (name == "## backward ##" || name.starts_with("autograd::engine::evaluate_function")) return Phase::backward;
  if (name == "## optimizer ##") return Phase::optimizer;
  return is_collective_name(name) ? Phase::communication : Phase::unknown;
}

CollectiveKind collective_kind_of_name(std::string_view name) {
  std::string flat = lower(name);
  flat.erase(std::remove(flat.begin(), flat.end(), '_'), flat.end());
  // Longer names first: "allreduce" holds "reduce".
  constexpr std::array<std::pair<std::string_view, CollectiveKind>, 11> names = {{
      {"reducescatter", CollectiveKind::reduce_scatter},
      {"allreduce", CollectiveKind::all_reduce},
      {"allgather", CollectiveKind::all_gather},
      {"alltoall", CollectiveKind::all_to_all},
      {"broadcast", CollectiveKind::broadcast},
      {"barrier", CollectiveKind::barrier},
      {"recv", CollectiveKind::receive},
      {"receive", CollectiveKind::receive},
      {"send", CollectiveKind::send},
      {"reduce", CollectiveKind::reduce},
      {"wait", CollectiveKind::unknown},
  }};
  for (const auto& [part, kind] : names)
    if (flat.find(part) != std::string::npos) return kind;
  return CollectiveKind::unknown;
}

std::int16_t gpu_ordinal(std::string_view device) {
  const auto colon = device.find(':');
  const std::string_view kind = device.substr(0, colon);
  if (kind != "cuda" && kind != "hip" && kind != "xpu") return -1;
  if (colon == std::string_view::npos) return 0;
  const std::string_view digits = device.substr(colon + 1);
  std::int16_t ordinal = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  return error == std::errc() && end == digits.data() + digits.size() && ordinal >= 0 ? ordinal : std::int16_t{0};
}

}  // namespace spillway::traces
