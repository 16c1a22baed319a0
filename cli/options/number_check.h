// Checks of options that take a number; what isn't one, or isn't finite, is refused with a word on what is.
#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

CLI::Validator positive_number();
CLI::Validator non_negative_number();

}  // namespace spillway::cli
