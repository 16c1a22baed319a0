#include <algorithm>
#include <charconv>
#include <limits>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "sim/devices/memory/gmlake_pool.h"

namespace spillway::sim {
namespace {

constexpr std::string_view own_keys[] = {"fragLimit", "reuseLimit", "defragLevel", "autoGC", "reAlloc"};
constexpr std::string_view torch_keys[] = {"roundup_power2_divisions", "large_segment_size_mb",
                                           "per_process_memory_fraction", "backend"};

template <class Number>
Number number(std::string_view key, std::string_view text, Number least, Number most, const std::string& source) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least) || value > most)
    throw InputError(source, std::string(key), "'" + std::string(text) + "' is not a number in its range",
                     "give a number of at least " + std::to_string(least));
  return value;
}

void read_own(std::string_view key, std::string_view value, const std::string& source, GmlakeSettings& settings) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  if (key == "fragLimit") {
    settings.fragment_limit = Bytes(number<std::int64_t>(key, value, 0, most, source));
  } else if (key == "reuseLimit") {
    settings.reuse_limit = number<double>(key, value, 1, 1e18, source);
  } else if (key == "defragLevel") {
    settings.defragment_level = number<int>(key, value, 0, 3, source);
  } else if (key == "autoGC") {
    settings.stitched_limit = Bytes(number<std::int64_t>(key, value, 0, most >> 30, source) << 30);
  } else {
    settings.grow_and_stitch = number<int>(key, value, 0, 1, source) == 1;
  }
}

// Commas inside [] belong to the value.
std::vector<std::string> items_of(std::string_view text) {
  std::vector<std::string> items(1);
  int depth = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0)
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

}  // namespace

GmlakeSettings parse_gmlake_settings(std::string_view text, const std::string& source) {
  GmlakeSettings settings;
  std::string for_torch;
  if (text.find_first_not_of(' ') == std::string_view::npos) return settings;
  for (const std::string& item : items_of(text)) {
    const std::size_t colon = item.find(':');
    const std::string key = item.substr(0, colon);
    const auto is = [&key](std::string_view name) { return key == name; };
    if (std::any_of(std::begin(torch_keys), std::end(torch_keys), is)) {
      for_torch += (for_torch.empty() ? "" : ",") + item;
    } else if (std::none_of(std::begin(own_keys), std::end(own_keys), is)) {
      std::vector<std::string_view> known(std::begin(own_keys), std::end(own_keys));
      known.insert(known.end(), std::begin(torch_keys), std::end(torch_keys));
      throw InputError(source, key, "unknown setting of the gmlake policy", suggest(key, known));
    } else if (colon == std::string::npos) {
      throw InputError(source, key, "has no value", "settings read key:value,key:value");
    } else {
      read_own(key, std::string_view(item).substr(colon + 1), source, settings);
    }
  }
  settings.torch = parse_torch_settings(for_torch, source);
  return settings;
}

}  // namespace spillway::sim
