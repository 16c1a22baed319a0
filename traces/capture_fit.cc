#include "traces/capture_fit.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

constexpr Picos idle_margin = microseconds(5);
constexpr Picos backlog_margin = microseconds(20);

// Shorter late starts are small errors of the fit as well, and would add up where other work is late already.
constexpr Picos shortest_kept = microseconds(100);
constexpr std::size_t fewest_samples = 8;
// A launch takes no longer to start its work; what does, loads code or waits for something.
constexpr Picos longest_latency = microseconds(500);
constexpr Picos clock_rounding = microseconds(2);  // recorded times may be whole microseconds

struct GapKey {
  LaneId stream, launcher;
  bool after_copy, is_copy;
  auto operator<=>(const GapKey&) const = default;
};

class Fitter {
 public:
  explicit Fitter(Trace& trace) : trace_(trace), ops_(trace.ops), by_lane_(trace.lanes.size()) {
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (is_device_work(ops_.kind[i]) && timed(i)) by_lane_[index_of(ops_.lane[i])].push_back(i);
    for (std::size_t l = 0; l < trace.lanes.size(); ++l) {
      const Lane& lane = trace.lanes[l];
      if (lane.rank >= device_lanes_.size()) device_lanes_.resize(lane.rank + std::size_t{1});
      if (lane.kind != LaneKind::host_thread) device_lanes_[lane.rank].push_back(l);
    }
  }

  void run() {
    const bool works = std::any_of(by_lane_.begin(), by_lane_.end(), [](const auto& lane) { return !lane.empty(); });
    if (!works) return infer_waits();
    fit_queue();
    fit_launch();
    fit_blocking_copies();
    fit_gaps();
    drop_contradicted_syncs();
    infer_edges();
    infer_waits();
  }

 private:
  [[nodiscard]] bool timed(std::size_t i) const {
    return ops_.start[i] != unknown_time && ops_.duration[i] != unknown_time;
  }
  [[nodiscard]] Picos end(std::size_t i) const { return ops_.start[i] + ops_.duration[i]; }
  [[nodiscard]] bool copies(std::size_t i) const { return is_copy(ops_.kind[i]) || ops_.kind[i] == OpKind::memset; }
  [[nodiscard]] OpId launch(std::size_t i) const {
    const OpId by = ops_.launched_by[i];
    return by != OpId::none && timed(index_of(by)) ? by : OpId::none;
  }
  // A copy through pageable memory starts when the host has staged it, not when it is launched.
  [[nodiscard]] bool staged(std::size_t i) const {
    return (ops_.flags[i] & static_cast<std::uint8_t>(OpFlag::pageable)) != 0;
  }
  // The call returns when the copy is done.
  [[nodiscard]] bool waited_for(std::size_t copy, std::size_t call) const {
    return waits_for_copy(ops_.flags[call], ops_.kind[copy], ops_.flags[copy]);
  }
  [[nodiscard]] GapKey key(std::size_t before, std::size_t i) const {
    const OpId by = ops_.launched_by[i];
    return {ops_.lane[i], by == OpId::none ? LaneId::none : ops_.lane[index_of(by)], copies(before), copies(i)};
  }

  void fit_launch() {
    std::vector<Picos> samples;
    for (const auto& lane : by_lane_) {
      for (std::size_t k = 0; k < lane.size(); ++k) {
        const OpId by = launch(lane[k]);
        if (by == OpId::none || staged(lane[k])) continue;
        const Picos called = ops_.start[index_of(by)];
        const bool idle = k == 0 || end(lane[k - 1]) <= called - idle_margin;
        const Picos latency = ops_.start[lane[k]] - called;
        if (idle && latency >= Picos(0) && latency <= longest_latency) samples.push_back(latency);
      }
    }
    if (samples.empty()) return;
    const auto quartile = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 4);
    std::nth_element(samples.begin(), quartile, samples.end());
    trace_.capture_fit.launch_to_start = *quartile;
  }

  // One sample is enough: it compares two recorded durations, no start.
  void fit_blocking_copies() {
    std::vector<Picos> samples;
    for (const auto& lane : by_lane_) {
      for (std::size_t k = 0; k < lane.size(); ++k) {
        const OpId by = launch(lane[k]);
        if (by == OpId::none || !waited_for(lane[k], index_of(by))) continue;
        const bool idle = k == 0 || end(lane[k - 1]) <= ops_.start[index_of(by)];
        if (idle) samples.push_back(std::max(Picos(0), ops_.duration[index_of(by)] - ops_.duration[lane[k]]));
      }
    }
    if (samples.empty()) return;
    const auto median = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), median, samples.end());
    trace_.capture_fit.blocking_copy_overhead = *median;
  }

  void fit_gaps() {
    struct Sum {
      Picos total{};
      std::uint32_t count = 0;
    };
    std::map<GapKey, Sum> sums;
    for (const auto& lane : by_lane_) {
      for (std::size_t k = 1; k < lane.size(); ++k) {
        const OpId by = launch(lane[k]);
        const Picos gap = ops_.start[lane[k]] - end(lane[k - 1]);
        const bool queued = by == OpId::none || end(lane[k - 1]) > ops_.start[index_of(by)] + backlog_margin;
        if (!queued || gap > late_threshold) continue;
        Sum& sum = sums[key(lane[k - 1], lane[k])];
        sum.total += gap;
        ++sum.count;
      }
    }
    for (const auto& [k, sum] : sums) {
      const Picos mean = std::max(Picos(0), sum.total / std::int64_t{sum.count});
      trace_.capture_fit.gaps.push_back({.stream = k.stream,
                                         .launcher = k.launcher,
                                         .after_copy = k.after_copy,
                                         .is_copy = k.is_copy,
                                         .gap = mean,
                                         .samples = sum.count});
    }
  }

  // Works in flight when launches took unusually long: the depth of the launch queue.
  void fit_queue() {
    std::vector<std::size_t> launches;
    std::vector<Picos> starts, durations;
    for (const auto& lane : by_lane_) {
      for (const std::size_t i : lane) {
        if (launch(i) == OpId::none) continue;
        launches.push_back(i);
        starts.push_back(ops_.start[i]);
      }
    }
    if (launches.size() < fewest_samples) return;
    const auto called = [&](std::size_t i) { return ops_.start[index_of(ops_.launched_by[i])]; };
    std::sort(launches.begin(), launches.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(called(a), ops_.start[a], a) < std::tuple(called(b), ops_.start[b], b);
    });
    std::sort(starts.begin(), starts.end());
    for (const std::size_t i : launches) durations.push_back(ops_.duration[index_of(ops_.launched_by[i])]);
    std::nth_element(durations.begin(), durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2),
                     durations.end());
    const Picos median = durations[durations.size() / 2];
    trace_.capture_fit.unblocked_launch = median;
    mark_blocked(launches, starts, std::max(median * 10, microseconds(60)));
  }

  void mark_blocked(const std::vector<std::size_t>& launches, const std::vector<Picos>& starts, Picos slow) {
    constexpr std::uint32_t shallowest_queue = 256;  // fewer in flight: some other reason to be slow
    std::vector<std::pair<std::uint32_t, OpId>> blocked;
    for (std::size_t k = 0; k < launches.size(); ++k) {
      const OpId by = ops_.launched_by[launches[k]];
      const std::size_t host = index_of(by);
      // A CUDA graph is one launch of many works: in-flight works then say nothing of the queue.
      if (k > 0 && ops_.launched_by[launches[k - 1]] == by) return;
      if (ops_.kind[host] != OpKind::launch || ops_.duration[host] < slow || staged(launches[k])) continue;
      const auto begun = std::upper_bound(starts.begin(), starts.end(), end(host)) - starts.begin();
      const auto in_flight = static_cast<std::int64_t>(k) + 1 - begun;
      if (in_flight >= shallowest_queue) blocked.emplace_back(static_cast<std::uint32_t>(in_flight), by);
    }
    if (blocked.size() < fewest_samples) return;
    std::sort(blocked.begin(), blocked.end());
    const std::uint32_t depth = blocked[blocked.size() / 2].first;
    const std::uint32_t spread = blocked[blocked.size() * 3 / 4].first - blocked[blocked.size() / 4].first;
    if (spread * 50 > depth) return;  // not one limit
    trace_.capture_fit.launch_queue_depth = depth;
    for (const auto& [in_flight, by] : blocked)
      if (in_flight * 10 >= depth * 9)
        trace_.ops.flags[index_of(by)] |= static_cast<std::uint8_t>(OpFlag::queue_blocked);
  }

  [[nodiscard]] Picos gap_for(std::size_t before, std::size_t i) const {
    const GapKey wanted = key(before, i);
    for (const StreamGap& g : trace_.capture_fit.gaps)
      if (GapKey{g.stream, g.launcher, g.after_copy, g.is_copy} == wanted) return g.gap;
    return Picos(0);
  }

  // An inferred wait says: the first work of `sync.lane` launched after the call waits for what the record
  // marked. Dropped when the recording shows that work starting before the marked work ended.
  void drop_contradicted_syncs() {
    std::vector<Sync> kept;
    std::uint64_t dropped = 0;
    for (const Sync& sync : trace_.syncs) {
      if (sync.inferred && ops_.kind[index_of(sync.op)] == OpKind::stream_wait && contradicted(sync)) {
        ++dropped;
        continue;
      }
      kept.push_back(sync);
    }
    trace_.syncs = std::move(kept);
    for (std::uint64_t k = 0; k < dropped; ++k)
      trace_.note("contradicted_wait", "", "an event wait guessed from call order that the recorded times rule out",
                  false);
  }

  [[nodiscard]] bool contradicted(const Sync& wait) const {
    if (wait.event == OpId::none || wait.lane == LaneId::none) return true;
    const Sync* record = trace_.sync_of(wait.event);
    if (record == nullptr || record->lane == LaneId::none) return true;
    const auto marked = last_launched_before(record->lane, ops_.start[index_of(wait.event)]);
    const auto waiter = first_launched_after(wait.lane, ops_.start[index_of(wait.op)]);
    return marked == none || waiter == none || end(marked) > ops_.start[waiter];
  }

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  [[nodiscard]] Picos call_time(std::size_t i) const {
    const OpId by = launch(i);
    return by == OpId::none ? ops_.start[i] : ops_.start[index_of(by)];
  }
  [[nodiscard]] std::size_t last_launched_before(LaneId lane, Picos time) const {
    const auto& works = by_lane_[index_of(lane)];
    const auto after =
        std::partition_point(works.begin(), works.end(), [&](std::size_t i) { return call_time(i) < time; });
    return after == works.begin() ? none : *(after - 1);
  }
  [[nodiscard]] std::size_t first_launched_after(LaneId lane, Picos time) const {
    const auto& works = by_lane_[index_of(lane)];
    const auto found =
        std::partition_point(works.begin(), works.end(), [&](std::size_t i) { return call_time(i) < time; });
    return found == works.end() ? none : *found;
  }

  void infer_edges() {
    by_end_.clear();
    for (const auto& lane : by_lane_) by_end_.insert(by_end_.end(), lane.begin(), lane.end());
    std::sort(by_end_.begin(), by_end_.end(),
              [&](std::size_t a, std::size_t b) { return std::tuple(end(a), a) < std::tuple(end(b), b); });
    const Picos latency = std::max(trace_.capture_fit.launch_to_start, Picos(0));
    for (const auto& lane : by_lane_) {
      for (std::size_t k = 0; k < lane.size(); ++k) {
        const OpId by = launch(lane[k]);
        if (k == 0 && by == OpId::none) continue;
        Picos allowed = k == 0 ? ops_.start[index_of(by)] : end(lane[k - 1]) + gap_for(lane[k - 1], lane[k]);
        if (by != OpId::none) allowed = std::max(allowed, ops_.start[index_of(by)] + latency);
        const bool waited = by != OpId::none && waited_for(lane[k], index_of(by));
        if (waited) allowed = std::max(allowed, ops_.start[index_of(by)] + copy_overhead());
        const bool staging = staged(lane[k]) && ops_.kind[lane[k]] == OpKind::copy_host_to_device;
        if (ops_.start[lane[k]] <= allowed + late_threshold || staging) continue;
        std::size_t after = k == 0 ? none : lane[k - 1];
        if (by != OpId::none && (after == none || ops_.start[index_of(by)] + latency > end(after)))
          after = index_of(by);
        explain(lane[k], allowed, after);
      }
    }
  }

  // An edge from the work of another stream that ended last before the late start; what is still unexplained is kept
  // behind that, or behind `after`, which allowed the start at `allowed`.
  void explain(std::size_t late, Picos allowed, std::size_t after) {
    const Picos began = ops_.start[late];
    auto it = std::upper_bound(by_end_.begin(), by_end_.end(), began + clock_rounding,
                               [&](Picos time, std::size_t i) { return time < end(i); });
    while (it != by_end_.begin()) {
      const std::size_t other = *--it;
      if (end(other) < began - late_window || end(other) < allowed - late_threshold) break;
      const bool launched_later = launch(other) != OpId::none && call_time(other) > call_time(late);
      if (ops_.lane[other] == ops_.lane[late] || ops_.start[other] >= began || launched_later) continue;
      add_edge(other, late, EdgeKind::cross_stream, Picos(0));
      if (began > end(other) + late_threshold && end(other) > allowed)
        keep_lag(late, end(other), other);
      else if (began > allowed + late_threshold && end(other) <= allowed)
        keep_lag(late, allowed, after);
      return;
    }
    keep_lag(late, allowed, after);
  }

  void add_edge(std::size_t from, std::size_t to, EdgeKind kind, Picos lag) {
    trace_.edges.push_back({.from = OpId(static_cast<std::uint32_t>(from)),
                            .to = OpId(static_cast<std::uint32_t>(to)),
                            .kind = kind,
                            .inferred = true,
                            .lag = lag});
  }

  void keep_lag(std::size_t late, Picos allowed, std::size_t after) {
    sum_up(ops_.start[late] - allowed);
    trace_.note("unexplained_late_start", trace_.strings.text(ops_.name[late]),
                "device work that started later than anything recorded explains; gaps of 0.1 ms or more are kept",
                false);
    if (ops_.start[late] - allowed >= shortest_kept)
      add_edge(after, late, EdgeKind::unexplained, ops_.start[late] - end(after));
  }

  void sum_up(Picos unexplained) {
    Picos& sum = trace_.capture_fit.unexplained_delay;
    sum = unexplained > Picos::max() - sum ? Picos::max() : sum + unexplained;
  }

  [[nodiscard]] bool is_host(std::size_t i) const { return is_host_call(ops_.kind[i]) && timed(i); }

  // What has been launched so far, as the replay sees it while it walks the host's calls.
  struct Walk {
    std::vector<std::size_t> on_lane, of_thread;
    std::vector<std::size_t> marked;  // by op: of an event_record, the last work of its stream
  };

  // Walks host calls in order of time; a call without a record of what it waits for waits for the last work its thread
  // launched, as in the replay.
  void infer_waits() {
    std::vector<std::size_t> calls;
    std::vector<std::vector<std::size_t>> works(ops_.size());
    Walk walk{std::vector<std::size_t>(trace_.lanes.size(), none), std::vector<std::size_t>(trace_.lanes.size(), none),
              std::vector<std::size_t>(ops_.size(), none)};
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (is_host(i)) calls.push_back(i);
      if (is_device_work(ops_.kind[i]) && launch(i) != OpId::none) works[index_of(launch(i))].push_back(i);
    }
    for (std::size_t l = 0; l < by_lane_.size(); ++l)  // work from before the capture
      for (const std::size_t i : by_lane_[l]) {
        if (launch(i) != OpId::none) break;
        walk.on_lane[l] = i;
      }
    std::stable_sort(calls.begin(), calls.end(),
                     [&](std::size_t a, std::size_t b) { return ops_.start[a] < ops_.start[b]; });
    for (const std::size_t call : calls) {
      for (const std::size_t work : works[call])
        walk.on_lane[index_of(ops_.lane[work])] = walk.of_thread[index_of(ops_.lane[call])] = work;
      keep_wait(call, unexplained_wait(call, works[call], walk));
      if (ops_.kind[call] != OpKind::event_record) continue;
      const Sync* sync = trace_.sync_of(OpId(static_cast<std::uint32_t>(call)));
      if (sync != nullptr && sync->lane != LaneId::none) walk.marked[call] = walk.on_lane[index_of(sync->lane)];
    }
    std::sort(trace_.unexplained_waits.begin(), trace_.unexplained_waits.end(),
              [](const UnexplainedWait& a, const UnexplainedWait& b) { return a.op < b.op; });
  }

  void keep_wait(std::size_t call, Picos wait) {
    if (wait <= late_threshold) return;
    trace_.unexplained_waits.push_back({OpId(static_cast<std::uint32_t>(call)), wait});
    sum_up(wait);
    trace_.note("unexplained_wait", trace_.strings.text(ops_.name[call]),
                "a call waited longer than for the GPU work that was recorded; the wait is kept as it was", false);
  }

  [[nodiscard]] Picos unexplained_wait(std::size_t call, const std::vector<std::size_t>& works,
                                       const Walk& walk) const {
    const OpKind kind = ops_.kind[call];
    if (kind == OpKind::launch) {
      for (const std::size_t copy : works)
        if (waited_for(copy, call)) return end(call) - std::max(ops_.start[call], end(copy)) - copy_overhead();
      return Picos(0);
    }
    const bool frees = kind == OpKind::device_free;
    if (!frees && kind != OpKind::device_sync && kind != OpKind::stream_sync && kind != OpKind::event_sync)
      return Picos(0);
    const Picos cost = std::min(ops_.duration[call], frees ? longest_free_call : sync_return);
    return end(call) - std::max(ops_.start[call], awaited_end(call, walk)) - cost;
  }

  [[nodiscard]] Picos copy_overhead() const {
    const Picos found = trace_.capture_fit.blocking_copy_overhead;
    return found == unknown_time ? sync_return : found;
  }

  [[nodiscard]] Picos awaited_end(std::size_t call, const Walk& walk) const {
    const auto end_of = [&](std::size_t work) { return work == none ? Picos(0) : end(work); };
    const Sync* sync = trace_.sync_of(OpId(static_cast<std::uint32_t>(call)));
    const OpKind kind = ops_.kind[call];
    if (kind == OpKind::device_sync || kind == OpKind::device_free) {
      Picos latest{};
      for (const std::size_t l : device_lanes_[trace_.lanes[index_of(ops_.lane[call])].rank])
        latest = std::max(latest, end_of(walk.on_lane[l]));
      return latest;
    }
    if (kind == OpKind::stream_sync && sync != nullptr && sync->lane != LaneId::none)
      return end_of(walk.on_lane[index_of(sync->lane)]);
    if (kind == OpKind::event_sync && sync != nullptr && sync->event != OpId::none)
      return end_of(walk.marked[index_of(sync->event)]);
    return end_of(walk.of_thread[index_of(ops_.lane[call])]);
  }

  Trace& trace_;
  const Ops& ops_;
  std::vector<std::vector<std::size_t>> by_lane_;
  std::vector<std::vector<std::size_t>> device_lanes_;  // by rank
  std::vector<std::size_t> by_end_;
};

}  // namespace

void fit_capture(Trace& trace) {
  if (!trace.has(Capability::times)) return;
  Fitter(trace).run();
}

}  // namespace spillway::traces
