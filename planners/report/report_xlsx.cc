#include "planners/report/report_document.h"
#include "traces/base/input_error.h"

#ifdef SPILLWAY_XLSXWRITER
#include <fmt/format.h>
#include <unistd.h>
#include <xlsxwriter.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace spillway {
namespace {

// A place for the library to write to; gone when it goes.
class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "spillway-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) throw InputError(path_, "", "no temporary file can be made there", "set TMPDIR to a writable folder");
    close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::remove(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Excel allows 31 characters and not these.
std::string sheet_name(std::string name, std::size_t number) {
  for (char& c : name)
    if (std::string("[]:*?/\\'").find(c) != std::string::npos || static_cast<unsigned char>(c) >= 0x80) c = ' ';
  return fmt::format("{} {}", number, name).substr(0, 31);
}

class Book {
 public:
  explicit Book(const std::string& path) : book_(workbook_new(path.c_str())) {
    bold_ = workbook_add_format(book_);
    format_set_bold(bold_);
    wrapped_ = workbook_add_format(book_);
    format_set_text_wrap(wrapped_);
    format_set_align(wrapped_, LXW_ALIGN_VERTICAL_TOP);
  }

  void summary(const ReportDocument& document) {
    lxw_worksheet* sheet = workbook_add_worksheet(book_, "Summary");
    worksheet_set_column(sheet, 0, 0, 110, nullptr);
    lxw_row_t row = 0;
    const auto line = [&](const std::string& text, lxw_format* format) {
      worksheet_write_string(sheet, row++, 0, text.c_str(), format);
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
  }

  void table(const ReportTable& what, const std::string& heading, std::size_t number) {
    const std::string name = sheet_name(what.caption.empty() ? heading : what.caption, number);
    lxw_worksheet* sheet = workbook_add_worksheet(book_, name.c_str());
    for (std::size_t c = 0; c < what.columns.size(); ++c) {
      const auto column = static_cast<lxw_col_t>(c);
      std::size_t widest = what.columns[c].size();
      worksheet_write_string(sheet, 0, column, what.columns[c].c_str(), bold_);
      for (std::size_t r = 0; r < what.rows.size(); ++r) {
        const ReportCell& cell = what.rows[r][c];
        const auto row = static_cast<lxw_row_t>(r + 1);
        widest = std::max(widest, cell.text.size());
        if (cell.number)
          worksheet_write_number(sheet, row, column, *cell.number, nullptr);
        else
          worksheet_write_string(sheet, row, column, cell.text.c_str(), nullptr);
      }
      worksheet_set_column(sheet, column, column, std::min<double>(60, static_cast<double>(widest) + 2), nullptr);
    }
    worksheet_freeze_panes(sheet, 1, 0);
  }

  void close(const std::string& title) {
    std::string named = title;
    lxw_doc_properties properties{};
    properties.title = named.data();
    properties.created = 1;  // the library takes 0 for the clock; no clock in the file
    workbook_set_properties(book_, &properties);
    const lxw_error error = workbook_close(book_);
    if (error != LXW_NO_ERROR)
      throw InputError("", "report", lxw_strerror(error), "check the space of the temporary folder");
  }

 private:
  lxw_workbook* book_;
  lxw_format* bold_ = nullptr;
  lxw_format* wrapped_ = nullptr;
};

}  // namespace

std::string report_xlsx(const ReportDocument& document) {
  const TemporaryFile file;
  Book book(file.path());
  book.summary(document);
  std::size_t number = 0;
  for (const ReportSection& section : document.sections)
    for (const ReportTable& table : section.tables) book.table(table, section.heading, ++number);
  book.close(document.title);
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace spillway

#else

namespace spillway {

std::string report_xlsx(const ReportDocument&) {
  throw InputError("", "report", "this program was built without libxlsxwriter",
                   "install libxlsxwriter-dev and build again, or write .csv");
}

}  // namespace spillway

#endif
