#include "gui/canvas/track_list.h"

#include <algorithm>
#include <cstdio>

#include "base/number_text.h"
#include "base/short_text.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_packed_rows = 6;  // more are thinner
constexpr int packed_row = 14, span_row = 22, stage_row = 18, heading_row = 20, phase_row = 16;
constexpr int counter_row = 26, low_counter_row = 15, much_room = 420;

std::string busy_words(double idle) { return "busy " + percent_text(1 - idle); }

class List {
 public:
  List(const TrackScene& scene, const TrackChoice& choice) : scene_(scene), choice_(choice) {}

  std::vector<Track> make() {
    const std::size_t ranks = scene_.trace == nullptr ? 1 : std::max<std::size_t>(1, scene_.trace->rank_count);
    if (ranks > 1) stages();
    const std::uint16_t first = scene_.rank;
    group(first, ranks);
    for (std::uint16_t rank = 0; rank < ranks; ++rank)
      if (rank != first) group(rank, ranks);
    return std::move(tracks_);
  }

 private:
  [[nodiscard]] const RankResult* rank_of(std::size_t rank) const {
    return scene_.result != nullptr && rank < scene_.result->ranks.size() ? &scene_.result->ranks[rank] : nullptr;
  }

  // False: closed.
  bool heading(const std::string& name, const std::string& detail, bool open) {
    const bool is_open = open != (choice_.toggled.count(name) > 0);
    Track& track = tracks_.emplace_back();
    track.kind = TrackKind::heading;
    track.name = track.label = name;
    track.detail = detail;
    track.row_height = heading_row;
    track.gap = 2;
    track.is_closed = !is_open;
    return is_open;
  }

  void add(Track track) {
    if (choice_.hidden.count(track.name) == 0) tracks_.push_back(std::move(track));
  }

  void stages() {
    if (scene_.passes == nullptr || scene_.passes->empty()) return;
    const std::string detail = scene_.result == nullptr || !scene_.result->bubble
                                   ? ""
                                   : "bubbles " + percent_text(*scene_.result->bubble) + " of the time (hatched)";
    if (!heading("Pipeline, " + std::to_string(scene_.passes->lanes.size()) + " stages", detail, true)) return;
    for (std::size_t i = 0; i < scene_.passes->lanes.size(); ++i) {
      Track track;
      track.kind = TrackKind::pass;
      track.name = track.label = scene_.passes->lanes[i].name;
      if (const RankResult* const rank = rank_of(i); rank != nullptr && rank->peak_reserved > Bytes(0))
        track.detail = short_size(rank->peak_reserved);
      track.lanes = {i};
      track.row_height = stage_row;
      track.gap = 2;
      add(std::move(track));
    }
  }

  void group(std::uint16_t rank, std::size_t ranks) {
    const RankResult* const of = rank_of(rank);
    std::string name = ranks > 1 && of != nullptr ? of->name + ", its GPU" : "GPU " + std::to_string(rank);
    if (!scene_.device.empty()) name += " · " + scene_.device;
    // Of a capture without GPU work nothing ran on the profile's GPU.
    const bool is_host = scene_.result != nullptr && scene_.result->memory.on_host;
    if (is_host) name = "Host";
    std::string detail;
    const bool timed = scene_.lanes != nullptr && !scene_.lanes->empty() && scene_.result != nullptr;
    if (timed) {
      const std::optional<double> idle = of != nullptr ? of->bubble : scene_.result->bubble;
      detail = idle && !is_host ? busy_words(*idle) : "no work on a GPU";
    }
    if (timed && ranks == 1 && scene_.result->step_time > Picos(0))
      detail += " · mostly " + std::string(describe(scene_.result->binding));
    const bool is_shown = rank == scene_.rank;
    if (!heading(name, detail, is_shown)) return;
    if (is_shown && scene_.memory != nullptr) memory();
    if (is_shown) counters();
    if (ranks == 1) phase();
    std::vector<Track> spans = spans_of(rank);
    std::stable_partition(spans.begin(), spans.end(),
                          [this](const Track& track) { return choice_.pinned.count(track.name) > 0; });
    for (Track& track : spans) add(std::move(track));
    if (is_shown && scene_.memory != nullptr) map();
  }

  void memory() {
    Track track;
    track.kind = TrackKind::memory;
    track.name = "memory";
    track.label = "Memory";
    track.detail = "by owner";
    track.row_height = std::clamp(choice_.room * 2 / 5, 96, 170);
    add(std::move(track));
  }

  void counters() {
    if (scene_.counters == nullptr) return;
    for (std::size_t i = 0; i < scene_.counters->size(); ++i) {
      const CounterLane& counter = (*scene_.counters)[i];
      Track track;
      track.kind = TrackKind::counter;
      track.name = track.label = counter.name();
      track.detail = counter.counter().unit == studies::CounterUnit::share ? "" : "of " + counter.text(counter.top());
      track.lanes = {i};
      track.row_height = choice_.room < much_room ? low_counter_row : counter_row;
      add(std::move(track));
    }
  }

  void phase() {
    if (scene_.passes == nullptr || scene_.passes->empty() || scene_.passes->lanes.front().spans.size() == 0) return;
    Track track;
    track.kind = TrackKind::pass;
    track.name = "phase";
    track.label = "Phase";
    track.lanes = {0};
    track.row_height = phase_row;
    add(std::move(track));
  }

  void map() {
    Track track;
    track.kind = TrackKind::map;
    track.name = "address map";
    track.label = "Address map";
    track.detail = "blocks by owner";
    track.row_height = std::clamp(choice_.room / 4, 80, 190);
    add(std::move(track));
  }

  // Neighbouring rows of one lane, or of one lane's operators, are one track.
  std::vector<Track> spans_of(std::uint16_t rank) {
    std::vector<Track> found;
    if (scene_.lanes == nullptr) return found;
    LaneId last = LaneId::none;
    bool last_is_operators = false;
    for (std::size_t i = 0; i < scene_.lanes->lanes.size(); ++i) {
      const SceneLane& lane = scene_.lanes->lanes[i];
      const bool is_operators = lane.lane == LaneId::none;
      const bool goes_on = is_operators ? last_is_operators : lane.lane == last && !last_is_operators;
      const LaneId of = is_operators ? last : lane.lane;
      const std::uint16_t lane_rank =
          of == LaneId::none || scene_.trace == nullptr ? std::uint16_t{0} : scene_.trace->lanes[index_of(of)].rank;
      last = of;
      last_is_operators = is_operators;
      if (lane_rank != rank) continue;
      if (!goes_on || found.empty()) {
        Track& track = found.emplace_back();
        track.name = track.label = lane.name;
        track.row_height = span_row;
      }
      found.back().lanes.push_back(i);
    }
    for (Track& track : found) {
      if (track.lanes.size() == 1) continue;
      track.row_height = track.lanes.size() > most_packed_rows ? packed_row / 2 : packed_row;
      const LaneId of = scene_.lanes->lanes[track.lanes.front()].lane;
      if (of != LaneId::none) track.detail = std::to_string(track.lanes.size()) + " at once";
    }
    return found;
  }

  const TrackScene& scene_;
  const TrackChoice& choice_;
  std::vector<Track> tracks_;
};

}  // namespace

std::vector<Track> track_list(const TrackScene& scene, const TrackChoice& choice) { return List(scene, choice).make(); }

}  // namespace spillway::gui
