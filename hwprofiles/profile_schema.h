// The JSON Schema of profile files, from the description that reads them.
#pragma once

#include <string>

namespace spillway::hwprofiles {

std::string profile_schema();

}  // namespace spillway::hwprofiles
