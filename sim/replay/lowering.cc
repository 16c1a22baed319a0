#include "sim/replay/lowering.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/input_error.h"
#include "base/stop.h"

namespace spillway::sim {
namespace {

constexpr std::size_t ops_between_checks = 1024;  // whether to stop

class Lowering {
 public:
  Lowering(const Trace& trace, const LoweringOptions& options, const CopyPaths& paths, ActivityGraph graph)
      : trace_(trace), ops_(trace.ops), options_(options), paths_(paths), gaps_(trace.capture_fit.gaps) {
    out_.graph = std::move(graph);
    const std::size_t n = ops_.size();
    out_.begin.assign(n, no_activity);
    out_.end.assign(n, no_activity);
    out_.work.resize(n);
    mark_.assign(n, none);
    has_edge_.assign(n, false);
    out_.graph.reserve(out_.graph.size() + n, 3 * n);
    lanes_.resize(trace.lanes.size());
    for (std::size_t l = 0; l < trace.lanes.size(); ++l) {
      const std::size_t rank = trace.lanes[l].rank;
      if (rank >= ranks_.size()) ranks_.resize(rank + 1);
      if (trace.lanes[l].kind == LaneKind::host_thread)
        ++ranks_[rank].threads;
      else
        ranks_[rank].device_lanes.push_back(l);
    }
    std::sort(gaps_.begin(), gaps_.end(), [](const StreamGap& a, const StreamGap& b) { return key(a) < key(b); });
    transfers_.assign(trace.lanes.size(), nullptr);
    for (const LaneTransfer& transfer : options.transfers) transfers_[index_of(transfer.lane)] = &transfer;
  }

  LoweredTrace run() {
    for (const LaneTransfer* transfer : transfers_)
      out_.lane.push_back(out_.graph.add_lane(transfer == nullptr ? 1 : transfer->width));
    for (std::size_t i = 0; i < ops_.size(); ++i)
      out_.work[i] = classify(trace_, OpId(static_cast<std::uint32_t>(i)), options_.machine_balance);
    index_launches();
    find_time_zero();
    add_device_works();
    add_host_calls();
    for (const Edge& edge : trace_.edges) add_trace_edge(edge);
    out_.graph.finish();
    std::sort(out_.lags.begin(), out_.lags.end(),
              [](const LoweredTrace::KeptLag& a, const LoweredTrace::KeptLag& b) { return a.target < b.target; });
    std::sort(out_.unexplained.begin(), out_.unexplained.end());
    return std::move(out_);
  }

 private:
  struct HostEnd {
    Picos recorded = unknown_time;
    ActivityId activity = no_activity;
  };
  struct LaneState {
    std::size_t last_launched = none;   // latest work of a stream launched so far, while walking host calls
    HostEnd last_call;                  // latest call of a host thread
    std::size_t last_work = none;       // latest work launched by a host thread
    std::vector<ActivityId> waits;      // a stream's next work starts after these
    std::size_t leading_orphan = none;  // last work before the first launched one
  };
  struct RankState {
    // A call of one thread: when it ended as recorded, and the thread; of those that ended together the first thread's
    // stands last.
    using EndedCall = std::pair<Picos, std::size_t>;
    struct InOrder {
      bool operator()(const EndedCall& a, const EndedCall& b) const {
        return a.first != b.first ? a.first < b.first : a.second > b.second;
      }
    };
    std::size_t threads = 0;
    std::vector<std::size_t> device_lanes;
    std::set<EndedCall, InOrder> last_calls;  // of each thread, where there are several
    std::vector<ActivityId> in_flight;        // works in the order of their launches, while their queue is limited
  };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  using GapKey = std::tuple<LaneId, LaneId, bool, bool>;
  static GapKey key(const StreamGap& g) { return {g.stream, g.launcher, g.after_copy, g.is_copy}; }

  [[nodiscard]] bool has_flag(std::size_t i, OpFlag flag) const {
    return (ops_.flags[i] & static_cast<std::uint8_t>(flag)) != 0;
  }
  [[nodiscard]] bool copies(std::size_t i) const { return is_copy(ops_.kind[i]) || ops_.kind[i] == OpKind::memset; }
  [[nodiscard]] Picos duration(std::size_t i) const {
    if (ops_.duration[i] == unknown_time)
      throw InputError(trace_.provenance.empty() ? "" : trace_.provenance.front().file, "op " + std::to_string(i),
                       "'" + std::string(trace_.strings.text(ops_.name[i])) + "' has no duration",
                       "record the step with a profiler that times it, or generate the trace from a model spec");
    return ops_.duration[i];
  }
  [[nodiscard]] double speed(WorkClass work) const {
    const std::array<double, work_class_count> speeds = {options_.speed.compute, options_.speed.memory,
                                                         options_.speed.pcie,    options_.speed.network,
                                                         options_.speed.host,    1.0};
    return speeds[static_cast<std::size_t>(work)];
  }

  // works launched by each host call, in order of their columns
  void index_launches() {
    first_work_.assign(ops_.size() + 1, 0);
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_.launched_by[i] != OpId::none) ++first_work_[index_of(ops_.launched_by[i]) + 1];
    for (std::size_t i = 0; i < ops_.size(); ++i) first_work_[i + 1] += first_work_[i];
    works_.resize(first_work_.back());
    std::vector<std::uint32_t> next(first_work_.begin(), first_work_.end() - 1);
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_.launched_by[i] != OpId::none)
        works_[next[index_of(ops_.launched_by[i])]++] = static_cast<std::uint32_t>(i);
  }

  void record(std::size_t i, ActivityId activity) {
    out_.begin[i] = out_.end[i] = activity;
    note_op(i, activity);
  }
  void note_op(std::size_t i, ActivityId activity) {
    out_.op.resize(std::max(out_.op.size(), std::size_t{index(activity)} + 1), OpId::none);
    out_.op[index(activity)] = OpId(static_cast<std::uint32_t>(i));
  }

  // The replay's time 0 is the earliest recorded start of a host call or of work without a launch record.
  void find_time_zero() {
    Picos first = Picos::max();
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const bool host_or_orphan = is_host_call(ops_.kind[i]) || ops_.launched_by[i] == OpId::none;
      if (host_or_orphan && ops_.start[i] != unknown_time) first = std::min(first, ops_.start[i]);
    }
    if (first != Picos::max()) first_start_ = first;
    for (const Edge& edge : trace_.edges) has_edge_[index_of(edge.to)] = true;
  }

  // Work whose launch was not captured and that met an idle stream has only its recorded start to place it.
  [[nodiscard]] bool placed_by_recording(std::size_t before, std::size_t i) const {
    if (ops_.launched_by[i] != OpId::none || ops_.start[i] == unknown_time || has_edge_[i]) return false;
    return before == none || ops_.start[i] > ops_.start[before] + duration(before) + late_threshold;
  }

  void add_device_works() {
    std::vector<std::size_t> before(trace_.lanes.size(), none);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (i % ops_between_checks == 0) check_stop();
      if (is_host_call(ops_.kind[i])) continue;
      const std::size_t lane = index_of(ops_.lane[i]);
      const ActivityId activity = add_work(i, out_.lane[lane]);
      record(i, activity);
      if (before[lane] != none && transfers_[lane] == nullptr) out_.graph.set_gap(activity, gap(before[lane], i));
      if (placed_by_recording(before[lane], i)) out_.graph.set_release(activity, ops_.start[i] - first_start_);
      const bool orphan = ops_.launched_by[i] == OpId::none && transfers_[lane] == nullptr;
      if (orphan && lanes_[lane].last_launched == none) lanes_[lane].leading_orphan = i;
      if (ops_.launched_by[i] != OpId::none) lanes_[lane].last_launched = i;
      before[lane] = i;
    }
    for (LaneState& lane : lanes_) lane.last_launched = lane.leading_orphan;
  }

  ActivityId add_work(std::size_t i, TrackId lane) {
    if (const LaneTransfer* transfer = transfers_[index_of(ops_.lane[i])]; transfer != nullptr)
      return out_.graph.add_flow(lane, ops_.bytes[i].count(), transfer->path);
    const PathId* path = copy_path(i);
    const Picos lasts = duration(i);
    if (const SharedMemory* memory = memory_of(i); memory != nullptr && lasts > Picos(0)) {
      const double rate = rate_of(i, WorkClass::memory);
      return out_.graph.add_flow(lane, ops_.bytes[i].count(), memory_path(*memory, rate),
                                 rate_from_bytes_per_second(rate));
    }
    if (path == nullptr || ops_.bytes[i] <= Bytes(0) || lasts <= Picos(0))
      return out_.graph.add_delay(lane, scaled(lasts, speed(out_.work[i])));
    const double rate = rate_of(i, WorkClass::pcie);
    return out_.graph.add_flow(lane, ops_.bytes[i].count(), *path, rate_from_bytes_per_second(rate));
  }

  [[nodiscard]] double rate_of(std::size_t i, WorkClass work) const {
    const double rate = static_cast<double>(ops_.bytes[i].count()) / to_seconds(duration(i)) * speed(work);
    return std::min(rate, to_bytes_per_second(max_capacity));  // a what-if may ask for more than the engine carries
  }

  // Null unless the op is a memory-bound kernel on a GPU whose memory is shared with copies.
  [[nodiscard]] const SharedMemory* memory_of(std::size_t i) const {
    if (options_.shared_memory.empty() || ops_.kind[i] != OpKind::kernel || out_.work[i] != WorkClass::memory ||
        ops_.bytes[i] <= Bytes(0))
      return nullptr;
    const Lane& lane = trace_.lanes[index_of(ops_.lane[i])];
    for (const SharedMemory& memory : options_.shared_memory)
      if (memory.rank == lane.rank && (memory.device < 0 || memory.device == lane.device)) return &memory;
    return nullptr;
  }

  PathId memory_path(const SharedMemory& memory, double bytes_per_second) {
    const double share = std::min(1.0, to_bytes_per_second(memory.capacity) / bytes_per_second);
    const auto usage = static_cast<std::uint32_t>(std::max(1.0, std::floor(share * full_usage)));
    const auto [at, is_new] = memory_paths_.try_emplace(std::pair(index(memory.link), usage));
    if (is_new) at->second = out_.graph.add_path(std::array{PathEntry{memory.link, usage}});
    return at->second;
  }

  [[nodiscard]] const PathId* copy_path(std::size_t i) const {
    const auto& paths = ops_.kind[i] == OpKind::copy_host_to_device   ? paths_.host_to_device
                        : ops_.kind[i] == OpKind::copy_device_to_host ? paths_.device_to_host
                                                                      : no_paths_;
    const auto device = static_cast<std::size_t>(std::max<int>(0, trace_.lanes[index_of(ops_.lane[i])].device));
    return device < paths.size() ? &paths[device] : nullptr;
  }

  [[nodiscard]] Picos gap(std::size_t before, std::size_t i) const {
    const OpId by = ops_.launched_by[i];
    const GapKey wanted{ops_.lane[i], by == OpId::none ? LaneId::none : ops_.lane[index_of(by)], copies(before),
                        copies(i)};
    const auto found = std::lower_bound(gaps_.begin(), gaps_.end(), wanted,
                                        [](const StreamGap& g, const GapKey& k) { return key(g) < k; });
    return found != gaps_.end() && key(*found) == wanted ? found->gap : options_.kernel_gap;
  }

  void add_host_calls() {
    std::vector<std::uint32_t> calls;
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (is_host_call(ops_.kind[i])) calls.push_back(static_cast<std::uint32_t>(i));
    // A rank with one thread has its calls in order already, and ranks don't wait for each other's calls.
    const bool threads = std::any_of(ranks_.begin(), ranks_.end(), [](const RankState& r) { return r.threads > 1; });
    if (threads) sort_by_start(calls);
    for (const std::uint32_t i : calls) add_host_call(i);
  }

  // What a plan puts in has no recorded start: it stays behind the call of its thread that stands before it.
  void sort_by_start(std::vector<std::uint32_t>& calls) const {
    std::vector<Picos> latest(trace_.lanes.size(), unknown_time);
    std::vector<std::pair<Picos, std::uint32_t>> sorted;
    for (const std::uint32_t i : calls) {
      Picos& before = latest[index_of(ops_.lane[i])];
      if (ops_.start[i] != unknown_time) before = ops_.start[i];
      sorted.emplace_back(before, i);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t k = 0; k < calls.size(); ++k) calls[k] = sorted[k].second;
  }

  void add_host_call(std::size_t i) {
    const std::size_t lane = index_of(ops_.lane[i]);
    const bool sync = is_sync(i);
    const ActivityId activity = out_.graph.add_delay(
        out_.lane[lane], scaled(call_duration(i, sync), options_.speed.host) + (sync ? unexplained_wait(i) : Picos(0)));
    record(i, activity);
    if (sync) keep_unexplained(activity, unexplained_wait(i));
    follow(i, activity);
    if (sync) wait_for(i, activity);
    if (ops_.kind[i] == OpKind::event_record) mark(i);
    if (ops_.kind[i] == OpKind::stream_wait) make_stream_wait(i);
    for (std::uint32_t w = first_work_[i]; w < first_work_[i + 1]; ++w) launch(i, activity, works_[w]);
    if (first_work_[i] < first_work_[i + 1]) limit_queue(activity, works_[first_work_[i]]);
    if (waits_for_own_copy(i)) add_copy_wait(i);
    if (ops_.start[i] != unknown_time) end_call(lane, {ops_.start[i] + duration(i), out_.end[i]});
    add_allocator_calls(i);
  }

  [[nodiscard]] Picos unexplained_wait(std::size_t i) const {
    return trace_.unexplained_wait_of(OpId(static_cast<std::uint32_t>(i)));
  }
  void keep_unexplained(ActivityId activity, Picos time) {
    if (time > Picos(0)) out_.unexplained.emplace_back(activity, time);
  }

  void add_allocator_calls(std::size_t i) {
    const auto op = OpId(static_cast<std::uint32_t>(i));
    const std::size_t lane = index_of(ops_.lane[i]);
    auto delay = std::lower_bound(options_.host_delays.begin(), options_.host_delays.end(), op,
                                  [](const HostDelay& d, OpId wanted) { return d.after < wanted; });
    for (; delay != options_.host_delays.end() && delay->after == op; ++delay) {
      const ActivityId activity = out_.graph.add_delay(out_.lane[lane], scaled(delay->time, options_.speed.host));
      note_op(i, activity);
      lanes_[lane].last_call.activity = activity;
      if (!delay->waits_for_device) continue;
      for (const std::size_t l : ranks_[trace_.lanes[lane].rank].device_lanes)
        wait_for_work(lanes_[l].last_launched, activity);
    }
  }

  [[nodiscard]] bool is_sync(std::size_t i) const {
    const OpKind kind = ops_.kind[i];
    return kind == OpKind::device_sync || kind == OpKind::stream_sync || kind == OpKind::event_sync ||
           kind == OpKind::device_free;
  }
  [[nodiscard]] bool waits_for_own_copy(std::size_t i) const {
    for (std::uint32_t w = first_work_[i]; w < first_work_[i + 1]; ++w) {
      const std::uint32_t work = works_[w];
      if (waits_for_copy(ops_.flags[i], ops_.kind[work], ops_.flags[work])) return true;
    }
    return false;
  }

  [[nodiscard]] Picos call_duration(std::size_t i, bool sync) const {
    const Picos recorded = duration(i);
    if (ops_.kind[i] == OpKind::device_free) return std::min(recorded, longest_free_call);
    if (sync) return std::min(recorded, options_.sync_cost);
    if (waits_for_own_copy(i)) return std::min(recorded, call_cost());
    if (has_flag(i, OpFlag::queue_blocked)) return std::min(recorded, call_cost());
    return recorded;
  }
  [[nodiscard]] Picos call_cost() const {
    const Picos median = trace_.capture_fit.unblocked_launch;
    return median == unknown_time ? options_.sync_cost : median;
  }

  void end_call(std::size_t lane, const HostEnd& call) {
    HostEnd& last = lanes_[lane].last_call;
    RankState& rank = ranks_[trace_.lanes[lane].rank];
    if (rank.threads > 1 && trace_.lanes[lane].kind == LaneKind::host_thread) {
      if (auto node = rank.last_calls.extract({last.recorded, lane}); !node.empty()) {
        node.value().first = call.recorded;
        rank.last_calls.insert(std::move(node));
      } else {
        rank.last_calls.emplace(call.recorded, lane);
      }
    }
    last = call;
  }

  // Ties the call to the one that ended last before it, with the recorded pause between.
  void follow(std::size_t i, ActivityId activity) {
    const Picos start = ops_.start[i];
    if (start == unknown_time) return;  // no recorded host times: lane order only
    const Lane& own = trace_.lanes[index_of(ops_.lane[i])];
    const HostEnd& previous = lanes_[index_of(ops_.lane[i])].last_call;
    HostEnd latest = previous;
    const auto& others = ranks_[own.rank].last_calls;
    if (const auto later = others.upper_bound({start, 0}); later != others.begin())
      if (const auto found = std::prev(later); latest.recorded == unknown_time || found->first > latest.recorded)
        latest = lanes_[found->second].last_call;
    if (latest.recorded == unknown_time) {
      out_.graph.set_release(activity, scaled(start - first_start_, options_.speed.host));
    } else if (latest.activity == previous.activity) {
      out_.graph.set_gap(activity, scaled(std::max(Picos(0), start - latest.recorded), options_.speed.host));
    } else {
      out_.graph.add_edge(latest.activity, activity, EdgeType::end_to_start,
                          scaled(start - latest.recorded, options_.speed.host));
    }
  }

  void launch(std::size_t i, ActivityId call, std::size_t work) {
    LaneState& stream = lanes_[index_of(ops_.lane[work])];
    const ActivityId target = out_.begin[work];
    const Picos fitted = trace_.capture_fit.launch_to_start;
    if (has_flag(work, OpFlag::pageable) && ops_.kind[work] == OpKind::copy_host_to_device) {
      // The device copy ends about when the call returns: staging comes first.
      out_.graph.add_edge(call, target, EdgeType::start_to_start,
                          std::max(Picos(0), scaled(duration(i) - duration(work), options_.speed.host)));
    } else if (fitted != unknown_time) {
      out_.graph.add_edge(call, target, EdgeType::start_to_start, fitted);
    } else {
      out_.graph.add_edge(call, target, EdgeType::end_to_start, options_.launch_to_start);
    }
    for (const ActivityId wait : stream.waits) out_.graph.add_edge(wait, target);
    stream.waits.clear();
    stream.last_launched = work;
    lanes_[index_of(ops_.lane[i])].last_work = work;
  }

  // A CUDA graph takes one place, whatever it holds.
  void limit_queue(ActivityId call, std::size_t work) {
    const std::uint32_t depth =
        options_.launch_queue_depth != 0 ? options_.launch_queue_depth : trace_.capture_fit.launch_queue_depth;
    if (depth == 0) return;
    std::vector<ActivityId>& in_flight = ranks_[trace_.lanes[index_of(ops_.lane[work])].rank].in_flight;
    const std::size_t places = ops_.kind[work] == OpKind::collective ? options_.collective_places : 1;
    in_flight.insert(in_flight.end(), places, out_.begin[work]);
    if (in_flight.size() > depth)
      out_.graph.add_edge(in_flight[in_flight.size() - 1 - depth], call, EdgeType::start_to_start);
  }

  void wait_for(std::size_t i, ActivityId activity) {
    const Sync* sync = trace_.sync_of(OpId(static_cast<std::uint32_t>(i)));
    const LaneState& thread = lanes_[index_of(ops_.lane[i])];
    const OpKind kind = ops_.kind[i];
    if (kind == OpKind::device_sync || kind == OpKind::device_free) {
      for (const std::size_t l : ranks_[trace_.lanes[index_of(ops_.lane[i])].rank].device_lanes)
        wait_for_work(lanes_[l].last_launched, activity);
    } else if (kind == OpKind::stream_sync && sync != nullptr && sync->lane != LaneId::none) {
      wait_for_work(lanes_[index_of(sync->lane)].last_launched, activity);
    } else if (kind == OpKind::event_sync && sync != nullptr && sync->event != OpId::none) {
      wait_for_work(marked_by(sync->event), activity);
    } else {
      wait_for_work(thread.last_work, activity);
    }
  }
  void wait_for_work(std::size_t work, ActivityId activity) {
    if (work != none) out_.graph.add_edge(out_.end[work], activity);
  }

  // The last work launched on the recorded stream before the event_record call.
  [[nodiscard]] std::size_t marked_by(OpId record) const { return mark_[index_of(record)]; }
  void mark(std::size_t i) {
    const Sync* sync = trace_.sync_of(OpId(static_cast<std::uint32_t>(i)));
    if (sync != nullptr && sync->lane != LaneId::none) mark_[i] = lanes_[index_of(sync->lane)].last_launched;
  }

  void make_stream_wait(std::size_t i) {
    const Sync* sync = trace_.sync_of(OpId(static_cast<std::uint32_t>(i)));
    if (sync == nullptr || sync->lane == LaneId::none || sync->event == OpId::none) return;
    const std::size_t work = marked_by(sync->event);
    if (work == none || ops_.lane[work] == sync->lane) return;
    lanes_[index_of(sync->lane)].waits.push_back(out_.end[work]);
  }

  // From the end of an awaited copy to the return of call i.
  [[nodiscard]] Picos copy_return(std::size_t i) const {
    const CaptureFit& fit = trace_.capture_fit;
    if (fit.blocking_copy_overhead == unknown_time) return options_.sync_cost;
    const Picos until_start =
        fit.launch_to_start != unknown_time ? fit.launch_to_start : call_duration(i, false) + options_.launch_to_start;
    return std::max(Picos(0), fit.blocking_copy_overhead - until_start);
  }

  void add_copy_wait(std::size_t i) {
    const ActivityId wait = out_.graph.add_delay(out_.lane[index_of(ops_.lane[i])],
                                                 scaled(copy_return(i), options_.speed.host) + unexplained_wait(i));
    keep_unexplained(wait, unexplained_wait(i));
    note_op(i, wait);
    for (std::uint32_t w = first_work_[i]; w < first_work_[i + 1]; ++w) out_.graph.add_edge(out_.end[works_[w]], wait);
    out_.end[i] = wait;
  }

  // A launch may return after its work has started, or wait for it: what is kept counts from its start.
  void add_unexplained(const Edge& edge) {
    const std::size_t from = index_of(edge.from);
    const bool launched = is_host_call(ops_.kind[from]);
    const Picos lag = launched ? std::max(Picos(0), duration(from) + edge.lag) : std::max(Picos(0), edge.lag);
    const ActivityId source = launched ? out_.begin[from] : out_.end[from], target = out_.begin[index_of(edge.to)];
    out_.graph.add_edge(source, target, launched ? EdgeType::start_to_start : EdgeType::end_to_start, lag);
    out_.lags.push_back({target, source, lag, std::clamp(edge.lag, Picos(0), lag)});
  }

  // A lane's order says what an edge without lag between two of its ops does, unless transfers work side by side.
  void add_trace_edge(const Edge& edge) {
    const std::size_t a = index_of(edge.from), b = index_of(edge.to);
    const LaneTransfer* transfer = transfers_[index_of(ops_.lane[b])];
    const bool one_by_one = transfer == nullptr || transfer->width <= 1;
    if (a < b && ops_.lane[a] == ops_.lane[b] && edge.lag == Picos(0) && one_by_one) return;
    // Partners of an exchange wait until a call has put it on the stream, not until the call returns.
    const bool by_call = edge.kind == EdgeKind::cross_stream && is_host_call(ops_.kind[a]);
    const ActivityId from = by_call ? out_.begin[a] : out_.end[a];
    const ActivityId to = out_.begin[b];
    if (from == no_activity || to == no_activity) return;
    if (edge.kind == EdgeKind::unexplained) return add_unexplained(edge);
    out_.graph.add_edge(from, to, EdgeType::end_to_start,
                        edge.lag + (transfer == nullptr ? Picos(0) : transfer->latency));
  }

 private:
  const Trace& trace_;
  const Ops& ops_;
  const LoweringOptions& options_;
  const CopyPaths& paths_;
  const std::vector<PathId> no_paths_{};
  std::map<std::pair<std::uint32_t, std::uint32_t>, PathId> memory_paths_;  // by link and usage
  std::vector<StreamGap> gaps_;
  LoweredTrace out_;
  std::vector<LaneState> lanes_;
  std::vector<std::uint32_t> first_work_, works_;
  std::vector<RankState> ranks_;
  std::vector<std::size_t> mark_;  // by op: for an event_record, the last work of its stream so far
  std::vector<bool> has_edge_;
  std::vector<const LaneTransfer*> transfers_;  // by lane of the trace; null: none
  Picos first_start_{};
};

}  // namespace

LoweredTrace lower(const Trace& trace, const LoweringOptions& options, const CopyPaths& paths, ActivityGraph graph) {
  constexpr std::array needed = {Capability::times};
  trace.require(needed, "replay");
  return Lowering(trace, options, paths, std::move(graph)).run();
}

}  // namespace spillway::sim
