// Geometry of a report's charts: shapes in points, y downwards, for any painter.
#pragma once

#include <string>
#include <vector>

#include "reports/report_document.h"

namespace spillway::reports {

struct ChartLine {
  std::vector<double> x, y;
  std::string colour;  // "#RRGGBB"
  double width = 1;
  bool dashed = false;
};
enum class ChartAnchor { start, middle, end };
struct ChartText {
  double x = 0, y = 0;  // of the baseline
  double size = 10;
  ChartAnchor anchor = ChartAnchor::start;
  std::string text, colour;
};
struct ChartDrawing {
  double width = 0, height = 0;
  std::vector<ChartLine> lines;
  std::vector<ChartText> texts;
};

// `width` points wide, as high as its legend asks. Series without points are left out. O(points).
ChartDrawing draw_chart(const ReportChart& chart, double width);

// Bars around the base: where the answer goes with the input low (light) and high (dark). O(swings).
ChartDrawing draw_tornado(const ReportTornado& tornado, double width);

}  // namespace spillway::reports
