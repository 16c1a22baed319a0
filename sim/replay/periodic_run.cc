#include "sim/replay/periodic_run.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/stop.h"
#include "sim/engine/fingerprint.h"

namespace spillway::sim {
namespace {

constexpr std::uint32_t least_alike = 3;  // periods that come again a turn later
constexpr std::uint32_t margin = 3;       // that a window had better have besides

}  // namespace

PeriodicRun::PeriodicRun(const Trace& trace, const StepFold& fold, const ActivityGraph& graph, std::span<const OpId> op,
                         std::span<const Picos> start, std::span<const Picos> end)
    : trace_(trace), graph_(graph), op_(op), start_(start), end_(end) {
  place_.assign(graph.size(), 0);
  Refused refused = graph.capacity_changes().empty() ? index_ranks(fold) : "links change by the clock";
  if (refused == nullptr) refused = index_lanes();
  if (refused != nullptr)
    refusal_ = {.why = refused};
  else
    find_turns(fold.times);
}

// Windows may lie within one turn, and those of a multiple of the turns are windows too: the first turns are taken
// whose windows allow a cut, and told are those whose windows reach to the end and are the longest.
void PeriodicRun::find_turns(std::int64_t times) {
  FoldRefusal seen{.why = "periods do not become equal"};
  std::uint32_t longest = 0;
  for (turns_ = 1; turns_ <= most_turns; ++turns_) {
    check_stop();
    if (!find_windows()) continue;
    if (const std::uint32_t length = least_to_the_end(); length > longest) {
      longest = length;
      if (turns_ > 1) seen = {seen.why, turns_, missing()};
    }
    if (times % turns_ != 0) continue;
    times_ = times / turns_;
    const Refused refused = find_cut();
    if (refused == nullptr) return;
    seen.why = refused;
  }
  refusal_ = seen;
}

// Periods by which the windows are too short for a turn that is repeated and one of what it waits for.
std::int64_t PeriodicRun::missing() const {
  std::int64_t most = 0;
  for (const Rank& rank : ranks_)
    most = std::max(most, std::int64_t{rank.first} + std::int64_t{2} * turns_ + margin - rank.last);
  return most;
}

// How many periods come again a turn later on the rank where the fewest do; 0 where some do not to the end.
std::uint32_t PeriodicRun::least_to_the_end() const {
  std::uint32_t least = none;
  for (const Rank& rank : ranks_)
    least = std::min(least, rank.last + 1 == rank.shown.periods ? rank.last + 1 - rank.first - turns_ : 0);
  return least;
}

// What a backward waits for may be from as many periods ago as the pipeline is deep, so a late cut is tried first; what
// comes next on other ranks must be regular yet.
PeriodicRun::Refused PeriodicRun::find_cut() {
  Refused refused = nullptr;
  for (const std::int64_t before_the_end : {2, 4, 8}) {
    check_stop();
    refused = cut(before_the_end);
    if (refused == nullptr) refused = check_edges();
    if (refused == nullptr) refused = check_periods();
    if (refused == nullptr) refused = check_flows();
    if (refused == nullptr) break;
  }
  return refused;
}

PeriodicRun::Refused PeriodicRun::index_ranks(const StepFold& fold) {
  std::uint32_t op = 0;
  for (std::size_t r = 0; r < fold.ranks.size(); ++r) {
    Rank& rank = ranks_.emplace_back();
    rank.shown = fold.ranks[r];
    rank.first_op = op;
    while (op < trace_.ops.size() && trace_.lanes[index_of(trace_.ops.lane[op])].rank == r) ++op;
    rank.end_op = op;
  }
  return op == trace_.ops.size() ? nullptr : "ranks are mixed";
}

PeriodicRun::Refused PeriodicRun::index_lanes() {
  lanes_.assign(graph_.lane_count(), {});
  for (std::uint32_t a = 0; a < graph_.size(); ++a) {
    if (graph_.lane(a) == no_lane) return "something runs on no lane";
    std::vector<std::uint32_t>& activities = lanes_[index(graph_.lane(a))].activities;
    if (!activities.empty() && op_[activities.back()] > op_[a]) return "a lane is not in the order of ops";
    place_[a] = static_cast<std::uint32_t>(activities.size());
    activities.push_back(a);
  }
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
    LaneOrder& lane = lanes_[l];
    if (lane.activities.empty()) continue;
    if (graph_.lane_width(TrackId{l}) > 1) return "a lane runs several at once";
    lane.rank = rank_of(op_[lane.activities.front()]);
    const StepFold::Rank& shown = ranks_[lane.rank].shown;
    for (std::uint32_t k = 0; k <= shown.periods; ++k) {
      const OpId from{shown.op + k * shown.ops};
      const auto at = std::lower_bound(lane.activities.begin(), lane.activities.end(), from,
                                       [this](std::uint32_t a, OpId wanted) { return op_[a] < wanted; });
      lane.period_first.push_back(static_cast<std::uint32_t>(at - lane.activities.begin()));
    }
  }
  return nullptr;
}

// The longest stretches of periods, each a constant time behind the one a turn before, the same on all ranks. False
// where one is not seen at all.
bool PeriodicRun::find_windows() {
  constexpr Picos no_time = Picos::max();
  std::vector<std::vector<Picos>> behind;  // by rank and period: of the one a turn later
  for (const Rank& rank : ranks_)
    behind.emplace_back(rank.shown.periods <= turns_ ? 0 : rank.shown.periods - turns_, unknown_time);
  for (const LaneOrder& lane : lanes_) {
    if (lane.activities.empty()) continue;
    for (std::size_t k = 0; k < behind[lane.rank].size(); ++k) {
      Picos& time = behind[lane.rank][k];
      const std::uint32_t one = lane.period_first[k], count = lane.period_first[k + 1] - one;
      const std::uint32_t later = lane.period_first[k + turns_];
      if (lane.period_first[k + turns_ + 1] - later != count) time = no_time;
      for (std::uint32_t i = 0; i < count && time != no_time; ++i) {
        const std::uint32_t a = lane.activities[one + i], b = lane.activities[later + i];
        if (time == unknown_time) time = start_[b] - start_[a];
        const auto ops = static_cast<std::uint32_t>(op_[b]) - static_cast<std::uint32_t>(op_[a]);
        if (start_[b] - start_[a] != time || end_[b] - end_[a] != time || ops != turns_ * ranks_[lane.rank].shown.ops)
          time = no_time;
      }
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const std::vector<Picos>& times = behind[r];
    std::uint32_t best = 0, from = 0;
    for (std::uint32_t k = 0; k < times.size(); ++k) {
      if (k > 0 && times[k] != times[k - 1]) from = k;
      const bool counts = times[k] != no_time && times[k] != unknown_time && (r == 0 || times[k] == period_);
      if (!counts || k - from + 1 <= best) continue;
      best = k - from + 1;
      ranks_[r].first = from;
      ranks_[r].last = k + turns_;
      if (r == 0) period_ = times[k];
    }
    if (best < least_alike) return false;
  }
  return true;
}

// So many of the fold's periods before the end of the time that all windows have in common.
PeriodicRun::Refused PeriodicRun::cut(std::int64_t before_the_end) {
  std::vector<std::vector<Picos>> begins, ends;  // by rank and period
  for (const Rank& rank : ranks_) {
    begins.emplace_back(rank.shown.periods, Picos::max());
    ends.emplace_back(rank.shown.periods, Picos(0));
  }
  for (const LaneOrder& lane : lanes_)
    for (std::size_t k = 0; k + 1 < lane.period_first.size(); ++k)
      for (std::uint32_t i = lane.period_first[k]; i < lane.period_first[k + 1]; ++i) {
        begins[lane.rank][k] = std::min(begins[lane.rank][k], start_[lane.activities[i]]);
        ends[lane.rank][k] = std::max(ends[lane.rank][k], end_[lane.activities[i]]);
      }
  Picos from{}, until = Picos::max();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    from = std::max(from, ends[r][ranks_[r].first]);
    until = std::min(until, begins[r][ranks_[r].last]);
  }
  const Picos wanted = until - period_ / turns_ * before_the_end;
  if (from >= wanted) return "ranks are not regular at one time";
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.cut = rank.first + turns_ + 1;  // what is repeated is compared with the period before it
    while (rank.cut < rank.last && begins[r][rank.cut] < wanted) ++rank.cut;
  }
  return nullptr;
}

// A target waits for `source` until `ready` in the replay.
PeriodicRun::Refused PeriodicRun::check_one(std::uint32_t source, std::uint32_t target, Picos ready) {
  const bool after = is_after(op_[target]);
  if (!after && !is_repeated(op_[target])) {
    return is_after(op_[source]) && !in_window(source) ? "what comes before waits for the end" : nullptr;
  }
  const bool moves = in_window(source) || (after && is_after(op_[source]));
  if (!moves && !stands_alone(op_[source])) return "something waits for what was before it was regular";
  if (!moves && is_after(op_[source])) return "what is repeated waits for the end";
  if (moves && ready == start_[target]) held_by_moving_[target] = true;
  return nullptr;
}

PeriodicRun::Refused PeriodicRun::check_edges() {
  held_by_moving_.assign(graph_.size(), false);
  for (std::uint32_t a = 0; a < graph_.size(); ++a) {
    for (const ActivityGraph::Edge& edge : graph_.edges(a))
      if (const Refused refused =
              check_one(a, edge.target, (edge.type == EdgeType::end_to_start ? end_[a] : start_[a]) + edge.lag))
        return refused;
    if (const auto next = index(graph_.lane_next(a)); next < graph_.size())
      if (const Refused refused = check_one(a, next, end_[a] + graph_.gap(next))) return refused;
    if (graph_.release(a) > Picos(0) && (is_after(op_[a]) || in_window(a))) return "something waits for the clock";
  }
  for (std::uint32_t a = 0; a < graph_.size(); ++a)
    if ((is_after(op_[a]) || is_repeated(op_[a])) && !held_by_moving_[a])
      return "something is held by what does not move along, or by nothing";
  held_by_moving_ = {};
  return nullptr;
}

// Each period that is repeated is the same piece of the graph as the one before it.
PeriodicRun::Refused PeriodicRun::check_periods() const {
  // Of an activity's sources: lane, place in the period, how many periods before; or which one.
  using Source = std::array<std::int64_t, 5>;
  std::map<std::uint32_t, std::vector<Source>> sources;  // by target
  const auto is_compared = [this](std::uint32_t a) {
    const Rank& rank = ranks_[rank_of(op_[a])];
    const std::uint32_t k = period_of(op_[a], rank);
    return k != none && k < rank.cut && k + turns_ + 1 >= rank.cut;
  };
  for (std::uint32_t a = 0; a < graph_.size(); ++a)
    for (const ActivityGraph::Edge& edge : graph_.edges(a)) {
      if (!is_compared(edge.target)) continue;
      const Rank &from = ranks_[rank_of(op_[a])], &to = ranks_[rank_of(op_[edge.target])];
      const std::uint32_t k = period_of(op_[a], from);
      const auto type = static_cast<std::int64_t>(edge.type);
      if (k == none) {
        sources[edge.target].push_back({-1, a, 0, edge.lag.count(), type});
      } else {
        const auto lane = index(graph_.lane(a));
        sources[edge.target].push_back({lane, place_[a] - lanes_[lane].period_first[k],
                                        std::int64_t{period_of(op_[edge.target], to)} - k, edge.lag.count(), type});
      }
    }
  for (const LaneOrder& lane : lanes_) {
    if (lane.activities.empty()) continue;
    const std::uint32_t cut = ranks_[lane.rank].cut, from = lane.period_first[cut - turns_];
    const std::uint32_t ops = from - lane.period_first[cut - turns_ - 1];
    for (std::uint32_t k = cut - turns_; k < cut; ++k)
      if (lane.period_first[k + 1] - lane.period_first[k] != ops) return "periods differ";
    for (std::uint32_t i = from; i < lane.period_first[cut]; ++i) {
      const std::uint32_t a = lane.activities[i - ops], b = lane.activities[i];
      std::vector<Source>&one = sources[a], &other = sources[b];
      std::sort(one.begin(), one.end());
      std::sort(other.begin(), other.end());
      bool same = one == other && graph_.work(a) == graph_.work(b) && graph_.kind(a) == graph_.kind(b) &&
                  graph_.gap(a) == graph_.gap(b);
      if (same && graph_.kind(a) == ActivityKind::flow)
        same = graph_.flow(a).path == graph_.flow(b).path && graph_.flow(a).cap == graph_.flow(b).cap &&
               graph_.flow(a).weight == graph_.flow(b).weight;
      if (!same) return "periods differ";
    }
  }
  return nullptr;
}

// Copies that run at one time share what they cross: they must move together, or else come again all at one time.
PeriodicRun::Refused PeriodicRun::check_flows() const {
  std::vector<std::uint32_t> flows;
  for (std::uint32_t a = 0; a < graph_.size(); ++a)
    if (graph_.kind(a) == ActivityKind::flow) flows.push_back(a);
  std::sort(flows.begin(), flows.end(), [this](std::uint32_t a, std::uint32_t b) { return start_[a] < start_[b]; });
  for (std::size_t i = 0; i < flows.size();) {
    Picos until = end_[flows[i]];
    std::size_t behind = i + 1;
    for (; behind < flows.size() && start_[flows[behind]] < until; ++behind)
      until = std::max(until, end_[flows[behind]]);
    for (std::size_t j = i + 1; j < behind; ++j)
      if (is_after(op_[flows[j]]) != is_after(op_[flows[i]]) ||
          is_repeated(op_[flows[j]]) != is_repeated(op_[flows[i]]))
        return check_flows_of_one_time(flows);
    i = behind;
  }
  return nullptr;
}

// At some time, and for a period before, copies of the windows alone are at work: in the whole step those of the
// periods put in meet each other as these do.
PeriodicRun::Refused PeriodicRun::check_flows_of_one_time(std::span<const std::uint32_t> flows) const {
  Times times;
  for (const std::uint32_t a : flows) narrow(times, op_[a], start_[a], end_[a]);
  return times.earliest > times.latest ? "copies of different periods share a link" : nullptr;
}

// To where this work is one that comes again, or is over for a period, or has not begun.
void PeriodicRun::narrow(Times& times, OpId op, Picos start, Picos end) const {
  const Rank& rank = ranks_[rank_of(op)];
  const auto i = static_cast<std::uint32_t>(op);
  const std::uint32_t first = rank.shown.op + rank.first * rank.shown.ops;
  const std::uint32_t behind = rank.shown.op + (rank.last + 1) * rank.shown.ops, ops = turns_ * rank.shown.ops;
  if (i < first)
    times.earliest = std::max(times.earliest, end + period_);
  else if (i < first + ops)
    times.earliest = std::max(times.earliest, end);
  if (i >= behind)
    times.latest = std::min(times.latest, start);
  else if (i + ops >= behind)
    times.latest = std::min(times.latest, start + period_);
}

std::vector<Picos> PeriodicRun::first_times(std::span<const Picos> of_op) const {
  std::vector<Picos> times(of_op.begin(), of_op.end());
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    const std::uint32_t ops = turns_ * rank.shown.ops;
    for (std::uint32_t i = rank.cut_op(); i < rank.end_op; ++i) {
      std::int64_t later = times_;
      std::uint32_t like = i;
      if (i < rank.shown.end()) {
        later = std::min<std::int64_t>((i - rank.cut_op()) / ops + 1, times_);
        like = i - static_cast<std::uint32_t>(later) * ops;
      }
      if (of_op[like] != unknown_time) times[i] = of_op[like] + period_ * later;
    }
  }
  return times;
}

std::uint64_t PeriodicRun::fingerprint() const {
  std::vector<LaneDigest> lanes(lanes_.size() + 1);
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    const LaneOrder& lane = lanes_[l];
    LaneDigest before, repeated, after;
    for (const std::uint32_t a : lane.activities) {
      const auto add = [&](LaneDigest& digest) {
        digest.add(start_[a], end_[a] - start_[a], static_cast<std::uint32_t>(graph_.kind(a)));
      };
      add(is_after(op_[a]) ? after : before);
      if (is_repeated(op_[a])) add(repeated);
    }
    before.append(repeated.repeated(static_cast<std::uint64_t>(times_), period_), period_);
    before.append(after, longer());
    lanes[l] = before;
  }
  return sim::fingerprint(lanes);
}

std::vector<std::int64_t> PeriodicRun::runs() const {
  std::vector<std::int64_t> runs(trace_.ops.size());
  for (std::uint32_t i = 0; i < runs.size(); ++i) runs[i] = runs_of(OpId{i});
  return runs;
}

std::optional<PeriodicRun::Times> PeriodicRun::usual_times(std::size_t r, std::span<const Picos> op_start,
                                                           std::span<const Picos> op_end) const {
  Times times;
  for (std::uint32_t i = ranks_[r].first_op; i < ranks_[r].end_op; ++i)
    if (is_device_work(trace_.ops.kind[i]) && op_start[i] != unknown_time)
      narrow(times, OpId{i}, op_start[i], op_end[i]);
  if (times.earliest > times.latest) return std::nullopt;
  return times;
}

PeriodicRun::Place PeriodicRun::told(Place place) const {
  if (!in_window(place.activity)) return place;
  const Rank& rank = ranks_[rank_of(op_[place.activity])];
  const std::int64_t k = period_of(op_[place.activity], rank), among_all = k + place.later * turns_;
  std::int64_t wanted = among_all;
  if (among_all - times_ * turns_ >= rank.cut)
    wanted -= times_ * turns_;
  else if (among_all >= rank.cut)
    wanted = rank.cut - turns_ + (among_all - rank.cut) % turns_;
  const LaneOrder& lane = lanes_[index(graph_.lane(place.activity))];
  const std::uint32_t offset = place_[place.activity] - lane.period_first[static_cast<std::size_t>(k)];
  return {lane.activities[lane.period_first[static_cast<std::size_t>(wanted)] + offset], (among_all - wanted) / turns_};
}

}  // namespace spillway::sim
