#include "sim/replay/fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number_text.h"
#include "sim/replay/unprofiled_step.h"

namespace spillway::sim {
namespace {

using Key = std::pair<bool, StringId>;

constexpr std::string_view wait_in = "unexplained wait in ", gap_before = "unexplained gap before ";

std::string name_of(const Trace& trace, const Key& key) {
  return fmt::format("{}{}", key.first ? wait_in : gap_before, trace.strings.text(key.second));
}

struct Counts {
  std::uint64_t launches = 0, graph_launches = 0, without_work = 0;
  std::uint64_t works = 0, works_of_graphs = 0, without_launch = 0;
  Picos in_calls{}, before_collectives{}, before_graph_works{};  // on the critical path
  std::string longest_call;
};

bool is_graph_launch(std::string_view name) { return name.find("GraphLaunch") != std::string_view::npos; }

Counts count(const Trace& trace, const Result& own) {
  const Ops& ops = trace.ops;
  Counts counts;
  std::vector<bool> has_work(ops.size(), false);
  std::set<std::string_view> collectives;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!is_device_work(ops.kind[i])) continue;
    ++counts.works;
    if (ops.kind[i] == OpKind::collective) collectives.insert(trace.strings.text(ops.name[i]));
    const OpId by = ops.launched_by[i];
    if (by == OpId::none) {
      ++counts.without_launch;
      continue;
    }
    has_work[index_of(by)] = true;
    if (is_graph_launch(trace.strings.text(ops.name[index_of(by)]))) ++counts.works_of_graphs;
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops.kind[i] != OpKind::launch) continue;
    ++counts.launches;
    if (!has_work[i]) ++counts.without_work;
    if (is_graph_launch(trace.strings.text(ops.name[i]))) ++counts.graph_launches;
  }
  for (const KeptIdle& row : own.kept_idle) {
    const std::string_view what = std::string_view(row.name).substr((row.in_call ? wait_in : gap_before).size());
    if (row.in_call && counts.longest_call.empty()) counts.longest_call = what;
    if (row.in_call) counts.in_calls += row.on_path;
    if (!row.in_call && collectives.count(what) > 0) counts.before_collectives += row.on_path;
  }
  return counts;
}

// The most telling first; at most two.
std::string cause_of(const Trace& trace, const Result& own) {
  const Counts counts = count(trace, own);
  const Picos all = own.unexplained();
  std::vector<std::string> causes;
  if (counts.works == 0 && counts.launches > 0)
    causes.push_back(fmt::format("missing kernels: {} launches and no GPU work was recorded", counts.launches));
  else if (counts.without_work * 20 > counts.launches && counts.without_work > 0)
    causes.push_back(
        fmt::format("missing kernels: {} of {} launches show no GPU work", counts.without_work, counts.launches));
  if (counts.in_calls * 2 > all && counts.longest_call.find("Free") != std::string::npos)
    causes.push_back(
        fmt::format("the host is in {} for longer than any recorded GPU work explains: CUDA starting up, or "
                    "work that was not recorded",
                    counts.longest_call));
  else if (counts.in_calls * 2 > all && !counts.longest_call.empty())
    causes.push_back(fmt::format("the host waits in {} for GPU work that was not recorded", counts.longest_call));
  if (counts.graph_launches > 0)
    causes.push_back(fmt::format("CUDA graphs: {} launches of {} works, and what these wait for was not recorded",
                                 counts.graph_launches, counts.works_of_graphs));
  if (counts.without_launch * 20 > counts.works)
    causes.push_back(
        fmt::format("missing launches: {} of {} works of the GPU have none", counts.without_launch, counts.works));
  if (counts.before_collectives * 2 > all && all > Picos(0))
    causes.emplace_back("the GPU waits before collectives, perhaps for other ranks");
  if (causes.empty() && all > Picos(0)) causes.emplace_back("GPU work begins late and nothing recorded says why");
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(causes.size(), 2); ++i) text += (i == 0 ? "" : "; ") + causes[i];
  return text;
}

}  // namespace

std::vector<KeptIdle> kept_idle(const Trace& trace, std::span<const std::pair<OpId, Picos>> on_path) {
  std::map<Key, KeptIdle> rows;
  const auto add = [&](bool in_call, OpId op, Picos time) {
    const Key key{in_call, trace.ops.name[index_of(op)]};
    KeptIdle& row = rows[key];
    row.in_call = in_call;
    ++row.count;
    row.total += time;
    row.longest = std::max(row.longest, time);
  };
  for (const Edge& edge : trace.edges)
    if (edge.kind == EdgeKind::unexplained) add(false, edge.to, std::max(edge.lag, Picos(0)));
  for (const UnexplainedWait& wait : trace.unexplained_waits) add(true, wait.op, wait.time);
  for (const auto& [op, time] : on_path) {
    const bool in_call = is_host_call(trace.ops.kind[index_of(op)]);
    const Key key{in_call, trace.ops.name[index_of(op)]};
    if (!rows.contains(key)) add(in_call, op, time);  // placed by its recorded time alone
    rows[key].on_path += time;
  }
  std::vector<KeptIdle> sorted;
  for (auto& [key, row] : rows) {
    row.name = name_of(trace, key);
    sorted.push_back(std::move(row));
  }
  std::sort(sorted.begin(), sorted.end(), [](const KeptIdle& a, const KeptIdle& b) {
    if (a.on_path != b.on_path) return a.on_path > b.on_path;
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  return sorted;
}

std::optional<Fidelity> fidelity_of(const Trace& trace, const Result& own) {
  Fidelity found;
  for (const StepResult& step : own.steps) {
    if (step.recorded_span == unknown_time || step.recorded_span <= Picos(0)) continue;
    found.recorded += step.recorded_span;
    found.replayed += step.span();
    const double error = to_seconds(step.span()) / to_seconds(step.recorded_span) - 1;
    if (std::abs(error) > std::abs(found.error)) found.error = error;
  }
  if (found.recorded <= Picos(0)) return std::nullopt;
  found.unexplained = own.unexplained();
  if (own.replayed > Picos(0)) found.unexplained_share = to_seconds(found.unexplained) / to_seconds(own.replayed);
  found.unprofiled = unprofiled_step(trace);
  if (found.unprofiled > Picos(0))
    found.unprofiled_error = to_seconds(own.step_time) / to_seconds(found.unprofiled) - 1;
  if (std::abs(found.error) > largest_good_error || found.unexplained_share > largest_good_share)
    found.cause = cause_of(trace, own);
  return found;
}

std::vector<std::string> fidelity_warnings(const Result& result) {
  std::vector<std::string> warnings;
  if (!result.fidelity) return warnings;
  const Fidelity& found = *result.fidelity;
  if (std::abs(found.unprofiled_error) > largest_unprofiled_error)
    warnings.push_back(fmt::format("the step took {:.3f} ms without a profiler, and is replayed {:+.1f} % off that",
                                   to_seconds(found.unprofiled) * 1e3, found.unprofiled_error * 100));
  const Picos step = result.step_time;
  if (found.without_profiler > Picos(0) &&
      to_seconds(found.without_profiler) < (1 - largest_unprofiled_error) * to_seconds(step))
    warnings.push_back(fmt::format(
        "the times hold the profiler: with the host at its known cost an operator the step takes {:.1f} ms, "
        "not {:.1f}; record lightly profiled steps too (spillway.torch.record) and give the folder",
        to_seconds(found.without_profiler) * 1e3, to_seconds(step) * 1e3));
  const std::string cause = found.cause.empty() ? "" : " (" + found.cause + ")";
  if (std::abs(found.error) > largest_good_error)
    warnings.push_back(
        fmt::format("replayed on its own timings the capture is off by {:+.1f} %{}: figures below are "
                    "off alike",
                    found.error * 100, cause));
  const double share =
      result.replayed > Picos(0) ? to_seconds(result.unexplained()) / to_seconds(result.replayed) : 0.0;
  if (std::max(found.unexplained_share, share) > largest_good_share)
    warnings.push_back(
        fmt::format("{:.1f} % of the replayed time ({:.3f} ms) is idle time that nothing in the capture "
                    "explains{}; it is kept as it was, and no what-if shortens it",
                    share * 100, to_seconds(result.unexplained()) * 1e3, cause));
  return warnings;
}

}  // namespace spillway::sim
