#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/input_error.h"
#include "reports/sweep_svg.h"
#include "studies/sweep/sweep_check.h"
#include "studies/sweep/sweep_map.h"
#include "studies/sweep/sweep_run.h"
#include "studies/sweep/sweep_tornado.h"

namespace spillway::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

SweepFile small_file() {
  return parse_sweep(R"json({
  "schema": "spillway-sweep", "version": 1, "title": "small & <plain>",
  "base": {"model": {"name": "gpt2-small", "sequence": 512, "global_batch": 64, "framework": "megatron_2022"},
           "hardware": {"profile": "dgx-a100"}},
  "constants": {"gpus": 8, "batch": 64},
  "axes": [
    {"name": "t", "key": "model.tensor_parallel", "from": 1, "to": 4, "times": 2},
    {"name": "p", "key": "model.pipeline_parallel", "values": [1, 2, 4]},
    {"name": "b", "key": "model.micro_batch", "from": 2, "to": 8, "times": 2},
    {"name": "recompute", "options": {"keep": {}, "full": {"model.recompute": "full"}}}
  ],
  "derived": [{"name": "d", "key": "model.data_parallel", "value": "gpus / (t * p)"}],
  "where": [{"is": "divides(d * b, batch)", "reason": "uneven batch"}],
  "objectives": ["step_time", "peak_memory"]
})json",
                     "sweep.json", "");
}

// Every valid point replayed.
struct Everything {
  SweepFile file = small_file();
  SweepStore store;
  LocalWorkers workers{file};
  SweepOutcome outcome;
  Everything() {
    file.margin = file.memory_margin = 0.9;
    outcome = run_sweep(file, {}, store);
  }
};

const Everything& everything() {
  static const Everything all;
  return all;
}

// A cell is the least over all points that share its two values.
TEST(SweepMap, HoldsTheBestOfEachPair) {
  const Everything& all = everything();
  const SweepMap map = sweep_map(all.file, all.outcome, "t", "p", Objective::peak_memory);
  std::map<std::pair<std::string, std::string>, double> best;
  for (const SweepRow& row : all.outcome.rows) {
    const auto [at, is_new] = best.emplace(std::pair(row.options[0], row.options[1]), row.replayed.peak_bytes);
    if (!is_new) at->second = std::min(at->second, row.replayed.peak_bytes);
  }
  ASSERT_EQ(map.across, (std::vector<std::string>{"1", "2", "4"}));
  std::size_t filled = 0;
  for (std::size_t p = 0; p < map.up.size(); ++p)
    for (std::size_t t = 0; t < map.across.size(); ++t) {
      const SweepMap::Cell& cell = map.at(p, t);
      const auto expected = best.find({map.across[t], map.up[p]});
      ASSERT_EQ(cell.source == SweepMap::Source::none, expected == best.end());
      if (expected == best.end()) continue;
      EXPECT_EQ(cell.source, SweepMap::Source::replayed);
      EXPECT_EQ(cell.value, expected->second);
      ++filled;
    }
  EXPECT_GT(filled, 5U);
}

// Without replays the cells hold estimates, within the screen's error of what replays say.
TEST(SweepMap, FallsBackToEstimates) {
  const Everything& all = everything();
  const SweepMap replayed = sweep_map(all.file, all.outcome, "p", "b", Objective::step_time);
  const SweepMap screened = sweep_map(all.file, {}, "p", "b", Objective::step_time);
  for (std::size_t i = 0; i < replayed.cells.size(); ++i) {
    if (replayed.cells[i].source == SweepMap::Source::none) continue;
    EXPECT_EQ(screened.cells[i].source, SweepMap::Source::screened);
    EXPECT_NEAR(screened.cells[i].value / replayed.cells[i].value, 1, 0.1);
  }
}

TEST(SweepMap, RefusesWhatIsNoPairOfAxes) {
  const Everything& all = everything();
  EXPECT_THROW(sweep_map(all.file, {}, "t", "t", Objective::step_time), InputError);
  EXPECT_THROW(sweep_map(all.file, {}, "t", "q", Objective::step_time), InputError);
}

// Each end of a bar is the replay of a point that differs from the best in this axis alone.
TEST(SweepTornado, VariesOneAxisAtATime) {
  const Everything& all = everything();
  SweepStore store;
  LocalWorkers workers(all.file);
  const SweepTornado tornado = sweep_tornado(all.file, all.outcome, Objective::step_time, workers, store);
  const auto best =
      std::min_element(all.outcome.rows.begin(), all.outcome.rows.end(),
                       [](const auto& a, const auto& b) { return a.replayed.step_seconds < b.replayed.step_seconds; });
  EXPECT_EQ(tornado.number, best->number);
  ASSERT_EQ(tornado.swings.size(), all.file.axes.size());
  for (const SweepSwing& swing : tornado.swings) {
    double least = best->replayed.step_seconds, most = least;
    for (const SweepRow& row : all.outcome.rows) {
      std::size_t others = 0, own = 0;
      for (std::size_t axis = 0; axis < row.options.size(); ++axis)
        if (row.options[axis] != best->options[axis]) ++(all.file.axes[axis].name == swing.axis ? own : others);
      if (others > 0 || own != 1) continue;
      least = std::min(least, row.replayed.step_seconds);
      most = std::max(most, row.replayed.step_seconds);
    }
    EXPECT_EQ(swing.least.value, least) << swing.axis;
    EXPECT_EQ(swing.most.value, most) << swing.axis;
  }
  const auto width = [](const SweepSwing& swing) { return swing.most.value - swing.least.value; };
  EXPECT_GT(width(tornado.swings.front()), 0);
  for (std::size_t i = 1; i < tornado.swings.size(); ++i)
    EXPECT_GE(width(tornado.swings[i - 1]), width(tornado.swings[i]));
}

TEST(SweepPictures, AreWholeDocuments) {
  const Everything& all = everything();
  SweepStore store;
  LocalWorkers workers(all.file);
  const std::string front = sweep_front_svg(all.file, all.outcome, Objective::step_time, Objective::peak_memory);
  const std::string map =
      sweep_map_svg(all.file, sweep_map(all.file, all.outcome, "t", "p", Objective::step_time), Objective::step_time);
  const std::string tornado = sweep_tornado_svg(
      all.file, sweep_tornado(all.file, all.outcome, Objective::step_time, workers, store), Objective::step_time);
  for (const std::string& svg : {front, map, tornado}) {
    EXPECT_THAT(svg, HasSubstr("small &amp; &lt;plain&gt;"));
    EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
  EXPECT_THAT(front, HasSubstr("Peak memory (GiB per GPU)"));
  const auto on_front =
      std::count_if(all.outcome.rows.begin(), all.outcome.rows.end(), [](const SweepRow& row) { return row.on_front; });
  EXPECT_THAT(front, HasSubstr(std::to_string(on_front) + " on the front"));
  EXPECT_THAT(sweep_front_svg(all.file, {}, Objective::step_time, Objective::gpus), HasSubstr("Nothing was replayed"));
}

// All of a small space is drawn, so the sample's front is the whole one.
TEST(SweepCheck, FindsWhatWasPrunedWrongly) {
  const Everything& all = everything();
  SweepFile file = small_file();
  LocalWorkers workers(file);
  SweepStore store;
  const SweepCheck check = check_screen(file, 500, 1, workers, store);
  EXPECT_EQ(static_cast<std::int64_t>(check.sampled), all.outcome.screened);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(check.on_front), std::count_if(all.outcome.rows.begin(), all.outcome.rows.end(),
                                                                       [](const auto& row) { return row.on_front; }));
  EXPECT_TRUE(check.wrong.empty());
  EXPECT_GT(check.pruned, 0U);
  EXPECT_EQ(check.groups.front().time.compared, check.sampled);
  // A margin that makes every estimate look worse than it is rules out what is on the front.
  file.margin = file.memory_margin = -0.5;
  EXPECT_FALSE(check_screen(file, 500, 1, workers, store).wrong.empty());
}

// The default margin is enough where everything that the screen has a closed form for occurs (docs/internals/sweep.md
// has the check of 2,000 points).
TEST(SweepCheck, TheDefaultMarginHoldsForASampleOfAllTechniques) {
  const SweepFile file = parse_sweep(R"json({
  "schema": "spillway-sweep", "version": 1,
  "base": {"model": {"name": "gpt2-medium", "sequence": 1024, "global_batch": 128, "framework": "megatron_2022"},
           "hardware": {"profile": "dgx-a100"}},
  "constants": {"gpus": 32, "batch": 128},
  "axes": [
    {"name": "t", "key": "model.tensor_parallel", "from": 1, "to": 8, "times": 2},
    {"name": "p", "key": "model.pipeline_parallel", "values": [1, 2, 4, 8]},
    {"name": "v", "key": "model.pipeline_chunks", "values": [1, 2, 3]},
    {"name": "b", "key": "model.micro_batch", "from": 1, "to": 8, "times": 2},
    {"name": "sequence_parallel", "key": "model.sequence_parallel", "values": ["false", "true"]},
    {"name": "recompute", "key": "model.recompute", "values": ["none", "selective", "full"]},
    {"name": "zero", "key": "model.zero_stage", "values": [0, 1, 2, 3]},
    {"name": "overlap", "key": "model.overlap_gradients", "values": ["false", "true"]}
  ],
  "derived": [{"name": "d", "key": "model.data_parallel", "value": "gpus / (t * p)"}],
  "where": ["divides(d * b, batch)", "v == 1 || (p > 1 && mod(batch / (d * b), p) == 0)",
            "sequence_parallel == 0 || t > 1"],
  "objectives": ["step_time", "peak_memory"]
})json",
                                     "sweep.json", "");
  LocalWorkers workers(file);
  SweepStore store;
  const SweepCheck check = check_screen(file, 150, 7, workers, store);
  EXPECT_EQ(check.sampled, 150U);
  EXPECT_GT(check.on_front, 2U);
  EXPECT_GT(check.pruned, 40U);
  for (const SweepCheck::Wrong& wrong : check.wrong) ADD_FAILURE() << wrong.label << ": " << wrong.why;
}

}  // namespace
}  // namespace spillway::reports
