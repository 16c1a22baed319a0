// Figures as a person reads them, three significant digits, and as results state them.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace spillway {

// "2.09", "17.6", "667", "0.250": three significant digits, none behind a point that say nothing.
std::string three_digits(double value);
// "2.09 s", "667 ms".
std::string short_duration(double seconds);
// "17.6 GiB", "122 MiB", "4.00 KiB", "12 B".
std::string short_size(Bytes bytes);
// "2.5 %", "38 %"; signed: "-2.5 %", "+38 %".
std::string short_percent(double share);
std::string signed_short_percent(double share);
// Nanoseconds, rounded to nearest.
std::int64_t whole_nanoseconds(Picos time);

}  // namespace spillway
