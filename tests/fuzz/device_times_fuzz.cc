// Events without categories, as XLA's profiler and rocprof write them: any list of events becomes a sound trace, which
// has no memory where nobody recorded any, or is refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/input_error.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import.h"
#include "traces/formats/kineto/kineto_reader.h"

SPILLWAY_FUZZ_TARGET(device_times) {
  using namespace spillway::traces;
  std::string text = R"({"traceEvents":[)";
  text.append(reinterpret_cast<const char*>(data), size).append("]}");
  const ReadOptions options;
  try {
    spillway::ByteSource source =
        spillway::ByteSource::from_memory("fuzz", std::as_bytes(std::span(text)), options.max_decompressed_bytes);
    Trace trace = read_kineto(source, options);
    if (trace.has(Capability::memory) && text.find("[memory]") == std::string::npos) std::abort();
    import_trace(std::move(trace), true);
  } catch (const spillway::InputError&) {
  }
  return 0;
}
