// Plans of a replay, all their parts: any bytes become a plan that is written and read as the same, or are refused.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <cstdlib>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "sim/replay/plan.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(plan) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto read = [](const std::string& document) {
      auto source = spillway::ByteSource::from_memory("fuzz.json", std::as_bytes(std::span(document)), 1 << 24);
      return spillway::sim::read_plan(source);
    };
    const std::string once = spillway::sim::plan_json(read(text));
    if (spillway::sim::plan_json(read(once)) != once) std::abort();
  } catch (const spillway::InputError&) {
  }
  return 0;
}
