#include "traces/formats/perfetto/rocprof_json_reader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/memory_limit.h"
#include "traces/formats/perfetto/perfetto_capture.h"
#include "traces/formats/perfetto/perfetto_events.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

using nlohmann::json;

constexpr std::size_t max_depth = 64;
constexpr std::string_view root_key = "/rocprofiler-sdk-tool";
// Agents that the file doesn't describe are numbered from here.
constexpr std::int64_t unknown_agents = 1'000'000;

// What an object of one of the tables says; -1: nothing.
struct Row {
  std::int64_t kind = -1, operation = -1, thread = 0, correlation = -1, start = -1, end = -1;
  std::int64_t agent = -1, source = -1, queue = -1, stream = -1, kernel = -1, bytes = -1;
  std::int64_t process = -1;
  std::uint64_t place = 0;
  std::string name, other_name;
  std::vector<std::string> operations;
};

std::int64_t Row::*field_of(std::string_view key) {
  static const std::unordered_map<std::string_view, std::int64_t Row::*> fields = {
      {"/kind", &Row::kind},
      {"/operation", &Row::operation},
      {"/thread_id", &Row::thread},
      {"/correlation_id/internal", &Row::correlation},
      {"/start_timestamp", &Row::start},
      {"/end_timestamp", &Row::end},
      {"/dispatch_info/agent_id/handle", &Row::agent},
      {"/dispatch_info/queue_id/handle", &Row::queue},
      {"/dispatch_info/kernel_id", &Row::kernel},
      {"/dst_agent_id/handle", &Row::agent},
      {"/src_agent_id/handle", &Row::source},
      {"/stream_id/handle", &Row::stream},
      {"/bytes", &Row::bytes},
      // of agents
      {"/id/handle", &Row::agent},
      {"/type", &Row::kind},
      {"/logical_node_id", &Row::operation},
      // of kernel_symbols, strings' marker_api and metadata
      {"/kernel_id", &Row::kernel},
      {"/key", &Row::correlation},
      {"/pid", &Row::process},
  };
  constexpr std::size_t longest = 40;
  const auto found = key.size() > longest ? fields.end() : fields.find(key);
  return found == fields.end() ? nullptr : found->second;
}

enum class Table : std::uint8_t { none, metadata, agents, kinds, markers, symbols, records };

// Of a path below a process; the table's own name where it holds records.
std::pair<Table, std::string_view> table_of(std::string_view path) {
  constexpr std::string_view records = "/buffer_records/";
  if (path == "/metadata") return {Table::metadata, {}};
  if (path == "/agents") return {Table::agents, {}};
  if (path == "/kernel_symbols") return {Table::symbols, {}};
  if (path == "/strings/buffer_records") return {Table::kinds, {}};
  if (path == "/strings/marker_api") return {Table::markers, {}};
  if (!path.starts_with(records)) return {Table::none, {}};
  path.remove_prefix(records.size());
  for (const std::string_view known :
       {"kernel_dispatch", "memory_copy", "hip_api", "hsa_api", "marker_api", "rccl_api"})
    if (path == known) return {Table::records, known};
  return {Table::none, {}};
}

// Characters of a text; says how far the parser has come.
class Position {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Position(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  Position& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  Position operator++(int) {
    const Position before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Position& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

class RocprofReader : public nlohmann::json_sax<json> {
 public:
  explicit RocprofReader(FileMemory& memory) : memory_(memory), file_(memory.file()) {}

  Trace read(const std::string& text, const ReadOptions& options);

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t value) override { return number(value); }
  bool number_unsigned(std::uint64_t value) override {
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return value > largest || number(static_cast<std::int64_t>(value));
  }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string& value) override;
  bool binary(json::binary_t&) override { return true; }
  bool key(std::string& name) override;
  bool start_object(std::size_t) override { return start(false); }
  bool end_object() override;
  bool start_array(std::size_t) override { return start(true); }
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
    const bool at_end = std::string_view(error.what()).find("unexpected end of input") != std::string_view::npos;
    throw InputError(file_, "byte " + std::to_string(position),
                     at_end ? "the JSON ends too early" : "the JSON is broken here", "record or export the file again");
  }

 private:
  struct Frame {
    std::size_t path_size = 0;
    bool is_row = false;
  };
  struct Agent {
    std::int64_t number = 0;
    bool is_gpu = false;
    std::string name;
  };
  struct Record {
    std::string_view table;
    Row row;
  };

  [[nodiscard]] std::string_view within_row() const { return std::string_view(path_).substr(row_path_size_); }
  bool start(bool is_array);
  bool number(std::int64_t value);
  void take_row();
  Agent& agent(std::int64_t handle);
  std::uint32_t track(std::string name, std::int64_t thread);
  std::string name_of(const Record& record) const;
  void add_value(PerfettoSlice& slice, std::uint8_t key, std::int64_t value);
  void add(const Record& record);
  void add_devices();

  FileMemory& memory_;
  const std::string& file_;
  std::string path_;  // keys from the root, each behind a slash; arrays add none
  std::vector<Frame> frames_;
  std::size_t row_path_size_ = 0;  // 0: outside of a table's rows
  Table table_ = Table::none;
  std::string_view record_table_;
  Row row_;
  std::size_t processes_ = 0;
  const char* text_ = nullptr;
  const char* seen_ = nullptr;

  std::vector<Record> records_;
  std::unordered_map<std::int64_t, Agent> agents_;  // by handle
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds_;
  std::unordered_map<std::int64_t, std::string> kernels_, markers_;
  std::int64_t process_ = 0;
  Trace trace_;
  PerfettoCapture capture_;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> tracks_;
  std::map<std::int64_t, std::string> gpus_;  // that were at work, by number
};

bool RocprofReader::start(bool is_array) {
  if (frames_.size() >= max_depth)
    throw InputError(file_, "byte " + std::to_string(seen_ - text_), "nested deeper than 64 levels",
                     "check that this is the right file");
  Frame frame{.path_size = path_.size()};
  if (!is_array && path_ == root_key) ++processes_;
  if (!is_array && row_path_size_ == 0 && processes_ == 1 && path_.starts_with(root_key)) {
    std::tie(table_, record_table_) = table_of(std::string_view(path_).substr(root_key.size()));
    if (table_ != Table::none) {
      frame.is_row = true;
      row_path_size_ = path_.size();
      row_ = {};
      row_.place = static_cast<std::uint64_t>(seen_ - text_);
    }
  }
  frames_.push_back(frame);
  return true;
}

bool RocprofReader::key(std::string& name) {
  path_.resize(frames_.back().path_size);
  path_ += '/';
  path_ += name;
  return true;
}

bool RocprofReader::end_object() {
  const Frame frame = frames_.back();
  frames_.pop_back();
  path_.resize(frame.path_size);
  if (!frame.is_row) return true;
  take_row();
  row_path_size_ = 0;
  return true;
}

bool RocprofReader::end_array() {
  path_.resize(frames_.back().path_size);
  frames_.pop_back();
  return true;
}

bool RocprofReader::number(std::int64_t value) {
  if (row_path_size_ == 0) return true;
  if (std::int64_t Row::*const field = field_of(within_row()); field != nullptr) row_.*field = value;
  return true;
}

bool RocprofReader::string(std::string& value) {
  if (row_path_size_ == 0) return true;
  const std::string_view key = within_row();
  memory_.add(sizeof value + value.size());
  if (key == "/operations")
    row_.operations.push_back(std::move(value));
  else if (key == "/formatted_kernel_name" || key == "/product_name" || key == "/kind" || key == "/value")
    row_.name = std::move(value);
  else if (key == "/kernel_name" || key == "/name")
    row_.other_name = std::move(value);
  return true;
}

void RocprofReader::take_row() {
  const std::string& name = row_.name.empty() ? row_.other_name : row_.name;
  memory_.add(sizeof(Record) + sizeof(PerfettoSlice));
  switch (table_) {
    case Table::none:
      return;
    case Table::metadata:
      process_ = std::max<std::int64_t>(row_.process, 0);
      return;
    case Table::agents: {
      constexpr std::int64_t gpu = 2;
      const auto order = static_cast<std::int64_t>(agents_.size());
      agents_.try_emplace(row_.agent, Agent{row_.operation >= 0 ? row_.operation : order, row_.kind == gpu, name});
      return;
    }
    case Table::kinds:
      kinds_.emplace_back(name, std::move(row_.operations));
      return;
    case Table::markers:
      markers_.try_emplace(row_.correlation, name);
      return;
    case Table::symbols:
      kernels_.try_emplace(row_.kernel, name);
      return;
    case Table::records:
      ++trace_.source_events;
      records_.push_back({record_table_, std::move(row_)});
      return;
  }
}

RocprofReader::Agent& RocprofReader::agent(std::int64_t handle) {
  const auto [found, is_new] = agents_.try_emplace(handle);
  if (is_new) found->second.number = unknown_agents + static_cast<std::int64_t>(agents_.size());
  return found->second;
}

// `thread` -1: of a device.
std::uint32_t RocprofReader::track(std::string name, std::int64_t thread) {
  const auto [found, is_new] =
      tracks_.try_emplace({std::move(name), thread}, static_cast<std::uint32_t>(capture_.tracks.size()));
  if (!is_new) return found->second;
  PerfettoTrack track{.uuid = std::uint64_t{found->second} + 1};
  track.name = trace_.strings.intern(found->first.first);
  if (thread >= 0) {
    track.thread = thread;
    track.process_of_thread = process_;
  }
  capture_.track_of.emplace(track.uuid, found->second);
  capture_.tracks.push_back(std::move(track));
  return found->second;
}

std::string RocprofReader::name_of(const Record& record) const {
  const Row& row = record.row;
  if (record.table == "kernel_dispatch") {
    const auto kernel = kernels_.find(row.kernel);
    return kernel == kernels_.end() || kernel->second.empty() ? "kernel " + std::to_string(row.kernel) : kernel->second;
  }
  if (record.table == "marker_api") {
    const auto message = markers_.find(row.correlation);
    if (message != markers_.end()) return message->second;
  }
  const auto at = [](std::int64_t index, const auto& list) {
    return index >= 0 && static_cast<std::size_t>(index) < list.size();
  };
  if (!at(row.kind, kinds_)) return std::string(record.table);
  const auto& [kind, operations] = kinds_[static_cast<std::size_t>(row.kind)];
  return at(row.operation, operations) ? operations[static_cast<std::size_t>(row.operation)] : kind;
}

void RocprofReader::add_value(PerfettoSlice& slice, std::uint8_t key, std::int64_t value) {
  if (value < 0) return;
  capture_.values.push_back({.integer = value, .key = key});
  ++slice.values;
}

void RocprofReader::add(const Record& record) {
  const Row& row = record.row;
  const std::string place = "byte " + std::to_string(row.place);
  if (row.start < 0 || row.end < 0) return trace_.note("bad_time", place, "a record has no time; it was dropped", true);
  // Half of the range, so that whatever is added to it fits.
  if (std::max(row.start, row.end) > std::numeric_limits<std::int64_t>::max() / 2)
    return trace_.note("time_out_of_range", place, "a time beyond 63 bits; the record was dropped", true);
  PerfettoSlice slice{.start_ns = row.start,
                      .duration_ns = row.end - row.start,
                      .place = row.place,
                      .first_value = static_cast<std::uint32_t>(capture_.values.size()),
                      .shape = PerfettoShape::slice};
  slice.name = trace_.strings.intern(to_valid_utf8(name_of(record)));
  slice.category = trace_.strings.intern(record.table);
  const bool is_copy = record.table == "memory_copy";
  if (is_copy || record.table == "kernel_dispatch") {
    Agent& target = agent(row.agent);
    if (!is_copy) target.is_gpu = true;
    if (target.is_gpu) gpus_.try_emplace(target.number, target.name);
    const std::int64_t lane = row.stream >= 0 ? row.stream : row.queue;
    const std::string where =
        "AGENT [" + std::to_string(target.number) + "] " +
        (lane >= 0 ? "STREAM [" + std::to_string(lane) : "THREAD [" + std::to_string(row.thread)) + "] " +
        (target.is_gpu ? "(GPU)" : "(CPU)");
    slice.track = track((is_copy ? "COPY to " : "COMPUTE ") + where, -1);
    add_value(slice, static_cast<std::uint8_t>(PerfettoKey::target_agent), target.number);
    if (is_copy) add_value(slice, static_cast<std::uint8_t>(PerfettoKey::source_agent), agent(row.source).number);
    add_value(slice, static_cast<std::uint8_t>(KinetoField::bytes), row.bytes);
  } else {
    const std::int64_t thread = std::max<std::int64_t>(row.thread, 0);
    slice.track = track("", thread);
  }
  add_value(slice, static_cast<std::uint8_t>(KinetoField::correlation), row.correlation);
  capture_.slices.push_back(slice);
}

// Numbered as assemble_perfetto() numbers them: the GPUs that were at work, by agent.
void RocprofReader::add_devices() {
  std::int16_t ordinal = 0;
  for (const auto& [number, name] : gpus_) {
    trace_.devices.push_back({.name = trace_.strings.intern(to_valid_utf8(name)), .ordinal = ordinal});
    if (ordinal++ == std::numeric_limits<std::int16_t>::max() - 1) return;
  }
}

Trace RocprofReader::read(const std::string& text, const ReadOptions& options) {
  text_ = seen_ = text.data();
  trace_.provenance.push_back({.file = file_, .format = "rocprofv3-json", .producer = "rocprofv3"});
  json::sax_parse(Position(text_, &seen_), Position(text_ + text.size(), &seen_), this);
  if (processes_ > 1)
    trace_.note("other_processes", root_key.substr(1), "of several processes in one file the first is read", false);
  for (const Record& record : records_) add(record);
  records_ = {};
  if (capture_.slices.empty())
    throw InputError(file_, "", "has no records of calls, kernels or copies",
                     "record with rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --output-format json");
  add_devices();
  assemble_perfetto(std::move(capture_), memory_, options.keep_python, {}, trace_);
  return std::move(trace_);
}

}  // namespace

Trace read_rocprof_json(ByteSource& source, const ReadOptions& options) {
  const std::string text = source.read_all(std::min(options.max_decompressed_bytes, std::uint64_t{16} << 30));
  // The parser takes a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos)
    throw InputError(source.name(), "byte " + std::to_string(zero), "the JSON is broken here",
                     "record or export the file again");
  FileMemory memory(source.name());
  return RocprofReader(memory).read(text, options);
}

}  // namespace spillway::traces
