#include "cli/output/report_output.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/markdown_text.h"
#include "cli/options/text_page.h"
#include "cli/output/table.h"

namespace spillway::cli {

namespace {

Table table_of(const ReportTable& from, std::size_t first_row, std::size_t end, std::size_t first_column) {
  Table table({from.columns.begin() + static_cast<std::ptrdiff_t>(first_column), from.columns.end()});
  for (std::size_t r = first_row; r < end; ++r) {
    std::vector<std::string> row;
    for (std::size_t c = first_column; c < from.rows[r].size(); ++c) row.push_back(from.rows[r][c].text);
    table.add(std::move(row));
  }
  return table;
}

// Rows of one thing, which the first column names again and again, stand below its name.
void print_table(const Context& context, const ReportTable& from) {
  const auto same = [&](std::size_t a, std::size_t b) {
    return from.rows[a].front().text == from.rows[b].front().text;
  };
  const Table whole = table_of(from, 0, from.rows.size(), 0);
  if (context.markdown()) return print("\n" + whole.markdown());
  std::size_t again = 0;
  for (std::size_t r = 0; r + 1 < from.rows.size(); ++r) again += same(r, r + 1) ? 1 : 0;
  if (2 * again < from.rows.size()) return print("\n" + whole.text(table_width()));
  for (std::size_t r = 0; r < from.rows.size();) {
    std::size_t end = r + 1;
    while (end < from.rows.size() && same(r, end)) ++end;
    print("\n" + paragraph(from.rows[r].front().text, page_width()) + table_of(from, r, end, 1).text(table_width()));
    r = end;
  }
}

}  // namespace

void print_document(const Context& context, const ReportDocument& document) {
  if (context.csv()) return print(report_csv(document));
  const bool is_markdown = context.markdown();
  const auto put = [&](const std::string& mark, const std::string& text, std::size_t indent) {
    print(is_markdown ? mark + markdown_text(text) + "\n" : paragraph(mark + text, page_width(), indent));
  };
  put(is_markdown ? "# " : "", document.title, 0);
  if (is_markdown) print("\n");
  put("", document.subtitle, 0);
  print("\n");
  if (is_markdown)
    print("**" + markdown_text(document.verdict) + "**\n");
  else
    put("", document.verdict, 2);
  const bool is_short = !is_markdown && !is_verbose() &&
                        std::any_of(document.sections.begin(), document.sections.end(),
                                    [](const ReportSection& section) { return section.is_detail; });
  for (const ReportSection& section : document.sections) {
    if (is_short && section.is_detail) continue;
    print("\n");
    put(is_markdown ? "## " : "", section.heading, 0);
    if (is_markdown) print("\n");
    for (const std::string& text : section.paragraphs) {
      put(is_markdown ? "" : "  ", text, 2);
      if (is_markdown) print("\n");
    }
    for (const std::string& item : section.items) put(is_markdown ? "- " : "  - ", item, 4);
    for (const ReportTable& table : section.tables) print_table(context, table);
  }
  if (is_short)
    print("\n" +
          paragraph("next: --verbose for all figures, --output report.html or .pdf for charts", page_width(), 2));
}

}  // namespace spillway::cli
