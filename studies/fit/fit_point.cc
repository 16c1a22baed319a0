#include "studies/fit/fit_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "models/spec/pipeline_setup.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/offload_settings.h"
#include "planners/technique/technique_table.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::studies {
namespace {

constexpr std::string_view model_prefix = "model.";

std::pair<std::string, std::string> parts_of(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  return {setting.substr(0, equals), setting.substr(equals + 1)};
}

constexpr std::string_view offload_prefix = "offload.", tier_key = "offload.tier";

// What a scenario means that doesn't say.
std::string_view default_of(const std::string& key) {
  return key == offload_key ? no_offload : key == allocator_key ? torch_policy : std::string_view();
}

std::string where(StateDevice device) { return device == StateDevice::cpu ? "CPU" : std::string(to_string(device)); }

// How a set-up spreads the model and its batch.
std::vector<std::string> layout_words(const TrainingSetup& setup) {
  std::vector<std::string> words;
  const auto count = [&words](const char* what, std::int64_t value) {
    if (value > 1) words.push_back(fmt::format("{} {}", what, value));
  };
  count("tp", setup.tensor_parallel);
  count("cp", setup.context_parallel);
  count("pp", setup.pipeline_parallel);
  count("dp", setup.data_parallel);
  count("ep", setup.expert_parallel);
  if (setup.shared_stage() > 0) words.push_back(fmt::format("ZeRO {}", setup.zero_stage));
  if (setup.shared_stage() > 0 && setup.shard_groups > 1)
    words.back() += fmt::format(" in {} groups", setup.shard_groups);
  count("b", setup.micro_batch);
  if (setup.pipeline_parallel > 1 && (setup.pipeline_schedule != default_schedule || setup.pipeline_chunks > 1)) {
    words.push_back(schedule_name(setup));
    if (setup.pipeline_chunks > 2) words.back() += fmt::format(" of {} chunks", setup.pipeline_chunks);
    if (setup.recomputed_chunks > 0) words.back() += fmt::format(", {} recomputed", setup.recomputed_chunks);
  }
  return words;
}

// What else of it is not as given.
std::vector<std::string> other_words(const TrainingSetup& setup, const TrainingSetup& given) {
  std::vector<std::string> words;
  if (setup.recompute != Recompute::none) words.push_back(recomputed_words(setup));
  if (setup.recompute == Recompute::none && given.recompute != Recompute::none)
    words.emplace_back("nothing recomputed");
  if (setup.optimizer_device != StateDevice::gpu || given.optimizer_device != StateDevice::gpu)
    words.push_back("optimizer on " + where(setup.optimizer_device));
  if (setup.weight_device != StateDevice::gpu || given.weight_device != StateDevice::gpu)
    words.push_back("weights on " + where(setup.weight_device));
  if (setup.delayed_update) words.emplace_back("delayed update");
  if (setup.offloaded_states > 0) words.push_back(fmt::format("states of {} chunks away", setup.offloaded_states));
  if (setup.optimizer != given.optimizer) words.emplace_back(to_string(setup.optimizer));
  if (setup.precision != given.precision) words.emplace_back(to_string(setup.precision));
  if (setup.loss != given.loss) words.push_back(std::string(to_string(setup.loss)) + " loss");
  if (setup.optimizer_form != given.optimizer_form)
    words.push_back(std::string(to_string(setup.optimizer_form)) + " optimizer");
  if (setup.tensor_parallel > 1 && !setup.sequence_parallel) words.emplace_back("no sequence parallelism");
  if (setup.prefetch != given.prefetch) words.push_back(fmt::format("prefetch {}", setup.prefetch));
  return words;
}

// What the words above and the batch say nothing of, as it is set.
std::vector<std::string> untold_words(const std::vector<std::string>& settings) {
  constexpr std::array<std::string_view, 26> told = {"tensor_parallel",
                                                     "context_parallel",
                                                     "pipeline_parallel",
                                                     "data_parallel",
                                                     "expert_parallel",
                                                     "zero_stage",
                                                     "shard_groups",
                                                     "micro_batch",
                                                     "pipeline_schedule",
                                                     "pipeline_chunks",
                                                     "recomputed_chunks",
                                                     "recompute",
                                                     "recompute_layers",
                                                     "recompute_every",
                                                     "optimizer_device",
                                                     "weight_device",
                                                     "delayed_update",
                                                     "offloaded_states",
                                                     "optimizer",
                                                     "precision",
                                                     "loss",
                                                     "optimizer_form",
                                                     "sequence_parallel",
                                                     "prefetch",
                                                     "global_batch",
                                                     "gradient_accumulation"};
  std::vector<std::string> words;
  for (const std::string& setting : settings) {
    if (!setting.starts_with(model_prefix)) continue;
    const auto [key, text] = parts_of(setting.substr(model_prefix.size()));
    if (std::find(told.begin(), told.end(), key) != told.end()) continue;
    words.push_back(text == "true" ? key : text == "false" ? "no " + key : fmt::format("{} {}", key, text));
    std::replace(words.back().begin(), words.back().end(), '_', ' ');
  }
  return words;
}

// Edits that share the sequences of a step out in another way: the search keeps their number by a key of its own.
bool shares_out_anew(const std::vector<std::string>& settings) {
  constexpr std::array keys = {"model.micro_batch=",       "model.data_parallel=",    "model.tensor_parallel=",
                               "model.pipeline_parallel=", "model.context_parallel=", "model.expert_parallel="};
  return std::any_of(settings.begin(), settings.end(), [&keys](const std::string& setting) {
    return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return setting.starts_with(key); });
  });
}

}  // namespace

std::string recomputed_words(const TrainingSetup& setup) {
  if (setup.recompute == Recompute::operators) return "recomputed by operators";
  if (setup.recompute != Recompute::full) return recompute_way(setup.recompute);
  if (setup.recompute_layers > 0)
    return fmt::format("{} layer{} recomputed", setup.recompute_layers, setup.recompute_layers == 1 ? "" : "s");
  if (setup.recompute_every > 1) return fmt::format("one layer in {} recomputed", setup.recompute_every);
  return recompute_way(setup.recompute);
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
  if (settings(point).empty()) return "as given";
  std::vector<std::string> words;
  if (subject_.model) {
    words = layout_words(point.setup);
    const std::vector<std::string> others = other_words(point.setup, given_.setup);
    words.insert(words.end(), others.begin(), others.end());
    const std::vector<std::string> untold = untold_words(settings(point));
    words.insert(words.end(), untold.begin(), untold.end());
  }
  if (point.others.contains(std::string(offload_key)) && value(point, std::string(offload_key)) == no_offload)
    words.emplace_back("nothing offloaded");
  for (const TechniqueWay* way : technique_ways()) {
    const bool is_of_model = std::all_of(way->settings.begin(), way->settings.end(),
                                         [](const std::string& setting) { return setting.starts_with(model_prefix); });
    const bool is_new = std::any_of(way->settings.begin(), way->settings.end(), [&](const std::string& setting) {
      return point.others.contains(parts_of(setting).first);
    });
    if (!is_of_model && is_new && holds(point, way->settings)) words.push_back(way->name);
  }
  if (words.empty()) return "plain";
  return fmt::format("{}", fmt::join(words, ", "));
}

Way FitPoints::way(const FitPoint& point) const {
  Way way{name(point), settings(point)};
  if (shares_out_anew(way.settings))
    way.settings.insert(way.settings.begin(), subject_.batch_edits.begin(), subject_.batch_edits.end());
  return way;
}

bool FitPoints::changes_maths(const FitPoint& point) const {
  const TrainingSetup &setup = point.setup, &given = given_.setup;
  return subject_.model && (setup.trainable != given.trainable || setup.base_weights != given.base_weights ||
                            setup.optimizer != given.optimizer || setup.precision != given.precision ||
                            setup.delayed_update != given.delayed_update || setup.global_batch != given.global_batch);
}

}  // namespace spillway::studies
