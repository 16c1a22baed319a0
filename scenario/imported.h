// The key "import": parts of a launch that `spillway import` could not put into a scenario. A verdict that hangs on it
// is unknown (hinges.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/units.h"
#include "base/words.h"

namespace spillway::scenario {

// Effect of a flag without a scenario key.
enum class LaunchEffect : std::uint8_t { time, saves, adds, either, unknown };
const Words& launch_effect_words();  // "time", "memory-", "memory+", "memory~", "unknown"

struct UnsayableFlag {
  std::string flag, value, place;  // place: "launch.sh: line 12"
  LaunchEffect effect = LaunchEffect::unknown;
  std::optional<Bytes> at_most;  // of memory+: what it may need; none: no bound is known
};

struct ImportedFrom {
  std::string launcher;           // a word of launch_format_words(); empty: not imported
  std::vector<std::string> open;  // keys that nothing states. One that the scenario has after all is not open.
  std::vector<UnsayableFlag> unsayable;
  bool tells_amounts = true;  // not of the file: searches leave out how large an open key may be, which takes replays
};

void describe(ImportedFrom& imported, FieldVisitor& visitor);
// The scenario's text with it, as its last key; as it is where nothing is open or unsayable.
std::string with_import(const std::string& scenario_text, const ImportedFrom& imported);

}  // namespace spillway::scenario
