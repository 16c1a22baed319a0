// The settings of a training that a Python program or a notebook starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_setting.h"

namespace spillway::launch {

// Whether a text is Python, or a notebook's JSON.
bool is_python(std::string_view text);
bool is_notebook(std::string_view text);

// Keywords of the calls of known classes, each with the format of its class. Places are lines, of a notebook its cells
// and their lines. Throws InputError (file, place) for what can't be read, for classes of trainings that are not
// modelled, and where no class is known.
std::vector<LaunchSetting> python_settings(const std::string& text, const ShellValues& given, TextBudget& budget);

}  // namespace spillway::launch
