#include "studies/fit/shown_ways.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace spillway::studies {
namespace {

constexpr std::size_t fewest = 5, most = 9, nearest = 3;
constexpr double same_step = 0.005, dominated_step = 0.01, another_step = 0.05, another_peak = 0.05;
constexpr std::int64_t half_gib = std::int64_t{1} << 29;

class Folding {
 public:
  explicit Folding(const FitOutcome& outcome)
      : ways_(outcome.ways), count_(outcome.fitting), plain_(best_plain(outcome)), under_(count_) {}

  std::vector<ShownWay> run() {
    keep_whatever_happens();
    fold_idle_parts();
    fold_alike();
    fold_dominated();
    unfold_layouts();
    fold_the_rest();
    return shown();
  }

 private:
  struct Under {
    std::size_t way = 0;
    std::string_view reason;
  };

  [[nodiscard]] const Row& row(std::size_t i) const { return ways_[i].row; }
  [[nodiscard]] double step(std::size_t i) const { return to_seconds(row(i).result.step_time); }
  [[nodiscard]] double peak(std::size_t i) const {
    return static_cast<double>(row(i).result.memory.peak_reserved.count());
  }
  [[nodiscard]] bool is_shown(std::size_t i) const { return !under_[i]; }
  [[nodiscard]] int tier(std::size_t i) const { return tier_of(row(i).result); }
  [[nodiscard]] bool works(std::size_t i) const { return does_work(row(i)); }
  [[nodiscard]] int mechanisms(std::size_t i) const { return std::popcount(ways_[i].mechanisms); }
  [[nodiscard]] std::size_t edits(std::size_t i) const { return changes_of(row(i)); }
  void fold(std::size_t i, std::size_t under, std::string_view reason) { under_[i] = Under{under, reason}; }

  // Of ways that keep the reserve: fewest edits, most room, best by the GPUs alone; and the best of all.
  void keep_whatever_happens() {
    if (count_ == 0) return;
    kept_.insert(0);
    const auto keep_least = [this](const auto& figure, const auto& is_one, double margin = 0) {
      std::optional<std::size_t> least;
      for (std::size_t i = 0; i < count_; ++i)
        if (group_of(ways_[i]) <= FitGroup::planner && works(i) && is_one(i) &&
            (!least || figure(i) < figure(*least) - margin))
          least = i;
      if (least) kept_.insert(*least);
    };
    const auto any = [](std::size_t) { return true; };
    keep_least([this](std::size_t i) { return static_cast<double>(edits(i)); }, any);
    keep_least([this](std::size_t i) { return peak(i); }, any, half_gib);
    const auto place = [](std::size_t i) { return static_cast<double>(i); };
    keep_least(place, [this](std::size_t i) { return tier(i) == 0; });
    if (plain_) kept_.insert(*plain_);
    if (leaves_little(row(0).result))
      keep_least(place, [this](std::size_t i) { return !leaves_little(row(i).result); });
  }

  // Its edits are another's and more, which gain nothing.
  void fold_idle_parts() {
    for (std::size_t i = 0; i < count_; ++i)
      for (std::size_t j = 0; j < count_ && is_shown(i) && !kept_.contains(i); ++j)
        if (i != j && is_shown(j) && has_all_of(i, j) && std::abs(step(i) / step(j) - 1) < same_step &&
            peak(i) > peak(j) - std::max<double>(half_gib, 0.01 * peak(j)))
          fold(i, j, "moves nothing more");
  }
  [[nodiscard]] bool has_all_of(std::size_t more, std::size_t less) const {
    const std::vector<std::string>&large = row(more).candidate.edits, &small = row(less).candidate.edits;
    return large.size() > small.size() && std::all_of(small.begin(), small.end(), [&](const std::string& one) {
             return std::find(large.begin(), large.end(), one) != large.end();
           });
  }

  // Of a class the best; within 1 % of it the one with fewest edits.
  void fold_alike() {
    std::map<std::pair<FitGroup, std::uint32_t>, std::size_t> best;
    for (std::size_t i = 0; i < count_; ++i) {
      if (!is_shown(i)) continue;
      const auto [place, is_new] = best.try_emplace({group_of(ways_[i]), ways_[i].mechanisms}, i);
      std::size_t& chosen = place->second;
      if (is_new) continue;
      const bool is_simpler = works(i) == works(chosen) && edits(i) < edits(chosen) &&
                              step(i) < (1 + dominated_step) * step(chosen) && chosen != 0;
      if (is_simpler) chosen = i;
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (!is_shown(i)) continue;
      const std::size_t chosen = best.at({group_of(ways_[i]), ways_[i].mechanisms});
      if (i != chosen && !is_apart(i, chosen)) fold(i, chosen, works(i) ? "alike" : "tight");
    }
  }
  // One that is kept, and is no near copy of the chosen one.
  [[nodiscard]] bool is_apart(std::size_t i, std::size_t chosen) const {
    const bool is_roomy = leaves_little(row(chosen).result) && !leaves_little(row(i).result);
    return kept_.contains(i) && (is_roomy || std::abs(step(i) / step(chosen) - 1) > 2 * another_step);
  }

  // No slower, no fuller, no more written, not more to set up, no harder to run than another one.
  void fold_dominated() {
    for (std::size_t i = 0; i < count_; ++i)
      for (std::size_t j = 0; j < count_ && is_shown(i) && !kept_.contains(i); ++j)
        if (i != j && is_shown(j) && works(j) && group_of(ways_[j]) <= group_of(ways_[i]) &&
            step(j) < (1 + dominated_step) * step(i) && peak(j) < peak(i) + half_gib && tier(j) <= tier(i) &&
            mechanisms(j) <= mechanisms(i) && ways_[j].is_plain >= ways_[i].is_plain && !is_dominated_by(j, i))
          fold(i, j, "no better");
  }
  // Of two that dominate each other the better ranked stays.
  [[nodiscard]] bool is_dominated_by(std::size_t j, std::size_t i) const {
    return i < j && works(i) && group_of(ways_[i]) <= group_of(ways_[j]) && step(i) < (1 + dominated_step) * step(j) &&
           peak(i) < peak(j) + half_gib && tier(i) <= tier(j) && mechanisms(i) <= mechanisms(j) &&
           ways_[i].is_plain >= ways_[j].is_plain;
  }

  [[nodiscard]] std::size_t shown_count() const {
    return static_cast<std::size_t>(
        std::count_if(under_.begin(), under_.end(), [](const std::optional<Under>& one) { return !one; }));
  }

  // Other layouts of what is shown, where few are.
  void unfold_layouts() {
    for (std::size_t i = 0; i < count_ && shown_count() < fewest; ++i) {
      if (is_shown(i) || under_[i]->reason != "alike" || !works(i)) continue;
      bool is_another = true;
      for (std::size_t j = 0; j < count_; ++j)
        if (is_shown(j))
          is_another &=
              ways_[j].layout != ways_[i].layout &&
              (std::abs(step(i) / step(j) - 1) > another_step ||
               std::abs(peak(i) - peak(j)) > another_peak * static_cast<double>(row(i).result.memory.capacity.count()));
      if (is_another) under_[i].reset();
    }
  }

  // The worst first, but the best of each group: what other numerics would give stays in sight.
  void fold_the_rest() {
    std::map<FitGroup, std::size_t> first;
    for (std::size_t i = 0; i < count_; ++i)
      if (is_shown(i)) first.try_emplace(group_of(ways_[i]), i);
    for (std::size_t i = count_; i-- > 0 && shown_count() > most;)
      if (is_shown(i) && !kept_.contains(i) && first.at(group_of(ways_[i])) != i) fold(i, first_shown(i), "no better");
  }
  [[nodiscard]] std::size_t first_shown(std::size_t but) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (i != but && is_shown(i) && group_of(ways_[i]) <= group_of(ways_[but])) return i;
    return 0;
  }

  [[nodiscard]] std::vector<ShownWay> shown() const {
    std::vector<ShownWay> all;
    std::map<std::size_t, std::size_t> place;
    for (std::size_t i = 0; i < count_; ++i)
      if (is_shown(i)) {
        place[i] = all.size();
        all.push_back({i, {}});
      }
    for (std::size_t i = 0; i < count_; ++i) {
      if (is_shown(i)) continue;
      std::size_t top = under_[i]->way;
      while (under_[top]) top = under_[top]->way;
      all[place.at(top)].folded.push_back({i, under_[i]->reason});
    }
    return all;
  }

  const std::vector<FitWay>& ways_;
  std::size_t count_;
  std::optional<std::size_t> plain_;
  std::vector<std::optional<Under>> under_;  // none: shown
  std::set<std::size_t> kept_;
};

}  // namespace

FitGroup group_of(const FitWay& way) { return group_of(way.carrier, way.changes_maths); }

std::optional<std::size_t> best_plain(const FitOutcome& outcome) {
  for (std::size_t i = 0; i < outcome.fitting; ++i) {
    const FitWay& way = outcome.ways[i];
    if (way.is_plain && does_work(way.row) && group_of(way) <= FitGroup::planner) return i;
  }
  return std::nullopt;
}

std::vector<ShownWay> shown_ways(const FitOutcome& outcome) {
  if (outcome.any()) return Folding(outcome).run();
  std::vector<ShownWay> all;
  for (std::size_t i = 0; i < std::min(nearest, outcome.ways.size()); ++i) all.push_back({i, {}});
  return all;
}

}  // namespace spillway::studies
