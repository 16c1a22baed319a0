// Keys and mouse as a person gives them: an X server delivers them (XTest, through xdotool), so that focus, shortcuts
// and the way of a wheel turn are those of the desktop. Events made by QTest skip some of that.
#pragma once

#include <QObject>
#include <QPoint>
#include <QStringList>
#include <QWidget>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

class QFileDialog;

namespace spillway::gui {

// Counts what the server delivers to this program's windows. One at a time, while the application lives.
class RealInput : public QObject {
 public:
  RealInput();
  ~RealInput() override;

  // Each returns when the window has been given all of it; false: it never came.
  bool key(const QString& keys);  // as xdotool names them: "ctrl+z"
  bool type(const QString& text);
  // at: in the widget; its middle by default.
  bool click(const QWidget& widget, QPoint at = {-1, -1});
  // With the left button, in a few moves.
  bool drag(const QWidget& widget, QPoint from, QPoint to);
  bool wheel(const QWidget& widget, int notches, QPoint at = {-1, -1});  // towards the user

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool send(const QStringList& arguments, int count, int& seen);
  [[nodiscard]] static QStringList moved(const QWidget& widget, QPoint at);
  int keys_ = 0, presses_ = 0, wheels_ = 0;
};

// Of the file dialog that the next key or click opens, which returns when the dialog is closed. folder: what the dialog
// shows then, not where somebody was before. What the act leaves open is rejected.
void in_file_dialog(QWidget& window, const QString& folder, const std::function<void(QFileDialog&)>& act);
// There is no window manager to give the keys back when a dialog is closed. False: it stays open.
bool back_from_dialog(QWidget& window);

// The longest time that the event loop was away.
class Watchdog : public QObject {
 public:
  Watchdog();
  ~Watchdog() override;
  void reset();
  [[nodiscard]] double longest_ms() const;

 protected:
  void timerEvent(QTimerEvent* event) override;

 private:
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::rep> beat_, longest_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace spillway::gui
