// TrioSim tables: the bytes before the first 0 are the operators, those after it the tensors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import.h"
#include "traces/formats/triosim_reader.h"

SPILLWAY_FUZZ_TARGET(triosim) {
  const std::span all(data, size);
  const auto cut = static_cast<std::size_t>(std::find(all.begin(), all.end(), std::uint8_t{0}) - all.begin());
  const auto rest = all.subspan(std::min(cut + 1, size));
  try {
    auto operators = spillway::ByteSource::from_memory("operators", std::as_bytes(all.first(cut)), 1 << 22);
    auto tensors = spillway::ByteSource::from_memory("tensors", std::as_bytes(rest), 1 << 22);
    spillway::traces::import_trace(spillway::traces::read_triosim(operators, tensors, {}));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
