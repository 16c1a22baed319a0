#include "planners/offload/lifetimes.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include "planners/offload/tier_rates.h"

namespace spillway::planners {
namespace {

constexpr int buckets = 512;   // of a step's time, for reservations
constexpr int most_plans = 6;  // for ever lower limits
constexpr Bytes least_interval{8 << 20};

struct StorageUses {
  std::vector<OpId> ops;  // device work, in order, each once
  std::vector<bool> writes;
  TensorId tensor = TensorId::none;
  Bytes bytes{};
  bool outlives = false;  // allocated before the step and not freed in it
  int lives = 0;
};

std::vector<StorageUses> uses_of(const Trace& trace) {
  std::uint32_t count = 0;
  for (const std::uint32_t storage : trace.tensors.storage) count = std::max(count, storage + 1);
  std::vector<StorageUses> storages(count);
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.tensor == TensorId::none || event.device < 0) continue;
    StorageUses& uses = storages[trace.tensors.storage[index_of(event.tensor)]];
    if (event.action == MemoryAction::allocate) {
      ++uses.lives;
      uses.tensor = event.tensor;
      uses.bytes = event.bytes;
      uses.outlives = event.anchor == OpId::none;
    } else if (event.action == MemoryAction::free_requested) {
      uses.outlives = false;
    }
  }
  for (const Use& use : trace.uses) {
    if (!is_device_work(trace.ops.kind[index_of(use.op)])) continue;
    StorageUses& uses = storages[trace.tensors.storage[index_of(use.tensor)]];
    if (uses.ops.empty() || uses.ops.back() != use.op) {
      uses.ops.push_back(use.op);
      uses.writes.push_back(false);
    }
    uses.writes.back() = uses.writes.back() || use.access == Access::write;
  }
  return storages;
}

// Busy time of one direction of one tier over the step.
class Channel {
 public:
  Channel(Picos span, double bytes_per_second)
      : bucket_(to_seconds(span) / buckets), rate_(bytes_per_second), free_(buckets, to_seconds(span) / buckets) {}

  // Bucket in which a transfer that may start at `from` ends (earliest), or nothing within `until`.
  [[nodiscard]] std::optional<int> earliest(int from, int until, Bytes bytes) const {
    double left = seconds(bytes);
    for (int b = from; b < until; ++b)
      if ((left -= free_[static_cast<std::size_t>(b)]) <= 0) return b;
    return std::nullopt;
  }
  // Bucket in which a transfer that must end by `until` begins (latest), or nothing from `from` on.
  [[nodiscard]] std::optional<int> latest(int from, int until, Bytes bytes) const {
    double left = seconds(bytes);
    for (int b = until - 1; b >= from; --b)
      if ((left -= free_[static_cast<std::size_t>(b)]) <= 0) return b;
    return std::nullopt;
  }
  void take(int from, int until, Bytes bytes, bool forwards) {
    double left = seconds(bytes);
    for (int k = 0; k < until - from && left > 0; ++k) {
      double& free = free_[static_cast<std::size_t>(forwards ? from + k : until - 1 - k)];
      const double used = std::min(free, left);
      free -= used;
      left -= used;
    }
  }
  [[nodiscard]] double seconds(Bytes bytes) const { return static_cast<double>(bytes.count()) / rate_; }

 private:
  double bucket_, rate_;
  std::vector<double> free_;
};

struct Chosen {
  std::size_t first = 0, second = 0;  // intervals; the same for one alone
  Tier tier = Tier::drive;
  OpId fetch_at = OpId::none;
};

// An interval that is taken.
struct Leaving {
  std::size_t interval = 0;
  Tier tier = Tier::drive;
  OpId fetch_at = OpId::none;
};

// In the order of each tensor's life. It is written out unless that tier holds it as it is: from the step before, for
// what is away when the step begins, or since an earlier absence. It is written out to another tier once it is back.
std::vector<Absence> absences_of(std::span<const IdleInterval> intervals, std::vector<Leaving> leaving) {
  std::sort(leaving.begin(), leaving.end(), [](const Leaving& a, const Leaving& b) { return a.interval < b.interval; });
  struct Copy {
    Tier tier = Tier::drive;
    OpId last_write = OpId::none, back = OpId::none;
  };
  std::map<std::uint32_t, Copy> copies;  // by storage
  std::vector<Absence> absences;
  for (const Leaving& each : leaving) {
    const IdleInterval& interval = intervals[each.interval];
    Absence absence{interval.tensor, each.tier, OpId::none, interval.leave_after, each.fetch_at, interval.back_before};
    const auto copy = copies.find(interval.storage);
    const bool holds =
        copy != copies.end() && copy->second.tier == each.tier && copy->second.last_write == interval.last_write;
    if (interval.leave_after != OpId::none && !holds)
      absence.store_after = interval.last_write == OpId::none ? interval.leave_after : interval.last_write;
    if (absence.stores() && copy != copies.end() && copy->second.back != OpId::none)
      absence.store_after = std::max(absence.store_after, copy->second.back);
    copies[interval.storage] = {each.tier, interval.last_write, interval.back_before};
    absences.push_back(absence);
  }
  return absences;
}

class LifetimePlanner {
 public:
  LifetimePlanner(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings, const Result& keep,
                  std::span<const IdleInterval> intervals)
      : trace_(trace), keep_(keep), intervals_(intervals), span_(keep.replayed) {
    const HardwareProfile& hardware = replayer.hardware();
    const std::int64_t gpus = replayer.options().gpus_alike;
    if (!hardware.drives.empty()) add_tier(Tier::drive, tier_rates(hardware, Tier::drive, gpus));
    add_tier(Tier::host, tier_rates(hardware, Tier::host, gpus));
    if (settings.tier == Tier::host && tiers_.size() > 1) tiers_.erase(tiers_.begin());
    pair_intervals();
  }

  std::vector<Absence> plan(Bytes limit) {
    excess_ = excess_over(limit);
    struct Entry {
      double worth = 0;
      std::size_t candidate = 0;
      bool operator<(const Entry& other) const {
        return worth != other.worth ? worth < other.worth : candidate > other.candidate;
      }
    };
    std::priority_queue<Entry> queue;
    for (std::size_t c = 0; c < pairs_.size(); ++c)
      if (const double worth = worth_of(c); worth > 0) queue.push({worth, c});
    std::vector<Chosen> chosen;
    std::vector<std::size_t> late;
    while (!queue.empty() && std::any_of(excess_.begin(), excess_.end(), [](double e) { return e > 0; })) {
      const Entry top = queue.top();
      queue.pop();
      const double now = worth_of(top.candidate);  // others may have taken its worth meanwhile
      if (now <= 0) continue;
      if (now < top.worth && !queue.empty() && now < queue.top().worth) {
        queue.push({now, top.candidate});
        continue;
      }
      if (const auto taken = reserve(top.candidate))
        chosen.push_back(*taken);
      else
        late.push_back(top.candidate);
    }
    for (const std::size_t candidate : late)  // the transfers' time is taken: these make the step wait
      if (worth_of(candidate) > 0) chosen.push_back(force(candidate));
    return absences_of_all(chosen);
  }

 private:
  struct TierState {
    Tier tier = Tier::drive;
    Channel store, load;
  };
  void add_tier(Tier tier, const TierRates& rates) {
    tiers_.push_back({tier, Channel(span_, rates.store), Channel(span_, rates.load)});
  }

  void pair_intervals() {
    std::map<std::uint32_t, std::size_t> before;  // storage: its interval before the first use
    for (std::size_t i = 0; i < intervals_.size(); ++i)
      if (intervals_[i].leave_after == OpId::none) before[intervals_[i].storage] = i;
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      if (intervals_[i].leave_after == OpId::none) continue;
      const auto found = before.find(intervals_[i].storage);
      if (intervals_[i].back_before == OpId::none && found != before.end())
        pairs_.emplace_back(found->second, i);
      else
        pairs_.emplace_back(i, i);
    }
  }

  [[nodiscard]] int bucket(Picos time) const {
    return static_cast<int>(
        std::clamp<std::int64_t>(time.count() / std::max<std::int64_t>(1, span_.count() / buckets), 0, buckets));
  }
  std::vector<double> excess_over(Bytes limit) const {
    std::vector<double> most(buckets, 0);
    double held = 0;
    int at = 0;
    for (const MemoryPoint& point : keep_.memory.timeline) {
      const int b = std::min(buckets - 1, bucket(point.time));
      for (; at < b; ++at) most[static_cast<std::size_t>(at) + 1] = held;
      held = static_cast<double>(point.allocated.count());
      most[static_cast<std::size_t>(b)] = std::max(most[static_cast<std::size_t>(b)], held);
    }
    for (; at + 1 < buckets; ++at) most[static_cast<std::size_t>(at) + 1] = held;
    for (double& value : most) value -= static_cast<double>(limit.count());
    return most;
  }

  // Byte-seconds above the limit that go, for a second of transfer.
  [[nodiscard]] double worth_of(std::size_t candidate) const {
    double gone = 0;
    visit_away(candidate,
               [&](int b, double bytes) { gone += std::clamp(excess_[static_cast<std::size_t>(b)], 0.0, bytes); });
    const IdleInterval& interval = intervals_[pairs_[candidate].second];
    return gone / (tiers_.front().store.seconds(interval.bytes) + tiers_.front().load.seconds(interval.bytes));
  }
  template <class Visit>
  void visit_away(std::size_t candidate, Visit&& visit) const {
    const auto& [first, second] = pairs_[candidate];
    const auto bytes = static_cast<double>(intervals_[second].bytes.count());
    for (const std::size_t i : {first, second}) {
      for (int b = bucket(intervals_[i].begin) + 1; b < bucket(intervals_[i].end); ++b) visit(b, bytes);
      if (first == second) break;
    }
  }

  std::optional<Chosen> reserve(std::size_t candidate) {
    const auto& [first, second] = pairs_[candidate];
    const IdleInterval& out = intervals_[second];
    const IdleInterval& in = intervals_[first];
    for (TierState& tier : tiers_) {
      const int out_from = bucket(out.begin), out_until = first == second ? bucket(out.end) : buckets;
      const bool stores = first == second || out.last_write != OpId::none;  // else as it was when the step began
      const auto stored = stores ? tier.store.earliest(out_from, out_until, out.bytes) : std::optional(out_from);
      if (!stored) continue;
      const int in_from = first == second ? *stored + 1 : 0, in_until = bucket(in.end);
      auto begins = tier.load.latest(in_from, in_until, out.bytes);
      if (!begins && first != second) begins = 0;  // as early as the step allows, however late
      if (!begins) continue;
      if (stores) tier.store.take(out_from, out_until, out.bytes, true);
      tier.load.take(in_from, in_until, out.bytes, false);
      visit_away(candidate, [&](int b, double bytes) {
        const bool before_store = b >= out_from && b <= *stored;
        const bool after_load = b >= *begins && b < in_until;
        if (!before_store && !after_load) excess_[static_cast<std::size_t>(b)] -= bytes;
      });
      return Chosen{first, second, tier.tier, op_at(in, *begins)};
    }
    return std::nullopt;
  }

  // As if the way to the first tier were free.
  Chosen force(std::size_t candidate) {
    const auto& [first, second] = pairs_[candidate];
    const IdleInterval& in = intervals_[first];
    const TierState& tier = tiers_.front();
    const auto takes = static_cast<int>(tier.load.seconds(in.bytes) / to_seconds(span_) * buckets) + 1;
    const int from = first == second ? bucket(in.begin) + takes : 0;
    const int begins = std::max(std::min(from, bucket(in.end)), bucket(in.end) - takes);
    visit_away(candidate, [&](int b, double bytes) {
      if (b < begins || b >= bucket(in.end)) excess_[static_cast<std::size_t>(b)] -= bytes;
    });
    return Chosen{first, second, tier.tier, op_at(in, begins)};
  }

  // The last op on the stream of the interval's next use that begins by the bucket's start, within the interval.
  [[nodiscard]] OpId op_at(const IdleInterval& interval, int b) const {
    const Picos time = span_ / buckets * b;
    const std::size_t last = index_of(interval.back_before);
    const std::size_t first = interval.leave_after == OpId::none ? 0 : index_of(interval.leave_after) + 1;
    const LaneId lane = trace_.ops.lane[last];
    OpId earliest = interval.back_before;
    for (std::size_t i = last + 1; i-- > first;) {
      if (trace_.ops.lane[i] != lane || keep_.op_start[i] == unknown_time) continue;
      earliest = OpId(static_cast<std::uint32_t>(i));
      if (keep_.op_start[i] <= time) break;
    }
    return earliest;
  }

  [[nodiscard]] std::vector<Absence> absences_of_all(const std::vector<Chosen>& chosen) const {
    std::vector<Leaving> leaving;
    for (const Chosen& c : chosen) {
      leaving.push_back({c.first, c.tier, c.fetch_at});
      if (c.first != c.second) leaving.push_back({c.second, c.tier, OpId::none});
    }
    return absences_of(intervals_, std::move(leaving));
  }

  const Trace& trace_;
  const Result& keep_;
  std::span<const IdleInterval> intervals_;
  Picos span_;
  std::vector<TierState> tiers_;
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;
  std::vector<double> excess_;  // by bucket, bytes above the limit
};

// The first op of the layer before the one that needs the tensor, on the same stream.
OpId a_layer_ahead(const Trace& trace, const IdleInterval& interval) {
  const std::size_t last = index_of(interval.back_before);
  const std::size_t first = interval.leave_after == OpId::none ? 0 : index_of(interval.leave_after) + 1;
  const LaneId lane = trace.ops.lane[last];
  std::uint16_t own = trace.ops.layer[last], ahead = own;
  OpId found = interval.back_before;
  for (std::size_t i = last; i-- > first;) {
    if (trace.ops.lane[i] != lane) continue;
    const std::uint16_t layer = trace.ops.layer[i];
    if (ahead != own && layer != ahead) break;
    if (layer != own) ahead = layer;
    found = OpId(static_cast<std::uint32_t>(i));
  }
  return found;
}

// keep: the step without the plan, replayed.
void finish(OffloadOutcome& outcome, std::span<const IdleInterval> intervals, const Result& keep) {
  const auto bytes_of = [&keep](const IdleInterval& interval) {
    return interval.bytes *
           keep.runs_of(interval.leave_after == OpId::none ? interval.back_before : interval.leave_after);
  };
  std::set<std::uint32_t> storages, gone;
  for (const IdleInterval& interval : intervals)
    if (storages.insert(interval.storage).second) outcome.moved.candidates += bytes_of(interval);
  const Tensors& tensors = outcome.planned.trace.tensors;
  for (const Absence& absence : outcome.plan.absences) gone.insert(tensors.storage[index_of(absence.tensor)]);
  outcome.moved.kept = outcome.moved.candidates;
  for (const IdleInterval& interval : intervals)
    if (gone.erase(interval.storage) > 0) outcome.moved.kept = outcome.moved.kept - bytes_of(interval);
  outcome.result.offload = outcome.moved;
}

}  // namespace

std::vector<IdleInterval> idle_intervals(const Trace& trace, std::span<const Picos> op_start,
                                         std::span<const Picos> op_end, Bytes least) {
  constexpr std::array needed = {Capability::memory, Capability::uses};
  trace.require(needed, "offloading by lifetimes");
  Picos end{};
  for (const Picos time : op_end)
    if (time != unknown_time) end = std::max(end, time);
  std::vector<IdleInterval> intervals;
  const std::vector<StorageUses> storages = uses_of(trace);
  for (std::uint32_t s = 0; s < storages.size(); ++s) {
    const StorageUses& uses = storages[s];
    if (uses.lives != 1 || uses.bytes < least || uses.ops.empty()) continue;
    IdleInterval base{uses.tensor, s, uses.bytes, trace.tensors.role[index_of(uses.tensor)]};
    if (uses.outlives) {
      IdleInterval before = base;
      before.back_before = uses.ops.front();
      before.end = op_start[index_of(uses.ops.front())];
      intervals.push_back(before);
    }
    OpId last_write = OpId::none;
    for (std::size_t u = 0; u < uses.ops.size(); ++u) {
      if (uses.writes[u]) last_write = uses.ops[u];
      const bool last = u + 1 == uses.ops.size();
      if (last && !uses.outlives) break;
      IdleInterval interval = base;
      interval.leave_after = uses.ops[u];
      interval.last_write = last_write;
      interval.begin = op_end[index_of(uses.ops[u])];
      interval.end = last ? end : op_start[index_of(uses.ops[u + 1])];
      if (!last) interval.back_before = uses.ops[u + 1];
      intervals.push_back(interval);
    }
  }
  return intervals;
}

OffloadOutcome run_lifetimes(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings) {
  const Result keep = replayer.replay(trace, {.detail = Detail::figures});  // what is held when decides what leaves
  const std::vector<IdleInterval> intervals = idle_intervals(trace, keep.op_start, keep.op_end, least_interval);
  LifetimePlanner planner(trace, replayer, settings, keep, intervals);
  const Bytes capacity = memory_of(replayer);
  OffloadOutcome best;
  Bytes limit = capacity;
  for (int round = 0; round < most_plans; ++round) {
    LifetimePlanner fresh = planner;
    OffloadOutcome outcome;
    outcome.plan = limited_plan(lifetimes_word, replayer, settings);
    outcome.plan.paced_by_device = true;
    outcome.plan.absences = fresh.plan(limit);
    replay_with_forwarding(trace, replayer, outcome);
    outcome.rounds += best.rounds;
    const Bytes over = outcome.result.memory.peak_reserved - capacity;
    const bool may_fit = outcome.result.may_fit();
    if (round == 0 || may_fit || over < best.result.memory.peak_reserved - capacity) best = std::move(outcome);
    if (may_fit) break;
    limit = limit - std::max(over, capacity / 50);
    if (limit <= Bytes(0)) break;
  }
  finish(best, intervals, keep);
  return best;
}

OffloadOutcome run_streaming(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings) {
  const Result keep = replayer.replay(trace);
  std::vector<IdleInterval> intervals = idle_intervals(trace, keep.op_start, keep.op_end, settings.stream.least);
  std::erase_if(intervals, [](const IdleInterval& interval) {
    return interval.role != TensorRole::weight && interval.role != TensorRole::optimizer_state;
  });
  OffloadOutcome outcome;
  outcome.forwards = settings.forwards;
  outcome.plan = limited_plan(streaming_word, replayer, settings);
  outcome.plan.paced_by_device = settings.stream.a_layer_ahead;
  std::vector<Leaving> leaving;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const IdleInterval& interval = intervals[i];
    const bool inside = interval.leave_after != OpId::none && interval.back_before != OpId::none;
    if (inside && interval.end - interval.begin < settings.stream.shortest_stay) continue;  // used again at once
    const bool ahead = settings.stream.a_layer_ahead && interval.back_before != OpId::none;
    leaving.push_back({i, settings.tier, ahead ? a_layer_ahead(trace, interval) : OpId::none});
  }
  outcome.plan.absences = absences_of(intervals, std::move(leaving));
  replay_with_forwarding(trace, replayer, outcome);
  finish(outcome, intervals, keep);
  return outcome;
}

}  // namespace spillway::planners
