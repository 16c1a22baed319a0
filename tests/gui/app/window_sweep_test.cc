// Sweeps in the window.
#include <gtest/gtest.h>

#include <QPushButton>
#include <algorithm>
#include <fstream>

#include "gui/panels/answer_view.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/variant_panel.h"
#include "gui/plots/charts.h"
#include "gui/plots/table_model.h"
#include "tests/gui/app/window_fixture.h"

namespace spillway::gui {
namespace {

// Nothing of another scenario stands around a sweep; its point is a variant of nobody. Of the scenario at hand it is
// that one's, which is marked.
TEST_F(Window, ASweepIsADocumentOfItsOwn) {
  open("fits-after-one-toggle");
  window_.session().pin();
  const QString path = folder_.filePath("sweep.json");
  std::ofstream(path.toStdString()) << R"({"schema": "spillway-sweep", "version": 1, "title": "small",
    "base": {"model": {"name": "gpt2-small", "sequence": 256}, "hardware": {"profile": "rtx-4090"}},
    "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2]}],
    "objectives": ["step_time", "peak_memory"], "margin": 0.9, "memory_margin": 0.9})";
  window_.open(path);
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.sweep().is_running(); }, patience_ms));
  const auto marks = [this] {
    const std::vector<PlotPoint>& points = window_.sweep().chart().scene().points;
    return std::count_if(points.begin(), points.end(), [](const PlotPoint& point) { return point.id < 0; });
  };
  ASSERT_GT(window_.sweep().chart().rows().size(), 0U);
  EXPECT_EQ(marks(), 0);
  EXPECT_FALSE(window_.strip().isVisible());
  EXPECT_FALSE(window_.panel().isVisible());
  EXPECT_FALSE(window_.variants().isVisible());
  EXPECT_FALSE(window_.answer().isVisible());
  EXPECT_TRUE(window_.windowTitle().startsWith("sweep.json")) << window_.windowTitle().toStdString();
  // The variant is where it was.
  window_.show_view("canvas");
  EXPECT_TRUE(window_.strip().isVisible());
  EXPECT_TRUE(window_.panel().isVisible());
  window_.show_view("pareto");
  EXPECT_FALSE(window_.strip().isVisible());
  const int unrelated = window_.session().current();
  window_.sweep().load_point(0);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.session().current() != unrelated; }, patience_ms));
  settle();
  EXPECT_EQ(window_.session().variant(window_.session().current())->parent, -1);
  EXPECT_EQ(window_.session().baseline(), nullptr);
  EXPECT_TRUE(window_.answer().isVisible());
}

TEST_F(Window, ASweepOfTheScenarioIsItsOwn) {
  open("fits-after-one-toggle");
  window_.session().edit("model.layers", "2", false);
  window_.show_view("pareto");
  settle();
  window_.findChild<QPushButton*>("sweep this")->click();
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.sweep().is_running(); }, patience_ms));
  EXPECT_TRUE(window_.sweep().is_of_scenario());
  EXPECT_TRUE(window_.strip().isVisible());
  EXPECT_TRUE(window_.panel().isVisible());
  const std::vector<PlotPoint>& points = window_.sweep().chart().scene().points;
  EXPECT_EQ(std::count_if(points.begin(), points.end(), [](const PlotPoint& point) { return point.id < 0; }), 1);
  const int scenario = window_.session().current();
  window_.sweep().load_point(0);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.session().current() != scenario; }, patience_ms));
  settle();
  EXPECT_EQ(window_.session().variant(window_.session().current())->parent, scenario);
}

// A sweep runs beside the scenario; a point becomes the scenario.
TEST_F(Window, APointOfASweepBecomesTheScenario) {
  const QString path = folder_.filePath("sweep.json");
  std::ofstream(path.toStdString()) << R"({"schema": "spillway-sweep", "version": 1, "title": "small",
    "base": {"model": {"name": "gpt2-small", "sequence": 256}, "hardware": {"profile": "rtx-4090"}},
    "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2, 4]},
             {"name": "r", "key": "model.recompute", "values": ["none", "full"]}],
    "objectives": ["step_time", "peak_memory"], "margin": 0.9, "memory_margin": 0.9})";
  window_.open(path);
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.sweep().is_running(); }, patience_ms));
  ASSERT_GT(window_.sweep().chart().rows().size(), 1U) << window_.message().text().toStdString();
  window_.sweep().load_point(0);
  settle();
  const SweepRow& row = window_.sweep().chart().rows().front();
  EXPECT_NEAR(to_seconds(window_.session().outcome()->result().step_time), row.replayed.step_seconds, 1e-12);
}

// The front on screen is the one that `spillway sweep` finds.
TEST_F(Window, TheFrontIsTheSweeps) {
  const QString path = folder_.filePath("sweep.json");
  std::ofstream(path.toStdString()) << R"({"schema": "spillway-sweep", "version": 1, "title": "three objectives",
    "base": {"model": {"name": "gpt2-small", "sequence": 256}, "hardware": {"profile": "dgx-a100"}},
    "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2, 4]},
             {"name": "d", "key": "model.data_parallel", "values": [1, 2]},
             {"name": "r", "key": "model.recompute", "values": ["none", "full"]}],
    "objectives": ["gpu_time_per_token", "peak_memory", "gpus"], "margin": 0.9, "memory_margin": 0.9})";
  window_.open(path);
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.sweep().is_running(); }, patience_ms));
  SweepStore store;
  const SweepFile file = load_sweep(path.toStdString());
  const SweepOutcome outcome = run_sweep(file, {}, store);
  const std::vector<SweepRow>& shown = window_.sweep().chart().rows();
  ASSERT_EQ(shown.size(), outcome.rows.size());
  std::size_t members = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i].number, outcome.rows[i].number);
    EXPECT_EQ(shown[i].on_front, outcome.rows[i].on_front) << shown[i].candidate.name;
    members += outcome.rows[i].on_front ? 1 : 0;
  }
  EXPECT_GT(members, 1U);
  std::size_t in_table = 0;
  const TableRows table = window_.sweep().chart().table();
  for (const auto& row : table.rows) in_table += row[1].text == "yes" ? 1 : 0;
  EXPECT_EQ(in_table, members);
}

}  // namespace
}  // namespace spillway::gui
