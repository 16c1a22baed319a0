// Every schedule with a published scheduler, against an independent simulation of that scheduler's orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_check.h"
#include "planners/pipeline/pipeline_executor.h"
#include "planners/pipeline/pipeline_memory.h"
#include "tests/planners/pipeline_files.h"

namespace spillway::planners {
namespace {

struct Known {
  std::string name;
  bool is_exact = true;
  std::int64_t slices = 0;
};
Known known(const std::string& published) {
  static const std::map<std::string, Known> names = {
      {"GPipe", {"gpipe"}},
      {"1F1B", {"1f1b"}},
      {"eager-1F1B", {"eager-1f1b"}},
      {"1F1B-I", {"interleaved"}},
      {"ZB-H1", {"zb-h1"}},
      {"ZB-H2", {"zb-h2"}},
      {"ZB-1p", {"zb-1p", false}},
      {"ZB-2p", {"zb-2p", false}},
      {"ZB-V", {"zb-v", false}},
      {"V-Half", {"v-half"}},
      {"V-Min", {"v-min"}},
      {"1F1B-V", {"1f1b-v"}},
      {"GIS", {"gis"}},
      {"GIS-H", {"gis-h"}},
      {"PO-uniform", {"po-uniform"}},
      {"PO-uniform+recomp", {"po-uniform"}},
      {"Chronos-Pipe(reconstructed)", {"chronos"}},
      {"Chronos-Recomp(reconstructed)", {"chronos"}},
      {"DualPipe", {"dualpipe"}},
      {"DualPipeV", {"dualpipe-v"}},
      {"Seq1F1B(k=2, equal-cost segments)", {"seq1f1b", true, 2}},
      {"Seq1F1B(k=4, equal-cost segments)", {"seq1f1b", true, 4}},
  };
  return names.at(published);
}

std::filesystem::path reference_file() { return shared_data("pipeline/reference.csv"); }

constexpr double ticks_per_unit = 1e6;
Ticks ticks(double units) { return std::llround(units * ticks_per_unit); }

struct Found {
  double makespan = 0, longest_span = 0, peak_with_parts = 0;
  std::vector<double> peaks;
};

Found run_row(const CsvRow& row, const Known& schedule) {
  PipelineRequest request;
  request.devices = row.count("p");
  request.micro_batches = row.count("m");
  request.chunks = schedule.slices > 0 ? 1 : row.count("v");
  request.slices = schedule.slices;
  request.recomputed_chunks = row.count("recomputed_chunks");
  request.pairs = false;
  request.weight_part = std::llround(row.number("w_mem_fraction") * 1e6);
  const double v = static_cast<double>(request.chunks);
  request.times.positions = {{ticks(row.number("TF") / v), ticks(row.number("TB") / v), ticks(row.number("TW") / v),
                              ticks(row.number("TF") / v)}};
  request.times.transfer = ticks(row.number("Tcomm"));
  const PipelinePlan plan = build_schedule(schedule.name, request);
  check_plan(plan);
  const PipelineTimeline timeline = execute_plan(plan, request.times);
  Found found;
  found.makespan = static_cast<double>(timeline.makespan) / ticks_per_unit;
  found.longest_span = static_cast<double>(timeline.longest_span) / ticks_per_unit;
  found.peaks = activation_peaks(plan, timeline);
  const auto parts = activation_peaks(plan, timeline, {.weight_part = request.weight_part});
  found.peak_with_parts = *std::max_element(parts.begin(), parts.end());
  return found;
}

TEST(PipelineReference, EveryRow) {
  if (!std::filesystem::exists(reference_file())) GTEST_SKIP() << "no ../shared/data/pipeline/reference.csv";
  std::size_t checked = 0;
  for (const CsvRow& row : csv_rows(reference_file())) {
    const Known schedule = known(row.text("schedule"));
    SCOPED_TRACE(row.text("schedule") + " p " + row.text("p") + " m " + row.text("m") + " v " + row.text("v") + " " +
                 row.text("time_set"));
    Found found;
    try {
      found = run_row(row, schedule);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      continue;
    }
    ++checked;
    const double rounding = 5e-5;
    if (schedule.is_exact) {
      EXPECT_NEAR(found.makespan, row.number("makespan"), rounding);
      EXPECT_EQ(found.peaks, row.numbers("peak_freed_at_W_per_stage"));
    } else {
      EXPECT_LE(found.peak_with_parts, row.number("peak_MB_MW_max") + rounding);
    }
    if (!row.text("max_stage_span").empty()) {
      if (schedule.is_exact)
        EXPECT_NEAR(found.longest_span, row.number("max_stage_span"), rounding);
      else
        EXPECT_LE(found.longest_span, row.number("max_stage_span") + rounding);
    }
  }
  EXPECT_GE(checked, 464u);
}

}  // namespace
}  // namespace spillway::planners
