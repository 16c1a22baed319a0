// Configurations under tests/models/configs: only the keys that decide shapes, as published, of types of each kind that
// is read. Counts are those of the checkpoints (BLOOM, GPT-Neo, ModernBERT, OLMo, DeepSeek, GLM, GPT-OSS, Granite 4,
// Kimi, LFM2, Llama 4, Mamba-Codestral, MiniMax, Nemotron, Qwen, Seed, SmolLM3, Falcon-H1, Apertus, Gemma) or, where
// the cards print rounded totals alone, arithmetic that agrees with them.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "models/spec/model_spec.h"

namespace spillway::models {
namespace {

namespace fs = std::filesystem;

fs::path configs() {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return fs::path(root == nullptr ? "." : root) / "tests/models/configs";
}

ModelSpec spec_of(const std::string& name) { return load_model((configs() / (name + ".json")).string()); }

const std::map<std::string, std::int64_t>& counts() {
  static const std::map<std::string, std::int64_t> all = {
      {"afm-4.5b", 4'619'184'640},
      {"apertus-8b", 8'053'338'176},
      {"bloom-7b1", 7'069'016'064},
      {"bamba-9b", 9'780'235'392},
      {"codegen-350m", 356'712'448},
      {"command-a-111b", 111'057'580'032},
      {"dbrx-132b", 131'596'523'520},
      {"cwm-32b", 32'581'097'472},
      {"deepseek-r1", 671'026'419'200},
      {"deepseek-v4-flash", 284'332'241'239},
      {"deepseek-v3.2", 671'877'944'064},
      {"dots.llm1", 142'774'381'696},
      {"ernie-4.5-21b-a3b", 21'825'437'888},
      {"exaone-4.0-32b", 32'003'216'384},
      {"exaone-3.5-7.8b", 7'818'448'896},
      {"falcon-7b", 6'921'720'704},
      {"falcon-h1-0.5b", 521'411'104},
      {"gemma-3-4b", 3'880'263'168},
      {"gemma-4-26b-a4b", 25'233'141'760},
      {"gemma-4-31b", 30'697'345'280},
      {"gemma-4-e2b", 4'628'569'344},
      {"glm-4.5v", 106'852'251'264},
      {"glm-4.7-flash", 29'943'393'920},
      {"glm-5", 743'911'218'432},
      {"glm-4-9b-chat", 9'399'951'360},
      {"gpt-j-6b", 6'050'882'784},
      {"gpt-neo-1.3b", 1'315'575'808},
      {"gpt-oss-120b", 116'829'156'672},
      {"granite-4.0-h-small", 32'207'337'984},
      {"granite-4.0-h-tiny", 6'939'037'248},
      {"granite-4.0-micro", 3'402'836'480},
      {"hunyuan-a13b", 80'393'183'232},
      {"internvl3-8b", 7'615'616'512},
      {"falcon-mamba-7b", 7'272'665'088},
      {"jamba-52b", 51'570'323'328},
      {"mamba-2.8b", 2'768'345'600},
      {"k-exaone-236b", 236'571'156'352},
      {"kimi-k2.5", 1'026'408'232'448},
      {"kimi-k3", 2'779'484'476'000},
      {"kimi-linear-48b-a3b", 49'122'763'648},
      {"kimi-vl-a3b", 15'960'110'208},
      {"lfm2-1.2b", 1'170'340'608},
      {"lfm2-350m", 354'483'968},
      {"lfm2-8b-a1b", 8'339'930'560},
      {"ling-mini-2.0", 16'255'643'392},
      {"llama-4-scout", 107'769'861'120},
      {"llava-1.5-7b", 6'738'939'904},
      {"longcat-flash", 560'664'980'480},
      {"mamba-codestral-7b", 7'285'403'648},
      {"mimo-v2-flash", 308'778'780'864},
      {"minimax-m2", 228'689'764'864},
      {"minimax-m3", 426'174'572'928},
      {"minimax-text-01", 456'089'655'296},
      {"minicpm3-4b", 4'073'875'968},
      {"ministral-3-8b", 8'489'553'920},
      {"mistral-small-3.1-24b", 23'572'403'200},
      {"modernbert-base", 149'655'232},
      {"nemotron-3-nano-30b-a3b", 31'577'940'288},
      {"nemotron-h-56b", 56'324'350'464},
      {"nemotron-mini-4b", 4'190'509'056},
      {"nemotron-nano-9b-v2", 8'888'227'328},
      {"olmo-7b", 6'888'095'744},
      {"olmo-3-32b", 32'233'522'176},
      {"phi-2", 2'779'683'840},
      {"qwen-7b", 7'721'324'544},
      {"qwen2.5-vl-7b", 7'615'616'512},
      {"qwen3-next-80b-a3b", 79'674'391'296},
      {"qwen3-omni-30b-a3b", 30'532'122'624},
      {"qwen3-vl-235b-a22b", 235'093'634'560},
      {"qwen3-vl-8b", 8'190'735'360},
      {"qwen3.5-27b", 26'895'998'464},
      {"qwen3.5-35b-a3b", 34'660'610'688},
      {"seed-oss-36b", 36'151'104'512},
      {"smollm3-3b", 3'075'098'624},
      {"solar-open-100b", 102'651'799'552},
      {"stablelm-2-1.6b", 1'644'515'328},
      {"starcoder-15b", 15'517'456'384},
      {"step-3.5-flash", 196'956'130'368},
      {"trinity-mini", 26'123'974'400},
      {"xlm-roberta-base", 278'295'186},
      {"youtu-llm-2b", 1'961'560'064},
  };
  return all;
}

TEST(PublishedConfigs, Counts) {
  for (const auto& [name, count] : counts()) EXPECT_EQ(parameter_count(spec_of(name)), count) << name;
}

TEST(PublishedConfigs, EachFileIsCounted) {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(configs())) files.insert(entry.path().stem().string());
  for (const std::string& file : files) EXPECT_TRUE(counts().contains(file)) << file;
  EXPECT_EQ(files.size(), counts().size());
}

std::int64_t layers_with(const ModelSpec& spec, bool (*is)(const Block&)) {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) count += is(spec.block(layer)) ? 1 : 0;
  return count;
}

// A type of one's own whose class is known.
TEST(PublishedConfigs, ClassesStandForTheirTypes) {
  const ModelSpec spec = parse_model(R"({"model_type": "acme", "architectures": ["QWenLMHeadModel"], "vocab_size": 99,
      "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4})",
                                     "x.json");
  EXPECT_EQ(spec.feed_forward, 128);
  ASSERT_EQ(spec.notes.size(), 1U);
  EXPECT_NE(spec.notes[0].find("read as qwen, by its class"), std::string::npos);
}

TEST(PublishedConfigs, PatternsSayWhatEachLayerHas) {
  const ModelSpec nano = spec_of("nemotron-3-nano-30b-a3b");
  EXPECT_EQ(layers_with(nano, [](const Block& b) { return b.mixer == Mixer::mamba; }), 23);
  EXPECT_EQ(layers_with(nano, [](const Block& b) { return b.mixer == Mixer::attention; }), 6);
  EXPECT_EQ(layers_with(nano, [](const Block& b) { return b.has_experts(); }), 23);
  EXPECT_EQ(nano.block(5).feed_forward, FeedForward::none);
  EXPECT_EQ(nano.block(1).mixer, Mixer::none);
  const ModelSpec lfm2 = spec_of("lfm2-350m");
  EXPECT_EQ(layers_with(lfm2, [](const Block& b) { return b.mixer == Mixer::convolution; }), 10);
  EXPECT_EQ(lfm2.feed_forward, 4608);  // two thirds of 6,656, up to a multiple of 256
  const ModelSpec gemma = spec_of("gemma-4-31b");
  EXPECT_EQ(gemma.block(0).head_dim, 256);
  EXPECT_EQ(gemma.block(5).head_dim, 512);
  EXPECT_EQ(gemma.block(5).kv_heads, 4);
  EXPECT_TRUE(gemma.block(5).keys_as_values);
  const ModelSpec step = spec_of("step-3.5-flash");
  EXPECT_EQ(step.block(0).heads, 64);
  EXPECT_EQ(step.block(1).heads, 96);
  EXPECT_EQ(step.block(1).window, 512);
  EXPECT_FALSE(step.has_experts(2));
  EXPECT_TRUE(step.has_experts(3));
  const ModelSpec cwm = spec_of("cwm-32b");
  EXPECT_EQ(cwm.window_of(0), 0);
  EXPECT_EQ(cwm.window_of(1), 8192);
  EXPECT_EQ(cwm.window_of(4), 0);
  const ModelSpec mimo = spec_of("mimo-v2-flash");
  EXPECT_EQ(mimo.block(1).kv_heads, 8);
  EXPECT_TRUE(mimo.block(1).sinks);
  EXPECT_EQ(mimo.block(0).value_dim, 128);
  const ModelSpec v4 = spec_of("deepseek-v4-flash");
  EXPECT_EQ(layers_with(v4, [](const Block& b) { return b.chooses; }), 21);
  EXPECT_EQ(layers_with(v4, [](const Block& b) { return b.compression == 128; }), 20);
  EXPECT_EQ(v4.block(0).compression, 0);
  EXPECT_EQ(v4.streams, 4);
  const ModelSpec m3 = spec_of("minimax-m3");
  EXPECT_EQ(layers_with(m3, [](const Block& b) { return b.chooses; }), 57);
  EXPECT_EQ(m3.indexer.keys, 16 * 128);
  EXPECT_FALSE(m3.has_experts(2));
  const ModelSpec k3 = spec_of("kimi-k3");
  EXPECT_EQ(layers_with(k3, [](const Block& b) { return b.mixer == Mixer::delta_rule; }), 69);
  EXPECT_EQ(k3.residual_group, 12);
  EXPECT_EQ(spec_of("gpt-neo-1.3b").window_of(1), 256);
  EXPECT_EQ(spec_of("modernbert-base").window_of(2), 64);
  EXPECT_EQ(spec_of("modernbert-base").window_of(3), 0);
}

// Towers are held, and what is not counted is said.
TEST(PublishedConfigs, TowersAreHeld) {
  EXPECT_EQ(spec_of("gemma-3-4b").held_parameters, 4'300'079'472 - 3'880'263'168);
  EXPECT_EQ(spec_of("qwen3-vl-8b").held_parameters, 576'388'336);
  EXPECT_EQ(spec_of("qwen2.5-vl-7b").held_parameters, 676'550'144);
  EXPECT_EQ(spec_of("mistral-small-3.1-24b").held_parameters, 438'958'080);
  EXPECT_EQ(spec_of("llava-1.5-7b").held_parameters, 7'063'427'072 - 6'738'939'904);
  EXPECT_EQ(spec_of("kimi-vl-a3b").held_parameters, 447'545'840);
  EXPECT_EQ(spec_of("qwen3-omni-30b-a3b").notes.size(), 1U);  // audio
}

}  // namespace
}  // namespace spillway::models
