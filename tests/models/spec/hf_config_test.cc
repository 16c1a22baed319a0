#include "models/spec/hf_config.h"

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
  EXPECT_EQ(config_error(with("[" + global + "," + local + "," + local + "," + global + "]")),
            "/layer_types: a pattern without a period is not modelled");
  EXPECT_EQ(config_error(with("[" + local + "]")), "/layer_types: not one for each layer");
  EXPECT_EQ(config_error(with("[1, 2, 3, 4]")), "/layer_types: not a list of texts");
}

TEST(HfConfig, WhatIsNotModelledIsRefused) {
  EXPECT_EQ(config_error(R"({"model_type": "mamba"})"), "/model_type: \"mamba\" is not modelled");
  EXPECT_EQ(config_error(R"({"architectures": ["WhisperForConditionalGeneration"]})"),
            "/architectures: \"WhisperForConditionalGeneration\" is not modelled");
  EXPECT_EQ(config_error(R"({"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]})"),
            "/architectures: \"LlamaForSequenceClassification\" is not modelled");
  EXPECT_EQ(config_error(R"({"model_type": "gemma3", "text_config": {}})"),
            "/model_type: \"gemma3\", a model of several parts, is not modelled");
  EXPECT_EQ(config_error(config("opt", R"("word_embed_proj_dim": 512)")),
            "/word_embed_proj_dim: an embedding narrower than the layers is not modelled");
  EXPECT_EQ(config_error(config("llama", R"("hidden_act": "tanh")")),
            "/hidden_act: gated activation \"tanh\" is not modelled");
  EXPECT_EQ(config_error(config("gpt2", R"("embd_pdrop": 0.2)")),
            "/embd_pdrop: another dropout than \"resid_pdrop\" is not modelled");
  EXPECT_EQ(config_error(R"({"model_type": "qwen3_moe", "mlp_only_layers": [0], )" + sizes().at("llama") + "}"),
            "/mlp_only_layers: a list of dense layers is not modelled");
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
