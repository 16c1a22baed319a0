// The answer in the middle of the window: the same document as every face has, whole on a small screen; its ways made
// and taken back.
#include <QCheckBox>
#include <QFile>
#include <QLabel>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QTableView>
#include <algorithm>
#include <fstream>

#include "base/output_file.h"
#include "gui/panels/answer_view.h"
#include "gui/panels/diagnosis_panel.h"
#include "gui/panels/way_list.h"
#include "gui/plots/answer_picture.h"
#include "gui/plots/canvas_view.h"
#include "scenario/scenario_memory.h"
#include "studies/answer/fit_answer.h"
#include "tests/gui/app/window_fixture.h"
#include "traces/formats/torch_snapshot_writer.h"

namespace spillway::gui {
namespace {

class WindowAnswer : public Window {
 protected:
  void answer(const char* name) {
    open(name);
    ASSERT_TRUE(window_.show_view("answer"));
    ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete() && view().ways().count() > 0; }, patience_ms));
    QTest::qWait(50);
  }
  [[nodiscard]] AnswerView& view() { return window_.answer(); }
  [[nodiscard]] QStringList texts() {
    QStringList found;
    for (const QLabel* const label : view().findChildren<QLabel*>())
      if (label->isVisible()) found += label->text();
    return found;
  }
};

// Verdict, names and figures are those of `spillway fit`, and each is on screen.
TEST_F(WindowAnswer, IsTheAnswerOfFit) {
  answer("fits-after-one-toggle");
  const ScenarioText& scenario = window_.session().outcome()->scenario;
  studies::FitQuestion question;
  question.what = scenario.name;
  studies::FitFindings found = studies::find_ways(
      question, studies::fit_subject(question, {scenario.text, scenario.name, scenario.folder}), {}, {});
  studies::launch_ways(0, found);
  const studies::Answer expected = studies::fit_answer(found, {});
  const studies::Answer& shown = *view().document();
  EXPECT_EQ(shown.ways_heading, expected.heading);
  EXPECT_EQ(shown.search, expected.search);
  ASSERT_EQ(shown.ways.size(), expected.ways.size());
  ASSERT_EQ(view().ways().count(), static_cast<int>(expected.ways.size()));
  const QStringList said = texts();
  const auto has = [&](const std::string& text) { return said.contains(QString::fromStdString(text)); };
  EXPECT_TRUE(has(shown.heading)) << shown.heading;
  EXPECT_TRUE(has(expected.heading)) << expected.heading;
  for (std::size_t i = 0; i < expected.ways.size(); ++i) {
    EXPECT_EQ(shown.ways[i].name, expected.ways[i].name);
    EXPECT_EQ(shown.ways[i].figures.fingerprint, expected.ways[i].figures.fingerprint);
    EXPECT_TRUE(has(expected.ways[i].name)) << expected.ways[i].name;
    EXPECT_TRUE(has(expected.ways[i].figures.step)) << expected.ways[i].figures.step;
    EXPECT_TRUE(has(studies::room_words(expected.ways[i].figures)));
  }
}

// At the size of a small laptop memory, the GPU's stream and three ways are in sight, and no row is cut at the side.
TEST_F(WindowAnswer, ASmallScreenShowsIt) {
  window_.resize(1280, 720);
  answer("fits-after-one-toggle");
  EXPECT_EQ(window_.height(), 720);
  const QRect page = window_.rect();
  const auto place = [&](const QWidget& of) { return QRect(of.mapTo(&window_, QPoint(0, 0)), of.size()); };
  EXPECT_TRUE(page.contains(place(view().picture())));
  EXPECT_EQ(view().picture().visibleRegion().boundingRect(), view().picture().rect());  // its last row is the axis
  ASSERT_GE(view().ways().count(), 3);
  for (int way = 0; way < view().ways().count(); ++way) {
    const QWidget& row = view().ways().row(way);
    if (way < 3) {
      EXPECT_EQ(row.visibleRegion().boundingRect(), row.rect()) << way;
    }
    const QWidget* viewport = row.parentWidget();
    while (!viewport->parentWidget()->inherits("QScrollArea")) viewport = viewport->parentWidget();
    EXPECT_LE(row.mapTo(viewport, QPoint(row.width(), 0)).x(), viewport->width()) << way;
    EXPECT_GE(row.width(), row.minimumSizeHint().width()) << way;
  }
}

// One step that is taken back; what was found of the scenario before is there again without a search.
TEST_F(WindowAnswer, AWayIsMadeAndTakenBack) {
  answer("fits-after-one-toggle");
  const std::string before = window_.session().document()->text();
  const std::string found = view().document()->ways_heading;
  const std::string wanted = view().text_of(0);
  view().ways().choose(0);
  EXPECT_TRUE(QTest::qWaitFor([this] { return view().picture().has_outline(); }, patience_ms));
  QTest::mouseClick(&view().ways().apply_button(0), Qt::LeftButton);
  EXPECT_EQ(window_.session().document()->text(), wanted);
  settle();
  EXPECT_TRUE(window_.session().outcome()->result().fits());
  window_.session().undo();
  settle();
  EXPECT_EQ(window_.session().document()->text(), before);
  view().search();
  EXPECT_FALSE(view().is_searching());
  EXPECT_EQ(view().document()->ways_heading, found);
}

// Ways that are ticked become one variant, with the edits of each.
TEST_F(WindowAnswer, TickedWaysAreCombined) {
  answer("fits-after-one-toggle");
  const std::string before = window_.session().document()->text();
  const auto ticks = view().ways().findChildren<QCheckBox*>();
  ASSERT_GE(ticks.size(), 3);
  const std::string wanted = view().text_of(std::vector<int>{0, 2});
  EXPECT_NE(wanted, view().text_of(0));
  for (QCheckBox* const tick : {ticks[0], ticks[2]}) tick->setChecked(true);
  QPushButton* combine = nullptr;
  for (QPushButton* const button : view().findChildren<QPushButton*>())
    if (button->isVisible() && button->text() == "Combine 2") combine = button;
  ASSERT_NE(combine, nullptr);
  const int parent = window_.session().current();
  QTest::mouseClick(combine, Qt::LeftButton);
  EXPECT_EQ(window_.session().variant(window_.session().current())->parent, parent);
  EXPECT_EQ(window_.session().document()->text(), wanted);
  EXPECT_EQ(window_.session().variant(parent)->document.text(), before);
  settle();
}

// For Perfetto: the replay, with its counters; and a name that says what it is to be.
TEST_F(WindowAnswer, TheTimelineIsExported) {
  open("wears-out-its-drives");
  const QString file = folder_.filePath("timeline.json");
  EXPECT_FALSE(window_.export_timeline(folder_.filePath("timeline.txt")));
  ASSERT_TRUE(window_.export_timeline(file));
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.is_exporting(); }, patience_ms));
  QFile written(file);
  ASSERT_TRUE(written.open(QIODevice::ReadOnly));
  const QByteArray text = written.readAll();
  for (const char* const part : {"PCIe from GPU", "Drive queue", "reserved bytes", "\"tensor\": \""})
    EXPECT_TRUE(text.contains(part)) << part;
  ASSERT_TRUE(window_.export_timeline(folder_.filePath("timeline.png")));
}

// A snapshot's answer names the line, as `spillway explain` does.
TEST_F(WindowAnswer, ASnapshotNamesItsLine) {
  window_.open(QString::fromStdString(root + "/traces/data/ran-out/snapshot.pickle"));
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.session().is_busy(); }, patience_ms));
  ASSERT_TRUE(window_.show_view("answer"));
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms));
  const studies::Answer& shown = *view().document();
  EXPECT_NE(shown.heading.find("loss.py:9"), std::string::npos) << shown.heading;
  EXPECT_TRUE(texts().contains(QString::fromStdString(shown.heading)));
  EXPECT_EQ(shown.why.kind, "line");
  ASSERT_EQ(shown.stages.size(), 1U);
  const auto legend = view().picture().legend();
  ASSERT_GT(legend.size(), 2U);
  EXPECT_NE(legend[0].first, legend[1].first);
  EXPECT_EQ(view().ways().count(), static_cast<int>(shown.ways.size()));  // its own: there is nothing to search
  EXPECT_FALSE(view().is_searching());
  // The canvas tells blocks apart by the same lines, in the same colours.
  ASSERT_TRUE(window_.show_view("map"));
  const auto& owners = window_.canvas().memory()->owners.owners();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(owners[i].words, legend[i].second.toStdString());
    EXPECT_EQ(light_theme()[owners[i].token], legend[i].first);
  }
  // The stack of a block that is chosen is beside the table.
  for (QTableView* const table : window_.findChildren<QTableView*>())
    if (table->accessibleName() == "Selection")
      QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(0, 0)).center());
  ASSERT_TRUE(window_.canvas().chosen_block().has_value());
  const auto* const frames = window_.findChild<QPlainTextEdit*>();
  EXPECT_TRUE(frames->isVisible());
  EXPECT_TRUE(frames->toPlainText().contains(".py:")) << frames->toPlainText().toStdString();
}

// Of a step of several parts the last is drawn: what is drawn is said, and the others are in the answer.
TEST_F(WindowAnswer, APartThatIsDrawnIsNamed) {
  const QString file = folder_.filePath("group.json");
  std::ofstream(file.toStdString())
      << R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "layers": 2, "sequence": 512,
             "micro_batch": 4, "loss": "group", "prompt_tokens": 128, "rollout_group": 4, "rollout_memory": 0.2,
             "reference": "model", "framework": "huggingface"}, "hardware": {"profile": "h100-80gb-1gpu"}})";
  window_.open(file);
  settle();
  const Result& result = window_.session().outcome()->result();
  ASSERT_EQ(result.phases.size(), 3U);
  ASSERT_TRUE(window_.show_view("canvas"));
  const auto* const drawn = window_.findChild<QLabel*>("drawn part");
  EXPECT_TRUE(drawn->isVisible());
  EXPECT_TRUE(drawn->text().startsWith("drawn: training, ")) << drawn->text().toStdString();
  EXPECT_LT(result.replayed, result.step_time);
  ASSERT_TRUE(window_.show_view("answer"));
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.diagnosis().diagnosed() != nullptr; }, patience_ms));
  QTest::qWait(50);  // labels made anew are in sight then
  EXPECT_TRUE(texts().contains("Memory over time, training")) << texts().join(" | ").toStdString();
  for (const PhaseResult& phase : result.phases) {
    const auto said = texts().filter(QString::fromStdString(phase.name));
    EXPECT_FALSE(said.isEmpty()) << phase.name;
  }
  EXPECT_NE(view().document()->when.find(" into the training."), std::string::npos) << view().document()->when;
  open("fits-after-one-toggle");
  ASSERT_TRUE(window_.show_view("canvas"));
  EXPECT_FALSE(drawn->isVisible());
}

// Of a snapshot that ran out of nothing a click says which GPU it is to fit.
TEST_F(WindowAnswer, AsksWhichGpuWhereNoLimitIsKnown) {
  open("fits-after-one-toggle");
  const auto outcome = window_.session().outcome();
  const std::string file = folder_.filePath("kept.pickle").toStdString();
  OutputFile out(file);
  const PlacedAllocations placed = placed_allocations(outcome->loaded, outcome->run);
  write_allocator_snapshot(placed.trace, out, {});
  out.commit();
  window_.open(QString::fromStdString(file));
  ASSERT_TRUE(QTest::qWaitFor([this] { return !window_.session().is_busy(); }, patience_ms));
  ASSERT_TRUE(window_.show_view("answer"));
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms));
  ASSERT_TRUE(view().which_gpu().isVisible());
  const auto choices = view().which_gpu().menu()->actions();
  const auto smallest =
      std::find_if(choices.begin(), choices.end(), [](const QAction* one) { return one->text().contains("RTX 4090"); });
  ASSERT_NE(smallest, choices.end());
  (*smallest)->trigger();
  settle();
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms));
  EXPECT_FALSE(view().which_gpu().isVisible());
  EXPECT_EQ(view().document()->answer, Verdict::does_not_fit) << view().document()->heading;
  EXPECT_GT(view().document()->stages.at(0).capacity, Bytes(0));
}

}  // namespace
}  // namespace spillway::gui
