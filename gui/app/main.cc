// spillway-gui: what `spillway gui` turns into.
#include <QApplication>
#include <QCommandLineParser>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QFileInfo>
#include <QIcon>
#include <QSettings>
#include <QTemporaryDir>
#include <QTimer>
#include <cstdio>
#include <filesystem>

#include "base/data_folder.h"
#include "base/version.h"
#include "gui/app/main_window.h"
#include "gui/panels/message_bar.h"
#include "studies/procurement/procurement_fields.h"

namespace spillway::gui {
namespace {

constexpr int exit_done = 0, exit_bad_input = 2;
constexpr qint64 most_wait_ms = 600'000;

int fail(const QString& text) {
  std::fprintf(stderr, "error: %s\n", text.toUtf8().constData());
  return exit_bad_input;
}

void add_options(QCommandLineParser& parser) {
  parser.setApplicationDescription("The window of spillway: what-ifs on scenarios and traces");
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addOption({"screenshot", "write a picture of a view and end", "FILE"});
  parser.addOption(
      {"view",
       "start, answer, canvas, diagnosis, sensitivity, pareto, roofline, compare, treemap or flame; of the canvas "
       "timeline, memory, map or pipeline",
       "NAME"});
  parser.addOption({"set", "of a picture: change the scenario, which is pinned as the baseline first", "KEY=VALUE"});
  parser.addOption({"theme", "light or dark", "NAME"});
  parser.addOption({"size", "of the window in pixels", "WIDTHxHEIGHT"});
  parser.addOption({"scale", "device pixels per pixel", "FACTOR"});
  parser.addPositionalArgument("SCENARIO", "scenario, trace, snapshot or sweep to open", "[SCENARIO]");
}

// Runs the event loop until everything asked for is on screen.
bool settle(MainWindow& window, bool has_scenario) {
  QElapsedTimer clock;
  clock.start();
  const bool wants_gains = window.session().is_busy() || window.session().document() != nullptr;
  QTimer ticks;  // wakes it, so that it need not ask all the while
  ticks.start(20);
  while (clock.elapsed() < most_wait_ms) {
    QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
    if (window.message().isVisible() && !window.is_settled()) return false;
    const bool shown = !has_scenario || !wants_gains || window.is_settled();
    if (shown && window.is_complete()) break;
  }
  for (int i = 0; i < 5; ++i) QCoreApplication::processEvents();
  return true;
}

int take_picture(MainWindow& window, const QString& file, const QString& view, bool has_scenario,
                 const QStringList& edits) {
  if (!settle(window, has_scenario)) return fail(window.message().text());
  if (!edits.isEmpty()) {
    window.session().pin();
    for (const QString& edit : edits)
      window.session().edit(edit.section('=', 0, 0).toStdString(), edit.section('=', 1).toStdString(), false);
    if (!settle(window, has_scenario)) return fail(window.message().text());
  }
  if (!view.isEmpty()) window.show_view(view);  // its track is there only now
  QCoreApplication::processEvents();
  if (!window.grab().save(file))
    return fail(file + ": could not be written; check the folder, the space there, and that it ends in .png");
  return exit_done;
}

int run_window(int count, char** arguments) {
  use_installed_data();
  add_study_sections();
  // Before the application: pictures of any density, and no display where none is needed.
  for (int i = 1; i + 1 < count; ++i)
    if (qstrcmp(arguments[i], "--scale") == 0) qputenv("QT_SCALE_FACTOR", arguments[i + 1]);
  for (int i = 1; i < count; ++i)
    if (qstrcmp(arguments[i], "--screenshot") == 0 && !qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
      qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication app(count, arguments);
  QApplication::setApplicationName("spillway");
  QApplication::setOrganizationName("spillway");
  QApplication::setApplicationVersion(program_version());
  QApplication::setDesktopFileName("spillway");
  QApplication::setWindowIcon(QIcon::fromTheme("spillway"));
  QCommandLineParser parser;
  add_options(parser);
  parser.process(app);
  const bool is_picture = parser.isSet("screenshot");
  QSettings kept;
  const QTemporaryDir folder;
  QSettings fresh(folder.filePath("settings.ini"), QSettings::IniFormat);  // pictures are the same on every desk
  QSettings& settings = is_picture ? fresh : kept;
  MainWindow window(settings);
  const QString theme = parser.value("theme");
  const bool is_dark = theme.isEmpty() ? settings.value("window/dark").toBool() : theme == "dark";
  window.set_theme(is_dark ? dark_theme() : light_theme());
  const QStringList size = parser.value("size").split('x');
  if (size.size() == 2 && size[0].toInt() > 0 && size[1].toInt() > 0) window.resize(size[0].toInt(), size[1].toInt());
  const QStringList files = parser.positionalArguments();
  window.show();
  if (!files.isEmpty()) window.open(files.front());
  const QString view = parser.value("view");
  if (!view.isEmpty() && !window.show_view(view)) return fail("--view: no view named " + view);
  if (is_picture) return take_picture(window, parser.value("screenshot"), view, !files.isEmpty(), parser.values("set"));
  return QApplication::exec();
}

}  // namespace
}  // namespace spillway::gui

int main(int argc, char** argv) { return spillway::gui::run_window(argc, argv); }
