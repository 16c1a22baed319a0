#include "studies/sweep/scenario_sweep.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "planners/offload/ssdtrain.h"
#include "scenario/scenario.h"
#include "scenario/scenario_fields.h"
#include "studies/sweep/sweep_file.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t largest_micro_batch = 32;
constexpr const char* usual_drives = "samsung-990-pro-2tb";
constexpr int usual_drives_per_machine = 4;

// 1 where the scenario doesn't say, or says something else than a number above 0.
std::int64_t count_of(const std::string& text, const char* key, std::int64_t otherwise = 1) {
  const std::string value = setting_of(text, key).value_or("");
  const std::int64_t count = std::strtoll(value.c_str(), nullptr, 10);
  return count > 0 ? count : otherwise;
}

}  // namespace

std::string sweep_around(const std::string& scenario_text) {
  const std::string title = setting_of(scenario_text, "title").value_or("scenario");
  const std::int64_t replicas = count_of(scenario_text, "model.data_parallel");
  const std::int64_t batch = count_of(
      scenario_text, "model.global_batch",
      replicas * count_of(scenario_text, "model.micro_batch") * count_of(scenario_text, "model.gradient_accumulation"));
  std::string text = scenario_text;
  for (const std::string key : {"model.micro_batch", "model.gradient_accumulation", "model.recompute"})
    if (setting_of(text, key)) text = with_setting(text, key + "=null");
  text = with_setting(text, "model.global_batch=" + std::to_string(batch));
  Json micro_batches = Json::array();
  for (std::int64_t size = 1; size <= std::min(largest_micro_batch, batch / replicas); ++size)
    if (batch % (size * replicas) == 0) micro_batches.push_back(size);
  const std::string drives = setting_of(scenario_text, "offload.drives").value_or(usual_drives);
  Json base = Json::parse(text, nullptr, true, true);
  for (const char* key : {"schema", "version", "title", "note", "offload"}) base.erase(key);
  Json axes = Json::array();
  if (!micro_batches.empty())
    axes.push_back({{"name", "micro_batch"}, {"key", "model.micro_batch"}, {"values", micro_batches}});
  axes.push_back({{"name", "recompute"}, {"key", "model.recompute"}, {"values", {"none", "selective", "full"}}});
  axes.push_back({{"name", "offload"},
                  {"options",
                   {{"keep", Json::object()},
                    {"host", {{"offload.technique", ssdtrain_word}, {"offload.tier", tier_words()[Tier::host].name}}},
                    {"ssd",
                     {{"offload.technique", ssdtrain_word},
                      {"offload.drives", drives},
                      {"offload.drives_per_machine",
                       count_of(scenario_text, "offload.drives_per_machine", usual_drives_per_machine)}}}}}});
  const Json sweep = {{"schema", "spillway-sweep"},
                      {"version", 1},
                      {"title", "around: " + title},
                      {"base", base},
                      {"axes", axes},
                      {"objectives", {to_string(Objective::gpu_time_per_token), to_string(Objective::peak_memory)}},
                      {"require", {{"fits", true}}},
                      {"replays", 60}};
  return sweep.dump(2) + "\n";
}

}  // namespace spillway::studies
