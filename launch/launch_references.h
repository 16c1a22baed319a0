// "${a.b}" in a document: the value of another of its keys, as OmegaConf and Hydra have it.
#pragma once

#include <vector>

#include "launch/launch_setting.h"

namespace spillway::launch {

// Puts values in place of their names. "${env:X}", "${oc.env:X,otherwise}" and "${X:otherwise}" are `given`'s, or
// unknown like a shell's variable. A name of no single value stays as it is.
void resolve_references(std::vector<LaunchSetting>& settings, const ShellValues& given, TextBudget& budget);

}  // namespace spillway::launch
