#include "models/fit/gemm_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/fit/grid_fit.h"
#include "models/fit/simplex_search.h"

namespace spillway::models::fit {
namespace {

constexpr std::int64_t medium_side = 64, large_side = 1024;
constexpr std::size_t sample_rows = 4000;  // of each GPU, for the physical constants
constexpr double large_weight = 3;         // of large products in that fit: training spends its time there
constexpr int gemm_evaluations = 900, gemm_restarts = 3;
constexpr double shared_smoothness = 0.2, own_smoothness = 0.4, lone_smoothness = 0.1;

// Nodes where the tables have rows, finer where kernels change.
const std::vector<double> m_nodes = {1,   2,   4,   8,   12,   16,   17,   32,   48,   64,   96,    128,  192,
                                     256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384, 32768};
const std::vector<double> nk_nodes = {32,   64,   128,  256,  512,   768,   1024,  1536,  2048, 3072,
                                      4096, 5120, 6144, 8192, 10240, 12288, 16384, 32768, 65536};

bool is_large(const GemmRow& row) { return std::min({row.m, row.n, row.k}) >= large_side; }

GemmSides sides_of(const GemmRow& row, Precision precision) {
  return {.m = static_cast<double>(row.m),
          .n = static_cast<double>(row.n),
          .k = static_cast<double>(row.k),
          .element_bytes = precision == Precision::fp8 ? 1.0 : 2.0};
}

std::vector<Bounded> box_of(Precision precision) {
  std::vector<Bounded> box = {{0.3, 1, 0.85}, {0.5, 1.3, 0.9}, {0.5, 1.3, 0.9}, {0, 400, 90}, {0.4, 0.97, 0.85},
                              {0.2, 8, 2.5},  {0, 10, 2},      {1.5, 12, 3},    {0, 1, 0.5},  {0.05, 1, 0.5},
                              {10, 400, 60},  {0, 0.6, 0.1},   {0.2, 30, 3}};
  if (precision == Precision::fp8) {
    box.push_back({0.2, 20, 4});
    box.push_back({0.05, 1, 0.5});
  }
  return box;
}

GemmPhysics physics_of(std::span<const double> p) {
  GemmPhysics physics{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12]};
  if (p.size() > 13) {
    physics.quantise_us = p[13];
    physics.quantise_efficiency = p[14];
  }
  return physics;
}

// Every so many rows, so that all sizes are there.
std::vector<GemmRow> sample_of(const std::vector<GemmRow>& rows) {
  std::vector<GemmRow> fitted, sample;
  for (const GemmRow& row : rows)
    if (!held_out(row.m, row.n, row.k)) fitted.push_back(row);
  std::stable_sort(fitted.begin(), fitted.end(), [](const GemmRow& left, const GemmRow& right) {
    return std::array{left.n, left.k, left.m} < std::array{right.n, right.k, right.m};
  });
  const double step = std::max(1.0, static_cast<double>(fitted.size()) / static_cast<double>(sample_rows));
  for (double at = 0; at < static_cast<double>(fitted.size()); at += step)
    sample.push_back(fitted[static_cast<std::size_t>(at)]);
  return sample;
}

GemmPhysics fit_physics(const std::vector<MeasuredGemm>& kin) {
  std::vector<std::vector<GemmRow>> samples;
  for (const MeasuredGemm& gpu : kin) samples.push_back(sample_of(gpu.rows));
  const auto loss = [&](std::span<const double> p) {
    const GemmPhysics physics = physics_of(p);
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i < kin.size(); ++i) {
      const GemmMachine machine = machine_of(kin[i].facts, kin[i].precision);
      for (const GemmRow& row : samples[i]) {
        const double weight = is_large(row) ? large_weight : 1;
        sum +=
            weight * std::abs(std::log(gemm_seconds(physics, machine, sides_of(row, kin[i].precision)) / row.seconds));
        weights += weight;
      }
    }
    return sum / weights;
  };
  return physics_of(simplex_search(box_of(kin.front().precision), loss, gemm_evaluations, gemm_restarts));
}

// log(measured / predicted) of the rows a fit may see.
std::vector<GridRow> residuals(const GemmTimes& times, const MeasuredGemm& gpu) {
  std::vector<GridRow> rows;
  for (const GemmRow& row : gpu.rows)
    if (!held_out(row.m, row.n, row.k))
      rows.push_back({.point = {static_cast<double>(row.m), static_cast<double>(row.n), static_cast<double>(row.k)},
                      .value = std::log(row.seconds / predicted_seconds(times, gpu.facts, row))});
  return rows;
}

LogGrid shared_table(const std::vector<MeasuredGemm>& kin, const GemmTimes& bare) {
  std::vector<GridRow> rows;
  for (const MeasuredGemm& gpu : kin) {
    const std::vector<GridRow> own = residuals(bare, gpu);
    rows.insert(rows.end(), own.begin(), own.end());
  }
  LogGrid grid({m_nodes, nk_nodes, nk_nodes});
  fit_grid(grid, rows, shared_smoothness);
  return grid;
}

}  // namespace

GemmMachine machine_of(const DatasheetFacts& facts, Precision precision) {
  return {facts.peak[static_cast<std::size_t>(precision)], facts.bandwidth, facts.multiprocessors, facts.l2_bytes};
}

double predicted_seconds(const GemmTimes& times, const DatasheetFacts& facts, const GemmRow& row) {
  const GemmSides sides = sides_of(row, times.precision);
  const double seconds = gemm_seconds(times.physics, machine_of(facts, times.precision), sides);
  const double line = line_factor(times, sides.m, sides.n, sides.k);
  if (times.residual.empty()) return line * seconds;
  return line * seconds * std::exp(times.residual.at(std::array{sides.m, sides.n, sides.k}));
}

GemmErrors gemm_errors(const GemmTimes& times, const MeasuredGemm& measured, bool only_held_out) {
  Errors all, small, medium, large;
  for (const GemmRow& row : measured.rows) {
    if (only_held_out && !held_out(row.m, row.n, row.k)) continue;
    const double predicted = predicted_seconds(times, measured.facts, row);
    const std::int64_t smallest = std::min({row.m, row.n, row.k});
    all.add(predicted, row.seconds);
    (smallest >= large_side ? large : smallest >= medium_side ? medium : small).add(predicted, row.seconds);
  }
  return {
      all.summary(), large.summary(), {small.summary().standard, medium.summary().standard, large.summary().standard}};
}

std::vector<GemmTimes> fit_gemm(const std::vector<MeasuredGemm>& kin) {
  const GemmTimes bare{.precision = kin.front().precision, .physics = fit_physics(kin)};
  LogGrid shared;
  if (kin.size() > 1) shared = shared_table(kin, bare);
  std::vector<GemmTimes> fitted;
  for (const MeasuredGemm& gpu : kin) {
    GemmTimes times = bare;
    times.physics_error = gemm_errors(bare, gpu, true).regimes;
    times.residual = shared;
    LogGrid own({m_nodes, nk_nodes, nk_nodes});
    fit_grid(own, residuals(times, gpu), kin.size() > 1 ? own_smoothness : lone_smoothness);
    std::vector<double> values = own.values();
    for (std::size_t i = 0; i < values.size() && !shared.empty(); ++i) values[i] += shared.values()[i];
    own.set_values(std::move(values));
    times.residual = std::move(own);
    times.table_error = gemm_errors(times, gpu, true).regimes;
    fitted.push_back(std::move(times));
  }
  return fitted;
}

}  // namespace spillway::models::fit
