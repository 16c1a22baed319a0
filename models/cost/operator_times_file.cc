// Files of measured operator times: JSON both ways, and where the bundled ones lie.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/data_folder.h"
#include "base/input_error.h"
#include "base/read_file.h"
#include "models/cost/operator_times.h"

namespace spillway::models {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* schema_name = "spillway.operator-times";
constexpr std::int64_t schema_version = 1;
constexpr double residual_unit = 1e-3;  // residuals are whole thousandths
constexpr std::size_t line_width = 116;
constexpr std::uint64_t largest_file = 64U << 20U;

constexpr std::array<const char*, memory_kind_count> memory_kinds = {"elementwise", "norm_forward", "norm_backward",
                                                                     "softmax",     "gather",       "optimizer"};
constexpr std::array<MatrixPath, 4> paths = {MatrixPath::registers, MatrixPath::shared_memory,
                                             MatrixPath::tensor_memory, MatrixPath::other};

struct AttentionList {
  const char* key;
  std::vector<AttentionTimes> OperatorTimes::*list;
};
constexpr std::array<AttentionList, 3> attention_lists = {{
    {"attention_forward", &OperatorTimes::attention_forward},
    {"attention_backward", &OperatorTimes::attention_backward},
    {"attention_serving", &OperatorTimes::attention_serving},
}};

// One place for the names of all constants, read and written in the same order.
template <class Physics, class Visit>
void gemm_fields(Physics& p, Visit visit) {
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

template <class Physics, class Visit>
void attention_fields(Physics& p, Visit visit) {
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

template <class Facts, class Visit>
void fact_fields(Facts& f, Visit visit) {
  visit("bytes_per_second", f.bandwidth);
  visit("multiprocessors", f.multiprocessors);
  visit("l2_bytes", f.l2_bytes);
  visit("tdp_watts", f.tdp_watts);
  visit("clock_hz", f.clock_hz);
}

double short_number(double value) { return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr); }

Json grid_json(const LogGrid& grid) {
  Json thousandths = Json::array();
  for (const double value : grid.values()) thousandths.push_back(std::llround(value / residual_unit));
  return {{"axes", grid.axes()}, {"thousandths", std::move(thousandths)}};
}

LogGrid read_grid(const Json& json) {
  if (json.is_null()) return {};
  LogGrid grid(json.at("axes").get<std::vector<std::vector<double>>>());
  auto values = json.at("thousandths").get<std::vector<double>>();
  if (values.size() != grid.values().size()) throw std::out_of_range("a table with another number of nodes");
  for (double& value : values) value *= residual_unit;
  grid.set_values(std::move(values));
  return grid;
}

Json errors_json(const RegimeErrors& errors) {
  return {short_number(errors.small), short_number(errors.medium), short_number(errors.large)};
}
RegimeErrors read_errors(const Json& json) {
  return {json.at(0).get<double>(), json.at(1).get<double>(), json.at(2).get<double>()};
}

Precision precision_named(const std::string& name) {
  for (std::size_t i = 0; i < precision_count; ++i)
    if (precision_name(static_cast<Precision>(i)) == name) return static_cast<Precision>(i);
  throw std::out_of_range("no precision " + name);
}

Json facts_json(const DatasheetFacts& facts) {
  Json json = {{"architecture", facts.architecture}, {"matrix_path", to_string(facts.path)}};
  fact_fields(facts, [&](const char* name, double value) { json[name] = value; });
  json["graphics_memory"] = facts.graphics_memory;
  for (std::size_t i = 0; i < precision_count; ++i) {
    const std::string name(precision_name(static_cast<Precision>(i)));
    if (facts.peak[i] > 0) json["peak_flops"][name] = facts.peak[i];
    if (facts.achieved[i] > 0) json["achieved_flops"][name] = facts.achieved[i];
  }
  return json;
}

DatasheetFacts read_facts(const Json& json) {
  DatasheetFacts facts;
  facts.architecture = json.at("architecture").get<std::string>();
  const auto path = json.at("matrix_path").get<std::string>();
  const auto found = std::find_if(paths.begin(), paths.end(), [&](MatrixPath p) { return to_string(p) == path; });
  if (found == paths.end()) throw std::out_of_range("no matrix path " + path);
  facts.path = *found;
  fact_fields(facts, [&](const char* name, double& value) { value = json.at(name).get<double>(); });
  facts.graphics_memory = json.at("graphics_memory").get<bool>();
  for (const auto& [name, value] : json.at("peak_flops").items())
    facts.peak[static_cast<std::size_t>(precision_named(name))] = value.get<double>();
  if (json.contains("achieved_flops"))
    for (const auto& [name, value] : json.at("achieved_flops").items())
      facts.achieved[static_cast<std::size_t>(precision_named(name))] = value.get<double>();
  return facts;
}

Json gemm_json(const GemmTimes& gemm) {
  Json json = {{"precision", precision_name(gemm.precision)}};
  gemm_fields(gemm.physics, [&](const char* name, double value) { json["physics"][name] = short_number(value); });
  json["physics_error"] = errors_json(gemm.physics_error);
  if (!gemm.residual.empty()) {
    json["table_error"] = errors_json(gemm.table_error);
    json["table"] = grid_json(gemm.residual);
  }
  return json;
}

GemmTimes read_gemm(const Json& json) {
  GemmTimes gemm;
  gemm.precision = precision_named(json.at("precision").get<std::string>());
  gemm_fields(gemm.physics,
              [&](const char* name, double& value) { value = json.at("physics").at(name).get<double>(); });
  gemm.physics_error = gemm.table_error = read_errors(json.at("physics_error"));
  if (json.contains("table")) {
    gemm.table_error = read_errors(json.at("table_error"));
    gemm.residual = read_grid(json.at("table"));
  }
  return gemm;
}

Json attention_json(const AttentionTimes& attention) {
  Json json = {{"precision", precision_name(attention.precision)}};
  attention_fields(attention.physics,
                   [&](const char* name, double value) { json["physics"][name] = short_number(value); });
  json["physics_error"] = errors_json(attention.physics_error);
  json["table_error"] = errors_json(attention.table_error);
  if (!attention.causal.empty()) json["causal"] = grid_json(attention.causal);
  if (!attention.full.empty()) json["full"] = grid_json(attention.full);
  return json;
}

AttentionTimes read_attention(const Json& json) {
  AttentionTimes attention;
  attention.precision = precision_named(json.at("precision").get<std::string>());
  attention_fields(attention.physics,
                   [&](const char* name, double& value) { value = json.at("physics").at(name).get<double>(); });
  attention.physics_error = read_errors(json.at("physics_error"));
  attention.table_error = read_errors(json.at("table_error"));
  attention.causal = read_grid(json.value("causal", Json()));
  attention.full = read_grid(json.value("full", Json()));
  return attention;
}

MemoryTimes read_memory(const Json& json) {
  const auto name = json.at("kind").get<std::string>();
  const auto found = std::find(memory_kinds.begin(), memory_kinds.end(), name);
  if (found == memory_kinds.end()) throw std::out_of_range("no kind " + name);
  return {.kind = static_cast<MemoryKind>(found - memory_kinds.begin()),
          .efficiency = json.at("efficiency").get<double>(),
          .fixed_us = json.at("fixed_us").get<double>(),
          .error = json.at("error").get<double>()};
}

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

std::vector<OperatorTimes> read_bundled() {
  std::vector<OperatorTimes> all;
  for (const std::string& folder : data_places("times", "models/times")) {
    if (!std::filesystem::is_directory(folder)) continue;
    for (const std::string& file : json_files_in(folder)) all.push_back(read_operator_times(file));
    break;
  }
  return all;
}

}  // namespace

std::string operator_times_text(const OperatorTimes& times) {
  Json json = {{"schema", schema_name},      {"version", schema_version}, {"name", times.name},
               {"profiles", times.profiles}, {"source", times.source},    {"datasheet", facts_json(times.facts)}};
  for (const GemmTimes& gemm : times.gemm) json["gemm"].push_back(gemm_json(gemm));
  for (const auto& [key, list] : attention_lists)
    for (const AttentionTimes& pass : times.*list) json[key].push_back(attention_json(pass));
  for (const MemoryTimes& memory : times.memory)
    json["memory_bound"].push_back({{"kind", memory_kinds[static_cast<std::size_t>(memory.kind)]},
                                    {"efficiency", short_number(memory.efficiency)},
                                    {"fixed_us", short_number(memory.fixed_us)},
                                    {"error", short_number(memory.error)}});
  std::string text;
  print(json, 0, text);
  return text + "\n";
}

OperatorTimes read_operator_times(const std::string& path) {
  try {
    const Json json = Json::parse(read_file(path, largest_file));
    if (json.at("schema") != schema_name || json.at("version") != schema_version)
      throw std::out_of_range(fmt::format("not {} version {}", schema_name, schema_version));
    OperatorTimes times;
    times.name = json.at("name").get<std::string>();
    times.profiles = json.at("profiles").get<std::vector<std::string>>();
    times.source = json.at("source").get<std::string>();
    times.facts = read_facts(json.at("datasheet"));
    for (const Json& item : json.value("gemm", Json::array())) times.gemm.push_back(read_gemm(item));
    for (const auto& [key, list] : attention_lists)
      for (const Json& item : json.value(key, Json::array())) (times.*list).push_back(read_attention(item));
    for (const Json& item : json.value("memory_bound", Json::array())) times.memory.push_back(read_memory(item));
    return times;
  } catch (const std::exception& error) {
    throw InputError(path, "", std::string("no table of operator times: ") + error.what(),
                     "write it anew with spillway-fit");
  }
}

std::span<const OperatorTimes> measured_operator_times() {
  static const std::vector<OperatorTimes> bundled = read_bundled();
  return bundled;
}

}  // namespace spillway::models
