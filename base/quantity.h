// Units of profile values: "3.35 TB/s" to 3.35e12 bytes a second and back.
//
// Decimal and binary prefixes are kept apart: GB = 10^9 bytes, GiB = 2^30 bytes; Gbit/s is a rate too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// The dimension of a number; its base unit is what the C++ side stores.
enum class Dimension {
  bytes,           // B
  rate,            // bytes a second
  time,            // seconds
  flop_rate,       // flops a second
  power,           // W
  money,           // USD
  money_per_hour,  // USD/h
  money_per_kwh,   // USD/kWh
  operations,      // IOPS
  years,           // years
  fraction,        // plain, or %
  count,           // plain integer
  plain,           // plain number
  sequence,        // tokens of a sequence: 8k is 8192, 1m 1048576
  tokens,          // tokens of a training run: 15T is 15e12
};

// Factor of a unit to the base unit of the dimension; 0 when the unit does not measure it.
double unit_factor(Dimension dimension, std::string_view unit);
// Units accepted, for messages and the schema; "" stands for a plain number.
std::vector<std::string> units_of(Dimension dimension);

struct Quantified {
  double value = 0;  // in the base unit
  std::string unit;  // as written
};
// Reads "3.35TB/s", "24 GiB", "0.9", "90%". Throws InputError (no file or place) for a malformed or non-finite
// number, a negative one, or a unit that does not measure the dimension.
Quantified parse_quantity(std::string_view text, Dimension dimension);

struct PrintedQuantity {
  std::string value, unit;
};
// The unit in which the value reads best: 3.35 TB/s, 80 GiB (binary when that is a round number), 5 us.
PrintedQuantity print_quantity(double base_value, Dimension dimension);

}  // namespace spillway
