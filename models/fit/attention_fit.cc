#include "models/fit/attention_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "models/fit/csv_table.h"
#include "models/fit/gemm_rows.h"
#include "models/fit/grid_fit.h"
#include "models/fit/simplex_search.h"

namespace spillway::models::fit {
namespace {

constexpr std::size_t attention_sample_rows = 3000, least_table_rows = 500;
constexpr double medium_sequence = 256, large_sequence = 2048;
constexpr int attention_evaluations = 700, attention_restarts = 3;
constexpr double smoothness = 0.03;

const std::vector<double> sequence_nodes = {1,    16,   32,   64,    128,   192,   256,   400,
                                            576,  768,  1024, 1536,  2048,  2304,  3072,  4096,
                                            5184, 6144, 8192, 10240, 12288, 16384, 32768, 65536};
const std::vector<double> few_rows_sequence_nodes = {512, 2048, 8192, 32768};
const std::vector<double> parallel_nodes = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 4096, 24576};
const std::vector<double> group_nodes = {1, 2, 4, 8, 16, 96};
const std::vector<double> causal_dims = {64, 128, 192, 256}, full_dims = {64, 72, 80};

AttentionPhysics attention_physics(std::span<const double> p) {
  return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]};
}

double bare_seconds(const AttentionPhysics& physics, const MeasuredAttention& gpu, const AttentionSides& sides) {
  return attention_seconds(
      physics,
      {gpu.facts.peak[static_cast<std::size_t>(gpu.precision)], gpu.facts.bandwidth, gpu.facts.multiprocessors}, sides,
      gpu.pass);
}

AttentionPhysics fit_attention_physics(const MeasuredAttention& gpu) {
  std::vector<const AttentionRow*> sample;
  const double step = std::max(1.0, static_cast<double>(gpu.rows.size()) / static_cast<double>(attention_sample_rows));
  for (double at = 0; at < static_cast<double>(gpu.rows.size()); at += step)
    sample.push_back(&gpu.rows[static_cast<std::size_t>(at)]);
  const auto loss = [&](std::span<const double> p) {
    const AttentionPhysics physics = attention_physics(p);
    double sum = 0;
    for (const AttentionRow* row : sample)
      sum += std::abs(std::log(bare_seconds(physics, gpu, row->sides) / row->seconds));
    return sum;
  };
  const bool few = gpu.rows.size() < least_table_rows;  // then memory, overlap and clock are not to be seen
  const std::vector<Bounded> box = {{0.1, 1, 0.7},
                                    {0, 120, 30},
                                    {0, 20, 2},
                                    {few ? 0.79 : 0.2, few ? 0.81 : 1, 0.8},
                                    {1, 900, 14},
                                    {few ? 2.9 : 1.5, few ? 3.1 : 8, 3},
                                    {0, few ? 1e-3 : 0.5, few ? 5e-4 : 0.1},
                                    {0.5, 50, 5},
                                    {1, 1.6, 1.1}};
  return attention_physics(simplex_search(box, loss, attention_evaluations, attention_restarts));
}

LogGrid fit_table(const AttentionTimes& bare, const MeasuredAttention& gpu, bool causal) {
  std::vector<GridRow> rows;
  for (const AttentionRow& row : gpu.rows)
    if (row.sides.causal == causal)
      rows.push_back({.point = attention_point(row.sides),
                      .value = std::log(row.seconds / bare_seconds(bare.physics, gpu, row.sides))});
  if (rows.empty()) return {};
  const std::vector<double> any = {1};
  LogGrid grid =
      rows.size() < least_table_rows
          ? LogGrid({few_rows_sequence_nodes, any, any, any})
          : LogGrid({sequence_nodes, parallel_nodes, causal ? group_nodes : any, causal ? causal_dims : full_dims});
  fit_grid(grid, rows, smoothness);
  return grid;
}

AttentionTimes fit_rows(const MeasuredAttention& gpu) {
  AttentionTimes times{.precision = gpu.precision, .physics = fit_attention_physics(gpu)};
  const AttentionTimes bare = times;
  times.causal = fit_table(bare, gpu, true);
  times.full = fit_table(bare, gpu, false);
  return times;
}

}  // namespace

bool held_out(const AttentionSides& sides) {
  const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
  return held_out(whole(1000 * sides.batch + sides.heads), whole(sides.queries),
                  whole(1000 * sides.kv_heads + sides.key_dim));
}

std::vector<AttentionRow> read_context_rows(const std::string& path, std::string_view format, bool causal) {
  const CsvTable table = CsvTable::read(path);
  const auto number = [&](std::size_t row, const char* name) { return table.number(row, table.column(name)); };
  std::vector<AttentionRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (table.text(i, table.column("attn_dtype")) != format) continue;
    if (causal && (number(i, "window_size") != 0 || table.text(i, table.column("kv_cache_dtype")) != format)) continue;
    const double heads = number(i, "num_heads"), sequence = number(i, "isl"), dim = number(i, "head_dim");
    rows.push_back({{.batch = number(i, "batch_size"),
                     .heads = heads,
                     .kv_heads = causal ? number(i, "num_key_value_heads") : heads,
                     .queries = sequence,
                     .keys = sequence,
                     .key_dim = dim,
                     .value_dim = dim,
                     .element_bytes = format == "fp8" ? 1.0 : 2.0,
                     .causal = causal},
                    number(i, "latency") * 1e-3});
  }
  return rows;
}

namespace {

std::string first_of(const CsvTable& table, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (table.has(name)) return name;
  return *names.begin();
}

void add_training_rows(const CsvTable& table, std::string_view format, AttentionPass pass,
                       std::vector<AttentionRow>& rows) {
  const bool forward = pass == AttentionPass::forward;
  const std::size_t time = table.column(forward ? first_of(table, {"fwd_time_ms", "forward_time"})
                                                : first_of(table, {"bwd_time_ms", "backward_time"}));
  const std::size_t key_dim = table.column(first_of(table, {"head_dim_qk", "head_dim"}));
  const std::size_t value_dim = table.column(first_of(table, {"head_dim_vo", "head_dim"}));
  const std::size_t backend = table.column("backend");
  const auto number = [&](std::size_t row, const char* name) { return table.number(row, table.column(name)); };
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (table.text(i, backend) != "cudnn" && table.text(i, backend) != "pyt_cudnn") continue;
    if ((table.has("data_type") ? table.text(i, table.column("data_type")) : "bfloat16") != format) continue;
    const double seconds = table.number(i, time) * 1e-3;
    if (!std::isfinite(seconds) || seconds <= 0) continue;  // did not run
    const bool deterministic =
        !forward && table.has("deterministic_bwd") && table.text(i, table.column("deterministic_bwd")) == "True";
    const bool causal = table.has("attn_mask") ? table.text(i, table.column("attn_mask")) != "no_mask"
                                               : table.text(i, table.column("is_causal")) == "True";
    rows.push_back({{.batch = number(i, "batch_size"),
                     .heads = number(i, "num_q_heads"),
                     .kv_heads = number(i, "num_kv_heads"),
                     .queries = number(i, "q_seqlen"),
                     .keys = number(i, "kv_seqlen"),
                     .key_dim = table.number(i, key_dim),
                     .value_dim = table.number(i, value_dim),
                     .causal = causal,
                     .deterministic = deterministic},
                    seconds});
  }
}

}  // namespace

std::vector<AttentionRow> read_training_rows(const std::string& folder, const std::string& prefix,
                                             std::string_view format, AttentionPass pass) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<AttentionRow> rows;
  for (const std::string& file : files) add_training_rows(CsvTable::read(file), format, pass, rows);
  return rows;
}

double predicted_seconds(const AttentionTimes& times, const MeasuredAttention& measured, const AttentionRow& row) {
  const double seconds = bare_seconds(times.physics, measured, row.sides);
  const LogGrid& grid = row.sides.causal ? times.causal : times.full;
  return grid.empty() ? seconds : seconds * std::exp(grid.at(attention_point(row.sides)));
}

AttentionErrors attention_errors(const AttentionTimes& times, const MeasuredAttention& measured, bool only_held_out) {
  Errors all, causal, full, small, medium, large;
  for (const AttentionRow& row : measured.rows) {
    if (only_held_out && !held_out(row.sides)) continue;
    const double predicted = predicted_seconds(times, measured, row), queries = row.sides.queries;
    all.add(predicted, row.seconds);
    (row.sides.causal ? causal : full).add(predicted, row.seconds);
    (queries >= large_sequence ? large : queries >= medium_sequence ? medium : small).add(predicted, row.seconds);
  }
  return {all.summary(),
          causal.summary(),
          full.summary(),
          {small.summary().standard, medium.summary().standard, large.summary().standard}};
}

AttentionTimes fit_attention(const MeasuredAttention& measured) {
  MeasuredAttention seen = measured;
  std::erase_if(seen.rows, [](const AttentionRow& row) { return held_out(row.sides); });
  AttentionTimes times = fit_rows(seen);
  AttentionTimes bare = times;
  bare.causal = bare.full = {};
  times.physics_error = attention_errors(bare, measured, true).regimes;
  times.table_error = attention_errors(times, measured, true).regimes;
  return times;
}

ErrorSummary leave_one_out(const MeasuredAttention& measured) {
  Errors errors;
  for (std::size_t i = 0; i < measured.rows.size(); ++i) {
    MeasuredAttention others = measured;
    others.rows.erase(others.rows.begin() + static_cast<std::ptrdiff_t>(i));
    errors.add(predicted_seconds(fit_rows(others), measured, measured.rows[i]), measured.rows[i].seconds);
  }
  return errors.summary();
}

}  // namespace spillway::models::fit
