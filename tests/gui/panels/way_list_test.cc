// The rows of an answer's ways: what each says, and what keys do.
#include "gui/panels/way_list.h"

#include <gtest/gtest.h>

#include <QCheckBox>
#include <QCoreApplication>
#include <QLabel>
#include <QPushButton>
#include <QTest>

namespace spillway::gui {
namespace {

studies::AnswerWay way(const char* name, const char* group, const char* left) {
  studies::AnswerWay made{.name = name, .group = group, .edits = {"model.recompute=full"}};
  made.changes = {{"model.recompute", "none", "full", "needed: else short 2 GiB"}};
  made.figures.step = "2.09 s";
  made.figures.tokens = "-47 %";
  made.figures.left = left;
  made.figures.answer = Verdict::fits;
  return made;
}

struct Shown {
  Shown() {
    auto answer = std::make_shared<studies::Answer>();
    answer->ways = {way("Adam on the CPU", "Same training", "17.6"),
                    way("Recompute <b>all</b>", "Same training", "3.2 ▲"),
                    way("On more GPUs", "On more of the same GPUs", "-4.1")};
    answer->ways[0].number = 1;
    answer->ways[2].edits.clear();
    list.on_apply = [this](int which, bool as_variant) { applied.emplace_back(which, as_variant); };
    list.on_point = [this](int which) { pointed = which; };
    list.show(answer);
    list.setVisible(true);
  }
  [[nodiscard]] QStringList texts() const {
    QCoreApplication::processEvents();  // what was opened is seen then
    QStringList found;
    for (const QLabel* const label : list.findChildren<QLabel*>())
      if (label->isVisible()) found += label->text();
    return found;
  }
  WayList list;
  std::vector<std::pair<int, bool>> applied;
  int pointed = -1;
};

TEST(WayList, RowsSayWhatTheAnswerSays) {
  Shown shown;
  const QStringList texts = shown.texts();
  EXPECT_EQ(shown.list.count(), 3);
  for (const char* const text :
       {"Adam on the CPU", "2.09 s", "17.6 GiB left", "3.2 GiB left, tight ▲", "short 4.1 GiB", "Recompute <b>all</b>"})
    EXPECT_TRUE(texts.contains(QString(text))) << text << " of " << texts.join(" | ").toStdString();
  EXPECT_TRUE(texts.contains(QString("\u221247 %")));
  EXPECT_EQ(texts.count("Same training"), 1);
  EXPECT_FALSE(texts.contains("model.recompute"));  // not opened
}

// One is open at a time; arrows go from one to the next; what can't be made from here is not applied.
TEST(WayList, KeysOpenAndApply) {
  Shown shown;
  for (int i = 0; i < 2; ++i) QTest::keyClick(&shown.list, Qt::Key_Down);
  EXPECT_EQ(shown.list.current(), 1);
  EXPECT_EQ(shown.pointed, 1);
  EXPECT_EQ(shown.texts().count("model.recompute"), 1);
  EXPECT_TRUE(shown.texts().contains("needed: else short 2 GiB"));
  QTest::keyClick(&shown.list, Qt::Key_Return);
  QTest::keyClick(&shown.list, Qt::Key_Return, Qt::ShiftModifier);
  EXPECT_EQ(shown.applied, (std::vector<std::pair<int, bool>>{{1, false}, {1, true}}));
  QTest::mouseClick(&shown.list.apply_button(1), Qt::LeftButton);
  EXPECT_EQ(shown.applied.size(), 3U);
  QTest::keyClick(&shown.list, Qt::Key_Down);
  QTest::keyClick(&shown.list, Qt::Key_Return);
  EXPECT_EQ(shown.list.current(), 2);
  EXPECT_EQ(shown.applied.size(), 3U);
}

TEST(WayList, TickedOnesAreToldInTheirOrder) {
  Shown shown;
  int told = 0;
  shown.list.on_tick = [&] { ++told; };
  const auto ticks = shown.list.findChildren<QCheckBox*>();
  ASSERT_EQ(ticks.size(), 2);  // what has no edits can't be made
  EXPECT_TRUE(shown.list.ticked().empty());
  for (QCheckBox* const tick : {ticks[1], ticks[0]}) tick->setChecked(true);
  EXPECT_EQ(shown.list.ticked(), (std::vector<int>{0, 1}));
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace spillway::gui
