#include "gui/panels/verdict_strip.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QLabel>
#include <set>

namespace spillway::gui {
namespace {

// What a cell's labels say at a width, its title and value aside.
QString detail_at(int width) {
  VerdictStrip strip;
  ShownFigure figure;
  figure.title = "step time";
  figure.value = "435.8 ms";
  figure.detail = "37,597 tokens/s, MFU 37.3 %; 80 %: 390.5 to 457.9 ms";
  strip.show({figure});
  strip.resize(width, strip.height());
  strip.setVisible(true);
  QApplication::processEvents();
  for (const QLabel* const label : strip.findChildren<QLabel*>())
    if (label->toolTip() == QString::fromStdString(figure.detail)) return label->text();
  return "none";
}

// A narrow cell leaves out whole parts, from the right, rather than a half of one.
TEST(VerdictStrip, DetailsAreCutBetweenTheirParts) {
  EXPECT_EQ(detail_at(2600), "37,597 tokens/s, MFU 37.3 %; 80 %: 390.5 to 457.9 ms");
  std::set<QString> seen;
  for (int width = 2600; width > 300; width -= 25) seen.insert(detail_at(width));
  EXPECT_TRUE(seen.contains("37,597 tokens/s, MFU 37.3 %"));
  EXPECT_TRUE(seen.contains("37,597 tokens/s"));
  for (const QString& words : seen)
    EXPECT_TRUE(!words.contains(QChar(0x2026)) || !words.contains(", ")) << words.toStdString();
}

}  // namespace
}  // namespace spillway::gui
