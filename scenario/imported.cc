#include "scenario/imported.h"

#include <nlohmann/json.hpp>

#include "base/field_writer.h"

namespace spillway::scenario {

const Words& launch_effect_words() {
  static const Words words = {{"time", "changes time alone"},
                              {"memory-", "needs less memory"},
                              {"memory+", "needs more memory"},
                              {"memory~", "needs other memory"},
                              {"unknown", "nobody knows"}};
  return words;
}

void describe(ImportedFrom& imported, FieldVisitor& visitor) {
  fields::text(visitor, {.key = "launcher", .about = "Framework of the launch."}, imported.launcher);
  visitor.texts({.key = "open", .about = "Keys that nothing states; one that the scenario has is not open."},
                imported.open);
  fields::list(visitor, {.key = "unsayable", .about = "Flags that change memory or time and have no key."},
               imported.unsayable, [&](UnsayableFlag& flag) {
                 fields::text(visitor, {.key = "flag", .required = true}, flag.flag);
                 fields::text(visitor, {.key = "value"}, flag.value);
                 fields::text(visitor, {.key = "place", .about = "File and line."}, flag.place);
                 fields::word(visitor, {.key = "effect"}, flag.effect, launch_effect_words());
                 fields::bytes(visitor,
                               {.key = "at_most_bytes",
                                .dimension = Dimension::bytes,
                                .max = 0x1p62,
                                .about = "Of memory+: what it may need. Default: no bound is known."},
                               flag.at_most);
               });
}

std::string with_import(const std::string& scenario_text, const ImportedFrom& imported) {
  if (imported.open.empty() && imported.unsayable.empty()) return scenario_text;
  FieldWriter writer;
  ImportedFrom copy = imported;
  describe(copy, writer);
  auto root = nlohmann::ordered_json::parse(scenario_text);
  root["import"] = writer.json();
  return root.dump(2) + "\n";
}

}  // namespace spillway::scenario
