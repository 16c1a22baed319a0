// Pipeline schedules: any bytes become orders without a circle, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "models/pipeline/pipeline_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    static_cast<void>(spillway::models::read_plan_json(text, "fuzz.json"));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
