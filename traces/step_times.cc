#include "traces/step_times.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/retime.h"

namespace spillway::traces {
namespace {

// Ops of a step that may be each other's partners: (host call, name).
using Key = std::pair<bool, std::string_view>;
using Groups = std::map<Key, std::vector<std::uint32_t>>;

Picos issued_at(const Ops& ops, std::uint32_t i) {
  const OpId by = ops.launched_by[i];
  return ops.start[by == OpId::none ? i : index_of(by)];
}

// By step of the trace, in the order they were issued; a trace without steps is one.
std::vector<Groups> groups_of(const Trace& trace) {
  const Ops& ops = trace.ops;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < ops.size(); ++i)
    if (ops.start[i] != unknown_time && (trace.steps.empty() || ops.step[i] != no_index16)) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(issued_at(ops, a), ops.start[a]) < std::tuple(issued_at(ops, b), ops.start[b]);
  });
  std::vector<Groups> groups(std::max<std::size_t>(trace.steps.size(), 1));
  for (const std::uint32_t i : order)
    groups[trace.steps.empty() ? 0 : ops.step[i]][{is_host_call(ops.kind[i]), trace.strings.text(ops.name[i])}]
        .push_back(i);
  return groups;
}

struct StepPair {
  std::size_t full = 0, light = 0;
  Picos later{};  // from the light step's clock to the one that is made
};

std::vector<std::size_t> steps_of(const Trace& trace, std::uint16_t rank) {
  std::vector<std::size_t> steps;
  for (std::size_t s = 0; s < trace.steps.size(); ++s)
    if (trace.steps[s].rank == rank) steps.push_back(s);
  return steps;
}

// A light step that is taken again begins where the one before it ended.
std::vector<StepPair> paired_steps(const Trace& full, const Trace& light) {
  if (full.steps.empty() && light.steps.empty()) return {{}};
  std::vector<StepPair> pairs;
  for (std::uint16_t rank = 0; rank < full.rank_count; ++rank) {
    const std::vector<std::size_t> of_full = steps_of(full, rank), of_light = steps_of(light, rank);
    if (of_light.empty()) continue;
    const std::size_t skipped = of_light.size() - std::min(of_light.size(), of_full.size());
    Picos later{};
    for (std::size_t k = 0; k < of_full.size(); ++k) {
      const bool again = k + skipped >= of_light.size();
      const std::size_t step = of_light[std::min(k + skipped, of_light.size() - 1)];
      if (again) later += light.steps[step].duration;
      pairs.push_back({of_full[k], step, later});
    }
  }
  return pairs;
}

}  // namespace

std::optional<Trace> with_times_of(const Trace& full, const Trace& light, StepMatch& match) {
  const std::vector<Groups> of_full = groups_of(full), of_light = groups_of(light);
  OpTimes times{std::vector<Picos>(full.ops.size(), unknown_time), std::vector<Picos>(full.ops.size(), unknown_time)};
  match = {};
  for (const Groups& groups : of_full)
    for (const auto& [key, ops] : groups) match.all += ops.size();
  const std::vector<StepPair> pairs = paired_steps(full, light);
  for (const StepPair& pair : pairs) {
    for (const auto& [key, ops] : of_full[pair.full]) {
      const auto found = of_light[pair.light].find(key);
      if (found == of_light[pair.light].end()) continue;
      const std::size_t count = std::min(ops.size(), found->second.size());
      for (std::size_t k = 0; k < count; ++k) {
        times.start[ops[k]] = light.ops.start[found->second[k]] + pair.later;
        times.duration[ops[k]] = light.ops.duration[found->second[k]];
      }
      match.matched += count;
    }
  }
  if (match.all == 0 || match.matched * 10 < match.all * 9) return std::nullopt;
  Trace made = full;
  retime(made, times);
  for (const StepPair& pair : pairs) {
    if (made.steps.empty()) break;
    made.steps[pair.full].start = light.steps[pair.light].start + pair.later;
    made.steps[pair.full].duration = light.steps[pair.light].duration;
  }
  made.time_base_ns = light.time_base_ns;
  return made;
}

}  // namespace spillway::traces
