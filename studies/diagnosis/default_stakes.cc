#include "studies/diagnosis/default_stakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "base/short_text.h"
#include "models/spec/expert_load.h"
#include "scenario/brief_run.h"
#include "scenario/scenario_run.h"

namespace spillway::studies {
namespace {

using models::LossForm;
using models::StateType;
using models::TrainingSetup;

constexpr std::size_t most_replays = 2;
constexpr double least_share = 0.03;  // of the peak: what is replayed, and told

constexpr double reckoned_within = 3;  // times its bytes in closed form is the most that a choice is taken to need
constexpr const char* routing_key = "model.expert_load";

double peak_of(const Result& result) { return static_cast<double>(result.memory.peak_reserved.count()); }

struct Choice {
  std::string key, value, other;
  double bytes = 0;  // about
  TrainingSetup training;
};

void add_loss(const TrainingSetup& stated, const TrainingSetup& setup, const models::ModelSpec& model,
              std::vector<Choice>& choices) {
  const bool chunks = setup.traits().pytorch && setup.tensor_parallel == 1;
  if (stated.loss != LossForm::fp32 || setup.loss != LossForm::fp32 || (!chunks && !setup.traits().core)) return;
  Choice choice{.key = "model.loss", .value = "fp32", .training = stated};
  choice.training.loss = chunks ? LossForm::chunked : LossForm::fused;
  choice.other = to_string(choice.training.loss);
  constexpr double bytes_of_logit = 4;
  choice.bytes = bytes_of_logit * static_cast<double>(setup.micro_batch * setup.slice_tokens()) *
                 static_cast<double>(model.vocabulary) / static_cast<double>(setup.tensor_parallel);
  choices.push_back(std::move(choice));
}

void add_gradients(const TrainingSetup& stated, const TrainingSetup& setup, const models::ModelSpec& model,
                   std::vector<Choice>& choices) {
  if (!setup.traits().core || stated.main_gradients != StateType::usual || !models::is_mixed(setup.precision)) return;
  Choice choice{.key = "model.main_gradients", .value = "fp32", .other = "bf16", .training = stated};
  choice.training.main_gradients = StateType::bf16;
  constexpr double saved_of_parameter = 2;
  const std::int64_t parts = setup.tensor_parallel * setup.pipeline_parallel * setup.expert_parallel;
  choice.bytes =
      saved_of_parameter * static_cast<double>(parameter_count(model)) / static_cast<double>(parts);  // at least
  choices.push_back(std::move(choice));
}

void add_routing(const TrainingSetup& stated, const TrainingSetup& setup, const models::ModelSpec& model,
                 std::vector<Choice>& choices) {
  if (!model.has_experts() || setup.expert_parallel == 1 || setup.has_expert_loads() || setup.expert_imbalance != 1)
    return;
  Choice choice{.key = routing_key, .value = "even", .other = "lognormal", .training = stated};
  choice.training.expert_load = models::ExpertSpread::lognormal;
  TrainingSetup drawn = setup;
  drawn.expert_load = choice.training.expert_load;
  const double fullest = models::fullest_over_mean(model, drawn);
  const double rows = static_cast<double>(setup.micro_batch * setup.slice_tokens() * model.experts.active);
  constexpr double bytes_of_element = 2, kept = 2;  // a row's input, and as wide a result or gate
  const std::int64_t layers = model.layers / setup.pipeline_parallel;
  choice.bytes = (fullest - 1) * rows * bytes_of_element * kept *
                 static_cast<double>((model.hidden + model.experts.width) * layers);
  choices.push_back(std::move(choice));
}

// `turning`: those that may take a yes away.
std::vector<Choice> choices_of(const LoadedScenario& loaded, const Result& result, bool turning) {
  const models::ModelSpec model = scenario::with_layers(loaded.scenario, models::find_model(loaded.scenario.model));
  std::vector<Choice> choices;
  add_loss(loaded.scenario.training, loaded.setup, model, choices);
  add_gradients(loaded.scenario.training, loaded.setup, model, choices);
  add_routing(loaded.scenario.training, loaded.setup, model, choices);
  const auto room = static_cast<double>((result.memory.limit - result.memory.peak_reserved).count());
  std::erase_if(choices, [&](const Choice& choice) {
    if (choice.bytes < least_share * peak_of(result)) return true;
    return turning && (choice.key != routing_key || choice.bytes * reckoned_within < room);
  });
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.bytes > b.bytes; });
  if (choices.size() > most_replays) choices.resize(most_replays);
  return choices;
}

// None where the other value is refused with what else is set.
std::optional<Result> with_other(const LoadedScenario& loaded, const Choice& choice) {
  Scenario other = loaded.scenario;
  other.imported = {};
  other.training = choice.training;
  try {
    return run_briefly(other, Detail::times).run.result;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<DefaultStake> default_stakes(const LoadedScenario& loaded, const Result& result, bool turning) {
  if (loaded.scenario.model.empty() || !result.memory.known) return {};
  std::vector<DefaultStake> stakes;
  for (const Choice& choice : choices_of(loaded, result, turning)) {
    const std::optional<Result> other = with_other(loaded, choice);
    if (!other || !other->memory.known) continue;
    const Bytes hangs = result.memory.peak_reserved - other->memory.peak_reserved;
    if (std::abs(static_cast<double>(hangs.count())) < least_share * peak_of(result)) continue;
    stakes.push_back({.key = choice.key,
                      .value = choice.value,
                      .other = choice.other,
                      .hangs = hangs,
                      .peak = other->memory.peak_reserved,
                      .slower = to_seconds(other->step_time) / to_seconds(result.step_time) - 1,
                      .turns = other->may_fit() != result.may_fit()});
  }
  std::stable_sort(stakes.begin(), stakes.end(), [](const DefaultStake& a, const DefaultStake& b) {
    return std::max(a.hangs, -a.hangs) > std::max(b.hangs, -b.hangs);
  });
  return stakes;
}

std::string stake_sentence(const DefaultStake& stake, const Result& result) {
  const std::string turns = stake.turns ? ", which turns the verdict" : "";
  if (stake.key == routing_key)
    return fmt::format(
        "routing is even here: where the load of a rank varies by 60 % (model.expert_load=lognormal) the fullest GPU "
        "needs {} more{}{}",
        short_size(-stake.hangs),
        stake.slower > 0.005 ? fmt::format(", the step {:.0f} % longer", 100 * stake.slower) : "", turns);
  return fmt::format("of these {} {} hang on {}: {} here, {} with {}{}", short_size(result.memory.peak_reserved),
                     short_size(stake.hangs), stake.key, stake.value, short_size(stake.peak), stake.other, turns);
}

}  // namespace spillway::studies
