// The module that writes reports as spreadsheets (report_modules.cc).
#include <fmt/format.h>
#include <unistd.h>
#include <xlsxwriter.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/input_error.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "base/svg_text.h"
#include "reports/report_document.h"

namespace spillway::reports {
namespace {

// A place for the library to write to; gone when it goes.
std::string temporary_path() {
  std::string path = temporary_folder() + "/spillway-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) throw InputError(path, "", "no temporary file can be made there", "set TMPDIR to a writable folder");
  close(file);
  return path;
}

// The library writes numbers as the thread's locale does, and a sheet takes no comma in them.
class NumbersWithPoints {
 public:
  NumbersWithPoints() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(plain_)) {}
  ~NumbersWithPoints() {
    uselocale(before_);
    freelocale(plain_);
  }
  NumbersWithPoints(const NumbersWithPoints&) = delete;
  NumbersWithPoints& operator=(const NumbersWithPoints&) = delete;

 private:
  locale_t plain_, before_;
};

// Excel allows 31 characters and not these.
std::string sheet_name(std::string name, std::size_t number) {
  for (char& c : name)
    if (std::string("[]:*?/\\'").find(c) != std::string::npos || static_cast<signed char>(c) < ' ')
      c = ' ';  // also what isn't ASCII
  return fmt::format("{} {}", number, name).substr(0, 31);
}

// The library escapes marks, but writes what XML does not allow.
void write_text(lxw_worksheet* sheet, lxw_row_t row, lxw_col_t column, const std::string& text, lxw_format* format) {
  worksheet_write_string(sheet, row, column, xml_characters(text).c_str(), format);
}

constexpr double line_height = 15, widest_column = 60, sheet_width = 150;  // points; widths in characters

// That a text takes in a column, wrapped at words.
std::size_t lines_in(const std::string& text, double width) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return static_cast<std::size_t>(std::ceil(static_cast<double>(letters) / (0.92 * width)));
}

void set_lines(lxw_worksheet* sheet, lxw_row_t row, std::size_t lines) {
  if (lines > 1) worksheet_set_row(sheet, row, line_height * static_cast<double>(lines), nullptr);
}

// A4, as many pages beside each other as can still be read, with the heading on each.
void set_print(lxw_worksheet* sheet, double width, lxw_row_t heading_row) {
  constexpr std::uint8_t a4 = 9;
  worksheet_set_paper(sheet, a4);
  worksheet_set_landscape(sheet);
  worksheet_fit_to_pages(sheet, static_cast<std::uint16_t>(std::max(1.0, std::ceil(width / sheet_width))), 0);
  worksheet_repeat_rows(sheet, 0, heading_row);
  worksheet_set_footer(sheet, "&L&A&R&P / &N");
}

class Book {
 public:
  Book(const std::string& path, std::string folder) : folder_(std::move(folder)) {
    lxw_workbook_options options{};
    options.tmpdir = folder_.data();
    book_ = workbook_new_opt(path.c_str(), &options);
    bold_ = workbook_add_format(book_);
    format_set_bold(bold_);
    wrapped_ = workbook_add_format(book_);
    format_set_text_wrap(wrapped_);
    format_set_align(wrapped_, LXW_ALIGN_VERTICAL_TOP);
    heading_ = workbook_add_format(book_);
    format_set_bold(heading_);
    format_set_text_wrap(heading_);
    format_set_align(heading_, LXW_ALIGN_RIGHT);
    figure_ = workbook_add_format(book_);
    format_set_num_format(figure_, "#,##0.0###");
    input_ = workbook_add_format(book_);
    format_set_num_format(input_, "#,##0.0###");
    format_set_bg_color(input_, 0xEFEFEF);  // what may be changed
  }

  void summary(const ReportDocument& document) {
    lxw_worksheet* sheet = workbook_add_worksheet(book_, "Summary");
    constexpr double width = 110;
    worksheet_set_column(sheet, 0, 0, width, nullptr);
    lxw_row_t row = 0;
    const auto line = [&](const std::string& text, lxw_format* format) {
      set_lines(sheet, row, lines_in(text, width));
      write_text(sheet, row++, 0, text, format);
    };
    line(document.title, bold_);
    line(document.subtitle, wrapped_);
    line(document.verdict, wrapped_);
    for (const ReportSection& section : document.sections) {
      ++row;
      line(section.heading, bold_);
      for (const std::string& text : section.paragraphs) line(text, wrapped_);
      for (const std::string& text : section.items) line(text, wrapped_);
    }
    set_print(sheet, width, 0);
  }

  void table(const ReportTable& what, const std::string& heading, std::size_t number) {
    const std::string name = sheet_name(what.caption.empty() ? heading : what.caption, number);
    lxw_worksheet* sheet = workbook_add_worksheet(book_, name.c_str());
    std::vector<std::size_t> lines(what.rows.size(), 1);
    double all = 0;
    for (std::size_t c = 0; c < what.columns.size(); ++c) {
      const auto column = static_cast<lxw_col_t>(c);
      std::size_t widest = what.columns[c].size();
      write_text(sheet, 0, column, what.columns[c], bold_);
      for (std::size_t r = 0; r < what.rows.size(); ++r) {
        const ReportCell& cell = what.rows[r][c];
        const auto row = static_cast<lxw_row_t>(r + 1);
        widest = std::max(widest, cell.text.size());
        if (cell.number)
          worksheet_write_number(sheet, row, column, *cell.number, nullptr);
        else
          write_text(sheet, row, column, cell.text, wrapped_);
      }
      const double width = std::min(widest_column, static_cast<double>(widest) + 2);
      worksheet_set_column(sheet, column, column, width, nullptr);
      all += width;
      for (std::size_t r = 0; r < what.rows.size(); ++r)
        if (!what.rows[r][c].number && static_cast<double>(what.rows[r][c].text.size()) > width)
          lines[r] = std::max(lines[r], lines_in(what.rows[r][c].text, width));
    }
    for (std::size_t r = 0; r < lines.size(); ++r) set_lines(sheet, static_cast<lxw_row_t>(r + 1), lines[r]);
    worksheet_freeze_panes(sheet, 1, 0);
    set_print(sheet, all, 0);
  }

  // A row for each field, a column for each case; what is worked out is a formula with our value as its cached one.
  void formulas(const FormulaWorkbook& book, std::size_t number) {
    const FormulaTable& what = book.tables()[number];
    lxw_worksheet* sheet = workbook_add_worksheet(book_, what.sheet.c_str());
    write_text(sheet, 0, 0, what.caption, bold_);
    const auto heading_row = static_cast<lxw_row_t>(first_case_row - 1);
    worksheet_write_string(sheet, heading_row, 0, "figure", bold_);
    worksheet_write_string(sheet, heading_row, 1, "unit", bold_);
    const std::size_t notes = first_case_column + what.cases.size();
    constexpr double label_width = 52, unit_width = 14, case_width = 18, note_width = 90;
    for (std::size_t c = 0; c < what.cases.size(); ++c)
      write_text(sheet, heading_row, static_cast<lxw_col_t>(first_case_column + c), what.cases[c].name, heading_);
    bool has_notes = false;
    for (std::size_t f = 0; f < what.fields.size(); ++f) {
      const auto row = static_cast<lxw_row_t>(first_case_row + f);
      write_text(sheet, row, 0, what.fields[f].label, nullptr);
      write_text(sheet, row, 1, what.fields[f].unit, nullptr);
      for (std::size_t c = 0; c < what.cases.size(); ++c) {
        const auto column = static_cast<lxw_col_t>(first_case_column + c);
        const std::string formula = cell_formula(book, number, c, f);
        const double value = what.values[c][f];
        if (formula.empty())
          worksheet_write_number(sheet, row, column, value, input_);
        else
          worksheet_write_formula_num(sheet, row, column, formula.c_str(), figure_, value);
        const auto note = what.cases[c].notes.find(what.fields[f].name);
        if (note == what.cases[c].notes.end() || c > 0) continue;
        has_notes = true;
        write_text(sheet, row, static_cast<lxw_col_t>(notes), note->second, wrapped_);
        set_lines(sheet, row, lines_in(note->second, note_width));
      }
    }
    if (has_notes) worksheet_write_string(sheet, heading_row, static_cast<lxw_col_t>(notes), "from", bold_);
    worksheet_set_column(sheet, 0, 0, label_width, nullptr);
    worksheet_set_column(sheet, 1, 1, unit_width, nullptr);
    worksheet_set_column(sheet, first_case_column, static_cast<lxw_col_t>(notes - 1), case_width, nullptr);
    if (has_notes)
      worksheet_set_column(sheet, static_cast<lxw_col_t>(notes), static_cast<lxw_col_t>(notes), note_width, nullptr);
    std::size_t heading_lines = 1;
    for (const FormulaCase& one : what.cases) heading_lines = std::max(heading_lines, lines_in(one.name, case_width));
    set_lines(sheet, heading_row, heading_lines);
    worksheet_repeat_columns(sheet, 0, 1);
    const double cases_width = case_width * static_cast<double>(what.cases.size());
    set_print(sheet, label_width + unit_width + cases_width + (has_notes ? note_width : 0), heading_row);
    worksheet_freeze_panes(sheet, static_cast<lxw_row_t>(first_case_row), static_cast<lxw_col_t>(first_case_column));
  }

  void close(const std::string& title) {
    std::string named = xml_characters(title);
    lxw_doc_properties properties{};
    properties.title = named.data();
    properties.created = 1;  // the library takes 0 for the clock; no clock in the file
    workbook_set_properties(book_, &properties);
    const lxw_error error = workbook_close(book_);
    if (error != LXW_NO_ERROR)
      throw InputError("", "report", lxw_strerror(error), "check the space of the temporary folder");
  }

 private:
  std::string folder_;
  lxw_workbook* book_ = nullptr;
  lxw_format* bold_ = nullptr;
  lxw_format* wrapped_ = nullptr;
  lxw_format *heading_ = nullptr, *figure_ = nullptr, *input_ = nullptr;
};

std::string xlsx_of(const ReportDocument& document) {
  const NumbersWithPoints scope;
  const UnfinishedFile file(temporary_path());
  Book book(file.path(), temporary_folder());
  book.summary(document);
  for (std::size_t sheet = 0; sheet < document.formulas.tables().size(); ++sheet)
    book.formulas(document.formulas, sheet);
  std::size_t number = 0;
  for (const ReportSection& section : document.sections)
    for (const ReportTable& table : section.tables) book.table(table, section.heading, ++number);
  book.close(document.title);
  return read_file_as_it_is(file.path());
}

}  // namespace
}  // namespace spillway::reports

extern "C" void spillway_report_xlsx(const spillway::reports::ReportDocument& document, std::string& bytes) {
  bytes = spillway::reports::xlsx_of(document);
}
