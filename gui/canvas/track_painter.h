// Draws the canvas into an image: the whole step small on top, the ruler, and the tracks under each other.
#pragma once

#include <QImage>
#include <optional>
#include <string>
#include <vector>

#include "gui/canvas/plot_frame.h"
#include "gui/canvas/track_list.h"

namespace spillway::gui {

inline constexpr int minimap_height = 30, ruler_height = 22;
inline constexpr int canvas_top = minimap_height + ruler_height;

// From one op to another: host call to work, what writes to what reads.
struct TrackFlow {
  std::uint32_t from = 0, to = 0;  // ops
};

// A note where it stands on the axis that is shown.
struct ShownNote {
  std::int64_t at = 0;
  std::string text;
  std::size_t which = 0;  // of all there are
};

struct TrackLook {
  PlotFrame frame;  // its axis is canvas_top
  TimeRange view, whole;
  std::string axis_name;  // "GPU time"
  bool timed = true;
  int right = 0;   // logical pixels at the right that a scroll bar covers
  int scroll = 0;  // logical pixels the tracks are moved up
  const std::vector<Track>* tracks = nullptr;
  const std::vector<std::int64_t>* begins = nullptr;  // by op, on this axis; null: the replay's
  std::optional<std::uint32_t> chosen;                // id of a span to outline
  std::optional<std::size_t> block;                   // in AddressMap::blocks
  std::vector<TrackFlow> flows;
  bool with_path = false;
  std::optional<TimeRange> map;       // squeezed addresses that the map shows; none: all
  std::vector<std::uint32_t> marked;  // ops, for the ruler and the small picture
  std::vector<ShownNote> notes;       // flags on the ruler
  const TrackScene* ghost = nullptr;  // of what this is compared with; on the same axis
  std::size_t most_labels = 500;
  int least_label = 34;  // logical pixels of a block that gets its name
};

// Name of what a span stands for: of a transfer the tensor it moves.
std::string span_name(const TrackScene& scene, std::uint32_t id);

// Places of everything, for painter and pointer alike.
class TrackPlaces {
 public:
  TrackPlaces(const TrackScene& scene, const TrackLook& look) : scene_(scene), look_(look) {}
  // Top of a track, logical pixels of the frame; it may lie outside.
  [[nodiscard]] int top(std::size_t track) const;
  [[nodiscard]] int bottom() const;  // of the last, as if nothing were scrolled
  struct Row {
    std::size_t track = 0, row = 0;
  };
  [[nodiscard]] std::optional<Row> at(double y) const;
  // Middle of what an op is drawn as, at that time; none: not shown.
  [[nodiscard]] std::optional<QPointF> middle(std::uint32_t op, std::int64_t time) const;
  // The note with its flag there, of those on the ruler; the last drawn is on top.
  [[nodiscard]] std::optional<std::size_t> note_at(QPointF at) const;
  // The op's begin and end on the axis; none: it has no span.
  [[nodiscard]] std::optional<TimeRange> range(std::uint32_t op) const;

 private:
  struct Place {
    std::size_t track, row;
    TimeRange range;
  };
  [[nodiscard]] std::optional<Place> place(std::uint32_t op) const;
  const TrackScene& scene_;
  const TrackLook& look_;
};

// The bytes of the address map's vertical axis, and of the memory's.
std::int64_t memory_top(const TrackScene& scene, const TrackLook& look);

// The rectangle of a note's flag, logical pixels; empty: it is not in view.
QRectF note_flag(const TrackLook& look, const ShownNote& note);

// The squeezed addresses that the map shows. Precondition: the scene has memory.
TimeRange map_shown(const TrackScene& scene, const TrackLook& look);

QImage paint_tracks(const TrackScene& scene, const TrackLook& look, const Theme& theme);

}  // namespace spillway::gui
