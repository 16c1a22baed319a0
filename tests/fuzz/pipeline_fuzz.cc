// Pipeline schedules: any bytes become orders without a circle, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "models/pipeline/pipeline_json.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(pipeline) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    static_cast<void>(spillway::models::read_plan_json(text, "fuzz.json"));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
