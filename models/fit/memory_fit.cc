#include "models/fit/memory_fit.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "models/fit/csv_table.h"
#include "models/fit/gemm_rows.h"
#include "models/fit/simplex_search.h"

namespace spillway::models::fit {
namespace {

constexpr double element_bytes = 2;
constexpr double least_vidur_seconds = 10e-6;
constexpr double least_vidur_tensor = 32e6;  // bytes: three of them stay in no L2
constexpr int memory_evaluations = 300, memory_restarts = 2;

double seconds_of(std::span<const double> p, double bytes, const DatasheetFacts& facts) {
  const double hits = std::min(p[2] * facts.l2_bytes, bytes / 2);
  return (bytes - hits) / (facts.bandwidth * p[0]) + p[1] * 1e-6;
}

}  // namespace

std::vector<MemoryRow> read_vidur_rows(const std::string& folder, const std::string& prefix, MemoryKind kind) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string();
        name.starts_with(prefix) && name.find("phi-2") == std::string::npos)
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  const bool gather = kind == MemoryKind::gather;
  std::vector<MemoryRow> rows;
  for (const std::string& file : files) {
    const CsvTable table = CsvTable::read(file);
    const char* name = gather ? "time_stats.emb.median" : "time_stats.add.median";
    if (!table.has(name)) continue;
    const std::size_t time = table.column(name), tokens = table.column("num_tokens"), width = table.column("n_embd"),
                      workers = table.column("num_tensor_parallel_workers");
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const double seconds = table.number(i, time) * 1e-3;
      if (table.number(i, workers) != 1 || !(seconds >= least_vidur_seconds)) continue;
      const double elements = table.number(i, tokens) * table.number(i, width);
      if (!gather && elements * element_bytes < least_vidur_tensor) continue;
      rows.push_back({elements * element_bytes * (gather ? 2 : 3), seconds,
                      held_out(std::llround(table.number(i, tokens)), std::llround(table.number(i, width)),
                               static_cast<std::int64_t>(kind))});
    }
  }
  return rows;
}

std::vector<MemoryRow> read_norm_rows(const std::string& path, MemoryKind kind) {
  const CsvTable table = CsvTable::read(path);
  const bool forward = kind == MemoryKind::norm_forward;
  const char* backend = "pytorch";
  std::vector<MemoryRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (table.text(i, table.column("backend")) != backend) continue;
    const double seconds = table.number(i, table.column(forward ? "fwd_time_ms" : "bwd_time_ms")) * 1e-3;
    if (!std::isfinite(seconds) || seconds <= 0) continue;
    const double height = table.number(i, table.column("N")), width = table.number(i, table.column("C"));
    rows.push_back({height * width * element_bytes * (forward ? 2 : 3), seconds,
                    held_out(std::llround(height), std::llround(width), static_cast<std::int64_t>(kind))});
  }
  return rows;
}

MemoryTimes fit_memory(MemoryKind kind, const std::vector<MemoryRow>& rows, const DatasheetFacts& facts,
                       ErrorSummary& errors) {
  const auto loss = [&](std::span<const double> p) {
    double sum = 0;
    for (const MemoryRow& row : rows)
      if (!row.held_out) sum += std::abs(std::log(seconds_of(p, row.bytes, facts) / row.seconds));
    return sum;
  };
  const std::vector<Bounded> box = {{0.02, 1, 0.7}, {1, 60, 2}, {0, 1, 0.3}};
  const std::vector<double> best = simplex_search(box, loss, memory_evaluations, memory_restarts);
  Errors held;
  for (const MemoryRow& row : rows)
    if (row.held_out) held.add(seconds_of(best, row.bytes, facts), row.seconds);
  errors = held.summary();
  return {.kind = kind, .efficiency = best[0], .fixed_us = best[1], .error = errors.standard};
}

}  // namespace spillway::models::fit
