#include "traces/formats/memory_timeline_reader.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/input_error.h"
#include "base/memory_limit.h"

namespace spillway::traces {
namespace {

constexpr std::int64_t max_event_bytes = std::int64_t{1} << 60;
constexpr int timeline_max_depth = 8;

struct Row {
  std::array<std::int64_t, 4> values{};
  std::size_t count = 0;
  bool sound = true;
};

// Collects [n, n, n, n] rows; everything else in the file makes the row it is in unsound.
class Rows : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Rows(FileMemory& memory) : memory_(memory), file_(memory.file()) {}
  std::vector<Row> rows;

  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > INT64_MAX) return spoil();
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string&) override {
    if (!(value > -9.2e18 && value < 9.2e18)) return spoil();
    return add(static_cast<std::int64_t>(value));
  }
  bool null() override { return spoil(); }
  bool boolean(bool) override { return spoil(); }
  bool string(std::string&) override { return spoil(); }
  bool binary(nlohmann::json::binary_t&) override { return spoil(); }
  bool key(std::string&) override { return true; }
  bool start_object(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    throw InputError(file_, "byte " + std::to_string(position), "the JSON is broken here or ends too early",
                     "export the timeline again");
  }

 private:
  [[noreturn]] void not_a_list() const {
    throw InputError(file_, "", "not a raw memory timeline: the file is not a list",
                     "export it with export_memory_timeline(\"name.raw.json.gz\")");
  }
  bool add(std::int64_t value) {
    if (depth_ != 2) return spoil();
    Row& row = rows.back();
    if (row.count < row.values.size()) row.values[row.count] = value;
    ++row.count;
    return true;
  }
  bool spoil() {
    if (depth_ == 0) not_a_list();
    if (depth_ >= 2) rows.back().sound = false;
    return true;
  }
  bool open(bool array) {
    if (depth_ == 0 && !array) not_a_list();
    if (++depth_ > timeline_max_depth)
      throw InputError(file_, "", "nested deeper than a memory timeline is", "export the timeline again");
    if (depth_ == 2) {
      memory_.add(sizeof(Row) + sizeof(MemoryEvent));
      rows.emplace_back().sound = array;
    }
    if (depth_ > 2) spoil();
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  FileMemory& memory_;
  const std::string& file_;
  int depth_ = 0;
};

struct Category {
  std::string_view name;
  TensorRole role;
};
// Numbered from 0 in the order in which torch.profiler lists the categories' colours; None comes last.
constexpr std::array<Category, 8> categories = {{
    {"parameter", TensorRole::weight},
    {"optimizer_state", TensorRole::optimizer_state},
    {"input", TensorRole::input},
    {"temporary", TensorRole::temporary},
    {"activation", TensorRole::activation},
    {"gradient", TensorRole::gradient},
    {"autograd_detail", TensorRole::activation},
    {"unknown", TensorRole::unknown},
}};

class TimelineBuilder {
 public:
  TimelineBuilder(std::string file, const std::vector<Row>& rows) : rows_(rows) {
    trace_.provenance.push_back({.file = std::move(file), .format = "memory-timeline", .producer = "torch.profiler"});
    for (const Category& category : categories) {
      trace_.tensors.name.push_back(trace_.strings.intern(category.name));
      trace_.tensors.bytes.push_back(Bytes(0));
      trace_.tensors.storage.push_back(static_cast<std::uint32_t>(trace_.tensors.storage.size()));
      trace_.tensors.role.push_back(category.role);
      trace_.tensors.dtype.push_back(StringId::empty);
    }
  }

  Trace build() {
    std::int64_t base = 0;
    for (const Row& row : rows_)
      if (row.sound && row.count == 4 && row.values[0] > 0)
        base = base == 0 ? row.values[0] : std::min(base, row.values[0]);
    trace_.time_base_ns = base;
    for (std::size_t i = 0; i < rows_.size(); ++i) add(rows_[i], i);
    trace_.source_events = rows_.size();
    trace_.note("categories_not_tensors", "",
                "a raw timeline has no tensors or addresses: it says which category "
                "held how much; record a memory snapshot to replay an allocator",
                false);
    if (!trace_.memory_events.empty()) trace_.set(Capability::memory);
    trace_.check_invariants();
    return std::move(trace_);
  }

 private:
  void add(const Row& row, std::size_t index) {
    const std::string place = "row " + std::to_string(index);
    const auto [time, action, bytes, category] = row.values;
    const bool sane = row.sound && row.count == 4 && bytes > -max_event_bytes && bytes < max_event_bytes &&
                      action >= 1 && action <= 4 && time >= -1;
    if (!sane) return trace_.note("bad_row", place, "not [time, action, bytes, category]; left out", true);
    if (action == 3) return;
    std::size_t owner = categories.size() - 1;
    if (category >= 0 && category < static_cast<std::int64_t>(categories.size())) {
      owner = static_cast<std::size_t>(category);
    } else {
      trace_.note("unknown_category", place, "counted as \"unknown\"", false);
    }
    MemoryEvent event{.action = action == 4 ? MemoryAction::free_completed : MemoryAction::allocate};
    if (time >= 0) event.time = nanoseconds_since_base(time, place);
    event.bytes = Bytes(bytes < 0 ? -bytes : bytes);
    event.tensor = TensorId(static_cast<std::uint32_t>(owner));
    trace_.memory_events.push_back(event);
  }

  Picos nanoseconds_since_base(std::int64_t time, const std::string& place) {
    std::int64_t picos = 0;
    if (!__builtin_mul_overflow(time - trace_.time_base_ns, std::int64_t{1000}, &picos)) return Picos(picos);
    trace_.note("time_out_of_range", place, "the event is kept without its time", false);
    return unknown_time;
  }

  const std::vector<Row>& rows_;
  Trace trace_;
};

}  // namespace

Trace read_memory_timeline(ByteSource& source, const ReadOptions& options) {
  const std::string file = source.name();
  const std::string text = source.read_all(std::min(options.max_decompressed_bytes, std::uint64_t{4} << 30));
  FileMemory memory(file);
  Rows rows(memory);
  nlohmann::json::sax_parse(text, &rows);
  Trace trace = TimelineBuilder(file, rows.rows).build();
  if (!rows.rows.empty() && !trace.has(Capability::memory))
    throw InputError(
        file, "", "none of its rows is [time, action, bytes, category]",
        "export the timeline again (export_memory_timeline to .raw.json), or check that this is the right file");
  return trace;
}

}  // namespace spillway::traces
