// Effect of --set on a scenario, before the scenario is checked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace spillway::scenario {

// "KEY=VALUE"; hardware.set takes the rest of the key as one name, since the names there hold dots themselves. The
// value is JSON where it is a number, true, false or null (which takes the key out), else a text. Throws InputError.
void apply_setting(nlohmann::ordered_json& root, const std::string& setting);

// A key with its section left out is the one key of that name, what "capacity" and "procurement" ask aside:
// "micro_batch" is model.micro_batch. Others as they are.
// Throws InputError where several sections have one.
std::string whole_key(const std::string& key);

}  // namespace spillway::scenario
