#include "validation/published/case_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace spillway::validation {
namespace {

// Figures that share an axis.
struct Family {
  std::string_view title, unit;
  std::vector<Metric> metrics;
  double scale = 1;  // of the axis' unit, in base units
};
const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"Iteration time", "s", {Metric::iteration_time}, 1},
      {"Throughput", "samples/s or tokens/s, as published", {Metric::throughput}, 1},
      {"Memory",
       "GiB",
       {Metric::peak_allocated, Metric::peak_reserved, Metric::state_memory, Metric::activation_memory,
        Metric::layer_state_memory, Metric::layer_kept_memory},
       1073741824},
      {"Layer time", "ms", {Metric::layer_forward_time, Metric::layer_backward_time, Metric::layer_time}, 1e-3},
      {"Model flops utilisation", "%", {Metric::mfu}, 0.01}};
  return all;
}

bool holds(const Family& family, Metric metric) {
  return std::find(family.metrics.begin(), family.metrics.end(), metric) != family.metrics.end();
}

std::string legend_words(const CaseSummary& summary, const Family& family) {
  std::string words = summary.source;
  if (family.metrics.size() > 1) words += fmt::format(", {}", to_string(summary.metric));
  if (summary.role == "fit") words += ", used in a fit";
  return fmt::format("{}: {} cases, median {:.1f} %, 90th percentile {:.1f} %", words, summary.errors.n,
                     100 * summary.errors.median_abs, 100 * summary.errors.p90_abs);
}

}  // namespace

std::vector<ScatterPanel> scatter_panels(const std::vector<CaseOutcome>& outcomes,
                                         const std::vector<CaseSummary>& summaries) {
  std::vector<ScatterPanel> panels;
  for (const Family& family : families()) {
    ScatterPanel panel{std::string(family.title), std::string(family.unit), {}, {}};
    std::vector<std::string> sources;
    for (const CaseOutcome& outcome : outcomes) {
      const Case& one = *outcome.measured;
      if (!outcome.skipped.empty() || outcome.predicted <= 0 || !holds(family, one.metric)) continue;
      auto source = std::find(sources.begin(), sources.end(), one.source);
      if (source == sources.end()) source = sources.insert(source, one.source);
      const double scale = unit_scale(one.metric, one.unit) / family.scale;
      panel.points.push_back({outcome.figure() * scale, outcome.predicted * scale, one.role == "fit",
                              static_cast<std::size_t>(source - sources.begin())});
    }
    for (std::size_t i = 0; i < sources.size(); ++i)
      for (const CaseSummary& summary : summaries)
        if (summary.source == sources[i] && holds(family, summary.metric))
          panel.legend.push_back({i, summary.role == "fit", legend_words(summary, family)});
    panels.push_back(std::move(panel));
  }
  return panels;
}

}  // namespace spillway::validation
