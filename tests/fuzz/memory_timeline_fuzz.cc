// Raw memory timelines: any bytes either become a consistent trace or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import.h"
#include "traces/formats/memory_timeline_reader.h"

SPILLWAY_FUZZ_TARGET(memory_timeline) {
  try {
    auto source = spillway::ByteSource::from_memory("fuzz", std::as_bytes(std::span(data, size)), 1 << 22);
    spillway::traces::import_trace(spillway::traces::read_memory_timeline(source, {}));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
