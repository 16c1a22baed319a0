// Every file that comes with the program, and every snapshot and trace of the shared data where that is, opened as a
// person does: Ctrl+O, its path, Return.
#include <gtest/gtest.h>

#include <QApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <filesystem>
#include <functional>

#include "gui/app/main_window.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/verdict_strip.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "tests/gui/app/real_input.h"

namespace spillway::gui {
namespace {

namespace fs = std::filesystem;

const std::string files_root = std::getenv("SPILLWAY_SOURCE_ROOT");
constexpr int file_patience_ms =
    600'000;  // a step of four million operators under a sanitizer; nothing is said about time
constexpr std::uintmax_t largest = 20U << 20U;  // of shared traces: larger ones ask for their range first

// Files of a folder and those below it that end so, in order.
std::vector<std::string> files_of(const fs::path& folder, std::initializer_list<const char*> ends) {
  std::vector<std::string> found;
  if (!fs::is_directory(folder)) return found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.file_size() > largest) continue;
    const std::string name = entry.path().string();
    if (std::any_of(ends.begin(), ends.end(), [&](const char* end) { return name.ends_with(end); }))
      found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

class RealFiles : public testing::Test {
 protected:
  RealFiles() : settings_(folder_.filePath("settings.ini"), QSettings::IniFormat), window_(settings_) {
    QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    window_.show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&window_));
    window_.activateWindow();
    EXPECT_TRUE(QTest::qWaitForWindowActive(&window_));
  }
  // By its path, typed.
  void open(const std::string& file) {
    window_.message().hide();
    in_file_dialog(window_, QFileInfo(QString::fromStdString(file)).absolutePath(), [&](QFileDialog& dialog) {
      auto* const field = dialog.findChild<QLineEdit*>("fileNameEdit");
      ASSERT_NE(field, nullptr);
      field->setFocus();
      ASSERT_TRUE(person_.type(QString::fromStdString(file)));
      ASSERT_TRUE(person_.key("Return"));
    });
    ASSERT_TRUE(person_.key("ctrl+o"));
    ASSERT_TRUE(back_from_dialog(window_));
  }
  bool until(const std::function<bool()>& done) { return QTest::qWaitFor(done, file_patience_ms); }
  // It is the variant at hand, replayed, without a complaint.
  void expect_shown(const std::string& file) {
    ASSERT_TRUE(until([this] { return window_.is_settled() || window_.message().isVisible(); })) << file;
    ASSERT_FALSE(window_.message().isVisible()) << file << ": " << window_.message().text().toStdString();
    ++shown_;
    EXPECT_EQ(static_cast<int>(window_.session().variants().size()), shown_) << file;
    EXPECT_GT(window_.canvas().lanes_shown(), 0U) << file;
    EXPECT_FALSE(window_.strip().shown().front().value.empty()) << file;
  }

  QTemporaryDir folder_;
  QSettings settings_;
  MainWindow window_;
  RealInput person_;
  int shown_ = 0;
};

TEST_F(RealFiles, EveryBundledScenarioOpens) {
  std::vector<std::string> files = files_of(files_root + "/cli/scenarios", {".json"});
  for (const std::string& file : files_of(files_root + "/gui/scenarios", {".json"})) files.push_back(file);
  ASSERT_GT(files.size(), 12U);
  for (const std::string& file : files) {
    open(file);
    expect_shown(file);
  }
}

// Until it has a point, or has screened millions for a while; F5 stops it.
TEST_F(RealFiles, EveryBundledSweepRuns) {
  const std::vector<std::string> files = files_of(files_root + "/cli/sweeps", {".json"});
  ASSERT_GT(files.size(), 3U);
  constexpr int long_enough_ms = 6'000;
  for (const std::string& file : files) {
    open(file);
    ASSERT_TRUE(until([this] {
      return window_.message().isVisible() || window_.sweep().is_running() || !window_.sweep().chart().rows().empty();
    })) << file;
    static_cast<void>(QTest::qWaitFor(
        [this] { return !window_.sweep().is_running() || !window_.sweep().chart().rows().empty(); }, long_enough_ms));
    EXPECT_FALSE(window_.message().isVisible()) << file << ": " << window_.message().text().toStdString();
    EXPECT_TRUE(window_.sweep().is_running() || !window_.sweep().chart().rows().empty()) << file;
    if (window_.sweep().is_running()) {
      ASSERT_TRUE(person_.key("F5"));
    }
    EXPECT_TRUE(until([this] { return !window_.sweep().is_running(); })) << file;
  }
}

TEST_F(RealFiles, EveryTraceAndSnapshotOpens) {
  std::vector<std::string> files = files_of(files_root + "/traces/data", {"steps.json.gz", ".pickle"});
  ASSERT_GT(files.size(), 1U);
  const fs::path shared = fs::path(files_root).parent_path() / "shared/data";
  for (const std::string& file : files_of(shared / "memory", {".pickle", ".pickle.gz"})) files.push_back(file);
  for (const char* const folder : {"traces/kineto-tb_plugin", "traces/tracelens"})
    for (const std::string& file : files_of(shared / folder, {".json.gz"})) files.push_back(file);
  for (const std::string& file : files) {
    open(file);
    expect_shown(file);
    EXPECT_TRUE(window_.canvas().memory() != nullptr || !file.ends_with(".pickle")) << file;
  }
}

}  // namespace
}  // namespace spillway::gui
