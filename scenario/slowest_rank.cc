#include "scenario/slowest_rank.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <utility>
#include <vector>

#include "models/session/communication.h"

namespace spillway::scenario {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

class Lateness {
 public:
  Lateness(const Trace& trace, const Jitter& jitter)
      : trace_(trace),
        sigma_(jitter.sigma),
        slow_(trace.lanes.size(), 1.0),
        meeting_of_(trace.ops.size(), none),
        lags_(trace.edges.size()) {
    for (const auto& [stage, factor] : jitter.slow_stages)
      for (std::size_t lane = 0; lane < slow_.size(); ++lane)
        if (trace.lanes[lane].rank == stage) slow_[lane] *= factor;
    note_collectives();
    if (meetings_.empty()) return;
    note_waits();
    carried_.resize(trace.lanes.size() * groups_);
    variance_.resize(trace.ops.size() * groups_);
    walk();
    if (trace.steps.size() > 1) return;
    for (std::size_t i = 0; i < trace.ops.size(); ++i)  // a lane's last op is the last to write
      std::copy_n(&variance_[i * groups_], groups_, &carried_[index_of(trace.ops.lane[i]) * groups_]);
    walk();
  }

  [[nodiscard]] bool is_complete() const { return is_complete_; }

  void write(Trace& trace) const {
    for (std::size_t e = 0; e < lags_.size(); ++e) trace.edges[e].lag += lags_[e];
    for (const Meeting& meeting : meetings_)
      if (meeting.after_call > Picos(0))
        trace.edges.push_back({.from = trace.ops.launched_by[index_of(meeting.op)],
                               .to = meeting.op,
                               .kind = EdgeKind::control,
                               .lag = meeting.after_call});
  }

 private:
  struct Meeting {
    OpId op = OpId::none;
    std::size_t group = 0;
    LargestOf largest{};
    Picos after_call{};
  };
  struct Wait {
    std::size_t to = 0, edge = none;  // none: of a lane's order, or a launch
  };

  [[nodiscard]] std::uint16_t rank_of(OpId op) const {
    return trace_.lanes[index_of(trace_.ops.lane[index_of(op)])].rank;
  }

  // A ring's step waits for a neighbour, and after a turn for all.
  [[nodiscard]] bool meets(const Collective& collective) const {
    const bool is_ring = trace_.strings.text(collective.group) == to_string(models::CommGroup::context);
    return collective.kind != CollectiveKind::receive && (collective.kind != CollectiveKind::send || is_ring);
  }

  void note_collectives() {
    std::map<OpId, std::set<std::uint16_t>> others;  // ranks that the trace has itself
    for (const Collective& collective : trace_.collectives)
      if (meets(collective) && collective.group_size != 1) others[collective.op];
    bool waits = false;
    for (const Edge& edge : trace_.edges) {
      const auto found = others.find(edge.to);
      if (found == others.end()) continue;
      waits = true;
      if (rank_of(edge.from) != rank_of(edge.to)) found->second.insert(rank_of(edge.from));
    }
    is_complete_ = waits || others.empty();
    std::map<StringId, std::size_t> groups;
    std::map<std::int64_t, LargestOf> largest;
    for (const Collective& collective : trace_.collectives) {
      const auto found = others.find(collective.op);
      if (found == others.end()) continue;
      if (collective.group_size == 0) is_complete_ = false;
      const std::int64_t here = static_cast<std::int64_t>(found->second.size()) + 1;
      const std::int64_t ranks = (static_cast<std::int64_t>(collective.group_size) + here - 1) / here;
      if (ranks < 2) continue;
      meeting_of_[index_of(collective.op)] = meetings_.size();
      const std::size_t group = groups.emplace(collective.group, groups.size()).first->second;
      if (largest.count(ranks) == 0) largest[ranks] = largest_of(ranks);
      meetings_.push_back({collective.op, group, largest[ranks], {}});
    }
    groups_ = groups.size();
  }

  // What waits for an op: the next of its lane, what it launches, and by edges.
  void note_waits() {
    const std::size_t count = trace_.ops.size();
    std::vector<std::pair<std::size_t, Wait>> waits;
    before_.assign(count, none);
    std::vector<std::size_t> last(trace_.lanes.size(), none);
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t& before = last[index_of(trace_.ops.lane[i])];
      before_[i] = std::exchange(before, i);
      if (before_[i] != none) waits.push_back({before_[i], {i}});
      if (const OpId by = trace_.ops.launched_by[i]; by != OpId::none) waits.push_back({index_of(by), {i}});
    }
    for (std::size_t e = 0; e < trace_.edges.size(); ++e)
      waits.push_back({index_of(trace_.edges[e].from), {index_of(trace_.edges[e].to), e}});
    first_.assign(count + 1, 0);
    for (const auto& [from, wait] : waits) ++first_[from + 1];
    for (std::size_t i = 0; i < count; ++i) first_[i + 1] += first_[i];
    std::vector<std::size_t> at(first_.begin(), first_.end() - 1);
    waits_.resize(waits.size());
    for (const auto& [from, wait] : waits) waits_[at[from]++] = wait;
  }

  [[nodiscard]] bool is_host(std::size_t op) const { return is_host_call(trace_.ops.kind[op]); }
  [[nodiscard]] bool varies(std::size_t op) const {
    return trace_.ops.kind[op] == OpKind::kernel &&
           trace_.lanes[index_of(trace_.ops.lane[op])].kind == LaneKind::stream;
  }
  // Without jitter; unknown: none.
  [[nodiscard]] Picos duration(std::size_t op) const {
    const Picos time = std::max(trace_.ops.duration[op], Picos(0));
    return varies(op) ? from_seconds(to_seconds(time) * slow_[index_of(trace_.ops.lane[op])]) : time;
  }

  // A host's own time between two calls.
  [[nodiscard]] Picos pause(std::size_t before, std::size_t op) const {
    if (!is_host(op) || trace_.ops.start[op] == unknown_time || trace_.ops.start[before] == unknown_time) return {};
    return std::max(trace_.ops.start[op] - trace_.ops.start[before] - duration(before), Picos(0));
  }

  // Ops in an order in which each follows what it waits for; what waits for itself is left out.
  void walk() {
    const std::size_t count = trace_.ops.size();
    std::vector<std::uint32_t> open(count, 0);
    for (const Wait& wait : waits_) ++open[wait.to];
    start_.assign(count, Picos(0));
    held_by_.assign(count, none);
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < count; ++i)
      if (open[i] == 0) ready.push_back(i);
    while (!ready.empty()) {
      const std::size_t op = ready.back();
      ready.pop_back();
      settle(op);
      for (std::size_t w = first_[op]; w < first_[op + 1]; ++w) {
        hold(op, waits_[w]);
        if (--open[waits_[w].to] == 0) ready.push_back(waits_[w].to);
      }
    }
  }

  // All it waits for has ended.
  void settle(std::size_t op) {
    double* own = &variance_[op * groups_];
    const bool is_first = before_[op] == none;
    const double* from = held_by_[op] != none ? &variance_[held_by_[op] * groups_]
                         : is_first           ? &carried_[index_of(trace_.ops.lane[op]) * groups_]
                                              : nullptr;
    if (from != nullptr)
      std::copy_n(from, groups_, own);
    else
      std::fill_n(own, groups_, 0.0);
    const bool varies =
        trace_.ops.kind[op] == OpKind::kernel && trace_.lanes[index_of(trace_.ops.lane[op])].kind == LaneKind::stream;
    if (varies)
      for (std::size_t g = 0; g < groups_; ++g) own[g] += std::pow(sigma_ * to_seconds(duration(op)), 2);
    if (meeting_of_[op] == none) return;
    const Meeting& meeting = meetings_[meeting_of_[op]];
    const double among = std::exchange(own[meeting.group], 0);
    for (std::size_t g = 0; g < groups_; ++g)
      if (g != meeting.group) own[g] -= (1 - meeting.largest.variance) * std::min(among, own[g]);
  }

  void hold(std::size_t op, const Wait& wait) {
    Picos lag = wait.edge != none ? trace_.edges[wait.edge].lag : Picos(0);
    const bool by_lane = wait.edge == none && before_[wait.to] == op;
    if (by_lane) lag = pause(op, wait.to);
    if (meeting_of_[wait.to] != none && !by_lane) {
      Meeting& meeting = meetings_[meeting_of_[wait.to]];
      const Picos late = from_seconds(meeting.largest.mean * std::sqrt(variance_[op * groups_ + meeting.group]));
      (wait.edge != none ? lags_[wait.edge] : meeting.after_call) = late;
      lag += late;
    }
    const Picos from = start_[op] + duration(op) + lag;
    if (held_by_[wait.to] != none && from <= start_[wait.to]) return;
    start_[wait.to] = from;
    held_by_[wait.to] = op;
  }

  const Trace& trace_;
  double sigma_;
  std::vector<double> slow_;  // by lane
  bool is_complete_ = true;
  std::size_t groups_ = 0;
  std::vector<Meeting> meetings_;
  std::vector<std::size_t> meeting_of_;
  std::vector<Picos> lags_;  // by edge, beyond its own
  std::vector<std::size_t> before_, first_, held_by_;
  std::vector<Wait> waits_;
  std::vector<Picos> start_;
  std::vector<double> carried_, variance_;  // by lane and by op: of each group, seconds squared
};

}  // namespace

LargestOf largest_of(std::int64_t n) {
  const auto ranks = static_cast<double>(n);
  constexpr double farthest = 12, width = 1.0 / 64;
  double mean = 0, square = 0;
  for (double x = width / 2; x < farthest; x += width) {
    const double above = std::erfc(x / std::numbers::sqrt2) / 2;  // 1 - F
    const double beyond = -std::expm1(ranks * std::log1p(-above)), below = std::pow(above, ranks);
    mean += (beyond - below) * width;
    square += 2 * x * (beyond + below) * width;
  }
  return {mean, square - mean * mean};
}

bool wait_for_slowest(Trace& trace, const Jitter& jitter) {
  if (jitter.sigma <= 0) return true;
  const Lateness lateness(trace, jitter);
  lateness.write(trace);
  return lateness.is_complete();
}

}  // namespace spillway::scenario
