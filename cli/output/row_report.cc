#include "cli/output/row_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/output/result_report.h"
#include "cli/output/table.h"
#include "planners/offload/drive_life.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

// As apply_setting() reads it.
Json value_json(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() || value.is_object() || value.is_array() ? Json(text) : value;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json traffic_json(const MovedBytes& traffic) {
  return {{"to_host", traffic.to_host.count()},
          {"from_host", traffic.from_host.count()},
          {"to_drives", traffic.to_drives.count()},
          {"from_drives", traffic.from_drives.count()}};
}

}  // namespace

Json edits_json(const std::vector<std::string>& settings) {
  Json edits = Json::object();
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    edits[setting.substr(0, equals)] = value_json(setting.substr(equals + 1));
  }
  return edits;
}

Json row_json(const Row& row) {
  Json json = {{"name", row.candidate.name}, {"edits", edits_json(row.candidate.edits)}};
  const Result& result = row.result;
  const bool ran = row.ran(), has_memory = ran && result.memory.known;
  const auto if_ran = [&](auto value) { return ran ? Json(value) : Json(); };
  const auto if_memory = [&](Bytes bytes) { return has_memory ? Json(bytes.count()) : Json(); };
  if (ran)
    put_verdict(json, result);
  else
    put_verdict(json, Verdict::unknown);
  if (!row.error.empty()) json["error"] = row.error;
  if (!result.drives_refuse.empty()) json["drives_refuse"] = result.drives_refuse;
  if (const std::string missing = row.shortage(); !missing.empty()) json["short_of"] = missing;
  json["step_time_ns"] = if_ran(whole_nanoseconds(result.step_time));
  json["tokens_per_second"] = result.tokens_per_second > 0 ? Json(result.tokens_per_second) : Json();
  json["mfu"] = result.mfu > 0 ? Json(result.mfu) : Json();
  json["peak_allocated_bytes"] = if_memory(result.memory.peak_allocated);
  json["peak_reserved_bytes"] = if_memory(result.memory.peak_reserved);
  json["capacity_bytes"] = if_memory(result.memory.capacity);
  json["short_of_bytes"] = if_memory(result.memory.short_of);
  json["allocator_efficiency"] = has_memory ? number_or_null(row.allocator_efficiency()) : Json();
  json["bytes_per_step"] = ran ? traffic_json(row.moved) : Json();
  json["life_years"] = or_null(row.life_years());
  json["life_low_years"] = row.life_years() ? number_or_null(shortest_rated_years(result)) : Json();
  json["cost_per_million_tokens"] = ran ? or_null(row.cost_per_million_tokens()) : Json();
  json["binding_resource"] = if_ran(std::string(to_string(result.binding)));
  json["gpus"] = row.gpus;
  json["planning_cpu_seconds"] = if_ran(row.planning_seconds);
  json["fingerprint"] = if_ran(fmt::format("{:016x}", result.fingerprint));
  return json;
}

std::string row_verdict(const Row& row) {
  if (!row.ran()) return "can't";
  return std::string(yes_or_no(row.result.answer()));
}

std::string edits_text(const std::vector<std::string>& settings) {
  std::string text;
  for (const std::string& setting : settings) text += (text.empty() ? "" : " ") + setting;
  return text.empty() ? "-" : text;
}

}  // namespace spillway::cli
