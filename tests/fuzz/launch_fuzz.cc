// Launch files, of every syntax: any bytes become settings and a scenario, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "launch/launch_import.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

SPILLWAY_FUZZ_TARGET(launch) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const spillway::test::MemoryFile file(data, size);
    static_cast<void>(spillway::launch::import_launch({.launch = {.paths = {file.path()}, .from = {}, .given = {}},
                                                       .model = "gpt2-small",
                                                       .machine = "dgx-h100",
                                                       .model_file = {}}));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
