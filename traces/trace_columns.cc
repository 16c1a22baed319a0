#include "traces/trace_columns.h"

#include <array>

namespace spillway::traces {
namespace {

// From to_string, which knows the names; so they can't differ.
template <class T, std::size_t count>
std::array<std::string_view, count> names_from_to_string() {
  std::array<std::string_view, count> names;
  for (std::size_t i = 0; i < count; ++i) names[i] = to_string(static_cast<T>(i));
  return names;
}

constexpr std::array<std::string_view, 4> span_kind_names = {"cpu_operator", "annotation", "python", "runtime_other"};
constexpr std::array<std::string_view, 2> access_names = {"read", "write"};
constexpr std::array<std::string_view, 4> edge_kind_names = {"data", "control", "cross_stream", "unexplained"};
constexpr std::array<std::string_view, 3> block_state_names = {"allocated", "pending_free", "inactive"};

// Checks each column's numbers against what they point at.
class RangeCheck {
 public:
  explicit RangeCheck(const Trace& trace) : trace_(trace) {}

  void table(const char* name, std::size_t rows) {
    table_ = name;
    rows_ = rows;
  }
  bool optional_table(const char* name, std::size_t rows) {
    table(name, rows);
    return true;
  }
  template <class Resize, class Get, class Set>
  void column(const char* name, const ColumnType& type, const Resize&, const Get& get, const Set&) {
    const std::size_t limit = type.is_text ? trace_.strings.size() : type.names.size();
    if (limit == 0 || !problem_.empty()) return;
    for (std::size_t i = 0; i < rows_; ++i) {
      const std::int64_t value = get(i);
      if (value >= 0 && static_cast<std::size_t>(value) < limit) continue;
      problem_ = std::string(table_) + "." + name + "[" + std::to_string(i) + "]";
      return;
    }
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  const Trace& trace_;
  const char* table_ = "";
  std::size_t rows_ = 0;
  std::string problem_;
};

template <class Id>
bool in_range(Id id, std::size_t count, bool may_be_none) {
  return (may_be_none && id == Id::none) || index_of(id) < count;
}

std::string op_problem(const Trace& t) {
  const Ops& ops = t.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool sound = in_range(ops.lane[i], t.lanes.size(), false) && in_range(ops.launched_by[i], ops.size(), true) &&
                       in_range(ops.span[i], t.spans.size(), true) &&
                       (ops.step[i] == no_index16 || ops.step[i] < t.steps.size()) &&
                       (ops.duration[i] == unknown_time || ops.duration[i] >= Picos(0));
    if (!sound) return "op " + std::to_string(i);
  }
  if (!t.spans.external_id.empty() && t.spans.external_id.size() != t.spans.size()) return "span_externals";
  for (std::size_t i = 0; i < t.spans.size(); ++i)
    if (!in_range(t.spans.lane[i], t.lanes.size(), true)) return "span " + std::to_string(i);
  return "";
}

template <class Row, class Sound>
std::string row_problem(const char* what, const std::vector<Row>& rows, const Sound& sound) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!sound(rows[i])) return std::string(what) + " " + std::to_string(i);
  return "";
}

std::string reference_problem(const Trace& t) {
  const std::size_t ops = t.ops.size(), tensors = t.tensors.size(), lanes = t.lanes.size(),
                    blocks = t.memory_blocks.size();
  const std::string problems[] = {
      op_problem(t),
      row_problem("sync", t.syncs,
                  [&](const Sync& r) {
                    return in_range(r.op, ops, false) && in_range(r.event, ops, true) && in_range(r.lane, lanes, true);
                  }),
      row_problem("use", t.uses,
                  [&](const Use& r) { return in_range(r.op, ops, false) && in_range(r.tensor, tensors, false); }),
      row_problem("edge", t.edges,
                  [&](const Edge& r) { return in_range(r.from, ops, false) && in_range(r.to, ops, false); }),
      row_problem("unexplained wait", t.unexplained_waits,
                  [&](const UnexplainedWait& r) { return in_range(r.op, ops, false) && r.time >= Picos(0); }),
      row_problem("carried edge", t.carried,
                  [&](const Edge& r) { return in_range(r.from, ops, false) && in_range(r.to, ops, false); }),
      row_problem("stack frame", t.stack_frames,
                  [&](const StackFrame& r) {
                    const auto at = static_cast<std::size_t>(&r - t.stack_frames.data());
                    return r.caller == no_stack || r.caller < at;
                  }),
      row_problem("memory event's stack", t.memory_events,
                  [&](const MemoryEvent& r) { return r.stack == no_stack || r.stack < t.stack_frames.size(); }),
      row_problem("memory block's stack", t.memory_blocks,
                  [&](const MemoryBlock& r) { return r.stack == no_stack || r.stack < t.stack_frames.size(); }),
      row_problem("step", t.steps, [&](const Step& r) { return r.start != unknown_time && r.duration >= Picos(0); }),
      row_problem("collective", t.collectives, [&](const Collective& r) { return in_range(r.op, ops, false); }),
      row_problem(
          "stream gap", t.capture_fit.gaps,
          [&](const StreamGap& r) { return in_range(r.stream, lanes, true) && in_range(r.launcher, lanes, true); }),
      row_problem("memory event", t.memory_events,
                  [&](const MemoryEvent& r) {
                    return in_range(r.anchor, ops, true) && in_range(r.tensor, tensors, true) &&
                           in_range(r.stream, lanes, true);
                  }),
      row_problem("start-up event", t.start_up,
                  [&](const StartUpEvent& r) {
                    return in_range(r.stream, lanes, true) && in_range(r.tensor, tensors, true) &&
                           r.block < t.start_up.size() &&
                           (r.allocates || !r.late || r.tensor == TensorId::none || r.bytes > Bytes(0));
                  }),
      row_problem("memory segment", t.memory_segments, [&](const MemorySegment& r) {
        return std::size_t{r.first_block} + r.block_count <= blocks && in_range(r.stream, lanes, true);
      })};
  for (const std::string& problem : problems)
    if (!problem.empty()) return problem;
  return "";
}

}  // namespace

std::span<const std::string_view> names_of(OpKind) {
  static const auto names = names_from_to_string<OpKind, op_kind_count>();
  return names;
}
std::span<const std::string_view> names_of(Phase) {
  static const auto names = names_from_to_string<Phase, phase_count>();
  return names;
}
std::span<const std::string_view> names_of(LaneKind) {
  static const auto names = names_from_to_string<LaneKind, 4>();
  return names;
}
std::span<const std::string_view> names_of(TensorRole) {
  static const auto names = names_from_to_string<TensorRole, 8>();
  return names;
}
std::span<const std::string_view> names_of(MemoryAction) {
  static const auto names = names_from_to_string<MemoryAction, 9>();
  return names;
}
std::span<const std::string_view> names_of(CollectiveKind) {
  static const auto names = names_from_to_string<CollectiveKind, 10>();
  return names;
}
std::span<const std::string_view> names_of(SpanKind) { return span_kind_names; }
std::span<const std::string_view> names_of(Access) { return access_names; }
std::span<const std::string_view> names_of(EdgeKind) { return edge_kind_names; }
std::span<const std::string_view> names_of(BlockState) { return block_state_names; }

TraceRemainder remainder_of(const Trace& trace) {
  std::int64_t capabilities = 0, inferred = 0;
  for (int i = 0; i < capability_count; ++i) {
    capabilities |= std::int64_t{trace.has(static_cast<Capability>(i))} << i;
    inferred |= std::int64_t{trace.is_inferred(static_cast<Capability>(i))} << i;
  }
  TraceRemainder r;
  r.numbers = {trace.memory_size_is_requested ? 1 : 0,
               static_cast<std::int64_t>(trace.source_events),
               trace.time_base_ns,
               trace.rank_count,
               capabilities,
               inferred,
               trace.capture_fit.launch_to_start.count(),
               trace.capture_fit.launch_queue_depth,
               trace.capture_fit.unblocked_launch.count(),
               trace.capture_fit.unexplained_delay.count(),
               trace.capture_fit.blocking_copy_overhead.count(),
               static_cast<std::int64_t>(trace.provenance.size())};
  for (const Provenance& p : trace.provenance) {
    r.texts.insert(r.texts.end(), {p.file, p.format, p.producer, p.schema_version});
    r.numbers.insert(r.numbers.end(), {p.rank, p.world_size});
  }
  for (const Finding& f : trace.findings) {
    r.numbers.insert(r.numbers.end(), {static_cast<std::int64_t>(f.count), f.is_error ? 1 : 0,
                                       static_cast<std::int64_t>(f.examples.size())});
    r.texts.insert(r.texts.end(), {f.kind, f.remedy});
    r.texts.insert(r.texts.end(), f.examples.begin(), f.examples.end());
  }
  return r;
}

bool restore_remainder(const TraceRemainder& r, Trace& trace) {
  constexpr std::size_t fixed = 12;
  const auto& n = r.numbers;
  if (n.size() < fixed || n[3] < 0 || n[3] > UINT16_MAX || n[7] < 0 || n[7] > UINT32_MAX || n[11] < 0) return false;
  const auto files = static_cast<std::size_t>(n[11]);
  if (files > r.texts.size() / 4 || n.size() - fixed < 2 * files || (n.size() - fixed - 2 * files) % 3 != 0)
    return false;
  trace.capture_fit.launch_to_start = Picos(n[6]);
  trace.capture_fit.launch_queue_depth = static_cast<std::uint32_t>(n[7]);
  trace.capture_fit.unblocked_launch = Picos(n[8]);
  trace.capture_fit.unexplained_delay = Picos(n[9]);
  trace.capture_fit.blocking_copy_overhead = Picos(n[10]);
  trace.memory_size_is_requested = n[0] != 0;
  trace.source_events = static_cast<std::uint64_t>(n[1]);
  trace.time_base_ns = n[2];
  trace.rank_count = static_cast<std::uint16_t>(n[3]);
  for (int i = 0; i < capability_count; ++i)
    if ((n[4] >> i & 1) != 0) trace.set(static_cast<Capability>(i), (n[5] >> i & 1) != 0);
  std::size_t at = 0;
  const auto left = [&] { return r.texts.size() - at; };
  for (std::size_t i = 0; i < files; ++i, at += 4) {
    trace.provenance.push_back({r.texts[at], r.texts[at + 1], r.texts[at + 2], r.texts[at + 3]});
    trace.provenance.back().rank = n[fixed + 2 * i];
    trace.provenance.back().world_size = n[fixed + 2 * i + 1];
  }
  for (std::size_t i = fixed + 2 * files; i < n.size(); i += 3) {
    if (left() < 2 || n[i + 2] < 0 || static_cast<std::uint64_t>(n[i + 2]) > left() - 2) return false;
    Finding finding{.kind = r.texts[at],
                    .remedy = r.texts[at + 1],
                    .count = static_cast<std::uint64_t>(n[i]),
                    .is_error = n[i + 1] != 0};
    at += 2;
    const auto first = r.texts.begin() + static_cast<std::ptrdiff_t>(at);
    finding.examples.assign(first, first + static_cast<std::ptrdiff_t>(n[i + 2]));
    at += static_cast<std::size_t>(n[i + 2]);
    trace.findings.push_back(std::move(finding));
  }
  return at == r.texts.size();
}

std::string first_inconsistency(const Trace& trace) {
  RangeCheck check(trace);
  visit_trace(const_cast<Trace&>(trace), check);  // only reads: set is never called
  return check.problem().empty() ? reference_problem(trace) : check.problem();
}

}  // namespace spillway::traces
