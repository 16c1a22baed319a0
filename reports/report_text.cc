#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/csv_cell.h"
#include "base/input_error.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "base/svg_canvas.h"
#include "base/svg_text.h"
#include "reports/report_chart.h"
#include "reports/report_document.h"

namespace spillway::reports {
namespace {

constexpr double chart_width = 720;
constexpr const char* endings[] = {".html", ".pdf", ".xlsx", ".csv"};

constexpr std::string_view style = R"(
body{font:15px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;color:#1a1a1a;background:#fff;margin:0}
main{max-width:960px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:24px;line-height:1.25;margin:0}h2{font-size:18px;margin:34px 0 8px}
.subtitle{color:#5f5f5f;margin:4px 0 18px}
.verdict{border-left:5px solid;padding:10px 14px;background:#f5f5f5}
.yes{border-color:#00795a}.tight{border-color:#8a5a00}.no{border-color:#b94600}.unknown{border-color:#6b7280}
p{margin:6px 0}ul{margin:6px 0;padding-left:20px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;margin:12px 0;min-width:50%}
caption{text-align:left;font-weight:600;padding:4px 0}
th,td{padding:4px 10px 4px 0;border-bottom:1px solid #e3e3e3;text-align:left;vertical-align:top}
th{border-bottom:1px solid #8a8a8a;font-weight:600}
td.n,th.n{text-align:right}td.n{font-variant-numeric:tabular-nums;white-space:nowrap}td:first-child{min-width:150px}
svg{max-width:100%;height:auto;margin:10px 0;display:block}
@media print{main{max-width:none;padding:0}h2{break-after:avoid}h2.page{break-before:page}table,svg{break-inside:avoid}}
)";

std::string paragraph(const std::string& text, std::string_view attributes = "") {
  return fmt::format("<p{}>{}</p>\n", attributes, svg_escape(text));
}

// A column of numbers in every row that has anything is flush right.
bool is_numeric(const ReportTable& table, std::size_t column) {
  bool any = false;
  for (const auto& row : table.rows) {
    if (row[column].number)
      any = true;
    else if (row[column].text != "-" && !row[column].text.empty())
      return false;
  }
  return any;
}

std::string table_html(const ReportTable& table) {
  std::string html = "<div class=\"wide\"><table>\n";
  if (!table.caption.empty()) html += "<caption>" + svg_escape(table.caption) + "</caption>\n";
  std::vector<std::string_view> marks;
  html += "<thead><tr>";
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    marks.push_back(is_numeric(table, c) ? " class=\"n\"" : "");
    html += fmt::format("<th{}>{}</th>", marks[c], svg_escape(table.columns[c]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      html += fmt::format("<td{}>{}</td>", marks[c], svg_escape(row[c].text));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string drawing_svg(const ChartDrawing& drawing, const std::string& title) {
  SvgCanvas canvas;
  for (const ChartLine& line : drawing.lines) {
    std::string points;
    for (std::size_t i = 0; i < line.x.size(); ++i) points += fmt::format("{:.1f},{:.1f} ", line.x[i], line.y[i]);
    canvas.put("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"{} points=\"{}\"/>\n", line.colour,
               line.width, line.dashed ? " stroke-dasharray=\"5 4\"" : "", points);
  }
  for (const ChartText& text : drawing.texts) {
    constexpr std::string_view anchors[] = {"start", "middle", "end"};
    canvas.text(text.x, text.y, text.size, text.text, text.colour, anchors[static_cast<int>(text.anchor)]);
  }
  return canvas.inline_element(drawing.width, drawing.height, title);
}

}  // namespace

ReportCell number_cell(double value) {
  return {number_text(value), std::isfinite(value) ? std::optional(value) : std::nullopt};
}

ReportCell text_cell(std::string text) { return {std::move(text), {}}; }

double giga(double bytes) { return bytes / 1e9; }

std::string report_html(const ReportDocument& document) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      svg_escape(document.title) + "</title>\n<style>" + std::string(style) + "</style>\n</head>\n<body>\n<main>\n";
  html += "<h1>" + svg_escape(document.title) + "</h1>\n";
  html += paragraph(document.subtitle, " class=\"subtitle\"");
  html += paragraph(document.verdict, fmt::format(" class=\"verdict {}\"", yes_or_no(document.answer)));
  for (const ReportSection& section : document.sections) {
    html += (section.new_page ? "<h2 class=\"page\">" : "<h2>") + svg_escape(section.heading) + "</h2>\n";
    for (const std::string& text : section.paragraphs) html += paragraph(text);
    if (!section.items.empty()) html += "<ul>\n";
    for (const std::string& item : section.items) html += "<li>" + svg_escape(item) + "</li>\n";
    if (!section.items.empty()) html += "</ul>\n";
    for (const ReportChart& chart : section.charts) html += drawing_svg(draw_chart(chart, chart_width), chart.title);
    for (const ReportTornado& tornado : section.tornados)
      html += drawing_svg(draw_tornado(tornado, chart_width), tornado.title);
    for (const ReportTable& table : section.tables) html += table_html(table);
  }
  return html + "</main>\n</body>\n</html>\n";
}

// The figures that tables above are worked out from, as they are: a row a field, a column a case.
static std::string formulas_csv(const FormulaWorkbook& book) {
  std::string csv;
  for (const FormulaTable& table : book.tables()) {
    csv += "\r\n" + csv_cell("Figures: " + table.sheet) + "," + csv_cell(table.caption) + "\r\n";
    csv += "field,label,unit,formula";
    for (const FormulaCase& one : table.cases) csv += "," + csv_cell(one.name);
    csv += "\r\n";
    for (std::size_t f = 0; f < table.fields.size(); ++f) {
      const FormulaField& field = table.fields[f];
      csv += csv_cell(field.name) + "," + csv_cell(field.label) + "," + csv_cell(field.unit) + "," +
             csv_cell(field.expression);
      for (const std::vector<double>& values : table.values) csv += fmt::format(",{:.17g}", values[f]);
      csv += "\r\n";
    }
  }
  return csv;
}

std::string report_csv(const ReportDocument& document) {
  std::string csv = csv_cell(document.title) + "," + csv_cell(document.subtitle) + "\r\n";
  csv += "verdict," + csv_cell(document.verdict) + "\r\n";
  for (const ReportSection& section : document.sections) {
    for (const std::string& text : section.paragraphs) csv += csv_cell(section.heading) + "," + csv_cell(text) + "\r\n";
    for (const std::string& item : section.items) csv += csv_cell(section.heading) + "," + csv_cell(item) + "\r\n";
    for (const ReportTable& table : section.tables) {
      csv += "\r\n" + csv_cell(section.heading) + "," + csv_cell(table.caption) + "\r\n";
      for (std::size_t c = 0; c < table.columns.size(); ++c) csv += (c > 0 ? "," : "") + csv_cell(table.columns[c]);
      csv += "\r\n";
      for (const auto& row : table.rows) {
        for (std::size_t c = 0; c < row.size(); ++c)
          csv += (c > 0 ? "," : "") + (row[c].number ? fmt::format("{:.10g}", *row[c].number) : csv_cell(row[c].text));
        csv += "\r\n";
      }
    }
  }
  return csv + formulas_csv(document.formulas);
}

// Made by way of a temporary file: what goes wrong there is said of the report.
static std::string xlsx_for(const ReportDocument& document, const std::string& path) {
  try {
    return report_xlsx(document);
  } catch (const InputError& error) {
    throw InputError(path, error.place(), error.cause(), error.remedy());
  }
}

void check_report_paths(std::span<const std::string> paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    if (std::none_of(std::begin(endings), std::end(endings), [&](const char* end) { return path.ends_with(end); }))
      throw InputError(path, "", "no kind of report ends like this", "end it in .html, .pdf, .xlsx or .csv");
    if (std::find(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(i), path) !=
        paths.begin() + static_cast<std::ptrdiff_t>(i))
      throw InputError(path, "", "given twice", "give each report its own file");
  }
}

void write_report(const ReportDocument& document, const std::string& path) {
  std::string bytes;
  if (path.ends_with(".html"))
    bytes = report_html(document);
  else if (path.ends_with(".csv"))
    bytes = report_csv(document);
  else if (path.ends_with(".pdf"))
    bytes = report_pdf(document);
  else if (path.ends_with(".xlsx"))
    bytes = xlsx_for(document, path);
  else
    throw InputError(path, "", "no kind of report ends like this", "end it in .html, .pdf, .xlsx or .csv");
  OutputFile out(path);
  out.write(bytes);
  out.commit();
}

}  // namespace spillway::reports
