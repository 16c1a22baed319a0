#include "cli/output/report_output.h"

#include <string>
#include <vector>

#include "base/markdown_text.h"
#include "cli/output/table.h"

namespace spillway::cli {

void print_document(const Context& context, const ReportDocument& document) {
  if (context.csv()) return print(report_csv(document));
  const bool is_markdown = context.markdown();
  const auto shown = [&](const std::string& text) { return is_markdown ? markdown_text(text) : text; };
  print((is_markdown ? "# " : "") + shown(document.title) + "\n" + (is_markdown ? "\n" : "") +
        shown(document.subtitle) + "\n\n" +
        (is_markdown ? "**" + shown(document.verdict) + "**" : "  " + document.verdict) + "\n");
  for (const ReportSection& section : document.sections) {
    print((is_markdown ? "\n## " : "\n") + shown(section.heading) + (is_markdown ? "\n\n" : "\n"));
    for (const std::string& text : section.paragraphs)
      print((is_markdown ? "" : "  ") + shown(text) + (is_markdown ? "\n\n" : "\n"));
    for (const std::string& item : section.items) print((is_markdown ? "- " : "  - ") + shown(item) + "\n");
    for (const ReportTable& from : section.tables) {
      Table table(from.columns);
      for (const auto& cells : from.rows) {
        std::vector<std::string> row;
        for (const ReportCell& cell : cells) row.push_back(cell.text);
        table.add(std::move(row));
      }
      print("\n" + (is_markdown ? table.markdown() : table.text()));
    }
  }
}

}  // namespace spillway::cli
