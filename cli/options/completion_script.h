// Completion of commands, options and their values for shells.
#pragma once

#include <span>
#include <string>

#include "cli/options/option_table.h"

namespace spillway::cli {

// Defines a function and binds it to `spillway`; arguments that are not listed complete as file names.
std::string bash_completion(std::span<const CommandEntry> table);
std::string zsh_completion(std::span<const CommandEntry> table);
std::string fish_completion(std::span<const CommandEntry> table);

}  // namespace spillway::cli
