// What becomes of files and of work that is in none: opening, failing, saving, leaving, variants, workspaces.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QComboBox>
#include <QDragEnterEvent>
#include <QHeaderView>
#include <QLabel>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QTableView>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "gui/panels/compare_view.h"
#include "gui/panels/start_page.h"
#include "gui/panels/variant_panel.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "gui/plots/table_model.h"
#include "tests/gui/app/window_fixture.h"

namespace spillway::gui {
namespace {

// A message in the window; what was on screen stays.
TEST_F(Window, BrokenFilesLoseNothing) {
  open("bound-by-pcie");
  const std::string before = window_.session().document()->text(), answer = figure(0);
  for (const auto& [name, text] : std::vector<std::pair<const char*, const char*>>{
           {"broken.json", R"({"schema": "spillway-scenario", "version": 1, )"},
           {"newer.json", R"({"schema": "spillway-scenario", "version": 7, "model": {"name": "gpt2-xl"}})"},
           {"nothing.bin", "no trace at all"}}) {
    const QString path = folder_.filePath(name);
    std::ofstream(path.toStdString()) << text;
    window_.open(path);
    ASSERT_TRUE(QTest::qWaitFor([this] { return window_.message().isVisible(); }, patience_ms)) << name;
    EXPECT_TRUE(window_.message().isVisible()) << name;
    EXPECT_TRUE(window_.message().text().contains(name)) << window_.message().text().toStdString();
    EXPECT_FALSE(settings_.value("recent").toStringList().contains(path)) << name;
    EXPECT_EQ(window_.session().document()->text(), before) << name;
    EXPECT_EQ(figure(0), answer);
  }
}

// A deleted profile is an error of the state, which can be undone; the views keep the last answer, dimmed.
TEST_F(Window, ADeletedProfileIsSaidAndUndone) {
  open("bound-by-pcie");
  const std::string answer = figure(0);
  window_.session().edit("hardware.profile", "/deleted/profile.json", false);
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.message().isVisible(); }, patience_ms));
  EXPECT_TRUE(window_.message().text().contains("/deleted/profile.json"));
  EXPECT_EQ(figure(0), answer);
  EXPECT_TRUE(window_.session().is_stale());
  window_.session().undo();
  settle();
  EXPECT_FALSE(window_.message().isVisible());
  EXPECT_EQ(figure(0), answer);
}

TEST_F(Window, AReportThatCanNotBeWrittenIsSaid) {
  open("bound-by-pcie");
  EXPECT_FALSE(window_.export_report("/nowhere/report.html"));
  EXPECT_TRUE(window_.message().text().contains("/nowhere/report.html"));
  // A full disk, where the system has one to show.
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_FALSE(window_.export_selection("/dev/full"));
    EXPECT_TRUE(window_.message().isVisible());
    const std::string text = window_.session().document()->text();
    EXPECT_FALSE(window_.save("/dev/full"));
    EXPECT_EQ(window_.session().document()->text(), text);
  }
}

// The disk fills up while a report is written, here by a limit on files: the window says of which file, nothing that is
// half written stays, and the next try goes through.
TEST_F(Window, AReportThatFillsTheDiskIsSaid) {
  open("bound-by-pcie");
  const std::string text = window_.session().document()->text();
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const char* const name : {"report.html", "report.pdf", "report.xlsx", "report.csv"}) {
    const QString file = folder_.filePath(name);
    rlimit small = before;
    small.rlim_cur = 64;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const bool written = window_.export_report(file);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_FALSE(written) << name;
    EXPECT_TRUE(window_.message().isVisible());
    EXPECT_TRUE(window_.message().text().contains(name)) << window_.message().text().toStdString();
    EXPECT_FALSE(std::filesystem::exists(file.toStdString())) << name;
    EXPECT_EQ(window_.session().document()->text(), text);
    EXPECT_TRUE(window_.export_report(file)) << window_.message().text().toStdString();
  }
  std::signal(SIGXFSZ, ignored);
}

TEST_F(Window, ALoadCanBeCancelled) {
  window_.open(QString::fromStdString(root + "/cli/scenarios/gpt2-tiny-captured-cpu.json"));
  EXPECT_TRUE(window_.session().is_busy());
  window_.session().cancel();
  EXPECT_FALSE(window_.session().is_busy());
  QTest::qWait(50);
  EXPECT_EQ(window_.session().outcome(), nullptr);
  open("bound-by-pcie");
  EXPECT_EQ(figure(1), "PCIe copies between host and GPU");
}

// The session before, with what was not saved.
TEST_F(Window, SessionIsRestored) {
  open("fits-after-one-toggle");
  window_.session().edit("model.recompute", "full", false);
  settle();
  const std::string text = window_.session().document()->text();
  window_.close();
  auto* const question = window_.findChild<QMessageBox*>();
  ASSERT_NE(question, nullptr);
  QTest::mouseClick(question->button(QMessageBox::Discard), Qt::LeftButton);
  EXPECT_FALSE(window_.isVisible());
  MainWindow second(settings_);
  second.show();
  QPushButton* go_on = nullptr;
  for (QPushButton* const button : second.start_page().findChildren<QPushButton*>())
    if (button->text().startsWith("Go on with")) go_on = button;
  ASSERT_NE(go_on, nullptr);
  QTest::mouseClick(go_on, Qt::LeftButton);
  ASSERT_TRUE(QTest::qWaitFor([&] { return second.is_settled(); }, patience_ms));
  EXPECT_EQ(second.session().document()->text(), text);
  EXPECT_TRUE(second.session().document()->is_changed());
}

// The answer Save saves first; one that can't be saved is not left.
TEST_F(Window, SavesBeforeItLeaves) {
  const QString file = folder_.filePath("mine.json");
  std::filesystem::copy_file(bundled("bound-by-pcie").toStdString(), file.toStdString());
  window_.open(file);
  settle();
  window_.session().edit("title", "mine", false);
  settle();
  const auto leave = [this] {
    window_.close();
    auto* const question = window_.findChild<QMessageBox*>();
    ASSERT_NE(question, nullptr);
    EXPECT_TRUE(question->text().contains("mine"));
    QTest::mouseClick(question->button(QMessageBox::Save), Qt::LeftButton);
    ASSERT_TRUE(QTest::qWaitFor([this] { return window_.findChild<QMessageBox*>() == nullptr; }, patience_ms));
  };
  // A folder stands where the file was.
  std::filesystem::remove(file.toStdString());
  std::filesystem::create_directories(file.toStdString() + "/in the way");
  leave();
  EXPECT_TRUE(window_.isVisible());
  EXPECT_TRUE(window_.message().isVisible());
  std::filesystem::remove_all(file.toStdString());
  leave();
  EXPECT_TRUE(QTest::qWaitFor([this] { return !window_.isVisible(); }, patience_ms));
  EXPECT_EQ(ScenarioDocument::open(file.toStdString()).value("title"), "mine");
}

// Whatever is opened is one more variant; what was there stays as it was, with its steps.
TEST_F(Window, OpeningReplacesNothing) {
  open("bound-by-pcie");
  window_.session().edit("model.micro_batch", "3", false);
  settle();
  const std::string edited = window_.session().document()->text();
  const int mine = window_.session().current();
  open("fits-after-one-toggle");
  ASSERT_EQ(window_.session().variants().size(), 2U);
  EXPECT_EQ(window_.session().changed(), std::vector<int>{mine});
  window_.session().switch_to(mine);
  settle();
  EXPECT_EQ(window_.session().document()->text(), edited);
  window_.session().undo();
  settle();
  EXPECT_EQ(window_.session().document()->value("model.micro_batch"), "4");
  // The same file again is the same variant.
  open("fits-after-one-toggle");
  EXPECT_EQ(window_.session().variants().size(), 2U);
}

// An edit alone waits for no quiet; one of many does, and the last is what is shown.
TEST_F(Window, AnEditAloneIsReplayedAtOnce) {
  open("bound-by-pcie");
  window_.session().edit("model.micro_batch", "3", false);
  QCoreApplication::processEvents();
  EXPECT_TRUE(window_.session().is_busy() || !window_.session().is_stale());
  window_.session().edit("model.micro_batch", "2", false);
  EXPECT_TRUE(window_.session().is_stale());
  settle();
  EXPECT_EQ(window_.session().outcome()->scenario.text, window_.session().document()->text());
}

// Variants are named, branched, removed and brought back; the tree's model keeps the rules of models.
TEST_F(Window, VariantsBranch) {
  const QAbstractItemModelTester tester(&window_.variants().model(),
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  const QAbstractItemModelTester compared(&window_.compare().model(),
                                          QAbstractItemModelTester::FailureReportingMode::Fatal);
  open("fits-after-one-toggle");
  const int first = window_.session().current();
  const std::string original = window_.session().document()->text();
  window_.canvas().setFocus();
  QTest::keyClick(&window_.canvas(), Qt::Key_V);
  const int child = window_.session().current();
  ASSERT_NE(child, first);
  EXPECT_EQ(window_.session().variant(child)->parent, first);
  window_.session().edit("model.recompute", "full", false);
  settle();
  EXPECT_EQ(window_.session().variant(first)->document.text(), original);
  VariantModel& model = window_.variants().model();
  EXPECT_EQ(model.rowCount(), 1);
  EXPECT_EQ(model.rowCount(model.index_of(first)), 1);
  EXPECT_TRUE(model.setData(model.index_of(child), "whole layers"));
  EXPECT_TRUE(model.index_of(child).data().toString().contains("whole layers"));
  EXPECT_TRUE(window_.windowTitle().contains("whole layers"));
  // Side by side: the key that differs, and the figures.
  window_.show_view("compare");
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.session().replays_others(); }, patience_ms));
  CompareModel& compare = window_.compare().model();
  ASSERT_EQ(compare.columnCount(), 3);
  bool key = false, reserved = false, kernel = false;
  for (int row = 0; row < compare.rowCount(); ++row) {
    const QString name = compare.index(row, 0).data().toString();
    if (name == "model.recompute") {
      key = true;
      EXPECT_EQ(compare.index(row, 1).data().toString(), "not set");
      EXPECT_EQ(compare.index(row, 2).data().toString(), "full");
    }
    if (name == "reserved, GiB") {
      reserved = true;
      EXPECT_EQ(compare.index(row, 2).data(CompareModel::better_role).toInt(), 1);
      EXPECT_TRUE(compare.index(row, 2).data().toString().contains("▼"));
    }
    kernel = kernel || name.contains("recompute");
  }
  EXPECT_TRUE(key);
  EXPECT_TRUE(reserved);
  EXPECT_TRUE(kernel);
  // Removed with its steps, and brought back with them.
  window_.session().remove(child);
  EXPECT_EQ(window_.session().current(), first);
  EXPECT_EQ(model.rowCount(model.index_of(first)), 0);
  window_.session().remove(first);
  EXPECT_EQ(window_.session().variants().size(), 1U);
  EXPECT_TRUE(window_.session().restore_removed());
  EXPECT_EQ(window_.session().document()->value("model.recompute"), "full");
  window_.session().undo();
  EXPECT_EQ(window_.session().document()->text(), original);
}

// A workspace's file brings all variants back, with what was not saved in their own files.
TEST_F(Window, AWorkspaceIsSavedAndOpened) {
  open("bound-by-pcie");
  window_.session().edit("model.micro_batch", "3", false);
  window_.session().branch("another");
  window_.session().edit("model.micro_batch", "2", false);
  settle();
  const QString file = folder_.filePath("mine.spillway");
  ASSERT_TRUE(window_.save_workspace(file));
  EXPECT_TRUE(window_.session().changed().empty());
  QSettings settings(folder_.filePath("second.ini"), QSettings::IniFormat);
  MainWindow second(settings);
  second.show();
  second.open(file);
  ASSERT_TRUE(QTest::qWaitFor([&] { return second.is_settled(); }, patience_ms))
      << second.message().text().toStdString();
  ASSERT_EQ(second.session().variants().size(), 2U);
  EXPECT_EQ(second.session().variant(second.session().current())->name, "another");
  EXPECT_EQ(second.session().document()->value("model.micro_batch"), "2");
  EXPECT_EQ(second.session().variants().front()->document.value("model.micro_batch"), "3");
  // A broken one says so, and changes nothing.
  const QString broken = folder_.filePath("broken.spillway");
  std::ofstream(broken.toStdString())
      << R"({"schema": "spillway-workspace", "version": 1, "current": 0, "variants": [{}]})";
  second.open(broken);
  EXPECT_TRUE(second.message().isVisible());
  EXPECT_TRUE(second.message().text().contains("broken.spillway"));
  EXPECT_EQ(second.session().variants().size(), 2U);
}

// The history names the steps; one that is clicked is gone to.
TEST_F(Window, HistoryNamesTheSteps) {
  open("bound-by-pcie");
  const std::string original = window_.session().document()->text();
  window_.session().edit("model.micro_batch", "3", false);
  window_.session().edit("model.micro_batch", "5", true);
  window_.session().edit("model.micro_batch", "6", true);  // of the same drag
  window_.session().edit("model.recompute", "full", false);
  QUndoStack& steps = const_cast<Variant*>(window_.session().variant(window_.session().current()))->history;
  ASSERT_EQ(steps.count(), 3);
  EXPECT_EQ(steps.text(0), "model.micro_batch 4 to 3");
  EXPECT_EQ(steps.text(2), "model.recompute unset to full");
  steps.setIndex(0);
  EXPECT_EQ(window_.session().document()->text(), original);
  EXPECT_TRUE(window_.session().is_stale());
  steps.setIndex(2);
  EXPECT_EQ(window_.session().document()->value("model.micro_batch"), "6");
  settle();
}

// An edit while another file is read gives that up; so the edit is never lost to it.
TEST_F(Window, AnEditGivesUpWhatIsBeingOpened) {
  open("bound-by-pcie");
  window_.open(bundled("fits-after-one-toggle"));
  window_.session().edit("model.micro_batch", "3", false);
  settle();
  EXPECT_EQ(window_.session().document()->file(), bundled("bound-by-pcie").toStdString());
  EXPECT_EQ(window_.session().document()->value("model.micro_batch"), "3");
}

// Back from the start page to what is still at hand.
TEST_F(Window, TheStartPageLeadsBackToUnsavedWork) {
  open("bound-by-pcie");
  window_.session().edit("model.micro_batch", "3", false);
  settle();
  const std::string text = window_.session().document()->text();
  window_.show_view("start");
  QPushButton* go_on = nullptr;
  for (QPushButton* const button : window_.start_page().findChildren<QPushButton*>())
    if (button->text().startsWith("Go on with")) go_on = button;
  ASSERT_NE(go_on, nullptr);
  QTest::mouseClick(go_on, Qt::LeftButton);
  EXPECT_FALSE(window_.start_page().isVisible());
  EXPECT_EQ(window_.session().document()->text(), text);
  EXPECT_TRUE(window_.session().document()->can_undo());
}

// A snapshot has no times: its memory is shown, and no figure of time is made up.
TEST_F(Window, MemorySnapshotsOpen) {
  std::vector<std::string> files = {root + "/tests/fuzz/seeds/pickle/small_protocol4.pickle"};
  const std::filesystem::path recorded = std::filesystem::path(root).parent_path() / "shared/data/memory";
  if (std::filesystem::exists(recorded))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(recorded)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".pickle") || name.ends_with(".pickle.gz")) files.push_back(entry.path().string());
    }
  for (const std::string& file : files) {
    window_.open(QString::fromStdString(file));
    ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.session().is_busy(); }, patience_ms)) << file;
    ASSERT_FALSE(window_.message().isVisible()) << file << window_.message().text().toStdString();
    const Outcome& outcome = *window_.session().outcome();
    EXPECT_EQ(outcome.loaded.scenario.trace, file);
    ASSERT_NE(outcome.fullest.memory, nullptr) << file;
    EXPECT_FALSE(outcome.fullest.memory->picture.blocks.empty()) << file;
    EXPECT_GT(outcome.fullest.memory->allocated.peak(), 0) << file;
    EXPECT_EQ(outcome.fullest.memory->allocated.peak(), outcome.result().memory.peak_allocated.count()) << file;
    EXPECT_EQ(figure(1), "not known");
    EXPECT_EQ(figure(2), "not known");
    for (const char* const view : {"timeline", "memory", "map", "sensitivity", "roofline", "pipeline", "compare"}) {
      ASSERT_TRUE(window_.show_view(view));
      EXPECT_FALSE(window_.grab().isNull());
    }
    EXPECT_GT(window_.selection().rowCount(), 0);
  }
}

// One that ran out of memory says so, and for what, though no limit is known to judge its replay by. No name of a
// holder, however long its path, leaves the columns of figures no room.
TEST_F(Window, ASnapshotThatRanOutSaysSo) {
  window_.open(QString::fromStdString(root + "/traces/data/ran-out/snapshot.pickle"));
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.session().is_busy(); }, patience_ms));
  EXPECT_EQ(window_.strip().shown().front().short_value, "Ran out as recorded");
  EXPECT_EQ(window_.strip().shown().front().title, "✖ ran out");
  EXPECT_EQ(window_.session().variants().front()->figures->shape, "✖");
  EXPECT_EQ(window_.strip().shown().front().value,
            "✖ Ran out: loss.py:9 cross_entropy asked for 1.00 GiB, 0.879 GiB were free");
  EXPECT_EQ(window_.strip().shown().front().detail, "1.00 GiB asked for, 0.879 GiB free");
  window_.resize(1280, 720);
  ASSERT_TRUE(window_.show_view("memory"));
  for (const QTableView* const table : window_.findChildren<QTableView*>())
    if (table->accessibleName() == "Selection") {
      EXPECT_LE(table->horizontalHeader()->length(), table->viewport()->width());
      EXPECT_GT(table->model()->rowCount(), 0);
    }
  EXPECT_TRUE(window_.strip().shown().front().is_alarm);
  EXPECT_FALSE(window_.findChild<QComboBox*>("table choice")->isVisible());  // kernels, stages: it has none
  ASSERT_TRUE(window_.show_view("answer"));
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms));
  QString legend;  // no colour without a name
  for (const QLabel* const label : window_.answer().findChildren<QLabel*>())
    if (label->text().contains("&#9632;")) legend = label->text();
  const auto owners = window_.answer().picture().legend();
  EXPECT_GT(owners.size(), 3U);
  for (const auto& [color, owner] : owners)
    EXPECT_TRUE(legend.contains(owner)) << owner.toStdString() << " in " << legend.toStdString();
}

// A file that is dropped is what its content says: a model and a machine change the scenario at hand, a scenario takes
// its place; all of it can be undone, and scenarios are recent files.
TEST_F(Window, DroppedFilesMeanWhatTheyAre) {
  const auto drop = [this](const QString& file) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(file)});
    QDragEnterEvent enter(QPoint(200, 200), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&window_, &enter);
    EXPECT_TRUE(enter.isAccepted());
    QDropEvent event(QPointF(200, 200), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&window_, &event);
    settle();
  };
  drop(bundled("bound-by-pcie"));
  const std::string original = window_.session().document()->text();
  EXPECT_EQ(settings_.value("recent").toStringList().value(0), bundled("bound-by-pcie"));
  const QString config = folder_.filePath("config.json");
  std::ofstream(config.toStdString()) << R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2,
    "n_head": 4, "n_embd": 256, "vocab_size": 1000, "n_positions": 1024})";
  drop(config);
  EXPECT_EQ(window_.session().document()->value("model.name"), config.toStdString());
  EXPECT_EQ(window_.session().outcome()->loaded.trace.has(Capability::times), true);
  const std::string machine = root + "/hwprofiles/data/gpus/a100-pcie-80gb.json";
  drop(QString::fromStdString(machine));
  EXPECT_EQ(window_.session().document()->value("hardware.profile"), machine);
  window_.session().undo();
  window_.session().undo();
  settle();
  EXPECT_EQ(window_.session().document()->text(), original);
}

}  // namespace
}  // namespace spillway::gui
