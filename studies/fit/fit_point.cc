#include "studies/fit/fit_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/input_error.h"
#include "models/spec/expert_setup.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/hybrid_search.h"
#include "planners/offload/offload_settings.h"
#include "planners/technique/technique_table.h"
#include "sim/devices/memory/memory_policies.h"
#include "studies/fit/way_names.h"

namespace spillway::studies {
namespace {

constexpr std::string_view model_prefix = "model.";

std::pair<std::string, std::string> parts_of(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  return {setting.substr(0, equals), setting.substr(equals + 1)};
}

constexpr std::string_view evaluation_edit = "model.evaluation_batches=";
constexpr std::string_view offload_prefix = "offload.", tier_key = "offload.tier";

// What a scenario means that doesn't say.
std::string_view default_of(const std::string& key) {
  return key == offload_key ? no_offload : key == allocator_key ? torch_policy : std::string_view();
}

// Edits that share the sequences of a step out in another way: the search keeps their number by a key of its own.
bool shares_out_anew(const std::vector<std::string>& settings) {
  constexpr std::array keys = {"model.micro_batch=",       "model.data_parallel=",    "model.tensor_parallel=",
                               "model.pipeline_parallel=", "model.context_parallel=", "model.expert_parallel="};
  return std::any_of(settings.begin(), settings.end(), [&keys](const std::string& setting) {
    return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return setting.starts_with(key); });
  });
}

// Sequences of all replicas in one batch of an evaluation.
std::int64_t evaluated_at_once(const TrainingSetup& setup) {
  return setup.data_parallel * (setup.evaluation_micro_batch > 0 ? setup.evaluation_micro_batch : setup.micro_batch);
}

}  // namespace

bool keeps_sequences(std::string_view setting) {
  constexpr std::array<std::string_view, 3> edits = {
      "model.global_batch=", "model.gradient_accumulation=", evaluation_edit};
  return std::any_of(edits.begin(), edits.end(), [&](std::string_view edit) { return setting.starts_with(edit); });
}

FitPoints::FitPoints(const FitSubject& subject) : subject_(subject) { given_.setup = subject.parsed.training; }

FitPoint FitPoints::with(FitPoint point, const std::vector<std::string>& settings) const {
  const auto sets = [&settings](std::string_view key) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const std::string& one) { return parts_of(one).first == key; });
  };
  if (sets(offload_key) && !sets(tier_key)) point.others.erase(std::string(tier_key));  // it was another technique's
  for (const std::string& setting : settings) {
    const auto [key, text] = parts_of(setting);
    if (key.starts_with(model_prefix))
      set_field(point.setup, std::string_view(key).substr(model_prefix.size()), text);
    else if (setting_of(subject_.scenario.text, key).value_or(std::string(default_of(key))) == text)
      point.others.erase(key);
    else
      point.others[key] = text;
  }
  if (value(point, std::string(offload_key)) == no_offload)  // where to is then of no effect
    std::erase_if(point.others,
                  [](const auto& one) { return one.first.starts_with(offload_prefix) && one.first != offload_key; });
  drop_idle(point.setup);
  return point;
}

void FitPoints::drop_idle(TrainingSetup& setup) const {
  if (setup.recompute != Recompute::full) {
    setup.recompute_layers = given_.setup.recompute_layers;
    setup.recompute_every = given_.setup.recompute_every;
  }
  if (overlap_clash(setup)) setup.overlap_experts = false;
  if (setup.data_parallel > 1 || setup.context_parallel > 1) return;
  setup.zero_stage = given_.setup.zero_stage;
  setup.shard_groups = given_.setup.shard_groups;
}

std::string FitPoints::value(const FitPoint& point, const std::string& key) const {
  const auto own = point.others.find(key);
  if (own != point.others.end()) return own->second;
  return setting_of(subject_.scenario.text, key).value_or(std::string(default_of(key)));
}

bool FitPoints::holds(const FitPoint& point, const std::vector<std::string>& settings) const {
  return std::all_of(settings.begin(), settings.end(), [&](const std::string& setting) {
    const auto [key, text] = parts_of(setting);
    if (!key.starts_with(model_prefix)) return value(point, key) == text;
    return field_text(point.setup, std::string_view(key).substr(model_prefix.size())) == text;
  });
}

std::vector<std::string> FitPoints::settings(const FitPoint& point) const {
  std::vector<std::string> settings;
  if (subject_.model)
    for (const std::string& key : training_setup_keys()) {
      const std::string text = field_text(point.setup, key);
      if (text != field_text(given_.setup, key)) settings.push_back(fmt::format("{}{}={}", model_prefix, key, text));
    }
  for (const auto& [key, text] : point.others) settings.push_back(key + "=" + text);
  return settings;
}

std::string FitPoints::name(const FitPoint& point) const {
  const std::vector<std::string> edits = settings(point);
  if (edits.empty()) return "As given";
  std::vector<std::string> moved;
  if (point.others.contains(std::string(offload_key)) && value(point, std::string(offload_key)) == no_offload)
    moved.emplace_back("nothing offloaded");
  for (const TechniqueWay* way : technique_ways()) {
    const bool is_of_model = std::all_of(way->settings.begin(), way->settings.end(),
                                         [](const std::string& setting) { return setting.starts_with(model_prefix); });
    const bool is_new = std::any_of(way->settings.begin(), way->settings.end(), [&](const std::string& setting) {
      return point.others.contains(parts_of(setting).first);
    });
    if (!is_of_model && is_new && holds(point, way->settings)) moved.push_back(way->about);
  }
  const std::string name = subject_.model ? way_name(point.setup, given_.setup, edits, moved)
                                          : capitalized(fmt::format("{}", fmt::join(moved, ", ")));
  return name.empty() ? "Plain" : name;
}

Candidate FitPoints::candidate(const FitPoint& point) const {
  Candidate made{name(point), settings(point)};
  if (!shares_out_anew(made.edits)) return made;
  made.edits.insert(made.edits.begin(), subject_.batch_edits.begin(), subject_.batch_edits.end());
  const std::int64_t given = evaluated_at_once(given_.setup), now = evaluated_at_once(point.setup);
  if (given_.setup.evaluate_every > 0 && now != given)  // as many sequences, rounded up
    made.edits.push_back(
        fmt::format("{}{}", evaluation_edit,
                    std::min(most_micro_batches, (given_.setup.evaluation_batches * given + now - 1) / now)));
  return made;
}

std::int64_t FitPoints::work(const FitPoint& point) const {
  constexpr std::int64_t replays_of_plan = 6, replays_of_search = 40;
  if (!subject_.model) return 0;
  const TrainingSetup& setup = point.setup;
  const std::int64_t layers = subject_.model->all_layers(), p = setup.pipeline_parallel;
  const std::int64_t at_once = std::max<std::int64_t>(1, setup.data_parallel * setup.micro_batch);
  const std::int64_t all = std::max<std::int64_t>(1, setup.step_sequences() / at_once);
  const std::string fates = value(point, std::string(offload_key));
  if (fates != no_offload) return layers * all * (fates == hybrid_word ? replays_of_search : replays_of_plan);
  const bool folds =
      setup.optimizer_device == StateDevice::gpu || (setup.optimizer_device == StateDevice::cpu && setup.gpus() > 1);
  return layers * (folds ? std::min(all, p > 1 ? 4 * p + 32 : 10) : all);
}

bool FitPoints::changes_maths(const FitPoint& point) const {
  const TrainingSetup &setup = point.setup, &given = given_.setup;
  return subject_.model && (setup.trainable != given.trainable || setup.base_weights != given.base_weights ||
                            setup.optimizer != given.optimizer || setup.precision != given.precision ||
                            setup.delayed_update != given.delayed_update || setup.global_batch != given.global_batch);
}

}  // namespace spillway::studies
