#include "models/spec/model_alias.h"

#include <cctype>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {
namespace {

// Counts of the published configurations, ids as people name them.
const std::vector<std::pair<const char*, std::int64_t>>& counted_ids() {
  static const std::vector<std::pair<const char*, std::int64_t>> all = {
      {"deepseek-ai/DeepSeek-V4-Flash", 284'332'241'239},
      {"nvidia/DeepSeek-V4-Flash-NVFP4", 284'332'241'239},
      {"deepseek-ai/DeepSeek-V4-Pro", 1'572'997'202'915},
      {"moonshotai/Kimi-K3", 2'779'484'476'000},
      {"MiniMaxAI/MiniMax-M3", 426'174'572'928},
      {"stepfun-ai/Step-3.7-Flash", 196'956'130'368},
      {"nvidia/Llama-3_3-Nemotron-Super-49B-v1", 49'867'145'216},
      {"meituan-longcat/LongCat-Flash-Chat", 560'664'980'480},
      {"ai21labs/Jamba-v0.1", 51'570'323'328},
      {"OpenGVLab/InternVL3-8B", 7'615'616'512},
      {"mistral-community/pixtral-12b", 12'247'782'400},
      {"Qwen/Qwen-7B", 7'721'324'544},
      {"meta-llama/Llama-2-7b-hf", 6'738'415'616},
      {"meta-llama/Meta-Llama-3-8B", 8'030'261'248},
      {"Qwen/Qwen3-0.6B", 596'049'920},
      {"mistralai/Mistral-7B-v0.1", 7'241'732'096},
      {"Qwen/Qwen3-8B", 8'190'735'360},
      {"Qwen/Qwen3-30B-A3B", 30'532'122'624},
      {"Qwen/Qwen3-4B", 4'022'468'096},
      {"meta-llama/Llama-3.2-1B", 1'235'814'400},
      {"meta-llama/Llama-3.1-8B", 8'030'261'248},
      {"deepseek-ai/DeepSeek-V3", 671'026'419'200},
      {"mistralai/Mixtral-8x7B-v0.1", 46'702'792'704},
      {"meta-llama/Meta-Llama-3-8B-Instruct", 8'030'261'248},
      {"meta-llama/Llama-2-70b-hf", 68'976'648'192},
      {"openai/gpt-oss-20b", 20'914'757'184},
      {"Qwen/Qwen3-32B", 32'762'123'264},
      {"meta-llama/Llama-2-7b-chat-hf", 6'738'415'616},
      {"meta-llama/Llama-3.1-8B-Instruct", 8'030'261'248},
      {"Qwen/Qwen2.5-7B", 7'615'616'512},
      {"Qwen/Qwen2.5-7B-Instruct", 7'615'616'512},
      {"Qwen/Qwen3-1.7B", 1'720'574'976},
      {"Qwen/Qwen2.5-0.5B-Instruct", 494'032'768},
      {"Qwen/Qwen2.5-1.5B-Instruct", 1'543'714'304},
      {"meta-llama/Llama-3.2-1B-Instruct", 1'235'814'400},
      {"deepseek-ai/DeepSeek-V2-Lite", 15'706'484'224},
      {"google/gemma-2-2b", 2'614'341'888},
      {"meta-llama/Meta-Llama-3.1-8B", 8'030'261'248},
      {"meta-llama/Meta-Llama-3-70B", 70'553'706'496},
      {"mistralai/Mixtral-8x7B-Instruct-v0.1", 46'702'792'704},
      {"Qwen/Qwen3-14B", 14'768'307'200},
      {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1'100'048'384},
      {"EleutherAI/gpt-neox-20b", 20'554'567'680},
      {"Qwen/Qwen2.5-0.5B", 494'032'768},
      {"Qwen/Qwen3-Next-80B-A3B-Instruct", 79'674'391'296},
      {"meta-llama/Llama-3.3-70B-Instruct", 70'553'706'496},
      {"Qwen/Qwen3-235B-A22B", 235'093'634'560},
      {"huggyllama/llama-7b", 6'738'415'616},
      {"Qwen/Qwen2.5-3B", 3'085'938'688},
      {"google/gemma-2-9b", 9'241'705'984},
      {"mistralai/Mistral-7B-Instruct-v0.3", 7'248'023'552},
      {"meta-llama/Llama-2-13b-hf", 13'015'864'320},
      {"Qwen/Qwen2.5-72B", 72'706'203'648},
      {"meta-llama/Llama-3.2-3B", 3'212'749'824},
      {"Qwen/Qwen2.5-3B-Instruct", 3'085'938'688},
      {"Qwen/Qwen3-30B-A3B-Instruct-2507", 30'532'122'624},
      {"microsoft/Phi-3-mini-4k-instruct", 3'821'079'552},
      {"openai/gpt-oss-120b", 116'829'156'672},
      {"meta-llama/Llama-4-Scout-17B-16E-Instruct", 107'769'861'120},
      {"google/gemma-7b", 8'537'680'896},
      {"Qwen/Qwen2.5-1.5B", 1'543'714'304},
      {"meta-llama/Llama-2-7b", 6'738'415'616},
      {"Qwen/Qwen2.5-32B", 32'763'876'352},
      {"mistralai/Mistral-7B-Instruct-v0.1", 7'241'732'096},
      {"Qwen/Qwen3-4B-Instruct-2507", 4'022'468'096},
      {"meta-llama/Meta-Llama-3.1-8B-Instruct", 8'030'261'248},
      {"meta-llama/Llama-3.2-3B-Instruct", 3'212'749'824},
      {"Qwen/Qwen2.5-32B-Instruct", 32'763'876'352},
      {"Qwen/Qwen2.5-72B-Instruct", 72'706'203'648},
      {"google/gemma-2-2b-it", 2'614'341'888},
      {"meta-llama/Meta-Llama-3.1-70B", 70'553'706'496},
      {"mistralai/Mistral-7B-Instruct-v0.2", 7'241'732'096},
      {"meta-llama/Meta-Llama-3.1-70B-Instruct", 70'553'706'496},
      {"Qwen/Qwen2-7B-Instruct", 7'615'616'512},
      {"deepseek-ai/DeepSeek-R1", 671'026'419'200},
      {"Qwen/Qwen3-30B-A3B-Base", 30'532'122'624},
      {"microsoft/phi-4", 14'659'507'200},
      {"Qwen/Qwen2-0.5B", 494'032'768},
      {"google/gemma-2b", 2'506'172'416},
      {"Qwen/Qwen2.5-14B-Instruct", 14'770'033'664},
      {"Qwen/QwQ-32B", 32'763'876'352},
      {"meta-llama/Meta-Llama-3-70B-Instruct", 70'553'706'496},
      {"google/gemma-2-27b", 27'227'128'320},
      {"Qwen/Qwen3-4B-Base", 4'022'468'096},
      {"Qwen/Qwen3-30B-A3B-Thinking-2507", 30'532'122'624},
      {"Qwen/Qwen2.5-14B", 14'770'033'664},
      {"deepseek-ai/deepseek-moe-16b-base", 16'375'728'128},
      {"microsoft/Phi-3.5-mini-instruct", 3'821'079'552},
      {"deepseek-ai/DeepSeek-V3-Base", 671'026'419'200},
      {"meta-llama/Llama-4-Maverick-17B-128E-Instruct", 400'711'848'960},
      {"deepseek-ai/DeepSeek-V3-0324", 671'026'419'200},
      {"meta-llama/Meta-Llama-3.1-405B-Instruct", 405'853'388'800},
      {"openai-community/gpt2", 124'439'808},
      {"Qwen/Qwen3-0.6B-Base", 596'049'920},
      {"facebook/opt-125m", 125'239'296},
      {"facebook/opt-350m", 331'196'416},
      {"MiniMaxAI/MiniMax-Text-01", 456'089'655'296},
      {"Qwen/Qwen2-0.5B-Instruct", 494'032'768},
      {"facebook/opt-1.3b", 1'315'758'080},
      {"meta-llama/Llama-4-Scout-17B-16E", 107'769'861'120},
      {"meta-llama/Llama-3.1-70B", 70'553'706'496},
      {"zai-org/GLM-4.7", 352'797'829'024},
      {"meta-llama/Llama-4-Maverick-17B-128E", 400'711'848'960},
      {"lmsys/vicuna-7b-v1.5", 6'738'415'616},
      {"moonshotai/Kimi-K2-Instruct", 1'026'408'232'448},
      {"zai-org/GLM-4.5-Air", 106'852'251'264},
      {"google/gemma-3-270m", 268'098'176},
      {"Qwen/Qwen2.5-Math-7B", 7'615'616'512},
      {"MiniMaxAI/MiniMax-M2", 228'689'764'864},
      {"meta-llama/Llama-2-70b-chat-hf", 68'976'648'192},
      {"meta-llama/Meta-Llama-3.1-405B", 405'853'388'800},
      {"google/gemma-3-1b-it", 999'885'952},
      {"Qwen/Qwen3-8B-Base", 8'190'735'360},
      {"mistralai/Mixtral-8x22B-v0.1", 140'620'634'112},
      {"Qwen/Qwen2-7B", 7'615'616'512},
      {"Qwen/Qwen3-4B-Thinking-2507", 4'022'468'096},
      {"microsoft/Phi-3-mini-128k-instruct", 3'821'079'552},
      {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", 8'030'261'248},
      {"meta-llama/Llama-2-13b-chat-hf", 13'015'864'320},
      {"Qwen/Qwen2-1.5B", 1'543'714'304},
      {"google/gemma-2b-it", 2'506'172'416},
      {"Qwen/Qwen3-1.7B-Base", 1'720'574'976},
      {"HuggingFaceTB/SmolLM2-135M", 134'515'008},
      {"deepseek-ai/deepseek-llm-7b-chat", 6'910'365'696},
      {"Qwen/Qwen2-1.5B-Instruct", 1'543'714'304},
      {"mosaicml/mpt-7b", 6'649'286'656},
      {"deepseek-ai/DeepSeek-V2", 235'741'434'880},
      {"MiniMaxAI/MiniMax-M2.5", 228'689'764'864},
      {"unsloth/gpt-oss-20b-BF16", 20'914'757'184},
      {"zai-org/GLM-4.5", 352'797'829'024},
      {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1'777'088'000},
      {"google/gemma-2-9b-it", 9'241'705'984},
      {"Qwen/Qwen2-72B-Instruct", 72'706'203'648},
      {"allenai/OLMoE-1B-7B-0924", 6'919'161'856},
      {"deepseek-ai/DeepSeek-V3.2-Exp", 671'877'944'064},
      {"Qwen/Qwen3-235B-A22B-Thinking-2507", 235'093'634'560},
      {"mistralai/Mistral-Small-24B-Instruct-2501", 23'572'403'200},
      {"google/gemma-3-1b-pt", 999'885'952},
      {"facebook/opt-6.7b", 6'658'473'984},
      {"Qwen/QwQ-32B-Preview", 32'763'876'352},
      {"Qwen/Qwen2.5-Coder-7B-Instruct", 7'615'616'512},
      {"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 7'615'616'512},
      {"deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", 14'770'033'664},
      {"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", 32'763'876'352},
      {"deepseek-ai/DeepSeek-R1-Distill-Llama-70B", 70'553'706'496},
      {"Qwen/Qwen3-Coder-30B-A3B-Instruct", 30'532'122'624},
      {"mistralai/Mistral-7B-v0.3", 7'248'023'552},
      {"Qwen/Qwen2.5-Coder-32B-Instruct", 32'763'876'352},
      {"openai-community/gpt2-xl", 1'557'611'200},
      {"unsloth/Qwen2.5-7B-Instruct-bnb-4bit", 7'615'616'512},
      {"unsloth/llama-3-8b-bnb-4bit", 8'030'261'248},
      {"NousResearch/Meta-Llama-3-8B", 8'030'261'248},
      {"mistralai/Mistral-Large-Instruct-2411", 122'610'069'504},
      {"google/gemma-3-4b-it", 3'880'263'168},
      {"Qwen/Qwen3.5-35B-A3B", 34'660'610'688},
      {"Qwen/Qwen3-VL-30B-A3B-Instruct", 30'532'122'624},
      {"Qwen/Qwen3.5-27B", 26'895'998'464},
      {"google/gemma-3-12b-it", 11'766'034'176},
      {"google/gemma-3-27b-it", 27'009'346'304},
      {"Qwen/Qwen3-VL-8B-Instruct", 8'190'735'360},
      {"Qwen/Qwen3-VL-4B-Instruct", 4'022'468'096},
      {"zai-org/GLM-5", 743'911'218'432},
      {"Qwen/Qwen3-VL-2B-Instruct", 1'720'574'976},
      {"Qwen/Qwen3.5-397B-A17B", 396'346'350'336},
      {"ByteDance-Seed/Seed-OSS-36B-Instruct", 36'151'104'512},
      {"Qwen/Qwen3-VL-235B-A22B-Instruct", 235'093'634'560},
      {"Qwen/Qwen3.5-122B-A10B", 122'111'526'912},
      {"moonshotai/Kimi-K2.5", 1'026'408'232'448},
      {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480'154'875'392},
      {"HuggingFaceTB/SmolLM3-3B", 3'075'098'624},
      {"codellama/CodeLlama-7b-hf", 6'738'546'688},
      {"codellama/CodeLlama-13b-Instruct-hf", 13'016'028'160},
      {"codellama/CodeLlama-70b-hf", 68'976'910'336},
      {"ibm-granite/granite-3.3-2b-instruct", 2'533'539'840},
      {"ibm-granite/granite-3.3-8b-base", 8'170'864'640},
  };
  return all;
}

std::string shape_of(const std::string& name) {
  const auto alias = find_alias(name);
  return alias ? alias->shape : "none";
}

std::string refusal_of(const std::string& name) {
  try {
    find_model(name);
  } catch (const InputError& error) {
    return error.cause() + ": " + error.remedy();
  }
  return "accepted";
}

TEST(ModelAlias, EveryIdHasItsPublishedCount) {
  for (const auto& [id, count] : counted_ids()) EXPECT_EQ(parameter_count(find_model(id)), count) << id;
}

TEST(ModelAlias, EveryIdOfTheTableNamesItsShapeAndNoOther) {
  std::set<std::string> seen;
  for (const std::string& shape : bundled_models())
    for (const std::string& id : published_ids(shape)) {
      EXPECT_EQ(shape_of(id), shape) << id;
      EXPECT_TRUE(seen.insert(id).second) << id;
    }
  EXPECT_GT(seen.size(), 150U);
}

TEST(ModelAlias, BundledNamesAreTakenInEverySpelling) {
  for (const std::string& name : bundled_models()) {
    std::string loud = name, spaced = name;
    for (char& letter : loud) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    for (char& letter : spaced)
      if (letter == '.' || letter == '-') letter = '_';
    EXPECT_EQ(shape_of(name), name);
    EXPECT_EQ(shape_of(loud), name);
    EXPECT_EQ(shape_of(spaced), name);
    EXPECT_EQ(find_model(loud).layers, find_model(name).layers) << loud;
  }
  EXPECT_EQ(shape_of("Llama3.1-8B"), "llama-3.1-8b");
  EXPECT_EQ(shape_of("qwen-2.5-7b"), "qwen2.5-7b");
  EXPECT_EQ(shape_of("opt-13b"), "opt-13b");
  EXPECT_EQ(shape_of("opt-1.3b"), "opt-1.3b");
}

TEST(ModelAlias, OwnersAndEndingsLeaveTheShape) {
  for (const char* id : {"NousResearch/Meta-Llama-3-8B", "unsloth/llama-3-8b-Instruct", "hf:meta-llama/Meta-Llama-3-8B",
                         "meta-llama/Meta-Llama-3-8B-Instruct", "RedHatAI/Meta-Llama-3-8B-Instruct-FP8"})
    EXPECT_EQ(shape_of(id), "llama-3-8b") << id;
  EXPECT_TRUE(find_alias("x/Llama-3.1-8B-FP8")->is_narrow);
  EXPECT_EQ(find_model("x/Llama-3.1-8B-FP8").notes.size(), 1U);
  EXPECT_TRUE(find_model("meta-llama/Llama-3.1-8B").notes.empty());
}

// What looks like a model of another vocabulary, window or head, and is none.
TEST(ModelAlias, WhatAPublishedModelHasOtherwiseIsTaken) {
  EXPECT_EQ(find_model("mistralai/Mistral-7B-v0.1").attention_window, 4096);
  const ModelSpec mistral = find_model("mistralai/Mistral-7B-Instruct-v0.3");
  EXPECT_EQ(mistral.vocabulary, 32'768);
  EXPECT_EQ(mistral.attention_window, 0);
  EXPECT_EQ(mistral.published_parameters, parameter_count(mistral));
  EXPECT_NE(mistral.title.find("mistralai/Mistral-7B-Instruct-v0.3"), std::string::npos);
  EXPECT_FALSE(find_model("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B").tied_embeddings);
  for (const char* id : {"google-bert/bert-base-cased", "Skywork/Skywork-Reward-V2-Qwen3-8B",
                         "Qwen/Qwen3-Embedding-0.6B", "Qwen/Qwen3-Reranker-8B", "infly/INF-ORM-Llama3.1-70B"})
    EXPECT_EQ(shape_of(id), "none") << id;
}

TEST(ModelAlias, FourBitsAreForAdapters) {
  const ModelSpec packed = find_model("unsloth/Qwen2.5-7B-Instruct-bnb-4bit");
  EXPECT_TRUE(packed.stored_nf4);
  EXPECT_THROW((void)resolve({}, packed), InputError);
  for (const Trainable trainable : {Trainable::lora, Trainable::qlora})
    EXPECT_EQ(resolve({.trainable = trainable}, packed).base_weights, BaseWeights::nf4_double);
  EXPECT_TRUE(find_model("unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit").stored_nf4);
}

TEST(ModelAlias, UnknownIdsSayHowToGoOn) {
  EXPECT_EQ(refusal_of("bartowski/Meta-Llama-3-8B-GGUF"),
            "weights for inference alone, which no training starts from: name the id they were made from");
  const std::string near = refusal_of("Qwen/Qwen2.6-7B");
  EXPECT_NE(near.find("did you mean Qwen/Qwen2.5-7B"), std::string::npos) << near;
  EXPECT_NE(near.find("huggingface-cli download Qwen/Qwen2.6-7B config.json"), std::string::npos) << near;
  EXPECT_EQ(refusal_of("acme/quite-another-thing"),
            "no file, and no published model with a known shape: save its config.json (huggingface-cli download "
            "acme/quite-another-thing config.json) and give the folder");
  EXPECT_NE(refusal_of("some/where/else").find("can't be opened"), std::string::npos);
}

}  // namespace
}  // namespace spillway::models
