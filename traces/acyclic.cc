#include "traces/acyclic.h"

#include <numeric>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

// Successors of op i are to[first[i]] .. to[first[i + 1]].
struct Successors {
  std::vector<std::size_t> first;
  std::vector<std::uint32_t> to;
};

Successors successors_of(const Trace& trace) {
  Successors result;
  result.first.assign(trace.ops.size() + 1, 0);
  for (const Edge& edge : trace.edges) ++result.first[index_of(edge.from) + 1];
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  result.to.resize(trace.edges.size());
  std::vector<std::size_t> next(result.first.begin(), result.first.end() - 1);
  for (const Edge& edge : trace.edges)
    result.to[next[index_of(edge.from)]++] = static_cast<std::uint32_t>(index_of(edge.to));
  return result;
}

// Every op left has an unfinished predecessor; walking back along those must come round.
[[noreturn]] void report_cycle(const Trace& trace, const std::vector<std::uint32_t>& waits_for) {
  const auto n = static_cast<std::uint32_t>(trace.ops.size());
  std::vector<std::uint32_t> predecessor(n, n);
  std::uint32_t at = n;
  for (const Edge& edge : trace.edges) {
    const auto from = static_cast<std::uint32_t>(index_of(edge.from));
    const auto to = static_cast<std::uint32_t>(index_of(edge.to));
    if (waits_for[from] == 0 || waits_for[to] == 0) continue;
    predecessor[to] = from;
    at = to;
  }
  for (std::uint32_t i = 0; i < n; ++i) at = predecessor[at];  // surely on the cycle now
  const auto describe = [&](std::uint32_t op) {
    return "op " + std::to_string(op) + " \"" + std::string(trace.strings.text(trace.ops.name[op])) + "\"";
  };
  std::string circle = describe(at);
  std::uint32_t before = predecessor[at];
  for (int shown = 0; before != at && shown < 5; ++shown, before = predecessor[before])
    circle += " waits for " + describe(before);
  circle += before == at ? " waits for op " + std::to_string(at) : " waits for ...";
  throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, describe(at),
                   "dependencies in a circle: " + circle, "the recording contradicts itself; record it again");
}

}  // namespace

void check_acyclic(const Trace& trace) {
  const Successors successors = successors_of(trace);
  std::vector<std::uint32_t> waits_for(trace.ops.size(), 0);
  for (const Edge& edge : trace.edges) ++waits_for[index_of(edge.to)];
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < waits_for.size(); ++i)
    if (waits_for[i] == 0) ready.push_back(i);
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::uint32_t op = ready.back();
    ready.pop_back();
    ++done;
    for (std::size_t i = successors.first[op]; i < successors.first[op + 1]; ++i)
      if (--waits_for[successors.to[i]] == 0) ready.push_back(successors.to[i]);
  }
  if (done != trace.ops.size()) report_cycle(trace, waits_for);
}

}  // namespace spillway::traces
