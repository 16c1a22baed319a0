// The three journeys, by mouse and keys, in a real window (offscreen, or under Xvfb).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QDragEnterEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QSlider>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "gui/app/main_window.h"
#include "gui/panels/compare_view.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/start_page.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/variant_panel.h"
#include "gui/panels/verdict_strip.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "gui/plots/table_model.h"
#include "scenario/scenario.h"

namespace spillway::gui {
namespace {

const std::string root = std::getenv("SPILLWAY_SOURCE_ROOT");
constexpr int patience_ms = 300'000;  // a loaded machine; nothing is said about time

class Window : public testing::Test {
 protected:
  Window() : settings_(folder_.filePath("settings.ini"), QSettings::IniFormat), window_(settings_) {
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

// Journey 1: the start page, the first scenario, one toggle, and it fits; the report is written.
TEST_F(Window, FitsAfterOneToggle) {
  QPushButton* const first = window_.start_page().starts().front();
  ASSERT_TRUE(first->isEnabled());
  // The first of the three, by name.
  QPushButton* start = nullptr;
  for (QPushButton* const button : window_.start_page().starts())
    if (button->text() == "Out of memory") start = button;
  ASSERT_NE(start, nullptr);
  QTest::mouseClick(start, Qt::LeftButton);
  settle();
  EXPECT_EQ(figure(0).rfind("does not fit: short of", 0), 0U) << figure(0);
  ControlRow* const row = window_.panel().row("model.recompute");
  ASSERT_NE(row, nullptr);
  auto* const list = qobject_cast<QComboBox*>(row->editor());
  // What the start page says to set is in sight.
  EXPECT_TRUE(QTest::qWaitFor([&] { return !list->visibleRegion().isEmpty(); }, patience_ms));
  list->setFocus();
  QTest::keyClicks(list, "full");
  EXPECT_TRUE(window_.session().is_stale());
  settle();
  EXPECT_EQ(figure(0).rfind("fits with", 0), 0U) << figure(0);
  const QString report = folder_.filePath("report.html");
  EXPECT_TRUE(window_.export_report(report));
  EXPECT_GT(std::filesystem::file_size(report.toStdString()), 1'000U);
  EXPECT_EQ(window_.session().document()->command().value_or(""),
            "spillway run " + bundled("fits-after-one-toggle").toStdString() + " --set model.recompute=full");
}

// Journey 2: pin with B, drag a slider, read the changes; undo brings the file's bytes back.
TEST_F(Window, ComparesWithAPinnedBaseline) {
  open("bound-by-pcie");
  const std::string original = window_.session().document()->text();
  const std::string before = figure(2);
  window_.canvas().setFocus();
  QTest::keyClick(&window_.canvas(), Qt::Key_B);
  ASSERT_EQ(window_.session().baseline(), window_.session().outcome());
  ControlRow* const row = window_.panel().row("model.micro_batch");
  auto* const spin = qobject_cast<QDoubleSpinBox*>(row->editor());
  spin->setFocus();
  QTest::keyClick(spin, Qt::Key_Down);
  settle();
  EXPECT_NE(figure(2), before);
  const ShownFigure& step = window_.strip().shown().at(2);
  EXPECT_EQ(step.direction, Change::worse);  // shorter, with fewer tokens in a second
  EXPECT_NE(step.change.find('%'), std::string::npos);
  EXPECT_NE(window_.session().baseline(), window_.session().outcome());
  QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier);
  settle();
  EXPECT_EQ(window_.session().document()->text(), original);
  EXPECT_EQ(figure(2), before);
  EXPECT_EQ(window_.strip().shown().at(2).direction, Change::none);
  QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  settle();
  EXPECT_EQ(window_.session().document()->value("model.micro_batch"), "3");
  // A double click on its label gives the baseline's value back.
  QTest::mouseDClick(row, Qt::LeftButton, {}, QPoint(4, 6));
  settle();
  EXPECT_EQ(figure(2), before);
}

// Journey 3: a trace, a range selected with the mouse, the owners of memory in the table.
TEST_F(Window, SelectsARangeOfATraceAndReadsOwners) {
  window_.open(QString::fromStdString(root + "/cli/scenarios/gpt2-tiny-captured-cpu.json"));
  settle();
  const int all = window_.selection().rowCount();
  ASSERT_GT(all, 0);
  CanvasView& timeline = window_.canvas();
  ASSERT_GT(timeline.lanes_shown(), 0U);
  const QPoint from(timeline.width() / 2, 90), to(timeline.width() / 2 + 40, 90);
  QTest::mousePress(&timeline, Qt::LeftButton, {}, from);
  QTest::mouseMove(&timeline, (from + to) / 2);
  QTest::mouseMove(&timeline, to);
  QTest::mouseRelease(&timeline, Qt::LeftButton, {}, to);
  ASSERT_TRUE(window_.time().selection().has_value());
  EXPECT_LT(window_.selection().rowCount(), all);
  QTest::keyClick(&timeline, Qt::Key_F);
  EXPECT_EQ(window_.time().view(), *window_.time().selection());
  ASSERT_TRUE(window_.show_view("map"));
  ASSERT_GT(window_.selection().rowCount(), 0);
  EXPECT_EQ(window_.selection().headerData(1, Qt::Horizontal, Qt::DisplayRole).toString(), "held by");
  EXPECT_FALSE(window_.selection().index(0, 1).data().toString().isEmpty());
  const QString csv = folder_.filePath("owners.csv");
  EXPECT_TRUE(window_.export_selection(csv));
  std::ifstream file(csv.toStdString());
  std::string heading;
  std::getline(file, heading);
  EXPECT_EQ(heading, "allocation,held by,bytes,from,until,layer,address\r");
}

// Keys move the view of all tabs together; nothing but Esc drops the selection.
TEST_F(Window, KeysMoveOneSharedRange) {
  open("fits-after-one-toggle");
  CanvasView& timeline = window_.canvas();
  timeline.setFocus();
  const TimeRange whole = window_.time().whole();
  ASSERT_EQ(window_.time().view(), whole);
  QTest::keyClick(&timeline, Qt::Key_W);
  QTest::keyClick(&timeline, Qt::Key_W);
  const TimeRange closer = window_.time().view();
  EXPECT_LT(closer.length(), whole.length());
  QTest::keyClick(&timeline, Qt::Key_D);
  EXPECT_GT(window_.time().view().begin, closer.begin);
  EXPECT_EQ(window_.time().view().length(), closer.length());
  QTest::keyClick(&timeline, Qt::Key_Left);
  EXPECT_EQ(window_.time().view(), closer);
  window_.time().select(TimeRange{closer.begin, closer.begin + closer.length() / 4});
  QTest::keyClick(&timeline, Qt::Key_Home);
  EXPECT_EQ(window_.time().view(), whole);
  EXPECT_TRUE(window_.time().selection().has_value());
  QTest::keyClick(&timeline, Qt::Key_Escape);
  EXPECT_FALSE(window_.time().selection().has_value());
}

TEST_F(Window, EveryViewPaintsInBothThemes) {
  open("wears-out-its-drives");
  QTest::keyClick(&window_.canvas(), Qt::Key_B);
  for (const Theme* const theme : {&light_theme(), &dark_theme()}) {
    window_.set_theme(*theme);
    for (const char* const view :
         {"timeline", "memory", "map", "sensitivity", "pareto", "roofline", "pipeline", "compare"}) {
      ASSERT_TRUE(window_.show_view(view));
      ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms));
      EXPECT_FALSE(window_.grab().isNull()) << view;
    }
  }
  EXPECT_FALSE(window_.show_view("nothing"));
}

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

// The window may go while the worker is busy; and a load may be cancelled, after which another is answered.
TEST_F(Window, ClosesDuringASimulation) {
  window_.open(bundled("wears-out-its-drives"));
  EXPECT_TRUE(window_.session().is_busy());
  window_.close();
  EXPECT_FALSE(window_.session().is_busy());
}

// Esc stops what is running; what is on screen stays, and the next edit is answered. With nothing running it is the
// views' own key.
TEST_F(Window, EscCancelsASimulation) {
  open("bound-by-pcie");
  const std::string before = figure(2);
  window_.session().edit("model.gradient_accumulation", "3000", false);  // longer than the tests may take
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.session().is_busy(); }, patience_ms));
  QTest::keyClick(&window_.canvas(), Qt::Key_Escape);
  EXPECT_FALSE(window_.session().is_busy());
  EXPECT_TRUE(window_.session().is_stale());
  EXPECT_EQ(figure(2), before);
  window_.session().undo();
  settle();
  EXPECT_EQ(figure(2), before);
  window_.time().select(TimeRange{1, 1'000});
  QTest::keyClick(&window_.canvas(), Qt::Key_Escape);
  EXPECT_FALSE(window_.time().selection().has_value());
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

// The panel shows what matters; what is changed, on demand; and everything that is looked for.
TEST_F(Window, ThePanelShowsWhatMatters) {
  open("fits-after-one-toggle");
  ScenarioPanel& panel = window_.panel();
  const auto in_sight = [&](const char* key) { return !panel.row(key)->isHidden(); };
  EXPECT_TRUE(in_sight("model.micro_batch"));
  EXPECT_FALSE(in_sight("offload.drives"));  // nothing is offloaded
  EXPECT_FALSE(in_sight("model.pipeline_chunks"));
  EXPECT_FALSE(in_sight("model.zero_stage"));
  window_.session().edit("offload.technique", "ssdtrain", false);
  EXPECT_TRUE(in_sight("offload.drives"));
  window_.session().edit("model.pipeline_parallel", "2", false);
  EXPECT_TRUE(in_sight("model.pipeline_chunks"));
  EXPECT_TRUE(in_sight("what_if.network"));
  window_.session().undo();
  window_.session().undo();
  EXPECT_FALSE(in_sight("offload.drives"));
  panel.show_keys(KeysShown::changed);
  EXPECT_FALSE(in_sight("model.micro_batch"));
  window_.session().edit("model.micro_batch", "2", false);
  EXPECT_TRUE(in_sight("model.micro_batch"));
  EXPECT_FALSE(in_sight("model.sequence"));
  panel.filter("pipeline");
  EXPECT_TRUE(in_sight("model.pipeline_chunks"));
  EXPECT_FALSE(in_sight("model.micro_batch"));
  panel.filter("");
  panel.reveal("offload.drives");
  EXPECT_TRUE(in_sight("offload.drives"));
  // One control for each key.
  std::set<std::string> keys;
  for (const Control& control : scenario_controls()) EXPECT_TRUE(keys.insert(control.key).second) << control.key;
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

// Fewer tokens in a shorter step are no gain when fewer come out of a second.
TEST_F(Window, ALossOfTokensIsNoGain) {
  open("fits-after-one-toggle");
  window_.session().edit("model.micro_batch", "4", false);
  settle();
  window_.session().pin();
  const Result before = window_.session().baseline()->result();
  for (const char* const batch : {"1", "2", "3", "5", "8"}) {
    window_.session().edit("model.micro_batch", batch, false);
    settle();
    const Result& now = window_.session().outcome()->result();
    const ShownFigure& step = window_.strip().shown().at(2);
    EXPECT_EQ(step.direction, now.tokens_per_second > before.tokens_per_second ? Change::better : Change::worse)
        << batch << ": " << step.change;
    EXPECT_NE(step.change.find("tokens/s"), std::string::npos) << step.change;
  }
  window_.session().edit("model.micro_batch", "1", false);
  settle();
  const Result& least = window_.session().outcome()->result();
  EXPECT_LT(least.step_time, before.step_time);
  EXPECT_LT(least.tokens_per_second, before.tokens_per_second);
  EXPECT_EQ(window_.strip().shown().at(2).direction, Change::worse);
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
    ASSERT_NE(outcome.memory, nullptr) << file;
    EXPECT_FALSE(outcome.memory->picture.blocks.empty()) << file;
    EXPECT_GT(outcome.memory->allocated.peak(), 0) << file;
    EXPECT_EQ(outcome.memory->allocated.peak(), outcome.result().memory.peak_allocated.count()) << file;
    EXPECT_EQ(figure(1), "not known");
    EXPECT_EQ(figure(2), "not known");
    for (const char* const view : {"timeline", "memory", "map", "sensitivity", "roofline", "pipeline", "compare"}) {
      ASSERT_TRUE(window_.show_view(view));
      EXPECT_FALSE(window_.grab().isNull());
    }
    EXPECT_GT(window_.selection().rowCount(), 0);
  }
}

// Everything that comes with the program is on the start page, and opens from there.
TEST_F(Window, EveryExampleIsAtTheStart) {
  std::size_t files = 0;
  for (const char* const folder : {"/gui/scenarios", "/cli/scenarios", "/cli/sweeps"})
    for (const auto& entry : std::filesystem::directory_iterator(root + folder))
      files += entry.path().extension() == ".json" ? 1 : 0;
  const StartPage& start = window_.start_page();
  EXPECT_EQ(start.starts().size() + start.others().size(), files);
  QPushButton* chosen = nullptr;
  for (QPushButton* const one : start.others())
    if (one->toolTip().contains("gpt2-tiny-captured-cpu")) chosen = one;
  ASSERT_NE(chosen, nullptr);
  QTest::mouseClick(chosen, Qt::LeftButton);
  settle();
  EXPECT_TRUE(window_.session().document()->is_trace());
}

// What a reader found wrong is on screen, and no green verdict stands beside it.
TEST_F(Window, WarningsAreSeen) {
  const QString file = folder_.filePath("unpaired.json");
  // Of three blocks one is freed that was never there, and one event has no address.
  std::ofstream(file.toStdString())
      << R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB",
    "totalGlobalMem": 42000000000}], "traceEvents": [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 50, "args": {"correlation": 1, "stream": 7, "device": 0}},
    {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 11,
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 1048576, "Total Allocated": 1048576, "Total Reserved": 2097152}},
    {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 12,
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 8192, "Bytes": "no number", "Total Allocated": 1048576, "Total Reserved": 2097152}},
    {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 13,
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": -1048576, "Total Allocated": 0, "Total Reserved": 2097152}}]})";
  window_.open(file);
  settle();
  const Outcome& outcome = *window_.session().outcome();
  ASSERT_FALSE(outcome.trace().findings.empty());
  ASSERT_FALSE(outcome.result().warnings.empty());
  auto* const list = window_.findChild<QListWidget*>();
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->count(), static_cast<int>(outcome.result().warnings.size()));
  const ShownFigure& verdict = window_.strip().shown().front();
  EXPECT_TRUE(verdict.is_caution || verdict.is_alarm) << verdict.value;
  EXPECT_EQ(verdict.short_value.rfind("No verdict on memory", 0), 0U) << verdict.short_value;
}

// Whoever holds it, what is stacked is what is allocated: also where a capture's allocations have no addresses.
TEST_F(Window, OwnersSumToWhatIsAllocated) {
  window_.open(QString::fromStdString(root + "/cli/scenarios/gpt2-tiny-captured-cpu.json"));
  settle();
  const auto& memory = window_.session().outcome()->memory;
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->owners.peak(), memory->allocated.peak());
  for (int part = 0; part < 100; ++part) {
    const std::int64_t at = memory->whole.begin + memory->whole.length() * part / 100;
    const OwnerStack::Held held = memory->owners.at(at);
    EXPECT_EQ(OwnerStack::sum(held), memory->allocated.value_at(at));
    EXPECT_TRUE(std::all_of(held.begin(), held.end(), [](std::int64_t bytes) { return bytes >= 0; }));
  }
}

// Every choice that the panel offers is one that the loader takes.
TEST_F(Window, EveryChoiceIsReadBack) {
  open("bound-by-pcie");
  for (const Control& control : scenario_controls())
    for (const std::string& choice : control.choices) {
      if (control.kind != ControlKind::choice) continue;
      const std::string text = with_setting(window_.session().document()->text(), control.key + "=" + choice);
      EXPECT_NO_THROW(static_cast<void>(parse_scenario(text, "choice", ""))) << control.key << "=" << choice;
    }
  ControlRow* const allocator = window_.panel().row("memory.allocator");
  const auto* const list = qobject_cast<QComboBox*>(allocator->editor());
  EXPECT_GE(list->findText("stalloc"), 0);
  window_.session().edit("memory.allocator", "stalloc", false);
  window_.session().edit("offload.technique", "none", false);
  settle();
  EXPECT_FALSE(window_.message().isVisible()) << window_.message().text().toStdString();
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
    EXPECT_EQ(shown[i].on_front, outcome.rows[i].on_front) << shown[i].label;
    members += outcome.rows[i].on_front ? 1 : 0;
  }
  EXPECT_GT(members, 1U);
  std::size_t in_table = 0;
  const TableRows table = window_.sweep().chart().table();
  for (const auto& row : table.rows) in_table += row[1].text == "yes" ? 1 : 0;
  EXPECT_EQ(in_table, members);
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

// A hidden lane is gone from the picture, a button says so and brings it back.
TEST_F(Window, HiddenLanesComeBack) {
  open("bound-by-pcie");
  const std::size_t all = window_.canvas().lanes_shown();
  ASSERT_GT(all, 1U);
  window_.canvas().hide_lane(window_.session().outcome()->timeline.lanes.front().name);
  EXPECT_EQ(window_.canvas().lanes_shown(), all - 1);
  QPushButton* shown = nullptr;
  for (QPushButton* const button : window_.findChildren<QPushButton*>())
    if (button->isVisible() && button->text().startsWith("1 tracks hidden")) shown = button;
  ASSERT_NE(shown, nullptr);
  QTest::mouseClick(shown, Qt::LeftButton);
  EXPECT_EQ(window_.canvas().lanes_shown(), all);
}

// Ctrl+F, a part of a name, Return: the work is chosen and in view; F3 goes to the next.
TEST_F(Window, FindsWorkByName) {
  open("bound-by-pcie");
  window_.time().set_view({0, 1'000'000});
  QTest::keyClick(&window_, Qt::Key_F, Qt::ControlModifier);
  auto* const line = qobject_cast<QLineEdit*>(window_.focusWidget());
  ASSERT_NE(line, nullptr);
  QTest::keyClicks(line, "DGRAD");
  QTest::keyClick(line, Qt::Key_Return);
  const auto first = window_.canvas().chosen();
  ASSERT_TRUE(first.has_value());
  const Outcome& outcome = *window_.session().outcome();
  const auto name = [&](OpId op) { return outcome.trace().strings.text(outcome.trace().ops.name[index_of(op)]); };
  EXPECT_NE(name(*first).find("dgrad"), std::string_view::npos);
  EXPECT_LE(window_.time().view().begin, outcome.result().op_start[index_of(*first)].count());
  EXPECT_GE(window_.time().view().end, outcome.result().op_end[index_of(*first)].count());
  QTest::keyClick(line, Qt::Key_F3);
  EXPECT_NE(window_.canvas().chosen(), first);
}

// The palette finds commands by a few letters and runs them.
TEST_F(Window, PaletteRunsCommands) {
  open("bound-by-pcie");
  QTest::keyClick(&window_, Qt::Key_P, Qt::ControlModifier);
  auto* const palette = window_.findChild<QDialog*>("palette");
  ASSERT_NE(palette, nullptr);
  ASSERT_TRUE(palette->isVisible());
  auto* const line = palette->findChild<QLineEdit*>();
  QTest::keyClicks(line, "copy com");
  QTest::keyClick(line, Qt::Key_Return);
  EXPECT_FALSE(palette->isVisible());
  EXPECT_TRUE(QApplication::clipboard()->text().startsWith("spillway run "));
}

// What a screen reader says of it.
TEST_F(Window, EverythingThatTakesFocusHasAName) {
  open("bound-by-pcie");
  for (const char* const view : {"timeline", "memory", "map", "roofline", "pipeline", "compare", "pareto"}) {
    ASSERT_TRUE(window_.show_view(view));
    for (const QWidget* const widget : window_.findChildren<QWidget*>()) {
      if (!widget->isVisible() || (widget->focusPolicy() & Qt::TabFocus) == 0) continue;
      const auto* const button = qobject_cast<const QAbstractButton*>(widget);
      const auto* const line = qobject_cast<const QLineEdit*>(widget);
      const bool is_viewport = widget->parentWidget()->inherits("QAbstractScrollArea");  // its area has the name
      const bool is_inner = line != nullptr && (line->parentWidget()->inherits("QComboBox") ||
                                                line->parentWidget()->inherits("QAbstractSpinBox"));
      const bool named = !widget->accessibleName().isEmpty() || (button != nullptr && !button->text().isEmpty()) ||
                         (line != nullptr && !line->placeholderText().isEmpty()) || is_inner || is_viewport ||
                         widget->inherits("QTabBar") || widget->inherits("QScrollArea") ||
                         widget->inherits("QTextEdit");
      EXPECT_TRUE(named) << widget->metaObject()->className() << " " << widget->objectName().toStdString() << " in "
                         << widget->parentWidget()->metaObject()->className();
    }
  }
}

}  // namespace
}  // namespace spillway::gui
