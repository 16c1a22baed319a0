// The timeline as a widget: lanes that can be hidden and pinned, names under the pointer, arrows from launches to work.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "gui/canvas/timeline_painter.h"
#include "gui/plots/time_view.h"
#include "gui/workspace/outcome.h"

class QScrollBar;

namespace spillway::gui {

class TimelineView : public TimeView {
 public:
  enum class Kind { ops, pipeline };
  TimelineView(SharedTime& time, Kind kind);

  // baseline: its lanes are ghosts; may be null.
  void show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const Outcome> baseline);
  // Chooses an op, and brings it into view.
  void go_to(OpId op);
  [[nodiscard]] std::optional<OpId> chosen() const;
  [[nodiscard]] std::size_t lanes_shown() const { return order_.size(); }

  void hide_lane(const std::string& name);
  void pin_lane(const std::string& name);
  void show_all_lanes();
  // Names of hidden lanes, for the chip that says so.
  [[nodiscard]] const std::set<std::string>& hidden() const { return hidden_; }
  std::function<void()> on_lanes;  // hidden lanes changed
  std::function<void()> on_choose;

 protected:
  [[nodiscard]] QImage paint(const PlotFrame& frame) const override;
  [[nodiscard]] QString words_at(QPoint at) const override;
  void click(QPoint at) override;
  [[nodiscard]] std::optional<TimeRange> chosen_range() const override;
  void scroll_rows(int steps) override;
  void resizeEvent(QResizeEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  struct Hit {
    std::size_t lane = 0;
    std::int64_t span = -1;
  };
  [[nodiscard]] const TimelineScene& scene() const;
  [[nodiscard]] TimelineLook look(const PlotFrame& frame) const;
  [[nodiscard]] std::optional<Hit> hit(QPoint at) const;
  [[nodiscard]] std::vector<TimelineFlow> flows() const;
  [[nodiscard]] std::optional<TimelineFlow::End> place_of(std::uint32_t id) const;
  void arrange();
  void fit_scroll();

  Kind kind_;
  std::shared_ptr<const Outcome> outcome_, baseline_;
  std::vector<std::size_t> order_;
  std::set<std::string> hidden_, pinned_;
  std::optional<std::uint32_t> chosen_;
  TimeRange chosen_at_;  // of an operator
  std::vector<TimelineFlow> flows_;
  QScrollBar* bar_;
};

}  // namespace spillway::gui
