// The controls of the scenario panel as data: which key of the scenario each one holds, how it is shown, what it may
// be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gui/workspace/scenario_document.h"

namespace spillway::gui {

enum class ControlKind : std::uint8_t {
  choice,  // one of `choices`
  entry,   // one of `choices`, or a text of the user's own (a file, a setting)
  number,  // whole, least .. most, in steps of `step`
  size,    // GiB, kept as bytes
  factor,  // 0.1 .. 10 times as fast, a slider on a logarithmic scale
  toggle,  // on or off, between two texts
};

struct Control {
  std::string key;    // "model.micro_batch"
  std::string group;  // heading in the panel
  std::string label, unit, about;
  ControlKind kind = ControlKind::choice;
  std::vector<std::string> choices;  // values as in the file
  std::string otherwise;             // what counts when the key isn't there
  double least = 1, most = 64, step = 1;
  std::string on, off;      // of a toggle
  bool for_models = false;  // traces have no such thing
  // Read only where one of these keys is something else than that; empty: always.
  struct Need {
    std::string key, otherwise;
  };
  std::vector<Need> needs;
  std::string follows;  // a key that makes this one derived, where it is set: it is shown then and can't be edited
};

// In the panel's order. Choices of models, machines and drives are what is installed.
std::vector<Control> scenario_controls();

// The control of any key that a scenario may have: its own, else one made of the scenario's description, under "Other
// keys". Its label is in people's words, whatever the key.
Control control_of(const std::string& key);

// Whether the key that it follows is set.
bool is_derived(const Control& control, const ScenarioDocument& document);
// The value of a key that follows another, as a number in words; empty: unknown, since the scenario isn't whole.
std::string derived_value(const Control& control, const ScenarioDocument& document);
// The steps in which a number goes for the scenario to be whole: sequences of a global batch. 1: any.
double steps_of(const Control& control, const ScenarioDocument& document);

// The headings in order; the last four but "Other keys" are the techniques.
const std::vector<std::string>& control_groups();

}  // namespace spillway::gui
