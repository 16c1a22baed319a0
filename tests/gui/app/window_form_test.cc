// What the window looks like, as far as a program can tell: words and marks, what has room, what fills it.
#include <gtest/gtest.h>

#include <QAbstractItemModel>
#include <QAbstractItemView>
#include <QFrame>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QTabWidget>
#include <QTableView>
#include <set>

#include "gui/panels/compare_view.h"
#include "gui/panels/start_page.h"
#include "gui/plots/canvas_view.h"
#include "sim/replay/result.h"
#include "tests/gui/app/window_fixture.h"

namespace spillway::gui {
namespace {

// All that is to be read in the window now: labels, buttons, titles of tabs, tables.
QStringList words_of(const QWidget& window) {
  QStringList words = {window.windowTitle()};
  const auto take = [&words](const auto& widgets) {
    for (const auto* const one : widgets)
      if (one->isVisible()) words.append(one->text());
  };
  take(window.findChildren<QLabel*>());
  take(window.findChildren<QPushButton*>());
  for (const QTabWidget* const tabs : window.findChildren<QTabWidget*>())
    for (int i = 0; tabs->isVisible() && i < tabs->count(); ++i) words.append(tabs->tabText(i));
  for (const QAbstractItemView* const view : window.findChildren<QAbstractItemView*>()) {
    const QAbstractItemModel* const model = view->isVisible() ? view->model() : nullptr;
    for (int column = 0; model != nullptr && column < model->columnCount(); ++column) {
      words.append(model->headerData(column, Qt::Horizontal).toString());
      for (int row = 0; row < model->rowCount(); ++row) words.append(model->index(row, column).data().toString());
    }
  }
  return words;
}

// One word for one thing, in the strip, in what helps and in a comparison; none of those of the code.
TEST_F(Window, ThereIsOneVocabulary) {
  open("bound-by-pcie");
  window_.session().branch("other");
  window_.session().edit("model.micro_batch", "2", false);
  settle();
  std::set<QString> bindings;
  for (int i = 0; i < binding_count; ++i) bindings.insert(QString::fromUtf8(describe(static_cast<Binding>(i)).data()));
  const ShownFigure& binds = window_.strip().shown().at(1);
  EXPECT_TRUE(bindings.count(QString::fromStdString(binds.value))) << binds.value;
  const QRegularExpression words_of_code(R"(\bhbm\b|\bcompute\b|new scenario|\bdon't\b|\bas it is\b|\b[0-9a-f]{16}\b)");
  for (const char* const view : {"canvas", "sensitivity", "roofline", "compare", "treemap", "answer", "diagnosis"}) {
    ASSERT_TRUE(window_.show_view(view));
    ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms)) << view;
    for (const QString& text : words_of(window_))
      EXPECT_FALSE(text.contains(words_of_code)) << view << ": " << text.toStdString();
  }
  ASSERT_TRUE(window_.show_view("compare"));
  const QAbstractItemModel& table = window_.compare().model();
  bool is_compared = false;
  for (int row = 0; row < table.rowCount(); ++row) {
    if (table.index(row, 0).data().toString() != "limited by") continue;
    is_compared = true;
    for (int column = 1; column < table.columnCount(); ++column) {
      const QString text = table.index(row, column).data().toString();
      EXPECT_TRUE(bindings.count(text)) << text.toStdString();
    }
  }
  EXPECT_TRUE(is_compared);
}

// At the size of a small laptop the tracks have their room, no answer is cut, and a table fills its place.
TEST_F(Window, ASmallScreenHasRoom) {
  window_.resize(1280, 720);
  for (const char* const example : {"bound-by-pcie", "fits-after-one-toggle", "wears-out-its-drives"}) {
    open(example);
    QTest::qWait(50);
    EXPECT_EQ(window_.height(), 720);
    EXPECT_GE(window_.canvas().height(), 240) << example;
    EXPECT_GE(window_.canvas().width(), 900) << example;
    for (const QLabel* const label : window_.strip().findChildren<QLabel*>())
      EXPECT_FALSE(label->isVisible() && label->text().contains(QChar(0x2026))) << label->text().toStdString();
    for (const QTableView* const table : window_.findChildren<QTableView*>()) {
      if (!table->isVisible() || table->model()->rowCount() == 0) continue;
      constexpr double least_filled = 0.95;
      EXPECT_GE(table->horizontalHeader()->length(), least_filled * table->viewport()->width())
          << example << ": " << table->accessibleName().toStdString();
    }
  }
}

// The examples are on the first page, all in sight on a small screen, each with its memory and verdict.
TEST_F(Window, ExamplesShowWhatTheyComeTo) {
  window_.resize(1280, 720);
  ASSERT_TRUE(QTest::qWaitFor([this] { return window_.is_complete(); }, patience_ms));
  for (const char* const example : {"bound-by-pcie", "fits-after-one-toggle", "wears-out-its-drives"})
    EXPECT_FALSE(window_.start_page().stamp_of(bundled(example)).isNull()) << example;
  EXPECT_TRUE(words_of(window_).filter(QRegularExpression("^Short ")).size() >= 1);
  EXPECT_EQ(window_.height(), 720);
  const QRect page = window_.rect();
  for (const std::vector<QPushButton*>* const buttons :
       {&window_.start_page().starts(), &window_.start_page().others()})
    for (const QPushButton* const button : *buttons) {
      const QRect place(button->mapTo(&window_, QPoint(0, 0)), button->size());
      EXPECT_TRUE(page.contains(place)) << button->text().toStdString();
    }
}

// What a figure rests on is marked beside it, and said in words where the mark can't be seen; what is not known rests
// on nothing.
TEST_F(Window, FiguresSayWhatTheyRestOn) {
  open("bound-by-pcie");
  const auto ground = [this](const std::string& id) {
    for (const ShownFigure& figure : window_.strip().shown())
      if (figure.id == id) return figure.ground;
    return Ground::unknown;
  };
  EXPECT_NE(ground("step-time"), Ground::unknown);
  EXPECT_NE(ground("step-time"), Ground::measured);  // of the profiles bundled, none of this card is
  EXPECT_EQ(ground("pcie"), Ground::known);
  EXPECT_EQ(ground("ssd-life"), Ground::unknown);  // nothing is written
  int marked = 0;
  for (const QFrame* const cell : window_.strip().findChildren<QFrame*>("answer"))
    marked += cell->accessibleDescription().contains("rests on") ? 1 : 0;
  EXPECT_GE(marked, 4);
  open("wears-out-its-drives");
  EXPECT_NE(ground("ssd-life"), Ground::unknown);
  window_.open(QString::fromStdString(root + "/cli/scenarios/gpt2-tiny-captured-cpu.json"));
  settle();
  EXPECT_EQ(ground("step-time"), Ground::measured);
  EXPECT_EQ(ground("verdict"), Ground::unknown);  // it ran on no GPU
  window_.session().edit("what_if.host", "2", false);
  settle();
  EXPECT_NE(ground("step-time"), Ground::measured);
}

// What is found is counted: which it is of how many.
TEST_F(Window, FoundWorkIsCounted) {
  open("bound-by-pcie");
  QTest::keyClick(&window_, Qt::Key_F, Qt::ControlModifier);
  auto* const line = qobject_cast<QLineEdit*>(window_.focusWidget());
  ASSERT_NE(line, nullptr);
  const QRegularExpression count(R"(\b(\d+) of (\d+)\b)");
  const auto shown = [&] {
    const auto match = count.match(window_.findChild<QLabel*>("found count")->text());
    return std::pair(match.captured(1).toInt(), match.captured(2).toInt());
  };
  QTest::keyClicks(line, "dgrad");
  QTest::keyClick(line, Qt::Key_Return);
  const auto first = shown();
  EXPECT_GT(first.second, 10);
  QTest::keyClick(line, Qt::Key_F3);
  EXPECT_EQ(shown().second, first.second);
  EXPECT_NE(shown().first, first.first);
}

}  // namespace
}  // namespace spillway::gui
