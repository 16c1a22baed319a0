#include "traces/formats/execution_trace_reader.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/json_integer.h"
#include "traces/acyclic.h"
#include "traces/formats/json_rows.h"
#include "traces/lane_index.h"
#include "traces/operator_kind.h"
#include "traces/tensor_lives.h"
#include "traces/tensor_roles.h"

namespace spillway::traces {
namespace {

using Json = nlohmann::json;

constexpr std::size_t execution_trace_max_nodes = 50'000'000;

struct Node {
  std::int64_t id = 0, parent = 0, record_id = -1, sequence = -1, forward_parent = 0, thread = 0, forward_thread = 0;
  StringId name{}, schema{};
  std::vector<TensorValue> inputs, mutated, outputs;
  StringId group{};  // process group of a collective
  std::uint32_t group_size = 0;
  bool has_children = false;
  Phase phase = Phase::unknown;
  bool stamped = false;  // phase from an annotation
  SpanId span = SpanId::none;
  std::size_t parent_index = SIZE_MAX;
};

// Which arguments of "aten::add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> ..." are written.
std::vector<bool> written_arguments(std::string_view schema) {
  std::vector<bool> written;
  const auto open = schema.find('(');
  if (open == std::string_view::npos) return written;
  int depth = 0;
  bool mark = false, any = false, star = false;
  for (const char c : schema.substr(open + 1)) {
    const bool ends = depth == 0 && (c == ',' || c == ')');
    if (ends) {
      if (any && !star) written.push_back(mark);
      mark = any = star = false;
      if (c == ')') break;
      continue;
    }
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == '!') mark = true;
    if (c == '*' && depth == 0) star = true;
    if (c != ' ') any = true;
  }
  return written;
}

class ExecutionTraceBuilder {
 public:
  explicit ExecutionTraceBuilder(std::string file) : file_(std::move(file)) {
    trace_.provenance.push_back({.file = file_, .format = "execution-trace", .producer = "PyTorch"});
  }

  void row(std::string_view key, const Json& value) {
    if (key == "nodes") {
      add_node(value);
    } else if (key == "schema") {
      trace_.provenance.front().schema_version = json_text(value);
    }
  }

  Trace build() {
    if (!seen_nodes_)
      throw InputError(file_, "", "no \"nodes\": not an ExecutionTrace", "record it with ExecutionTraceObserver");
    std::stable_sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) { return a.id < b.id; });
    link_parents();
    set_phases();
    make_spans();
    make_ops();
    infer_tensor_roles(trace_);
    trace_.set(Capability::uses);
    trace_.set(Capability::edges, true);
    if (knows_phases_) trace_.set(Capability::phases, true);
    check_acyclic(trace_);
    trace_.check_invariants();
    return std::move(trace_);
  }

 private:
  void add_node(const Json& row) {
    seen_nodes_ = true;
    ++trace_.source_events;
    const auto id = json_integer(json_member(row, "id"));
    if (!id) {
      trace_.note("node_without_id", "nodes[" + std::to_string(trace_.source_events - 1) + "]",
                  "a node without a number can't be placed; left out", true);
      return;
    }
    if (nodes_.size() >= execution_trace_max_nodes)
      throw InputError(file_, "", "more than 50 million nodes", "record fewer steps");
    Node node;
    node.id = *id;
    node.name = trace_.strings.intern(json_text(json_member(row, "name")));
    Json parent = json_member(row, row.contains("ctrl_deps") ? "ctrl_deps" : "parent");
    if (parent.is_array()) parent = parent.empty() ? Json(0) : Json(parent.front());
    node.parent = json_integer(parent).value_or(0);
    read_attributes(row, node);
    const Json& inputs = json_member(row, "inputs");
    const Json& outputs = json_member(row, "outputs");
    const bool flat = !inputs.is_object();
    read_inputs(flat ? inputs : json_member(inputs, "values"),
                flat ? json_member(row, "input_types") : json_member(inputs, "types"), node);
    read_values(flat ? outputs : json_member(outputs, "values"),
                json_member(flat ? row : outputs, flat ? "output_types" : "types"), node.outputs);
    nodes_.push_back(std::move(node));
  }

  void read_attributes(const Json& row, Node& node) {
    const auto set = [&](std::string_view name, const Json& value) {
      const std::int64_t number = json_integer(value).value_or(0);
      if (name == "rf_id") node.record_id = number;
      if (name == "fw_parent") node.forward_parent = number;
      if (name == "seq_id") node.sequence = number;
      if (name == "tid") node.thread = number;
      if (name == "fw_tid") node.forward_thread = number;
      if (name == "op_schema") node.schema = trace_.strings.intern(json_text(value));
      if (name == "pg_name") node.group = trace_.strings.intern(json_text(value));
      if (name == "pg_size" && number > 0 && number <= 1 << 24) node.group_size = static_cast<std::uint32_t>(number);
    };
    const Json& attributes = json_member(row, "attrs");
    if (attributes.is_array()) {
      for (const Json& attribute : attributes)
        set(json_text(json_member(attribute, "name")), json_member(attribute, "value"));
    } else if (row.is_object()) {
      for (const auto& entry : row.items()) set(entry.key(), entry.value());
    }
  }

  void read_inputs(const Json& values, const Json& types, Node& node) {
    if (!values.is_array()) return;
    const std::vector<bool> written = written_arguments(trace_.strings.text(node.schema));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t before = node.inputs.size();
      read_value(values[i], type_of(types, i), node.inputs);
      if (i < written.size() && written[i])
        node.mutated.insert(node.mutated.end(), node.inputs.begin() + static_cast<std::ptrdiff_t>(before),
                            node.inputs.end());
    }
  }

  void read_values(const Json& values, const Json& types, std::vector<TensorValue>& into) {
    if (!values.is_array()) return;
    for (std::size_t i = 0; i < values.size(); ++i) read_value(values[i], type_of(types, i), into);
  }

  static std::string_view type_of(const Json& types, std::size_t index) {
    return types.is_array() && index < types.size() ? json_text(types[index]) : std::string_view();
  }

  // A value is a tensor, or a list that may hold tensors, or something that is neither.
  void read_value(const Json& value, std::string_view type, std::vector<TensorValue>& into) {
    if (!value.is_array() || value.empty()) return;
    const bool is_tensor = value.size() == 6 && value[5].is_string() && value[0].is_number_integer();
    if (!is_tensor) {
      if (value.front().is_array())
        for (const Json& element : value) read_value(element, type, into);
      return;
    }
    std::int64_t numbers[5];
    for (std::size_t i = 0; i < 5; ++i) {
      const auto number = json_integer(value[i]);
      if (!number) return trace_.note("bad_tensor", value.dump(), "its numbers don't fit; left out", true);
      numbers[i] = *number;
    }
    if (numbers[1] == 0 && numbers[3] == 0) return;  // an undefined tensor has no storage
    const auto open = type.find("Tensor(");
    const std::string_view rest = open == std::string_view::npos ? std::string_view() : type.substr(open + 7);
    into.push_back({.tensor = numbers[0],
                    .storage = numbers[1],
                    .offset = numbers[2],
                    .elements = numbers[3],
                    .element_bytes = numbers[4],
                    .device = trace_.strings.intern(json_text(value[5])),
                    .dtype = trace_.strings.intern(rest.substr(0, rest.find(')')))});
  }

  std::string describe(const Node& node) const {
    return "node " + std::to_string(node.id) + " \"" + std::string(trace_.strings.text(node.name)) + "\"";
  }

  void link_parents() {
    std::unordered_map<std::int64_t, std::size_t> by_id;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!by_id.emplace(nodes_[i].id, i).second)
        trace_.note("repeated_node_id", describe(nodes_[i]), "children are given to the first node of that number",
                    false);
    for (Node& node : nodes_) {
      if (node.parent == node.id || node.parent == 0) continue;
      const auto found = by_id.find(node.parent);
      if (found == by_id.end()) {
        trace_.note("dangling_parent", describe(node), "its caller is not in the file; kept without one", false);
        continue;
      }
      node.parent_index = found->second;
      nodes_[found->second].has_children = true;
    }
    check_parents();
  }

  // Each node is walked once: 1 on the way up, 2 when its chain is known to end.
  void check_parents() const {
    std::vector<std::uint8_t> state(nodes_.size(), 0);
    std::vector<std::size_t> chain;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      chain.clear();
      for (std::size_t at = i; at != SIZE_MAX && state[at] != 2; at = nodes_[at].parent_index) {
        if (state[at] == 1)
          throw InputError(file_, describe(nodes_[at]), "calls that contain each other in a circle",
                           "the recording contradicts itself; record it again");
        state[at] = 1;
        chain.push_back(at);
      }
      for (const std::size_t at : chain) state[at] = 2;
    }
  }

  void set_phases() {
    std::vector<std::int64_t> backward_threads;
    for (const Node& node : nodes_)
      if (trace_.strings.text(node.name).starts_with("autograd::engine::evaluate_function")) {
        backward_threads.push_back(node.thread);
        knows_phases_ = true;
      }
    std::sort(backward_threads.begin(), backward_threads.end());
    // Callers first, whatever the order of the ids.
    std::vector<bool> done(nodes_.size(), false);
    std::vector<std::size_t> chain;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (std::size_t at = i; at != SIZE_MAX && !done[at]; at = nodes_[at].parent_index) chain.push_back(at);
      for (; !chain.empty(); chain.pop_back()) {
        set_phase(nodes_[chain.back()], backward_threads);
        done[chain.back()] = true;
      }
    }
  }

  void set_phase(Node& node, const std::vector<std::int64_t>& backward_threads) {
    const std::string_view name = trace_.strings.text(node.name);
    const Phase own = phase_of_name(name);
    if (own != Phase::unknown) {
      node.phase = own;
      node.stamped = own != Phase::communication && !name.starts_with("autograd::");
      knows_phases_ = true;
      return;
    }
    if (node.parent_index != SIZE_MAX && nodes_[node.parent_index].phase != Phase::unknown &&
        (nodes_[node.parent_index].stamped || nodes_[node.parent_index].phase == Phase::backward)) {
      node.phase = nodes_[node.parent_index].phase;
      node.stamped = nodes_[node.parent_index].stamped;
      return;
    }
    const bool backward = node.forward_parent != 0 || node.forward_thread != 0 ||
                          std::binary_search(backward_threads.begin(), backward_threads.end(), node.thread);
    node.phase = backward ? Phase::backward : Phase::forward;
  }

  LaneId host_lane(std::int64_t thread) {
    return lanes_.lane({.kind = LaneKind::host_thread,
                        .number = thread,
                        .name = trace_.strings.intern("thread " + std::to_string(thread))});
  }

  void make_spans() {
    Spans& spans = trace_.spans;
    for (Node& node : nodes_) {
      const std::string_view name = trace_.strings.text(node.name);
      if (is_root(name)) continue;
      node.span = SpanId(static_cast<std::uint32_t>(spans.size()));
      const bool annotation = node.schema == StringId::empty && name.find("::") == std::string_view::npos;
      spans.name.push_back(node.name);
      spans.kind.push_back(annotation ? SpanKind::annotation : SpanKind::cpu_operator);
      spans.lane.push_back(host_lane(node.thread));
      spans.start.push_back(unknown_time);
      spans.duration.push_back(unknown_time);
      spans.sequence.push_back(node.sequence);
      spans.record_id.push_back(node.record_id);
    }
  }

  // The process and the threads are drawn as nodes too.
  static bool is_root(std::string_view name) { return name.starts_with("[pytorch|profiler|execution_"); }

  void make_ops() {
    TensorLives lives(trace_);
    for (const Node& node : nodes_) {
      if (node.has_children || is_root(trace_.strings.text(node.name))) continue;
      const OpId op = append(node);
      lives.add(op, node.inputs, node.mutated, node.outputs);
    }
  }

  // GPU ordinal of the first GPU tensor; -1 if all are elsewhere.
  std::int16_t gpu_of(const std::vector<TensorValue>& values) const {
    for (const TensorValue& value : values) {
      const auto ordinal = gpu_ordinal(trace_.strings.text(value.device));
      if (ordinal >= 0) return ordinal;
    }
    return -1;
  }

  OpId append(const Node& node) {
    const std::string_view name = trace_.strings.text(node.name);
    const std::int16_t from = gpu_of(node.inputs);
    const std::int16_t to = gpu_of(node.outputs.empty() ? node.mutated : node.outputs);
    const bool to_host = node.outputs.empty() ? node.mutated.empty() : to < 0;
    OpRow row{.name = node.name, .phase = node.phase, .flags = 0};
    row.kind = operator_kind({.name = name,
                              .schema = trace_.strings.text(node.schema),
                              .input_gpu = from,
                              .output_gpu = to,
                              .has_inputs = !node.inputs.empty(),
                              .to_host = to_host});
    if (node.phase != Phase::unknown && !node.stamped) row.flags |= static_cast<std::uint8_t>(OpFlag::phase_inferred);
    const std::int16_t gpu = std::max<std::int16_t>(std::max(from, to), is_device_work(row.kind) ? 0 : -1);
    row.lane = is_device_work(row.kind)
                   ? lanes_.lane({.kind = row.kind == OpKind::collective ? LaneKind::communication : LaneKind::stream,
                                  .device = gpu,
                                  .name = trace_.strings.intern("GPU " + std::to_string(gpu))})
                   : host_lane(node.thread);
    row.span = node.span;
    const bool moves = is_copy(row.kind) || row.kind == OpKind::collective;
    if (moves) row.bytes = payload(node);
    const OpId op = trace_.append_op(row);
    if (row.kind == OpKind::collective)
      trace_.collectives.push_back({.op = op,
                                    .kind = collective_kind_of_name(name),
                                    .bytes = row.bytes,
                                    .group_size = node.group_size,
                                    .group = node.group});
    return op;
  }

  static Bytes payload(const Node& node) {
    const auto& values = node.outputs.empty() ? node.inputs : node.outputs;
    std::int64_t total = 0;
    for (const TensorValue& value : values) {
      std::int64_t bytes = 0;
      if (value.elements < 0 || value.element_bytes < 0) continue;
      if (__builtin_mul_overflow(value.elements, value.element_bytes, &bytes)) continue;
      if (__builtin_add_overflow(total, bytes, &total)) return Bytes(0);
    }
    return Bytes(total);
  }

  std::string file_;
  Trace trace_;
  LaneIndex lanes_{trace_};
  std::vector<Node> nodes_;
  bool seen_nodes_ = false;
  bool knows_phases_ = false;
};

}  // namespace

Trace read_execution_trace(ByteSource& source, const ReadOptions& options) {
  ExecutionTraceBuilder builder(source.name());
  const std::string text = source.read_all(std::min(options.max_decompressed_bytes, std::uint64_t{16} << 30));
  FileMemory memory(source.name());
  read_json_rows(text, memory, [&](std::string_view key, Json& row) { builder.row(key, row); });
  return builder.build();
}

}  // namespace spillway::traces
