// The canvas's tracks, one below another, in groups of a rank each, all over one axis.
//
//   GPU 0 . H100                       heading
//     memory   stacked by owner        of one GPU: that which needs most, or the one chosen
//     GPU busy, PCIe, drives           counters, of the same
//     phase    passes                  what the GPU is at; of a pipeline one row a stage, in a group of their own
//     stream 7, host, ...              spans; what runs at once is packed into rows of one track
//     address map
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gui/canvas/counter_lane.h"
#include "gui/canvas/memory_scene.h"
#include "gui/canvas/timeline_scene.h"

namespace spillway::gui {

enum class TrackKind : std::uint8_t { heading, memory, pass, spans, counter, map };

struct Track {
  TrackKind kind = TrackKind::spans;
  std::string name;           // unique; what hiding and pinning go by
  std::string label, detail;  // left of it; of a heading at the left and at the right
  std::vector<std::size_t>
      lanes;               // of spans: rows of scene.lanes; of a pass: one of passes.lanes; of a counter: of counters
  int row_height = 20;     // logical pixels, of each of its rows
  int gap = 5;             // below it
  bool is_closed = false;  // a heading: what is under it is not shown
  [[nodiscard]] int height() const {
    return row_height * static_cast<int>(std::max<std::size_t>(1, lanes.size())) + gap;
  }
};

// The sources of tracks, on one axis. All may be null; they outlive what is made of them.
struct TrackScene {
  const TimelineScene* lanes = nullptr;
  const TimelineScene* passes = nullptr;
  const MemoryScene* memory = nullptr;
  const std::vector<CounterLane>* counters = nullptr;  // on axes of time
  const Trace* trace = nullptr;
  const Result* result = nullptr;
  std::uint16_t rank = 0;  // the rank of memory and counters
  std::string device;      // "H100 80 GB"
};

struct TrackChoice {
  std::set<std::string> hidden, pinned;
  std::set<std::string>
      toggled;     // headings that are not as they are by themselves: open, of ranks behind the first not
  int room = 400;  // logical pixels there are
};

std::vector<Track> track_list(const TrackScene& scene, const TrackChoice& choice);

}  // namespace spillway::gui
