// The canvas: everything about a step as tracks over one axis, which can be the GPU's time, the host's, or the order of
// the program.
//
//   small picture   drag moves the view, its handles zoom, a double click shows everything
//   headings        a click opens and closes the group
//   tracks          wheel zooms at the pointer, Shift+wheel moves, Ctrl+wheel scrolls; dragging selects a range, with
//                   Alt of the tracks that it goes over alone
//   address map     Ctrl+wheel zooms in addresses, Ctrl+Shift+wheel moves; Home shows all
//   keys            as TimeView, and 1 2 3 the axis, C the critical path, M whose memory, N a note; Shift+W Shift+S
//   zoom in addresses, Shift+A
//                   Shift+D move
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "gui/canvas/note.h"
#include "gui/canvas/track_painter.h"
#include "gui/plots/time_view.h"
#include "gui/workspace/outcome.h"

class QScrollBar;

namespace spillway::gui {

class CanvasView : public TimeView {
 public:
  explicit CanvasView(SharedTime& time);

  // baseline: drawn as a ghost; may be null. The chosen op stays if it is the same op of the same outcome.
  void show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const Outcome> baseline);
  // Shows memory and counters of that GPU of the shown outcome, until another outcome is shown. Null: of the GPU that
  // needs most memory.
  void show_rank(std::shared_ptr<const RankView> view);
  [[nodiscard]] const RankView* shown_rank() const { return rank_.get(); }
  [[nodiscard]] std::shared_ptr<const MemoryScene> memory() const;  // that is shown; null: none on this axis
  // Chooses an op, and brings it into view.
  void go_to(OpId op);
  [[nodiscard]] std::optional<OpId> chosen() const;
  // Index in MemoryPicture::blocks.
  [[nodiscard]] std::optional<std::size_t> chosen_block() const;
  void choose_block(std::size_t block);
  // Chooses the longest of them, or the longest operator or annotation of that name, or what was recorded to begin
  // then, and brings it into view. False: none of them is on the canvas.
  bool go_to_longest(const std::vector<std::uint32_t>& ops);
  bool go_to_span(const std::string& name);
  bool go_to_recorded(Picos begin);
  // The selected range covers only tracks that were dragged over with Alt; none: all.
  [[nodiscard]] bool has_area() const { return !area_.empty() && time().selection().has_value(); }
  [[nodiscard]] std::size_t area_tracks() const { return area_.size(); }
  [[nodiscard]] std::vector<std::size_t> lanes_in_area() const;  // places in the scene's lanes
  [[nodiscard]] bool area_has_memory() const;                    // true without an area
  // Squeezed addresses that the map shows; none: all.
  [[nodiscard]] std::optional<TimeRange> map_view() const { return map_view_; }
  void zoom_map(double factor, double anchor);  // anchor: 0 the lowest address shown, 1 the highest
  void pan_map(double fraction);
  // Ops that a search has found.
  void mark(std::vector<std::uint32_t> ops);

  // Flags on the ruler, each where it was written, whatever the axis is now.
  void show_notes(std::vector<Note> notes);
  // A wish to add a note on the shown axis: at the pointer, else at the selection's begin, else in the middle. Or to
  // change or remove one of those shown.
  enum class NoteWish : std::uint8_t { add, change, remove };
  std::function<void(NoteWish wish, std::size_t which, std::int64_t at)> on_note;

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
  static constexpr int next_rank = -1, rank_before = -2;
  std::function<void(int rank)> on_rank;  // its memory is asked for: a rank's own, or one of these
  std::function<void()> on_lanes;         // hidden tracks changed
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
  [[nodiscard]] std::optional<RowRange> selected_rows() const override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
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
  void show_place(const TimeRange& range, std::optional<QPointF> middle);
  void spread_area(int from, int to);
  void arrange();
  void fit_scroll();
  void become(MemoryClock axis);

  std::shared_ptr<const Outcome> outcome_, baseline_;
  std::shared_ptr<const RankView> rank_;  // null: outcome_->fullest
  TrackScene scene_, ghost_;
  MemoryClock axis_ = MemoryClock::gpu;
  std::vector<Track> tracks_;
  TrackChoice choice_;
  std::optional<std::uint32_t> chosen_;
  TimeRange chosen_at_;
  std::optional<std::size_t> block_;  // in AddressMap::blocks
  std::vector<TrackFlow> flows_;
  std::vector<std::uint32_t> marked_;
  std::vector<Note> notes_;
  bool with_path_ = false;
  std::set<std::string> area_;         // names of tracks
  std::optional<int> area_from_;       // where a drag with Alt began
  std::optional<TimeRange> map_view_;  // squeezed addresses
  Grip grip_ = Grip::none;
  std::int64_t gripped_at_ = 0;  // distance of the pointer from the view's begin
  QScrollBar* bar_;
};

// An op in words: name, duration, phase, layer, bytes.
QString op_words(const Outcome& outcome, const TrackScene& scene, std::uint32_t op);
// A block of MemoryPicture::blocks: tensor, or what it was made for.
std::string block_name(const Outcome& outcome, const MemoryPicture::Block& block);

}  // namespace spillway::gui
