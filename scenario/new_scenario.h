// A scenario to start from, as text with comments: each main key with its default and what it means.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/floors.h"

namespace spillway::scenario {

// `values`: path ("model.name") and value of keys that differ from their default. Main keys of the model, and those
// given, are members; other main keys appear in comments. load_scenario() reads the text as it is.
std::string commented_scenario(const std::vector<std::pair<std::string, std::string>>& values);

// A scenario of the model on the machine, one replica a GPU. Throws InputError where a name or file is none.
std::string new_scenario_text(const std::string& model, const std::string& machine);

}  // namespace spillway::scenario
