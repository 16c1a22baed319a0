// The base of all views over time: they share one range of time, moved by wheel and keys; dragging selects, and never
// filters.
//
//   wheel, W S      zoom at the pointer, at the middle        drag           select a range
//   Shift+wheel     earlier, later; as A D, < >               F              zoom to what is selected
//   Ctrl+wheel      rows up and down; as the arrows           Home, Esc      everything; select nothing
#pragma once

#include <QImage>
#include <QString>
#include <QWidget>
#include <functional>
#include <optional>
#include <vector>

#include "gui/canvas/plot_frame.h"

namespace spillway::gui {

// The range of time that all views show, what is selected of it, where the pointer is.
class SharedTime {
 public:
  [[nodiscard]] TimeRange whole() const { return whole_; }
  [[nodiscard]] TimeRange view() const { return view_; }
  [[nodiscard]] std::optional<TimeRange> selection() const { return selection_; }
  [[nodiscard]] std::optional<std::int64_t> cursor() const { return cursor_; }

  // A new whole keeps the view where it was all there was, or where it still lies in it.
  void set_whole(TimeRange whole);
  void set_view(TimeRange view);
  void select(std::optional<TimeRange> selection);
  void point_at(std::optional<std::int64_t> cursor);
  void on_change(std::function<void()> listener) { listeners_.push_back(std::move(listener)); }
  void on_marks(std::function<void()> listener) { mark_listeners_.push_back(std::move(listener)); }
  void on_select(std::function<void()> listener) { select_listeners_.push_back(std::move(listener)); }

 private:
  void changed() const;
  TimeRange whole_, view_;
  std::optional<TimeRange> selection_;
  std::optional<std::int64_t> cursor_;
  std::vector<std::function<void()>> listeners_, mark_listeners_, select_listeners_;
};

class TimeView : public QWidget {
 public:
  // `time` must outlive it.
  TimeView(SharedTime& time, const QString& name, const QString& about);

  void set_theme(const Theme& theme);
  void set_stale(bool stale);
  [[nodiscard]] QImage picture() const;  // as shown
  // Words about the place under the pointer, for the status bar.
  std::function<void(const QString&)> on_hover;

 protected:
  // Everything but selection and pointer, which are drawn over it.
  [[nodiscard]] virtual QImage paint(const PlotFrame& frame) const = 0;
  [[nodiscard]] virtual QString words_at(QPoint at) const = 0;
  virtual void click(QPoint at) = 0;
  // Range of what is chosen, for F without a selection.
  [[nodiscard]] virtual std::optional<TimeRange> chosen_range() const { return std::nullopt; }
  // A key that is not about time; true: taken.
  virtual bool other_key(int /*key*/) { return false; }
  virtual void scroll_rows(int /*steps*/) {}
  // Rows of the selection; none: all.
  [[nodiscard]] virtual std::optional<RowRange> selected_rows() const { return std::nullopt; }
  // Draws again at the next chance.
  void refresh();

  [[nodiscard]] virtual PlotFrame frame() const;
  [[nodiscard]] const Theme& theme() const { return *theme_; }
  [[nodiscard]] SharedTime& time() const { return time_; }

  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  [[nodiscard]] std::int64_t time_at(int x) const;
  void paint_over(QPainter& painter) const;
  SharedTime& time_;
  const Theme* theme_;
  QImage image_;  // without selection and pointer
  bool is_drawn_ = false, stale_ = false;
  std::optional<QPoint> pressed_;
  bool drags_ = false;
};

}  // namespace spillway::gui
