// Scenarios: any bytes become a scenario whose keys can be set and compared, or are refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "scenario/scenario.h"
#include "scenario/scenario_setting.h"
#include "studies/procurement/procurement_fields.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(scenario) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    spillway::studies::add_study_sections();
    static_cast<void>(spillway::scenario::parse_scenario(text, "fuzz.json", "."));
    const std::string changed = spillway::scenario::with_setting(text, "model.sequence=128");
    static_cast<void>(spillway::scenario::parse_scenario(changed, "fuzz.json", "."));
    static_cast<void>(spillway::scenario::settings_between(text, changed));
  } catch (const spillway::InputError&) {
  }
  return 0;
}
