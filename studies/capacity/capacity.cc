#include "studies/capacity/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/parallel.h"
#include "studies/capacity/capacity_trial.h"
#include "studies/capacity/edge_search.h"

namespace spillway::studies {
namespace {

constexpr int most_planned = 1;  // ways found by planning, one from the other's end

class Technique {
 public:
  Technique(const CapacityRequest& request, const CapacityTechnique& technique, SharedMachines& machines,
            std::function<bool(std::int64_t)> progress)
      : request_(request), technique_(technique), machines_(machines), progress_(std::move(progress)) {}

  // Each value once.
  const CapacityTrial& attempt(std::int64_t value) {
    if (const auto known = trials_.find(value); known != trials_.end()) return known->second;
    if (progress_ && !progress_(value)) throw Cancelled{};
    return trials_[value] = judge_value(request_, technique_, value, machines_, request_.layouts.searched);
  }

  // With the whole reserve kept free; where no value holds so, what is tight counts.
  CapacityAnswer find() {
    CapacityAnswer answer = search(false);
    const bool any_tight =
        std::any_of(trials_.begin(), trials_.end(), [](const auto& each) { return each.second.only_tight; });
    return answer.best || !any_tight ? answer : search(true);
  }

 private:
  CapacityAnswer search(bool takes_tight) {
    CapacityAnswer answer;
    answer.technique = technique_;
    const CapacityAxis& axis = request_.axis;
    const bool is_largest = axis.goal == CapacityGoal::largest;
    const VerdictEdge edge = find_edge(axis.index(axis.first), axis.count(), [&](std::int64_t index) {
      const CapacityTrial& trial = attempt(axis.value(index));
      const bool holds = trial.holds || (takes_tight && trial.only_tight);
      EdgeTrial side{holds == is_largest, std::nullopt};
      if (takes_tight) return side;
      if (const std::optional<double> missing = missing_memory(trial)) side.measure = is_largest ? *missing : -*missing;
      return side;
    });
    answer.is_monotone = edge.is_monotone;
    answer.trials = edge.trials;
    for (const auto& [value, trial] : trials_) answer.replays += trial.replayed ? 1 : 0;
    const auto& holds = is_largest ? edge.lower : edge.upper;
    const auto& fails = is_largest ? edge.upper : edge.lower;
    if (holds) answer.best = held(shown(trials_.at(axis.value(*holds))));
    if (fails) answer.beyond = shown(trials_.at(axis.value(*fails)));
    const bool never_ran = std::all_of(trials_.begin(), trials_.end(), [&](const auto& each) {
      return each.second.needed() == Bytes(0) && (each.second.at_fault || !request_.layouts.searched);
    });
    if (!answer.best && never_ran && answer.beyond) answer.refused = answer.beyond->why_not;
    return answer;
  }

  // Of memory, where that is what decides.
  [[nodiscard]] std::optional<double> missing_memory(const CapacityTrial& trial) const {
    if (trial.needed() == Bytes(0) || trial.capacity() == Bytes(0)) return std::nullopt;
    if (request_.layouts.searched) return std::nullopt;  // the fastest layout, not the one that needs least
    const double missing = -static_cast<double>(trial.free().count());
    if (!trial.replayed || (missing > 0) == trial.holds) return std::nullopt;
    return missing;
  }

  static CapacityTrial held(CapacityTrial trial) {
    trial.holds = true;
    trial.why_not.clear();
    return trial;
  }

  [[nodiscard]] CapacityTrial shown(const CapacityTrial& trial) const {
    const bool is_whole = request_.layouts.searched || !trial.replayed;
    return is_whole ? trial : judge_value(request_, technique_, trial.value, machines_, true);
  }

  const CapacityRequest& request_;
  const CapacityTechnique& technique_;
  SharedMachines& machines_;
  std::function<bool(std::int64_t)> progress_;
  std::map<std::int64_t, CapacityTrial> trials_;
};

}  // namespace

std::string CapacityAnswer::binding() const {
  if (!refused.empty() || !beyond) return "";
  const bool is_one = beyond->layouts_replayed == 0 || !beyond->layout.empty();  // else of many layouts
  const bool by_memory = is_one && beyond->replayed && beyond->free() < Bytes(0) && beyond->capacity() > Bytes(0);
  if (!by_memory) return beyond->why_not;
  const std::vector<PeakOwner> owners = beyond->owners();
  if (owners.empty()) return "memory";
  const PeakOwner& largest = owners.front();
  std::string name = largest.name;
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("{} ({:.0f} % of the peak)", name,
                     100 * static_cast<double>(largest.bytes.count()) / static_cast<double>(beyond->needed().count()));
}

namespace {

// Whether `a` is the better answer.
bool goes_farther(const CapacityRequest& request, const CapacityTrial& a, const CapacityTrial& b) {
  const bool is_smallest = request.axis.goal == CapacityGoal::smallest;
  const auto usd = [](const CapacityTrial& trial) { return trial.usd.value_or(1e300); };
  if (a.only_tight != b.only_tight) return b.only_tight;
  if (request.is_priced && is_smallest && usd(a) != usd(b)) return usd(a) < usd(b);
  if (a.value != b.value) return is_smallest ? a.value < b.value : a.value > b.value;
  if (request.is_priced && usd(a) != usd(b)) return usd(a) < usd(b);
  return a.row.result.step_time < b.row.result.step_time;
}

std::optional<std::size_t> farthest(const CapacityRequest& request, const std::vector<CapacityAnswer>& answers) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i].best && (!best || goes_farther(request, *answers[i].best, *answers[*best].best))) best = i;
  return best;
}

}  // namespace

namespace {

// Whether settings are of what a plan decides anyway.
bool is_of_plans(const std::vector<std::string>& settings) {
  return std::all_of(settings.begin(), settings.end(), [](const std::string& setting) {
    return setting.starts_with("model.recompute=") || setting.starts_with("offload.");
  });
}

// By which a run does what a planned trial did: the technique's settings, and those found for it.
CapacityTechnique way_of(const CapacityRequest& request, const CapacityTechnique& planned, const CapacityTrial& trial) {
  CapacityTechnique way{{planned.name, planned.edits}, planned.words};
  const std::vector<std::string>& edits = trial.row.candidate.edits;
  const std::size_t before = request.settings.size() + planned.edits.size() + 1;  // and the axis
  way.edits.insert(way.edits.end(), edits.begin() + static_cast<std::ptrdiff_t>(before), edits.end());
  return way;
}

// The best plan of all under a technique's settings, at one value; then, where it holds, its way along the axis.
std::optional<CapacityAnswer> way_from(const CapacityRequest& request, const CapacityTechnique& planned,
                                       std::int64_t value, SharedMachines& machines,
                                       const std::function<bool(std::int64_t)>& ask) {
  if (!ask(value)) throw Cancelled{};
  const CapacityTrial trial = judge_value(request, planned, value, machines);
  if (!trial.holds && !trial.only_tight) return std::nullopt;
  CapacityRequest from_there = request;
  from_there.axis.first = value;
  return Technique(from_there, way_of(request, planned, trial), machines, ask).find();
}

// What wins with few replays may lose to a mix that a run finds with all of its own: at the end they are all tried.
std::optional<CapacityAnswer> answer_from(const CapacityRequest& request, const CapacityTechnique& planned,
                                          std::int64_t value, SharedMachines& machines,
                                          const std::function<bool(std::int64_t)>& ask) {
  std::optional<CapacityAnswer> quick = way_from(request, planned, value, machines, ask);
  if (!quick || !quick->best) return quick;
  CapacityTechnique thorough = planned;
  thorough.is_thorough = true;
  std::optional<CapacityAnswer> answer = way_from(request, thorough, quick->best->value, machines, ask);
  return answer && answer->best && goes_farther(request, *answer->best, *quick->best) ? answer : quick;
}

// One value beyond the farthest answer, else at it for a faster step. Nothing where that does no better.
std::optional<CapacityAnswer> beyond_the_named(const CapacityRequest& request, const CapacityTechnique& planned,
                                               const std::optional<CapacityAnswer>& farthest, SharedMachines& machines,
                                               const std::function<bool(std::int64_t)>& ask) {
  const CapacityAxis& axis = request.axis;
  std::vector<std::int64_t> values;
  if (!farthest)
    values = {axis.value(axis.goal == CapacityGoal::largest ? 0 : axis.count() - 1)};
  else if (farthest->beyond)
    values = {farthest->beyond->value, farthest->best->value};
  else
    values = {farthest->best->value};
  for (const std::int64_t value : values) {
    std::optional<CapacityAnswer> answer = answer_from(request, planned, value, machines, ask);
    if (answer && answer->best && (!farthest || goes_farther(request, *answer->best, *farthest->best))) return answer;
  }
  return std::nullopt;
}

// Alone, and on what the farthest answer sets besides; from each that does better once more.
void add_planned(const CapacityRequest& request, CapacityOutcome& outcome, SharedMachines& machines,
                 const CapacityProgress& progress) {
  const std::string word(planned_technique);
  outcome.best = farthest(request, outcome.answers);
  const std::string words = "the best plan of all";
  std::vector<CapacityTechnique> all = {{{word, {}}, words, true}};
  if (outcome.best) {
    const CapacityTechnique& now = outcome.answers[*outcome.best].technique;
    if (!is_of_plans(now.edits)) all.push_back({{now.name + "+" + word, now.edits}, now.words + ", " + words, true});
  }
  for (CapacityTechnique& planned : all)
    for (int round = 0; round < most_planned; ++round) {
      std::optional<CapacityAnswer> now;
      if (outcome.best) now = outcome.answers[*outcome.best];
      if (round > 0) {
        planned.name = word + " " + std::to_string(round + 1);
        planned.words = words + ", round " + std::to_string(round + 1);
      }
      const auto ask = [&](std::int64_t value) { return !progress || progress(planned.words, value); };
      try {
        auto better = beyond_the_named(request, planned, now, machines, ask);
        if (!better) break;
        outcome.answers.push_back(std::move(*better));
      } catch (const Cancelled&) {
        outcome.interrupted = true;
        return;
      }
      outcome.best = farthest(request, outcome.answers);
    }
}

}  // namespace

bool CapacityOutcome::any() const {
  return std::any_of(answers.begin(), answers.end(), [](const CapacityAnswer& each) { return each.best.has_value(); });
}

bool CapacityOutcome::is_in_doubt() const {
  return !any() && std::any_of(answers.begin(), answers.end(), [](const CapacityAnswer& each) {
    return each.beyond && each.beyond->row.result.is_in_doubt();
  });
}

CapacityOutcome find_capacity(const CapacityRequest& request, const CapacityProgress& progress) {
  CapacityOutcome outcome;
  SharedMachines machines;
  outcome.answers.resize(request.techniques.size());
  std::mutex one_at_a_time;
  std::atomic<bool> stopped = false;
  in_parallel(request.techniques.size(), [&](std::size_t i) {
    const CapacityTechnique& technique = request.techniques[i];
    outcome.answers[i].technique = technique;
    const auto ask = [&](std::int64_t value) {
      const std::lock_guard lock(one_at_a_time);
      if (!stopped && progress && !progress(technique.words, value)) stopped = true;
      return !stopped;
    };
    try {
      outcome.answers[i] = Technique(request, technique, machines, ask).find();
    } catch (const Cancelled&) {
      outcome.answers[i].refused = "interrupted";
      stopped = true;
    }
  });
  outcome.interrupted = stopped;
  if (request.is_open && !outcome.interrupted) add_planned(request, outcome, machines, progress);
  outcome.best = farthest(request, outcome.answers);
  if (outcome.best && !outcome.interrupted) {
    CapacityAnswer& best = outcome.answers[*outcome.best];
    try {
      best.changes = try_changes(request, best, machines);
    } catch (const Cancelled&) {
      outcome.interrupted = true;
    }
  }
  const auto& answers = outcome.answers;
  const bool all_refused =
      std::all_of(answers.begin(), answers.end(), [](const CapacityAnswer& each) { return !each.refused.empty(); });
  if (all_refused && !outcome.interrupted)
    throw InputError(request.path, request.axis.key, answers.front().refused,
                     answers.size() == 1 ? "change the scenario, or take another technique"
                                         : "change the scenario: every technique is refused");
  return outcome;
}

}  // namespace spillway::studies
