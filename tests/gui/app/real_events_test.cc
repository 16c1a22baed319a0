// The window under real keys and a real mouse, in a display of its own: what a person can do to lose work, or to wait.
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QInputDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollBar>
#include <QSettings>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>
#include <fstream>
#include <map>
#include <random>

#include "gui/app/main_window.h"
#include "gui/panels/answer_view.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/variant_panel.h"
#include "gui/panels/verdict_strip.h"
#include "gui/panels/way_list.h"
#include "gui/plots/answer_picture.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "scenario/relaxation_setting.h"
#include "tests/gui/app/real_input.h"

namespace spillway::gui {
namespace {

const std::string source_root = std::getenv("SPILLWAY_SOURCE_ROOT");
constexpr int event_patience_ms = 60'000;
// The aim is 50; a shared machine keeps a thread waiting for longer than that. The sweeps' points take far longer
// still, so whoever waits for one is found out.
constexpr double longest_gap_ms = 3'000;

class RealEvents : public testing::Test {
 protected:
  RealEvents() : settings_(folder_.filePath("settings.ini"), QSettings::IniFormat), window_(settings_) {
    window_.findChild<QTabWidget*>("views")->setCurrentIndex(1);  // the canvas; the answer has tests of its own
    window_.show();
    activate(window_);
  }
  // There is no window manager to do it.
  static void activate(QWidget& window) {
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&window));
    window.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  }
  static QString bundled(const char* name) {
    return QString::fromStdString(source_root + "/gui/scenarios/") + name + ".json";
  }
  void settle() {
    ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_settled(); }, event_patience_ms))
        << window_.message().text().toStdString();
    QTest::qWait(30);  // until what was laid out anew is where it stays
  }
  void open(const char* name) {
    window_.open(bundled(name));
    settle();
  }
  [[nodiscard]] std::string text() { return window_.session().document()->text(); }
  [[nodiscard]] std::string value(const char* key) { return window_.session().document()->value(key).value_or(""); }
  [[nodiscard]] QDoubleSpinBox& micro_batch() {
    return *qobject_cast<QDoubleSpinBox*>(window_.panel().row("model.micro_batch")->editor());
  }
  // An edit that is in no file.
  void edit_micro_batch(const char* to) {
    window_.session().edit("model.micro_batch", to, false);
    settle();
    ASSERT_TRUE(window_.session().document()->is_changed());
  }
  // What asks about unsaved changes; null: nothing does.
  [[nodiscard]] QMessageBox* question() {
    QMessageBox* found = nullptr;
    const auto is_asked = [&] {
      found = window_.findChild<QMessageBox*>();
      return found != nullptr && found->isVisible();
    };
    if (!QTest::qWaitFor(is_asked, 3'000)) return nullptr;
    activate(*found);
    return found;
  }
  // A sweep of a few points, each a step of so many micro-batches: of thousands it takes minutes, as steps whose
  // launches block aren't folded.
  [[nodiscard]] QString sweep(const char* name, int micro_batches) {
    const QString path = folder_.filePath(name);
    std::ofstream(path.toStdString()) << R"({"schema": "spillway-sweep", "version": 1, "title": ")" << name << R"(",
      "base": {"model": {"name": "gpt2-small", "sequence": 256, "gradient_accumulation": )"
                                      << micro_batches << R"(, "launch_blocking": true},
               "hardware": {"profile": "rtx-4090"}},
      "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2]},
               {"name": "r", "key": "model.recompute", "values": ["none", "full"]}],
      "objectives": ["step_time", "peak_memory"], "margin": 0.9, "memory_margin": 0.9})";
    return path;
  }
  [[nodiscard]] const QProgressBar& bar() { return *window_.sweep().findChild<QProgressBar*>(); }
  [[nodiscard]] QPushButton& run_button() { return *window_.findChild<QPushButton*>("sweep run"); }

  QTemporaryDir folder_;
  QSettings settings_;
  MainWindow window_;
  RealInput person_;
};

// ---- notes ----

// N writes one at the pointer; it is a step like any other, follows its place to another axis, and is in the workspace.
TEST_F(RealEvents, ANoteIsAStepAndIsKept) {
  open("bound-by-pcie");
  const std::string before = text();
  ASSERT_TRUE(person_.click(window_.canvas(), {window_.canvas().width() / 2, 200}));
  ASSERT_TRUE(person_.key("n"));
  auto* dialog = static_cast<QInputDialog*>(nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] {
    dialog = window_.findChild<QInputDialog*>();
    return dialog != nullptr && dialog->isVisible();
  }));
  activate(*dialog);
  ASSERT_TRUE(person_.type("waits here"));
  ASSERT_TRUE(person_.key("Return"));
  const auto notes = [this] { return window_.session().notes(); };
  ASSERT_TRUE(QTest::qWaitFor([&] { return notes().size() == 1; }));
  EXPECT_EQ(notes().front().text, "waits here");
  EXPECT_GT(notes().front().at, window_.time().view().begin);
  EXPECT_LT(notes().front().at, window_.time().view().end);
  EXPECT_EQ(text(), before);
  activate(window_);
  ASSERT_TRUE(person_.key("ctrl+z"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return notes().empty(); }));
  ASSERT_TRUE(person_.key("ctrl+shift+z"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return notes().size() == 1; }));
  const StoredWorkspace stored = parse_workspace(workspace_text(window_.session().stored()), "workspace");
  EXPECT_EQ(stored.variants.front().notes, notes());
}

// ---- the wheel ----

// Over every control that is in sight, focused or not, and over the panel itself: it scrolls, and nothing else.
TEST_F(RealEvents, TheWheelOverThePanelEditsNothing) {
  open("bound-by-pcie");
  const std::string before = text();
  const QScrollBar& bar = *window_.panel().verticalScrollBar();
  micro_batch().setFocus();
  int turned = 0;
  for (const QWidget* const control : window_.panel().findChildren<QWidget*>()) {
    const bool takes_wheel =
        control->inherits("QComboBox") || control->inherits("QAbstractSpinBox") || control->inherits("QSlider");
    if (!takes_wheel || control->visibleRegion().isEmpty() || turned >= 200) continue;
    ASSERT_TRUE(person_.wheel(*control, 4, control->visibleRegion().boundingRect().center()));
    turned += 4;
    EXPECT_EQ(text(), before) << control->parentWidget()->objectName().toStdString();
  }
  EXPECT_GE(turned, 20);
  EXPECT_GT(bar.value(), 0);
  ASSERT_TRUE(person_.wheel(window_.panel(), -80));
  EXPECT_EQ(bar.value(), 0);
  ASSERT_TRUE(person_.wheel(micro_batch(), 3));
  EXPECT_GT(bar.value(), 0);
  EXPECT_EQ(text(), before);
  EXPECT_EQ(window_.session().document()->file(), bundled("bound-by-pcie").toStdString());
}

// ---- keys ----

TEST_F(RealEvents, UndoAndRedoAnswerWithFocusInEveryControl) {
  open("bound-by-pcie");
  const std::string before = text();
  for (const Control& control : scenario_controls()) {
    ControlRow* const row = window_.panel().row(control.key);
    ASSERT_NE(row, nullptr);
    if (!row->isVisible()) continue;
    window_.session().edit("title", control.label, false);
    const std::string edited = text();
    ASSERT_NE(edited, before);
    row->editor()->setFocus();
    ASSERT_TRUE(person_.key("ctrl+z"));
    EXPECT_EQ(text(), before) << "undo in " << control.key;
    ASSERT_TRUE(person_.key("ctrl+shift+z"));
    EXPECT_EQ(text(), edited) << "redo in " << control.key;
    window_.session().undo();
    ASSERT_EQ(text(), before) << control.key;
  }
}

// What was typed and not yet entered counts as an edit, which is undone.
TEST_F(RealEvents, UndoTakesBackWhatWasTyped) {
  open("bound-by-pcie");
  const std::string before = text(), held = value("model.micro_batch");
  ASSERT_TRUE(person_.click(micro_batch()));
  ASSERT_TRUE(person_.key("ctrl+a"));
  ASSERT_TRUE(person_.type("7"));
  EXPECT_EQ(text(), before);
  ASSERT_TRUE(person_.key("ctrl+z"));
  EXPECT_EQ(text(), before);
  EXPECT_EQ(micro_batch().value(), std::stod(held));
  ASSERT_TRUE(person_.key("ctrl+shift+z"));
  EXPECT_EQ(value("model.micro_batch"), "7");
}

TEST_F(RealEvents, BPinsAfterAnEdit) {
  open("bound-by-pcie");
  ASSERT_TRUE(person_.click(micro_batch()));
  ASSERT_TRUE(person_.key("ctrl+a"));
  ASSERT_TRUE(person_.type("3"));
  ASSERT_TRUE(person_.key("Return"));
  EXPECT_EQ(value("model.micro_batch"), "3");
  settle();
  ASSERT_TRUE(person_.key("b"));
  EXPECT_EQ(window_.session().baseline(), window_.session().outcome());
}

// Where letters are text they stay so.
TEST_F(RealEvents, LettersAreTextWhereTextIsTaken) {
  open("bound-by-pcie");
  ASSERT_TRUE(person_.key("ctrl+f"));
  ASSERT_TRUE(person_.type("b"));
  const auto* const line = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->text(), "b");
  EXPECT_EQ(window_.session().baseline(), nullptr);
}

// ---- work that is in no file ----

TEST_F(RealEvents, QuitAsksAboutUnsavedChanges) {
  open("bound-by-pcie");
  edit_micro_batch("3");
  ASSERT_TRUE(person_.key("ctrl+q"));
  ASSERT_NE(question(), nullptr);
  ASSERT_TRUE(person_.key("Escape"));
  EXPECT_TRUE(window_.isVisible());
  EXPECT_EQ(value("model.micro_batch"), "3");
  activate(window_);
  ASSERT_TRUE(person_.key("ctrl+q"));
  const QMessageBox* const asked = question();
  ASSERT_NE(asked, nullptr);
  ASSERT_TRUE(person_.click(*asked->button(QMessageBox::Discard)));
  EXPECT_TRUE(QTest::qWaitFor([this] { return !window_.isVisible(); }, event_patience_ms));
}

TEST_F(RealEvents, QuitAsksNothingWhenAllIsSaved) {
  open("bound-by-pcie");
  ASSERT_TRUE(person_.key("ctrl+q"));
  EXPECT_TRUE(QTest::qWaitFor([this] { return !window_.isVisible(); }, event_patience_ms));
}

// A preset, chosen with the keyboard, takes the place of nothing: it is one more variant.
TEST_F(RealEvents, APresetReplacesNothing) {
  open("bound-by-pcie");
  edit_micro_batch("3");
  const std::string edited = text();
  const int mine = window_.session().current();
  auto* const presets = window_.panel().findChild<QComboBox*>("presets");
  presets->setFocus();
  ASSERT_TRUE(person_.key("Down"));
  ASSERT_TRUE(
      QTest::qWaitFor([&] { return window_.session().current() != mine && window_.is_settled(); }, event_patience_ms));
  EXPECT_EQ(window_.session().variant(mine)->document.text(), edited);
  EXPECT_TRUE(window_.session().variant(mine)->document.is_changed());
  // Back by a click in the tree, and nothing is lost.
  VariantModel& model = window_.variants().model();
  QTreeView& tree = window_.variants().tree();
  ASSERT_TRUE(person_.click(*tree.viewport(), tree.visualRect(model.index_of(mine)).center()));
  settle();
  EXPECT_EQ(text(), edited);
  ASSERT_TRUE(person_.key("ctrl+z"));
  settle();
  EXPECT_EQ(value("model.micro_batch"), "4");
}

// The palette sets keys, says what can't be, picks models, and runs commands.
TEST_F(RealEvents, ThePaletteSetsKeys) {
  open("bound-by-pcie");
  const auto say = [this](const char* words) {
    ASSERT_TRUE(person_.key("ctrl+k"));
    ASSERT_TRUE(QTest::qWaitFor([this] { return window_.palette().isVisible(); }, event_patience_ms));
    ASSERT_TRUE(person_.type(words));
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_.palette().line().text() == words; }, event_patience_ms));
  };
  say("micro-batch 3");
  EXPECT_TRUE(window_.palette().list().item(0)->text().startsWith("model.micro_batch 3"));
  ASSERT_TRUE(person_.key("Return"));
  EXPECT_EQ(value("model.micro_batch"), "3");
  EXPECT_FALSE(window_.palette().isVisible());
  activate(window_);
  say("mb 5");
  ASSERT_TRUE(person_.key("Return"));
  EXPECT_EQ(value("model.micro_batch"), "5");
  activate(window_);
  say("model.micro_batch=no");
  EXPECT_FALSE(window_.palette().list().item(0)->flags() & Qt::ItemIsEnabled);
  ASSERT_TRUE(person_.key("Return"));
  EXPECT_EQ(value("model.micro_batch"), "5");
  ASSERT_TRUE(person_.key("Escape"));
  activate(window_);
  say("gpt2-medium");
  ASSERT_TRUE(person_.key("Return"));
  EXPECT_EQ(value("model.name"), "gpt2-medium");
  activate(window_);
  say("roofline");
  ASSERT_TRUE(person_.key("Return"));
  EXPECT_TRUE(window_.roofline().isVisible());
}

// A file is read before it takes the place of another; one that can't be is no recent file.
TEST_F(RealEvents, AFileThatCanNotBeReadChangesNothing) {
  open("bound-by-pcie");
  edit_micro_batch("3");
  const std::string edited = text();
  const QString broken = folder_.filePath("nothing.bin");
  std::ofstream(broken.toStdString()) << "no trace at all";
  window_.open(broken);
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.message().isVisible(); }, event_patience_ms));
  EXPECT_TRUE(window_.message().text().contains("nothing.bin"));
  EXPECT_EQ(text(), edited);
  EXPECT_TRUE(window_.is_settled());
  EXPECT_FALSE(settings_.value("recent").toStringList().contains(broken));
}

// ---- a new file ----

TEST_F(RealEvents, ANewFileBeginsWithTheWholeStep) {
  open("wears-out-its-drives");
  const QWidget& timeline = window_.canvas();
  ASSERT_TRUE(person_.wheel(timeline, -12, QPoint(timeline.width() / 4, 40)));
  ASSERT_NE(window_.time().view(), window_.time().whole());
  window_.open(bundled("fits-after-one-toggle"));
  ASSERT_TRUE(QTest::qWaitFor(
      [this] {
        return window_.is_settled() && value("model.name") != "" &&
               window_.session().document()->file() == bundled("fits-after-one-toggle").toStdString();
      },
      event_patience_ms));
  EXPECT_EQ(window_.time().view(), window_.time().whole());
}

// ---- sweeps ----

TEST_F(RealEvents, ASecondSweepTakesThePlaceOfOneThatRuns) {
  Watchdog watchdog;
  for (const auto& [name, micro_batches] :
       {std::pair("first.json", 3'000), std::pair("second.json", 3'000), std::pair("third.json", 1)}) {
    watchdog.reset();
    window_.open(sweep(name, micro_batches));
    EXPECT_TRUE(window_.sweep().is_running());
    // Until its points are being replayed.
    ASSERT_TRUE(QTest::qWaitFor(
        [this] { return !window_.sweep().is_running() || (bar().maximum() > 0 && bar().value() == bar().maximum()); },
        event_patience_ms));
    EXPECT_LT(watchdog.longest_ms(), longest_gap_ms) << name;
  }
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.sweep().is_running(); }, event_patience_ms));
  EXPECT_GT(window_.sweep().chart().rows().size(), 1U) << window_.message().text().toStdString();
  EXPECT_LT(watchdog.longest_ms(), longest_gap_ms);
  EXPECT_LE(window_.sweep().chart().rows().front().replayed.tokens_per_step, 512.0);
}

TEST_F(RealEvents, StopAnswersAtOnce) {
  Watchdog watchdog;
  window_.open(sweep("slow.json", 3'000));
  QPushButton& button = run_button();
  for (int i = 0; i < 3; ++i) {  // stop and run again
    ASSERT_TRUE(
        QTest::qWaitFor([this] { return bar().maximum() > 0 && bar().value() == bar().maximum(); }, event_patience_ms));
    ASSERT_EQ(button.text(), "Stop");
    watchdog.reset();
    ASSERT_TRUE(person_.click(button));
    EXPECT_FALSE(window_.sweep().is_running());
    EXPECT_EQ(button.text(), "Run");
    EXPECT_LT(watchdog.longest_ms(), longest_gap_ms);
    ASSERT_TRUE(person_.click(button));
    EXPECT_TRUE(window_.sweep().is_running());
  }
}

// A baseline belongs to the file it was pinned in.
TEST_F(RealEvents, AnotherFileHasNoBaseline) {
  open("bound-by-pcie");
  window_.canvas().setFocus();
  ASSERT_TRUE(person_.key("b"));
  ASSERT_NE(window_.session().baseline(), nullptr);
  open("fits-after-one-toggle");
  EXPECT_EQ(window_.session().baseline(), nullptr);
  EXPECT_EQ(window_.session().baseline_document(), nullptr);
  for (const ShownFigure& figure : window_.strip().shown()) EXPECT_EQ(figure.change, "") << figure.id;
}

// ---- the canvas ----

// 1 2 3 change the axis; what is in view stays in view.
TEST_F(RealEvents, KeysChangeTheAxis) {
  open("wears-out-its-drives");
  CanvasView& canvas = window_.canvas();
  canvas.setFocus();
  ASSERT_EQ(canvas.axis(), MemoryClock::gpu);
  const Outcome& outcome = *window_.session().outcome();
  EXPECT_EQ(window_.time().whole().end, outcome.result().replayed.count());
  const TimeRange whole = window_.time().whole();
  window_.time().set_view({whole.end / 2, whole.end / 2 + whole.end / 10});
  const TimeRange view = window_.time().view();
  ASSERT_TRUE(person_.key("3"));
  EXPECT_EQ(canvas.axis(), MemoryClock::program);
  EXPECT_EQ(window_.time().whole().end, static_cast<std::int64_t>(outcome.trace().ops.size()));
  EXPECT_GT(window_.time().view().begin, 0);
  EXPECT_LT(window_.time().view().length(), window_.time().whole().length() / 2);
  ASSERT_TRUE(person_.key("1"));
  EXPECT_EQ(canvas.axis(), MemoryClock::gpu);
  EXPECT_NEAR(static_cast<double>(window_.time().view().begin), static_cast<double>(view.begin),
              0.02 * static_cast<double>(whole.end));
  ASSERT_TRUE(person_.key("2"));
  EXPECT_EQ(canvas.axis(), MemoryClock::host);
  ASSERT_TRUE(person_.key("c"));
  EXPECT_TRUE(canvas.shows_path());
}

// A click beside what is in view, in the small picture, goes there; a heading closes its group; Ctrl+wheel scrolls and
// wheel zooms.
TEST_F(RealEvents, TheMouseMovesTheCanvas) {
  open("wears-out-its-drives");
  CanvasView& canvas = window_.canvas();
  const TimeRange whole = window_.time().whole();
  window_.time().set_view({0, whole.end / 10});
  ASSERT_TRUE(person_.click(canvas, {canvas.width() - 60, 10}));
  EXPECT_GT(window_.time().view().begin, whole.end / 2);
  EXPECT_EQ(window_.time().view().length(), whole.end / 10);
  const std::size_t tracks = canvas.lanes_shown();
  ASSERT_TRUE(person_.click(canvas, {40, canvas_top + 8}));
  EXPECT_LT(canvas.lanes_shown(), tracks);
  ASSERT_TRUE(person_.click(canvas, {40, canvas_top + 8}));
  EXPECT_EQ(canvas.lanes_shown(), tracks);
  const TimeRange before = window_.time().view();
  ASSERT_TRUE(person_.wheel(canvas, -2, {canvas.width() / 2, 120}));
  EXPECT_LT(window_.time().view().length(), before.length());
}

// What a plot shows is under the pointer by name, and a click does something with it: a bar is applied, as one step; a
// kernel is found on the canvas; a point of a sweep is opened.
TEST_F(RealEvents, PlotsAnswerThePointer) {
  open("bound-by-pcie");
  const std::string before = text();
  window_.show_view("sensitivity");
  SensitivityChart& bars = window_.sensitivity();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !bars.scene().bars.empty(); }, event_patience_ms));
  const auto& all = bars.scene().bars;
  const auto bar = std::find_if(all.begin(), all.end(), [](const PlotBar& one) { return one.id >= 0; });
  ASSERT_NE(bar, all.end());
  const std::string key = setting_of_relaxation(bar->name.toStdString());  // a click may make the bars anew
  ASSERT_NE(key, "");
  ASSERT_TRUE(person_.click(bars, bars.place(static_cast<std::size_t>(bar - all.begin())) - QPoint(6, 0)));
  EXPECT_EQ(value(key.c_str()), "2");
  ASSERT_TRUE(person_.key("ctrl+z"));
  EXPECT_EQ(text(), before);
  settle();
  window_.show_view("roofline");
  RooflineChart& roof = window_.roofline();
  ASSERT_GT(roof.scene().points.size(), 5U);  // memory-bound ones, too
  std::size_t uncounted = 0;
  for (const PlotPoint& point : roof.scene().points) uncounted += point.series == 2 ? 1 : 0;
  EXPECT_GT(uncounted, 0U);
  roof.setFocus();
  ASSERT_TRUE(person_.key("Right"));
  ASSERT_TRUE(roof.pointed().has_value());
  const QString name = roof.scene().points[*roof.pointed()].name;
  EXPECT_TRUE(roof.accessibleDescription().startsWith(name));
  ASSERT_TRUE(person_.key("Return"));
  EXPECT_TRUE(window_.canvas().isVisible());
  ASSERT_TRUE(window_.canvas().chosen().has_value());
  const Trace& trace = window_.session().outcome()->trace();
  EXPECT_EQ(trace.strings.text(trace.ops.name[index_of(*window_.canvas().chosen())]), name.toStdString());
}

// The wheel zooms a plot, a drag moves it, Home shows all of it.
TEST_F(RealEvents, PlotsZoom) {
  open("fits-after-one-toggle");
  window_.show_view("roofline");
  RooflineChart& roof = window_.roofline();
  ASSERT_FALSE(roof.scene().points.empty());
  const QPoint first = roof.place(0);
  ASSERT_TRUE(person_.wheel(roof, -4, roof.rect().center()));
  EXPECT_NE(roof.place(0), first);
  roof.setFocus();
  ASSERT_TRUE(person_.key("Home"));
  EXPECT_EQ(roof.place(0), first);
}

// Ways are looked for by themselves; arrows preview, Enter applies one as a single step, Ctrl+Z takes it back.
TEST_F(RealEvents, AWayIsPreviewedAppliedAndTakenBack) {
  open("fits-after-one-toggle");
  const std::string before = text();
  ASSERT_TRUE(person_.key("g"));
  AnswerView& answer = window_.answer();
  ASSERT_TRUE(answer.ways().hasFocus());
  ASSERT_TRUE(QTest::qWaitFor([&] { return answer.ways().count() > 0; }, event_patience_ms));
  ASSERT_TRUE(person_.key("Down"));
  ASSERT_EQ(answer.ways().current(), 0);
  EXPECT_TRUE(QTest::qWaitFor([&] { return answer.picture().has_outline(); }, event_patience_ms));
  EXPECT_EQ(text(), before);
  const std::string wanted = answer.text_of(0);
  const double rate = answer.document()->ways[0].figures.tokens_per_second;
  ASSERT_TRUE(person_.key("Return"));
  EXPECT_EQ(text(), wanted);
  settle();
  EXPECT_TRUE(window_.session().outcome()->result().fits());
  EXPECT_DOUBLE_EQ(window_.session().outcome()->result().tokens_per_second, rate);  // as the row said
  ASSERT_TRUE(person_.key("ctrl+z"));
  EXPECT_EQ(text(), before);
}

// 200 actions as they come, the same each time: the window lives, no variant goes, and every text is what its steps
// made of what was opened.
TEST_F(RealEvents, TwoHundredActionsLoseNothing) {
  open("bound-by-pcie");
  open("fits-after-one-toggle");
  std::mt19937 random(20'240'611);
  const auto up_to = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const QStringList keys = {"w",      "s",      "a",      "d",      "1",      "2",       "3",           "c",
                            "f",      "Home",   "Escape", "b",      "v",      "shift+v", "ctrl+z",      "ctrl+shift+z",
                            "ctrl+1", "ctrl+2", "ctrl+3", "ctrl+4", "ctrl+5", "g",       "Down",        "Up",
                            "Return", "Tab",    "F6",     "F3",     "Left",   "Right",   "shift+Return"};
  std::map<int, std::string> opened;
  for (const auto& one : window_.session().variants()) opened[one->id] = one->document.saved_text();
  CanvasView& canvas = window_.canvas();
  for (int action = 0; action < 200; ++action) {
    if (!window_.isActiveWindow()) activate(window_);
    const int kind = up_to(10);
    if (kind < 5) {
      ASSERT_TRUE(person_.key(keys[up_to(static_cast<int>(keys.size()))])) << action;
    } else if (kind == 5 && canvas.isVisible()) {
      ASSERT_TRUE(person_.click(canvas, {up_to(canvas.width()), up_to(canvas.height())})) << action;
    } else if (kind == 6 && canvas.isVisible()) {
      ASSERT_TRUE(person_.wheel(canvas, up_to(5) - 2 == 0 ? 1 : up_to(2) * 2 - 1, {up_to(canvas.width()), 100}))
          << action;
    } else if (kind == 7) {
      window_.panel().reveal("model.micro_batch");
      ASSERT_TRUE(person_.key("ctrl+a")) << action;
      ASSERT_TRUE(person_.type(QString::number(1 + up_to(6)))) << action;
      ASSERT_TRUE(person_.key("Return")) << action;
    } else if (kind == 8) {
      window_.session().edit("model.recompute", up_to(2) == 0 ? "full" : "none", false);
    } else if (kind == 9) {
      QTreeView& tree = window_.variants().tree();
      const QModelIndex row = tree.indexAt({20, 6 + 23 * up_to(4)});
      if (!row.isValid()) continue;
      ASSERT_TRUE(person_.click(*tree.viewport(), tree.visualRect(row).center())) << action;
    }
    for (const auto& one : window_.session().variants()) opened.emplace(one->id, one->document.saved_text());
  }
  ASSERT_EQ(window_.session().variants().size(), opened.size());
  ASSERT_GT(opened.size(), 2U);
  std::size_t steps = 0;
  for (const auto& one : window_.session().variants()) {
    const std::string text = one->document.text();
    const int at = one->history.index();
    one->history.setIndex(0);
    EXPECT_EQ(one->document.text(), opened[one->id]) << one->name;
    one->history.setIndex(at);
    EXPECT_EQ(one->document.text(), text) << one->name;
    steps += static_cast<std::size_t>(one->history.count());
  }
  EXPECT_GT(steps, 5U);
  activate(window_);
  QTest::qWait(100);
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.session().is_busy(); }, event_patience_ms));
}

}  // namespace
}  // namespace spillway::gui
