#include "sim/replay/verdict.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace spillway::sim {
namespace {

struct VerdictWords {
  std::string_view sentence, cell;
};
constexpr std::array<VerdictWords, 4> verdict_words = {
    {{"fits", "yes"}, {"tight", "tight"}, {"unknown", "unknown"}, {"does not fit", "no"}}};

}  // namespace

std::string_view to_string(Verdict verdict) { return verdict_words[static_cast<std::size_t>(verdict)].sentence; }
std::string_view yes_or_no(Verdict verdict) { return verdict_words[static_cast<std::size_t>(verdict)].cell; }

bool is_yes(Verdict verdict) { return verdict == Verdict::fits || verdict == Verdict::tight; }

nlohmann::ordered_json fits_json(Verdict verdict) {
  return verdict == Verdict::unknown ? nlohmann::ordered_json() : nlohmann::ordered_json(is_yes(verdict));
}

Verdict verdict_of_json(const nlohmann::ordered_json& fits, std::string_view words) {
  if (fits.is_null()) return Verdict::unknown;
  if (!fits.get<bool>()) return Verdict::does_not_fit;
  return words == to_string(Verdict::tight) ? Verdict::tight : Verdict::fits;
}

Verdict both(Verdict a, Verdict b) { return std::max(a, b); }

Verdict verdict_of(Bytes needed, Bytes capacity) {
  if (capacity <= Bytes(0)) return Verdict::unknown;
  return needed <= capacity ? Verdict::fits : Verdict::does_not_fit;
}

Verdict in_doubt(Verdict verdict, std::string_view doubt) {
  return doubt.empty() ? verdict : both(verdict, Verdict::unknown);
}

}  // namespace spillway::sim
