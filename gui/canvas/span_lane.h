// One lane of a timeline, folded to pixels however many spans it has.
//
//   spans   |==||=||=||==========||||||||||||=====|      in order, not overlapping
//   pixels  [block   ][block      ][run      ][block]     two pixels and more: blocks of their own;
//                                                         shorter: runs of columns, coloured by what fills most of them
//
// Busy time by colour is kept summed up at every `stride` spans, so a column over any number of spans costs a few dozen
// steps. If `stride` spans are shorter than a quarter of a pixel, they count as one. A column then has the colour of
// what begins within a quarter of a pixel of it, and only the sums are read. Otherwise it is exact. Folding a view is
// O(columns x (log spans + stride)).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gui/canvas/time_axis.h"

namespace spillway::gui {

inline constexpr int most_span_colors = 10;  // as WorkColor (sim/pictures/timeline_lanes.h)
inline constexpr int fold_levels = 4;        // how busy a run is, in quarters

// A piece of a folded lane: [x, x + width) in pixels.
struct FoldedPiece {
  double x = 0, width = 0;
  std::uint8_t color = 0;
  std::uint8_t level = fold_levels - 1;  // of runs; blocks are full
  std::int64_t span = -1;                // index of a block's span; -1: a run of several
};

class SpanLane {
 public:
  void reserve(std::size_t spans);
  // Precondition: begin >= the end of the span before, end >= begin, color < most_span_colors. id: the caller's own.
  void add(std::int64_t begin, std::int64_t end, std::uint8_t color, std::uint32_t id);

  [[nodiscard]] std::size_t size() const { return begins_.size(); }
  [[nodiscard]] std::int64_t begin(std::size_t i) const { return begins_[i]; }
  [[nodiscard]] std::int64_t end(std::size_t i) const { return ends_[i]; }
  [[nodiscard]] std::uint8_t color(std::size_t i) const { return colors_[i]; }
  [[nodiscard]] std::uint32_t id(std::size_t i) const { return ids_[i]; }

  // Pieces in order, not overlapping, inside [0, axis.width()); appended to `into`.
  void fold(const TimeAxis& axis, std::vector<FoldedPiece>& into) const;
  // Index of the span at `time`, or of the nearest within `reach`; -1: none.
  [[nodiscard]] std::int64_t at(std::int64_t time, std::int64_t reach = 0) const;
  // [first, last) of the spans that overlap `range`.
  [[nodiscard]] std::array<std::size_t, 2> within(TimeRange range) const;
  // Picoseconds busy in spans [first, last).
  [[nodiscard]] std::int64_t busy(std::size_t first, std::size_t last) const;

 private:
  static constexpr std::size_t stride = 16;
  using Sums = std::array<std::int64_t, most_span_colors>;
  [[nodiscard]] Sums sums_before(std::size_t last) const;  // of spans [0, last)
  void add_to(Sums& total, std::size_t first, std::size_t last) const;
  // The next block begins within `tolerance` after this one.
  [[nodiscard]] bool is_short(std::size_t block, std::int64_t tolerance) const;
  // guess: how many spans from `from` it may be. Off by at most `tolerance`, so that short blocks stay whole.
  [[nodiscard]] std::size_t first_not_before(std::size_t from, std::int64_t time, std::size_t guess,
                                             std::int64_t tolerance) const;

  std::vector<std::int64_t> begins_, ends_;
  std::vector<std::uint8_t> colors_;
  std::vector<std::uint32_t> ids_;
  std::vector<Sums> sums_;                  // of spans [0, i * stride)
  std::vector<std::int64_t> block_begins_;  // of span i * stride: a column's end is found without touching the rest
  Sums running_{};
};

}  // namespace spillway::gui
