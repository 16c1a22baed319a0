#include "traces/dtype.h"

#include <array>
#include <utility>

namespace spillway::traces {

std::int64_t element_bytes(std::string_view dtype) {
  if (dtype.starts_with("c10::")) dtype.remove_prefix(5);
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  if (dtype.starts_with("Float8") || dtype.starts_with("float8")) return 1;
  using Sized = std::pair<std::string_view, std::int64_t>;
  static constexpr std::array<Sized, 37> sizes = {
      {{"fp32", 4},       {"tf32", 4},   {"tfloat32", 4}, {"Float", 4},        {"float", 4},     {"float32", 4},
       {"fp16", 2},       {"Half", 2},   {"half", 2},     {"float16", 2},      {"bf16", 2},      {"BFloat16", 2},
       {"bfloat16", 2},   {"Double", 8}, {"double", 8},   {"float64", 8},      {"Long", 8},      {"long", 8},
       {"long int", 8},   {"int64", 8},  {"Int", 4},      {"int", 4},          {"int32", 4},     {"Short", 2},
       {"short", 2},      {"int16", 2},  {"Char", 1},     {"int8", 1},         {"Byte", 1},      {"uint8", 1},
       {"Bool", 1},       {"bool", 1},   {"fp8", 1},      {"ComplexFloat", 8}, {"complex64", 8}, {"ComplexDouble", 16},
       {"complex128", 16}}};
  for (const auto& [name, bytes] : sizes)
    if (dtype == name) return bytes;
  return 0;
}

}  // namespace spillway::traces
