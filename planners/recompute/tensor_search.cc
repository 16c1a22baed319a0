#include "planners/recompute/tensor_search.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace spillway::planners {
namespace {

class TensorSearch {
 public:
  TensorSearch(RecomputeIndex& index, const RecomputeCase& start, const ReplayAway& replay,
               const TensorSearchLimits& limits)
      : index_(index), replay_(replay), limits_(limits), best_(start), best_away_(away_of(start.plan, index)) {
    choose();
  }

  RecomputeCase run() {
    if (choice_.size() <= most_searched) {
      away_ = nothing_away(index_);
      descend(0, Picos(0));
    } else {
      improve();
    }
    return std::move(best_);
  }

 private:
  void choose() {
    const AwayUntil none = nothing_away(index_);
    std::map<std::size_t, OpId> moments;
    for (std::size_t t = 0; t < index_.saved().size(); ++t) {
      const SavedTensor& saved = index_.saved()[t];
      if (saved.bytes < limits_.least || saved.last_forward == saved.first_backward) continue;
      if (!index_.group(std::array{t}, none)) continue;
      choice_.push_back(t);
      moments.emplace(index_.position(saved.first_backward), saved.first_backward);
    }
    for (const std::size_t t : choice_) {
      const SavedTensor& saved = index_.saved()[t];
      std::vector<OpId>& times = times_.emplace_back();
      for (const auto& [position, op] : moments)
        if (position > index_.position(saved.last_forward) && position <= index_.position(saved.first_backward) &&
            rank_of(op) == saved.rank)
          times.push_back(op);
      std::reverse(times.begin(), times.end());  // its own use first
    }
  }
  [[nodiscard]] std::uint16_t rank_of(OpId op) const {
    const Trace& trace = index_.trace();
    return trace.lanes[index_of(trace.ops.lane[index_of(op)])].rank;
  }
  [[nodiscard]] Picos writing(std::size_t t) const {
    const Picos time = index_.trace().ops.duration[index_of(index_.saved()[t].written_by)];
    return time == unknown_time ? Picos(0) : time;
  }
  [[nodiscard]] bool is_used_up() const { return leaves_ >= limits_.leaves || replays_ >= limits_.replays; }

  // What has gone takes at least as long as its writers, of which no two tensors share one here.
  void descend(std::size_t at, Picos least) {
    if (is_used_up() || (best_.may_fit() && least >= best_.again)) return;
    if (at == choice_.size()) {
      look(away_);
      return;
    }
    const std::size_t t = choice_[at];
    const bool is_written_already =
        std::any_of(choice_.begin(), choice_.begin() + static_cast<std::ptrdiff_t>(at), [&](std::size_t other) {
          return away_[other] != OpId::none && index_.saved()[other].written_by == index_.saved()[t].written_by;
        });
    const Picos with = is_written_already ? least : least + writing(t);
    for (const OpId time : times_[at]) {
      away_[t] = time;
      descend(at + 1, with);
    }
    away_[t] = OpId::none;
    descend(at + 1, least);
  }

  // A closure that takes longer than the best plan's isn't replayed. True when it is the best now.
  bool look(const AwayUntil& away) {
    if (is_used_up()) return false;
    ++leaves_;
    AwayUntil asked = away;
    Picos again{};
    for (const RecomputeGroup& group : index_.groups(asked)) again += group.time;
    if (asked != away || (best_.may_fit() && again >= best_.again)) return false;
    ++replays_;
    RecomputeCase found = replay_(asked);
    if (!is_preferred(found, best_)) return false;
    best_ = std::move(found);
    best_away_ = std::move(asked);
    return true;
  }

  void improve() {
    for (bool better = true; better && !is_used_up();) {
      better = false;
      for (std::size_t at = 0; at < choice_.size(); ++at) better |= improve(at);
    }
  }
  bool improve(std::size_t at) {
    const std::size_t t = choice_[at];
    const auto changed = [&](OpId time) {
      if (best_away_[t] == time) return false;
      AwayUntil away = best_away_;
      away[t] = time;
      return look(away);
    };
    bool better = changed(OpId::none);
    for (const OpId time : times_[at]) better |= changed(time);
    return better;
  }

  RecomputeIndex& index_;
  const ReplayAway& replay_;
  const TensorSearchLimits& limits_;
  RecomputeCase best_;
  AwayUntil best_away_, away_;
  std::vector<std::size_t> choice_;       // saved tensors
  std::vector<std::vector<OpId>> times_;  // by choice: where it may come back
  std::int64_t leaves_ = 0, replays_ = 0;
};

}  // namespace

RecomputeCase search_tensors(RecomputeIndex& index, const RecomputeCase& start, const ReplayAway& replay,
                             const TensorSearchLimits& limits) {
  return TensorSearch(index, start, replay, limits).run();
}

AwayUntil away_of(const OffloadPlan& plan, const RecomputeIndex& index) {
  std::map<std::uint32_t, OpId> until;
  for (const Absence& absence : plan.absences)
    until[index.trace().tensors.storage[index_of(absence.tensor)]] =
        absence.fetch_at == OpId::none ? absence.back_before : absence.fetch_at;
  AwayUntil away = nothing_away(index);
  for (std::size_t t = 0; t < away.size(); ++t)
    if (const auto found = until.find(index.saved()[t].storage); found != until.end()) away[t] = found->second;
  return away;
}

bool is_preferred(const RecomputeCase& a, const RecomputeCase& b) {
  if (a.may_fit() != b.may_fit()) return a.may_fit();
  if (!a.may_fit()) return a.result.memory.excess() < b.result.memory.excess();
  return a.result.step_time < b.result.step_time;
}

}  // namespace spillway::planners
