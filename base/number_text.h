// Numbers with units as people read them; alike on every machine and in every locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace spillway {

// In the largest unit that keeps the number at or above 1, else the smallest.
struct InUnit {
  double amount = 0;
  std::string_view unit;
  bool is_smallest = false;  // a whole number of bytes or picoseconds
};
InUnit in_byte_unit(Bytes bytes);  // B, KiB .. TiB
InUnit in_time_unit(Picos time);   // ps, ns, us, ms, s

double in_gib(Bytes bytes);
double in_mib(Bytes bytes);
std::string gib_text(Bytes bytes, int decimals = 2);  // "80.72 GiB"
std::string mib_text(Bytes bytes);                    // "80.72 MiB"
// "3.20 GiB", "150.2 GiB", "512 B". Negative values keep their sign.
std::string bytes_text(Bytes bytes);
// "1.25 ms", "512.0 s", "3.00 µs"
std::string duration_text(Picos time);
// "560.393 ms", "3.000 us"
std::string precise_duration_text(Picos time);

// "12.98"; three or four significant digits, thousands grouped from 10,000 on; "-" for infinity.
std::string number_text(double value);
std::string percent_text(double share, int decimals = 1);         // 0.125: "12.5 %"
std::string signed_percent_text(double share, int decimals = 1);  // 0.125: "+12.5 %"
std::string grouped_text(std::int64_t number);                    // "12,345"

}  // namespace spillway
