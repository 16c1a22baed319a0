#include "gui/plots/charts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace spillway::gui {
namespace {

// What makes the step longer is no help: it has no bar, and the table says why.
TEST(SensitivityChart, ALongerStepIsNoGain) {
  auto found = std::make_shared<Sensitivity>();
  found->relaxations = {{.resource = "GPU arithmetic x2", .step_time = Picos(80), .gain = 0.2},
                        {.resource = "drives infinitely fast", .step_time = Picos(114), .gain = -0.139},
                        {.resource = "host x2", .step_time = Picos(100), .gain = 0}};
  SensitivityChart chart;
  chart.show(found, nullptr);
  ASSERT_EQ(chart.scene().bars.size(), 1U);
  EXPECT_EQ(chart.scene().bars.front().name, "GPU arithmetic x2");
  const TableRows rows = chart.table();
  ASSERT_EQ(rows.rows.size(), 3U);
  EXPECT_EQ(rows.rows[0][2].text, "20 %");
  EXPECT_EQ(rows.rows[1][2].text, "no gain: planned again, the step is 14 % longer");
  EXPECT_EQ(rows.rows[2][2].text, "no gain");
}

// An empty plot says what to do; one with points that lie nowhere is not called empty.
TEST(ParetoChart, EmptyWordsAreOfAnEmptySweep) {
  ParetoChart chart;
  EXPECT_TRUE(chart.scene().empty_words.startsWith("Run a sweep"));
  SweepRow row;
  row.is_done = true;
  row.candidate.name = "one";
  row.replayed.step_seconds = 0.5;
  row.replayed.tokens_per_step = 1'000;
  row.replayed.peak_bytes = 1e9;
  chart.show({row});
  EXPECT_TRUE(chart.scene().empty_words.isEmpty());
  ASSERT_EQ(chart.scene().points.size(), 1U);
  EXPECT_EQ(chart.scene().points.front().x, 2'000);
}

// Each machine's capacity is a level; one far above all points is not, as these would lie at the bottom.
TEST(ParetoChart, CapacitiesAreLevels) {
  constexpr double gib = 1'073'741'824.0;
  SweepRow small, large;
  small.is_done = large.is_done = true;
  small.replayed.step_seconds = large.replayed.step_seconds = 0.5;
  small.replayed.peak_bytes = 20 * gib;
  small.result.memory.capacity = Bytes(std::llround(23.5 * gib));
  large.replayed.peak_bytes = 30 * gib;
  large.result.memory.capacity = Bytes(std::llround(79.25 * gib));
  ParetoChart chart;
  chart.show({small, small, large});
  ASSERT_EQ(chart.scene().levels.size(), 1U);
  EXPECT_EQ(chart.scene().levels.front().y, 23.5);
  EXPECT_EQ(chart.scene().levels.front().words, "capacity, 23.5 GiB");
  large.replayed.peak_bytes = 60 * gib;
  chart.show({small, large});
  EXPECT_EQ(chart.scene().levels.size(), 2U);
}

// Over any two measures; a point that has no value of one is not drawn, and a capacity is of memory alone.
TEST(ParetoChart, IsDrawnByTheMeasuresAsked) {
  std::vector<SweepRow> rows(2);
  for (SweepRow& row : rows) {
    row.is_done = true;
    row.replayed.step_seconds = 2;
    row.replayed.tokens_per_step = 1'000'000;
    row.replayed.gpus = 8;
    row.replayed.peak_bytes = 1e9;
    row.replayed.life_years = std::numeric_limits<double>::infinity();
    row.result.memory.capacity = Bytes(1'000'000'000);
  }
  rows[0].replayed.rates.usd_per_hour = 36;
  rows[0].replayed.life_years = 3;
  ParetoChart chart;
  chart.show(rows);
  EXPECT_EQ(chart.scene().points.size(), 1U);  // one mark, as both have the same figures
  EXPECT_EQ(chart.scene().levels.size(), 1U);
  chart.set_axes(SweepMeasure::cost, SweepMeasure::gpu_time);
  ASSERT_EQ(chart.scene().points.size(), 1U);
  EXPECT_DOUBLE_EQ(chart.scene().points[0].x, 0.02);
  EXPECT_DOUBLE_EQ(chart.scene().points[0].y, 16);
  EXPECT_TRUE(chart.scene().x_title.startsWith("USD per million tokens"));
  EXPECT_TRUE(chart.scene().levels.empty());
  chart.set_axes(SweepMeasure::step_time, SweepMeasure::life);
  ASSERT_EQ(chart.scene().points.size(), 1U);
  EXPECT_EQ(chart.scene().points[0].x, 2'000);
  EXPECT_EQ(chart.scene().points[0].y, 3);
  EXPECT_FALSE(objective_of(SweepMeasure::tokens).has_value());
  EXPECT_EQ(objective_of(SweepMeasure::life), studies::Objective::ssd_life);
}

// By an axis, values in order of numbers; what does not do what is asked stays a ring.
TEST(ParetoChart, IsColouredByAnAxis) {
  std::vector<SweepRow> rows(4);
  const char* const values[] = {"16", "2", "2", "4"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].is_done = true;
    rows[i].does = i < 3;
    rows[i].candidate.edits = {std::string("model.micro_batch=") + values[i], "model.recompute=full"};
    rows[i].replayed.step_seconds = 0.5 + static_cast<double>(i);
    rows[i].replayed.peak_bytes = 1e9;
  }
  ParetoChart chart;
  chart.show(rows);
  chart.color_by("model.micro_batch", "micro-batch");
  const PlotScene& scene = chart.scene();
  ASSERT_EQ(scene.points.size(), 4U);
  const auto series = [&](std::size_t point) { return scene.series[scene.points[point].series]; };
  EXPECT_EQ(series(0).name, "micro-batch 16");
  EXPECT_EQ(series(1).name, "micro-batch 2");
  EXPECT_EQ(scene.points[1].series, scene.points[2].series);
  EXPECT_LT(scene.points[1].series, scene.points[0].series);
  EXPECT_NE(series(0).token, series(1).token);
  EXPECT_EQ(series(3).shape, PlotShape::ring);
  chart.color_by("", {});
  EXPECT_EQ(series(0).name, series(1).name);
}

// More values than colours: numbers share one with their neighbours, other values are told apart as far as colours go.
TEST(ParetoChart, NoPointIsWithoutAName) {
  std::vector<SweepRow> rows(20);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].is_done = rows[i].does = true;
    rows[i].candidate.edits = {"model.layers=" + std::to_string(i + 1), "model.name=m" + std::to_string(100 + i)};
    rows[i].replayed.step_seconds = 0.5 + static_cast<double>(i);
    rows[i].replayed.peak_bytes = 1e9;
  }
  ParetoChart chart;
  chart.show(rows);
  const auto names = [&](const char* key, const char* label) {
    chart.color_by(key, label);
    std::map<QString, int> points;
    for (const PlotPoint& point : chart.scene().points) ++points[chart.scene().series[point.series].name];
    return points;
  };
  const auto layers = names("model.layers", "layers");
  EXPECT_EQ(layers.size(), line_tokens);
  EXPECT_EQ(layers.at("layers 1 to 3"), 3);
  EXPECT_EQ(layers.at("layers 19 to 20"), 2);
  const auto models = names("model.name", "model");
  EXPECT_EQ(models.size(), line_tokens);
  EXPECT_EQ(models.at("model m100"), 1);
  EXPECT_EQ(models.at("others"), 14);
}

// Titles of axes are whole beside plots as small as they get.
TEST(PlotTitles, AreWhole) {
  ParetoChart pareto;
  RooflineChart roof;
  SensitivityChart bars;
  for (const PlotView* const chart : std::initializer_list<const PlotView*>{&pareto, &roof, &bars}) {
    const QFontMetrics metrics(chart->font());
    constexpr int least_height = 360, least_width = 700;  // of a view at 1280 x 720
    EXPECT_LT(metrics.horizontalAdvance(chart->scene().y_title), least_height);
    EXPECT_LT(metrics.horizontalAdvance(chart->scene().x_title), least_width);
  }
}

}  // namespace
}  // namespace spillway::gui
