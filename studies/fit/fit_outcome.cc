#include <algorithm>
#include <utility>

#include "studies/fit/fit_search.h"

namespace spillway::studies {

const Result* FitOutcome::unknown() const {
  const auto may_fit = [](const FitWay& way) {
    return way.row.ran() && way.row.result.as_replayed() == Verdict::unknown && way.row.result.drives_refuse.empty();
  };
  const auto found = any() ? ways.end() : std::find_if(ways.begin(), ways.end(), may_fit);
  return found == ways.end() ? nullptr : &found->row.result;
}

std::size_t FitOutcome::best_of_same_maths() const {
  for (std::size_t i = 0; i < fitting; ++i)
    if (!ways[i].changes_maths) return i;
  return ways.size();
}

void find_shortages(const FitSubject& subject, ReplayStore* store, FitOutcome& outcome) {
  constexpr std::size_t most_nearest = 3;
  std::vector<std::size_t> shown;
  if (outcome.fitting == 0)
    for (std::size_t i = 0; i < std::min(most_nearest, outcome.ways.size()); ++i) shown.push_back(i);
  for (const FitAblation& worth : outcome.worth) shown.push_back(worth.way);
  for (std::size_t i = 0; i < outcome.ways.size(); ++i)
    if (outcome.ways[i].row.candidate.edits.empty()) shown.push_back(i);
  std::erase_if(shown, [&](std::size_t i) {
    const Row& row = outcome.ways[i].row;
    return !row.ran() || row.result.may_fit();
  });
  std::vector<Candidate> missing;
  for (const std::size_t i : shown) missing.push_back(outcome.ways[i].row.candidate);
  std::vector<Row> rows = evaluate(subject.scenario, missing, {.detail = Detail::figures, .store = store});
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (rows[i].ran()) outcome.ways[shown[i]].row.result.memory = std::move(rows[i].result.memory);
}

}  // namespace spillway::studies
