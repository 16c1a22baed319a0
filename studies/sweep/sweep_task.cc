#include "studies/sweep/sweep_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "planners/offload/drive_life.h"
#include "scenario/scenario.h"
#include "scenario/scenario_run.h"
#include "studies/sweep/sweep_front.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr int record_version = 4;  // of what records hold and how points are estimated

// Figures are taken out so that like reasons count together.
std::string without_figures(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c < '0' || c > '9')
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  }
  return result;
}

Json json_of(const std::map<std::string, SweepReason>& reasons) {
  Json json = Json::object();
  for (const auto& [reason, count] : reasons) json[reason] = {count.points, count.example};
  return json;
}
std::map<std::string, SweepReason> reasons_of(const Json& json) {
  std::map<std::string, SweepReason> reasons;
  for (const auto& [reason, count] : json.items())
    reasons[reason] = {count.at(0).get<std::int64_t>(), count.at(1).get<std::int64_t>()};
  return reasons;
}

// Infinity is null in JSON.
Json json_of(const SweepValues& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(std::isfinite(value) ? Json(value) : Json());
  return json;
}
SweepValues values_of(const Json& json) {
  SweepValues values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = json.at(i).is_null() ? std::numeric_limits<double>::infinity() : json.at(i).get<double>();
  return values;
}

std::string text_of(const SweepBlock& block, const std::string& key) {
  Json json = {{"key", key},
               {"screened", block.screened},
               {"unable", block.unable},
               {"beaten", block.beaten},
               {"left_out", json_of(block.left_out)},
               {"invalid", json_of(block.invalid)},
               {"sure", Json::array()},
               {"remaining", Json::array()}};
  for (const SweepValues& values : block.sure) json["sure"].push_back(json_of(values));
  for (const SweepRemaining& one : block.remaining)
    json["remaining"].push_back({one.number, one.step_seconds, one.peak_bytes, json_of(one.best)});
  return json.dump();
}

// Numbers of a record, by their keys.
constexpr std::array<std::pair<const char*, double SweepMetrics::*>, 8> stored_metrics = {
    {{"step_seconds", &SweepMetrics::step_seconds},
     {"peak_reserved_bytes", &SweepMetrics::peak_bytes},
     {"gpus", &SweepMetrics::gpus},
     {"tokens_per_step", &SweepMetrics::tokens_per_step},
     {"busy_seconds", &SweepMetrics::busy_seconds},
     {"usd_per_hour", &SweepMetrics::usd_per_hour},
     {"rest_watts", &SweepMetrics::rest_watts},
     {"busy_watts", &SweepMetrics::busy_watts}}};

std::string text_of(const SweepReplay& row, const SweepSettings& settings_of, const std::string& key) {
  Json settings = Json::object();
  for (const auto& [name, value] : settings_of) settings[name] = value;
  const SweepMetrics& metrics = row.replayed;
  Json json = {{"key", key},
               {"settings", settings},
               {"failure", row.failure},
               {"fits", fits_json(row.verdict)},
               {"verdict", to_string(row.verdict)}};
  for (const auto& [name, metric] : stored_metrics) json[name] = metrics.*metric;
  json["life_years"] = std::isfinite(metrics.life_years) ? Json(metrics.life_years) : Json();
  json["life_low_years"] = std::isfinite(metrics.rated_years) ? Json(metrics.rated_years) : Json();
  json["binding_resource"] = row.binding;
  json["mfu"] = row.mfu;
  return json.dump();
}
}  // namespace

SweepBlock parse_sweep_block(const std::string& record) {
  const Json json = Json::parse(record);
  SweepBlock block;
  block.screened = json.at("screened").get<std::int64_t>();
  block.unable = json.at("unable").get<std::int64_t>();
  block.beaten = json.at("beaten").get<std::int64_t>();
  block.left_out = reasons_of(json.at("left_out"));
  block.invalid = reasons_of(json.at("invalid"));
  for (const Json& values : json.at("sure")) block.sure.push_back(values_of(values));
  for (const Json& one : json.at("remaining"))
    block.remaining.push_back(
        {one.at(0).get<std::int64_t>(), one.at(1).get<double>(), one.at(2).get<double>(), values_of(one.at(3))});
  return block;
}

SweepReplay parse_sweep_replay(const std::string& record) {
  const Json json = Json::parse(record);
  SweepReplay row;
  row.failure = json.at("failure").get<std::string>();
  row.verdict = verdict_of_json(json.at("fits"), json.value("verdict", ""));
  for (const auto& [key, metric] : stored_metrics) row.replayed.*metric = json.at(key).get<double>();
  const auto years = [](const Json& value) {
    return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
  };
  row.replayed.life_years = years(json.at("life_years"));
  row.replayed.rated_years = json.contains("life_low_years") ? years(json["life_low_years"]) : row.replayed.life_years;
  row.binding = json.at("binding_resource").get<std::string>();
  row.mfu = json.at("mfu").get<double>();
  return row;
}

// Reading a profile and what was fitted for its GPU takes as long as a small replay.
std::shared_ptr<const ScenarioMachine> SweepWorker::machine_of(const Scenario& scenario) {
  std::string key = scenario.hardware;
  for (const auto& [path, text] : scenario.hardware_overrides) key += "\n" + path + "=" + text;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const ScenarioMachine>& machine = machines_[key];
  if (!machine) machine = std::make_shared<const ScenarioMachine>(hardware_of(scenario));
  return machine;
}

LoadedScenario SweepWorker::load_point(const Scenario& scenario) {
  if (scenario.model.empty()) return load(scenario);
  const auto own = file_.models.find(scenario.model);
  return load(scenario, own == file_.models.end() ? find_model(scenario.model) : own->second, *machine_of(scenario));
}

SweepReplay SweepWorker::replay(const SweepSettings& settings) {
  SweepReplay row;
  std::vector<std::string> assignments;
  for (const auto& [name, value] : settings) assignments.push_back(name + "=" + value);
  try {
    LoadedScenario loaded = load_point(parse_scenario(file_.base, file_.path, file_.folder, assignments));
    loaded.options.memory.details = false;
    const Result result = spillway::scenario::run(loaded);
    row.replayed.step_seconds = to_seconds(result.step_time);
    row.replayed.peak_bytes = static_cast<double>(result.memory.peak_reserved.count());
    row.replayed.gpus = static_cast<double>(std::max<std::int64_t>(1, loaded.setup.gpus()));
    row.replayed.tokens_per_step = static_cast<double>(loaded.options.tokens_per_step);
    row.replayed.busy_seconds = row.replayed.step_seconds * (1 - result.bubble);
    set_rates(row.replayed, gpu_rates(loaded.hardware));
    row.replayed.life_years = shortest_life_years(result);
    row.replayed.rated_years = shortest_rated_years(result);
    row.verdict = result.verdict();
    row.binding = to_string(result.binding);
    row.mfu = result.mfu;
  } catch (const InputError& error) {
    row.failure = error.cause();
  }
  return row;
}

bool meets_requirements(const SweepFile& file, const SweepReplay& row) {
  if (!row.failure.empty() || (file.must_fit && row.verdict != Verdict::fits)) return false;
  if (file.most_step_seconds && row.replayed.step_seconds > *file.most_step_seconds) return false;
  if (file.most_gpus && row.replayed.gpus > *file.most_gpus) return false;
  return !file.least_life_years || row.replayed.rated_years >= *file.least_life_years;
}

SweepValues objective_values(const SweepFile& file, const SweepMetrics& metrics) {
  SweepValues values{};
  for (std::size_t i = 0; i < file.objectives.size(); ++i) values[i] = metrics.value(file.objectives[i]);
  return values;
}

std::string sweep_key(const SweepFile& file, const SweepTask& task) {
  return fmt::format("{}-{}-{:016x}-{}-{}", SPILLWAY_VERSION, record_version, file.digest,
                     task.is_replay ? "replay" : "block", task.number);
}

std::string SweepWorker::record(const SweepTask& task) {
  const std::string key = sweep_key(file_, task);
  if (!task.is_replay) return text_of(screen_block(task.number), key);
  SweepSpace space(file_);
  const SweepSettings settings = space.settings(space.at(task.number));
  return text_of(replay(settings), settings, key);
}

SweepBlock SweepWorker::screen_block(std::int64_t number) {
  SweepSpace space(file_);
  SweepBlock block;
  SweepFront sure(file_.objectives.size());
  const std::int64_t until = std::min(space.size(), (number + 1) * sweep_block_points);
  std::int64_t at = number * sweep_block_points;
  while (const auto point = space.next(at, until)) {
    at = point->number + 1;
    const SweepEstimate estimate = screen_.estimate(space.settings(*point));
    if (!estimate.invalid.empty()) {
      const auto [reason, is_new] =
          block.invalid.emplace(without_figures(estimate.invalid), SweepReason{0, point->number});
      ++reason->second.points;
      continue;
    }
    ++block.screened;
    if (!estimate.may_do(file_)) {
      ++block.unable;
      continue;
    }
    if (estimate.does(file_)) sure.add(estimate.worst(file_));
    block.remaining.push_back(
        {point->number, estimate.metrics.step_seconds, estimate.metrics.peak_bytes, estimate.best(file_)});
  }
  for (const auto& [reason, skipped] : space.take_skipped()) block.left_out[reason] = skipped;
  const auto beaten = std::erase_if(block.remaining, [&](const SweepRemaining& one) { return sure.beats(one.best); });
  block.beaten = static_cast<std::int64_t>(beaten);
  block.sure = sure.points();
  return block;
}

}  // namespace spillway::studies
