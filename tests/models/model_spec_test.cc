#include "models/model_spec.h"

#include <map>

#include <gtest/gtest.h>

#include "traces/base/input_error.h"

namespace spillway {
namespace {

// The published counts once more, so that shape and count of a file can't drift together.
const std::map<std::string, std::int64_t> published = {
    {"gpt2-small", 124'439'808},     {"gpt2-medium", 354'823'168},        {"gpt2-large", 774'030'080},
    {"gpt2-xl", 1'557'611'200},      {"llama-7b", 6'738'415'616},         {"llama-2-7b", 6'738'415'616},
    {"llama-2-13b", 13'015'864'320}, {"llama-2-70b", 68'976'648'192},     {"llama-3-8b", 8'030'261'248},
    {"llama-3-70b", 70'553'706'496}, {"llama-3.1-405b", 405'853'388'800}, {"llama-3.2-1b", 1'235'814'400},
    {"llama-3.2-3b", 3'212'749'824}, {"mistral-7b", 7'241'732'096},       {"qwen2.5-7b", 7'615'616'512},
    {"bert-base", 110'106'428},      {"bert-large", 336'226'108},         {"opt-125m", 125'239'296},
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
  EXPECT_GE(names.size(), 35U);
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
  EXPECT_EQ(error_of(R"(, "colour": 1)"), "/colour: unknown key");
  EXPECT_EQ(error_of(R"(, "kv_heads": 0)"), "/kv_heads: not a whole number in range");
  EXPECT_EQ(error_of(R"(, "kv_heads": 1.5)"), "/kv_heads: not a whole number in range");
  EXPECT_EQ(error_of(R"(, "head_dim": 18446744073709551615)"), "/head_dim: not a whole number in range");
  EXPECT_EQ(error_of(R"(, "dropout": 1)"), "/dropout: not a number in [0, 1)");
  EXPECT_EQ(error_of(R"(, "tied_embeddings": 1)"), "/tied_embeddings: neither true nor false");
  EXPECT_EQ(error_of(R"(, "fused_qkv": true, "kv_heads": 1)"),
            "/fused_qkv: a packed projection with shared key heads is not modelled");
  EXPECT_EQ(error_of(R"(, "parameters": {"count": 1, "source": "x"})"),
            "/parameters/count: the shape gives 1480 parameters, not 1");
  EXPECT_EQ(error_of(R"(, "head_dim": 65536, "kv_heads": 2)"), "accepted");
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
}  // namespace spillway
