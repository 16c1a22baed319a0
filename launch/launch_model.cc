#include "launch/launch_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/field_writer.h"
#include "base/input_error.h"
#include "base/nearest_name.h"
#include "launch/launch_facts.h"
#include "launch/megatron_shape.h"
#include "models/spec/model_alias.h"
#include "models/spec/model_check.h"
#include "models/spec/model_fields.h"

namespace spillway::launch {
namespace {

// torchtitan/models/*/__init__.py; older releases call Llama 3.1's models llama3 as well.
// Llama 3 has the same layers: its rows, behind, are for export.
constexpr std::array<TitanModel, 17> titan_models = {{{"llama3", "8B", "llama-3.1-8b"},
                                                      {"llama3", "70B", "llama-3.1-70b"},
                                                      {"llama3", "405B", "llama-3.1-405b"},
                                                      {"llama3", "8B", "llama-3-8b"},
                                                      {"llama3", "70B", "llama-3-70b"},
                                                      {"llama2", "7B", "llama-2-7b"},
                                                      {"llama2", "13B", "llama-2-13b"},
                                                      {"llama2", "70B", "llama-2-70b"},
                                                      {"deepseek_v3", "16B", "deepseek-v2-lite"},
                                                      {"deepseek_v3", "236B", "deepseek-v2"},
                                                      {"deepseek_v3", "671B", "deepseek-v3"},
                                                      {"qwen3", "0.6B", "qwen3-0.6b"},
                                                      {"qwen3", "1.7B", "qwen3-1.7b"},
                                                      {"qwen3", "4B", "qwen3-4b"},
                                                      {"qwen3", "8B", "qwen3-8b"},
                                                      {"qwen3", "14B", "qwen3-14b"},
                                                      {"qwen3", "32B", "qwen3-32b"}}};

std::string lower_name(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return result;
}

LaunchModel bundled(const std::string& name) { return {.name = name, .spec = find_model(name)}; }

// Its settings are a program's.
void warn_of_recipe(LaunchLedger& ledger) {
  const LaunchSetting& setting = ledger.setting_of(facts::recipe);
  ledger.warn(
      fmt::format("{}: {}: what the recipe {} sets is not read: only its model is, and what the launch says itself",
                  setting.file, setting.place, setting.value));
}

LaunchModel by_titan_flavor(LaunchLedger& ledger) {
  const std::string name = ledger.text(facts::model).value_or("llama3");
  std::string flavor = ledger.text(facts::flavor).value_or("");
  // Since 2026 a function's name: "llama3_8b", "deepseek_v3_671b_..."
  if (const auto recipe = ledger.text(facts::recipe); recipe && recipe->starts_with(name + "_")) {
    flavor = recipe->substr(name.size() + 1);
    flavor.erase(std::min(flavor.find('_'), flavor.size()));
    warn_of_recipe(ledger);
  }
  std::vector<std::string> known;
  for (const TitanModel& each : titan_models) {
    if (each.name == lower_name(name) && lower_name(each.flavor) == lower_name(flavor))
      return bundled(std::string(each.bundled));
    std::string one = fmt::format("{} {}", each.name, each.flavor);
    if (std::find(known.begin(), known.end(), one) == known.end()) known.push_back(std::move(one));
  }
  const LaunchSetting& setting = ledger.setting_of(ledger.says(facts::flavor) ? facts::flavor : facts::model);
  throw InputError(setting.file, setting.place, fmt::format("torchtitan's {} {} is not bundled", name, flavor),
                   fmt::format("give --model NAME or its file; bundled are {}", fmt::join(known, ", ")));
}

LaunchModel by_published_name(LaunchLedger& ledger) {
  const LaunchSetting& setting = ledger.setting_of(facts::model);
  const std::string name = *ledger.text(facts::model);
  const std::filesystem::path folder = std::filesystem::path(setting.file).parent_path() / name;
  std::error_code error;
  if (std::filesystem::exists(folder / "config.json", error)) {
    const std::string file = std::filesystem::absolute(folder / "config.json").lexically_normal().string();
    return {.name = file, .spec = find_model(file)};
  }
  if (const auto alias = find_alias(name)) {
    // Of a copy in 4 bits the scenario says so by itself.
    const bool says_bits = !alias->is_nf4 || ledger.chosen("model.trainable") == "qlora";
    const bool is_bundled = alias->overrides.empty() && says_bits;
    return bundled(is_bundled ? alias->shape : name);
  }
  throw InputError(
      setting.file, setting.place, fmt::format("no bundled model is called '{}'", name),
      suggest(lower_name(name), bundled_models(), "give --model NAME") + ", or give --model with its config.json");
}

// Letters and digits, without those signs that names separate them by.
std::string without_signs(std::string_view text) {
  std::string letters;
  for (const char letter : lower_name(text))
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) letters += letter;
  return letters;
}

// By the beginning of a recipe's, a builder's or a model file's name: "llama3_8b_pretrain_config",
// "torchtune.models.llama3_1.lora_llama3_1_8b", "llama3.1_8B.yaml".
LaunchModel by_recipe(LaunchLedger& ledger) {
  const LaunchSetting& setting = ledger.setting_of(facts::recipe);
  std::string name = lower_name(setting.value);
  if (name.starts_with("torchtune.")) name.erase(0, name.rfind('.') + 1);
  for (const std::string_view prefix : {"lora_", "qlora_"})
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  const std::string wanted = without_signs(name);
  std::string best;
  for (const std::string& each : bundled_models())
    if (wanted.starts_with(without_signs(each)) && each.size() > best.size()) best = each;
  if (best.empty())
    throw InputError(setting.file, setting.place, fmt::format("no bundled model is called like '{}'", setting.value),
                     "give --model NAME or its file");
  if (ledger.launcher() == LaunchFormat::bridge) warn_of_recipe(ledger);
  return bundled(best);
}

// Whether everything that a step's time and memory depend on is alike. Megatron pads the vocabulary.
bool is_alike(const ModelSpec& bundled, const ModelSpec& wanted, const MegatronVocabulary& vocabulary) {
  const auto& b = bundled;
  const auto& w = wanted;
  const bool is_table = w.positions == Positions::learned;
  const bool dense = !w.has_experts() || w.experts.first_dense_layers > 0 || w.experts.every > 1;
  const bool sizes = b.hidden == w.hidden && b.heads == w.heads && b.kv_heads == w.kv_heads &&
                     b.head_dim == w.head_dim && (!dense || b.feed_forward == w.feed_forward) &&
                     (!is_table || b.max_positions == w.max_positions);
  const bool kinds = b.norm == w.norm && b.norm_placement == w.norm_placement && b.activation == w.activation &&
                     b.positions == w.positions && b.mask == w.mask && b.block_layout == w.block_layout &&
                     b.tied_embeddings == w.tied_embeddings && b.query_key_norm == w.query_key_norm &&
                     b.attention_window == w.attention_window && b.attention_softcap == 0 && b.logit_softcap == 0 &&
                     b.global_every == 0 && b.blocks.empty() && !b.head_bias && !b.wide_query_key_norm;
  const bool biases = b.qkv_bias == w.qkv_bias && b.output_bias == w.output_bias &&
                      b.feed_forward_bias == w.feed_forward_bias &&
                      (b.norm == NormKind::rms_norm || b.norm_bias == w.norm_bias);
  const auto& be = b.experts;
  const auto& we = w.experts;
  const bool experts = be.count == we.count &&
                       (we.count == 0 || (be.active == we.active && be.width == we.width && be.every == we.every &&
                                          be.shared_width == we.shared_width && be.shared_gate == we.shared_gate &&
                                          be.first_dense_layers == we.first_dense_layers));
  const auto& bl = b.latent;
  const auto& wl = w.latent;
  const bool latent = bl.kv_rank == wl.kv_rank && bl.query_rank == wl.query_rank && bl.rope_dim == wl.rope_dim &&
                      bl.nope_dim == wl.nope_dim && bl.value_dim == wl.value_dim;
  return sizes && kinds && biases && experts && latent && !b.has_encoder() && !b.reads_images() &&
         vocabulary.is_of(b.vocabulary);
}

// The nearest of the bundled models with this shape: with as many layers, with as long sequences.
std::optional<LaunchModel> with_shape(const ModelSpec& wanted, const MegatronVocabulary& vocabulary) {
  static const std::vector<std::pair<std::string, ModelSpec>> all = [] {
    std::vector<std::pair<std::string, ModelSpec>> made;
    for (const std::string& name : bundled_models()) made.emplace_back(name, find_model(name));
    return made;
  }();
  std::optional<LaunchModel> best;
  int best_points = -1;
  for (const auto& [name, spec] : all) {
    if (!is_alike(spec, wanted, vocabulary)) continue;
    const int points = (spec.layers == wanted.layers ? 4 : 0) + (spec.max_positions == wanted.max_positions ? 2 : 0) +
                       (vocabulary.given == spec.vocabulary ? 1 : 0);
    if (points <= best_points) continue;
    best_points = points;
    best = LaunchModel{.name = name, .spec = spec, .layers = spec.layers == wanted.layers ? 0 : wanted.layers};
  }
  return best;
}

LaunchModel by_shape(LaunchLedger& ledger, std::int64_t tensor_parallel) {
  const MegatronVocabulary vocabulary = megatron_vocabulary(ledger, tensor_parallel);
  ModelSpec wanted = megatron_spec(ledger, vocabulary);
  if (auto found = with_shape(wanted, vocabulary)) {
    if (!vocabulary.is_said())
      ledger.warn(fmt::format("the launch doesn't say its vocabulary: taken are the {} rows of {}, which has its shape",
                              found->spec.vocabulary, found->name));
    found->states_vocabulary = vocabulary.is_said();
    return std::move(*found);
  }
  if (!vocabulary.is_said())
    ledger.warn(fmt::format("the launch doesn't say its vocabulary: {} rows are assumed", wanted.vocabulary));
  if (const auto fault = shape_fault(wanted)) {
    const LaunchSetting& setting = ledger.setting_of(facts::hidden);
    throw InputError(setting.file, setting.place,
                     fmt::format("the sizes are no model: {} {}", fault->key, fault->cause),
                     fault->remedy + ", or give --model");
  }
  return {.name = "", .spec = std::move(wanted), .is_new = true, .states_vocabulary = vocabulary.is_said()};
}

}  // namespace

std::optional<TitanModel> titan_model(std::string_view name) {
  const auto alias = find_alias(name);
  if (!alias || !alias->overrides.empty() || alias->is_nf4) return std::nullopt;
  for (const TitanModel& each : titan_models)
    if (each.bundled == alias->shape) return each;
  return std::nullopt;
}

std::optional<LaunchModel> model_of(LaunchLedger& ledger, std::int64_t tensor_parallel) {
  if (ledger.says(facts::layers) || ledger.says(facts::hidden)) return by_shape(ledger, tensor_parallel);
  if (ledger.launcher() == LaunchFormat::torchtitan && (ledger.says(facts::flavor) || ledger.says(facts::model)))
    return by_titan_flavor(ledger);
  if (ledger.says(facts::model)) return by_published_name(ledger);
  if (ledger.says(facts::recipe)) return by_recipe(ledger);
  return std::nullopt;
}

namespace {

// The model's file: what says nothing is left out.
class ModelWriter final : public FieldWriter {
 public:
  void integer(const FieldInfo& info, std::optional<std::int64_t>& value) override {
    const std::int64_t usual = info.key == "streams" ? 1 : 0;
    if (value && (*value != usual || info.required)) FieldWriter::integer(info, value);
  }
  void flag(const FieldInfo& info, std::optional<bool>& value) override {
    const bool usual =
        info.key == "norm_bias" || info.key == "norm_weights" || info.key == "norm" || info.key == "convolution_bias";
    if (value && *value != usual) FieldWriter::flag(info, value);
  }
  void number(const FieldInfo& info, std::optional<double>& value) override {
    if (value && (*value != 0 || wanted_.contains(info.key))) FieldWriter::number(info, value);
  }
  bool begin_group(const FieldInfo& info) override {
    return wanted_.contains(info.key) && FieldWriter::begin_group(info);
  }
  void want(std::string_view key) { wanted_.emplace(key); }

 private:
  std::set<std::string, std::less<>> wanted_;  // groups, and numbers that are 0
};

}  // namespace

std::string model_text(const ModelSpec& spec) {
  ModelWriter writer;
  if (spec.has_latent()) writer.want("latent_attention");
  if (spec.has_indexer()) writer.want("indexer");
  if (spec.has_compressed()) writer.want("compressed_attention");
  if (spec.has_linear()) writer.want("linear_attention");
  if (spec.has_mamba()) writer.want("mamba");
  if (spec.has_convolutions()) writer.want("short_convolution");
  if (spec.has_experts()) writer.want("experts");
  if (spec.has_layer_inputs()) writer.want("layer_inputs");
  ModelSpec copy = spec;
  if (copy.has_latent()) copy.head_dim = 0;  // follows from its parts
  if (copy.attention_dropout == copy.dropout)
    copy.attention_dropout = 0;  // as the reader has it anyway
  else
    writer.want("attention_dropout");
  describe(copy, writer);
  return writer.text();
}

}  // namespace spillway::launch
