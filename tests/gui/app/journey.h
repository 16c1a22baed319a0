// A person before the window: a folder with files to open, keys and the mouse as an X server delivers them.
#pragma once

#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QFileDialog>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QSettings>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <cstdlib>
#include <functional>
#include <string>

#include "gui/app/main_window.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/verdict_strip.h"
#include "tests/gui/app/real_input.h"

namespace spillway::gui {

inline const std::string journey_root = std::getenv("SPILLWAY_SOURCE_ROOT");
inline constexpr int journey_patience_ms = 120'000;

class Journey : public testing::Test {
 protected:
  Journey() : settings_(folder_.filePath("settings.ini"), QSettings::IniFormat), window_(settings_) {
    QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    QApplication::setAttribute(Qt::AA_DontUseNativeMenuBar);
    before_ = QDir::currentPath();
    for (const char* const file : {"/cli/scenarios/gpt2-small-procurement.json", "/gui/scenarios/bound-by-pcie.json"})
      QFile::copy(QString::fromStdString(journey_root + file), folder_.filePath(QString(file).section('/', -1)));
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

}  // namespace spillway::gui
