// The window's own painters, offscreen: what a repaint takes at 1920 x 1080.
#include <benchmark/benchmark.h>

#include <QGuiApplication>
#include <random>

#include "gui/canvas/memory_scene.h"
#include "gui/canvas/track_painter.h"

namespace spillway::gui {
namespace {

void need_application() {
  static int count = 1;
  static char name[] = "bench";
  static char* arguments[] = {name, nullptr};
  qputenv("QT_QPA_PLATFORM", "offscreen");
  static QGuiApplication application(count, arguments);
}

// 64 lanes; a lane's spans are 1 to 20 us long with pauses.
TimelineScene lanes_of(std::int64_t spans) {
  std::mt19937 random(1);
  TimelineScene scene;
  scene.lanes.resize(64);
  for (std::size_t lane = 0; lane < scene.lanes.size(); ++lane) {
    scene.lanes[lane].name = "stream " + std::to_string(lane);
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < spans / 64; ++i) {
      const std::int64_t length = 1'000'000 + static_cast<std::int64_t>(random() % 19'000'000);
      scene.lanes[lane].spans.add(at, at + length, static_cast<std::uint8_t>(random() % most_span_colors), 0);
      at += length + static_cast<std::int64_t>(random() % 2'000'000);
    }
    scene.whole.end = std::max(scene.whole.end, at);
  }
  return scene;
}

// Every lane a track.
std::vector<Track> tracks_of(std::size_t lanes) {
  std::vector<Track> tracks(lanes);
  for (std::size_t i = 0; i < lanes; ++i) {
    tracks[i].lanes = {i};
    tracks[i].row_height = 13;
    tracks[i].gap = 3;
  }
  return tracks;
}

TrackLook look_of(TimeRange whole, double part, const std::vector<Track>& tracks) {
  TrackLook look;
  look.frame = {.size = {1920, 1080}, .axis = canvas_top};
  look.whole = whole;
  look.view = {0, static_cast<std::int64_t>(static_cast<double>(whole.end) * part)};
  look.tracks = &tracks;
  return look;
}

// Arguments: spans, and the part of the time that is in view, in millionths.
void paint_spans(benchmark::State& state) {
  need_application();
  static TimelineScene scene;
  static std::int64_t made = 0;
  if (made != state.range(0)) scene = lanes_of(made = state.range(0));
  const std::vector<Track> tracks = tracks_of(scene.lanes.size());
  const TrackLook look = look_of(scene.whole, static_cast<double>(state.range(1)) * 1e-6, tracks);
  TrackScene shown;
  shown.lanes = &scene;
  for (auto _ : state) benchmark::DoNotOptimize(paint_tracks(shown, look, light_theme()));
}
BENCHMARK(paint_spans)
    ->ArgsProduct({{1'000'000, 10'000'000}, {1'000'000, 100'000, 10'000, 1'000}})
    ->ArgNames({"spans", "view_ppm"})
    ->Unit(benchmark::kMillisecond);

MemoryPicture blocks_of(std::int64_t count) {
  std::mt19937 random(2);
  MemoryPicture picture;
  picture.timed = true;
  picture.begin = 0;
  picture.end = 1'000'000'000;
  std::uint64_t address = std::uint64_t{1} << 32;
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % 500 == 0) address += 1 << 20;
    const auto begin = static_cast<std::int64_t>(random() % 1'000'000'000);
    picture.blocks.push_back({begin, std::min<std::int64_t>(begin + random() % 40'000'000, 1'000'000'000), address,
                              Bytes(512 + random() % (1 << 21)), random() % 6});
    picture.changes.push_back({i * 400, static_cast<std::size_t>(i % 6), i % 2 == 0 ? 4096 : -2048});
    picture.curve.push_back({i * 1'000, Bytes(static_cast<std::int64_t>(random())), Bytes(std::int64_t{1} << 32)});
  }
  picture.kinds = {"activation", "weight", "gradient", "optimizer_state", "temporary", "input"};
  return picture;
}

void paint_memory(benchmark::State& state, TrackKind kind) {
  need_application();
  const auto scene = memory_scene(blocks_of(state.range(0)));
  std::vector<Track> tracks(1);
  tracks[0].kind = kind;
  tracks[0].row_height = 900;
  const TrackLook look = look_of(scene->whole, 1, tracks);
  TrackScene shown;
  shown.memory = scene.get();
  for (auto _ : state) benchmark::DoNotOptimize(paint_tracks(shown, look, light_theme()));
}
BENCHMARK_CAPTURE(paint_memory, map, TrackKind::map)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(paint_memory, owners, TrackKind::memory)->Arg(2'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spillway::gui

BENCHMARK_MAIN();
