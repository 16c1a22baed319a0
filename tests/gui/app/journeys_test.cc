// The journeys that the window is for, by keys alone and by the mouse alone, as an X server delivers them.
//
//   1  a scenario runs out of memory: drives, their number, against a pinned baseline; a way that fits
//   2  a sweep: stopped, gone on with, its front under a constraint
//   3  the report on what to buy
//
// With SPILLWAY_JOURNEYS=FOLDER each leaves its pictures there (docs/internals/gui.md has them).
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QFileDialog>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QSlider>
#include <QTabBar>
#include <QTabWidget>
#include <QTest>
#include <filesystem>

#include "gui/panels/answer_view.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/start_page.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/way_list.h"
#include "gui/plots/answer_picture.h"
#include "gui/plots/canvas_view.h"
#include "tests/gui/app/journey.h"

namespace spillway::gui {
namespace {

TEST_F(Journey, WhatIfByKeys) {
  ASSERT_TRUE(person_.key("Return"));  // the start page has its first example in focus
  QTest::qWait(60);
  settle();
  EXPECT_TRUE(figure(0).is_alarm);
  window_.canvas().setFocus();
  ASSERT_TRUE(person_.key("b"));
  EXPECT_EQ(window_.session().baseline(), window_.session().outcome());
  picture("1-keys-a");
  set_by_palette("offload.drives samsung-pm1743-15.36tb");
  set_by_palette("offload.technique ssdtrain");
  set_by_palette("offload.drives_per_machine 4");
  EXPECT_EQ(value("offload.technique"), "ssdtrain");
  EXPECT_EQ(value("offload.drives_per_machine"), "4");
  EXPECT_EQ(figure(3).direction, Change::better);  // peak memory
  EXPECT_NE(figure(4).value, "not used");
  picture("1-keys-b");
  ASSERT_TRUE(person_.key("g"));
  ASSERT_TRUE(until([this] { return window_.answer().ways().count() > 0; }));
  ASSERT_TRUE(person_.key("Down"));
  ASSERT_TRUE(until([this] { return window_.answer().picture().has_outline(); }));
  ASSERT_TRUE(person_.key("Return"));
  answered();
  EXPECT_FALSE(figure(0).is_alarm) << figure(0).value;
  ASSERT_TRUE(person_.key("ctrl+z"));
  answered();
  EXPECT_EQ(value("offload.drives_per_machine"), "4");
  ASSERT_TRUE(person_.key("ctrl+shift+z"));
  answered();
  EXPECT_FALSE(figure(0).is_alarm);
  picture("1-keys-c");
}

TEST_F(Journey, WhatIfByTheMouse) {
  QPushButton* start = nullptr;
  for (QPushButton* const button : window_.start_page().starts())
    if (button->text() == "Out of memory") start = button;
  ASSERT_NE(start, nullptr);
  ASSERT_TRUE(person_.click(*start));
  QTest::qWait(60);
  settle();
  EXPECT_TRUE(figure(0).is_alarm);
  menu("What if", "Pin as baseline");
  EXPECT_EQ(window_.session().baseline(), window_.session().outcome());
  ScenarioPanel& panel = window_.panel();
  // The wheel over the panel brings what is wanted into sight.
  const auto bring = [&](const char* key) {
    const QWidget& row = *panel.row(key);
    const auto place = [&] { return row.mapTo(&panel, QPoint(0, row.height() / 2)).y(); };
    const int top = panel.height() / 2, bottom = 4 * panel.height() / 5;  // above are the panel's own buttons
    for (int turn = 0; turn < 60 && (place() < top || place() > bottom); ++turn) {
      const int before = place();
      ASSERT_TRUE(person_.wheel(panel, place() < top ? -1 : 1));
      QTest::qWait(20);
      if (place() == before) break;  // that is as far as it goes
    }
    QTest::qWait(60);
  };
  bring("offload.technique");
  pick(*qobject_cast<QComboBox*>(panel.row("offload.technique")->editor()), "ssdtrain");
  QTest::qWait(200);
  bring("offload.drives");
  pick(*qobject_cast<QComboBox*>(panel.row("offload.drives")->editor()), "samsung-pm1743-15.36tb");
  answered();
  bring("offload.drives_per_machine");
  auto* const slider = panel.row("offload.drives_per_machine")->findChild<QSlider*>();
  ASSERT_NE(slider, nullptr);
  const int y = slider->height() / 2;
  ASSERT_TRUE(person_.drag(*slider, QPoint(8, y), QPoint(slider->width() / 2, y)));
  answered();
  EXPECT_GT(std::stoi(value("offload.drives_per_machine")), 2);
  EXPECT_EQ(figure(3).direction, Change::better);
  picture("1-mouse-a");
  auto* const bar = window_.findChild<QTabWidget*>("views")->tabBar();
  ASSERT_TRUE(person_.click(*bar, bar->tabRect(0).center()));
  WayList& ways = window_.answer().ways();
  ASSERT_TRUE(until([&] { return ways.count() > 0; }));
  QTest::qWait(60);
  ASSERT_TRUE(person_.click(ways.row(0), QPoint(40, 14)));
  ASSERT_TRUE(until([this] { return window_.answer().picture().has_outline(); }));
  picture("1-mouse-b");
  ASSERT_TRUE(person_.click(ways.apply_button(0)));
  answered();
  EXPECT_FALSE(figure(0).is_alarm) << figure(0).value;
  picture("1-mouse-c");
}

// Opening by keys is in WhatToBuyByKeys.
TEST_F(Journey, ASweepByKeys) {
  window_.open(folder_.filePath("sweep.json"));
  ASSERT_TRUE(until([this] { return window_.sweep().chart().rows().size() > 3; }));
  std::size_t stopped_at = 0;
  if (window_.sweep().is_running()) {  // a fast machine is done with it by now
    ASSERT_TRUE(person_.key("F5"));
    EXPECT_FALSE(window_.sweep().is_running());
    stopped_at = window_.sweep().chart().rows().size();
    ASSERT_TRUE(person_.key("F5"));
  }
  ASSERT_TRUE(until([this] { return !window_.sweep().is_running(); }));
  const std::size_t all = window_.sweep().chart().rows().size();
  EXPECT_GE(all, stopped_at);
  picture("2-keys-a");
  ASSERT_TRUE(person_.key("ctrl+4"));
  const auto in_field = [] {
    const auto* const field = qobject_cast<QLineEdit*>(QApplication::focusWidget());
    return field != nullptr && field->accessibleName().startsWith("memory");
  };
  std::string walked;
  for (int tab = 0; tab < 20 && !in_field(); ++tab) {
    const QWidget* const at = QApplication::focusWidget();
    walked +=
        at == nullptr ? "nothing, " : at->metaObject()->className() + (" " + at->accessibleName()).toStdString() + ", ";
    ASSERT_TRUE(person_.key("Tab"));
  }
  ASSERT_TRUE(in_field()) << walked;
  ASSERT_TRUE(person_.type("12"));
  QTest::qWait(100);
  EXPECT_LT(window_.sweep().chart().rows().size(), all);
  for (const auto& row : window_.sweep().chart().rows()) EXPECT_LE(row.replayed.peak_bytes, 12.0 * (1U << 30U));
  picture("2-keys-b");
}

TEST_F(Journey, ASweepByTheMouse) {
  in_dialog([this](QFileDialog& dialog) {
    auto* const files = dialog.findChild<QListView*>("listView");
    ASSERT_NE(files, nullptr);
    QModelIndex found;
    const auto is_there = [&] {
      const QModelIndex root_of = files->rootIndex();
      for (int row = 0; row < files->model()->rowCount(root_of); ++row)
        if (files->model()->index(row, 0, root_of).data().toString() == "sweep.json")
          found = files->model()->index(row, 0, root_of);
      return found.isValid();
    };
    ASSERT_TRUE(until(is_there));
    ASSERT_TRUE(person_.click(*files->viewport(), files->visualRect(found).center()));
    press(dialog, "Open");
  });
  menu("File", "Open…");
  ASSERT_TRUE(until([this] { return window_.sweep().chart().rows().size() > 3; }));
  QPushButton& run = *window_.findChild<QPushButton*>("sweep run");
  ASSERT_TRUE(person_.click(run));
  ASSERT_FALSE(window_.sweep().is_running());
  ASSERT_TRUE(person_.click(run));
  ASSERT_TRUE(until([this] { return !window_.sweep().is_running(); }));
  // A point of the front becomes a variant.
  const ParetoChart& chart = window_.sweep().chart();
  std::optional<std::size_t> item;
  for (std::size_t i = 0; i < chart.scene().points.size(); ++i) {
    const qint64 id = chart.scene().points[i].id;
    if (id >= 0 && chart.rows()[static_cast<std::size_t>(id)].on_front) item = i;
  }
  ASSERT_TRUE(item.has_value());
  picture("2-mouse-a");
  ASSERT_TRUE(person_.click(chart, chart.place(*item)));
  ASSERT_TRUE(until([this] { return window_.session().document() != nullptr; }));
  settle();
  EXPECT_FALSE(figure(0).value.empty());
}

TEST_F(Journey, WhatToBuyByKeys) {
  in_dialog([this](QFileDialog& /*dialog*/) {
    ASSERT_TRUE(person_.type("gpt2-small-procurement.json"));
    ASSERT_TRUE(person_.key("Return"));
  });
  ASSERT_TRUE(person_.key("ctrl+o"));
  back_in_window();
  ASSERT_TRUE(until([this] { return window_.session().document() != nullptr; }));
  settle();
  in_dialog([this](QFileDialog& /*dialog*/) {
    ASSERT_TRUE(person_.key("ctrl+a"));
    ASSERT_TRUE(person_.type("buy.html"));
    ASSERT_TRUE(person_.key("Return"));
  });
  ASSERT_TRUE(person_.key("ctrl+shift+e"));
  back_in_window();
  ASSERT_TRUE(until([this] { return window_.is_exporting(); }));
  ASSERT_TRUE(until([this] { return !window_.is_exporting(); }));
  EXPECT_TRUE(window_.message().text().contains("The report is in")) << window_.message().text().toStdString();
  EXPECT_GT(std::filesystem::file_size(folder_.filePath("buy.html").toStdString()), 10'000U);
  picture("3-keys-a");
}

TEST_F(Journey, WhatToBuyByTheMouse) {
  window_.open(folder_.filePath("gpt2-small-procurement.json"));
  settle();
  in_dialog([this](QFileDialog& dialog) { press(dialog, "Save"); });
  menu("File", "Export the procurement report…");
  ASSERT_TRUE(until([this] { return window_.is_exporting(); }));
  ASSERT_TRUE(until([this] { return !window_.is_exporting(); }));
  EXPECT_TRUE(window_.message().text().contains("The report is in")) << window_.message().text().toStdString();
  EXPECT_GT(std::filesystem::file_size(folder_.filePath("procurement.html").toStdString()), 10'000U);
}

}  // namespace
}  // namespace spillway::gui
