// STAlloc logs: any bytes become a profile of requests, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "planners/stalloc/memory_profile.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(memory_log) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    static_cast<void>(spillway::planners::read_memory_log(text, "fuzz.txt"));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
