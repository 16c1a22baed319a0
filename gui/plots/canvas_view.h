// The canvas: everything about a step as tracks over one axis, which can be the GPU's time, the host's, or the order of
// the program.
//
//   small picture   drag moves the view, its handles zoom, a double click shows everything
//   headings        a click opens and closes the group
//   tracks          wheel zooms at the pointer, Shift+wheel moves, Ctrl+wheel scrolls; dragging selects a range
//   keys            as TimeView, and 1 2 3 the axis, C the critical path
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "gui/canvas/track_painter.h"
#include "gui/plots/time_view.h"
#include "gui/workspace/outcome.h"

class QScrollBar;

namespace spillway::gui {

class CanvasView : public TimeView {
 public:
  explicit CanvasView(SharedTime& time);

  // baseline: drawn as a ghost; may be null. What is chosen stays where it is the same op of the same outcome.
  void show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const Outcome> baseline);
  // Chooses an op, and brings it into view.
  void go_to(OpId op);
  [[nodiscard]] std::optional<OpId> chosen() const;
  // Index in MemoryPicture::blocks.
  [[nodiscard]] std::optional<std::size_t> chosen_block() const;
  void choose_block(std::size_t block);
  // Ops that a search has found.
  void mark(std::vector<std::uint32_t> ops);

  [[nodiscard]] MemoryClock axis() const { return axis_; }
  [[nodiscard]] bool is_timed() const;  // the axis is in picoseconds, not in ops or events
  // The view and the selection go along, by the ops at their ends. False: the file has no such axis.
  bool set_axis(MemoryClock axis);
  [[nodiscard]] bool shows_path() const { return with_path_; }
  void show_path(bool shown);

  [[nodiscard]] std::size_t lanes_shown() const;  // tracks, without headings
  [[nodiscard]] const std::vector<Track>& tracks() const { return tracks_; }
  void hide_lane(const std::string& name);
  void pin_lane(const std::string& name);
  void toggle_group(const std::string& heading);
  void show_all_lanes();
  // Scrolls to the first track of the kind.
  void reveal(TrackKind kind);
  // Names of hidden tracks, for the chip that says so.
  [[nodiscard]] const std::set<std::string>& hidden() const { return choice_.hidden; }
  std::function<void()> on_lanes;  // hidden tracks changed
  std::function<void()> on_choose;
  std::function<void()> on_axis;  // the axis, or whether the critical path is shown

 protected:
  [[nodiscard]] PlotFrame frame() const override;
  [[nodiscard]] QImage paint(const PlotFrame& frame) const override;
  [[nodiscard]] QString words_at(QPoint at) const override;
  void click(QPoint at) override;
  [[nodiscard]] std::optional<TimeRange> chosen_range() const override;
  bool other_key(int key) override;
  void scroll_rows(int steps) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  enum class Grip : std::uint8_t { none, move, begin, end };
  [[nodiscard]] TrackLook look(const PlotFrame& frame) const;
  [[nodiscard]] std::optional<std::uint32_t> span_at(QPoint at, TimeRange* range = nullptr) const;
  [[nodiscard]] std::int64_t block_at(QPoint at) const;
  [[nodiscard]] std::vector<TrackFlow> flows() const;
  [[nodiscard]] std::int64_t carried(std::int64_t place, MemoryClock from, MemoryClock to) const;
  [[nodiscard]] std::int64_t whole_time_at(int x) const;
  void arrange();
  void fit_scroll();
  void become(MemoryClock axis);

  std::shared_ptr<const Outcome> outcome_, baseline_;
  TrackScene scene_, ghost_;
  MemoryClock axis_ = MemoryClock::gpu;
  std::vector<Track> tracks_;
  TrackChoice choice_;
  std::optional<std::uint32_t> chosen_;
  TimeRange chosen_at_;
  std::optional<std::size_t> block_;  // in AddressMap::blocks
  std::vector<TrackFlow> flows_;
  std::vector<std::uint32_t> marked_;
  bool with_path_ = false;
  Grip grip_ = Grip::none;
  std::int64_t gripped_at_ = 0;  // distance of the pointer from the view's begin
  QScrollBar* bar_;
};

// An op in words: name, duration, phase, layer, bytes.
QString op_words(const Outcome& outcome, const TrackScene& scene, std::uint32_t op);
// A block of MemoryPicture::blocks: tensor, or what it was made for.
std::string block_name(const Outcome& outcome, const MemoryPicture::Block& block);

}  // namespace spillway::gui
