// Adapters and the base they stand on, as PEFT, trl, axolotl and LLaMA-Factory say them.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "launch/launch_compose.h"
#include "launch/launch_facts.h"

namespace spillway::launch {
namespace {

// Modules of transformers' models. c_proj is both an attention's and a feed-forward block's.
constexpr std::array<std::string_view, 19> query_key_value = {"q_proj",
                                                              "k_proj",
                                                              "v_proj",
                                                              "qkv_proj",
                                                              "query_key_value",
                                                              "c_attn",
                                                              "Wqkv",
                                                              "query",
                                                              "key",
                                                              "value",
                                                              "wq",
                                                              "wk",
                                                              "wv",
                                                              "q_a_proj",
                                                              "q_b_proj",
                                                              "kv_a_proj_with_mqa",
                                                              "attention_qkv",
                                                              "linear_qkv",
                                                              "attention"};
constexpr std::array<std::string_view, 9> output = {"o_proj",      "out_proj",        "c_proj",      "dense",    "wo",
                                                    "output_proj", "attention_dense", "linear_proj", "attention"};
constexpr std::array<std::string_view, 18> feed_forward = {
    "gate_proj", "up_proj", "down_proj",     "gate_up_proj",  "c_fc",    "c_proj",  "fc1",        "fc2",        "w1",
    "w2",        "w3",      "dense_h_to_4h", "dense_4h_to_h", "mlp_fc1", "mlp_fc2", "linear_fc1", "linear_fc2", "mlp"};
// Those that have all of a block's products in one.
constexpr std::array<std::string_view, 5> fused = {"qkv_proj", "query_key_value", "c_attn", "Wqkv", "gate_up_proj"};

using Names = std::span<const std::string_view>;

bool is_in(std::string_view module, Names names) {
  return std::find(names.begin(), names.end(), module) != names.end();
}

bool has_any(const std::vector<std::string>& modules, Names names) {
  return std::any_of(modules.begin(), modules.end(), [&](const std::string& module) { return is_in(module, names); });
}

// Some of a block's own products, not all.
bool is_partial(const std::vector<std::string>& modules, Names all) {
  const auto listed = std::count_if(all.begin(), all.end(), [&](std::string_view name) {
    return std::find(modules.begin(), modules.end(), name) != modules.end();
  });
  return listed > 0 && listed < std::ssize(all) && !has_any(modules, fused);
}

// "self_attn.q_proj" is q_proj.
std::vector<std::string> last_parts(std::vector<std::string> modules) {
  for (std::string& module : modules) module.erase(0, module.rfind('.') + 1);
  return modules;
}

// The least of model.lora_targets that has all of the modules.
std::string targets_of(const std::vector<std::string>& modules, LaunchLedger& ledger) {
  if (modules.size() == 1 && (modules[0] == facts::all_modules || modules[0] == "all")) return "all_linear";
  for (const std::string& module : modules)
    if (!is_in(module, query_key_value) && !is_in(module, output) && !is_in(module, feed_forward))
      ledger.warn(fmt::format("adapters of '{}' are left out: model.lora_targets has no such part", module));
  const bool has_qkv = has_any(modules, query_key_value), has_output = has_any(modules, output);
  const bool has_mlp = has_any(modules, feed_forward);
  constexpr std::array<std::string_view, 3> own_qkv = {"q_proj", "k_proj", "v_proj"};
  constexpr std::array<std::string_view, 3> own_mlp = {"gate_proj", "up_proj", "down_proj"};
  if (is_partial(modules, own_qkv) || is_partial(modules, own_mlp) || (has_output && !has_qkv && !has_mlp))
    ledger.warn("adapters of some products alone: those of the whole block are assumed (model.lora_targets)");
  constexpr std::array<std::string_view, 1> of_both = {"c_proj"};
  if (has_mlp) return has_qkv || (has_output && !has_any(modules, of_both)) ? "all_linear" : "mlp";
  return has_output ? "attention" : "qkv";
}

// Of model.modules_to_save: the copies that PEFT trains beside adapters, by names of transformers' modules.
std::string saved_of(const std::vector<std::string>& modules, LaunchLedger& ledger) {
  constexpr std::array<std::string_view, 5> embeddings = {"embed_tokens", "wte", "word_embeddings", "embed_in",
                                                          "tok_embeddings"};
  constexpr std::array<std::string_view, 3> heads = {"lm_head", "embed_out", "output"};
  for (const std::string& module : modules)
    if (!is_in(module, embeddings) && !is_in(module, heads))
      ledger.warn(fmt::format("the trained copy of '{}' is left out: model.modules_to_save has no such part", module));
  const bool embedding = has_any(modules, embeddings), head = has_any(modules, heads);
  return embedding ? head ? "both" : "embedding" : head ? "head" : "none";
}

// What says adapters without a switch for them: a builder's name, a rank.
void assume_adapters(LaunchLedger& ledger) {
  const std::string builder = ledger.text(facts::recipe).value_or("");
  if (builder.find(".qlora_") != std::string::npos) ledger.assume(facts::adapter, "qlora", "the builder's name");
  if (builder.find(".lora_") != std::string::npos) ledger.assume(facts::adapter, "lora", "the builder's name");
  constexpr std::array<LaunchFormat, 5> by_rank = {LaunchFormat::litgpt, LaunchFormat::openrlhf, LaunchFormat::verl,
                                                   LaunchFormat::openrlhf_rl, LaunchFormat::verl_rl};
  const bool is_by_rank = std::find(by_rank.begin(), by_rank.end(), ledger.launcher()) != by_rank.end();
  if (is_by_rank && ledger.says("model.lora_rank")) ledger.assume(facts::adapter, "lora", "it has a rank");
}

// Modules by a list, and by switches of their own.
std::optional<std::string> modules_of(const LaunchLedger& ledger) {
  std::string modules = ledger.text(facts::adapter_modules).value_or("");
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> switches = {
      {{facts::adapters_of_query, "q_proj"},
       {facts::adapters_of_key, "k_proj"},
       {facts::adapters_of_value, "v_proj"},
       {facts::adapters_of_output, facts::output_module},
       {facts::adapters_of_mlp, facts::mlp_modules}}};
  for (const auto& [fact, names] : switches)
    if (ledger.is_on(fact)) modules.append(" ").append(names);
  return modules.empty() ? std::nullopt : std::optional(modules);
}

}  // namespace

void compose_adapters(LaunchLedger& ledger) {
  assume_adapters(ledger);
  const auto adapter = ledger.text(facts::adapter);
  const auto bits = ledger.text(facts::base_bits);
  if (!adapter || *adapter == "factory_full" || *adapter == "factory_freeze" || *adapter == "none") {
    if (bits == "16")
      ledger.leave_out(facts::base_bits, IgnoreReason::as_modelled, "no fewer bits than the precision's");
    else if (bits)
      ledger.leave_out(facts::base_bits, IgnoreReason::not_said, "weights of so few bits train with adapters alone");
    if (ledger.is_on(facts::base_fp8))
      ledger.leave_out(facts::base_fp8, IgnoreReason::not_said, "weights in fp8 train with adapters alone");
    for (const std::string_view fact :
         {std::string_view("model.lora_rank"), std::string_view("model.lora_dropout"), facts::adapter_modules,
          facts::saved_modules, facts::double_quant, facts::adapters_of_query, facts::adapters_of_key,
          facts::adapters_of_value, facts::adapters_of_output, facts::adapters_of_mlp})
      ledger.leave_out(fact, IgnoreReason::no_effect, "no adapters: every weight is trained");
    return;
  }
  const bool is_factory = *adapter == "factory", is_axolotl = ledger.dialect() == Dialect::axolotl;
  const bool is_fp8 = ledger.is_on(facts::base_fp8), is_nf4 = !is_fp8 && (*adapter == "qlora" || bits == "4");
  ledger.set("model.trainable", is_nf4 ? "qlora" : "lora", "");
  // A second quantization is bitsandbytes' choice to make: axolotl and LLaMA-Factory make it.
  if (is_nf4 && ledger.text(facts::double_quant).value_or(is_factory || is_axolotl ? "true" : "false") != "true")
    ledger.set("model.base_weights", "nf4", "no second quantization");
  if (!is_nf4) ledger.leave_out(facts::double_quant, IgnoreReason::no_effect, "of weights in 4 bits");
  if (is_fp8)
    ledger.set("model.base_weights", "fp8", "");
  else if (!is_nf4 && bits == "8")
    ledger.set("model.base_weights", "int8", "");
  if (!ledger.has("model.lora_rank") && is_factory) ledger.set("model.lora_rank", "8", "LLaMA-Factory's default");
  if (!ledger.has("model.lora_dropout") && *adapter == "peft")
    ledger.set("model.lora_dropout", "0.05", "trl's default");
  if (const auto modules = ledger.text(facts::saved_modules))
    ledger.set("model.modules_to_save", saved_of(last_parts(listed_words(*modules)), ledger), "");
  if (const auto modules = modules_of(ledger))
    ledger.set("model.lora_targets", targets_of(last_parts(listed_words(*modules)), ledger), "");
  else if (is_factory)
    ledger.set("model.lora_targets", "all_linear", "LLaMA-Factory's default");
  else
    ledger.set("model.lora_targets", targets_of({"q_proj", "v_proj"}, ledger), "PEFT's own choice for most models");
}

}  // namespace spillway::launch
