// Expressions of sweeps: any bytes are a figure of the named numbers, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <vector>

#include "base/input_error.h"
#include "studies/sweep/sweep_expression.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(sweep_expression) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<std::string> names = {"t", "p", "gpus"};
    std::vector<double> values = {1, 2, 8};
    const std::vector<double> before = values;
    spillway::studies::SweepExpression expression(text, names, "fuzz.json", "/where/0");
    static_cast<void>(expression.value(values));
    if (values != before) std::abort();  // it reads and sets nothing
  } catch (const spillway::InputError&) {
  }
  return 0;
}
