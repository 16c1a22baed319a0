// Numbers with or without a unit, as options and keys take them: one reading for all of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/quantity.h"
#include "base/units.h"

namespace spillway {

// A number without a unit is in base units: "1.8GiB", "1932735283", "20 ms", "0.02" (s). Sizes also as 40g, 40gb (10^9)
// and 40gi, and counts of tokens (8k, 15T), in letters of either case. Throws InputError as parse_quantity().
double parse_amount(std::string_view text, Dimension dimension);
// A whole number as a key or an option takes it: "8k" of a sequence. Throws InputError also for 2^62 or more.
std::int64_t parse_whole(std::string_view text, Dimension dimension);
// A size in whole bytes (rounded down). Throws InputError also for one of 2^62 bytes or more.
Bytes parse_size(std::string_view text);

// A size, or a share of one that only the reader knows: "2 GiB", "8%", "0.08"; a number of 1 or more is bytes, 0 none.
struct SizeOrShare {
  Bytes size{};
  double share = 0;  // [0, 1); 0: the size counts
  [[nodiscard]] Bytes of(Bytes whole) const;
};
// Throws InputError as parse_quantity(), and for shares of 100 % or more.
SizeOrShare parse_size_or_share(std::string_view text);

}  // namespace spillway
