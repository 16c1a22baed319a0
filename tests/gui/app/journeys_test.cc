// The journeys that the window is for, by keys alone and by the mouse alone, as an X server delivers them.
//
//   1  a scenario runs out of memory: drives, their number, against a pinned baseline; a way that fits
//   2  a sweep: stopped, gone on with, its front under a constraint
//   3  the report on what to buy
//
// With SPILLWAY_JOURNEYS=FOLDER each leaves its pictures there (docs/internals/gui.md has them).
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QFileDialog>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QSettings>
#include <QSlider>
#include <QTabBar>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <filesystem>
#include <functional>

#include "gui/app/main_window.h"
#include "gui/panels/answer_view.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/start_page.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/verdict_strip.h"
#include "gui/panels/way_list.h"
#include "gui/plots/answer_picture.h"
#include "gui/plots/canvas_view.h"
#include "tests/gui/app/real_input.h"

namespace spillway::gui {
namespace {

const std::string root = std::getenv("SPILLWAY_SOURCE_ROOT");
constexpr int journey_patience_ms = 120'000;

class Journey : public testing::Test {
 protected:
  Journey() : settings_(folder_.filePath("settings.ini"), QSettings::IniFormat), window_(settings_) {
    QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    QApplication::setAttribute(Qt::AA_DontUseNativeMenuBar);
    before_ = QDir::currentPath();
    for (const char* const file : {"/cli/scenarios/gpt2-small-procurement.json", "/gui/scenarios/bound-by-pcie.json"})
      QFile::copy(QString::fromStdString(root + file), folder_.filePath(QString(file).section('/', -1)));
    QFile sweep(folder_.filePath("sweep.json"));
    static_cast<void>(sweep.open(QIODevice::WriteOnly));
    sweep.write(R"({"schema": "spillway-sweep", "version": 1, "title": "GPT-2 small on one RTX 4090",
      "base": {"model": {"name": "gpt2-small", "sequence": 1024}, "hardware": {"profile": "rtx-4090"}},
      "axes": [{"name": "batch", "key": "model.micro_batch", "values": [1, 2, 4, 6, 8, 12, 16, 20]},
               {"name": "recompute", "key": "model.recompute", "values": ["none", "selective", "full"]},
        {"name": "layers", "key": "model.layers", "values": [12, 14, 16, 18, 20, 22, 24, 26, 28, 30]}],
      "objectives": ["gpu_time_per_token", "peak_memory"]})");
    QDir::setCurrent(folder_.path());
    window_.set_theme(light_theme());
    window_.findChild<QTabWidget*>("views")->setCurrentIndex(1);  // the canvas; the answer has tests of its own
    window_.show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&window_));
    window_.activateWindow();
    EXPECT_TRUE(QTest::qWaitForWindowActive(&window_));
    QTest::qWait(50);
  }
  ~Journey() override { QDir::setCurrent(before_); }

  bool until(const std::function<bool()>& done) { return QTest::qWaitFor(done, journey_patience_ms); }
  void settle() {
    ASSERT_TRUE(until([this] { return window_.is_settled(); })) << window_.message().text().toStdString();
    QTest::qWait(60);
  }
  // After an edit: it is under way at once.
  void answered() {
    QTest::qWait(60);
    settle();
  }
  [[nodiscard]] std::string value(const char* key) { return window_.session().document()->value(key).value_or(""); }
  [[nodiscard]] const ShownFigure& figure(std::size_t i) { return window_.strip().shown().at(i); }
  void picture(const char* name) {
    QTest::qWait(120);
    const char* const folder = std::getenv("SPILLWAY_JOURNEYS");
    if (folder == nullptr) return;
    EXPECT_TRUE(window_.grab().save(QString(folder) + "/gui-journey-" + name + ".png"));
  }
  // What opens with the next key or click, which returns when it is closed.
  void in_dialog(const std::function<void(QFileDialog&)>& act) { in_file_dialog(window_, folder_.path(), act); }
  void back_in_window() { ASSERT_TRUE(back_from_dialog(window_)); }
  void press(const QWidget& in, const QString& text) {
    for (QPushButton* const button : in.findChildren<QPushButton*>()) {
      if (QString(button->text()).remove('&') != text) continue;
      ASSERT_TRUE(person_.click(*button)) << text.toStdString();
      return;
    }
    FAIL() << "no " << text.toStdString();
  }
  // By its text, of a menu that is there.
  void choose(QWidget& menu, QMenu* as_menu, QMenuBar* as_bar, const QString& text) {
    const auto actions = menu.actions();
    for (QAction* const action : actions) {
      if (QString(action->text()).remove('&') != text) continue;
      const QRect place = as_menu != nullptr ? as_menu->actionGeometry(action) : as_bar->actionGeometry(action);
      ASSERT_TRUE(person_.click(menu, place.center())) << text.toStdString();
      QTest::qWait(80);
      return;
    }
    FAIL() << "no " << text.toStdString();
  }
  void menu(const QString& of, const QString& text) {
    choose(*window_.menuBar(), nullptr, window_.menuBar(), of);
    QMenu* open = nullptr;
    for (QMenu* const one : window_.findChildren<QMenu*>())
      if (one->isVisible()) open = one;
    ASSERT_NE(open, nullptr);
    choose(*open, open, nullptr, text);
  }
  // One of a list's, which opens below it.
  void pick(QComboBox& list, const QString& text) {
    ASSERT_TRUE(person_.click(list, QPoint(list.width() - 8, list.height() / 2)));
    QTest::qWait(150);
    const int row = list.findText(text);
    ASSERT_GE(row, 0) << text.toStdString();
    QAbstractItemView& view = *list.view();
    const QModelIndex index = view.model()->index(row, list.modelColumn(), list.rootModelIndex());
    view.scrollTo(index);
    QTest::qWait(60);
    ASSERT_TRUE(person_.click(*view.viewport(), view.visualRect(index).center())) << text.toStdString();
  }
  void set_by_palette(const char* words) {
    ASSERT_TRUE(person_.key("ctrl+k"));
    QTest::qWait(80);
    ASSERT_TRUE(person_.type(words));
    QTest::qWait(80);
    ASSERT_TRUE(person_.key("Return"));
    answered();
  }

  QTemporaryDir folder_;
  QString before_;
  QSettings settings_;
  MainWindow window_;
  RealInput person_;
};

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
