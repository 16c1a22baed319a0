#include "traces/formats/triosim_reader.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/memory_limit.h"
#include "base/named_file.h"
#include "traces/acyclic.h"
#include "traces/formats/csv_rows.h"
#include "traces/lane_index.h"
#include "traces/operator_kind.h"
#include "traces/tensor_lives.h"
#include "traces/tensor_roles.h"

namespace spillway::traces {
namespace {

constexpr std::uint64_t max_table_bytes = std::uint64_t{2} << 30;
constexpr std::int64_t triosim_max_duration_us = 9'000'000'000'000;

// "[4; 6; 8]" -> 4, 6, 8; stops at the first thing that is not a number.
std::vector<std::int64_t> ids_of(std::string_view text) {
  std::vector<std::int64_t> ids;
  while (!text.empty()) {
    if (text.front() == '[' || text.front() == ' ' || text.front() == ';' || text.front() == ']') {
      text.remove_prefix(1);
      continue;
    }
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc()) break;
    ids.push_back(id);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return ids;
}

Phase phase_of(std::string_view stage) {
  if (stage == "forward") return Phase::forward;
  if (stage == "backward") return Phase::backward;
  return stage == "optimizer" ? Phase::optimizer : Phase::unknown;
}

TensorRole role_of(std::string_view type) {
  if (type == "weight" || type.starts_with("bias")) return TensorRole::weight;
  if (type.starts_with("running_")) return TensorRole::buffer;
  return TensorRole::unknown;
}

class TrioSimBuilder {
 public:
  explicit TrioSimBuilder(FileMemory& memory) : memory_(memory), file_(memory.file()) {
    trace_.provenance.push_back({.file = file_, .format = "triosim", .producer = "TrioSim tracer"});
  }

  void read_tensors(std::string_view text, FileMemory& memory) {
    CsvRows rows(text, memory.file(), {"TensorID", "TensorNumElement", "TensorEachByte"});
    while (rows.next()) {
      const auto id = rows.integer("TensorID"), elements = rows.integer("TensorNumElement"),
                 bytes = rows.integer("TensorEachByte");
      if (!id || !elements || !bytes) {
        trace_.note("bad_tensor_row", "tensor.csv line " + std::to_string(rows.line()), "not three numbers; left out",
                    true);
        continue;
      }
      memory.add(2 * sizeof(TensorValue));
      // Without a storage column every tensor stands alone.
      const std::int64_t storage =
          rows.integer("TensorStorgeid").value_or(rows.integer("TensorStorageid").value_or(*id));
      tensors_.try_emplace(
          *id, TensorValue{.tensor = *id, .storage = storage, .elements = *elements, .element_bytes = *bytes});
      const TensorRole role = role_of(rows.field("TensorType"));
      if (role != TensorRole::unknown) roles_.try_emplace(trace_.strings.intern("tensor " + std::to_string(*id)), role);
    }
  }

  Trace build(std::string_view text) {
    CsvRows rows(text, file_, {"OperatorName", "Operator_input", "Operator_output", "Operator_cudatime"});
    while (rows.next()) add(rows);
    if (trace_.ops.size() == 0)
      throw InputError(file_, "", "no operators", "give the trace.csv that TrioSim's tracer wrote");
    for (std::size_t i = 0; i < trace_.tensors.size(); ++i)
      if (const auto role = roles_.find(trace_.tensors.name[i]); role != roles_.end())
        trace_.tensors.role[i] = role->second;
    infer_tensor_roles(trace_);
    trace_.set(Capability::times, true);
    trace_.set(Capability::uses);
    trace_.set(Capability::edges, true);
    if (has_phases_) trace_.set(Capability::phases);
    check_acyclic(trace_);
    trace_.check_invariants();
    return std::move(trace_);
  }

 private:
  void add(const CsvRows& rows) {
    ++trace_.source_events;
    const std::string place = "line " + std::to_string(rows.line());
    const auto time = rows.integer("Operator_cudatime");
    if (!time || *time < 0 || *time > triosim_max_duration_us)
      return trace_.note("bad_operator_row", place, "no usable GPU time; left out", true);
    const std::int64_t gpu = rows.integer("gpuid").value_or(0);
    const bool sane_gpu = gpu >= 0 && gpu < 4096;
    if (!sane_gpu) trace_.note("device_out_of_range", place, "counted as GPU 0", false);
    OpRow row{.name = trace_.strings.intern(rows.field("OperatorName")), .kind = OpKind::kernel};
    row.phase = phase_of(rows.field("stage"));
    has_phases_ |= row.phase != Phase::unknown;
    row.duration = microseconds(*time);
    row.lane = lanes_.lane({.kind = LaneKind::stream,
                            .device = static_cast<std::int16_t>(sane_gpu ? gpu : 0),
                            .name = trace_.strings.intern("GPU " + std::to_string(sane_gpu ? gpu : 0))});
    const OpId op = trace_.append_op(row);
    const auto inputs = values_of(rows.field("Operator_input"), place);
    const auto outputs = values_of(rows.field("Operator_output"), place);
    memory_.add(sizeof row + (inputs.size() + outputs.size()) * sizeof(TensorValue));
    lives_.add(op, inputs, {}, outputs);
  }

  std::vector<TensorValue> values_of(std::string_view list, const std::string& place) {
    std::vector<TensorValue> values;
    for (const std::int64_t id : ids_of(list)) {
      const auto found = tensors_.find(id);
      if (found != tensors_.end()) {
        values.push_back(found->second);
      } else {
        trace_.note("unknown_tensor", place + ": tensor " + std::to_string(id), "not in tensor.csv; left out", true);
      }
    }
    return values;
  }

  FileMemory& memory_;
  const std::string& file_;
  Trace trace_;
  LaneIndex lanes_{trace_};
  TensorLives lives_{trace_};
  std::unordered_map<std::int64_t, TensorValue> tensors_;
  std::map<StringId, TensorRole> roles_;
  bool has_phases_ = false;
};

}  // namespace

Trace read_triosim(ByteSource& operators, ByteSource& tensors, const ReadOptions& options) {
  const std::uint64_t limit = std::min(options.max_decompressed_bytes, max_table_bytes);
  const std::string tensor_text = tensors.read_all(limit);
  const std::string operator_text = operators.read_all(limit);
  FileMemory memory(operators.name()), of_tensors(tensors.name());
  TrioSimBuilder builder(memory);
  builder.read_tensors(tensor_text, of_tensors);
  return builder.build(operator_text);
}

Trace read_triosim(const std::string& path, const ReadOptions& options) {
  const std::filesystem::path given(path);
  const std::filesystem::path folder = is_folder(path) ? given : given.parent_path();
  const std::filesystem::path table = is_folder(path) ? given / "trace.csv" : given;
  ByteSource operators = ByteSource::open(table.string(), options.max_decompressed_bytes, options.progress);
  ByteSource tensors = ByteSource::open((folder / "tensor.csv").string(), options.max_decompressed_bytes);
  return read_triosim(operators, tensors, options);
}

}  // namespace spillway::traces
