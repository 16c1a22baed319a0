// The JSON Schemas of profiles and price lists, from the descriptions that read them.
#pragma once

#include <string>

#include "base/words.h"

namespace spillway::hwprofiles {

std::string profile_schema();
std::string prices_schema();

// Provenances of numbers: measured, datasheet, fitted, assumed.
const Words& provenance_words();

}  // namespace spillway::hwprofiles
