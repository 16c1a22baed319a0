#include "reports/sweep_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace spillway::reports {
namespace {

using Json = nlohmann::ordered_json;

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// Of a range, rounded; null where it isn't known.
Json end_of(const FigureRange& range, double value) { return range.known ? Json(std::llround(value)) : Json(); }

Json reasons_json(const std::map<std::string, SweepReason>& reasons) {
  Json list = Json::array();
  for (const auto& [reason, count] : reasons)
    list.push_back({{"reason", reason}, {"points", count.points}, {"first_point", count.example}});
  return list;
}

}  // namespace

Json sweep_row_json(const SweepRow& row) {
  Json settings = Json::object();
  for (const std::string& edit : row.candidate.edits) {
    const std::size_t equals = edit.find('=');
    settings[edit.substr(0, equals)] = edit.substr(equals + 1);
  }
  Json json = {{"point", row.number}, {"label", row.candidate.name}, {"settings", settings}};
  if (!row.ran()) {
    json["failure"] = row.error;
    return json;
  }
  const Figures& metrics = row.replayed;
  const Result& result = row.result;
  json["fits"] = fits_json(result.verdict());
  json["verdict"] = to_string(result.verdict());
  if (result.verdict() == Verdict::unknown) json["why_unknown"] = result.why_unknown();
  json["meets_requirements"] = row.does;
  json["on_front"] = row.on_front;
  json["step_time_ns"] = std::llround(static_cast<double>(result.step_time.count()) / 1e3);  // as `run` rounds it
  json["step_time_low_ns"] = end_of(result.step_time_range, result.step_time_range.low * metrics.step_seconds * 1e9);
  json["step_time_high_ns"] = end_of(result.step_time_range, result.step_time_range.high * metrics.step_seconds * 1e9);
  json["peak_allocated_bytes"] = metrics.peak_bytes > 0 ? Json(std::llround(metrics.allocated_bytes)) : Json();
  json["peak_reserved_bytes"] = metrics.peak_bytes > 0 ? Json(std::llround(metrics.peak_bytes)) : Json();
  json["peak_reserved_low_bytes"] = end_of(result.peak_range, result.peak_range.low * metrics.peak_bytes);
  json["peak_reserved_high_bytes"] = end_of(result.peak_range, result.peak_range.high * metrics.peak_bytes);
  json["capacity_bytes"] = result.memory.capacity > Bytes(0) ? Json(result.memory.capacity.count()) : Json();
  json["gpus"] = std::llround(metrics.gpus);
  json["tokens_per_second"] = metrics.step_seconds > 0 ? metrics.tokens_per_step / metrics.step_seconds : 0;
  json["usd_per_million_tokens"] =
      metrics.rates.usd_per_hour > 0 ? finite(metrics.value(Objective::cost_per_token) * 1e6) : Json();
  json["kwh_per_million_tokens"] =
      metrics.rates.busy_watts > 0 ? finite(metrics.value(Objective::energy_per_token) / 3.6) : Json();
  json["life_years"] = finite(metrics.life_years);
  json["life_low_years"] = finite(metrics.rated_years);
  json["mfu"] = result.mfu;
  json["binding_resource"] = to_string(result.binding);
  json["fingerprint"] = fmt::format("{:016x}", result.fingerprint);
  json["twin_of"] = row.twin_of ? Json(*row.twin_of) : Json();
  json["screened_is_bound"] = row.is_bound;
  json["screened_step_time_ns"] = std::llround(row.screened.step_seconds * 1e9);
  json["screened_peak_reserved_bytes"] = std::llround(row.screened.peak_bytes);
  return json;
}

Json sweep_error_json(const SweepError& error) {
  return {{"n", error.compared},
          {"median_abs_error", error.median},
          {"p90_abs_error", error.p90},
          {"worst_abs_error", error.worst}};
}

Json sweep_json(const SweepFile& file, const SweepOutcome& outcome) {
  Json json = {{"schema", "spillway.sweep"}, {"version", 1}, {"title", file.title}, {"whole", outcome.is_whole}};
  json["objectives"] = Json::array();
  for (const Objective objective : file.objectives) json["objectives"].push_back(std::string(to_string(objective)));
  json["points"] = outcome.points;
  json["left_out_by_rules"] = reasons_json(outcome.left_out);
  json["invalid"] = reasons_json(outcome.invalid);
  json["screened"] = outcome.screened;
  json["cannot_meet_requirements"] = outcome.unable;
  json["beaten_in_screen"] = outcome.beaten;
  json["beaten_by_replays"] = outcome.beaten_by_replay;
  json["replayed"] = outcome.rows.size();
  json["replays"] = outcome.replays;
  json["not_replayed"] = outcome.not_replayed;
  json["front_is_proven"] = outcome.is_proven();
  json["unproven_best"] = Json::object();
  if (outcome.not_replayed > 0)
    for (std::size_t i = 0; i < file.objectives.size(); ++i)
      json["unproven_best"][std::string(to_string(file.objectives[i]))] = finite(outcome.unproven[i]);
  json["screen_error"] = {{"step_time", sweep_error_json(outcome.time_error)},
                          {"peak_reserved", sweep_error_json(outcome.memory_error)},
                          {"step_time_above_bound", sweep_error_json(outcome.time_above_bound)},
                          {"below_bound", outcome.below_bound},
                          {"margin", file.margin},
                          {"memory_margin", file.memory_margin}};
  json["nearest"] = Json();
  if (const std::optional<SweepShortfall> nearest = nearest_to_meet(file, outcome)) {
    json["nearest"] = {{"point", nearest->row->number}, {"misses", Json::array()}};
    for (const Miss& miss : nearest->misses)
      json["nearest"]["misses"].push_back({{"what", miss.words}, {"share", finite(miss.share)}});
  }
  json["rows"] = Json::array();
  for (const SweepRow& row : outcome.rows) json["rows"].push_back(sweep_row_json(row));
  return json;
}

}  // namespace spillway::reports
