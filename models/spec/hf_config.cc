#include "models/spec/hf_config.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/field_reader.h"
#include "base/nearest_name.h"
#include "models/spec/hf_object.h"
#include "models/spec/hf_readers.h"
#include "models/spec/model_check.h"

namespace spillway::models {
namespace {

struct Architecture {
  const char* model_type;
  std::vector<std::string> classes;  // those whose heads the reader gives
  void (*read)(const HfObject& config, ModelSpec& spec);
};

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {
      {"bert", {"BertForPreTraining", "BertForMaskedLM"}, hf::read_bert},
      {"cohere", {"CohereForCausalLM"}, hf::read_cohere},
      {"deepseek", {"DeepseekForCausalLM"}, hf::read_deepseek_moe},
      {"deepseek_v2", {"DeepseekV2ForCausalLM"}, hf::read_deepseek_v2},
      {"deepseek_v3", {"DeepseekV3ForCausalLM"}, hf::read_deepseek_v3},
      {"deepseek_v32", {"DeepseekV32ForCausalLM"}, hf::read_deepseek_v32},
      {"gemma", {"GemmaForCausalLM"}, hf::read_gemma},
      {"gemma2", {"Gemma2ForCausalLM"}, hf::read_gemma2},
      {"gemma3_text", {"Gemma3ForCausalLM"}, hf::read_gemma3},
      {"glm4_moe", {"Glm4MoeForCausalLM"}, hf::read_glm4_moe},
      {"gpt2", {"GPT2LMHeadModel"}, hf::read_gpt2},
      {"gpt_neox", {"GPTNeoXForCausalLM"}, hf::read_gpt_neox},
      {"gpt_oss", {"GptOssForCausalLM"}, hf::read_gpt_oss},
      {"granite", {"GraniteForCausalLM"}, hf::read_llama},
      {"kimi_k2", {"DeepseekV3ForCausalLM"}, hf::read_deepseek_v3},
      {"llama", {"LlamaForCausalLM", "LLaMAForCausalLM"}, hf::read_llama},
      {"llama4_text", {"Llama4ForCausalLM"}, hf::read_llama4},
      {"minimax_m2", {"MiniMaxM2ForCausalLM"}, hf::read_minimax_m2},
      {"mistral", {"MistralForCausalLM"}, hf::read_mistral},
      {"mixtral", {"MixtralForCausalLM"}, hf::read_mixtral},
      {"mpt", {"MPTForCausalLM", "MptForCausalLM"}, hf::read_mpt},
      {"mt5", {"MT5ForConditionalGeneration"}, hf::read_mt5},
      {"olmo2", {"Olmo2ForCausalLM"}, hf::read_olmo2},
      {"olmo3", {"Olmo3ForCausalLM"}, hf::read_olmo3},
      {"olmoe", {"OlmoeForCausalLM"}, hf::read_olmoe},
      {"opt", {"OPTForCausalLM"}, hf::read_opt},
      {"phi3", {"Phi3ForCausalLM"}, hf::read_phi3},
      {"qwen2", {"Qwen2ForCausalLM"}, hf::read_qwen2},
      {"qwen2_moe", {"Qwen2MoeForCausalLM"}, hf::read_qwen2_moe},
      {"qwen3", {"Qwen3ForCausalLM"}, hf::read_qwen3},
      {"qwen3_moe", {"Qwen3MoeForCausalLM"}, hf::read_qwen3_moe},
      {"qwen3_next", {"Qwen3NextForCausalLM"}, hf::read_qwen3_next},
      {"roberta", {"RobertaForMaskedLM"}, hf::read_roberta},
      {"starcoder2", {"Starcoder2ForCausalLM"}, hf::read_starcoder2},
      {"t5", {"T5ForConditionalGeneration", "T5WithLMHeadModel"}, hf::read_t5},
      {"vit", {"ViTForImageClassification"}, hf::read_vit},
  };
  return all;
}

const Architecture& architecture_of(const HfObject& config) {
  const std::string wanted_class = config.size("architectures") > 0 ? config.text_at("architectures", 0) : "";
  const std::string type = config.text("model_type", "");
  std::vector<std::string> types;
  for (const Architecture& candidate : architectures()) {
    types.emplace_back(candidate.model_type);
    const bool knows_class =
        std::find(candidate.classes.begin(), candidate.classes.end(), wanted_class) != candidate.classes.end();
    if (type.empty() ? knows_class : type == candidate.model_type) {
      if (!wanted_class.empty() && !knows_class)
        config.fail("architectures", fmt::format("\"{}\" is not modelled", wanted_class),
                    fmt::format("for \"{}\" spillway knows {}", type, fmt::join(candidate.classes, ", ")));
      return candidate;
    }
  }
  if (config.has("text_config"))
    config.fail("model_type", fmt::format("\"{}\", a model of several parts, is not modelled", type),
                "write the object under text_config to a file of its own and give that");
  if (type.empty()) config.fail("architectures", fmt::format("\"{}\" is not modelled", wanted_class), "add model_type");
  config.fail("model_type", fmt::format("\"{}\" is not modelled", type),
              suggest(type, types, fmt::format("spillway reads {}", fmt::join(types, ", "))));
}

// Ranges that the readers leave to one place; those of docs/schemas/model.schema.json.
void check_ranges(const HfObject& config, const ModelSpec& spec) {
  constexpr std::int64_t widest = 1 << 20;
  const auto at_most = [&config](const char* what, std::int64_t value, std::int64_t high) {
    if (value < 1 || value > high)
      config.fail("", fmt::format("{} is {}, not in 1 .. {}", what, value, high), "correct the configuration");
  };
  at_most("the number of layers", spec.layers, 4096);
  at_most("the number of encoder layers", std::max<std::int64_t>(spec.encoder_layers, 1), 4096);
  at_most("the width", spec.hidden, widest);
  at_most("the number of heads", spec.heads, 4096);
  at_most("the number of key heads", spec.kv_heads, 4096);
  at_most("the width of a head", spec.head_dim, 65'536);
  at_most("the feed-forward width", spec.feed_forward, widest);
  at_most("the number of experts", std::max<std::int64_t>(spec.experts.count, 1), 65'536);
  at_most("the width of an expert", std::max<std::int64_t>(spec.experts.width, 1), widest);
  at_most("the width of the shared experts", std::max<std::int64_t>(spec.experts.shared_width, 1), widest);
  at_most("the image", std::max<std::int64_t>(spec.patches.image, 1), 65'536);
  at_most("the number of channels", std::max<std::int64_t>(spec.patches.channels, 1), 65'536);
  at_most("a rank of latent attention", std::max<std::int64_t>({spec.latent.query_rank, spec.latent.kv_rank, 1}),
          65'536);
  at_most("the number of the indexer's heads", std::max<std::int64_t>(spec.indexer.heads, 1), 4096);
  at_most("the width of the indexer's heads", std::max<std::int64_t>(spec.indexer.head_dim, 1), 65'536);
  at_most("the number of linear attention's heads",
          std::max<std::int64_t>({spec.linear.key_heads, spec.linear.value_heads, 1}), 4096);
  at_most("the width of linear attention's heads",
          std::max<std::int64_t>({spec.linear.key_dim, spec.linear.value_dim, 1}), 65'536);
  at_most("the convolution of linear attention", std::max<std::int64_t>(spec.linear.convolution, 1), 1024);
  at_most("the width of a value head", std::max<std::int64_t>(spec.latent.value_dim, 1), 65'536);
}

std::string name_of(const std::string& file) {
  const std::filesystem::path path(file);
  const bool generic = path.filename() == "config.json" && path.has_parent_path();
  return generic ? path.parent_path().filename().string() : path.stem().string();
}

}  // namespace

bool is_hf_config(const nlohmann::ordered_json& json) {
  std::vector<FieldProblem> problems;
  const FieldReader reader(json, problems);
  return !reader.gave("/schema") && (reader.gave("/model_type") || reader.gave("/architectures"));
}

ModelSpec read_hf_config(const nlohmann::json& json, const std::string& file) {
  const HfObject config(json, file);
  const Architecture& architecture = architecture_of(config);
  ModelSpec spec;
  spec.name = name_of(file);
  spec.title = config.text("_name_or_path", spec.name);
  spec.source = fmt::format("Hugging Face configuration of a {} model", architecture.model_type);
  architecture.read(config, spec);
  check_ranges(config, spec);
  if (const auto fault = shape_fault(spec))
    config.fail("", fmt::format("{} (as {} of a model file)", fault->cause, fault->key), "correct the configuration");
  return spec;
}

}  // namespace spillway::models
