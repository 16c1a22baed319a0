#include "studies/sweep/layout_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "scenario/scenario.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

SweepFile layout_sweep(const std::string& scenario, const std::string& path, const std::string& folder,
                       const LayoutSpace& space) {
  const Scenario parsed = parse_scenario(scenario, path, folder);
  const TrainingSetup& training = parsed.training;
  const std::int64_t batch = training.step_sequences();
  Json base = Json::parse(with_setting(with_setting(scenario, "model.gradient_accumulation=null"),
                                       "model.global_batch=" + std::to_string(batch)));
  for (const char* key : {"schema", "version", "procurement", "capacity"}) base.erase(key);
  Json settings = Json::object();
  for (const std::string& setting : space.settings) {
    const std::size_t equals = setting.find('=');
    settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  const auto axis = [](const char* name, const char* key, const std::vector<std::int64_t>& values) {
    return Json{{"name", name}, {"key", key}, {"values", values}};
  };
  Json sweep = {{"schema", "spillway-sweep"}, {"version", 1}, {"base", base}};
  sweep["constants"] = {{"gpus", space.gpus}, {"batch", batch}, {"context", training.context_parallel}};
  sweep["axes"] = {axis("t", "model.tensor_parallel", space.tensor_parallel),
                   axis("p", "model.pipeline_parallel", space.pipeline_parallel),
                   axis("b", "model.micro_batch", space.micro_batch),
                   Json{{"name", "settings"}, {"options", {{"as_given", settings}}}}};
  // Not `= {Json}`: compilers differ on whether that is a list of one or the value itself.
  sweep["derived"] =
      Json::array({{{"name", "d"}, {"key", "model.data_parallel"}, {"value", "gpus / (t * p * context)"}}});
  sweep["where"] = {Json{{"is", "t * p * context <= gpus"}, {"reason", "more ranks than GPUs"}},
                    Json{{"is", "divides(d * b, batch)"}, {"reason", "the batch can't be cut so"}}};
  for (const auto& [t, p, b] : space.without)
    sweep["where"].push_back({{"is", fmt::format("t != {} || p != {} || b != {}", t, p, b)}, {"reason", "left out"}});
  sweep["objectives"] = {to_string(space.objective)};
  sweep["require"] = {{"fits", true}};
  const Constraints& asked = space.constraints;
  if (asked.most_step_seconds > 0) sweep["require"]["step_time_seconds"] = asked.most_step_seconds;
  if (asked.least_life_years > 0) sweep["require"]["life_years"] = asked.least_life_years;
  sweep["replays"] = space.replays;
  return parse_sweep(sweep.dump(), path, folder);
}

const SweepRow* fastest_layout(const SweepOutcome& outcome) {
  const SweepRow* best = nullptr;
  for (const SweepRow& row : outcome.rows)
    if (row.does && (best == nullptr || row.replayed.step_seconds < best->replayed.step_seconds)) best = &row;
  return best;
}

std::string layout_label(const SweepRow& row) {
  return fmt::format("t {}, p {}, b {}", row.options[0], row.options[1], row.options[2]);
}

std::string why_no_layout(std::span<const SweepOutcome> outcomes, bool with_smallest) {
  const SweepOutcome& outcome = outcomes.front();
  if (outcome.screened == 0)
    return "no layout is possible: " +
           (outcome.invalid.empty() ? "none divides GPUs and batch" : outcome.invalid.begin()->first);
  std::map<std::vector<std::string>, const SweepRow*> rows;  // by layout
  for (const SweepOutcome& each : outcomes)
    for (const SweepRow& row : each.rows) rows.emplace(row.options, &row);
  const auto all_failed = std::all_of(rows.begin(), rows.end(), [](const auto& row) { return !row.second->ran(); });
  if (!rows.empty() && all_failed) return rows.begin()->second->error;
  const bool fits =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return sim::is_yes(row.second->result.verdict()); });
  const char* const what = fits ? "a requirement is missed, or memory runs out," : "out of memory";
  const auto replayed = static_cast<std::int64_t>(rows.size());
  const std::int64_t untried = outcome.screened - outcome.unable - outcome.beaten - outcome.beaten_by_replay - replayed;
  if (untried <= 0)
    return fmt::format("{} in all of {} parallel configurations ({} by estimate, {} simulated)", what, outcome.screened,
                       outcome.unable, replayed);
  return fmt::format(
      "{} in {} of {} parallel configurations ({} by estimate, {} simulated: the likeliest to be fast{}); {} not tried",
      what, outcome.unable + replayed, outcome.screened, outcome.unable, replayed,
      with_smallest ? ", and those that hold least" : "", untried);
}

}  // namespace spillway::studies
