#include "models/spec/hf_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/field_reader.h"
#include "base/nearest_name.h"
#include "models/spec/hf_object.h"
#include "models/spec/hf_readers.h"
#include "models/spec/model_check.h"
#include "models/spec/tower.h"

namespace spillway::models {
namespace {

struct Architecture {
  const char* model_type;
  std::array<std::string_view, 3> classes;  // those whose heads the reader gives
  void (*read)(const HfObject& config, ModelSpec& spec);

  [[nodiscard]] bool knows(std::string_view its_class) const {
    return !its_class.empty() && std::find(classes.begin(), classes.end(), its_class) != classes.end();
  }
  [[nodiscard]] std::string known_classes() const {
    std::string all;
    for (const std::string_view each : classes)
      if (!each.empty()) all += (all.empty() ? "" : ", ") + std::string(each);
    return all;
  }
};

constexpr Architecture architectures[] = {
    {"afmoe", {"AfmoeForCausalLM"}, hf::read_afmoe},
    {"apertus", {"ApertusForCausalLM"}, hf::read_apertus},
    {"arcee", {"ArceeForCausalLM"}, hf::read_arcee},
    {"baichuan", {"BaichuanForCausalLM", "BaiChuanForCausalLM"}, hf::read_llama},
    {"bailing_moe", {"BailingMoeForCausalLM"}, hf::read_bailing_moe},
    {"bailing_moe_v2", {"BailingMoeV2ForCausalLM"}, hf::read_bailing_moe},
    {"bamba", {"BambaForCausalLM"}, hf::read_bamba},
    {"bert", {"BertForPreTraining", "BertForMaskedLM"}, hf::read_bert},
    {"bloom", {"BloomForCausalLM"}, hf::read_bloom},
    {"chatglm", {"ChatGLMModel", "ChatGLMForConditionalGeneration", "ChatGLMForCausalLM"}, hf::read_chatglm},
    {"codegen", {"CodeGenForCausalLM"}, hf::read_gptj},
    {"cohere", {"CohereForCausalLM"}, hf::read_cohere},
    {"cohere2", {"Cohere2ForCausalLM"}, hf::read_cohere2},
    {"cwm", {"CwmForCausalLM"}, hf::read_mistral},
    {"dbrx", {"DbrxForCausalLM"}, hf::read_dbrx},
    {"deepseek", {"DeepseekForCausalLM"}, hf::read_deepseek_moe},
    {"deepseek_v2", {"DeepseekV2ForCausalLM"}, hf::read_deepseek_v2},
    {"deepseek_v3", {"DeepseekV3ForCausalLM"}, hf::read_deepseek_v3},
    {"deepseek_v32", {"DeepseekV32ForCausalLM"}, hf::read_deepseek_v32},
    {"deepseek_v4", {"DeepseekV4ForCausalLM"}, hf::read_deepseek_v4},
    {"dots1", {"Dots1ForCausalLM"}, hf::read_dots1},
    {"ernie4_5", {"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"}, hf::read_ernie},
    {"ernie4_5_moe", {"Ernie4_5_MoeForCausalLM"}, hf::read_ernie_moe},
    {"exaone", {"ExaoneForCausalLM"}, hf::read_exaone},
    {"exaone4", {"Exaone4ForCausalLM"}, hf::read_exaone4},
    {"exaone_moe", {"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"}, hf::read_exaone_moe},
    {"falcon", {"FalconForCausalLM"}, hf::read_falcon},
    {"falcon_h1", {"FalconH1ForCausalLM"}, hf::read_falcon_h1},
    {"falcon_mamba", {"FalconMambaForCausalLM"}, hf::read_mamba},
    {"flex_olmo", {"FlexOlmoForCausalLM"}, hf::read_flex_olmo},
    {"gemma", {"GemmaForCausalLM"}, hf::read_gemma},
    {"gemma2", {"Gemma2ForCausalLM"}, hf::read_gemma2},
    {"gemma3_text", {"Gemma3ForCausalLM"}, hf::read_gemma3},
    {"gemma4_text", {"Gemma4ForCausalLM"}, hf::read_gemma4},
    {"glm", {"GlmForCausalLM"}, hf::read_glm},
    {"glm4", {"Glm4ForCausalLM"}, hf::read_glm4},
    {"glm4_moe", {"Glm4MoeForCausalLM"}, hf::read_glm4_moe},
    {"glm4_moe_lite", {"Glm4MoeLiteForCausalLM"}, hf::read_deepseek_v3},
    {"glm4v_moe_text", {}, hf::read_glm4_moe},
    {"glm4v_text", {}, hf::read_glm4},
    {"glm_moe_dsa", {"GlmMoeDsaForCausalLM"}, hf::read_deepseek_v32},
    {"gpt2", {"GPT2LMHeadModel"}, hf::read_gpt2},
    {"gpt_bigcode", {"GPTBigCodeForCausalLM"}, hf::read_gpt_bigcode},
    {"gpt_neo", {"GPTNeoForCausalLM"}, hf::read_gpt_neo},
    {"gpt_neox", {"GPTNeoXForCausalLM"}, hf::read_gpt_neox},
    {"gpt_oss", {"GptOssForCausalLM"}, hf::read_gpt_oss},
    {"gptj", {"GPTJForCausalLM"}, hf::read_gptj},
    {"granite", {"GraniteForCausalLM"}, hf::read_llama},
    {"granitemoe", {"GraniteMoeForCausalLM"}, hf::read_granite_moe},
    {"granitemoehybrid", {"GraniteMoeHybridForCausalLM"}, hf::read_granite_hybrid},
    {"granitemoeshared", {"GraniteMoeSharedForCausalLM"}, hf::read_granite_moe_shared},
    {"helium", {"HeliumForCausalLM"}, hf::read_llama},
    {"hunyuan_v1_dense", {"HunYuanDenseV1ForCausalLM"}, hf::read_hunyuan},
    {"hunyuan_v1_moe", {"HunYuanMoEV1ForCausalLM"}, hf::read_hunyuan_moe},
    {"internlm2", {"InternLM2ForCausalLM"}, hf::read_internlm2},
    {"internlm3", {"InternLM3ForCausalLM"}, hf::read_internlm3},
    {"jamba", {"JambaForCausalLM"}, hf::read_jamba},
    {"kimi_k2", {"DeepseekV3ForCausalLM"}, hf::read_deepseek_v3},
    {"kimi_k25_text", {}, hf::read_deepseek_v3},
    {"kimi_k2_text", {}, hf::read_deepseek_v3},
    {"kimi_k3", {"KimiLinearForCausalLM"}, hf::read_kimi_linear},
    {"kimi_linear", {"KimiLinearForCausalLM"}, hf::read_kimi_linear},
    {"lfm2", {"Lfm2ForCausalLM"}, hf::read_lfm2},
    {"lfm2_moe", {"Lfm2MoeForCausalLM"}, hf::read_lfm2_moe},
    {"llama", {"LlamaForCausalLM", "LLaMAForCausalLM"}, hf::read_llama},
    {"llama4_text", {"Llama4ForCausalLM"}, hf::read_llama4},
    {"longcat_flash", {"LongcatFlashForCausalLM"}, hf::read_longcat_flash},
    {"mamba", {"MambaForCausalLM"}, hf::read_mamba},
    {"mamba2", {"Mamba2ForCausalLM"}, hf::read_mamba2},
    {"mimo", {"MiMoForCausalLM"}, hf::read_qwen2},
    {"mimo_v2", {"MiMoV2ForCausalLM"}, hf::read_mimo_v2},
    {"mimo_v2_flash", {"MiMoV2FlashForCausalLM"}, hf::read_mimo_v2},
    {"minicpm", {"MiniCPMForCausalLM"}, hf::read_llama},
    {"minicpm3", {"MiniCPM3ForCausalLM"}, hf::read_minicpm3},
    {"minimax", {"MiniMaxForCausalLM"}, hf::read_minimax_text},
    {"minimax_m1", {"MiniMaxM1ForCausalLM"}, hf::read_minimax_text},
    {"minimax_m2", {"MiniMaxM2ForCausalLM"}, hf::read_minimax_m2},
    {"minimax_m3", {"MiniMaxM3ForCausalLM", "MiniMaxM3SparseForCausalLM"}, hf::read_minimax_m3},
    {"minimax_m3_text", {}, hf::read_minimax_m3},
    {"minimax_text_01", {"MiniMaxText01ForCausalLM"}, hf::read_minimax_text},
    {"ministral", {"MinistralForCausalLM"}, hf::read_mistral},
    {"ministral3", {"Ministral3ForCausalLM"}, hf::read_ministral3},
    {"mistral", {"MistralForCausalLM"}, hf::read_mistral},
    {"mixtral", {"MixtralForCausalLM"}, hf::read_mixtral},
    {"modernbert", {"ModernBertForMaskedLM"}, hf::read_modernbert},
    {"mpt", {"MPTForCausalLM", "MptForCausalLM"}, hf::read_mpt},
    {"mt5", {"MT5ForConditionalGeneration"}, hf::read_mt5},
    {"nemotron", {"NemotronForCausalLM"}, hf::read_nemotron},
    {"nemotron-nas", {"DeciLMForCausalLM"}, hf::read_nemotron_nas},
    {"nemotron_h", {"NemotronHForCausalLM"}, hf::read_nemotron_h},
    {"olmo", {"OlmoForCausalLM"}, hf::read_olmo},
    {"olmo2", {"Olmo2ForCausalLM"}, hf::read_olmo2},
    {"olmo3", {"Olmo3ForCausalLM"}, hf::read_olmo3},
    {"olmoe", {"OlmoeForCausalLM"}, hf::read_olmoe},
    {"opt", {"OPTForCausalLM"}, hf::read_opt},
    {"phi", {"PhiForCausalLM"}, hf::read_phi},
    {"phi3", {"Phi3ForCausalLM"}, hf::read_phi3},
    {"phimoe", {"PhiMoEForCausalLM", "PhimoeForCausalLM"}, hf::read_phimoe},
    {"qwen", {"QWenLMHeadModel"}, hf::read_qwen},
    {"qwen2", {"Qwen2ForCausalLM"}, hf::read_qwen2},
    {"qwen2_5_omni_text", {}, hf::read_qwen2},
    {"qwen2_5_vl", {"Qwen2_5_VLForConditionalGeneration"}, hf::read_qwen2},
    {"qwen2_5_vl_text", {}, hf::read_qwen2},
    {"qwen2_moe", {"Qwen2MoeForCausalLM"}, hf::read_qwen2_moe},
    {"qwen2_vl", {"Qwen2VLForConditionalGeneration"}, hf::read_qwen2},
    {"qwen2_vl_text", {}, hf::read_qwen2},
    {"qwen3", {"Qwen3ForCausalLM"}, hf::read_qwen3},
    {"qwen3_5_moe_text", {"Qwen3_5MoeForCausalLM"}, hf::read_qwen3_5_moe},
    {"qwen3_5_text", {"Qwen3_5ForCausalLM"}, hf::read_qwen3_5},
    {"qwen3_moe", {"Qwen3MoeForCausalLM"}, hf::read_qwen3_moe},
    {"qwen3_next", {"Qwen3NextForCausalLM"}, hf::read_qwen3_next},
    {"qwen3_omni_moe_text", {}, hf::read_qwen3_moe},
    {"qwen3_vl_moe_text", {}, hf::read_qwen3_moe},
    {"qwen3_vl_text", {}, hf::read_qwen3},
    {"roberta", {"RobertaForMaskedLM"}, hf::read_roberta},
    {"seed_oss", {"SeedOssForCausalLM"}, hf::read_seed_oss},
    {"smollm3", {"SmolLM3ForCausalLM"}, hf::read_smollm3},
    {"solar_open", {"SolarOpenForCausalLM"}, hf::read_glm4_moe},
    {"stablelm", {"StableLmForCausalLM"}, hf::read_stablelm},
    {"starcoder2", {"Starcoder2ForCausalLM"}, hf::read_starcoder2},
    {"step3p5", {"Step3p5ForCausalLM", "Step3p5ForConditionalGeneration"}, hf::read_step3p5},
    {"step3p5_text", {}, hf::read_step3p5},
    {"step3p7", {"Step3p7FlashForCausalLM", "Step3p7ForCausalLM"}, hf::read_step3p5},
    {"step3p7_text", {}, hf::read_step3p5},
    {"t5", {"T5ForConditionalGeneration", "T5WithLMHeadModel"}, hf::read_t5},
    {"vaultgemma", {"VaultGemmaForCausalLM"}, hf::read_vaultgemma},
    {"vit", {"ViTForImageClassification"}, hf::read_vit},
    {"xlm-roberta", {"XLMRobertaForMaskedLM"}, hf::read_roberta},
};

// By what their names begin with; the first row that fits.
struct Unmodelled {
  std::string_view model_type, needs, nearest;
};
constexpr std::array<Unmodelled, 5> unmodelled = {{
    {"bailing_hybrid", "lightning attention with norms of groups of heads, beside latent attention", "minimax_text_01"},
    {"gemma3n", "residual streams of another kind (AltUp)", "gemma4_text"},
    {"mllama", "cross-attention to images", "llama"},
    {"t5gemma", "an encoder of Gemma's layers", "t5"},
    {"zamba2", "Mamba-2 layers before attention blocks that layers share", "nemotron_h"},
}};

std::string first_class(const HfObject& config) {
  return config.size("architectures") > 0 ? config.text_at("architectures", 0) : "";
}

// What transformers' classes have where a text model's part of a configuration leaves a size out.
const nlohmann::json* usual_sizes(const std::string& type) {
  static const auto sizes = [](int hidden, int feed_forward, int layers, int heads, int vocabulary) {
    return nlohmann::json{{"hidden_size", hidden},
                          {"intermediate_size", feed_forward},
                          {"num_hidden_layers", layers},
                          {"num_attention_heads", heads},
                          {"vocab_size", vocabulary}};
  };
  static const nlohmann::json gemma3 = sizes(2304, 9216, 26, 8, 262'208), llama = sizes(4096, 11'008, 32, 32, 32'000),
                              mistral = sizes(4096, 14'336, 32, 32, 32'000);
  if (type == "gemma3_text") return &gemma3;
  if (type == "llama") return &llama;
  return type == "mistral" ? &mistral : nullptr;
}

// The text model's part of a configuration of several, and what holds it beside the other parts. Of one part it is
// both.
struct Parts {
  HfObject whole, text;
  std::string type;
  bool is_one;
};

// Of a text model's part that doesn't say its own type: by its class, or by what the whole's begins with.
std::string text_type_of(const HfObject& text, const std::string& whole_type) {
  if (text.has("model_type")) return text.text("model_type", "");
  const std::string usual = whole_type + "_text", its_class = first_class(text);
  std::string nearest;
  for (const Architecture& each : architectures) {
    const std::string_view known = each.model_type;
    if (known == usual || each.knows(its_class)) return each.model_type;
    if (whole_type.starts_with(known) && known.size() > nearest.size()) nearest = known;
  }
  return nearest.empty() ? usual : nearest;
}

Parts parts_of(const HfObject& whole) {
  const std::string type = whole.text("model_type", "");
  if (whole.has("thinker_config")) return parts_of(whole.object("thinker_config"));
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (!whole.has(key)) continue;
    const std::string text_type = text_type_of(whole.object(key), type);
    return {whole, whole.object(key, usual_sizes(text_type)), text_type, false};
  }
  return {whole, whole, type, true};
}

const Architecture& architecture_of(const Parts& parts) {
  const HfObject& config = parts.text;
  const std::string wanted_class = first_class(parts.whole);
  const std::string& type = parts.type;
  std::vector<std::string> types;
  for (const Architecture& candidate : architectures) {
    types.emplace_back(candidate.model_type);
    const bool knows_class = candidate.knows(wanted_class);
    if (type.empty() ? knows_class : type == candidate.model_type) {
      const bool generates = wanted_class.find("Classification") == std::string::npos;
      if (!wanted_class.empty() && !(parts.is_one ? knows_class : generates))
        parts.whole.fail("architectures", fmt::format("\"{}\" is not modelled", wanted_class),
                         fmt::format("for \"{}\" spillway knows {}", type, candidate.known_classes()));
      return candidate;
    }
  }
  if (type.empty()) config.fail("architectures", fmt::format("\"{}\" is not modelled", wanted_class), "add model_type");
  for (const Unmodelled& each : unmodelled)
    if (type.starts_with(each.model_type))
      config.fail("model_type", fmt::format("\"{}\" needs {}: not modelled", type, each.needs),
                  fmt::format("the nearest type that is read: {}", each.nearest));
  for (const Architecture& candidate : architectures)
    if (parts.is_one && candidate.knows(wanted_class)) return candidate;
  const bool has_sizes = config.has("hidden_size") && config.has("num_hidden_layers") &&
                         config.has("num_attention_heads") && config.has("intermediate_size");
  const bool is_language_model = wanted_class.empty() || wanted_class.ends_with("ForCausalLM") ||
                                 wanted_class.ends_with("ForConditionalGeneration");
  static const Architecture by_keys{"known keys", {}, hf::read_by_keys};
  if (has_sizes && is_language_model) return by_keys;
  config.fail("model_type", fmt::format("\"{}\" is not modelled", type),
              suggest(type, types, fmt::format("spillway reads {}", fmt::join(types, ", "))));
}

// Parameters of a vision transformer and of what leads from it into the text: matrices, biases and norms of its layers,
// patches, positions; 0 where there is none, or its sizes aren't said in a known way.
std::int64_t tower_parameters(const Parts& parts, const ModelSpec& spec) {
  const HfObject vision = parts.whole.object("vision_config");
  const std::int64_t width = vision.integer_of({"embed_dim", "vt_hidden_size", "hidden_size"}, 0);
  const std::int64_t layers = vision.integer_of({"depth", "vt_num_hidden_layers", "num_hidden_layers"}, 0);
  if (width == 0 || layers == 0) return 0;
  const auto usual = static_cast<std::int64_t>(vision.number("mlp_ratio", 4, 0, 64) * static_cast<double>(width));
  const std::int64_t inner = vision.integer_of({"vt_intermediate_size", "intermediate_size"}, usual);
  const std::string kind = vision.text("model_type", parts.whole.text("model_type", ""));
  const std::int64_t matrices = kind.starts_with("qwen2_5") || kind == "pixtral" ? 3 : 2;
  const std::int64_t patch = vision.integer_of({"patch_size", "spatial_patch_size"}, 14);
  const std::int64_t pixels = vision.integer_of({"in_channels", "in_chans", "num_channels"}, 3) * patch * patch *
                              vision.integer_of({"temporal_patch_size"}, 1);
  const std::int64_t side = vision.integer_of({"image_size"}, 0) / std::max<std::int64_t>(1, patch);
  const std::int64_t positions = vision.integer_of({"num_position_embeddings"}, side * side);
  const std::int64_t merged = vision.integer_of({"spatial_merge_size"}, parts.whole.integer("spatial_merge_size", 1));
  const std::int64_t entering = width * merged * merged;
  const std::int64_t bridge = (merged > 1 ? entering * entering : 0) + entering * spec.hidden;
  const std::int64_t layer = 4 * width * width + matrices * width * inner + 9 * width + (matrices - 1) * inner;
  return layers * layer + width * (pixels + positions) + bridge * (1 + vision.size("deepstack_visual_indexes"));
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
  at_most("a bottleneck of compressed attention",
          std::max<std::int64_t>({spec.compressed.query_rank, spec.compressed.output_rank, 1}), 65'536);
  at_most("the number of residual streams", spec.streams, 64);
  at_most("the number of idle experts", std::max<std::int64_t>(spec.experts.idle, 1), 65'536);
  at_most("the width of linear attention's heads",
          std::max<std::int64_t>({spec.linear.key_dim, spec.linear.value_dim, 1}), 65'536);
  at_most("the width of Mamba-2's projection", std::max<std::int64_t>(spec.mamba.projected(), 1), widest);
  at_most("the chunk of Mamba-2", std::max<std::int64_t>(spec.mamba.chunk, 1), 65'536);
  at_most("the convolution of Mamba-2", std::max<std::int64_t>(spec.mamba.convolution, 1), 1024);
  at_most("the short convolution", std::max<std::int64_t>(spec.convolution.tokens, 1), 1024);
  at_most("the latent width of experts", std::max<std::int64_t>(spec.experts.latent_width, 1), widest);
  for (const Block& block : spec.blocks) {
    at_most("a layer's number of heads", std::max<std::int64_t>({block.heads, block.kv_heads, 1}), 4096);
    at_most("a layer's width of a head", std::max<std::int64_t>({block.head_dim, block.value_dim, 1}), 65'536);
    at_most("a layer's feed-forward width", std::max<std::int64_t>(block.width, 1), widest);
  }
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
  const Parts parts = parts_of(HfObject(json, file));
  const HfObject& config = parts.text;
  const Architecture& architecture = architecture_of(parts);
  ModelSpec spec;
  spec.name = name_of(file);
  spec.title = parts.whole.text("_name_or_path", spec.name);
  spec.source = fmt::format("Hugging Face configuration of a {} model", architecture.model_type);
  architecture.read(config, spec);
  if (parts.is_one && !parts.type.empty() && parts.type != architecture.model_type &&
      architecture.knows(first_class(parts.whole)))
    spec.notes.push_back(fmt::format("\"{}\" is not a type that is known: read as {}, by its class", parts.type,
                                     architecture.model_type));
  if (!parts.is_one) spec.tied_embeddings = parts.whole.flag("tie_word_embeddings", spec.tied_embeddings);
  if (auto tower = read_tower(parts.whole, spec.hidden))
    set_tower(spec, std::move(tower));
  else
    spec.held_parameters = tower_parameters(parts, spec);
  for (const char* part : {"vision_config", "audio_config"})
    if (parts.whole.has(part) && (part[0] == 'a' || spec.held_parameters == 0))
      spec.notes.push_back(fmt::format("{}: text only, the part under {} is not counted", spec.title, part));
  if (config.integer_of({"mtp_num_hidden_layers", "num_nextn_predict_layers"}, 0) > 0)
    spec.notes.push_back(spec.title + ": its layers of multi-token prediction are left out");
  check_ranges(config, spec);
  if (const auto fault = shape_fault(spec))
    config.fail("", fmt::format("{} (as {} of a model file)", fault->cause, fault->key), "correct the configuration");
  return spec;
}

}  // namespace spillway::models
