// The launcher of a launch, by what only one launcher has: never by how many of its keys are known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_setting.h"

namespace spillway::launch {

// The marks to go by: the settings, and the words of a command that are no flags (empty of a document).
struct Marked {
  const std::vector<LaunchSetting>& settings;
  std::string command;
  std::string file, place;
};

// The one launcher with marks there; nullopt: none. Throws InputError (file, place) for the marks of two, and
// for those of what is read by its own name only to be refused.
std::optional<LaunchFormat> marked_format(const Marked& launch);

// The same of a text that has no settings: a notebook, a container's file, a Python program. Nothing happens where the
// text may be a launch.
void refuse_by_text(std::string_view text, const std::string& file);

// "megatron, torchtitan, ...": the known launchers, for a refusal.
std::string known_launchers();

}  // namespace spillway::launch
