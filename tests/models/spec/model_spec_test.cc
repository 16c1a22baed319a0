#include "models/spec/model_spec.h"

#include <map>

#include <gtest/gtest.h>

#include "base/input_error.h"

namespace spillway::models {
namespace {

// The published counts once more, so that shape and count of a file can't drift together.
const std::map<std::string, std::int64_t> published = {
    {"gpt2-small", 124'439'808},
    {"gpt2-medium", 354'823'168},
    {"gpt2-large", 774'030'080},
    {"gpt2-xl", 1'557'611'200},
    {"llama-7b", 6'738'415'616},
    {"llama-2-7b", 6'738'415'616},
    {"llama-2-13b", 13'015'864'320},
    {"llama-2-70b", 68'976'648'192},
    {"llama-3-8b", 8'030'261'248},
    {"llama-3-70b", 70'553'706'496},
    {"llama-3.1-405b", 405'853'388'800},
    {"llama-3.2-1b", 1'235'814'400},
    {"llama-3.2-3b", 3'212'749'824},
    {"mistral-7b", 7'241'732'096},
    {"qwen2.5-7b", 7'615'616'512},
    {"bert-base", 110'106'428},
    {"bert-large", 336'226'108},
    {"opt-125m", 125'239'296},
    {"mpt-7b", 6'649'286'656},
    {"mixtral-8x7b", 46'702'792'704},
    {"mixtral-8x22b", 140'630'071'296},
    {"gemma-2b", 2'506'172'416},
    {"gemma-7b", 8'537'680'896},
    {"gemma-2-2b", 2'614'341'888},
    {"gemma-2-9b", 9'241'705'984},
    {"gemma-2-27b", 27'227'128'320},
    {"gemma-3-1b", 999'885'952},
    {"gemma-3-270m", 268'098'176},
    {"deepseek-moe-16b", 16'375'728'128},
    {"deepseek-v2-lite", 15'706'484'224},
    {"deepseek-v2", 235'741'434'880},
    {"deepseek-v3", 671'026'419'200},
    {"deepseek-v3.2", 671'877'944'064},
    {"qwen3-next-80b-a3b", 79'674'391'296},
    {"qwen1.5-moe-a2.7b", 14'315'784'192},
    {"qwen2-57b-a14b", 57'408'658'944},
    {"qwen3-0.6b", 596'049'920},
    {"qwen3-30b-a3b", 30'532'122'624},
    {"qwen3-235b-a22b", 235'093'634'560},
    {"olmoe-1b-7b", 6'919'161'856},
    {"olmo-2-7b", 7'298'617'344},
    {"t5-small", 60'506'624},
    {"t5-base", 222'903'552},
    {"t5-large", 737'668'096},
    {"t5-3b", 2'851'598'336},
    {"t5-11b", 11'307'321'344},
    {"flan-t5-base", 247'577'856},
    {"flan-t5-xxl", 11'135'332'352},
    {"vit-b-16", 86'567'656},
    {"vit-l-16", 304'326'632},
    {"vit-h-14", 632'045'800},
    {"roberta-base", 124'697'433},
    {"roberta-large", 355'412'057},
    {"gpt-neox-20b", 20'554'567'680},
    {"pythia-70m", 70'426'624},
    {"pythia-12b", 11'846'072'320},
    {"starcoder2-3b", 3'030'371'328},
    {"phi-4", 14'659'507'200},
    {"llm-foundry-30b", 29'975'214'080},
};

constexpr const char* tiny = R"({"schema": "spillway.model", "version": 1, "title": "tiny", "source": "made up",
  "layers": 2, "hidden": 8, "heads": 2, "feed_forward": 16, "vocabulary": 10, "max_positions": 4, "mask": "causal",
  "norm": "rms_norm", "norm_placement": "pre", "activation": "silu_gated", "positions": "rotary")";

std::string error_of(const std::string& extra) {
  try {
    parse_model(tiny + extra + "}", "tiny.json");
  } catch (const InputError& error) {
    return error.place() + ": " + error.cause();
  }
  return "accepted";
}

TEST(ModelSpec, EveryBundledModelHasExactlyItsPublishedCount) {
  const std::vector<std::string> names = bundled_models();
  EXPECT_GE(names.size(), 125U);
  for (const std::string& name : names) {
    const ModelSpec spec = find_model(name);
    EXPECT_EQ(parameter_count(spec), spec.published_parameters) << name;
    EXPECT_FALSE(spec.published_source.empty()) << name;
    EXPECT_FALSE(spec.source.empty()) << name;
  }
}

TEST(ModelSpec, CountsEqualThoseOfTheCheckpoints) {
  for (const auto& [name, count] : published) EXPECT_EQ(parameter_count(find_model(name)), count) << name;
}

// GPT: 12 h^2 + 13 h per layer, (V + s) h of embeddings, 2 h of the final norm (Narayanan et al. 2021, equation 2,
// prints 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)) and leaves the final norm out).
TEST(ModelSpec, GptCountIsTheClosedForm) {
  const ModelSpec spec = find_model("gpt3-175b");
  const std::int64_t h = spec.hidden;
  EXPECT_EQ(parameter_count(spec),
            spec.layers * (12 * h * h + 13 * h) + (spec.vocabulary + spec.max_positions) * h + 2 * h);
  EXPECT_EQ(parameter_count(spec) / 1'000'000, 174'604);
}

// Matrices of Llama: 2 h (q + kv) + 3 h f per layer and the head.
TEST(ModelSpec, MatrixCountLeavesOutNormsBiasesAndGathers) {
  const ModelSpec llama = find_model("llama-3-8b");
  EXPECT_EQ(matmul_parameter_count(llama), 32LL * (2 * 4096 * (4096 + 1024) + 3 * 4096 * 14336) + 128'256LL * 4096);
  const ModelSpec gpt = find_model("gpt2-small");
  EXPECT_EQ(matmul_parameter_count(gpt), 12LL * 12 * 768 * 768 + 50'257LL * 768);
}

// Mixtral 8x7B: 3 h f per expert; two of eight see a token.
TEST(ModelSpec, ActiveParametersOfMixtral) {
  const ParameterCounts counts = parameter_counts(find_model("mixtral-8x7b"));
  const std::int64_t expert = 3LL * 4096 * 14'336;
  EXPECT_EQ(counts.experts, 32 * 8 * expert);
  EXPECT_EQ(counts.active(), 46'702'792'704 - 32 * 6 * expert);
  EXPECT_EQ(counts.router, 32LL * 8 * 4096);
  EXPECT_EQ(counts.mlp, 0);
}

// DeepSeek-V3 (arXiv:2412.19437, section 4.2): 671 billion in total, 37 billion active; its latent attention has
// h q + q a (n + r) + h (k + r) + k a (n + v) + a v h elements of matrices per layer.
TEST(ModelSpec, ComponentsOfDeepSeekV3) {
  const ModelSpec spec = find_model("deepseek-v3");
  const ParameterCounts counts = parameter_counts(spec);
  const std::int64_t h = 7168, q = 1536, k = 512, a = 128, n = 128, r = 64, v = 128;
  const std::int64_t attention = h * q + q * a * (n + r) + h * (k + r) + k * a * (n + v) + a * v * h;
  EXPECT_EQ(counts.attention, 61 * attention);
  EXPECT_EQ(counts.norm, 61 * (2 * h + q + k) + h);
  EXPECT_EQ(counts.router, 58 * (256 * h + 256));
  EXPECT_EQ(counts.experts, 58LL * 256 * 3 * h * 2048);
  EXPECT_EQ(counts.mlp, 3LL * 3 * h * 18'432 + 58LL * 3 * h * 2048);
  EXPECT_EQ(counts.embedding, 129'280 * h);
  EXPECT_EQ(counts.head, 129'280 * h);
  EXPECT_EQ(counts.total(), 671'026'419'200);
  EXPECT_EQ(counts.active(), 671'026'419'200 - 58LL * 248 * 3 * h * 2048);
  EXPECT_EQ(counts.active() / 1'000'000'000, 37);
  // Every active matrix but the embedding multiplies a token.
  EXPECT_EQ(matmul_parameter_count(spec), counts.active() - counts.embedding - counts.norm - 58 * 256);
}

// Each component once, whatever the family.
// deepseek-ai/DeepSeek-V3, README_WEIGHTS.md: 11.5 B parameters of its own.
TEST(ModelSpec, MultiTokenPredictionIsALayerMoreThatJoinsTheEmbedding) {
  ModelSpec model = find_model("deepseek-v3");
  const std::int64_t before = parameter_count(model), products = matmul_parameter_count(model);
  std::int64_t last = 0;
  for (const Parameter& parameter : parameters(model))
    if (parameter.layer == model.layers - 1) last += parameter.elements();
  model.mtp_layers = 1;
  const std::int64_t more = parameter_count(model) - before;
  EXPECT_EQ(more, last + 2 * model.hidden * model.hidden + 3 * model.hidden);
  EXPECT_NEAR(static_cast<double>(more), 11.5e9, 0.15e9);
  EXPECT_GT(matmul_parameter_count(model) - products,
            model.vocabulary * model.hidden + 2 * model.hidden * model.hidden);
  model = find_model("nemotron-3-super-120b-a12b");
  const std::vector<Block> blocks = model.mtp_blocks();
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_TRUE(blocks[0].attends());
  EXPECT_TRUE(blocks[1].has_experts());
}

TEST(ModelSpec, ComponentsAddUp) {
  for (const std::string& name : bundled_models()) {
    const ModelSpec spec = find_model(name);
    const ParameterCounts counts = parameter_counts(spec);
    EXPECT_EQ(counts.total(), parameter_count(spec)) << name;
    EXPECT_EQ(counts.active() == counts.total(), !spec.has_experts()) << name;
    EXPECT_GT(matmul_parameter_count(spec), 0) << name;
  }
}

// T5: the relative bias in the first layer of each stack; 4 h^2 + 2 h f + 2 h per encoder layer, 8 h^2 + 2 h f + 3 h
// per decoder layer, a norm after each stack.
TEST(ModelSpec, T5CountIsTheClosedForm) {
  const ModelSpec spec = find_model("t5-base");
  const std::int64_t h = 768, f = 3072;
  EXPECT_EQ(parameter_count(spec), 32'128 * h + 12 * (12 * h * h + 4 * h * f + 5 * h) + 2 * h + 2LL * 32 * 12);
  std::int64_t biases = 0, cross = 0;
  for (const Parameter& parameter : parameters(spec)) {
    biases += parameter.name.ends_with("relative_bias.weight") ? 1 : 0;
    cross += parameter.name.find("cross_attention.q.") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(biases, 2);
  EXPECT_EQ(cross, 12);
  EXPECT_EQ(parameters(spec).back().name, "final_norm.weight");
}

// ViT: patches (c p^2 + 1) h, class token h, positions (n + 1) h, a classifier.
TEST(ModelSpec, VitCountIsTheClosedForm) {
  const ModelSpec spec = find_model("vit-b-16");
  const std::int64_t h = 768;
  EXPECT_EQ(spec.max_positions, 197);
  EXPECT_EQ(parameter_count(spec),
            (3 * 256 + 1) * h + h + 197 * h + 12 * (12 * h * h + 13 * h) + 2 * h + 1000 * h + 1000);
  EXPECT_EQ(matmul_parameter_count(spec), 3 * 256 * h + 12 * 12 * h * h);
}

// Gemma 3: five local layers, then a global one.
TEST(ModelSpec, WindowsFollowThePattern) {
  const ModelSpec spec = find_model("gemma-3-1b");
  EXPECT_EQ(spec.window_of(0), 512);
  EXPECT_EQ(spec.window_of(4), 512);
  EXPECT_EQ(spec.window_of(5), 0);
  EXPECT_EQ(find_model("mistral-nemo-12b").window_of(3), 0);
}

TEST(ModelSpec, ExpertLayersFollowThePattern) {
  const ModelSpec spec = find_model("deepseek-v3");
  EXPECT_FALSE(spec.has_experts(2));
  EXPECT_TRUE(spec.has_experts(3));
  ModelSpec sparse = find_model("mixtral-8x7b");
  sparse.experts.every = 2;
  EXPECT_FALSE(sparse.has_experts(0));
  EXPECT_TRUE(sparse.has_experts(1));
}

TEST(ModelSpec, DefaultsComeFromTheShape) {
  const ModelSpec spec = parse_model(std::string(tiny) + "}", "dir/tiny.json");
  EXPECT_EQ(spec.name, "tiny");
  EXPECT_EQ(spec.kv_heads, 2);
  EXPECT_EQ(spec.head_dim, 4);
  // Embedding and head 2 x 10 x 8; per layer 4 x 8 x 8 + 3 x 8 x 16 and two norms; the final norm.
  EXPECT_EQ(parameter_count(spec), 160 + 2 * (256 + 384 + 16) + 8);
}

TEST(ModelSpec, BadFilesSayWhere) {
  EXPECT_EQ(error_of(""), "accepted");
  EXPECT_EQ(error_of(R"(, "colour": 1)"), "/colour: unknown key 'colour'");
  EXPECT_EQ(error_of(R"(, "kv_heads": 0)"), "/kv_heads: expected a whole number from 1 to 4096");
  EXPECT_EQ(error_of(R"(, "kv_heads": 1.5)"), "/kv_heads: expected a whole number from 1 to 4096");
  EXPECT_EQ(error_of(R"(, "head_dim": 18446744073709551615)"), "/head_dim: expected a whole number from 1 to 65536");
  EXPECT_EQ(error_of(R"(, "dropout": 1)"), "/dropout: expected a number from 0 to below 1");
  EXPECT_EQ(error_of(R"(, "tied_embeddings": 1)"), "/tied_embeddings: expected true or false");
  EXPECT_EQ(error_of(R"(, "fused_qkv": true, "kv_heads": 1)"),
            "/fused_qkv: a packed projection with shared key heads is not modelled");
  EXPECT_EQ(error_of(R"(, "parameters": {"count": 1, "source": "x"})"),
            "/parameters/count: the shape gives 1480 parameters, not 1");
  EXPECT_EQ(error_of(R"(, "head_dim": 65536, "kv_heads": 2)"), "accepted");
  EXPECT_EQ(error_of(R"(, "experts": {"count": 4, "active": 5, "width": 8})"),
            "/experts/active: more than the 4 experts there are");
  EXPECT_EQ(error_of(R"(, "experts": {"count": 4, "active": 2, "width": 8, "shared": 1})"),
            "/experts/shared: unknown key 'shared'");
  EXPECT_EQ(error_of(R"(, "experts": {"count": 4, "active": 2})"), "/experts/width: missing");
  EXPECT_EQ(error_of(R"(, "latent_attention": {"kv_rank": 4, "rope_dim": 2, "nope_dim": 2, "value_dim": 2},
                         "head_dim": 4)"),
            "/head_dim: given along with latent_attention");
  EXPECT_EQ(error_of(R"(, "encoder_layers": 2)"),
            "/encoder_layers: an encoder beside the decoder is modelled for the T5 kind only");
  EXPECT_EQ(error_of(R"(, "classes": 10)"), "/classes: a classifier goes with images");
  EXPECT_EQ(error_of(R"(, "patches": {"image": 8, "patch": 3, "channels": 1})"), "/vocabulary: images have none");
  EXPECT_EQ(error_of(R"(, "position_buckets": 32)"), "/position_buckets: given without relative positions");
  EXPECT_EQ(error_of(R"(, "global_every": 2)"), "/global_every: no window to make an exception from");
  EXPECT_EQ(error_of(R"(, "query_key_norm": true, "wide_query_key_norm": true)"),
            "/wide_query_key_norm: given along with query_key_norm");
  EXPECT_THROW(parse_model("{", "x.json"), InputError);
  EXPECT_THROW(parse_model("[]", "x.json"), InputError);
  EXPECT_THROW(parse_model(R"({"layers": 1e999})", "x.json"), InputError);
  EXPECT_THROW(parse_model("{\"title\": \"\xff\"}", "x.json"), InputError);
  EXPECT_THROW(parse_model(R"({"schema": "spillway.model", "version": 2})", "x.json"), InputError);
  EXPECT_THROW(find_model("no-such-model"), InputError);
  EXPECT_THROW(load_model("/no/such/file.json"), InputError);
}

// The largest value of every key at once is refused by count, without overflow on the way.
TEST(ModelSpec, AbsurdShapesAreRefused) {
  const std::string text = R"({"schema": "spillway.model", "version": 1, "title": "t", "source": "s", "layers": 4096,
    "hidden": 1048576, "heads": 4096, "head_dim": 65536, "feed_forward": 1048576, "vocabulary": 16777216,
    "max_positions": 16777216, "mask": "causal", "norm": "rms_norm", "norm_placement": "pre",
    "activation": "silu_gated", "positions": "learned"})";
  EXPECT_THROW(parse_model(text, "absurd.json"), InputError);
}

}  // namespace
}  // namespace spillway::models
