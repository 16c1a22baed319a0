// The window as a whole, offscreen: from start to the first chart, from an edit to every figure, and how long a large
// trace keeps it from answering.
//
// Usage: gui_window_bench [TRACE]        without a trace: the bundled scenarios alone
#include <QApplication>
#include <QElapsedTimer>
#include <QSettings>
#include <QTemporaryDir>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <string>

#include "gui/app/main_window.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/scenario_panel.h"

namespace spillway::gui {
namespace {

// Runs the event loop until the window is settled; returns the longest time between two turns of it, in ms.
double settle(MainWindow& window) {
  QElapsedTimer clock;
  clock.start();
  double longest = 0;
  QTimer ticks;  // keeps the loop turning
  ticks.start(2);
  while (!window.is_settled() && !window.message().isVisible()) {
    const qint64 before = clock.nsecsElapsed();
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    longest = std::max(longest, static_cast<double>(clock.nsecsElapsed() - before) * 1e-6);
  }
  const qint64 before = clock.nsecsElapsed();
  QCoreApplication::processEvents();
  longest = std::max(longest, static_cast<double>(clock.nsecsElapsed() - before) * 1e-6);
  if (window.message().isVisible()) std::printf("  %s\n", window.message().text().toUtf8().constData());
  return longest;
}

void measure_edits(MainWindow& window, const char* key, std::initializer_list<const char*> values) {
  for (const char* const value : values) {
    QElapsedTimer clock;
    clock.start();
    window.session().edit(key, value, false);
    settle(window);
    window.repaint();
    std::printf("  %s=%s: every figure after %.0f ms (%zu ops)\n", key, value,
                static_cast<double>(clock.nsecsElapsed()) * 1e-6, window.session().outcome()->trace().ops.size());
  }
}

int measure(int count, char** arguments) {
  QElapsedTimer clock;
  clock.start();
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication app(count, arguments);
  const QTemporaryDir folder;
  QSettings settings(folder.filePath("settings.ini"), QSettings::IniFormat);
  MainWindow window(settings);
  window.resize(1920, 1080);
  window.show();
  QCoreApplication::processEvents();
  std::printf("start page after %.0f ms\n", static_cast<double>(clock.nsecsElapsed()) * 1e-6);
  struct Case {
    const char *name, *layers, *key;  // as many layers as make 10,000 ops
    std::initializer_list<const char*> values;
  };
  for (const Case& one : {Case{"fits-after-one-toggle", "109", "model.micro_batch", {"7", "6", "5", "8"}},
                          Case{"bound-by-pcie", "66", "what_if.pcie", {"1.1", "1.2", "1.3"}},
                          Case{"wears-out-its-drives", "89", "what_if.pcie", {"1.1", "1.2", "1.3"}}}) {
    QElapsedTimer opened;
    opened.start();
    // Without the question about the edits before.
    window.session().open(
        ScenarioDocument::open(std::string(SPILLWAY_SOURCE_ROOT "/gui/scenarios/") + one.name + ".json"));
    settle(window);
    static_cast<void>(window.grab());
    std::printf("%s: first chart %.0f ms after opening\n", one.name, static_cast<double>(opened.nsecsElapsed()) * 1e-6);
    measure_edits(window, one.key, one.values);
    measure_edits(window, "model.layers", {one.layers});
    measure_edits(window, one.key, one.values);
  }
  if (count < 2 || std::string(arguments[1]).starts_with("--")) return 0;
  QElapsedTimer opened;
  opened.start();
  window.session().open(ScenarioDocument::open(arguments[1]));  // without the question which part of it
  const double longest = settle(window);
  std::printf("%s: shown after %.1f s, the longest the window did not answer: %.0f ms\n", arguments[1],
              static_cast<double>(opened.nsecsElapsed()) * 1e-9, longest);
  return 0;
}

}  // namespace
}  // namespace spillway::gui

int main(int argc, char** argv) { return spillway::gui::measure(argc, argv); }
