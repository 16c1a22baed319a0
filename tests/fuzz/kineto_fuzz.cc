// Kineto traces, and what is inferred from them at import: phases, steps and the fit to the recorded machine.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/input_error.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import.h"
#include "traces/formats/kineto/kineto_reader.h"

SPILLWAY_FUZZ_TARGET(kineto) {
  spillway::traces::ReadOptions options;
  options.keep_python = size % 2 == 1;
  try {
    spillway::ByteSource source =
        spillway::ByteSource::from_memory("fuzz", std::as_bytes(std::span(data, size)), options.max_decompressed_bytes);
    spillway::traces::import_trace(spillway::traces::read_kineto(source, options), true);
  } catch (const spillway::InputError&) {
  }
  return 0;
}
