// Draws a timeline into an image: lanes of folded spans, names where they fit, the baseline as a strip under each lane,
// arrows from a launch to its work.
#pragma once

#include <QImage>
#include <string>
#include <vector>

#include "gui/canvas/plot_frame.h"
#include "gui/canvas/timeline_scene.h"

namespace spillway::gui {

// From a launch to its work: places in the scene.
struct TimelineFlow {
  struct End {
    std::size_t lane = 0;  // index into scene.lanes
    std::int64_t time = 0;
  };
  End from, to;
};

struct TimelineLook {
  PlotFrame frame;
  TimeRange view;
  PlotMarks marks;
  int lane_height = 22, gap = 4;
  int scroll = 0;                       // logical pixels the lanes are moved up
  std::vector<std::size_t> lanes;       // shown, in order: indices into scene.lanes
  std::optional<std::uint32_t> chosen;  // id of a span to outline
  std::vector<TimelineFlow> flows;
  std::size_t most_labels = 400;
  int least_label = 34;  // logical pixels of a block that gets its name
};

// What a name on a block is: of an op, or of a pass.
using SpanName = std::string (*)(const TimelineScene& scene, const Trace& trace, std::uint32_t id);
std::string op_name(const TimelineScene& scene, const Trace& trace, std::uint32_t id);
std::string pass_name(const TimelineScene& scene, const Trace& trace, std::uint32_t id);

// What shares the picture with the scene; null: nothing.
struct TimelineExtras {
  const TimelineScene* baseline = nullptr;  // ghost, matched by lane name
  const Trace* trace = nullptr;             // of the scene: for names and arrows
  SpanName name = op_name;
};

// Height of a lane's row with its ghost, logical pixels.
int row_height(const TimelineLook& look, bool with_ghost);
QImage paint_timeline(const TimelineScene& scene, const TimelineExtras& extras, const TimelineLook& look,
                      const Theme& theme);

}  // namespace spillway::gui
