// Whether a step fits its memory. Missing knowledge never gives Verdict::fits.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/units.h"

namespace spillway::sim {

enum class Verdict : std::uint8_t {
  fits,
  tight,    // fits, but not with the margin of the reserve kept free (Reserve)
  unknown,  // no usable memory in the trace, no limit to hold it against, or a record in doubt
  does_not_fit,
};
// "fits", "tight", "unknown", "does not fit".
std::string_view to_string(Verdict verdict);
// Under a heading "fits": "yes", "tight", "unknown", "no".
std::string_view yes_or_no(Verdict verdict);
// fits or tight: enough for a step that must fit.
bool is_yes(Verdict verdict);
// true (also where it is tight), null, false.
nlohmann::ordered_json fits_json(Verdict verdict);
// From what fits_json() and to_string() gave. The words may be missing (files of older versions): then nothing is
// tight.
Verdict verdict_of_json(const nlohmann::ordered_json& fits, std::string_view words = {});

// Verdict on two parts that must both fit.
Verdict both(Verdict a, Verdict b);

// capacity 0: no limit is known.
Verdict verdict_of(Bytes needed, Bytes capacity);

// Verdict on a record with doubtful memory (traces/memory_doubt.h); `doubt` empty: none. does_not_fit stays, all else
// is unknown.
Verdict in_doubt(Verdict verdict, std::string_view doubt);

}  // namespace spillway::sim
