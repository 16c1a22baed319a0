#include "gui/plots/plot_picture.h"

#include <gtest/gtest.h>

#include <QImage>
#include <cmath>

namespace spillway::gui {
namespace {

PlotScene points(std::vector<std::pair<double, double>> at) {
  PlotScene scene;
  scene.x_title = "across";
  scene.y_title = "up";
  scene.series = {{"points", Token::accent}};
  for (const auto& [x, y] : at) {
    PlotPoint point;
    point.x = x;
    point.y = y;
    point.name = QString("point at %1").arg(x);
    point.id = static_cast<qint64>(scene.points.size());
    scene.points.push_back(std::move(point));
  }
  return scene;
}

int colored(const QImage& image, const QRectF& in, const QColor& color) {
  int found = 0;
  for (int y = static_cast<int>(in.top()); y < in.bottom(); ++y)
    for (int x = static_cast<int>(in.left()); x < in.right(); ++x)
      found += image.rect().contains(x, y) && image.pixelColor(x, y) == color ? 1 : 0;
  return found;
}

QImage painted(const PlotScene& scene, const PlotGeometry& geometry, QSize size) {
  QImage image(size, QImage::Format_RGB32);
  image.fill(light_theme().background);
  QPainter painter(&image);
  paint_plot(painter, scene, geometry, light_theme());
  return image;
}

// Every point is inside the plot, is drawn where it says it is, and is what the pointer finds there.
TEST(PlotPicture, APointIsFoundWhereItIsDrawn) {
  for (const double spread : {1.5, 1e4}) {  // linear, logarithmic
    const PlotScene scene = points({{1, 3}, {spread, 5}, {spread / 1.2, 3 * spread}, {spread / 2 + 0.6, 4}});
    const QSize size(640, 400);
    const PlotGeometry geometry(scene, size, QFont());
    const QImage image = painted(scene, geometry, size);
    for (std::size_t i = 0; i < scene.points.size(); ++i) {
      const QPointF at = geometry.place(i);
      EXPECT_TRUE(geometry.plot().contains(at)) << i;
      EXPECT_EQ(geometry.item_at(at), i);
      EXPECT_GT(colored(image, QRectF(at.x() - 3, at.y() - 3, 6, 6), light_theme().accent), 8) << i;
    }
    EXPECT_FALSE(geometry.item_at({geometry.plot().left() + 1, geometry.plot().bottom() + 30}).has_value());
  }
}

TEST(PlotPicture, NamesCoverNoMarkAndNoLine) {
  PlotScene scene;
  scene.series = {{"kernels", Token::accent, PlotShape::disc, 10}};
  for (int i = 0; i < 12; ++i) {
    PlotPoint point;
    point.x = i < 8 ? 1 : i;
    point.y = 1 + i;
    point.name = QString("a kernel's name %1").arg(i);
    point.is_named = true;
    scene.points.push_back(point);
  }
  scene.lines.push_back({"roof", Token::bad, {{1, 9}, {6, 12}, {12, 12}}});
  const QFont font;
  const PlotGeometry geometry(scene, {700, 400}, font);
  const std::vector<PlacedName> names = placed_names(scene, geometry, QFontMetrics(font));
  EXPECT_GE(names.size(), 8U);
  for (const PlacedName& name : names) {
    EXPECT_TRUE(geometry.plot().contains(name.box)) << name.point;
    for (const PlotPoint& point : scene.points)
      EXPECT_FALSE(name.box.contains(geometry.at({point.x, point.y}))) << name.point;
    const std::vector<QPointF>& roof = scene.lines.front().at;
    for (std::size_t i = 1; i < roof.size(); ++i)
      for (int part = 0; part <= 1000; ++part) {
        const QPointF from = geometry.at(roof[i - 1]), to = geometry.at(roof[i]);
        EXPECT_FALSE(name.box.contains(from + (to - from) * part / 1000.0)) << name.point;
      }
    for (const PlacedName& other : names) EXPECT_TRUE(&other == &name || !other.box.intersects(name.box));
  }
}

// Labels stand at round values, and no two of one axis on each other.
TEST(PlotPicture, TicksAreRound) {
  const PlotScene scene = points({{31'250, 20.4}, {77'529, 78.2}});
  const PlotGeometry geometry(scene, QSize(900, 500), QFont());
  const auto is_round = [](double value) {
    const double digits = value / std::pow(10, std::floor(std::log10(value)));
    return std::abs(digits * 2 - std::round(digits * 2)) < 1e-6;
  };
  ASSERT_GE(geometry.x().ticks(8).size(), 3U);
  ASSERT_GE(geometry.y().ticks(6).size(), 3U);
  for (const double tick : geometry.x().ticks(8)) EXPECT_TRUE(is_round(tick)) << tick;
  for (const double tick : geometry.y().ticks(6)) EXPECT_TRUE(is_round(tick)) << tick;
}

// A zoomed plot shows the part that was asked for, on linear and on logarithmic axes; never more than all of it.
TEST(PlotPicture, AWindowFillsThePlot) {
  for (const double spread : {2.0, 1e5}) {
    const PlotScene scene = points({{1, 1}, {spread, spread}});
    const QSize size(500, 400);
    const PlotGeometry whole(scene, size, QFont());
    const PlotWindow window = whole.window_of({0.25, 0.25, 0.5, 0.5});
    const PlotGeometry part(scene, size, QFont(), window);
    EXPECT_NEAR(part.x().low(), window.left, 1e-9 * spread);
    EXPECT_NEAR(part.x().high(), window.right, 1e-9 * spread);
    EXPECT_NEAR(part.y().high(), window.top, 1e-9 * spread);
    EXPECT_GT(window.left, whole.x().low());
    EXPECT_LT(window.right, whole.x().high());
    const PlotGeometry out(scene, size, QFont(), whole.window_of({-1, -1, 3, 3}));
    EXPECT_NEAR(out.x().low(), whole.x().low(), 1e-9);
    EXPECT_NEAR(out.x().high(), whole.x().high(), 1e-9 * spread);
  }
}

// Bars: longer for more, in order from the top, found in their whole row.
TEST(PlotPicture, BarsAreAsLongAsTheirValues) {
  PlotScene scene;
  for (const double value : {40.0, 20.0, 1.0}) {
    PlotBar bar;
    bar.name = "resource";
    bar.value = value;
    scene.bars.push_back(bar);
  }
  scene.bars[1].before = 44;
  const PlotGeometry geometry(scene, QSize(700, 300), QFont());
  EXPECT_NEAR(geometry.bar(0).width(), 2 * geometry.bar(1).width(), 1);
  EXPECT_LT(geometry.bar(0).bottom(), geometry.bar(1).top());
  EXPECT_LE(geometry.x().at(44), geometry.plot().right());
  for (std::size_t i = 0; i < scene.bars.size(); ++i)
    EXPECT_EQ(geometry.item_at({10, geometry.row(i).center().y()}), i);
}

// A card is inside what it is painted on, wherever its point lies.
TEST(PlotPicture, CardsStayInside) {
  PlotScene scene = points({{1, 1}, {2, 2}, {1, 2}, {2, 1}});
  for (PlotPoint& point : scene.points) point.facts = {"a fact of some length that needs room", "another"};
  const QSize size(420, 260);
  const PlotGeometry geometry(scene, size, QFont());
  const QColor edge = light_theme()[Token::control];
  for (std::size_t i = 0; i < scene.points.size(); ++i) {
    QImage image(size, QImage::Format_RGB32);
    image.fill(light_theme().background);
    QPainter painter(&image);
    paint_card(painter, scene, geometry, i, QRectF(QPointF(), QSizeF(size)), light_theme(), "hint");
    painter.end();
    // Nothing is cut at an edge of the picture.
    EXPECT_EQ(colored(image, QRectF(0, 0, size.width(), 1), edge), 0) << i;
    EXPECT_EQ(colored(image, QRectF(0, size.height() - 1, size.width(), 1), edge), 0) << i;
    EXPECT_EQ(colored(image, QRectF(0, 0, 1, size.height()), edge), 0) << i;
    EXPECT_EQ(colored(image, QRectF(size.width() - 1, 0, 1, size.height()), edge), 0) << i;
    EXPECT_NE(image.pixelColor(geometry.place(i).toPoint() + QPoint(0, 7)), light_theme().background) << i;
  }
}

}  // namespace
}  // namespace spillway::gui
