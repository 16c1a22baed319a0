#include "reports/report_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/input_error.h"
#include "base/number_text.h"
#include "base/svg_text.h"
#include "reports/report_chart.h"

namespace spillway::reports {
namespace {

using testing::HasSubstr;

ReportDocument small() {
  ReportDocument document;
  document.title = "A <report> & more";
  document.subtitle = "one \"quoted\", line";
  document.answer = Verdict::fits;
  document.verdict = "Yes: it does.";
  ReportSection section{"First", {"Words."}, {"An item, with a comma"}, {}, {}};
  section.charts.push_back(
      {"Rates", "seconds", "GB/s", {{"required", {0, 1, 2}, {1, 3, 2}, false}, {"limit", {0, 2}, {2.5, 2.5}, true}}});
  section.tables.push_back(
      {"Figures", {"what", "GB"}, {{{"one, two", {}}, number_cell(12345.678)}, {{"say \"x\"", {}}, {"-", {}}}}});
  document.sections.push_back(section);
  return document;
}

TEST(ReportNumber, FourDigitsThousandsGrouped) {
  EXPECT_EQ(number_text(12.984), "12.98");
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(9999), "9999");
  EXPECT_EQ(number_text(12345.678), "12,346");
  EXPECT_EQ(number_text(-1234567), "-1,234,567");
  EXPECT_EQ(number_text(0.00012), "1.20e-04");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "-");
  EXPECT_FALSE(number_cell(std::numeric_limits<double>::infinity()).number);
}

// One file: no link, no script, all text escaped; charts as SVG.
TEST(ReportHtml, IsSelfContainedAndEscaped) {
  const std::string page = report_html(small());
  EXPECT_THAT(page, HasSubstr("A &lt;report&gt; &amp; more"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("class=\"verdict yes\""));
  EXPECT_THAT(page, testing::Not(HasSubstr("<script")));
  EXPECT_THAT(page, testing::Not(HasSubstr("<link")));
  EXPECT_THAT(page, testing::Not(HasSubstr("src=")));
}

// RFC 4180: quotes doubled, fields with commas quoted; numbers in full.
TEST(ReportCsv, QuotesWhatNeedsIt) {
  const std::string csv = report_csv(small());
  EXPECT_THAT(csv, HasSubstr("\"one, two\",12345.678\r\n"));
  EXPECT_THAT(csv, HasSubstr("\"say \"\"x\"\"\",-\r\n"));
  EXPECT_THAT(csv, HasSubstr("verdict,Yes: it does.\r\n"));
}

// Every writer gives the same bytes again, and its format's first ones.
TEST(ReportBytes, AreReproducible) {
  const ReportDocument document = small();
  EXPECT_EQ(report_html(document), report_html(document));
  try {
    const std::string pdf = report_pdf(document);
    EXPECT_EQ(pdf.substr(0, 5), "%PDF-");
    EXPECT_EQ(pdf, report_pdf(document));
    EXPECT_EQ(pdf.find("/CreationDate"), std::string::npos);
  } catch (const InputError& error) {
    EXPECT_THAT(error.cause(), HasSubstr("without pango"));
  }
  try {
    const std::string book = report_xlsx(document);
    EXPECT_EQ(book.substr(0, 2), "PK");
    EXPECT_EQ(book, report_xlsx(document));
  } catch (const InputError& error) {
    EXPECT_THAT(error.cause(), HasSubstr("without libxlsxwriter"));
  }
}

TEST(ReportBytes, UnknownEndingsAreRefused) { EXPECT_THROW(write_report(small(), "report.doc"), InputError); }

// Everything drawn lies within the picture.
TEST(ReportChart, StaysInsideItsFrame) {
  const ChartDrawing drawing = draw_chart(small().sections[0].charts[0], 500);
  for (const ChartLine& line : drawing.lines)
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      EXPECT_GE(line.x[i], 0);
      EXPECT_LE(line.x[i], 500);
      EXPECT_GE(line.y[i], 0);
      EXPECT_LE(line.y[i], drawing.height);
    }
  for (const ChartText& text : drawing.texts) EXPECT_LE(text.y, drawing.height);
  ReportChart empty{"nothing", "x", "y", {}};
  EXPECT_GT(draw_chart(empty, 300).height, 0);
}

// A swing's bar runs from the base to where the answer goes, light where the input is low; all of it inside the
// picture, names and inputs too.
TEST(ReportTornado, BarsGoFromTheBase) {
  const ReportTornado tornado{
      "Cost of it all",
      "USD",
      100,
      {{"price", "x 0.5", "x 2", 60, 180}, {"life", "1 year", "5 years", 120, 90}, {"one-sided", "0", "9", 100, 104}}};
  const ChartDrawing drawing = draw_tornado(tornado, 500);
  std::vector<const ChartLine*> bars;
  for (const ChartLine& line : drawing.lines)
    if (line.width > 10) bars.push_back(&line);
  ASSERT_EQ(bars.size(), 6U);
  const double base = bars[0]->x[0];
  for (std::size_t i = 0; i < bars.size(); ++i) EXPECT_EQ(bars[i]->x[0], base) << i;
  EXPECT_LT(bars[0]->x[1], base);  // 60
  EXPECT_GT(bars[1]->x[1], base);  // 180
  EXPECT_NEAR((bars[1]->x[1] - base) / (base - bars[0]->x[1]), 80.0 / 40, 1e-9);
  EXPECT_GT(bars[2]->x[1], base);  // a low input may raise the answer
  EXPECT_EQ(bars[4]->x[1], base);
  EXPECT_NE(bars[0]->colour, bars[1]->colour);
  for (const ChartLine& line : drawing.lines)
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      EXPECT_GE(line.x[i], 0);
      EXPECT_LE(line.x[i], 500);
      EXPECT_GE(line.y[i], 0);
      EXPECT_LE(line.y[i], drawing.height);
    }
  for (const ChartText& text : drawing.texts) {
    const double wide = text_width(text.text, text.size);
    const double left = text.anchor == ChartAnchor::end      ? text.x - wide
                        : text.anchor == ChartAnchor::middle ? text.x - wide / 2
                                                             : text.x;
    EXPECT_GE(left, -1) << text.text;
    EXPECT_LE(left + wide, 501) << text.text;
    EXPECT_LE(text.y, drawing.height) << text.text;
  }
}

}  // namespace
}  // namespace spillway::reports
