// Tables of buffers: any bytes become buffers that can be laid out and written, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vector>

#include "base/input_error.h"
#include "planners/layout/layout_csv.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(layout_csv) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const spillway::planners::LayoutTable table = spillway::planners::read_layout_csv(text, "fuzz.csv");
    const std::vector<std::int64_t> offsets(table.buffers.size());
    static_cast<void>(spillway::planners::write_layout_csv(table, offsets));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
