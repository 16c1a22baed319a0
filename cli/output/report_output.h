// A report's document on standard output, and into the file asked for.
#pragma once

#include <string>

#include "cli/options/context.h"
#include "reports/report_document.h"

namespace spillway::cli {

// As text: verdict, lists and tables; as CSV or Markdown if the context says so.
void print_document(const Context& context, const ReportDocument& document);

}  // namespace spillway::cli
