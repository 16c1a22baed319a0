// Model files: any bytes are a model whose parameters can be counted, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/spec/model_spec.h"
#include "base/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const spillway::ModelSpec spec =
        spillway::parse_model(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.json");
    if (spillway::parameter_count(spec) <= 0 || spillway::matmul_parameter_count(spec) <= 0) std::abort();
  } catch (const spillway::InputError&) {
  }
  return 0;
}
