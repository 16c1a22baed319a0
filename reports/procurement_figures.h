// How procurement's reports print figures.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "base/number_text.h"
#include "reports/report_document.h"

namespace spillway::reports {

// Three significant digits: what rests on assumed prices has no more.
inline double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10, 2 - std::floor(std::log10(std::abs(value))));
  return scale >= 1 ? std::round(value * scale) / scale : std::round(value / (1 / scale)) * (1 / scale);
}
inline std::string figure(double value) { return number_text(rounded(value)); }
inline std::string dollars(double usd) {
  const double size = std::abs(usd);
  if (size >= 1e9) return figure(usd / 1e9) + " billion USD";
  if (size >= 1e6) return figure(usd / 1e6) + " million USD";
  return figure(usd) + " USD";
}
inline ReportCell cell(double value) {
  return {figure(value), std::isfinite(value) ? std::optional(value) : std::nullopt};
}
inline ReportCell count(std::int64_t value) { return number_cell(static_cast<double>(value)); }

}  // namespace spillway::reports
