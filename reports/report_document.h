// ReportDocument: what a report says, before it becomes HTML, PDF, a spreadsheet or CSV.
//
// Writers are pure: the same document gives the same bytes, on any day. Dates in a report are those of its inputs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/replay/verdict.h"
#include "studies/procurement/formula_table.h"

namespace spillway::reports {

struct ReportCell {
  std::string text;              // as printed
  std::optional<double> number;  // for spreadsheets; in the unit of the column's heading
};

struct ReportTable {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<ReportCell>> rows;  // as many cells as columns
};

// Lines over two linear axes that begin at 0. Points in order of x.
struct ReportSeries {
  std::string name;
  std::vector<double> x, y;  // of equal length
  bool is_limit = false;     // dashed: a requirement rather than a course
};
struct ReportChart {
  std::string title, x_label, y_label;
  std::vector<ReportSeries> series;
};

// The answer with one assumption at a time low or high. Drawn in light and dark grey, widest first as
// given.
struct ReportSwing {
  std::string name;
  std::string low_input, high_input;  // as printed at the bar's ends
  double low = 0, high = 0;           // the answer then
};
struct ReportTornado {
  std::string title, x_label;
  double base = 0;
  std::vector<ReportSwing> swings;
};

struct ReportSection {
  std::string heading;
  std::vector<std::string> paragraphs, items;  // items: a list below the paragraphs
  std::vector<ReportChart> charts;
  std::vector<ReportTable> tables;
  std::vector<ReportTornado> tornados = {};
  bool new_page = false;   // in PDF and in print
  bool is_detail = false;  // what stands behind the answer: not for who asks in a terminal
};

struct ReportDocument {
  std::string title, subtitle;
  Verdict answer = Verdict::does_not_fit;  // "yes", "tight", "unknown" or "no"
  std::string verdict;                     // begins with "Yes", "Tight", "No" or "Unknown"
  std::vector<ReportSection> sections;
  FormulaWorkbook formulas;  // in spreadsheets, sheets with formulas before those of the tables
};

// One self-contained page with inline SVG.
std::string report_html(const ReportDocument& document);
// The tables one after the other, each under a line with its section and caption (RFC 4180).
std::string report_csv(const ReportDocument& document);
// A4. Throws InputError when the program was built without pango.
std::string report_pdf(const ReportDocument& document);
// One sheet per table, charts left out. Throws InputError when the program was built without libxlsxwriter.
std::string report_xlsx(const ReportDocument& document);

// Before anything is replayed for them. Throws InputError for an ending that is no report's, or a path given twice.
void check_report_paths(std::span<const std::string> paths);
// By the ending of `path`: .html, .pdf, .xlsx, .csv. Throws InputError for another one, or when it can't be written.
void write_report(const ReportDocument& document, const std::string& path);

// A cell of it.
ReportCell number_cell(double value);
// A cell that is no number.
ReportCell text_cell(std::string text);
// 1e9 of them.
double giga(double bytes);

}  // namespace spillway::reports
