// The window's own painters, offscreen: what a repaint takes at 1920 x 1080.
#include <benchmark/benchmark.h>

#include <QGuiApplication>
#include <random>

#include "gui/canvas/memory_painter.h"
#include "gui/canvas/timeline_painter.h"

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

TimelineLook look_of(const TimelineScene& scene, double part) {
  TimelineLook look;
  look.frame = {.size = {1920, 1080}};
  look.lane_height = 13;
  look.gap = 3;
  look.view = {0, static_cast<std::int64_t>(static_cast<double>(scene.whole.end) * part)};
  for (std::size_t i = 0; i < scene.lanes.size(); ++i) look.lanes.push_back(i);
  return look;
}

// Arguments: spans, and the part of the time that is in view, in millionths.
void paint_spans(benchmark::State& state) {
  need_application();
  static TimelineScene scene;
  static std::int64_t made = 0;
  if (made != state.range(0)) scene = lanes_of(made = state.range(0));
  const TimelineLook look = look_of(scene, static_cast<double>(state.range(1)) * 1e-6);
  for (auto _ : state) benchmark::DoNotOptimize(paint_timeline(scene, {}, look, light_theme()));
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
    picture.curve.push_back({i * 1'000, Bytes(static_cast<std::int64_t>(random())), Bytes(std::int64_t{1} << 32)});
  }
  picture.kinds = {"activation", "weight", "gradient", "optimizer_state", "temporary", "input"};
  return picture;
}

void paint_map(benchmark::State& state) {
  need_application();
  const auto scene = memory_scene(blocks_of(state.range(0)));
  MemoryLook look;
  look.frame = {.size = {1920, 1080}};
  look.view = scene->whole;
  for (auto _ : state) benchmark::DoNotOptimize(paint_address_map(*scene, nullptr, look, light_theme()));
}
BENCHMARK(paint_map)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void paint_curve(benchmark::State& state) {
  need_application();
  const auto scene = memory_scene(blocks_of(state.range(0)));
  MemoryLook look;
  look.frame = {.size = {1920, 1080}};
  look.view = scene->whole;
  for (auto _ : state) benchmark::DoNotOptimize(paint_memory_curve(*scene, nullptr, look, light_theme()));
}
BENCHMARK(paint_curve)->Arg(2'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spillway::gui

BENCHMARK_MAIN();
