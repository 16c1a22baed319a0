// Files of measured operator times: described once, and where the bundled ones lie.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/data_folder.h"
#include "base/field_reader.h"
#include "base/field_writer.h"
#include "base/plain_json.h"
#include "base/read_file.h"
#include "models/cost/operator_times.h"

namespace spillway::models {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* remedy = "write it again with spillway-fit";
constexpr double residual_unit = 1e-3;  // residuals are whole thousandths
constexpr std::size_t line_width = 116;
constexpr std::uint64_t largest_file = 64U << 20U;

const Words& precision_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (std::size_t i = 0; i < precision_count; ++i) list.push_back({precision_name(static_cast<Precision>(i))});
    return Words(std::move(list));
  }();
  return words;
}
const Words& path_words() {
  static const Words words = {{to_string(MatrixPath::registers), "mma.sync"},
                              {to_string(MatrixPath::shared_memory), "wgmma"},
                              {to_string(MatrixPath::tensor_memory), "tcgen05"},
                              {to_string(MatrixPath::other), "other vendors"}};
  return words;
}
const Words& memory_kind_words() {
  static const Words words = {{"elementwise"}, {"norm_forward"}, {"norm_backward"},
                              {"softmax"},     {"gather"},       {"optimizer"}};
  return words;
}

// What the fit wrote may be any number.
constexpr FieldInfo any(std::string_view key) {
  return {.key = key, .min = -std::numeric_limits<double>::infinity(), .required = true};
}

void describe(GemmPhysics& p, FieldVisitor& visitor) {
  const auto visit = [&](std::string_view key, double& value) { fields::number(visitor, any(key), value); };
  visit("large_tile", p.large_tile);
  visit("medium_tile", p.medium_tile);
  visit("small_tile", p.small_tile);
  visit("fill", p.fill);
  visit("memory_efficiency", p.memory_efficiency);
  visit("fixed_us", p.fixed_us);
  visit("split_us", p.split_us);
  visit("overlap", p.overlap);
  visit("partial_wave", p.partial_wave);
  visit("l2_share", p.l2_share);
  visit("l2_gbps", p.l2_gbps);
  visit("throttle", p.throttle);
  visit("throttle_ms", p.throttle_ms);
  visit("quantise_us", p.quantise_us);
  visit("quantise_efficiency", p.quantise_efficiency);
}

void describe(AttentionPhysics& p, FieldVisitor& visitor) {
  const auto visit = [&](std::string_view key, double& value) { fields::number(visitor, any(key), value); };
  visit("efficiency", p.efficiency);
  visit("softmax", p.softmax);
  visit("prologue", p.prologue);
  visit("memory_efficiency", p.memory_efficiency);
  visit("fixed_us", p.fixed_us);
  visit("overlap", p.overlap);
  visit("throttle", p.throttle);
  visit("throttle_ms", p.throttle_ms);
  visit("deterministic", p.deterministic);
}

// By precision; 0: none.
void describe_rates(std::array<double, precision_count>& rates, FieldVisitor& visitor) {
  for (std::size_t i = 0; i < precision_count; ++i) {
    std::optional<double> rate;
    if (rates[i] > 0) rate = rates[i];
    fields::number(visitor, {.key = precision_words()[i].name}, rate);
    rates[i] = rate.value_or(0);
  }
}

void describe(DatasheetFacts& facts, FieldVisitor& visitor) {
  const auto visit = [&](std::string_view key, double& value) {
    fields::number(visitor, {.key = key, .required = true}, value);
  };
  fields::text(visitor, {.key = "architecture", .required = true}, facts.architecture);
  fields::word(visitor, {.key = "matrix_path", .required = true}, facts.path, path_words());
  visit("bytes_per_second", facts.bandwidth);
  visit("multiprocessors", facts.multiprocessors);
  visit("l2_bytes", facts.l2_bytes);
  visit("tdp_watts", facts.tdp_watts);
  visit("clock_hz", facts.clock_hz);
  fields::flag(visitor, {.key = "graphics_memory", .required = true}, facts.graphics_memory);
  fields::group(visitor, {.key = "peak_flops", .required = true}, [&] { describe_rates(facts.peak, visitor); });
  fields::group(visitor, {.key = "achieved_flops"}, [&] { describe_rates(facts.achieved, visitor); });
}

void describe(RegimeErrors& errors, FieldVisitor& visitor) {
  fields::number(visitor, any("small"), errors.small);
  fields::number(visitor, any("medium"), errors.medium);
  fields::number(visitor, any("large"), errors.large);
}

bool is_axis(const std::vector<double>& axis) {
  return !axis.empty() && axis.front() > 0 &&
         std::adjacent_find(axis.begin(), axis.end(), std::greater_equal<>()) == axis.end();
}

double nodes_of(const std::vector<std::vector<double>>& axes) {
  double nodes = 1;
  for (const std::vector<double>& axis : axes) nodes *= static_cast<double>(axis.size());
  return nodes;
}

// A table of residuals in whole thousandths; empty: there is none.
void describe(LogGrid& grid, std::string_view key, FieldVisitor& visitor) {
  std::vector<std::vector<double>> axes = grid.axes();
  std::vector<std::int64_t> thousandths;
  for (const double value : grid.values()) thousandths.push_back(std::llround(value / residual_unit));
  if (!visitor.begin_part({.key = key}, !grid.empty())) return;
  fields::list(visitor, {.key = "axes", .required = true, .as_value = true}, axes,
               [&](std::vector<double>& axis) { visitor.numbers({.key = ""}, axis); });
  visitor.integers({.key = "thousandths", .min = -1e9, .max = 1e9, .required = true}, thousandths);
  LogGrid read;
  if (axes.empty() || axes.size() > LogGrid::most_axes || !std::all_of(axes.begin(), axes.end(), is_axis)) {
    visitor.refuse({.key = "axes"}, "not one to four lists that rise from a positive number", remedy);
  } else if (nodes_of(axes) != static_cast<double>(thousandths.size())) {
    visitor.refuse({.key = "thousandths"}, "a table with another number of nodes", remedy);
  } else {
    read = LogGrid(std::move(axes));
    std::vector<double> values;
    values.reserve(thousandths.size());
    for (const std::int64_t value : thousandths) values.push_back(static_cast<double>(value) * residual_unit);
    read.set_values(std::move(values));
  }
  visitor.end_group();
  grid = std::move(read);
}

void describe(GemmTimes& gemm, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "precision", .required = true}, gemm.precision, precision_words());
  fields::group(visitor, {.key = "physics", .required = true}, [&] { describe(gemm.physics, visitor); });
  fields::group(visitor, {.key = "physics_error", .required = true, .as_tuple = true},
                [&] { describe(gemm.physics_error, visitor); });
  std::optional<RegimeErrors> table_error;
  if (!gemm.residual.empty()) table_error = gemm.table_error;
  fields::part(visitor, {.key = "table_error", .as_tuple = true}, table_error,
               [&](RegimeErrors& errors) { describe(errors, visitor); });
  describe(gemm.residual, "table", visitor);
  if (!gemm.residual.empty() && !table_error) visitor.refuse({.key = "table_error"}, "missing", remedy);
  gemm.table_error = table_error.value_or(gemm.physics_error);
}

void describe(AttentionTimes& attention, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "precision", .required = true}, attention.precision, precision_words());
  fields::group(visitor, {.key = "physics", .required = true}, [&] { describe(attention.physics, visitor); });
  fields::group(visitor, {.key = "physics_error", .required = true, .as_tuple = true},
                [&] { describe(attention.physics_error, visitor); });
  fields::group(visitor, {.key = "table_error", .required = true, .as_tuple = true},
                [&] { describe(attention.table_error, visitor); });
  describe(attention.causal, "causal", visitor);
  describe(attention.full, "full", visitor);
}

void describe(MemoryTimes& memory, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "kind", .required = true}, memory.kind, memory_kind_words());
  fields::number(visitor, any("efficiency"), memory.efficiency);
  fields::number(visitor, any("fixed_us"), memory.fixed_us);
  fields::number(visitor, any("error"), memory.error);
}

void describe(OperatorTimes& times, FieldVisitor& visitor) {
  visitor.head({.schema = "spillway.operator-times", .noun = "a table of operator times"});
  fields::text(visitor, {.key = "name", .required = true, .even_empty = true}, times.name);
  visitor.texts({.key = "profiles", .required = true, .even_empty = true}, times.profiles);
  fields::text(visitor, {.key = "source", .required = true, .even_empty = true}, times.source);
  fields::group(visitor, {.key = "datasheet", .required = true}, [&] { describe(times.facts, visitor); });
  const auto list = [&](std::string_view key, auto& items) {
    fields::list(visitor, {.key = key}, items, [&](auto& item) { describe(item, visitor); });
  };
  list("gemm", times.gemm);
  list("attention_forward", times.attention_forward);
  list("attention_backward", times.attention_backward);
  list("attention_serving", times.attention_serving);
  list("memory_bound", times.memory);
}

// What is fitted is written with five digits: constants with more say nothing.
class ShortNumbers final : public FieldVisitor {
 public:
  bool wants(std::string_view key) override { return key != "datasheet"; }
  void number(const FieldInfo& /*info*/, std::optional<double>& value) override {
    if (value) value = std::strtod(fmt::format("{:.5g}", *value).c_str(), nullptr);
  }
  bool begin_part(const FieldInfo& /*info*/, bool present) override { return present; }
};

// Objects one key a line, arrays of numbers filled to the line's width.
void print(const Json& json, std::size_t depth, std::string& out) {
  const std::string margin(depth + 1, ' ');
  if (json.is_object() || (json.is_array() && !json.empty() && json.front().is_object())) {
    out += json.is_object() ? "{" : "[";
    bool first = true;
    for (const auto& [key, value] : json.items()) {
      out += (first ? "\n" : ",\n") + margin;
      if (json.is_object()) out += Json(key).dump() + ": ";
      print(value, depth + 1, out);
      first = false;
    }
    out += "\n" + margin.substr(1) + (json.is_object() ? "}" : "]");
  } else if (json.is_array() && json.size() > 24) {
    out += "[\n" + margin;
    std::size_t column = depth + 1;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const std::string cell = json[i].dump() + (i + 1 < json.size() ? "," : "");
      if (column + cell.size() > line_width) {
        out += "\n" + margin;
        column = depth + 1;
      }
      out += cell;
      column += cell.size();
    }
    out += "]";
  } else {
    out += json.dump();
  }
}

// What stands before the times.
OperatorTimes read_head(const std::string& path) {
  constexpr int deepest = 8;
  const std::string text = read_file(path, largest_file);
  Json root;
  if (!parse_plain_json_before("gemm", text, deepest, root)) return read_operator_times(path);
  OperatorTimes times;
  read_fields(root, path, "", [&](FieldVisitor& visitor) { describe(times, visitor); });
  return times;
}

std::vector<std::string> bundled_files() {
  for (const std::string& folder : data_places("times", "models/times"))
    if (std::filesystem::is_directory(folder)) return json_files_in(folder);
  return {};
}

}  // namespace

std::string operator_times_text(const OperatorTimes& times) {
  OperatorTimes written = times;
  ShortNumbers shorten;
  describe(written, shorten);
  FieldWriter writer;
  describe(written, writer);
  std::string text;
  print(writer.json(), 0, text);
  return text + "\n";
}

OperatorTimes read_operator_times(const std::string& path) {
  OperatorTimes times;
  read_document(
      read_file(path, largest_file), path, [&](FieldVisitor& visitor) { describe(times, visitor); }, remedy);
  return times;
}

MeasuredTimes::MeasuredTimes(std::vector<std::string> paths)
    : paths_(std::move(paths)), wholes_(std::make_unique<Whole[]>(paths_.size())) {
  for (const std::string& path : paths_) heads_.push_back(read_head(path));
}

const OperatorTimes& MeasuredTimes::whole(std::size_t i) const {
  Whole& whole = wholes_[i];
  std::call_once(whole.once, [&] { whole.times = read_operator_times(paths_[i]); });
  return whole.times;
}

const MeasuredTimes& measured_operator_times() {
  static const MeasuredTimes bundled(bundled_files());
  return bundled;
}

}  // namespace spillway::models
