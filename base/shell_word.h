// A command line that a person can copy.
#pragma once

#include <string>

namespace spillway {

// 'quoted' where a shell would take it apart.
std::string shell_word(const std::string& word);

}  // namespace spillway
