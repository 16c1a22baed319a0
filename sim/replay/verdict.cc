#include "sim/replay/verdict.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace spillway::sim {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::fits:
      return "fits";
    case Verdict::does_not_fit:
      return "does not fit";
    case Verdict::unknown:
      return "unknown";
  }
  return "unknown";
}

std::string_view yes_or_no(Verdict verdict) {
  switch (verdict) {
    case Verdict::fits:
      return "yes";
    case Verdict::does_not_fit:
      return "no";
    case Verdict::unknown:
      return "unknown";
  }
  return "unknown";
}

nlohmann::ordered_json fits_json(Verdict verdict) {
  return verdict == Verdict::unknown ? nlohmann::ordered_json() : nlohmann::ordered_json(verdict == Verdict::fits);
}

Verdict verdict_of_json(const nlohmann::ordered_json& fits) {
  if (fits.is_null()) return Verdict::unknown;
  return fits.get<bool>() ? Verdict::fits : Verdict::does_not_fit;
}

Verdict both(Verdict a, Verdict b) { return std::max(a, b); }

Verdict verdict_of(Bytes needed, Bytes capacity) {
  if (capacity <= Bytes(0)) return Verdict::unknown;
  return needed <= capacity ? Verdict::fits : Verdict::does_not_fit;
}

}  // namespace spillway::sim
