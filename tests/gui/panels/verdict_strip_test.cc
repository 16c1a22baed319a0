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

// Where there is no room for all, what alarms stays, and what says nothing goes.
TEST(VerdictStrip, WhatAlarmsStays) {
  const auto shown_at = [](int width, bool life_alarms, bool pcie_is_known) {
    std::vector<ShownFigure> figures(6);
    figures[4] = {.id = "pcie", .title = "PCIe busy", .value = pcie_is_known ? "14.8 %" : "not used"};
    figures[5] = {.id = "ssd-life", .title = "SSD life", .value = "0.8 years"};
    figures[5].is_alarm = life_alarms;
    VerdictStrip strip;
    strip.resize(width, strip.height());
    strip.show(figures);
    strip.setVisible(true);
    QApplication::processEvents();
    std::set<QString> titles;
    for (const QLabel* const label : strip.findChildren<QLabel*>())
      if (label->isVisible()) titles.insert(label->toolTip().section(' ', 0, 0));
    return titles;
  };
  EXPECT_TRUE(shown_at(1'400, true, true).contains("PCIe") && shown_at(1'400, true, true).contains("SSD"));
  EXPECT_TRUE(shown_at(960, true, true).contains("SSD"));
  EXPECT_FALSE(shown_at(960, true, true).contains("PCIe"));
  EXPECT_TRUE(shown_at(960, false, true).contains("PCIe"));
  EXPECT_FALSE(shown_at(960, false, true).contains("SSD"));
  EXPECT_TRUE(shown_at(960, false, false).contains("SSD"));
}

// A value has smaller letters, down to those of the details, before any of it is left out.
TEST(VerdictStrip, LettersOfValuesShrinkFirst) {
  VerdictStrip strip;
  ShownFigure figure;
  figure.title = "peak memory";
  figure.value = "26.51 of 23.00 GiB";
  strip.show({ShownFigure{}, figure});
  strip.setVisible(true);
  QLabel* value = nullptr;
  for (QLabel* const label : strip.findChildren<QLabel*>())
    if (label->toolTip() == QString::fromStdString(figure.value)) value = label;
  ASSERT_NE(value, nullptr);
  std::set<int> sizes;
  for (int width = 2600; width > 300; width -= 25) {
    strip.resize(width, strip.height());
    QApplication::processEvents();
    sizes.insert(value->font().pixelSize());
    EXPECT_TRUE(value->text() == QString::fromStdString(figure.value) || value->font().pixelSize() == 11) << width;
  }
  EXPECT_EQ(*sizes.begin(), 11);
  EXPECT_EQ(*sizes.rbegin(), 16);
}

}  // namespace
}  // namespace spillway::gui
