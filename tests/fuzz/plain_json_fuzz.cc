// The short way through JSON: what it takes, the full parser takes and reads alike.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/plain_json.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using Json = nlohmann::ordered_json;

// Of equal kinds, too: 1 and 1.0 differ.
bool is_alike(const Json& a, const Json& b) {
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (!a.is_structured()) return a == b;
  for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j)
    if ((a.is_object() && i.key() != j.key()) || !is_alike(*i, *j)) return false;
  return true;
}

}  // namespace

SPILLWAY_FUZZ_TARGET(plain_json) {
  constexpr int deepest = 64;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json plain;
  if (!spillway::parse_plain_json(text, deepest, plain)) return 0;
  const Json full = Json::parse(text, nullptr, false);
  if (full.is_discarded() || !is_alike(plain, full)) std::abort();
  return 0;
}
