#include "models/spec/hf_config.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_spec.h"

namespace spillway::models {
namespace {

std::string config_error(const std::string& text) {
  try {
    parse_model(text, "config.json");
  } catch (const InputError& error) {
    return error.place() + ": " + error.cause();
  }
  return "accepted";
}

std::int64_t count_of(const std::string& text) { return parameter_count(parse_model(text, "config.json")); }

// Sizes of the published models that these kinds began with, as their config.json has them.
const std::map<std::string, std::string>& sizes() {
  static const std::map<std::string, std::string> all = {
      {"gpt2", R"("vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024)"},
      {"opt", R"("vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                 "ffn_dim": 3072, "max_position_embeddings": 2048)"},
      {"bert", R"("vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                  "intermediate_size": 3072, "max_position_embeddings": 512)"},
      {"llama", R"("vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                   "intermediate_size": 11008)"},
      {"mistral", R"("vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                     "intermediate_size": 14336)"},
      {"mixtral", R"("vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                     "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2)"},
      {"gemma", R"("vocab_size": 256000, "hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
                   "intermediate_size": 24576)"},
      {"gemma2", R"("vocab_size": 256000, "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8,
                    "intermediate_size": 9216)"},
      {"gemma3_text", R"("vocab_size": 262208, "hidden_size": 2304, "num_attention_heads": 8,
                         "intermediate_size": 9216)"},
      {"t5", R"("vocab_size": 32128, "d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "d_kv": 64)"},
      {"gpt_neox", R"("vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64,
                      "intermediate_size": 24576)"},
      {"deepseek_v3", R"("vocab_size": 129280, "hidden_size": 7168, "num_hidden_layers": 61,
                         "num_attention_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
                         "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
                         "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128)"},
      {"deepseek_v32", R"("vocab_size": 129280, "hidden_size": 7168, "num_hidden_layers": 61,
                          "num_attention_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
                          "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
                          "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
                          "v_head_dim": 128, "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048)"},
      {"qwen3_next", R"("vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
                        "intermediate_size": 5120, "num_experts": 512, "num_experts_per_tok": 10,
                        "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
                        "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
                        "linear_value_head_dim": 128)"},
      {"phi3", R"("vocab_size": 32064, "hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32,
                  "intermediate_size": 8192)"},
      {"gpt_oss", R"("vocab_size": 201088, "hidden_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64,
                     "intermediate_size": 2880, "num_local_experts": 128, "num_experts_per_tok": 4)"},
      {"glm4_moe", R"("vocab_size": 151552, "hidden_size": 4096, "num_hidden_layers": 46, "num_attention_heads": 96,
                      "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 128,
                      "num_experts_per_tok": 8, "n_shared_experts": 1)"},
      {"minimax_m2", R"("vocab_size": 200064, "hidden_size": 3072, "num_hidden_layers": 62, "num_attention_heads": 48,
                        "intermediate_size": 1536, "num_local_experts": 256, "num_experts_per_tok": 8)"},
      {"llama4_text", R"("vocab_size": 202048, "hidden_size": 5120, "num_hidden_layers": 48,
                         "num_attention_heads": 40, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
                         "num_local_experts": 16)"},
      {"vit", R"("hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
                 "image_size": 224, "patch_size": 16)"},
  };
  return all;
}
// A configuration of the type with its sizes, and `more`.
std::string config(const std::string& type, const std::string& more = "") {
  return R"({"model_type": ")" + type + "\", " + sizes().at(type) + (more.empty() ? "" : ", " + more) + "}";
}

// The published counts, with the class's defaults for all that is no size.
TEST(HfConfig, CountsOfPublishedModels) {
  EXPECT_EQ(count_of(config("gpt2")), 124'439'808);
  EXPECT_EQ(count_of(config("opt")), 125'239'296);
  // OPT-350m: an embedding of 512 with matrices into the layers and out of them, norms behind their parts and none at
  // the end. The count: the checkpoint's.
  EXPECT_EQ(count_of(R"({"model_type": "opt", "vocab_size": 50272, "hidden_size": 1024, "num_hidden_layers": 24,
                         "num_attention_heads": 16, "ffn_dim": 4096, "max_position_embeddings": 2048,
                         "word_embed_proj_dim": 512, "do_layer_norm_before": false})"),
            331'196'416);
  EXPECT_EQ(count_of(config("bert")), 110'106'428);
  EXPECT_EQ(count_of(config("llama")), 6'738'415'616);
  EXPECT_EQ(count_of(config("mistral")), 7'241'732'096);
  EXPECT_EQ(count_of(config("mixtral")), 46'702'792'704);
  EXPECT_EQ(count_of(config("gemma")), 8'537'680'896);
  EXPECT_EQ(count_of(config("gemma2")), 2'614'341'888);
  EXPECT_EQ(count_of(config("t5")), 60'506'624);
  EXPECT_EQ(count_of(config("gpt_neox")), 20'554'567'680);
  EXPECT_EQ(count_of(config("deepseek_v3", R"("q_lora_rank": 1536)")), 671'026'419'200);
  EXPECT_EQ(count_of(config("deepseek_v32")), 671'877'944'064);
  EXPECT_EQ(count_of(config("qwen3_next")), 79'674'391'296);
  EXPECT_EQ(count_of(config("phi3")), 3'821'079'552);
  EXPECT_EQ(count_of(config("gpt_oss")), 116'829'156'672);
  EXPECT_EQ(count_of(config("glm4_moe", R"("attention_bias": true)")), 106'852'251'264);
  EXPECT_EQ(count_of(config("minimax_m2")), 228'689'764'864);
  EXPECT_EQ(count_of(config("llama4_text")), 107'769'861'120);
  // 86,567,656 with a thousand classes; the class's default is two.
  EXPECT_EQ(count_of(config("vit")), 86'567'656 - 998 * 769);
}

// Of models whose types are read by a switch or another name for the experts of the kinds above.
TEST(HfConfig, CountsOfTheirKin) {
  const auto llama = [](const std::string& type, const std::string& sizes) {
    return R"({"model_type": ")" + type + "\", " + sizes + "}";
  };
  const std::string dense = R"("vocab_size": 248320, "hidden_size": 5120, "num_hidden_layers": 64,
    "num_attention_heads": 24, "num_key_value_heads": 4, "intermediate_size": 17408, "linear_num_key_heads": 16,
    "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128)";
  EXPECT_EQ(count_of(llama("qwen3_5_text", dense)), 26'895'998'464);
  const std::string experts = R"("vocab_size": 248320, "hidden_size": 4096, "num_hidden_layers": 60,
    "num_attention_heads": 32, "num_key_value_heads": 2, "num_experts": 512, "num_experts_per_tok": 10,
    "moe_intermediate_size": 1024, "shared_expert_intermediate_size": 1024, "linear_num_key_heads": 16,
    "linear_num_value_heads": 64, "linear_key_head_dim": 128, "linear_value_head_dim": 128)";
  EXPECT_EQ(count_of(llama("qwen3_5_moe_text", experts)), 396'346'350'336);
  EXPECT_EQ(count_of(llama("glm_moe_dsa", R"("vocab_size": 154880, "hidden_size": 6144, "num_hidden_layers": 78,
              "num_attention_heads": 64, "intermediate_size": 12288, "moe_intermediate_size": 2048,
              "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "q_lora_rank": 2048,
              "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256,
              "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048)")),
            743'911'218'432);
  EXPECT_EQ(count_of(llama("seed_oss", R"("vocab_size": 155136, "hidden_size": 5120, "num_hidden_layers": 64,
              "num_attention_heads": 80, "num_key_value_heads": 8, "intermediate_size": 27648)")),
            36'151'104'512);
  EXPECT_EQ(count_of(llama("smollm3", R"("vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": 36,
              "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 11008)")),
            3'075'098'624);
  EXPECT_EQ(count_of(llama("mimo", R"("vocab_size": 151680, "hidden_size": 4096, "num_hidden_layers": 36,
              "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 11008)")),
            7'622'619'136);
  EXPECT_EQ(count_of(llama("falcon", R"("vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32,
              "num_attention_heads": 71)")),
            6'921'720'704);
  EXPECT_EQ(count_of(llama("falcon", R"("vocab_size": 65024, "hidden_size": 8192, "num_hidden_layers": 60,
              "num_attention_heads": 128, "num_kv_heads": 8, "new_decoder_architecture": true)")),
            41'303'293'952);
  EXPECT_EQ(count_of(llama("phi", R"("vocab_size": 51200, "hidden_size": 2560, "num_hidden_layers": 32,
              "num_attention_heads": 32, "intermediate_size": 10240)")),
            2'779'683'840);
  EXPECT_EQ(count_of(llama("gptj", R"("vocab_size": 50400, "n_embd": 4096, "n_layer": 28, "n_head": 16,
              "n_positions": 2048)")),
            6'050'882'784);
  EXPECT_EQ(count_of(llama("dbrx", R"("vocab_size": 100352, "d_model": 6144, "n_layers": 40, "n_heads": 48,
              "attn_config": {"kv_n_heads": 8},
              "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4})")),
            131'596'523'520);
  EXPECT_EQ(count_of(llama("phimoe", R"("vocab_size": 32064, "hidden_size": 4096, "num_hidden_layers": 32,
              "num_attention_heads": 32, "intermediate_size": 6400, "num_local_experts": 16,
              "num_experts_per_tok": 2, "attention_bias": true, "lm_head_bias": true)")),
            41'873'153'344);
  EXPECT_EQ(count_of(llama("granitemoe", R"("vocab_size": 49155, "hidden_size": 1024, "num_hidden_layers": 24,
              "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 512, "num_local_experts": 32,
              "num_experts_per_tok": 8, "tie_word_embeddings": true)")),
            1'334'628'352);
  EXPECT_EQ(count_of(llama("ernie4_5", R"("vocab_size": 103424, "hidden_size": 1024, "num_hidden_layers": 18,
              "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 3072)")),
            360'748'032);
  EXPECT_EQ(count_of(llama("glm4", R"("vocab_size": 151552, "hidden_size": 4096, "num_hidden_layers": 40,
              "num_attention_heads": 32, "intermediate_size": 13696, "attention_bias": true)")),
            9'400'279'040);
  EXPECT_EQ(count_of(llama("bailing_moe", R"("vocab_size": 126464, "hidden_size": 2048, "num_hidden_layers": 28,
              "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 5632, "num_experts": 64,
              "num_experts_per_tok": 6, "num_shared_experts": 2, "moe_intermediate_size": 1408)")),
            16'801'974'272);
}

// The text model is read; what its part leaves out has its class's size, and whether the head is tied the whole says.
TEST(HfConfig, OfSeveralPartsTheTextIsRead) {
  const std::string vision = R"("vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152,
    "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
    "patch_size": 14})";
  const ModelSpec gemma = parse_model(R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
                    "num_hidden_layers": 34, "sliding_window": 1024}, )" +
                                          vision + "}",
                                      "gemma/config.json");
  EXPECT_EQ(parameter_count(gemma), 3'880'263'168);
  EXPECT_EQ(gemma.held_parameters, 419'816'304);  // of 4,300,079,472 in all
  EXPECT_TRUE(gemma.notes.empty());
  const std::string text = R"("vocab_size": 151936, "hidden_size": 4096, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 12288)";
  const std::string tower = R"("vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304,
    "out_hidden_size": 4096, "patch_size": 16, "temporal_patch_size": 2, "num_position_embeddings": 2304,
    "spatial_merge_size": 2, "deepstack_visual_indexes": [8, 16, 24]})";
  const auto qwen = [&](const std::string& tied) {
    return parse_model(R"({"model_type": "qwen3_vl", "tie_word_embeddings": )" + tied +
                           R"(, "text_config": {"model_type": "qwen3_vl_text", )" + text + "}, " + tower + "}",
                       "x.json");
  };
  EXPECT_EQ(parameter_count(qwen("false")), 8'190'735'360);
  EXPECT_EQ(parameter_count(qwen("true")), 8'190'735'360 - std::int64_t{151'936} * 4096);
  EXPECT_EQ(qwen("false").held_parameters, 576'388'336);  // of 8,767,123,696
  // Older ones have the text's keys at the top.
  const ModelSpec flat = parse_model(R"({"model_type": "qwen2_vl", "vocab_size": 152064, "hidden_size": 3584,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
    "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "hidden_size": 3584, "patch_size": 14,
                      "temporal_patch_size": 2, "spatial_merge_size": 2, "in_chans": 3}})",
                                     "x.json");
  EXPECT_EQ(parameter_count(flat), 7'615'616'512);
  EXPECT_EQ(flat.held_parameters, 675'759'104);  // of 8,291,375,616
  const ModelSpec spoken = parse_model(R"({"model_type": "qwen3_omni_moe", "thinker_config": {"audio_config": {"d": 1},
    "text_config": {"model_type": "qwen3_vl_text", )" +
                                           text + "}}}",
                                       "x.json");
  ASSERT_EQ(spoken.notes.size(), 1U);
  EXPECT_NE(spoken.notes[0].find("audio_config is not counted"), std::string::npos);
}

// Python's json writes NaN and Infinity.
TEST(HfConfig, EndlessNumbersDecideNoShape) {
  EXPECT_EQ(
      count_of(config("llama", R"("time_step_limit": [0.0, Infinity], "x": -Infinity, "y": NaN, "NaN": "Infinity")")),
      6'738'415'616);
  EXPECT_EQ(config_error(config("llama", R"("head_dim": NaN)")), "/head_dim: not a whole number in range");
  EXPECT_EQ(parse_model(config("llama", R"("_name_or_path": "a \" NaN")"), "x.json").title, "a \" NaN");
}

TEST(HfConfig, AFolderMeansItsConfiguration) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "hf_config_test";
  fs::create_directories(folder / "model");
  fs::create_directories(folder / "adapter");
  fs::create_directories(folder / "empty");
  std::ofstream(folder / "model" / "config.json") << config("llama");
  std::ofstream(folder / "adapter" / "adapter_config.json") << R"({"base_model_name_or_path": "a/b"})";
  EXPECT_EQ(parameter_count(find_model((folder / "model").string())), 6'738'415'616);
  EXPECT_TRUE(names_model((folder / "model").string()));
  EXPECT_FALSE(names_model((folder / "empty").string()));
  EXPECT_THROW(find_model((folder / "empty").string()), InputError);
  try {
    find_model((folder / "adapter").string());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(error.remedy().find("model.trainable=lora"), std::string::npos);
  }
  fs::remove_all(folder);
}

// A size that is missing is refused by its name; none is assumed.
TEST(HfConfig, SizesMustBeThere) {
  EXPECT_EQ(config_error(R"({"model_type": "llama"})"), "/vocab_size: missing: no size is assumed");
  EXPECT_EQ(config_error(R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": null})"),
            "/hidden_size: missing: no size is assumed");
  const std::string words = ": missing: no size is assumed";
  for (const auto& [type, given] : sizes()) {
    const std::string whole = type == "deepseek_v3"   ? given + R"(, "q_lora_rank": 1536)"
                              : type == "gemma3_text" ? given + R"(, "num_hidden_layers": 26)"
                                                      : given;
    EXPECT_NO_THROW(count_of(R"({"model_type": ")" + type + "\", " + whole + "}")) << type;
    for (std::size_t at = whole.find('"'); at != std::string::npos; at = whole.find('"', whole.find('"', at + 1) + 1)) {
      const std::string key = whole.substr(at + 1, whole.find('"', at + 1) - at - 1);
      std::string without = whole;
      without.replace(at, key.size() + 2, "\"not_" + key + "\"");
      EXPECT_EQ(config_error(R"({"model_type": ")" + type + "\", " + without + "}"), "/" + key + words) << type;
    }
  }
}

TEST(HfConfig, FieldsOverrideDefaults) {
  const ModelSpec spec = parse_model(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": true, "rope_theta": 500000.0, "torch_dtype": "bfloat16"})",
                                     "models/Llama-3.2-1B/config.json");
  EXPECT_EQ(spec.name, "Llama-3.2-1B");
  EXPECT_EQ(parameter_count(spec), 1'235'814'400);
  EXPECT_EQ(spec.max_positions, 131'072);
  EXPECT_EQ(spec.attention_dropout, 0);
}

// Layers of softmax attention at an interval are known, in other places not.
TEST(HfConfig, LayerTypesAreAtAnInterval) {
  const std::string shape = config("qwen3_next", R"("full_attention_interval": 2, "num_hidden_layers": 3, )"
                                                 R"("layer_types": )");
  const auto list = [&shape](const std::string& types) {
    std::string text = shape;
    text.replace(text.find(R"("num_hidden_layers": 48, )"), 25, "");
    return text.substr(0, text.size() - 1) + types + "}";
  };
  const std::string linear = R"("linear_attention")", full = R"("full_attention")";
  EXPECT_NO_THROW(count_of(list("[" + linear + ", " + full + ", " + linear + "]")));
  EXPECT_NE(config_error(list("[" + full + ", " + linear + ", " + linear + "]")).find("/layer_types"),
            std::string::npos);
}

// null stands for "derive it" where the class says so, not for its default.
TEST(HfConfig, NullIsNotTheDefault) {
  EXPECT_EQ(parse_model(config("mistral"), "x.json").kv_heads, 8);
  EXPECT_EQ(parse_model(config("mistral", R"("num_key_value_heads": null)"), "x.json").kv_heads, 32);
  EXPECT_EQ(parse_model(config("mistral"), "x.json").attention_window, 4096);
  EXPECT_EQ(parse_model(config("mistral", R"("sliding_window": null)"), "x.json").attention_window, 0);
  EXPECT_EQ(parse_model(config("deepseek_v3", R"("q_lora_rank": null)"), "x.json").latent.query_rank, 0);
  EXPECT_EQ(parse_model(config("gpt2", R"("n_inner": null)"), "x.json").feed_forward, 3072);
}

TEST(HfConfig, HeadsFollowTheClass) {
  // BertForMaskedLM: no pooler, no next-sentence classifier.
  const std::int64_t pooler_and_nsp = 768 * 768 + 768 + 2 * 768 + 2;
  EXPECT_EQ(count_of(config("bert", R"("architectures": ["BertForMaskedLM"])")), 110'106'428 - pooler_and_nsp);
  EXPECT_EQ(count_of(R"({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "vocab_size": 50265,
                         "max_position_embeddings": 514, "type_vocab_size": 1, "hidden_size": 768,
                         "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072})"),
            124'697'433);
  EXPECT_EQ(parse_model(R"({"architectures": ["GPT2LMHeadModel"], )" + sizes().at("gpt2") + "}", "x.json").hidden, 768);
}

TEST(HfConfig, MptBiasesAndPositions) {
  EXPECT_EQ(count_of(R"({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": 50432,
                         "attn_config": {"alibi": true, "attn_impl": "torch"}, "no_bias": true})"),
            6'649'286'656);
  EXPECT_EQ(count_of(R"({"model_type": "mpt", "d_model": 768, "n_layers": 12, "n_heads": 12, "vocab_size": 50368,
                         "attn_config": {"alibi": false}, "no_bias": false})"),
            125'311'488);
}

TEST(HfConfig, WindowsFromLayerTypes) {
  const auto with = [](const std::string& kinds) {
    return config("gemma3_text", R"("num_hidden_layers": 4, "sliding_window": 8, "layer_types": )" + kinds);
  };
  const std::string local = "\"sliding_attention\"", global = "\"full_attention\"";
  const ModelSpec spec = parse_model(with("[" + local + "," + global + "," + local + "," + global + "]"), "x.json");
  EXPECT_EQ(spec.global_every, 2);
  EXPECT_EQ(spec.attention_window, 8);
  EXPECT_EQ(
      parse_model(with("[" + global + "," + global + "," + global + "," + global + "]"), "x.json").attention_window, 0);
  // Without a period, layer by layer.
  const ModelSpec uneven = parse_model(with("[" + global + "," + local + "," + local + "," + global + "]"), "x.json");
  ASSERT_EQ(uneven.blocks.size(), 3U);
  EXPECT_EQ(uneven.blocks[1].count, 2);
  EXPECT_EQ(uneven.window_of(0), 0);
  EXPECT_EQ(uneven.window_of(2), 8);
  EXPECT_EQ(uneven.window_of(3), 0);
  EXPECT_EQ(parameter_count(uneven), parameter_count(spec));
  EXPECT_EQ(config_error(with("[" + local + "]")), "/layer_types: not one for each layer");
  EXPECT_EQ(config_error(with("[1, 2, 3, 4]")), "/layer_types: not a list of texts");
}

TEST(HfConfig, WhatIsNotModelledIsRefused) {
  EXPECT_EQ(config_error(R"({"model_type": "rwkv"})"), "/model_type: \"rwkv\" is not modelled");
  EXPECT_EQ(config_error(R"({"architectures": ["WhisperForConditionalGeneration"]})"),
            "/architectures: \"WhisperForConditionalGeneration\" is not modelled");
  EXPECT_EQ(config_error(R"({"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]})"),
            "/architectures: \"LlamaForSequenceClassification\" is not modelled");
  EXPECT_EQ(config_error(R"({"model_type": "acme", "text_config": {"model_type": "acme_text"}})"),
            "/text_config/model_type: \"acme_text\" is not modelled");
  EXPECT_EQ(config_error(R"({"model_type": "zamba2"})"),
            "/model_type: \"zamba2\" needs Mamba-2 layers before attention blocks that layers share: not modelled");
  EXPECT_EQ(config_error(R"({"model_type": "nemotron_h"})"),
            "/hybrid_override_pattern: missing: what the layers are made of isn't assumed");
  EXPECT_EQ(config_error(config("opt", R"("word_embed_proj_dim": 512)")),
            "/word_embed_proj_dim: a narrow embedding with norms before the layers' parts is not modelled");
  EXPECT_EQ(config_error(config("opt", R"("do_layer_norm_before": false)")),
            "/do_layer_norm_before: post-norms behind an embedding as wide is not modelled");
  EXPECT_EQ(config_error(config("llama", R"("hidden_act": "tanh")")),
            "/hidden_act: gated activation \"tanh\" is not modelled");
  EXPECT_EQ(config_error(config("gpt2", R"("embd_pdrop": 0.2)")),
            "/embd_pdrop: another dropout than \"resid_pdrop\" is not modelled");
}

// A text part without a type of its own: by its class, or by what the whole's type begins with.
TEST(HfConfig, TextPartsWithoutAType) {
  const std::string text = sizes().at("llama");
  EXPECT_EQ(
      count_of(R"({"model_type": "acme_vl", "llm_config": {"architectures": ["Qwen3ForCausalLM"], )" + text + "}}"),
      count_of(R"({"model_type": "qwen3", )" + text + "}"));
  EXPECT_EQ(count_of(R"({"model_type": "qwen3_sees", "text_config": {)" + text + "}}"),
            count_of(R"({"model_type": "qwen3", )" + text + "}"));
}

// Dense layers by list, and windows in the last layers alone.
TEST(HfConfig, LayersByList) {
  const std::string experts = R"({"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2,
                                  "moe_intermediate_size": 512, "mlp_only_layers": [0, 3], )" +
                              sizes().at("llama") + "}";
  const ModelSpec spec = parse_model(experts, "x.json");
  EXPECT_FALSE(spec.has_experts(0));
  EXPECT_TRUE(spec.has_experts(1));
  EXPECT_FALSE(spec.has_experts(3));
  EXPECT_TRUE(spec.has_experts(31));
  const std::string kinds = R"({"model_type": "qwen9_moe", "num_experts": 8, "num_experts_per_tok": 2,
    "moe_intermediate_size": 512, "vocab_size": 99, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 2, "mlp_layer_types": )";
  EXPECT_EQ(parse_model(kinds + R"(["dense", "dense", "sparse", "sparse"]})", "x.json").experts.first_dense_layers, 2);
  EXPECT_EQ(parse_model(kinds + R"(["dense", "sparse", "dense", "sparse"]})", "x.json").blocks.size(), 4U);
  EXPECT_EQ(config_error(kinds + R"(["dense"]})"), "/mlp_layer_types: not one for each layer");
  EXPECT_EQ(config_error(kinds + R"(["dense", "wide", "dense", "sparse"]})"),
            "/mlp_layer_types: \"wide\" is not modelled");
  const ModelSpec late = parse_model(R"({"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 64,
                                         "max_window_layers": 28, )" +
                                         sizes().at("llama") + "}",
                                     "x.json");
  EXPECT_EQ(late.window_of(27), 0);
  EXPECT_EQ(late.window_of(28), 64);
}

// Of a type that nobody knows: read by keys that are known, with a note, or refused by the first that isn't.
TEST(HfConfig, UnknownTypesAreReadByTheirKeys) {
  const std::string start = R"({"model_type": "acme", "rope_theta": 10000.0, "use_qk_norm": true, )";
  const ModelSpec spec = parse_model(start + sizes().at("llama") + "}", "x.json");
  EXPECT_EQ(parameter_count(spec), 6'738'415'616 + std::int64_t{32} * 2 * 128);
  ASSERT_EQ(spec.notes.size(), 1U);
  EXPECT_EQ(spec.notes[0].find("\"acme\" is not a type that is known: read by its keys as Llama's layers, norms of "
                               "each head of queries and keys (use_qk_norm)"),
            0U)
      << spec.notes[0];
  EXPECT_EQ(config_error(start + R"("acme_gates": 3, )" + sizes().at("llama") + "}"),
            "/acme_gates: \"acme\" is not modelled, and this key is not known of other types: acme_gates");
  const ModelSpec sparse =
      parse_model(start + R"("n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512,
                             "n_shared_experts": 1, "first_k_dense_replace": 1, )" +
                      sizes().at("llama") + "}",
                  "x.json");
  EXPECT_EQ(sparse.experts.count, 8);
  EXPECT_EQ(sparse.experts.shared_width, 512);
  EXPECT_FALSE(sparse.has_experts(0));
  const std::string kinds = R"({"model_type": "acme", "vocab_size": 99, "hidden_size": 64, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 2, "layer_types": )";
  EXPECT_EQ(config_error(kinds + R"(["linear_attention", "full_attention"]})"),
            "/layer_types: \"linear_attention\" is not modelled");
  EXPECT_EQ(config_error(kinds + R"(["sliding_attention", "full_attention"]})"),
            "/sliding_window: missing, but layers have a window");
  EXPECT_EQ(
      parse_model(kinds + R"(["full_attention", "sliding_attention"], "sliding_window": 8})", "x.json").window_of(1),
      8);
  EXPECT_EQ(config_error(kinds + R"(["linear_attention", "full_attention"], "kv_lora_rank": 32})"),
            "/layer_types: latent attention in some layers only is not modelled");
}

TEST(HfConfig, BadValuesSayWhere) {
  EXPECT_EQ(config_error(R"({"model_type": "llama", "vocab_size": 9, "hidden_size": "big"})"),
            "/hidden_size: not a whole number in range");
  EXPECT_EQ(config_error(R"({"model_type": "llama", "vocab_size": 9, "hidden_size": 0})"),
            "/hidden_size: not a whole number in range");
  EXPECT_EQ(config_error(config("llama", R"("tie_word_embeddings": 1)")),
            "/tie_word_embeddings: neither true nor false");
  EXPECT_EQ(config_error(R"({"model_type": 3})"), "/model_type: not a text");
  EXPECT_EQ(config_error(R"({"model_type": "llama", "vocab_size": 9, "hidden_size": 64, "num_attention_heads": 2,
                         "intermediate_size": 64, "num_hidden_layers": 100000})"),
            "/: the number of layers is 100000, not in 1 .. 4096");
  EXPECT_EQ(config_error(R"({"model_type": "llama", "vocab_size": 9, "hidden_size": 16, "num_attention_heads": 32,
                         "intermediate_size": 64, "num_hidden_layers": 1})"),
            "/: the width of a head is 0, not in 1 .. 65536");
  EXPECT_EQ(config_error(config("llama", R"("num_key_value_heads": 5)")),
            "/: 32 query heads can't share 5 key heads evenly (as kv_heads of a model file)");
  EXPECT_EQ(config_error(R"({"model_type": "mpt", "attn_config": 3})"), "/attn_config/: not an object");
  EXPECT_EQ(config_error(R"({"model_type": "roberta", "vocab_size": 9, "hidden_size": 64, "num_hidden_layers": 1,
                         "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 2})"),
            "/max_position_embeddings: nothing left after two reserved rows");
}

// A model file is not mistaken for a configuration.
TEST(HfConfig, ContentDecides) {
  EXPECT_EQ(config_error(R"({"schema": "spillway.model", "version": 1, "model_type": "llama"})"),
            "/model_type: unknown key 'model_type'");
  EXPECT_EQ(config_error(R"({"hidden_size": 16})"), "/schema: not a model file");
}

}  // namespace
}  // namespace spillway::models
