// One journey through all that the window is for, at two sizes of the screen and in both themes: a verdict is read, a
// way previewed, made, taken back, ways combined; another goal, another reserve; a sweep by other axes; files written.
// Nothing that is in sight is cut.
#include <QAccessible>
#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QTabBar>
#include <algorithm>
#include <filesystem>
#include <set>

#include "gui/panels/answer_view.h"
#include "gui/panels/start_page.h"
#include "gui/panels/sweep_view.h"
#include "gui/panels/way_list.h"
#include "gui/plots/answer_picture.h"
#include "gui/plots/canvas_view.h"
#include "gui/plots/charts.h"
#include "tests/gui/app/journey.h"
#include "tests/test_size.h"

namespace spillway::gui {
namespace {

struct Look {
  QSize size;
  bool dark = false;
};

class JourneyOfALook : public Journey, public testing::WithParamInterface<Look> {
 protected:
  JourneyOfALook() {
    window_.set_theme(GetParam().dark ? dark_theme() : light_theme());
    window_.setGeometry(QRect(QPoint(0, 0), GetParam().size));
    window_.findChild<QTabWidget*>("views")->setCurrentIndex(0);  // the answer
    EXPECT_TRUE(until([this] { return window_.size() == GetParam().size; }));
  }
  [[nodiscard]] std::string look() const {
    return std::to_string(GetParam().size.width()) + (GetParam().dark ? "-dark" : "-light");
  }
  void shown(const std::string& name) {
    picture((look() + "-" + name).c_str());
    EXPECT_EQ(window_.size(), GetParam().size) << name;
    EXPECT_EQ(cut(), std::set<std::string>()) << name;
  }
  // Texts in sight that have less room than they take, and don't say the rest in a tip.
  std::set<std::string> cut() {
    std::set<std::string> found;
    const auto note = [&](const QWidget& of, const QString& text, int room, int needed) {
      if (needed > room + 1 && of.toolTip().isEmpty())
        found.insert(of.metaObject()->className() + (": " + text).toStdString() + ", " + std::to_string(needed) +
                     " of " + std::to_string(room));
    };
    for (const QLabel* const label : window_.findChildren<QLabel*>()) {
      if (!label->isVisible() || label->text().isEmpty() || label->visibleRegion().isEmpty()) continue;
      if (label->wordWrap())
        note(*label, label->text(), label->height(), label->heightForWidth(label->width()));
      else if (label->textFormat() != Qt::RichText)
        note(*label, label->text(), label->width(), label->fontMetrics().size(0, label->text()).width());
    }
    for (const QAbstractButton* const button : window_.findChildren<QAbstractButton*>())
      if (button->isVisible() && !button->text().isEmpty())
        note(*button, button->text(), button->width(),
             button->fontMetrics().size(Qt::TextShowMnemonic, button->text()).width());
    for (const QComboBox* const box : window_.findChildren<QComboBox*>())
      if (box->isVisible())
        note(*box, box->currentText(), box->width(), box->fontMetrics().horizontalAdvance(box->currentText()) + 20);
    return found;
  }
  [[nodiscard]] bool is_in_sight(const QWidget& of) const {
    return of.isVisible() && of.visibleRegion().boundingRect() == of.rect();
  }
  // As a screen reader has it.
  [[nodiscard]] std::string heard() {
    QAccessibleInterface* const face = QAccessible::queryAccessibleInterface(window_.findChild<QLabel*>("heading"));
    return face == nullptr ? "" : face->text(QAccessible::Name).toStdString();
  }
  void open_by_keys(const QString& name) {
    in_dialog([this, name](QFileDialog& /*dialog*/) {
      ASSERT_TRUE(person_.type(name));
      ASSERT_TRUE(person_.key("Return"));
    });
    ASSERT_TRUE(person_.key("ctrl+o"));
    back_in_window();
  }
  void export_by_menu(const QString& action, const QString& name) {
    in_dialog([this, name](QFileDialog& /*dialog*/) {
      ASSERT_TRUE(person_.key("ctrl+a"));
      ASSERT_TRUE(person_.type(name));
      ASSERT_TRUE(person_.key("Return"));
    });
    menu("File", action);
    const std::string path = folder_.filePath(name).toStdString();
    ASSERT_TRUE(until([&] { return std::filesystem::exists(path) && std::filesystem::file_size(path) > 1'000; }))
        << path;
    ASSERT_TRUE(until([&] { return !window_.is_exporting(); }));
    back_in_window();
  }
  void ways_found() {
    ASSERT_TRUE(until([this] { return window_.is_complete() && window_.answer().ways().count() > 2; }));
    QTest::qWait(60);
  }
};

TEST_P(JourneyOfALook, ThroughAll) {
  QFile::copy(QString::fromStdString(journey_root + "/gui/scenarios/fits-after-one-toggle.json"),
              folder_.filePath("short.json"));
  open_by_keys("short.json");
  settle();
  EXPECT_EQ(heard(), window_.answer().document()->heading);
  EXPECT_TRUE(heard().starts_with("✖ Does not fit: ")) << heard();
  ways_found();
  AnswerView& answer = window_.answer();
  EXPECT_TRUE(is_in_sight(answer.picture()));
  for (int way = 0; way < 3; ++way) EXPECT_TRUE(is_in_sight(answer.ways().row(way))) << way;
  shown("a-verdict");

  ASSERT_TRUE(person_.key("g"));
  ASSERT_TRUE(person_.key("Down"));
  ASSERT_TRUE(until([&] { return answer.picture().has_outline(); }));
  shown("b-preview");
  const std::string before = window_.session().document()->text(), wanted = answer.text_of(0);
  ASSERT_TRUE(person_.click(answer.ways().apply_button(0)));
  answered();
  EXPECT_EQ(window_.session().document()->text(), wanted);
  EXPECT_TRUE(heard().starts_with("✔ Fits")) << heard();
  shown("c-applied");
  ASSERT_TRUE(person_.key("ctrl+z"));
  answered();
  EXPECT_EQ(window_.session().document()->text(), before);
  ways_found();

  const auto ticks = answer.ways().findChildren<QCheckBox*>();
  ASSERT_GE(ticks.size(), 2);
  const std::string both = answer.text_of(std::vector<int>{0, 1});
  for (int way = 0; way < 2; ++way) ASSERT_TRUE(person_.click(*ticks[way], QPoint(8, ticks[way]->height() / 2)));
  press(answer, "Combine 2");
  answered();
  EXPECT_EQ(window_.session().document()->text(), both);
  EXPECT_EQ(window_.session().variants().size(), 2U);
  ASSERT_TRUE(person_.key("shift+v"));
  answered();
  ways_found();

  QComboBox* const goal = qobject_cast<QComboBox*>(answer.focusProxy());
  ASSERT_NE(goal, nullptr);
  pick(*goal, "Least memory");
  ways_found();
  EXPECT_EQ(goal->currentText(), "Least memory");
  set_by_palette("memory.reserve 3GiB");
  EXPECT_EQ(value("memory.reserve"), "3GiB");
  ways_found();
  shown("d-goal");

  ASSERT_TRUE(person_.key("ctrl+2"));
  QTest::qWait(100);
  EXPECT_GE(window_.canvas().lanes_shown(), 3U);  // the GPU's stream, the host, memory
  shown("e-canvas");
  export_by_menu("Export report…", "report.html");
  export_by_menu("Export the timeline…", "timeline.png");
  export_by_menu("Export the timeline…", "timeline.svg");
  export_by_menu("Export the timeline…", "timeline.json");

  window_.open(folder_.filePath("sweep.json"));
  ASSERT_TRUE(until([this] { return window_.sweep().chart().rows().size() > 3; }));
  ASSERT_TRUE(until([this] { return !window_.sweep().is_running(); }));
  QTest::qWait(100);  // its bar goes, and the lists beside it move
  for (QComboBox* const axis : window_.sweep().findChildren<QComboBox*>()) {
    if (axis->accessibleName() == "Across") pick(*axis, measure_words(SweepMeasure::step_time));
    if (axis->accessibleName() == "Colour by") pick(*axis, "layers");
  }
  EXPECT_TRUE(until([this] { return window_.sweep().chart().across() == SweepMeasure::step_time; }));
  shown("f-sweep");
}

// Each size and each theme; all four pairs in the full size.
std::vector<Look> looks() {
  std::vector<Look> of = {{QSize(1280, 720), true}, {QSize(1920, 1080), false}};
  if (test::is_full_size()) of.insert(of.end(), {{QSize(1280, 720), false}, {QSize(1920, 1080), true}});
  return of;
}

INSTANTIATE_TEST_SUITE_P(Looks, JourneyOfALook, testing::ValuesIn(looks()), [](const auto& one) {
  return "Of" + std::to_string(one.param.size.width()) + (one.param.dark ? "Dark" : "Light");
});

}  // namespace
}  // namespace spillway::gui
