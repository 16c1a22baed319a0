// "Did you mean": the known name nearest to a mistyped one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// Levenshtein distance. O(|a| |b|).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

// The first of the nearest names; empty if all differ in more than a third of their letters (at least 2).
inline std::string_view closest(std::string_view name, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = 0;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t bound = std::max<std::size_t>(2, candidate.size() / 3);
    if (distance <= bound && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

// "did you mean X?" or the list of known names.
inline std::string suggest(std::string_view name, std::span<const std::string_view> known) {
  const std::string_view best = closest(name, known);
  if (!best.empty()) return "did you mean " + std::string(best) + "?";
  std::string text = "use one of";
  for (const std::string_view candidate : known)
    text += (candidate == known.front() ? " " : ", ") + std::string(candidate);
  return text;
}

}  // namespace spillway
