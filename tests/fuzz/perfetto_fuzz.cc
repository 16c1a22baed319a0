// Perfetto protobuf: any bytes either become a consistent trace or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import.h"
#include "traces/formats/perfetto/perfetto_packet.h"
#include "traces/formats/perfetto/perfetto_reader.h"

SPILLWAY_FUZZ_TARGET(perfetto) {
  spillway::traces::looks_like_perfetto({reinterpret_cast<const char*>(data), size});
  spillway::traces::ReadOptions options;
  options.keep_python = size % 2 == 1;
  try {
    auto source = spillway::ByteSource::from_memory("fuzz", std::as_bytes(std::span(data, size)), 1 << 22);
    spillway::traces::import_trace(spillway::traces::read_perfetto(source, options), true);
  } catch (const spillway::InputError&) {
  }
  return 0;
}
