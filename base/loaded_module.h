// Shared libraries of our own that are loaded when asked for: what few commands need, no start waits for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// The function `name` of the first library at `places` that can be loaded and has it; null: none, and `why`. The
// library stays loaded: what it makes has its code in it.
void* function_in_module(const std::vector<std::string>& places, const char* name, std::string& why);

// The same of a module that is built and installed with this program (module_places()). Throws InputError; `remedy`
// says what else would do.
void* module_function(std::string_view file, std::string_view in_build, const char* name, const std::string& remedy);

}  // namespace spillway
