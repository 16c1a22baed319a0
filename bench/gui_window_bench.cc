// The window as a whole, offscreen: from start to the first chart, from an edit to every figure, what a step of zoom
// and a move of the pointer take on the canvas, and how long a large trace keeps it from answering.
//
// Usage: gui_window_bench [FILE]        a trace or a scenario; without one: the bundled scenarios alone
#include <sys/resource.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QSettings>
#include <QTemporaryDir>
#include <QTimer>
#include <QWheelEvent>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/quantile.h"
#include "gui/app/main_window.h"
#include "gui/panels/diagnosis_panel.h"
#include "gui/panels/message_bar.h"
#include "gui/panels/scenario_panel.h"
#include "gui/plots/canvas_view.h"

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

// Each event with the repaint that it asks for.
template <class Send>
void measure_events(CanvasView& canvas, const char* what, int count, const Send& send) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    QElapsedTimer clock;
    clock.start();
    send(i);
    QCoreApplication::processEvents();
    canvas.repaint();
    times.push_back(static_cast<double>(clock.nsecsElapsed()) * 1e-6);
  }
  std::printf("  %s: median %.1f ms, 95 of 100 within %.1f ms (%zu tracks)\n", what, quantile(times, 0.5),
              quantile(times, 0.95), canvas.lanes_shown());
}

// Wheel and pointer over the canvas, as people zoom in and out and read out.
void measure_moves(MainWindow& window) {
  constexpr int count = 60;
  static_cast<void>(window.show_view("canvas"));
  QCoreApplication::processEvents();
  CanvasView& canvas = window.canvas();
  const QPointF middle(canvas.width() * 0.6, canvas.height() * 0.5);
  measure_events(canvas, "zoom", count, [&](int i) {
    QWheelEvent wheel(middle, canvas.mapToGlobal(middle), {}, QPoint(0, i < count / 2 ? 120 : -120), Qt::NoButton,
                      Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(&canvas, &wheel);
  });
  measure_events(canvas, "hover", count, [&](int i) {
    const QPointF at(canvas.width() * (0.3 + 0.01 * i), canvas.height() * (0.2 + 0.01 * i));
    QMouseEvent move(QEvent::MouseMove, at, canvas.mapToGlobal(at), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&canvas, &move);
  });
}

double most_memory_gb() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) * 1024 * 1e-9;
}

// As people open it: figures, then the answer's pictures, then ways.
void measure_opening(MainWindow& window, const char* file) {
  QElapsedTimer opened;
  opened.start();
  window.session().open(ScenarioDocument::open(file));  // without the question which part of it
  const auto tell = [&](const char* what) {
    std::printf("%s: %s after %.1f s, %.2f GB at most\n", file, what, static_cast<double>(opened.nsecsElapsed()) * 1e-9,
                most_memory_gb());
  };
  const double longest = settle(window);
  tell("figures shown");
  std::printf("  the longest the window did not answer: %.0f ms\n", longest);
  QTimer ticks;  // keeps the loop turning
  ticks.start(2);
  const auto wait = [&](const auto& has) {
    while (!has() && !window.message().isVisible()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  };
  wait([&] { return window.diagnosis().diagnosed() != nullptr; });
  static_cast<void>(window.grab());
  tell("answer drawn");
  static_cast<void>(window.show_view("answer"));  // waits for ways
  wait([&] { return window.is_complete(); });
  tell("ways found");
  measure_moves(window);
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
  if (count > 1 && arguments[1][0] != '-') {
    measure_opening(window, arguments[1]);
    return 0;
  }
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
    if (std::string(one.key) != "model.micro_batch") measure_edits(window, "model.micro_batch", {"3", "2", "1", "4"});
    measure_moves(window);
  }
  return 0;
}

}  // namespace
}  // namespace spillway::gui

int main(int argc, char** argv) { return spillway::gui::measure(argc, argv); }
