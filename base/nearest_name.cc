#include "base/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace spillway {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Levenshtein distance, letter case ignored.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

constexpr std::size_t longest_compared = 128;

// In small letters, without what separates parts: "llama38b" of "Llama-3-8B".
std::string squeezed(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) letters += lower(c);
  return letters;
}

std::string joined(std::string_view head, std::span<const std::string_view> names, std::string_view last_separator) {
  std::string text(head);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last_separator : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

std::vector<std::string_view> nearest_names(std::string_view word, std::span<const std::string_view> known,
                                            std::size_t limit) {
  word = word.substr(0, longest_compared);
  const std::size_t allowed = std::max<std::size_t>(2, word.size() / 3);
  std::vector<std::pair<std::size_t, std::size_t>> ranked;  // distance, index
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::string_view candidate = known[i].substr(0, longest_compared);
    std::size_t distance = edit_distance(word, candidate);
    const bool part = word.size() >= 3 && (candidate.find(word) != std::string_view::npos ||
                                           (candidate.size() >= 3 && word.find(candidate) != std::string_view::npos));
    const std::string beginning = squeezed(word);
    const bool is_squeezed = beginning.size() >= 3 && squeezed(candidate).starts_with(beginning);
    if (part || is_squeezed) distance = std::min(distance, allowed);
    // "h100" of "h100-80gb-1gpu": before what is as short by chance.
    const bool is_family = word.size() >= 3 && candidate.size() > word.size() && candidate.starts_with(word) &&
                           std::isalnum(static_cast<unsigned char>(candidate[word.size()])) == 0;
    if (is_family) distance = 1;
    if (distance <= allowed && distance < std::max(word.size(), candidate.size())) ranked.emplace_back(distance, i);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < ranked.size() && names.size() < limit; ++i)
    if (const std::string_view name = known[ranked[i].second];
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

std::string suggest(std::string_view word, std::span<const std::string_view> known, std::string_view otherwise) {
  const std::vector<std::string_view> names = nearest_names(word, known);
  if (!names.empty()) return joined("did you mean ", names, " or ") + "?";
  return otherwise.empty() ? joined("use one of ", known, ", ") : std::string(otherwise);
}

std::string suggest(std::string_view word, const std::vector<std::string>& known, std::string_view otherwise) {
  return suggest(word, std::vector<std::string_view>(known.begin(), known.end()), otherwise);
}

}  // namespace spillway
