// Writers that lay text out or zip: each in a module with its libraries, which are dozens.
#include <string>

#include "base/input_error.h"
#include "base/loaded_module.h"
#include "reports/report_document.h"

namespace spillway::reports {
namespace {

[[maybe_unused]] std::string written_by(const char* module, const char* function, const ReportDocument& document) {
  using Writer = void(const ReportDocument&, std::string&);
  const auto write = reinterpret_cast<Writer*>(
      module_function(module, "reports", function, "install the library that it needs, or write .html or .csv"));
  std::string bytes;
  write(document, bytes);
  return bytes;
}

}  // namespace

#ifdef SPILLWAY_PANGO
std::string report_pdf(const ReportDocument& document) {
  return written_by("libspillway_pdf.so", "spillway_report_pdf", document);
}
#else
std::string report_pdf(const ReportDocument&) {
  throw InputError("", "report", "this program was built without pango, which lays out PDF",
                   "install libpango1.0-dev and build again, or write .html");
}
#endif

#ifdef SPILLWAY_XLSXWRITER
std::string report_xlsx(const ReportDocument& document) {
  return written_by("libspillway_xlsx.so", "spillway_report_xlsx", document);
}
#else
std::string report_xlsx(const ReportDocument&) {
  throw InputError("", "report", "this program was built without libxlsxwriter",
                   "install libxlsxwriter-dev and build again, or write .csv");
}
#endif

}  // namespace spillway::reports
