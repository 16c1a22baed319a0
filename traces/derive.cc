#include "traces/derive.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/span_tree.h"

namespace spillway::traces {
namespace {

struct SpanPhase {
  Phase phase = Phase::unknown;
  bool inferred = false;
};

Phase stamped_phase(std::string_view name, SpanKind kind) {
  if (name.starts_with("Optimizer.step#") || name.starts_with("Optimizer.zero_grad#")) return Phase::optimizer;
  if (name == "CheckpointFunctionBackward") return Phase::recompute;
  if (name.starts_with("autograd::engine::evaluate_function")) return Phase::backward;
  if (kind == SpanKind::annotation) {
    if (name == "## forward ##" || name == "## forward" || name == "forward") return Phase::forward;
    if (name == "## backward ##" || name == "## backward" || name == "backward") return Phase::backward;
    if (name == "## optimizer ##" || name == "optimizer" || name == "optimizer_step") return Phase::optimizer;
  }
  return kind == SpanKind::cpu_operator && is_autograd_node(name) ? Phase::backward : Phase::unknown;
}

class PhaseFinder {
 public:
  explicit PhaseFinder(Trace& trace) : trace_(trace), parents_(span_parents(trace)), phases_(trace.spans.size()) {}
  void run();

 private:
  void stamp_spans();
  void mark_forward_by_sequence();
  void find_backward_threads();
  void find_first_backward();
  [[nodiscard]] SpanPhase phase_of_host(std::size_t op) const;

  Trace& trace_;
  std::vector<SpanId> parents_;
  std::vector<SpanPhase> phases_;
  std::vector<bool> backward_thread_;
  std::vector<Picos> first_backward_;  // per step
};

void PhaseFinder::stamp_spans() {
  const Spans& spans = trace_.spans;
  std::unordered_map<std::uint32_t, Phase> known;  // names repeat
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto key = static_cast<std::uint32_t>(spans.name[i]) * 4U + static_cast<std::uint32_t>(spans.kind[i]);
    const auto [found, is_new] = known.try_emplace(key, Phase::unknown);
    if (is_new) found->second = stamped_phase(trace_.strings.text(spans.name[i]), spans.kind[i]);
    phases_[i].phase = found->second;
    if (phases_[i].phase == Phase::unknown && parents_[i] != SpanId::none) phases_[i] = phases_[index_of(parents_[i])];
  }
}

void PhaseFinder::mark_forward_by_sequence() {
  const Spans& spans = trace_.spans;
  std::vector<std::int64_t> returning;
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans.sequence[i] >= 0 && phases_[i].phase == Phase::backward) returning.push_back(spans.sequence[i]);
  std::sort(returning.begin(), returning.end());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (phases_[i].phase != Phase::unknown) continue;
    if (spans.sequence[i] >= 0 && std::binary_search(returning.begin(), returning.end(), spans.sequence[i]))
      phases_[i] = {Phase::forward, true};
    else if (parents_[i] != SpanId::none && phases_[index_of(parents_[i])].phase == Phase::forward)
      phases_[i] = phases_[index_of(parents_[i])];
  }
}

void PhaseFinder::find_backward_threads() {
  const Spans& spans = trace_.spans;
  std::vector<bool> runs_other(trace_.lanes.size(), false);
  backward_thread_.assign(trace_.lanes.size(), false);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans.lane[i] == LaneId::none) continue;
    const std::size_t lane = index_of(spans.lane[i]);
    if (phases_[i].phase == Phase::backward) backward_thread_[lane] = true;
    if (phases_[i].phase == Phase::forward || phases_[i].phase == Phase::optimizer ||
        trace_.strings.text(spans.name[i]).starts_with("ProfilerStep#"))
      runs_other[lane] = true;
  }
  for (std::size_t i = 0; i < runs_other.size(); ++i)
    if (runs_other[i]) backward_thread_[i] = false;
}

void PhaseFinder::find_first_backward() {
  first_backward_.assign(trace_.steps.size(), Picos(std::numeric_limits<std::int64_t>::min()));
  const Spans& spans = trace_.spans;
  std::size_t next = 0;
  for (std::size_t step = 0; step < trace_.steps.size(); ++step) {
    const Picos begin = trace_.steps[step].start, end = begin + trace_.steps[step].duration;
    while (next < spans.size() && spans.start[next] < begin) ++next;
    for (; next < spans.size() && spans.start[next] < end; ++next) {
      if (phases_[next].phase != Phase::backward) continue;
      first_backward_[step] = spans.start[next];
      break;
    }
  }
}

SpanPhase PhaseFinder::phase_of_host(std::size_t op) const {
  const Ops& ops = trace_.ops;
  const SpanId span = ops.span[op];
  if (span != SpanId::none && phases_[index_of(span)].phase != Phase::unknown) return phases_[index_of(span)];
  if (backward_thread_[index_of(ops.lane[op])]) return {Phase::backward, true};
  const bool in_operator = span != SpanId::none && trace_.spans.kind[index_of(span)] == SpanKind::cpu_operator;
  if (in_operator && ops.step[op] != no_index16 && ops.start[op] < first_backward_[ops.step[op]])
    return {Phase::forward, true};
  return {};
}

void PhaseFinder::run() {
  stamp_spans();
  mark_forward_by_sequence();
  find_backward_threads();
  find_first_backward();
  Ops& ops = trace_.ops;
  const auto give = [&](std::size_t i, SpanPhase found) {
    ops.phase[i] = found.phase;
    if (found.inferred) ops.flags[i] |= static_cast<std::uint8_t>(OpFlag::phase_inferred);
  };
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (is_host_call(ops.kind[i]) && ops.phase[i] == Phase::unknown) give(i, phase_of_host(i));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!is_device_work(ops.kind[i]) || ops.phase[i] != Phase::unknown) continue;
    if (ops.kind[i] == OpKind::collective) {
      give(i, {Phase::communication, false});
    } else if (const OpId launch = ops.launched_by[i]; launch != OpId::none) {
      const std::size_t call = index_of(launch);
      give(i, {ops.phase[call], (ops.flags[call] & static_cast<std::uint8_t>(OpFlag::phase_inferred)) != 0});
    }
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number at `at`; no_index16 if there is none or it is too large.
std::uint16_t number_at(std::string_view text, std::size_t at) {
  std::uint16_t value = no_index16;
  if (at < text.size() && is_digit(text[at])) std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

std::uint16_t layer_in(std::string_view name) {
  if (name.starts_with("nn.Module: ")) {
    const std::size_t bar = name.rfind('_');
    if (bar == std::string_view::npos) return no_index16;
    const std::string_view type = name.substr(0, bar);
    return type.ends_with("Layer") || type.ends_with("Block") ? number_at(name, bar + 1) : no_index16;
  }
  constexpr std::string_view marked = "## layer ";  // as spillway.torch.record() has it
  if (name.starts_with(marked)) return number_at(name, marked.size());
  constexpr std::array<std::string_view, 5> words = {"layers.", "layer.", "blocks.", "block.", "h."};
  for (const std::string_view word : words) {
    const std::size_t found = name.find(word);
    if (found == std::string_view::npos || (found != 0 && name[found - 1] != '.' && name[found - 1] != ' ')) continue;
    if (const std::uint16_t layer = number_at(name, found + word.size()); layer != no_index16) return layer;
  }
  return no_index16;
}

struct DerivedLife {
  OpId allocated_at = OpId::none;
  TensorId tensor = TensorId::none;
};

// Calls visit(allocation, anchor of the free) for every GPU block that is freed in the trace.
template <class Visit>
void visit_lives(const Trace& trace, Visit visit) {
  std::map<std::pair<std::int16_t, std::uint64_t>, DerivedLife> live;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device < 0 || event.address.count() == 0) continue;
    const std::pair key(event.device, event.address.count());
    if (event.action == MemoryAction::allocate) {
      live[key] = {event.anchor, event.tensor};
    } else if (event.action == MemoryAction::free_requested) {
      const auto found = live.find(key);
      if (found == live.end()) continue;
      visit(found->second, event.anchor);
      live.erase(found);
    }
  }
}

bool is_saved_activation(const Trace& trace, const DerivedLife& life, OpId freed_at) {
  return life.allocated_at != OpId::none && freed_at != OpId::none &&
         trace.ops.phase[index_of(life.allocated_at)] == Phase::forward &&
         trace.ops.phase[index_of(freed_at)] == Phase::backward;
}

}  // namespace

void assign_steps(Trace& trace) {
  Ops& ops = trace.ops;
  const auto& steps = trace.steps;
  if (steps.empty()) return;
  const auto step_at = [&](Picos time) {
    const auto after =
        std::upper_bound(steps.begin(), steps.end(), time, [](Picos t, const Step& step) { return t < step.start; });
    if (time == unknown_time || after == steps.begin()) return no_index16;
    const auto step = after - 1;
    return time < step->start + step->duration ? static_cast<std::uint16_t>(step - steps.begin()) : no_index16;
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops.step[i] != no_index16) continue;
    const OpId launch = ops.launched_by[i];
    ops.step[i] = step_at(ops.start[launch == OpId::none ? i : index_of(launch)]);
  }
}

void derive_phases(Trace& trace) {
  if (trace.spans.size() != 0) PhaseFinder(trace).run();
  const Ops& ops = trace.ops;
  bool any = false, inferred = false;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops.phase[i] == Phase::unknown || ops.phase[i] == Phase::communication) continue;
    any = true;
    inferred = inferred || (ops.flags[i] & static_cast<std::uint8_t>(OpFlag::phase_inferred)) != 0;
  }
  if (any) trace.set(Capability::phases, inferred);
}

void derive_layers(Trace& trace) {
  const Spans& spans = trace.spans;
  if (spans.size() == 0) return;
  const std::vector<SpanId> parents = span_parents(trace);
  std::vector<std::uint16_t> layers(spans.size(), no_index16);
  std::vector<std::pair<std::int64_t, std::uint16_t>> of_sequence;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans.kind[i] != SpanKind::cpu_operator) layers[i] = layer_in(trace.strings.text(spans.name[i]));
    if (layers[i] == no_index16 && parents[i] != SpanId::none) layers[i] = layers[index_of(parents[i])];
    if (layers[i] != no_index16 && spans.sequence[i] >= 0) of_sequence.emplace_back(spans.sequence[i], layers[i]);
  }
  std::sort(of_sequence.begin(), of_sequence.end());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (layers[i] != no_index16) continue;
    const auto found =
        std::lower_bound(of_sequence.begin(), of_sequence.end(), std::pair(spans.sequence[i], std::uint16_t{0}));
    if (spans.sequence[i] >= 0 && found != of_sequence.end() && found->first == spans.sequence[i])
      layers[i] = found->second;
    else if (parents[i] != SpanId::none)
      layers[i] = layers[index_of(parents[i])];
  }
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.layer[i] == no_index16 && trace.ops.span[i] != SpanId::none)
      trace.ops.layer[i] = layers[index_of(trace.ops.span[i])];
}

void derive_activations(Trace& trace) {
  if (trace.tensors.size() == 0) return;
  visit_lives(trace, [&](const DerivedLife& life, OpId freed_at) {
    if (life.tensor == TensorId::none || !is_saved_activation(trace, life, freed_at)) return;
    TensorRole& role = trace.tensors.role[index_of(life.tensor)];
    if (role == TensorRole::unknown) role = TensorRole::activation;
  });
}

void derive(Trace& trace) {
  assign_steps(trace);
  derive_phases(trace);
  derive_layers(trace);
  derive_activations(trace);
}

}  // namespace spillway::traces
