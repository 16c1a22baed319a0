// What the search takes for certain without a replay: bounds, held against the replays of set-ups of the kind it looks
// at.
#include "studies/fit/fit_screen.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "studies/fit/fit_layouts.h"
#include "studies/fit/fit_moves.h"
#include "tests/test_size.h"

namespace spillway::studies {
namespace {

// Of each layout what a search makes of it.
std::vector<FitPoint> set_ups(const FitQuestion& question, const FitSubject& subject, const FitPoints& points) {
  const FitMoves moves(question, subject, points);
  const std::vector<std::vector<std::string>> edits = {
      {},
      {"model.recompute=full"},
      {"model.recompute=selective", "model.micro_batch=2"},
      {"model.optimizer_device=cpu"},
      {"model.micro_batch=4", "model.recompute=full", "model.optimizer_device=cpu", "model.weight_device=cpu"},
  };
  std::vector<FitPoint> all;
  for (const FitPoint& layout : fit_layouts(subject, points, subject.gpus))
    for (const std::vector<std::string>& each : edits)
      for (const bool is_lean : {false, true}) all.push_back(points.with(is_lean ? moves.lean(layout) : layout, each));
  return all;
}

// Rows with a bound of the step's time, those whose bound is near, and all.
struct Compared {
  int all = 0, bounded = 0, near = 0;
};

// Of the set-ups a few, evenly, in a quick run.
void compare(const FitQuestion& question, Compared& compared) {
  const FitSubject subject = fit_subject(question);
  const FitPoints points(subject);
  FitScreen screen(subject, points);
  const std::vector<FitPoint> all = set_ups(question, subject, points);
  const std::size_t wanted = test::is_full_size() ? all.size() : 6,
                    step = std::max<std::size_t>(1, all.size() / wanted);
  std::vector<FitPoint> some;
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < all.size(); i += step) {
    some.push_back(all[i]);
    candidates.push_back(points.candidate(all[i]));
  }
  const std::vector<FitEstimate> estimates = screen.estimate(some);
  const std::vector<Row> rows = evaluate(subject.scenario, candidates);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].ran() || !estimates[i].invalid.empty()) continue;
    const double seconds = to_seconds(rows[i].result.step_time);
    SCOPED_TRACE(fmt::format("{} on {}: {} {}", question.what, question.machine, fmt::join(question.settings, " "),
                             fmt::join(candidates[i].edits, " ")));
    EXPECT_LE(estimates[i].least_seconds, seconds);
    EXPECT_LE(estimates[i].least_peak, rows[i].result.memory.peak_allocated);
    ++compared.all;
    compared.bounded += estimates[i].least_seconds > 0 ? 1 : 0;
    compared.near += estimates[i].least_seconds > 0.3 * seconds ? 1 : 0;
  }
}

TEST(FitScreen, BoundsAreNeverAboveTheReplay) {
  Compared compared;
  for (const char* model : {"llama-3-8b", "gpt2-small", "mixtral-8x7b", "deepseek-v2-lite"})
    for (const char* framework : {"eager", "megatron"})
      for (const char* machine : {"8xh100", "2x8xh100"})
        compare({.what = model,
                 .machine = machine,
                 .settings = {"model.layers=8", "model.framework=" + std::string(framework)},
                 .sequence = 1024,
                 .global_batch = 32},
                compared);
  RecordProperty("compared", compared.all);
  EXPECT_GT(compared.bounded, 40);
  EXPECT_GT(compared.near * 4, compared.bounded);
}

}  // namespace
}  // namespace spillway::studies
