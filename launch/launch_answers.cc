// Losses of answers: DPO, KTO, GRPO and PPO, with the models and the engine beside the trained one, as trl, ms-swift,
// axolotl, LLaMA-Factory, verl and OpenRLHF say them.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "launch/launch_compose.h"
#include "launch/launch_facts.h"
#include "models/spec/model_spec.h"

namespace spillway::launch {
namespace {

bool is_verl(const LaunchLedger& ledger) { return ledger.launcher() == LaunchFormat::verl_rl; }
bool is_reinforced(const LaunchLedger& ledger) {
  return is_verl(ledger) || ledger.launcher() == LaunchFormat::openrlhf_rl;
}

// The loss of answers that is trained for; empty: another.
std::string answers_loss(const LaunchLedger& ledger) {
  constexpr std::array<std::array<std::string_view, 3>, 3> trl = {{{"trl dpo", "dpoconfig", "preference"},
                                                                   {"trl kto", "ktoconfig", "unpaired"},
                                                                   {"trl grpo", "grpoconfig", "group"}}};
  for (const auto& [script, config, loss] : trl)
    if (ledger.script() == script || ledger.says_any(config)) return std::string(loss);
  if (is_reinforced(ledger)) return "group";
  return ledger.text(facts::objective).value_or(ledger.script() == "swift rlhf" ? "preference" : "");
}

// GRPO (trl, ms-swift, whose max_length is the prompt's): batches count answers; an engine beside the training gives
// them, or another program.
void compose_rollout(LaunchLedger& ledger) {
  const bool is_swift = ledger.launcher() == LaunchFormat::swift;
  const char* const why = is_swift ? "ms-swift's default" : "trl's default";
  const std::int64_t prompt = ledger.number_or(is_swift ? "model.sequence" : facts::prompt_tokens, 512);
  ledger.set("model.prompt_tokens", std::to_string(prompt), is_swift ? "max_length, or 512 assumed" : why);
  const std::int64_t answer = ledger.number_or(facts::answer_tokens, is_swift ? 512 : 256);
  ledger.set("model.sequence", std::to_string(prompt + answer), "a prompt and its answer");
  ledger.set("model.rollout_group", std::to_string(ledger.number_or(facts::answers_each, 8)), why);
  if (!ledger.is_on(facts::vllm))
    return ledger.warn("transformers' own generation is not modelled: the step is the training alone");
  if (ledger.text(facts::vllm_mode) != "colocate") {
    ledger.doubt(
        facts::vllm, IgnoreReason::time,
        "a server on other GPUs gives the answers, which is trl's default before 1.0; give vllm_mode colocate for "
        "an engine on these");
    return;
  }
  ledger.set("model.rollout_memory", ledger.text(facts::vllm_memory).value_or(is_swift ? "0.9" : "0.3"), why);
  ledger.set("model.rollout_sleep", ledger.text(facts::vllm_sleep).value_or("0"), why);
  ledger.set("model.rollout_parallel", std::to_string(ledger.number_or(facts::vllm_parallel, 1)), why);
}

// Of a model beside the trained one, by the path that the launch has: its name, or the trained one's shape.
void set_beside(LaunchLedger& ledger, const std::string& key, std::string_view fact, const std::string& otherwise) {
  const auto named = ledger.text(fact);
  const std::string path = named.value_or(otherwise), trained = ledger.text(facts::model).value_or("");
  if (path.empty() || path == trained) return ledger.set(key, "same", "the trained model's shape");
  if (names_model(path)) return ledger.set(key, path, "");
  ledger.set(key, "same", "its path names no known model: the trained one's shape is assumed");
  if (named) ledger.doubt(fact, IgnoreReason::not_said, "its path names no known model: give its id or config.json");
}

// verl's dynamic batches are as many tokens as fit in a limit: of sequences at full length, so many.
void compose_dynamic_batch(LaunchLedger& ledger, std::int64_t sequence) {
  if (!ledger.is_on(facts::dynamic_batch))
    return ledger.leave_out(facts::pass_tokens, IgnoreReason::no_effect, "batches count sequences");
  const std::int64_t tokens = ledger.number_or(facts::pass_tokens, 16384);
  ledger.set("model.micro_batch", std::to_string(std::max<std::int64_t>(1, tokens / sequence)),
             "ppo_max_token_len_per_gpu over a sequence at full length");
}

// PPO and its kin of verl (main_ppo) and OpenRLHF (train_ppo_ray): defaults of verl/trainer/config/ppo_trainer.yaml and
// openrlhf/cli/train_ppo_ray.py.
void compose_reinforcement(LaunchLedger& ledger) {
  const bool verl = is_verl(ledger);
  const char* const why = verl ? "verl's default" : "OpenRLHF's default";
  const std::int64_t prompt = ledger.number_or(facts::prompt_tokens, verl ? 512 : 1024);
  const std::int64_t sequence = prompt + ledger.number_or(facts::answer_tokens, verl ? 512 : 1024);
  const std::int64_t each = ledger.number_or(facts::answers_each, 1);
  ledger.set("model.prompt_tokens", std::to_string(prompt), why);
  ledger.set("model.sequence", std::to_string(sequence), "a prompt and its answer");
  ledger.set("model.rollout_group", std::to_string(each), why);
  if (verl) {
    ledger.set("model.global_batch", std::to_string(times(ledger.number_or(facts::prompt_batch, 256), each)),
               "ppo_mini_batch_size prompts of n answers");
    compose_dynamic_batch(ledger, sequence);
  }
  const bool is_together = verl || ledger.text(facts::vllm_mode) == "colocate";
  const bool answers = verl ? ledger.text(facts::vllm).value_or("true") == "true" : ledger.has(facts::vllm);
  if (!answers) {
    ledger.warn("answers without an engine are not modelled: the step is the training alone");
  } else if (is_together) {
    ledger.set("model.rollout_memory", ledger.text(facts::vllm_memory).value_or(verl ? "0.5" : "0.95"), why);
    ledger.set("model.rollout_sleep", ledger.text(facts::vllm_sleep).value_or(verl ? "1" : "0"), why);
    ledger.set("model.rollout_parallel", std::to_string(ledger.number_or(facts::vllm_parallel, verl ? 2 : 1)), why);
  } else {
    ledger.doubt(facts::vllm, IgnoreReason::time, "engines on other GPUs give the answers");
  }
  const bool has_critic = ledger.text(facts::advantage).value_or("gae") == "gae";
  const bool rates = verl ? ledger.is_on(facts::reward_on) : !ledger.has(facts::reward_server);
  if (!is_together) {
    if (has_critic || rates) ledger.warn("critic and reward model have GPUs of their own, which are not this step's");
    for (const std::string_view fact : {facts::critic, facts::reward})
      ledger.leave_out(fact, IgnoreReason::no_effect, "it has own GPUs");
    return ledger.leave_out("model.value_micro_batch", IgnoreReason::no_effect, "there is no critic on these GPUs");
  }
  // OpenRLHF's critic begins as the reward model where it isn't given.
  if (has_critic)
    set_beside(ledger, "model.value_model", facts::critic, verl ? "" : ledger.text(facts::reward).value_or(""));
  else
    for (const std::string_view fact : {facts::critic, std::string_view("model.value_micro_batch")})
      ledger.leave_out(fact, IgnoreReason::no_effect, "these advantages need no critic");
  if (rates)
    set_beside(ledger, "model.reward_model", facts::reward, "");
  else
    ledger.leave_out(facts::reward, IgnoreReason::no_effect, "rewards come from a function or a server");
}

// Whether none is asked for.
bool has_no_reference(LaunchLedger& ledger) {
  if (ledger.text(facts::known_reference) == "none") return true;
  if (is_verl(ledger)) return !ledger.is_on(facts::divergence) && !ledger.is_on(facts::reward_divergence);
  const bool is_swift = ledger.launcher() == LaunchFormat::swift;
  const char* const usual = is_swift ? "0.1" : is_reinforced(ledger) ? "0.01" : "0";
  const std::string weight = ledger.text(facts::divergence).value_or(usual);
  if (!ledger.says(facts::divergence) && !is_swift && !is_reinforced(ledger))
    ledger.warn("beta isn't given: 0 as in trl since 0.18, without a reference");
  return weight.find_first_of("123456789") == std::string::npos;
}

}  // namespace

// DPO, KTO and GRPO (trl, LLaMA-Factory, axolotl). Batches of DPO count pairs, a scenario's sequences.
void compose_preference(LaunchLedger& ledger) {
  const std::string loss = answers_loss(ledger);
  if (loss.empty()) return ledger.leave_out(facts::known_reference, IgnoreReason::no_effect, "no answers are compared");
  if (ledger.says("model.loss"))
    ledger.doubt("model.loss", IgnoreReason::saves, "its kernel of a preference loss keeps no logits");
  ledger.set("model.loss", loss, "log-probabilities of answers are compared");
  if (loss == "preference") {
    ledger.set("model.micro_batch",
               std::to_string(times(2, whole_number(ledger.chosen("model.micro_batch").value_or("")).value_or(1))), "");
    ledger.warn("micro_batch counts sequences: a chosen and a rejected answer of each pair");
  }
  bool is_known = ledger.text(facts::known_reference) == "none";
  if (loss == "group") {
    if (is_reinforced(ledger))
      compose_reinforcement(ledger);
    else
      compose_rollout(ledger);
    is_known = has_no_reference(ledger);
  }
  const bool adapts = ledger.chosen("model.trainable").has_value();
  ledger.set("model.reference",
             is_known ? "none"
             : adapts ? "base"
                      : "model",
             is_known ? "no reference is asked"
             : adapts ? "the reference is the base without adapters"
                      : "the reference is a second model");
}

}  // namespace spillway::launch
