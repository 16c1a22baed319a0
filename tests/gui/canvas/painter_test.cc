// Pixels of our own painters. Places are computed from the frame, so no picture has to be kept.
#include <gtest/gtest.h>

#include <QGuiApplication>
#include <cmath>

#include "gui/canvas/track_painter.h"

namespace spillway::gui {
namespace {

// Fonts need an application.
class Painter : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static int count = 1;
    static char name[] = "painter";
    static char* arguments[] = {name, nullptr};
    if (QGuiApplication::instance() == nullptr) new QGuiApplication(count, arguments);  // lives as long as the program
  }
};

TimelineScene one_lane() {
  TimelineScene scene;
  scene.lanes.resize(1);
  scene.lanes[0].name = "stream 7";
  scene.lanes[0].spans.add(0, 250, 0, 0);
  scene.lanes[0].spans.add(500, 1'000, 2, 1);
  scene.whole = {0, 1'000};
  return scene;
}

QRgb at(const QImage& image, double x, double y) {
  const double ratio = image.devicePixelRatio();
  return image.pixel(static_cast<int>(x * ratio), static_cast<int>(y * ratio));
}

struct Canvas {
  explicit Canvas(std::vector<Track> of) : tracks(std::move(of)) {
    look.frame = {.size = {568, 300}, .axis = canvas_top};
    look.whole = look.view = {0, 1'000};
    look.tracks = &tracks;
  }
  [[nodiscard]] int top(std::size_t track) const { return TrackPlaces(scene, look).top(track); }
  std::vector<Track> tracks;
  TrackScene scene;
  TrackLook look;
};

Track track(TrackKind kind, int height) {
  Track made;
  made.kind = kind;
  made.name = made.label = "track";
  if (kind == TrackKind::spans || kind == TrackKind::pass) made.lanes = {0};
  made.row_height = height;
  return made;
}

// A quarter forward, a quarter nothing, half backward; at one and two device pixels per pixel, light and dark.
TEST_F(Painter, SpansAreWhereTheyBelong) {
  const TimelineScene lanes = one_lane();
  for (const double ratio : {1.0, 2.0})
    for (const Theme* theme : {&light_theme(), &dark_theme()}) {
      Canvas canvas({track(TrackKind::spans, 20)});
      canvas.scene.lanes = &lanes;
      canvas.look.frame.ratio = ratio;
      const QImage image = paint_tracks(canvas.scene, canvas.look, *theme);
      EXPECT_EQ(image.width(), static_cast<int>(568 * ratio));
      const double y = canvas.top(0) + 3;
      EXPECT_EQ(at(image, 168 + 50, y), theme->work[0].rgb());
      EXPECT_EQ(at(image, 168 + 130, y), theme->background.rgb());
      EXPECT_EQ(at(image, 168 + 300, y), theme->work[2].rgb());
    }
}

// 10 of weights to the end, 30 of activations in the second half, of 50 there are: owners in their order and colours.
TEST_F(Painter, MemoryIsStackedByOwner) {
  MemoryPicture picture;
  picture.begin = 0;
  picture.end = 1'000;
  picture.timed = true;
  picture.kinds = {"activation", "weight"};
  picture.changes = {{0, 1, 10 << 20}, {500, 0, 30 << 20}};
  picture.curve = {{0, Bytes(10 << 20), Bytes(10 << 20)}, {500, Bytes(40 << 20), Bytes(40 << 20)}};
  picture.capacity = Bytes(50 << 20);
  const auto memory = memory_scene(picture);
  for (const Theme* theme : {&light_theme(), &dark_theme()}) {
    Canvas canvas({track(TrackKind::memory, 200)});
    canvas.scene.memory = memory.get();
    const QImage image = paint_tracks(canvas.scene, canvas.look, *theme);
    const auto y_of = [&](int mebibytes) {
      const double part =
          static_cast<double>(mebibytes << 20) / static_cast<double>(memory_top(canvas.scene, canvas.look));
      return canvas.top(0) + 200 * (1 - part);
    };
    EXPECT_EQ(at(image, 168 + 100, y_of(5)), (*theme)[owner_token("weight")].rgb());
    EXPECT_NE(at(image, 168 + 100, y_of(25)), (*theme)[owner_token("activation")].rgb());
    EXPECT_EQ(at(image, 168 + 300, y_of(5)), (*theme)[owner_token("weight")].rgb());
    EXPECT_EQ(at(image, 168 + 300, y_of(25)), (*theme)[owner_token("activation")].rgb());
    EXPECT_EQ(at(image, 168 + 50, std::floor(y_of(50))), theme->capacity.rgb());
    // And so in the small picture.
    EXPECT_EQ(at(image, 168 + 300, minimap_height - 4), (*theme)[owner_token("weight")].rgb());
  }
}

TEST_F(Painter, TheMapPutsLowAddressesAtTheBottom) {
  MemoryPicture picture;
  picture.begin = 0;
  picture.end = 1'000;
  picture.blocks = {{0, 1'000, 1 << 30, Bytes(50 << 20), 0}, {500, 1'000, (1 << 30) + (50 << 20), Bytes(50 << 20), 1}};
  picture.kinds = {"weight", "activation"};
  picture.curve = {{0, Bytes(1), Bytes(1)}};
  const auto memory = memory_scene(picture);
  Canvas canvas({track(TrackKind::map, 200)});
  canvas.scene.memory = memory.get();
  const QImage image = paint_tracks(canvas.scene, canvas.look, light_theme());
  EXPECT_EQ(at(image, 168 + 100, canvas.top(0) + 160), light_theme()[owner_token("weight")].rgb());
  EXPECT_EQ(at(image, 168 + 300, canvas.top(0) + 40), light_theme()[owner_token("activation")].rgb());
  EXPECT_EQ(at(image, 168 + 100, canvas.top(0) + 40), light_theme()[Token::sunken].rgb());
}

// Between the first and the last pass what is idle is hatched, not blank.
TEST_F(Painter, BubblesAreHatched) {
  TimelineScene passes = one_lane();
  passes.passes = {{"0 forward"}, {"0 backward"}};
  Canvas canvas({track(TrackKind::pass, 20)});
  canvas.scene.passes = &passes;
  const QImage image = paint_tracks(canvas.scene, canvas.look, light_theme());
  bool hatched = false, blank = false;
  for (int x = 168 + 110; x < 168 + 190; ++x) {
    const QRgb pixel = at(image, x, canvas.top(0) + 10);
    hatched = hatched || pixel == light_theme()[Token::cached].rgb();
    blank = blank || pixel == light_theme().background.rgb();
  }
  EXPECT_TRUE(hatched);
  EXPECT_TRUE(blank);
}

// A block of the map that has room for its name has it, and only such a one.
TEST_F(Painter, BlocksWithRoomAreNamed) {
  Trace trace;
  trace.tensors.name.push_back(trace.strings.intern("layers.0.attention"));
  MemoryEvent event;
  event.tensor = static_cast<TensorId>(0);
  trace.memory_events.assign(2, event);
  MemoryPicture picture;
  picture.begin = 0;
  picture.end = 1'000;
  picture.kinds = {"activation"};
  picture.blocks = {{0, 1'000, 1 << 30, Bytes(90 << 20), 0, 0},
                    {0, 1'000, (1 << 30) + (90 << 20), Bytes(4 << 20), 0, 1}};
  picture.curve = {{0, Bytes(1), Bytes(1)}};
  const auto memory = memory_scene(picture);
  Canvas canvas({track(TrackKind::map, 200)});
  canvas.scene.memory = memory.get();
  const QImage plain = paint_tracks(canvas.scene, canvas.look, light_theme());
  canvas.scene.trace = &trace;
  const QImage named = paint_tracks(canvas.scene, canvas.look, light_theme());
  const auto differ = [&](int top, int bottom) {
    int found = 0;
    for (int y = top; y < bottom; ++y)
      for (int x = 168; x < 568; ++x) found += plain.pixel(x, y) != named.pixel(x, y) ? 1 : 0;
    return found;
  };
  EXPECT_GT(differ(canvas.top(0) + 60, canvas.top(0) + 200), 20);
  EXPECT_EQ(differ(canvas.top(0), canvas.top(0) + 14), 0);  // too low for letters
  canvas.look.view = {0, 1'000'000};                        // the blocks are a pixel wide
  canvas.look.whole = canvas.look.view;
  const QImage far = paint_tracks(canvas.scene, canvas.look, light_theme());
  canvas.scene.trace = nullptr;
  EXPECT_EQ(far, paint_tracks(canvas.scene, canvas.look, light_theme()));
}

// Ends of steps are lines where they are far apart, not a fence.
TEST_F(Painter, StepLinesAreNoFence) {
  const auto lines = [](int steps) {
    TimelineScene lanes = one_lane();
    for (int i = 0; i < steps; ++i) lanes.steps.push_back({"step", {i * 1'000 / steps, (i + 1) * 1'000 / steps}});
    Canvas canvas({track(TrackKind::spans, 20)});
    canvas.scene.lanes = &lanes;
    const QImage image = paint_tracks(canvas.scene, canvas.look, light_theme());
    int found = 0;
    for (int x = 168; x < 568; ++x) {
      bool dotted = false;
      for (int y = canvas.top(0) + 40; y < 290; ++y) dotted = dotted || at(image, x, y) == light_theme().muted.rgb();
      found += dotted ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(lines(4), 4);
  EXPECT_LE(lines(200), 10);  // of 400 pixels
  EXPECT_GE(lines(200), 5);
}

// The critical path runs through the spans it is made of, and nowhere else; without it nothing of it is seen.
TEST_F(Painter, TheCriticalPathIsDrawnAlongItsSpans) {
  Trace trace;
  Result result;
  for (const char* const name : {"stream 7", "stream 8"}) {
    const LaneId lane = trace.lane({.kind = LaneKind::stream,
                                    .device = 0,
                                    .number = static_cast<std::int64_t>(trace.lanes.size()) + 7,
                                    .name = trace.strings.intern(name)});
    trace.append_op(
        {.name = trace.strings.intern("work"), .kind = OpKind::kernel, .lane = lane, .duration = Picos(500)});
  }
  result.op_start = {Picos(0), Picos(500)};
  result.op_end = {Picos(500), Picos(1'000)};
  result.replayed = result.step_time = Picos(1'000);
  result.path.push_back({.op = OpId(0), .begin = Picos(0), .end = Picos(500)});
  const TimelineScene lanes = timeline_scene(trace, result);
  Track upper = track(TrackKind::spans, 20), lower = upper;
  upper.lanes = {0};
  lower.lanes = {1};
  Canvas canvas({upper, lower});
  canvas.scene.lanes = &lanes;
  canvas.scene.trace = &trace;
  canvas.scene.result = &result;
  const QImage plain = paint_tracks(canvas.scene, canvas.look, light_theme());
  canvas.look.with_path = true;
  const QImage with = paint_tracks(canvas.scene, canvas.look, light_theme());
  const auto differ = [&](int left, int right, int row) {
    int found = 0;
    for (int y = canvas.top(static_cast<std::size_t>(row)); y < canvas.top(static_cast<std::size_t>(row)) + 20; ++y)
      for (int x = 168 + left; x < 168 + right; ++x) found += plain.pixel(x, y) != with.pixel(x, y) ? 1 : 0;
    return found;
  };
  EXPECT_GT(differ(5, 195, 0), 190);  // a line all along
  EXPECT_EQ(differ(205, 395, 0), 0);
  EXPECT_EQ(differ(0, 400, 1), 0);
}

// What is pointed at is what is drawn there.
TEST_F(Painter, PlacesAreThoseOfThePicture) {
  Canvas canvas({track(TrackKind::heading, 20), track(TrackKind::spans, 22), track(TrackKind::memory, 100)});
  const TrackPlaces places(canvas.scene, canvas.look);
  EXPECT_FALSE(places.at(canvas_top - 1).has_value());
  EXPECT_EQ(places.at(canvas_top + 1)->track, 0U);
  EXPECT_EQ(places.at(places.top(1) + 1)->track, 1U);
  EXPECT_EQ(places.at(places.top(2) + 99)->track, 2U);
  EXPECT_FALSE(places.at(places.bottom() + 1).has_value());
}

// Dimmed, not blank, while newer figures are worked out.
TEST_F(Painter, StalePicturesAreDimmed) {
  const PlotFrame frame{.size = {300, 100}};
  QImage image = blank(frame, light_theme());
  image.fill(light_theme().work[0]);
  {
    QPainter painter(&image);
    paint_marks(painter, frame, {0, 10}, light_theme(), {.stale = true});
  }
  const QColor pixel = image.pixelColor(200, 50);
  EXPECT_NE(pixel, light_theme().work[0]);
  EXPECT_NE(pixel, light_theme().background);
}

}  // namespace
}  // namespace spillway::gui
