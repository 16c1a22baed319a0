// Stores of sweeps: any bytes are records of which each is whole, or are refused; the file stays as it is.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "studies/sweep/sweep_origin.h"
#include "studies/sweep/sweep_store.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

SPILLWAY_FUZZ_TARGET(sweep_store) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const spillway::test::MemoryFile file(data, size);
    spillway::studies::SweepStore store;
    store.read(file.path());
    static_cast<void>(spillway::studies::origin_in(store, "fuzz.store"));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
