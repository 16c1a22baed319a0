// Price lists: any bytes become a list, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "hwprofiles/price_list.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

SPILLWAY_FUZZ_TARGET(prices) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const spillway::test::MemoryFile file(data, size);
    static_cast<void>(spillway::hwprofiles::PriceList::load(file.path()));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
