// A window with settings of its own, for the tests that work in it.
#pragma once

#include <gtest/gtest.h>

#include <QSettings>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <cstdlib>
#include <string>

#include "gui/app/main_window.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/verdict_strip.h"

namespace spillway::gui {

inline const std::string root = std::getenv("SPILLWAY_SOURCE_ROOT");
inline constexpr int patience_ms = 300'000;  // a loaded machine; nothing is said about time

class Window : public testing::Test {
 protected:
  Window() : settings_(folder_.filePath("settings.ini"), QSettings::IniFormat), window_(settings_) {
    window_.findChild<QTabWidget*>("views")->setCurrentIndex(1);  // the canvas; the answer has tests of its own
    window_.show();
    static_cast<void>(QTest::qWaitForWindowExposed(&window_));
  }
  static QString bundled(const char* name) { return QString::fromStdString(root + "/gui/scenarios/") + name + ".json"; }
  void settle() {
    ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_settled(); }, patience_ms))
        << window_.message().text().toStdString();
  }
  void open(const char* name) {
    window_.open(bundled(name));
    settle();
  }
  [[nodiscard]] std::string figure(std::size_t i) { return window_.strip().shown().at(i).value; }

  QTemporaryDir folder_;
  QSettings settings_;
  MainWindow window_;
};

}  // namespace spillway::gui
