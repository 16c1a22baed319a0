// Finds the program's bundled files: profiles, prices, models, tables, cases, scenarios; libraries that it loads.
// All by the running program's own place, so that an installation or a release may be moved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// Places of a bundled file or folder, best first: $SPILLWAY_DATA/`installed`, of a program in its build folder the
// source tree's `in_source`, and share/spillway/`installed` of the program's own prefix. Not all of them need be there.
std::vector<std::string> data_places(std::string_view installed, std::string_view in_source);

// Places of a shared library that is loaded when asked for, best first: of a program in its build folder
// `in_build`/`file` there, and lib/spillway/`file` of the program's own prefix. Not all of them need be there.
std::vector<std::string> module_places(std::string_view file, std::string_view in_build);

// The folder's .json files in the order of their names; none where there is no such folder.
std::vector<std::string> json_files_in(const std::string& folder);

// Points SPILLWAY_DATA at share/spillway of the program's own prefix, if that is there and the user has set no other.
// So an installation may be moved, or put together under another root (DESTDIR). It never reads the folder it was built
// in. A program that was not installed keeps its source tree. If share/spillway has fonts, as releases do, fontconfig
// is pointed to them (FONTCONFIG_FILE) in the same way. To be called before threads start.
void use_installed_data();

}  // namespace spillway
