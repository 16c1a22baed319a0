#include "cli/output/stretch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "cli/output/table.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double picos_in_ms = 1e9;
constexpr std::size_t shown_kernels = 12;  // rows of a table for people

double milliseconds(std::int64_t picos) { return static_cast<double>(picos) / picos_in_ms; }

std::int64_t place_of(std::string_view text, std::int64_t otherwise, const std::string& whole) {
  if (text.empty()) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr double most_ms = 1e9;
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= most_ms))
    throw InputError(whole, "--range", "no two times in milliseconds, FROM..TO",
                     "write the begin and the end, e.g. --range 10..20.5; either may be left out");
  return static_cast<std::int64_t>(value * picos_in_ms);
}

std::string mean_text(const studies::Counter& counter, const studies::Stretch& stretch) {
  const double mean = counter.mean(stretch.begin, stretch.end);
  if (counter.unit == studies::CounterUnit::share) return percent_text(mean);
  if (counter.unit == studies::CounterUnit::transfers) return fmt::format("{:.2f} transfers", mean);
  const std::string limit = counter.limit > 0 ? fmt::format(" of {:.2f}", counter.limit / 1e9) : std::string();
  return fmt::format("{:.2f}{} GB/s", mean / 1e9, limit);
}

template <class Row>
Json row_json(const Row& row) {
  return {{"name", row.name},
          {"count", row.count},
          {"time_ns", row.total / 1000},
          {"longest_ns", row.longest / 1000},
          {"bytes", row.bytes}};
}

}  // namespace

StretchReport stretch_report(const Trace& trace, const Result& result, const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos)
    throw InputError(text, "--range", "no two times in milliseconds, FROM..TO",
                     "write the begin and the end, e.g. --range 10..20.5; either may be left out");
  StretchReport report;
  const std::string_view view = text;
  report.stretch = {place_of(view.substr(0, dots), 0, text),
                    place_of(view.substr(dots + 2), std::max<std::int64_t>(1, result.replayed.count()), text)};
  if (report.stretch.begin >= report.stretch.end)
    throw InputError(text, "--range", "it ends before it begins",
                     fmt::format("the simulated step lasts {:.3f} ms", milliseconds(result.replayed.count())));
  studies::WorkSum sum = studies::work_of(trace, result, report.stretch);
  report.kinds = sum.kinds();
  report.work = std::move(sum).rows();
  report.passes = studies::passes_of(trace, result);
  for (auto& passes : report.passes)
    std::erase_if(passes, [&](const studies::Pass& pass) {
      return pass.end <= report.stretch.begin || pass.begin >= report.stretch.end;
    });
  report.numbered = studies::has_micro_batches(trace);
  report.counters = studies::counters_of(trace, result);
  return report;
}

std::string stretch_text(const StretchReport& report) {
  std::string text = fmt::format("\n  from {:.3f} to {:.3f} ms\n", milliseconds(report.stretch.begin),
                                 milliseconds(report.stretch.end));
  for (const studies::Counter& counter : report.counters)
    text += fmt::format("    {:<14} {} on average\n", counter.name, mean_text(counter, report.stretch));
  text += fmt::format("\n    {:>12} {:>8} {:>12}\n", "ms", "times", "bytes");
  const auto line = [](std::int64_t total, std::uint64_t count, std::int64_t bytes, const std::string& name) {
    return fmt::format("    {:>12.3f} {:>8} {:>12}  {}\n", milliseconds(total), count,
                       bytes > 0 ? bytes_text(Bytes(bytes)) : std::string(), name);
  };
  for (const studies::KindRow& row : report.kinds) text += line(row.total, row.count, row.bytes, row.name);
  text += "\n";
  for (std::size_t i = 0; i < std::min(report.work.size(), shown_kernels); ++i) {
    const studies::WorkRow& row = report.work[i];
    text += line(row.total, row.count, row.bytes, row.name + " (" + row.lane + ", " + row.phase + ")");
  }
  if (report.work.size() > shown_kernels)
    text += fmt::format("    and {} more: --format json has them\n", report.work.size() - shown_kernels);
  return text;
}

Json stretch_json(const StretchReport& report) {
  Json document = {{"begin_ns", report.stretch.begin / 1000},
                   {"end_ns", report.stretch.end / 1000},
                   {"counters", Json::array()},
                   {"kinds", Json::array()},
                   {"work", Json::array()},
                   {"passes", Json::array()}};
  for (const studies::Counter& counter : report.counters) {
    const bool is_rate = counter.unit == studies::CounterUnit::bytes_per_second;
    const char* const unit = is_rate                                       ? "bytes_per_second"
                             : counter.unit == studies::CounterUnit::share ? "fraction"
                                                                           : "transfers";
    document["counters"].push_back({{"name", counter.name},
                                    {"unit", unit},
                                    {"mean", counter.mean(report.stretch.begin, report.stretch.end)},
                                    {"limit", counter.limit > 0 ? Json(counter.limit) : Json()}});
  }
  for (const studies::KindRow& row : report.kinds) document["kinds"].push_back(row_json(row));
  for (const studies::WorkRow& row : report.work) {
    Json entry = row_json(row);
    entry.update({{"lane", row.lane}, {"phase", row.phase}});
    document["work"].push_back(std::move(entry));
  }
  for (std::size_t rank = 0; rank < report.passes.size(); ++rank)
    for (const studies::Pass& pass : report.passes[rank])
      document["passes"].push_back({{"rank", rank},
                                    {"name", studies::pass_name(pass, report.numbered)},
                                    {"begin_ns", pass.begin / 1000},
                                    {"end_ns", pass.end / 1000}});
  return document;
}

}  // namespace spillway::cli
