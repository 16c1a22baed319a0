#include "models/spec/hf_config.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_spec.h"

namespace spillway::models {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_model(text, "config.json");
  } catch (const InputError& error) {
    return error.place() + ": " + error.cause();
  }
  return "accepted";
}

std::int64_t count_of(const std::string& text) { return parameter_count(parse_model(text, "config.json")); }

// The configuration classes' documented defaults are published models, or give their count in closed form.
TEST(HfConfig, DefaultsAreThoseOfTheClass) {
  EXPECT_EQ(count_of(R"({"model_type": "gpt2"})"), 124'439'808);
  EXPECT_EQ(count_of(R"({"model_type": "opt"})"), 125'239'296);
  EXPECT_EQ(count_of(R"({"model_type": "bert"})"), 110'106'428);
  EXPECT_EQ(count_of(R"({"model_type": "llama"})"), 6'738'415'616);
  EXPECT_EQ(count_of(R"({"model_type": "mistral"})"), 7'241'732'096);
  EXPECT_EQ(count_of(R"({"model_type": "mixtral"})"), 46'702'792'704);
  EXPECT_EQ(count_of(R"({"model_type": "gemma"})"), 8'537'680'896);
  EXPECT_EQ(count_of(R"({"model_type": "gemma2"})"), 2'614'341'888);
  EXPECT_EQ(count_of(R"({"model_type": "t5"})"), 60'506'624);
  EXPECT_EQ(count_of(R"({"model_type": "gpt_neox"})"), 20'554'567'680);
  EXPECT_EQ(count_of(R"({"model_type": "deepseek_v3"})"), 671'026'419'200);
  EXPECT_EQ(count_of(R"({"model_type": "phi3"})"), 3'821'079'552);
  // 86,567,656 with a thousand classes; the class's default is two.
  EXPECT_EQ(count_of(R"({"model_type": "vit"})"), 86'567'656 - 998 * 769);
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

// null stands for "derive it" where the class says so, not for its default.
TEST(HfConfig, NullIsNotTheDefault) {
  EXPECT_EQ(parse_model(R"({"model_type": "mistral"})", "x.json").kv_heads, 8);
  EXPECT_EQ(parse_model(R"({"model_type": "mistral", "num_key_value_heads": null})", "x.json").kv_heads, 32);
  EXPECT_EQ(parse_model(R"({"model_type": "mistral"})", "x.json").attention_window, 4096);
  EXPECT_EQ(parse_model(R"({"model_type": "mistral", "sliding_window": null})", "x.json").attention_window, 0);
  EXPECT_EQ(parse_model(R"({"model_type": "deepseek_v3", "q_lora_rank": null})", "x.json").latent.query_rank, 0);
  EXPECT_EQ(parse_model(R"({"model_type": "gpt2", "n_inner": null})", "x.json").feed_forward, 3072);
}

TEST(HfConfig, HeadsFollowTheClass) {
  // BertForMaskedLM: no pooler, no next-sentence classifier.
  const std::int64_t pooler_and_nsp = 768 * 768 + 768 + 2 * 768 + 2;
  EXPECT_EQ(count_of(R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})"), 110'106'428 - pooler_and_nsp);
  EXPECT_EQ(count_of(R"({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "vocab_size": 50265,
                         "max_position_embeddings": 514, "type_vocab_size": 1})"),
            124'697'433);
  EXPECT_EQ(parse_model(R"({"architectures": ["GPT2LMHeadModel"]})", "x.json").hidden, 768);
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
    return R"({"model_type": "gemma3_text", "num_hidden_layers": 4, "sliding_window": 8, "layer_types": )" + kinds +
           "}";
  };
  const std::string local = "\"sliding_attention\"", global = "\"full_attention\"";
  const ModelSpec spec = parse_model(with("[" + local + "," + global + "," + local + "," + global + "]"), "x.json");
  EXPECT_EQ(spec.global_every, 2);
  EXPECT_EQ(spec.attention_window, 8);
  EXPECT_EQ(
      parse_model(with("[" + global + "," + global + "," + global + "," + global + "]"), "x.json").attention_window, 0);
  EXPECT_EQ(error_of(with("[" + global + "," + local + "," + local + "," + global + "]")),
            "/layer_types: a pattern without a period is not modelled");
  EXPECT_EQ(error_of(with("[" + local + "]")), "/layer_types: not one for each layer");
  EXPECT_EQ(error_of(with("[1, 2, 3, 4]")), "/layer_types: not a list of texts");
}

TEST(HfConfig, WhatIsNotModelledIsRefused) {
  EXPECT_EQ(error_of(R"({"model_type": "mamba"})"), "/model_type: \"mamba\" is not modelled");
  EXPECT_EQ(error_of(R"({"architectures": ["WhisperForConditionalGeneration"]})"),
            "/architectures: \"WhisperForConditionalGeneration\" is not modelled");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]})"),
            "/architectures: \"LlamaForSequenceClassification\" is not modelled");
  EXPECT_EQ(error_of(R"({"model_type": "gemma3", "text_config": {}})"),
            "/model_type: \"gemma3\", a model of several parts, is not modelled");
  EXPECT_EQ(error_of(R"({"model_type": "opt", "word_embed_proj_dim": 512})"),
            "/word_embed_proj_dim: an embedding narrower than the layers is not modelled");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "hidden_act": "tanh"})"),
            "/hidden_act: gated activation \"tanh\" is not modelled");
  EXPECT_EQ(error_of(R"({"model_type": "gpt2", "embd_pdrop": 0.2})"),
            "/embd_pdrop: another dropout than \"resid_pdrop\" is not modelled");
  EXPECT_EQ(error_of(R"({"model_type": "qwen3_moe", "mlp_only_layers": [0]})"),
            "/mlp_only_layers: a list of dense layers is not modelled");
  EXPECT_EQ(error_of(R"({"model_type": "deepseek_v2"})"),
            "/num_experts_per_tok: missing, and this kind of model has no default for it");
}

TEST(HfConfig, BadValuesSayWhere) {
  EXPECT_EQ(error_of(R"({"model_type": "llama", "hidden_size": "big"})"), "/hidden_size: not a whole number in range");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "hidden_size": 0})"), "/hidden_size: not a whole number in range");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "tie_word_embeddings": 1})"),
            "/tie_word_embeddings: neither true nor false");
  EXPECT_EQ(error_of(R"({"model_type": 3})"), "/model_type: not a text");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "num_hidden_layers": 100000})"),
            "/: the number of layers is 100000, not in 1 .. 4096");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "hidden_size": 16})"),
            "/: the width of a head is 0, not in 1 .. 65536");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "num_key_value_heads": 5})"),
            "/: 32 query heads can't share 5 key heads evenly (as kv_heads of a model file)");
  EXPECT_EQ(error_of(R"({"model_type": "mpt", "attn_config": 3})"), "/attn_config/: not an object");
  EXPECT_EQ(error_of(R"({"model_type": "roberta", "max_position_embeddings": 2})"),
            "/max_position_embeddings: nothing left after two reserved rows");
}

// A model file is not mistaken for a configuration.
TEST(HfConfig, ContentDecides) {
  EXPECT_EQ(error_of(R"({"schema": "spillway.model", "version": 1, "model_type": "llama"})"),
            "/model_type: unknown key 'model_type'");
  EXPECT_EQ(error_of(R"({"hidden_size": 16})"), "/schema: not a model file");
}

}  // namespace
}  // namespace spillway::models
