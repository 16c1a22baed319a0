// Whose memory the canvas shows, of a step on several GPUs.
#include <gtest/gtest.h>

#include <QComboBox>
#include <fstream>
#include <set>

#include "gui/plots/canvas_view.h"
#include "tests/gui/app/window_fixture.h"

namespace spillway::gui {
namespace {

// The memory of any stage of a pipeline is a key away, and is what the replay says of that stage; an edit keeps it.
TEST_F(Window, TheMemoryOfEveryStageIsShown) {
  const QString path = folder_.filePath("pipeline.json");
  std::ofstream(path.toStdString()) << R"({"schema": "spillway-scenario", "version": 1, "title": "four stages",
    "model": {"name": "gpt2-small", "sequence": 1024, "gradient_accumulation": 4, "pipeline_parallel": 4},
    "hardware": {"profile": "dgx-a100"}})";
  window_.open(path);
  settle();
  const auto complete = [this] { return QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms); };
  ASSERT_NE(window_.session().outcome(), nullptr);
  const std::vector<RankResult> ranks = window_.session().outcome()->result().ranks;
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_TRUE(window_.rank_choice().isVisible());
  std::set<std::uint16_t> seen;
  for (std::size_t step = 0; step <= ranks.size(); ++step) {
    ASSERT_TRUE(complete());
    const RankView* const shown = window_.canvas().shown_rank();
    const std::uint16_t rank = shown != nullptr ? shown->rank : window_.session().outcome()->fullest.rank;
    ASSERT_NE(window_.canvas().memory(), nullptr);
    EXPECT_EQ(window_.canvas().memory()->allocated.peak(), ranks[rank].peak_allocated.count()) << rank;
    seen.insert(rank);
    QTest::keyClick(&window_.canvas(), Qt::Key_M);
  }
  EXPECT_EQ(seen.size(), ranks.size());
  for (int back = 0; back < 2; ++back) QTest::keyClick(&window_.canvas(), Qt::Key_M, Qt::ShiftModifier);
  ASSERT_TRUE(complete());
  ASSERT_NE(window_.canvas().shown_rank(), nullptr);
  window_.session().edit("model.micro_batch", "2", false);
  settle();
  ASSERT_TRUE(complete());
  const std::vector<RankResult>& now = window_.session().outcome()->result().ranks;
  EXPECT_EQ(window_.canvas().memory()->allocated.peak(), now[2].peak_allocated.count());
  EXPECT_NE(now[2].peak_allocated, ranks[2].peak_allocated);
}

}  // namespace
}  // namespace spillway::gui
