// Checks of options that take a number; what isn't one, or isn't finite, is refused with a word on what is.
#pragma once

#include "cli/options/command_options.h"

namespace spillway::cli {

WordCheck positive_number();
WordCheck non_negative_number();

}  // namespace spillway::cli
