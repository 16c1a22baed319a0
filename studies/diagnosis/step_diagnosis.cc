#include "studies/diagnosis/step_diagnosis.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "scenario/evaluator.h"
#include "sim/devices/memory/memory_policies.h"
#include "studies/diagnosis/busy_time.h"
#include "studies/diagnosis/relieved_trace.h"
#include "traces/compiled_kernel.h"
#include "traces/span_tree.h"

namespace spillway::studies {
namespace {

constexpr Picos launch_slack = microseconds(10);  // beyond the usual latency: still held by the launch
constexpr std::uint64_t shortest_stretch = 8;     // works in a row
constexpr std::size_t short_rows = 3;

bool is_step(std::string_view name) { return name.starts_with("ProfilerStep#"); }

// As people call it.
std::string host_name(std::string_view name) {
  if (name.find("DataLoader") != std::string_view::npos) return "DataLoader: " + std::string(name);
  if (name == "aten::item" || name == "aten::_local_scalar_dense") return "item(): " + std::string(name);
  return std::string(name);
}

struct HostRow {
  DiagnosisRow row;
  std::vector<TimeInterval> intervals;
};

class StepDiagnosisMaker {
 public:
  StepDiagnosisMaker(const LoadedScenario& loaded, const Result& result, std::size_t most)
      : loaded_(loaded), trace_(loaded.trace), result_(result), most_(most), busy_(busy_intervals()) {}

  StepDiagnosis run(const Trace* with_python, DiagnosisDepth depth) {
    out_.depth = depth;
    find_steps();
    measure();
    count_works();
    count_host();
    count_collectives();
    find_stretches();
    if (with_python != nullptr) count_python(*with_python);
    if (depth == DiagnosisDepth::full) relieve();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool timed(std::size_t i) const {
    return trace_.ops.start[i] != unknown_time && trace_.ops.duration[i] != unknown_time;
  }
  [[nodiscard]] std::vector<TimeInterval> busy_intervals() const {
    std::vector<TimeInterval> intervals;
    for (std::size_t i = 0; i < trace_.ops.size(); ++i)
      if (is_device_work(trace_.ops.kind[i]) && timed(i))
        intervals.push_back({trace_.ops.start[i], trace_.ops.start[i] + trace_.ops.duration[i]});
    return intervals;
  }
  [[nodiscard]] Picos idle(Picos begin, Picos end) const { return end - begin - busy_.within(begin, end); }

  void find_steps() {
    std::vector<TimeInterval> steps;
    for (const Step& step : trace_.steps) steps.push_back({step.start, step.start + step.duration});
    if (steps.empty()) {
      Picos begin = Picos::max(), end{};
      for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
        if (!timed(i)) continue;
        begin = std::min(begin, trace_.ops.start[i]);
        end = std::max(end, trace_.ops.start[i] + trace_.ops.duration[i]);
      }
      if (begin < end) steps.push_back({begin, end});
    }
    steps_ = BusyTime(std::move(steps));
  }

  void measure() {
    out_.steps = trace_.steps.size();
    std::vector<TimeInterval> active = busy_.parts();
    for (std::size_t i = 0; i < trace_.ops.size(); ++i)
      if (!is_device_work(trace_.ops.kind[i]) && timed(i))
        active.push_back({trace_.ops.start[i], trace_.ops.start[i] + trace_.ops.duration[i]});
    const Spans& spans = trace_.spans;
    for (std::size_t s = 0; s < spans.size(); ++s)
      if (spans.kind[s] != SpanKind::python && spans.start[s] != unknown_time &&
          !is_step(trace_.strings.text(spans.name[s])))
        active.push_back({spans.start[s], spans.start[s] + spans.duration[s]});
    std::vector<TimeInterval> all = steps_.parts();
    all.insert(all.end(), active.begin(), active.end());
    out_.recorded = BusyTime(std::move(all)).length();
    out_.active = BusyTime(std::move(active)).length();
    out_.gpu_busy = busy_.length();
  }

  // The innermost operator that launched the work; what torch.compile fused, by the operators in it.
  [[nodiscard]] std::string operator_of(std::size_t i) const {
    if (std::string fused = compiled_operators(trace_.strings.text(trace_.ops.name[i])); !fused.empty())
      return "torch.compile: " + fused;
    const SpanId span = trace_.ops.span[i];
    return span == SpanId::none ? std::string("no operator recorded")
                                : std::string(trace_.strings.text(trace_.spans.name[index_of(span)]));
  }

  void count_works() {
    std::map<StringId, DiagnosisRow> kernels;
    std::map<std::string, DiagnosisRow> operators;
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      if (!is_device_work(trace_.ops.kind[i]) || !timed(i)) continue;
      for (DiagnosisRow* row : {&kernels[trace_.ops.name[i]], &operators[operator_of(i)]}) {
        ++row->count;
        row->time += trace_.ops.duration[i];
      }
    }
    for (auto& [name, row] : kernels) {
      row.name = trace_.strings.text(name);
      out_.kernels.push_back(row);
    }
    for (auto& [name, row] : operators) {
      row.name = name;
      out_.operators.push_back(row);
    }
    for (auto* rows : {&out_.kernels, &out_.operators}) {
      std::stable_sort(rows->begin(), rows->end(),
                       [](const DiagnosisRow& a, const DiagnosisRow& b) { return a.time > b.time; });
      rows->resize(std::min(rows->size(), most_));
    }
  }

  void add_host(const std::string& name, Picos begin, Picos end) {
    HostRow& host = hosts_[name];
    ++host.row.count;
    host.row.time += end - begin;
    host.row.gpu_idle += idle(begin, end);
    host.intervals.push_back({begin, end});
  }

  // Outermost operators and annotations below the steps', item() wherever it is, synchronising calls.
  void count_host() {
    const Spans& spans = trace_.spans;
    const std::vector<SpanId> parents = span_parents(trace_);
    std::vector<TimeInterval> named;
    for (std::size_t s = 0; s < spans.size(); ++s) {
      if (spans.kind[s] == SpanKind::python || spans.start[s] == unknown_time) continue;
      const std::string_view name = trace_.strings.text(spans.name[s]);
      if (is_step(name)) continue;
      const SpanId parent = parents[s];
      const bool outermost = parent == SpanId::none || is_step(trace_.strings.text(spans.name[index_of(parent)]));
      const Picos end = spans.start[s] + spans.duration[s];
      if (outermost) named.push_back({spans.start[s], end});
      if (outermost || name == "aten::item") add_host(host_name(name), spans.start[s], end);
    }
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      const OpKind kind = trace_.ops.kind[i];
      const bool waits = kind == OpKind::device_sync || kind == OpKind::stream_sync || kind == OpKind::event_sync ||
                         kind == OpKind::device_free || kind == OpKind::device_malloc;
      if (!waits || !timed(i)) continue;
      const Picos end = trace_.ops.start[i] + trace_.ops.duration[i];
      named.push_back({trace_.ops.start[i], end});
      add_host(std::string(trace_.strings.text(trace_.ops.name[i])), trace_.ops.start[i], end);
    }
    add_unnamed(std::move(named));
    for (const auto& [name, host] : hosts_) {
      out_.host.push_back(host.row);
      out_.host.back().name = name;
    }
    std::stable_sort(out_.host.begin(), out_.host.end(), [](const DiagnosisRow& a, const DiagnosisRow& b) {
      return a.gpu_idle != b.gpu_idle ? a.gpu_idle > b.gpu_idle : a.time > b.time;
    });
    out_.host.resize(std::min(out_.host.size(), most_));
  }

  // What no thread has a name for is Python's, between its operators.
  void add_unnamed(std::vector<TimeInterval> named) {
    if (named.empty()) return;
    const BusyTime covered(std::move(named));
    for (const TimeInterval& step : steps_.parts()) {
      Picos at = step.begin;
      const std::vector<TimeInterval>& parts = covered.parts();
      for (auto next = std::partition_point(parts.begin(), parts.end(),
                                            [&](const TimeInterval& part) { return part.end <= step.begin; });
           next != parts.end() && next->begin < step.end; ++next) {
        const TimeInterval& part = *next;
        if (part.begin > at) add_host("between operators (Python)", at, part.begin);
        at = std::max(at, part.end);
      }
      if (at < step.end) add_host("between operators (Python)", at, step.end);
    }
  }

  using CollectiveKey = std::tuple<StringId, Bytes, std::uint32_t>;  // name, bytes, ranks
  [[nodiscard]] bool is_timed(const Collective& collective) const {
    return collective.op != OpId::none && timed(index_of(collective.op));
  }
  [[nodiscard]] CollectiveKey key_of(const Collective& collective) const {
    return {trace_.ops.name[index_of(collective.op)], collective.bytes, collective.group_size};
  }

  void count_collectives() {
    std::map<CollectiveKey, std::vector<Picos>> groups;
    for (const Collective& collective : trace_.collectives)
      if (is_timed(collective)) groups[key_of(collective)].push_back(trace_.ops.duration[index_of(collective.op)]);
    for (const auto& [key, times] : groups) {
      const Picos shortest = *std::min_element(times.begin(), times.end());
      shortest_[key] = shortest;
      CollectiveRow row{std::string(trace_.strings.text(std::get<0>(key))), times.size(), std::get<1>(key), {}, {}};
      for (const Picos time : times) {
        row.time += time;
        row.wait += time - shortest;
      }
      out_.collectives.push_back(std::move(row));
    }
    std::stable_sort(out_.collectives.begin(), out_.collectives.end(),
                     [](const CollectiveRow& a, const CollectiveRow& b) { return a.wait > b.wait; });
    out_.collectives.resize(std::min(out_.collectives.size(), most_));
  }

  void find_stretches() {
    std::vector<std::size_t> works;
    for (std::size_t i = 0; i < trace_.ops.size(); ++i)
      if (is_device_work(trace_.ops.kind[i]) && timed(i)) works.push_back(i);
    std::stable_sort(works.begin(), works.end(),
                     [&](std::size_t a, std::size_t b) { return trace_.ops.start[a] < trace_.ops.start[b]; });
    const Picos fitted = trace_.capture_fit.launch_to_start;
    const Picos latency = (fitted == unknown_time ? Picos(0) : fitted) + launch_slack;
    LaunchBoundStretch open;
    Picos reached{};
    const auto close = [&] {
      if (open.works >= shortest_stretch) {
        open.length = reached - open.begin;
        out_.launch_bound += open.length;
        out_.stretches.push_back(open);
      }
      open = {};
    };
    for (const std::size_t i : works) {
      const OpId by = trace_.ops.launched_by[i];
      const Picos start = trace_.ops.start[i], end = start + trace_.ops.duration[i];
      const bool bound = by != OpId::none && timed(index_of(by)) && start > reached &&
                         start - trace_.ops.start[index_of(by)] <= latency;
      if (!bound) close();
      if (bound && open.works == 0) {
        open.begin = start;
        open.where = operator_of(i);
      }
      if (bound) {
        ++open.works;
        open.busy += trace_.ops.duration[i];
      }
      reached = std::max(reached, end);
    }
    close();
    std::stable_sort(out_.stretches.begin(), out_.stretches.end(),
                     [](const LaunchBoundStretch& a, const LaunchBoundStretch& b) { return a.length > b.length; });
    out_.stretches.resize(std::min(out_.stretches.size(), most_));
  }

  // Of Python's frames their own time; of modules what was launched in them.
  void count_python(const Trace& python) {
    const Spans& spans = python.spans;
    const std::vector<SpanId> parents = span_parents(python);
    std::vector<Picos> own(spans.size()), own_idle(spans.size());
    for (std::size_t s = 0; s < spans.size(); ++s) {
      if (spans.start[s] == unknown_time) continue;
      const Picos gap = idle(spans.start[s], spans.start[s] + spans.duration[s]);
      own[s] += spans.duration[s];
      own_idle[s] += gap;
      if (parents[s] == SpanId::none) continue;
      own[index_of(parents[s])] -= spans.duration[s];
      own_idle[index_of(parents[s])] -= gap;
    }
    std::map<StringId, DiagnosisRow> frames, modules;
    for (std::size_t s = 0; s < spans.size(); ++s) {
      if (spans.kind[s] != SpanKind::python) continue;
      DiagnosisRow& row = frames[spans.name[s]];
      ++row.count;
      row.time += std::max(own[s], Picos(0));
      row.gpu_idle += std::max(own_idle[s], Picos(0));
    }
    for (std::size_t i = 0; i < python.ops.size(); ++i) {
      if (!is_device_work(python.ops.kind[i]) || python.ops.duration[i] == unknown_time) continue;
      for (SpanId s = python.ops.span[i]; s != SpanId::none; s = parents[index_of(s)]) {
        if (!python.strings.text(spans.name[index_of(s)]).starts_with("nn.Module: ")) continue;
        DiagnosisRow& row = modules[spans.name[index_of(s)]];
        ++row.count;
        row.time += python.ops.duration[i];
        break;
      }
    }
    const auto take = [&](const std::map<StringId, DiagnosisRow>& from, std::vector<DiagnosisRow>& to) {
      for (const auto& [name, row] : from) {
        to.push_back(row);
        to.back().name = python.strings.text(name);
      }
      std::stable_sort(to.begin(), to.end(), [](const DiagnosisRow& a, const DiagnosisRow& b) {
        return a.gpu_idle != b.gpu_idle ? a.gpu_idle > b.gpu_idle : a.time > b.time;
      });
      to.resize(std::min(to.size(), most_));
    };
    take(frames, out_.frames);
    take(modules, out_.modules);
  }

  struct Case {
    std::string what;
    std::function<Trace()> make;
  };

  [[nodiscard]] std::vector<Case> cases() const {
    std::vector<Case> found;
    for (const DiagnosisRow& row : out_.host)
      if (row.gpu_idle > Picos(0))
        found.push_back({"without the host's time in " + row.name,
                         [this, name = row.name] { return without_host_time(trace_, hosts_.at(name).intervals); }});
    for (std::size_t k = 0; k < std::min<std::size_t>(out_.kernels.size(), 5); ++k)
      found.push_back({"without " + out_.kernels[k].name,
                       [this, name = out_.kernels[k].name] { return without_work(trace_, id_of(name)); }});
    if (std::any_of(out_.collectives.begin(), out_.collectives.end(),
                    [](const CollectiveRow& row) { return row.wait > Picos(0); }))
      found.push_back({"without the waits in collectives", [this] { return without_collective_waits(); }});
    return found;
  }

  [[nodiscard]] StringId id_of(const std::string& name) const {
    for (const StringId id : trace_.ops.name)
      if (trace_.strings.text(id) == name) return id;
    return {};
  }

  [[nodiscard]] Trace without_collective_waits() const {
    Trace out = trace_;
    for (const Collective& collective : trace_.collectives)
      if (is_timed(collective)) out.ops.duration[index_of(collective.op)] = shortest_.at(key_of(collective));
    return out;
  }

  // Each replayed without memory, which changes none of it.
  void relieve() {
    const std::vector<Case> reliefs = cases();
    std::vector<Relief> found(reliefs.size());
    in_parallel(reliefs.size(), [&](std::size_t i) {
      ReplayOptions options = loaded_.options;
      options.memory = {};
      options.memory.allocator = ideal_policy;
      const Result relieved = replay(reliefs[i].make(), loaded_.hardware, options);
      const double before = to_seconds(result_.step_time);
      found[i] = {reliefs[i].what, relieved.step_time, before > 0 ? 1 - to_seconds(relieved.step_time) / before : 0};
    });
    std::stable_sort(found.begin(), found.end(), [](const Relief& a, const Relief& b) { return a.gain > b.gain; });
    out_.reliefs = std::move(found);
  }

  const LoadedScenario& loaded_;
  const Trace& trace_;
  const Result& result_;
  std::size_t most_;
  BusyTime busy_;
  BusyTime steps_{{}};
  std::map<std::string, HostRow> hosts_;
  std::map<CollectiveKey, Picos> shortest_;
  StepDiagnosis out_;
};

}  // namespace

StepDiagnosis diagnose_step(const LoadedScenario& loaded, const Result& result, const Trace* with_python,
                            std::size_t most, DiagnosisDepth depth) {
  return StepDiagnosisMaker(loaded, result, most).run(with_python, depth);
}

std::optional<StepDiagnosis> diagnose_capture(const LoadedScenario& loaded, const ScenarioRun& run,
                                              DiagnosisDepth depth) {
  if (!loaded.scenario.model.empty() || run.planned || !run.result.fidelity) return std::nullopt;
  const auto with_memory = [&](StepDiagnosis found) {
    if (!run.result.memory.known) return found;
    for (const MemoryEvent& event : loaded.trace.memory_events)
      if (event.device == run.result.memory.device)
        found.recorded_reserved = std::max(found.recorded_reserved, event.total_reserved);
    found.replayed_reserved = run.result.memory.peak_reserved;
    return found;
  };
  if (depth == DiagnosisDepth::short_form)
    return with_memory(diagnose_step(loaded, run.result, nullptr, short_rows, depth));
  const std::string format = loaded.trace.provenance.empty() ? "" : loaded.trace.provenance.front().format;
  const std::optional<Trace> python = format == "kineto" || format == "perfetto"
                                          ? std::optional(read_captured(loaded.scenario, {.keep_python = true}))
                                          : std::nullopt;
  return with_memory(diagnose_step(loaded, run.result, python ? &*python : nullptr));
}

}  // namespace spillway::studies
