// The three journeys, by mouse and keys, in a real window (offscreen, or under Xvfb).
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDialog>
#include <QDoubleSpinBox>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMouseEvent>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>
#include <QTimer>
#include <QTreeView>
#include <QWheelEvent>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "gui/panels/diagnosis_panel.h"
#include "gui/panels/holders_panel.h"
#include "gui/panels/scenario_panel.h"
#include "gui/panels/start_page.h"
#include "gui/panels/training_run_dialog.h"
#include "gui/plots/canvas_view.h"
#include "studies/diagnosis/training_run_words.h"
#include "tests/gui/app/window_fixture.h"

namespace spillway::gui {
namespace {

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
  EXPECT_TRUE(figure(0).starts_with("does not fit: ") && figure(0).find(" short on the GPU's ") != std::string::npos)
      << figure(0);
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
  std::ifstream page(report.toStdString());
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_NE(text.find("\"schema\":\"spillway-answer\""), std::string::npos);
  EXPECT_NE(text.find("--set model.recompute=full"), std::string::npos);
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
         {"answer", "timeline", "memory", "map", "sensitivity", "pareto", "roofline", "pipeline", "compare"}) {
      ASSERT_TRUE(window_.show_view(view));
      ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms));
      EXPECT_FALSE(window_.grab().isNull()) << view;
    }
  }
  EXPECT_FALSE(window_.show_view("nothing"));
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

// Whoever holds it, what is stacked is what is allocated: also where a capture's allocations have no addresses.
TEST_F(Window, OwnersSumToWhatIsAllocated) {
  window_.open(QString::fromStdString(root + "/cli/scenarios/gpt2-tiny-captured-cpu.json"));
  settle();
  const auto& memory = window_.session().outcome()->fullest.memory;
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->owners.peak(), memory->allocated.peak());
  for (int part = 0; part < 100; ++part) {
    const std::int64_t at = memory->whole.begin + memory->whole.length() * part / 100;
    const OwnerStack::Held held = memory->owners.at(at);
    EXPECT_EQ(OwnerStack::sum(held), memory->allocated.value_at(at));
    EXPECT_TRUE(std::all_of(held.begin(), held.end(), [](std::int64_t bytes) { return bytes >= 0; }));
  }
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

// Whatever takes keys in a view is reached by Tab from where the view's own key leads.
TEST_F(Window, TabReachesEverythingOfAView) {
  open("bound-by-pcie");
  QTabWidget* views = nullptr;
  for (QTabWidget* const tabs : window_.findChildren<QTabWidget*>())
    if (tabs->accessibleName() == "Views") views = tabs;
  ASSERT_NE(views, nullptr);
  for (int i = 0; i < views->count(); ++i) {
    views->setCurrentIndex(i);
    QTest::qWait(20);
    QWidget* const page = views->currentWidget();
    page->setFocus();
    std::set<const QWidget*> reached;
    while (QApplication::focusWidget() != nullptr && reached.insert(QApplication::focusWidget()).second)
      QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
    const auto there = page->findChildren<QWidget*>();
    for (const QWidget* const widget : there) {
      if (!widget->isVisible() || !widget->isEnabled() || (widget->focusPolicy() & Qt::TabFocus) == 0) continue;
      if (widget->focusProxy() != nullptr || widget->parentWidget()->inherits("QAbstractScrollArea")) continue;
      EXPECT_TRUE(reached.count(widget) != 0)
          << views->tabText(i).toStdString() << ": " << widget->metaObject()->className() << " "
          << widget->accessibleName().toStdString();
    }
  }
}

// A table that takes Tab for its cells never gives the keyboard back.
TEST_F(Window, NoTableKeepsTheKeyboard) {
  const auto tables = window_.findChildren<QAbstractItemView*>();
  EXPECT_GT(tables.size(), 3);
  for (const QAbstractItemView* const table : tables)
    EXPECT_FALSE(table->tabKeyNavigation()) << table->accessibleName().toStdString();
}

// Every key of the canvas that does something is in the dialog of keys, and every one there does.
TEST_F(Window, KeysOfTheDialogAreThoseThereAre) {
  open("bound-by-pcie");
  std::set<QString> listed;
  for (const KeyRow& row : window_.keys()) {
    EXPECT_FALSE(row.words.isEmpty());
    EXPECT_FALSE(row.text().isEmpty()) << row.words.toStdString();
    for (const QString& key : row.keys)
      EXPECT_TRUE(listed.insert(QKeySequence(key).toString()).second) << key.toStdString();
  }
  for (const QAction* const action : window_.actions())
    for (const QKeySequence& sequence : action->shortcuts())
      EXPECT_EQ(listed.count(sequence.toString()), 1U) << action->text().toStdString();
  const auto answers = [&](const QKeySequence& sequence) {
    window_.time().select(TimeRange{1'000'000'000, 2'000'000'000});  // for F
    const QKeyCombination keys = sequence[0];
    QKeyEvent press(QEvent::KeyPress, keys.key(), keys.keyboardModifiers());
    QApplication::sendEvent(&window_.canvas(), &press);
    return press.isAccepted();
  };
  for (const KeyRow& row : canvas_keys())
    for (const QString& key : row.keys) EXPECT_TRUE(answers(QKeySequence(key))) << key.toStdString();
  for (int key = Qt::Key_Space; key <= Qt::Key_Z; ++key)
    for (const int modifier : {0, static_cast<int>(Qt::ShiftModifier)}) {
      if (key == Qt::Key_Plus) continue;  // needs Shift on some keyboards
      const QKeySequence sequence(key | modifier);
      const bool is_listed = listed.count(sequence.toString()) > 0;
      EXPECT_TRUE(is_listed || !answers(sequence)) << sequence.toString().toStdString();
    }
}

// A range of the tracks that are dragged over with Alt: only what lies there is summed up.
TEST_F(Window, AreasAreOfSomeTracks) {
  open("wears-out-its-drives");
  CanvasView& canvas = window_.canvas();
  const auto middle_of = [&](const char* name) {
    int y = canvas_top;
    for (const Track& track : canvas.tracks()) {
      if (track.name == name) return y + track.height() / 2;
      y += track.height();
    }
    return -1;
  };
  const int phase = middle_of("phase"), memory = middle_of("memory");
  ASSERT_GT(phase, memory);
  const auto drag = [&](int from_y, int to_y, Qt::KeyboardModifiers modifiers) {
    QTest::mousePress(&canvas, Qt::LeftButton, modifiers, QPoint(canvas.width() / 2, from_y));
    for (const int part : {1, 2, 3}) {
      const QPoint at(canvas.width() / 2 + 40 * part, from_y + (to_y - from_y) * part / 3);
      QMouseEvent move(QEvent::MouseMove, at, canvas.mapToGlobal(at), Qt::NoButton, Qt::LeftButton, modifiers);
      QApplication::sendEvent(&canvas, &move);
    }
    QTest::mouseRelease(&canvas, Qt::LeftButton, modifiers, QPoint(canvas.width() / 2 + 120, to_y));
  };
  drag(memory, phase, Qt::AltModifier);
  ASSERT_TRUE(window_.time().selection().has_value());
  EXPECT_TRUE(canvas.has_area());
  EXPECT_TRUE(canvas.area_has_memory());
  EXPECT_TRUE(canvas.lanes_in_area().empty());  // memory, counters and phases
  EXPECT_EQ(window_.selection().rowCount(), 0);
  const int stream = middle_of("stream 7");
  ASSERT_GT(stream, phase);
  drag(stream, stream, Qt::AltModifier);
  EXPECT_EQ(canvas.area_tracks(), 1U);
  EXPECT_FALSE(canvas.area_has_memory());
  EXPECT_EQ(canvas.lanes_in_area().size(), 1U);
  const int of_stream = window_.selection().rowCount();
  EXPECT_GT(of_stream, 0);
  for (int row = 0; row < of_stream; ++row)
    EXPECT_EQ(window_.selection().index(row, 1).data().toString(), "stream 7") << row;
  drag(stream, stream, {});  // without Alt: of all tracks
  EXPECT_FALSE(canvas.has_area());
  EXPECT_GT(window_.selection().rowCount(), of_stream);
}

// Ctrl and the wheel over the address map zoom in addresses, and in nothing else; Home shows all of them again.
TEST_F(Window, TheMapZoomsInAddresses) {
  open("fits-after-one-toggle");
  CanvasView& canvas = window_.canvas();
  const TimeRange view = window_.time().view();
  canvas.setFocus();
  EXPECT_FALSE(canvas.map_view().has_value());
  QTest::keyClick(&canvas, Qt::Key_W, Qt::ShiftModifier);
  ASSERT_TRUE(canvas.map_view().has_value());
  const TimeRange once = *canvas.map_view();
  QTest::keyClick(&canvas, Qt::Key_W, Qt::ShiftModifier);
  EXPECT_LT(canvas.map_view()->length(), once.length());
  QTest::keyClick(&canvas, Qt::Key_D, Qt::ShiftModifier);
  EXPECT_GT(canvas.map_view()->end, once.begin);
  EXPECT_EQ(window_.time().view(), view);
  QTest::keyClick(&canvas, Qt::Key_Home);
  EXPECT_FALSE(canvas.map_view().has_value());
  canvas.reveal(TrackKind::map);
  int y = canvas.height() - 30;  // the map is the last track
  const QPointF at(canvas.width() / 2.0, y);
  QWheelEvent wheel(at, canvas.mapToGlobal(at), {}, QPoint(0, 120), Qt::NoButton, Qt::ControlModifier,
                    Qt::NoScrollPhase, false);
  QApplication::sendEvent(&canvas, &wheel);
  EXPECT_TRUE(canvas.map_view().has_value());
  EXPECT_EQ(window_.time().view(), view);
}

// Who holds memory adds up to the peak, owner by owner; a click opens what is in it, and leads to the block.
TEST_F(Window, HoldersAddUp) {
  open("fits-after-one-toggle");
  ASSERT_TRUE(window_.show_view("treemap"));
  HeldView& view = window_.holders().view();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !view.cells().empty(); }, patience_ms));
  ASSERT_NE(view.whole(), nullptr);
  EXPECT_EQ(view.whole()->bytes.count(), window_.session().outcome()->fullest.memory->owners.peak());
  Bytes sum{};
  for (const studies::HeldNode& owner : view.whole()->children) sum += owner.bytes;
  EXPECT_EQ(sum, view.whole()->bytes);
  view.setFocus();
  const studies::HeldNode* const all = view.whole();
  for (int level = 0; level < 2; ++level) {  // an owner, a layer
    QTest::keyClick(&view, Qt::Key_Down);
    QTest::keyClick(&view, Qt::Key_Return);
  }
  EXPECT_NE(view.whole(), all);
  QTest::keyClick(&view, Qt::Key_Down);
  QTest::keyClick(&view, Qt::Key_Return);  // the largest tensor of it
  EXPECT_TRUE(window_.canvas().chosen_block().has_value());
  ASSERT_TRUE(window_.show_view("flame"));
  QTest::keyClick(&view, Qt::Key_Home);
  EXPECT_EQ(view.cells().front().node, all);
}

// What made a recorded step slow is found beside the window; a row leads to its place on the canvas.
TEST_F(Window, ADiagnosisLeadsToItsPlace) {
  window_.open(QString::fromStdString(root + "/cli/scenarios/gpt2-tiny-captured-cpu.json"));
  settle();
  ASSERT_TRUE(window_.show_view("diagnosis"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.diagnosis().diagnosed() != nullptr; }, patience_ms));
  const auto found = window_.diagnosis().diagnosed();
  ASSERT_TRUE(found->step.has_value());
  const auto outcome = window_.session().outcome();
  const auto expected = studies::diagnose_capture(outcome->loaded, outcome->run);
  ASSERT_EQ(found->step->reliefs.size(), expected->reliefs.size());
  for (std::size_t i = 0; i < expected->reliefs.size(); ++i)
    EXPECT_EQ(found->step->reliefs[i].step_time, expected->reliefs[i].step_time);
  QAbstractItemModel& rows = *window_.diagnosis().rows().model();
  ASSERT_GT(rows.rowCount(), 1);
  const QModelIndex first = rows.index(0, 0, rows.index(0, 0));
  ASSERT_TRUE(first.isValid());
  const TimeRange before = window_.time().view();
  window_.time().set_view({0, 1'000'000'000});
  QTest::mouseClick(window_.diagnosis().rows().viewport(), Qt::LeftButton, {},
                    window_.diagnosis().rows().visualRect(first).center());
  EXPECT_NE(window_.time().view(), (TimeRange{0, 1'000'000'000}));
  EXPECT_NE(before, (TimeRange{0, 1'000'000'000}));
  // A generated step has none, and says what does.
  open("bound-by-pcie");
  EXPECT_EQ(window_.diagnosis().diagnosed(), nullptr);
}

// What `run --tokens` says, typed into a dialog.
TEST_F(Window, AWholeTrainingRun) {
  window_.open(bundled("wears-out-its-drives"));
  settle();
  const std::shared_ptr<const Outcome> outcome = window_.session().outcome();
  TrainingRunDialog dialog(&window_, outcome, "spillway run s.json");
  const auto child = [&](const char* name) { return dialog.findChild<QLabel*>(name)->text(); };
  const auto all_of = [&](const studies::TrainingRun& run) {
    for (const auto& [name, words] : studies::training_run_rows(run, outcome->result()))
      EXPECT_TRUE(child("training run answer").contains(QString::fromStdString(words).toHtmlEscaped())) << words;
  };
  all_of(studies::training_run(outcome->loaded, outcome->result(), 10'000));
  QLineEdit* const steps = dialog.findChildren<QLineEdit*>().at(0);
  QLineEdit* const tokens = dialog.findChildren<QLineEdit*>().at(1);
  QTest::keyClicks(tokens, "3e12");
  EXPECT_EQ(steps->text(), "");
  const std::int64_t most = studies::steps_for_tokens(outcome->loaded, 3e12, "");
  all_of(studies::training_run(outcome->loaded, outcome->result(), most));
  EXPECT_TRUE(child("training run answer").contains("worn out by step"));
  EXPECT_EQ(child("training run command"), "spillway run s.json --tokens 3e12");
  QTest::keyClicks(steps, "1e4");
  EXPECT_EQ(child("training run answer"), "A number of steps, 1 or more.") << "as the command line has it";
  steps->clear();
  QTest::keyClicks(steps, "0");
  EXPECT_EQ(child("training run answer"), "A number of steps, 1 or more.");
  EXPECT_EQ(child("training run command"), "");
}

// A letter opens one entry of a menu.
TEST_F(Window, MenusLettersAreTheirOwn) {
  const QList<QAction*> menus = window_.menuBar()->actions();
  ASSERT_GE(menus.size(), 4);
  for (const QAction* const menu : menus) {
    std::set<QString> letters;
    for (const QAction* const entry : menu->menu()->actions()) {
      const qsizetype at = entry->text().indexOf('&');
      const QString letter = at < 0 ? QString() : entry->text().mid(at + 1, 1).toLower();
      EXPECT_TRUE(letter.isEmpty() || letters.insert(letter).second) << entry->text().toStdString();
    }
  }
}

// The keys' button is in reach on a small screen.
TEST_F(Window, TheKeysFitTheScreen) {
  QTimer::singleShot(0, &window_, [&] {
    auto* const keys = window_.findChild<QDialog*>("keys");
    ASSERT_NE(keys, nullptr);
    EXPECT_LE(keys->height(), window_.screen()->availableGeometry().height());
    EXPECT_FALSE(keys->findChild<QScrollArea*>()->horizontalScrollBar()->isVisible());
    keys->reject();
  });
  QTest::keyClick(&window_, Qt::Key_F1);
}

}  // namespace
}  // namespace spillway::gui
