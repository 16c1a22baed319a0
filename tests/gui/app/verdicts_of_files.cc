// The verdict of each file as the window says it, read as a screen reader does: one line of JSON a file.
//
// Usage: verdicts_of_files FILE...        offscreen: QT_QPA_PLATFORM=offscreen
#include <QAccessible>
#include <QApplication>
#include <QLabel>
#include <QSettings>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "gui/app/main_window.h"
#include "gui/panels/answer_view.h"
#include "gui/panels/diagnosis_panel.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/verdict_strip.h"

namespace spillway::gui {
namespace {

constexpr int longest_ms = 120'000;

std::string heard(const QWidget* widget) {
  QAccessibleInterface* const face = QAccessible::queryAccessibleInterface(const_cast<QWidget*>(widget));
  return face == nullptr ? std::string() : face->text(QAccessible::Name).toStdString();
}

nlohmann::ordered_json verdict_of(MainWindow& window, const char* file) {
  const Outcome* const before = window.session().outcome().get();
  window.session().open(ScenarioDocument::open(file));  // without the question which part of it
  const auto is_there = [&] {
    return window.message().isVisible() || (window.is_settled() && window.session().outcome().get() != before &&
                                            window.diagnosis().diagnosed() != nullptr &&
                                            window.diagnosis().diagnosed()->of == window.session().outcome());
  };
  const bool came = QTest::qWaitFor(is_there, longest_ms);
  nlohmann::ordered_json said = {{"file", file}};
  if (!came || window.message().isVisible()) {
    said["error"] = came ? window.message().text().toStdString() : "the window did not settle";
    return said;
  }
  said["heading"] = heard(window.findChild<QLabel*>("heading"));
  said["word"] = window.answer().document()->verdict;
  said["strip"] = window.strip().shown().front().title;
  return said;
}

int tell(int count, char** arguments) {
  QApplication app(count, arguments);
  const QTemporaryDir folder;
  QSettings settings(folder.filePath("settings.ini"), QSettings::IniFormat);
  MainWindow window(settings);
  window.findChild<QTabWidget*>("views")->setCurrentIndex(0);  // the answer
  window.show();
  for (int i = 1; i < count; ++i) std::printf("%s\n", verdict_of(window, arguments[i]).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace spillway::gui

int main(int argc, char** argv) { return spillway::gui::tell(argc, argv); }
