// Cases of validation: any bytes become cases, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "tests/fuzz/fuzz_target.h"
#include "validation/published/case_file.h"

SPILLWAY_FUZZ_TARGET(cases) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    static_cast<void>(spillway::validation::parse_cases(text, "fuzz.json"));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
