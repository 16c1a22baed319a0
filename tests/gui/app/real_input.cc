#include "tests/gui/app/real_input.h"

#include <QApplication>
#include <QEvent>
#include <QFileDialog>
#include <QProcess>
#include <QTest>
#include <QTimer>
#include <algorithm>
#include <chrono>

namespace spillway::gui {
namespace {

constexpr int patience_ms = 20'000;

}  // namespace

RealInput::RealInput() { qApp->installEventFilter(this); }

RealInput::~RealInput() { qApp->removeEventFilter(this); }

// The native window has each event once, before it goes to widgets.
bool RealInput::eventFilter(QObject* watched, QEvent* event) {
  if (!watched->isWindowType()) return false;
  if (event->type() == QEvent::ShortcutOverride) ++keys_;  // of every press, whoever takes it
  if (event->type() == QEvent::MouseButtonRelease) ++presses_;
  if (event->type() == QEvent::Wheel) ++wheels_;
  return false;
}

bool RealInput::send(const QStringList& arguments, int count, int& seen) {
  const int wanted = seen + count;
  QProcess tool;
  tool.start("xdotool", arguments);
  const bool done = QTest::qWaitFor([&tool] { return tool.state() == QProcess::NotRunning; }, patience_ms);
  return done && tool.exitCode() == 0 && QTest::qWaitFor([&] { return seen >= wanted; }, patience_ms);
}

QStringList RealInput::moved(const QWidget& widget, QPoint at) {
  const QPoint to = widget.mapToGlobal(at.x() < 0 ? widget.rect().center() : at);
  return {"mousemove", QString::number(to.x()), QString::number(to.y())};
}

// Modifiers are keys, too.
bool RealInput::key(const QString& keys) {
  return send({"key", "--delay", "0", keys}, static_cast<int>(keys.count('+')) + 1, keys_);
}

bool RealInput::type(const QString& text) {
  return send({"type", "--delay", "0", text}, static_cast<int>(text.size()), keys_);
}

bool RealInput::click(const QWidget& widget, QPoint at) {
  return send(moved(widget, at) + QStringList{"click", "1"}, 1, presses_);
}

bool RealInput::drag(const QWidget& widget, QPoint from, QPoint to) {
  QStringList words = moved(widget, from) + QStringList{"mousedown", "1"};
  constexpr int moves = 8;
  for (int i = 1; i <= moves; ++i)
    words += moved(widget, from + (to - from) * i / moves) + QStringList{"sleep", "0.02"};
  return send(words + QStringList{"mouseup", "1"}, 1, presses_);
}

bool RealInput::wheel(const QWidget& widget, int notches, QPoint at) {
  const int count = std::abs(notches);
  return send(moved(widget, at) +
                  QStringList{"click", "--repeat", QString::number(count), "--delay", "0", notches > 0 ? "5" : "4"},
              count, wheels_);
}

void in_file_dialog(QWidget& window, const QString& folder, const std::function<void(QFileDialog&)>& act) {
  auto* const poll = new QTimer(&window);
  QObject::connect(poll, &QTimer::timeout, &window, [&window, folder, poll, act] {
    auto* const dialog = window.findChild<QFileDialog*>();
    if (dialog == nullptr || !dialog->isVisible()) return;
    poll->stop();
    poll->deleteLater();
    dialog->setDirectory(folder);
    dialog->activateWindow();
    static_cast<void>(QTest::qWaitForWindowActive(dialog));
    QTest::qWait(150);
    act(*dialog);
    QTest::qWait(200);
    auto* const left = window.findChild<QFileDialog*>();
    if (left != nullptr && left->isVisible()) left->reject();  // nobody waits for what failed
  });
  constexpr int poll_ms = 100;
  poll->start(poll_ms);
}

bool back_from_dialog(QWidget& window) {
  const auto no_dialog = [&window] {
    auto* const dialog = window.findChild<QFileDialog*>();
    return dialog == nullptr || !dialog->isVisible();
  };
  constexpr int longest_ms = 120'000;  // until what it chose has been opened
  if (!QTest::qWaitFor(no_dialog, longest_ms)) return false;
  QTest::qWait(100);
  window.activateWindow();
  const bool is_active = QTest::qWaitForWindowActive(&window);
  QTest::qWait(100);
  return is_active;
}

Watchdog::Watchdog() : beat_(Clock::now().time_since_epoch().count()) {
  startTimer(2, Qt::PreciseTimer);
  thread_ = std::thread([this] {
    while (!ends_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const Clock::rep gap = Clock::now().time_since_epoch().count() - beat_;
      if (gap > longest_) longest_ = gap;
    }
  });
}

Watchdog::~Watchdog() {
  ends_ = true;
  thread_.join();
}

void Watchdog::reset() {
  beat_ = Clock::now().time_since_epoch().count();
  longest_ = 0;
}

double Watchdog::longest_ms() const {
  return std::chrono::duration<double, std::milli>(Clock::duration(longest_.load())).count();
}

void Watchdog::timerEvent(QTimerEvent* /*event*/) { beat_ = Clock::now().time_since_epoch().count(); }

}  // namespace spillway::gui
