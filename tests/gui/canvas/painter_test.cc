// Pixels of our own painters. Places are computed from the frame, so no picture has to be kept.
#include <gtest/gtest.h>

#include <QGuiApplication>

#include "gui/canvas/memory_painter.h"
#include "gui/canvas/timeline_painter.h"

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

// A quarter blue, a quarter nothing, half orange; at one and two device pixels per pixel, light and dark.
TEST_F(Painter, TimelineHasItsSpansWhereTheyBelong) {
  const TimelineScene scene = one_lane();
  for (const double ratio : {1.0, 2.0})
    for (const Theme* theme : {&light_theme(), &dark_theme()}) {
      TimelineLook look;
      look.frame = {.size = {568, 100}, .ratio = ratio};
      look.view = scene.whole;
      look.lanes = {0};
      const QImage image = paint_timeline(scene, {}, look, *theme);
      EXPECT_EQ(image.width(), static_cast<int>(568 * ratio));
      const double y = look.frame.axis + look.gap + look.lane_height / 2.0;
      EXPECT_EQ(at(image, 168 + 50, y), theme->work[0].rgb());
      EXPECT_EQ(at(image, 168 + 130, y), theme->background.rgb());
      EXPECT_EQ(at(image, 168 + 300, y), theme->work[2].rgb());
    }
}

// The baseline is a strip below its lane, half as strong.
TEST_F(Painter, BaselineIsAGhostBelow) {
  const TimelineScene scene = one_lane();
  TimelineScene before = one_lane();
  before.lanes[0].spans.add(1'000, 1'000, 2, 2);
  TimelineLook look;
  look.frame = {.size = {568, 100}};
  look.view = scene.whole;
  look.lanes = {0};
  const QImage image = paint_timeline(scene, {.baseline = &before}, look, light_theme());
  const double y = look.frame.axis + look.gap / 2.0 + look.lane_height + 4;
  EXPECT_EQ(at(image, 168 + 50, y), light_theme().ghost(light_theme().work[0]).rgb());
}

TEST_F(Painter, StaleViewsAreDimmedNotBlank) {
  const TimelineScene scene = one_lane();
  TimelineLook look;
  look.frame = {.size = {568, 100}};
  look.view = scene.whole;
  look.lanes = {0};
  look.marks.stale = true;
  const QImage image = paint_timeline(scene, {}, look, light_theme());
  const QRgb pixel = at(image, 168 + 50, look.frame.axis + look.gap + 10);
  EXPECT_NE(pixel, light_theme().work[0].rgb());
  EXPECT_NE(pixel, light_theme().background.rgb());
}

// Allocated is half of the axis' 21/20 of the peak during the second half of the time, a quarter in the first.
TEST_F(Painter, CurveReachesItsValues) {
  MemoryPicture picture;
  picture.timed = true;
  picture.begin = 0;
  picture.end = 1'000;
  picture.curve = {{0, Bytes(500'000), Bytes(2'000'000)}, {500, Bytes(1'000'000), Bytes(2'000'000)}};
  const auto scene = memory_scene(picture);
  MemoryLook look;
  look.frame = {.size = {568, 424}};
  look.view = scene->whole;
  const QImage image = paint_memory_curve(*scene, nullptr, look, light_theme());
  const double height = 400, top = 2e6 * 8 / 7;  // a seventh is for the legend
  const auto y_of = [&](double bytes) { return 24 + height - bytes / top * height; };
  const QRgb body = light_theme().ghost(light_theme().allocated).rgb();
  EXPECT_EQ(at(image, 168 + 100, y_of(250'000)), body);
  EXPECT_NE(at(image, 168 + 100, y_of(700'000)), body);
  EXPECT_EQ(at(image, 168 + 300, y_of(700'000)), body);
  EXPECT_EQ(at(image, 168 + 380, y_of(2'000'000) + 0.5), light_theme().reserved.rgb());
}

TEST_F(Painter, MapPutsLowAddressesAtTheBottom) {
  MemoryPicture picture;
  picture.begin = 0;
  picture.end = 1'000;
  picture.blocks = {{0, 1'000, 1 << 30, Bytes(50 << 20), 0}, {500, 1'000, (1 << 30) + (50 << 20), Bytes(50 << 20), 1}};
  picture.kinds = {"weight", "activation"};
  picture.curve = {{0, Bytes(1), Bytes(1)}};
  const auto scene = memory_scene(picture);
  MemoryLook look;
  look.frame = {.size = {568, 424}};
  look.view = scene->whole;
  const QImage image = paint_address_map(*scene, nullptr, look, light_theme());
  EXPECT_EQ(at(image, 168 + 100, 424 - 60), light_theme().owner("weight").rgb());
  EXPECT_EQ(at(image, 168 + 300, 24 + 100), light_theme().owner("activation").rgb());
  EXPECT_EQ(at(image, 168 + 100, 24 + 100), light_theme().background.rgb());
}

}  // namespace
}  // namespace spillway::gui
