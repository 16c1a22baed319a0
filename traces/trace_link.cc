#include "traces/trace_link.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "traces/acyclic.h"

namespace spillway::traces {
namespace {

constexpr std::size_t max_votes = 1'000'000;
constexpr std::size_t candidate_shifts = 8;
constexpr int max_passes = 6;

// Spans that can be matched: (record id, span), sorted by id.
using Records = std::vector<std::pair<std::int64_t, std::uint32_t>>;

Records records_of(const Trace& trace) {
  const auto& own = trace.spans.record_id;
  const bool has_own = std::any_of(own.begin(), own.end(), [](std::int64_t id) { return id > 0; });
  const auto& ids = has_own || trace.spans.external_id.empty() ? own : trace.spans.external_id;
  Records records;
  for (std::uint32_t i = 0; i < trace.spans.size(); ++i)
    if (ids[i] > 0) records.emplace_back(ids[i], i);
  std::sort(records.begin(), records.end());
  return records;
}

class TraceLinker {
 public:
  TraceLinker(Trace kineto, const Trace& graph) : result_(std::move(kineto)), graph_(graph) {}

  Trace run() {
    timed_ = records_of(result_);
    recorded_ = records_of(graph_);
    partner_.assign(graph_.spans.size(), index_of(SpanId::none));
    taken_.assign(result_.spans.size(), false);
    for (const auto& entry : by_thread()) match_thread(entry.second);
    require_same_run();
    collect_ops();
    copy_tensors();
    copy_uses();
    copy_edges();
    copy_phases();
    report();
    result_.provenance.insert(result_.provenance.end(), graph_.provenance.begin(), graph_.provenance.end());
    result_.set(Capability::uses, graph_.is_inferred(Capability::uses));
    result_.set(Capability::edges, true);
    check_acyclic(result_);
    result_.check_invariants();
    return std::move(result_);
  }

 private:
  static std::size_t find(const Records& records, std::int64_t id) {
    const auto found = std::lower_bound(records.begin(), records.end(), std::pair(id, std::uint32_t{0}));
    return found != records.end() && found->first == id ? found->second : index_of(SpanId::none);
  }

  [[nodiscard]] std::string_view graph_name(std::size_t span) const {
    return graph_.strings.text(graph_.spans.name[span]);
  }
  [[nodiscard]] std::string_view timed_name(std::size_t span) const {
    return result_.strings.text(result_.spans.name[span]);
  }

  // Each thread of the ExecutionTrace has a shift of its own.
  std::map<LaneId, Records> by_thread() const {
    std::map<LaneId, Records> threads;
    for (const auto& record : recorded_) threads[graph_.spans.lane[record.second]].push_back(record);
    return threads;
  }

  std::size_t matches(const Records& records, std::int64_t shift) const {
    std::size_t count = 0;
    for (const auto& [id, span] : records) {
      const std::size_t partner = partner_of(id, span, shift);
      count += partner != index_of(SpanId::none);
    }
    return count;
  }

  std::size_t partner_of(std::int64_t id, std::uint32_t span, std::int64_t shift) const {
    std::int64_t wanted = 0;
    if (__builtin_add_overflow(id, shift, &wanted)) return index_of(SpanId::none);
    const std::size_t partner = find(timed_, wanted);
    return partner != index_of(SpanId::none) && timed_name(partner) == graph_name(span) ? partner
                                                                                        : index_of(SpanId::none);
  }

  // Differences of ids of equal names, rarest names first, as many as the vote allows.
  std::map<std::int64_t, std::size_t> votes(const Records& records) const {
    std::map<std::string_view, std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> by_name;
    for (const auto& [id, span] : records) by_name[graph_name(span)].first.push_back(id);
    for (const auto& [id, span] : timed_)
      if (const auto found = by_name.find(timed_name(span)); found != by_name.end()) found->second.second.push_back(id);
    std::vector<std::pair<std::size_t, std::string_view>> order;
    for (const auto& entry : by_name)
      order.emplace_back(entry.second.first.size() * entry.second.second.size(), entry.first);
    std::sort(order.begin(), order.end());
    std::map<std::int64_t, std::size_t> counts;
    std::size_t cast = 0;
    for (const auto& [pairs, name] : order) {
      if (cast + pairs > max_votes) break;
      cast += pairs;
      const auto& ids = by_name.find(name)->second;
      for (const std::int64_t a : ids.first)
        for (const std::int64_t b : ids.second)
          if (std::int64_t difference = 0; !__builtin_sub_overflow(b, a, &difference)) ++counts[difference];
    }
    return counts;
  }

  std::int64_t best_shift(const Records& records) const {
    const auto distance = [](std::int64_t shift) {
      return shift == INT64_MIN ? INT64_MAX : shift < 0 ? -shift : shift;
    };
    std::vector<std::pair<std::size_t, std::int64_t>> candidates;
    for (const auto& [shift, count] : votes(records)) candidates.emplace_back(count, shift);
    std::sort(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : distance(a.second) < distance(b.second);
    });
    if (candidates.size() > candidate_shifts) candidates.resize(candidate_shifts);
    std::int64_t best = 0;
    std::size_t best_matches = matches(records, 0);
    for (const auto& candidate : candidates) {
      const std::size_t count = matches(records, candidate.second);
      if (count > best_matches) best = candidate.second, best_matches = count;
    }
    return best;
  }

  // Ids skip where one side records what the other does not, so what is left after one shift is tried with another.
  void match_thread(Records left) {
    for (int pass = 0; pass < max_passes && !left.empty(); ++pass) {
      const std::int64_t shift = best_shift(left);
      const std::size_t before = left.size();
      std::erase_if(left, [&](const auto& record) {
        const std::size_t partner = partner_of(record.first, record.second, shift);
        if (partner == index_of(SpanId::none) || taken_[partner]) return false;
        taken_[partner] = true;
        partner_[record.second] = partner;
        return true;
      });
      const std::size_t found = before - left.size();
      matched_ += found;
      if (found != 0 && shift != 0)
        result_.note("join_shift", std::to_string(found) + " operators: ids differ by " + std::to_string(shift),
                     "the traces number operators from different beginnings; matched by names", false);
      if (found * 8 < before) break;
    }
  }

  void require_same_run() const {
    if (matched_ * 2 < recorded_.size() || matched_ == 0)
      throw InputError(graph_.provenance.empty() ? "" : graph_.provenance.front().file, "",
                       "only " + std::to_string(matched_) + " of its " + std::to_string(recorded_.size()) +
                           " operators are in the Kineto trace",
                       "join traces that were recorded in the same run, over the same steps");
  }

  // Ops of each timed span: device work by the span of its launch; else the span's own host work.
  void collect_ops() {
    std::vector<std::vector<OpId>> device(result_.spans.size()), host(result_.spans.size());
    for (std::size_t i = 0; i < result_.ops.size(); ++i) {
      const auto op = static_cast<OpId>(i);
      const OpId launch = result_.ops.launched_by[i];
      const SpanId span = launch == OpId::none ? result_.ops.span[i] : result_.ops.span[index_of(launch)];
      if (span == SpanId::none) continue;
      if (is_device_work(result_.ops.kind[i])) device[index_of(span)].push_back(op);
      if (result_.ops.kind[i] == OpKind::host_work) host[index_of(span)].push_back(op);
    }
    const auto by_start = [&](OpId a, OpId b) {
      return result_.ops.start[index_of(a)] < result_.ops.start[index_of(b)];
    };
    ops_.resize(graph_.ops.size());
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const SpanId span = graph_.ops.span[i];
      if (span == SpanId::none || partner_[index_of(span)] == index_of(SpanId::none)) continue;
      const std::size_t partner = partner_[index_of(span)];
      ops_[i] = device[partner].empty() ? host[partner] : device[partner];
      std::stable_sort(ops_[i].begin(), ops_[i].end(), by_start);
    }
  }

  void copy_tensors() {
    const Tensors& from = graph_.tensors;
    Tensors& to = result_.tensors;
    std::uint32_t storages = 0;
    for (const std::uint32_t storage : to.storage) storages = std::max(storages, storage + 1);
    first_tensor_ = static_cast<std::uint32_t>(to.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      to.name.push_back(result_.strings.intern(graph_.strings.text(from.name[i])));
      to.dtype.push_back(result_.strings.intern(graph_.strings.text(from.dtype[i])));
      to.bytes.push_back(from.bytes[i]);
      to.storage.push_back(from.storage[i] + storages);
      to.role.push_back(from.role[i]);
    }
  }

  void copy_uses() {
    for (const Use& use : graph_.uses)
      for (const OpId op : ops_[index_of(use.op)])
        result_.uses.push_back(
            {op, static_cast<TensorId>(static_cast<std::uint32_t>(index_of(use.tensor)) + first_tensor_), use.access});
    std::stable_sort(result_.uses.begin(), result_.uses.end(), [](const Use& a, const Use& b) { return a.op < b.op; });
  }

  void copy_edges() {
    for (const Edge& edge : graph_.edges) {
      const auto& from = ops_[index_of(edge.from)];
      const auto& to = ops_[index_of(edge.to)];
      if (from.empty() || to.empty() || from.back() == to.front()) continue;
      if (result_.ops.start[index_of(from.back())] < result_.ops.start[index_of(to.front())]) {
        result_.edges.push_back({from.back(), to.front(), edge.kind, edge.inferred});
      } else {
        result_.note("edge_against_time", graph_.strings.text(graph_.ops.name[index_of(edge.to)]),
                     "the recorded times contradict the dependency; it is left out", true);
      }
    }
  }

  void copy_phases() {
    if (!graph_.has(Capability::phases)) return;
    bool added = false;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      for (const OpId op : ops_[i]) {
        Phase& phase = result_.ops.phase[index_of(op)];
        if (phase != Phase::unknown) continue;
        phase = graph_.ops.phase[i];
        result_.ops.flags[index_of(op)] |= static_cast<std::uint8_t>(OpFlag::phase_inferred);
        added = true;
      }
    if (added) result_.set(Capability::phases, true);
  }

  void report() {
    const auto note = [&](const char* kind, std::size_t count, const char* remedy) {
      if (count == 0) return;
      result_.note(kind, std::to_string(count) + " operators", remedy, false);
      for (Finding& finding : result_.findings)
        if (finding.kind == kind) finding.count = count;
    };
    note("join_matched", matched_, "operators of the ExecutionTrace found in the Kineto trace");
    note("join_unmatched", recorded_.size() - matched_,
         "operators of the ExecutionTrace without a partner; their tensors are not used");
  }

  Trace result_;
  const Trace& graph_;
  Records timed_, recorded_;
  std::vector<std::size_t> partner_;    // by span of the graph: span of the result, or none
  std::vector<bool> taken_;             // by span of the result
  std::vector<std::vector<OpId>> ops_;  // by op of the graph: ops of the result
  std::size_t matched_ = 0;
  std::uint32_t first_tensor_ = 0;
};

}  // namespace

Trace link_traces(Trace kineto, const Trace& execution_trace) {
  return TraceLinker(std::move(kineto), execution_trace).run();
}

}  // namespace spillway::traces
