// Model files: any bytes are a model whose parameters can be counted, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/input_error.h"
#include "models/spec/model_spec.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(model) {
  try {
    const spillway::models::ModelSpec spec =
        spillway::models::parse_model(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.json");
    if (spillway::models::parameter_count(spec) <= 0 || spillway::models::matmul_parameter_count(spec) <= 0)
      std::abort();
  } catch (const spillway::InputError&) {
  }
  return 0;
}
