#include "planners/recompute/layer_frontier.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace spillway::planners {
namespace {

class Frontier {
 public:
  Frontier(RecomputeIndex& index, const LayerPass& pass, Bytes least)
      : index_(index), pass_(pass), least_(least), none_(nothing_away(index)), refused_(pass.interior.size(), false) {}

  std::vector<FrontierStep> run() {
    std::vector<FrontierStep> steps;
    while (std::optional<FrontierStep> best = best_step()) {
      for (const std::size_t t : best->tensors) gone_.insert(t);
      time_ += best->time;
      steps.push_back(std::move(*best));
      while (steps.size() > 1 && is_better(steps.back(), steps[steps.size() - 2])) {
        FrontierStep& into = steps[steps.size() - 2];
        into.tensors.insert(into.tensors.end(), steps.back().tensors.begin(), steps.back().tensors.end());
        into.bytes += steps.back().bytes;
        into.time += steps.back().time;
        steps.pop_back();
      }
    }
    return steps;
  }

 private:
  static bool is_better(const FrontierStep& a, const FrontierStep& b) {
    return static_cast<double>(a.time.count()) * static_cast<double>(b.bytes.count()) <
           static_cast<double>(b.time.count()) * static_cast<double>(a.bytes.count());
  }
  [[nodiscard]] const SavedTensor& saved(std::size_t place) const { return index_.saved()[pass_.interior[place]]; }

  [[nodiscard]] std::optional<RecomputeGroup> group(const std::set<std::size_t>& places) {
    std::vector<std::size_t> tensors;
    for (const std::size_t place : places) tensors.push_back(pass_.interior[place]);
    return index_.group(tensors, none_);
  }

  std::optional<FrontierStep> best_step() {
    std::optional<FrontierStep> best;
    for (std::size_t place = 0; place < pass_.interior.size(); ++place) {
      if (gone_.contains(place) || refused_[place] || saved(place).bytes < least_) continue;
      std::optional<FrontierStep> step = step_with(place);
      if (!step) refused_[place] = true;
      if (step && (!best || is_better(*step, *best))) best = std::move(step);
    }
    return best;
  }

  std::optional<FrontierStep> step_with(std::size_t place) {
    std::set<std::size_t> places = gone_;
    places.insert(place);
    std::optional<RecomputeGroup> alone = group(places);
    if (!alone) return std::nullopt;
    std::set<std::size_t> more = places;
    for (std::size_t other = 0; other < pass_.interior.size(); ++other)
      if (!refused_[other] &&
          std::find(alone->ops.begin(), alone->ops.end(), saved(other).written_by) != alone->ops.end())
        more.insert(other);
    if (std::optional<RecomputeGroup> together = group(more); together && together->time <= alone->time) {
      alone = std::move(together);
      places = std::move(more);
    }
    FrontierStep step;
    step.time = alone->time - time_;
    for (const std::size_t joins : places)
      if (!gone_.contains(joins)) {
        step.tensors.push_back(joins);
        step.bytes += saved(joins).bytes;
      }
    return step;
  }

  RecomputeIndex& index_;
  const LayerPass& pass_;
  Bytes least_;
  AwayUntil none_;
  std::vector<bool> refused_;
  std::set<std::size_t> gone_;
  Picos time_{};
};

}  // namespace

std::vector<FrontierStep> layer_frontier(RecomputeIndex& index, const LayerPass& pass, Bytes least) {
  return Frontier(index, pass, least).run();
}

const std::vector<FrontierStep>& FrontierCache::of(const LayerPass& pass) {
  const Ops& ops = index_.trace().ops;
  std::vector<std::int64_t> key;
  for (const std::size_t t : pass.interior) {
    const SavedTensor& saved = index_.saved()[t];
    const std::size_t writer = index_of(saved.written_by);
    key.insert(key.end(), {saved.bytes.count(), static_cast<std::int64_t>(ops.name[writer]),
                           ops.duration[writer].count(), ops.duration[index_of(saved.first_backward)].count()});
  }
  for (const auto& [known, steps] : known_)
    if (known == key) return steps;
  known_.emplace_back(std::move(key), layer_frontier(index_, pass, least_));
  return known_.back().second;
}

}  // namespace spillway::planners
