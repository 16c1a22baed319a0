#include "gui/panels/fuzzy_match.h"

#include <QStringList>
#include <algorithm>
#include <vector>

namespace spillway::gui {
namespace {

constexpr int as_typed = 200, at_start = 8, in_a_row = 5, plain = 1, first_of_all = 6;
constexpr int not_there = -1'000'000;

bool starts_word(const QString& name, qsizetype i) {
  if (i == 0) return true;
  const QChar before = name[i - 1];
  return !before.isLetterOrNumber() || (before.isLower() && name[i].isUpper()) ||
         (before.isLetter() && name[i].isDigit());
}

// The best way to find the word's letters in order: by letter of the word, the best score that ends at each place.
int word_score(const QString& word, const QString& name) {
  std::vector<int> before(static_cast<std::size_t>(name.size()), not_there), now;
  int best = not_there;
  for (qsizetype w = 0; w < word.size(); ++w) {
    now.assign(before.size(), not_there);
    int reached = w == 0 ? 0 : not_there;  // the best that ends before this place
    best = not_there;
    for (qsizetype i = 0; i < name.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (name[i].toLower() == word[w].toLower()) {
        const int here = starts_word(name, i) ? at_start : plain;
        int score = reached == not_there ? not_there : reached + here;
        if (w > 0 && i > 0 && before[at - 1] != not_there)
          score = std::max(score, before[at - 1] + std::max(here, in_a_row));
        if (w == 0 && i == 0) score += first_of_all;
        now[at] = score;
        best = std::max(best, score);
      }
      if (w > 0) reached = std::max(reached, before[at]);
    }
    std::swap(before, now);
  }
  return best;
}

}  // namespace

std::optional<int> fuzzy_match(const QString& typed, const QString& name) {
  int sum = 0;
  for (const QString& word : typed.split(' ', Qt::SkipEmptyParts)) {
    const int score = word_score(word, name);
    // Letters scattered over a name name nothing: at least half of them start a word or follow one another.
    if (score < static_cast<int>(word.size()) * (in_a_row + plain) / 2) return std::nullopt;
    sum += score * 4;
  }
  const QString whole = typed.trimmed();
  if (!whole.isEmpty() && name.startsWith(whole, Qt::CaseInsensitive))
    sum += name.size() == whole.size() ? 2 * as_typed : as_typed;
  return sum - static_cast<int>(std::min<qsizetype>(name.size(), 60)) / 4;
}

}  // namespace spillway::gui
