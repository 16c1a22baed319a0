// PeriodicRun: what a replay of a folded step (traces/step_fold.h) says of the whole one, exactly.
//
//   shown   | before | period | period | period | after |
//                    '- every time T later than the one before: the window -'
//   whole   | before | period | period | period | period x times | after, times x T later |
//                                             ^ the cut, one place in the order of each rank
//
// Activities that last a given time start when the last of their constraints lets them. So a step without cycles has
// one solution, and times that satisfy every constraint are it. The whole step's times are written down as above, and
// the constraints are gone through for all that follows the cut or is repeated. Each source must move along: be in a
// window, or follow its cut. Otherwise it must be one that everything has long passed (setup, the first micro-batches),
// and the start may not have waited for it. Copies over links last as their shares make it. They must run alone, or
// among those that move with them, or at some time all be of windows. If any of that does not hold, refusal() says so.
//
// If the replay takes turns, T is the time of up to 32 of the fold's periods, and so many are put in at once. Window
// and cut still count the fold's periods.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/floors.h"
#include "base/units.h"
#include "sim/engine/activity_graph.h"
#include "traces/step_fold.h"
#include "traces/trace.h"

namespace spillway::sim {

class PeriodicRun {
 public:
  // By activity: the op it is part of, and when it ran. All are kept by reference. O(activities + edges).
  PeriodicRun(const Trace& trace, const StepFold& fold, const ActivityGraph& graph, std::span<const OpId> op,
              std::span<const Picos> start, std::span<const Picos> end);

  // If set, nothing else is known.
  [[nodiscard]] const std::optional<FoldRefusal>& refusal() const { return refusal_; }
  [[nodiscard]] std::int64_t times() const { return times_; }
  [[nodiscard]] Picos period() const { return period_; }
  [[nodiscard]] Picos longer() const { return period_ * times_; }
  // How much later the op runs in the whole step.
  [[nodiscard]] Picos shift_of(OpId op) const { return is_after(op) ? longer() : Picos(0); }
  // How often it runs there.
  [[nodiscard]] std::int64_t runs_of(OpId op) const { return is_repeated(op) ? 1 + times_ : 1; }
  // The same by op; empty where each runs once.
  [[nodiscard]] std::vector<std::int64_t> runs() const;

  // Periods of the fold that period() takes.
  [[nodiscard]] std::uint32_t turns() const { return turns_; }
  // The fold's periods of a rank that are alike, both within.
  struct Window {
    std::uint32_t first = 0, last = 0;
  };
  [[nodiscard]] Window window(std::size_t rank) const { return {ranks_[rank].first, ranks_[rank].last}; }
  static constexpr std::uint32_t none = 0xffffffffU;
  // The fold's period that the op is in; none: before or behind them all.
  [[nodiscard]] std::uint32_t period_of(OpId op) const { return period_of(op, ranks_[rank_of(op)]); }
  [[nodiscard]] bool in_window(OpId op) const {
    const Rank& rank = ranks_[rank_of(op)];
    const std::uint32_t k = period_of(op, rank);
    return k != none && k >= rank.first && k <= rank.last;
  }
  [[nodiscard]] std::size_t rank_of(OpId op) const {
    return trace_.lanes[index_of(trace_.ops.lane[index_of(op)])].rank;
  }
  // The op is in a shown period behind the cut: one of the last in the whole step. In a stream of events that is
  // repeated behind the last period shown, its period comes earlier.
  [[nodiscard]] bool is_moved(OpId op) const {
    return is_after(op) && static_cast<std::uint32_t>(op) < ranks_[rank_of(op)].shown.end();
  }
  // Times of ops in the whole step, from those of the replay. An op of a shown period behind the cut has its first run:
  // its period keeps the number that it has among those shown.
  [[nodiscard]] std::vector<Picos> first_times(std::span<const Picos> of_op) const;
  // Of the whole step (sim/engine/fingerprint.h).
  [[nodiscard]] std::uint64_t fingerprint() const;

  // Times of the replay at which only periods of the window are at work on the rank's devices, and were for a period
  // before. By op, as replayed. None where work of other periods reaches into all of them.
  struct Times {
    Picos earliest{}, latest = Picos::max();
  };
  [[nodiscard]] std::optional<Times> usual_times(std::size_t rank, std::span<const Picos> op_start,
                                                 std::span<const Picos> op_end) const;

  // An activity of the whole step: `later` periods behind one of the replay.
  struct Place {
    std::uint32_t activity = 0;
    std::int64_t later = 0;
  };
  // The same, told from the last period before the cut if it is one of the repeated, with later = 0 if it is before
  // them, and times() if after.
  [[nodiscard]] Place told(Place place) const;
  [[nodiscard]] bool is_inserted(Place place) const { return place.later > 0 && !is_after(op_[place.activity]); }
  // The same place, expressed by the last period before the cut if it is one of the repeated. `later` is 0 for places
  // before them, and times() for places after.
  [[nodiscard]] bool moves_along(std::uint32_t source, std::int64_t later) const {
    return later == 0 || is_after(op_[source]) || in_window(source);
  }

 private:
  struct Rank {
    StepFold::Rank shown;
    std::uint32_t first_op = 0, end_op = 0;
    std::uint32_t first = 0, last = 0, cut = 0;  // window's periods, both within; the first behind the cut
    [[nodiscard]] std::uint32_t cut_op() const { return shown.op + cut * shown.ops; }
  };
  static constexpr std::uint32_t most_turns = 32;

  // Why not, of static storage; null: nothing is in the way.
  using Refused = const char*;
  [[nodiscard]] Refused index_ranks(const StepFold& fold);
  [[nodiscard]] Refused index_lanes();
  void find_turns(std::int64_t times);
  [[nodiscard]] bool find_windows();
  [[nodiscard]] std::int64_t missing() const;
  [[nodiscard]] std::uint32_t least_to_the_end() const;
  [[nodiscard]] Refused find_cut();
  [[nodiscard]] Refused cut(std::int64_t before_the_end);
  [[nodiscard]] Refused check_edges();
  [[nodiscard]] Refused check_one(std::uint32_t source, std::uint32_t target, Picos ready);
  [[nodiscard]] Refused check_periods() const;
  [[nodiscard]] Refused check_flows() const;
  [[nodiscard]] Refused check_flows_of_one_time(std::span<const std::uint32_t> flows) const;
  void narrow(Times& times, OpId op, Picos start, Picos end) const;

  [[nodiscard]] std::uint32_t period_of(OpId op, const Rank& rank) const {  // none: not in one
    const auto i = static_cast<std::uint32_t>(op);
    return i < rank.shown.op || i >= rank.shown.end() ? none : (i - rank.shown.op) / rank.shown.ops;
  }
  [[nodiscard]] bool is_after(OpId op) const { return static_cast<std::uint32_t>(op) >= ranks_[rank_of(op)].cut_op(); }
  [[nodiscard]] bool is_repeated(OpId op) const {
    const Rank& rank = ranks_[rank_of(op)];
    const std::uint32_t k = period_of(op, rank);
    return k != none && k < rank.cut && k + turns_ >= rank.cut;
  }
  [[nodiscard]] bool in_window(std::uint32_t activity) const { return in_window(op_[activity]); }
  // Never a copy of another micro-batch's.
  [[nodiscard]] bool stands_alone(OpId op) const {
    const std::uint16_t micro_batch = trace_.ops.micro_batch[index_of(op)];
    return micro_batch == no_index16 || micro_batch < micro_batches_apart;
  }

  const Trace& trace_;
  const ActivityGraph& graph_;
  std::span<const OpId> op_;
  std::span<const Picos> start_, end_;
  std::vector<Rank> ranks_;
  struct LaneOrder {
    std::size_t rank = 0;
    std::vector<std::uint32_t> activities;
    std::vector<std::uint32_t> period_first;  // places of the periods' first activities, and behind the last
  };
  std::vector<LaneOrder> lanes_;
  std::vector<std::uint32_t> place_;  // on its lane, by activity
  std::vector<bool> held_by_moving_;  // by activity
  std::uint32_t turns_ = 1;           // the fold's periods that are repeated at once
  Picos period_{};                    // of all of them
  std::int64_t times_ = 0;
  std::optional<FoldRefusal> refusal_;
};

}  // namespace spillway::sim
