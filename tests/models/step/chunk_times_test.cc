// Times of kernels that work in chunks, against published ones.
#include <array>
#include <string_view>

#include <gtest/gtest.h>

#include "hwprofiles/profile_library.h"
#include "models/step/trace_generator.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::chunk_times {
namespace {

constexpr std::array<std::string_view, 10> timed = {
    "chunk_cumulative_sum",   "chunk_keys_product",    "invert_triangles",
    "chunk_operands",         "chunk_states",          "chunk_results",
    "chunk_values_backward",  "chunk_states_backward", "chunk_operands_backward",
    "chunk_inverses_backward"};
constexpr std::array<std::string_view, 5> scanned = {"chunk_cumulative_sum", "chunk_states", "pass_states",
                                                     "chunk_products", "chunk_scan"};

template <std::size_t n>
double ms_of(const Trace& trace, Phase phase, const std::array<std::string_view, n>& names) {
  double ms = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.phase[i] == phase && trace.ops.kind[i] == OpKind::kernel)
      for (const std::string_view name : names)
        if (trace.strings.text(trace.ops.name[i]) == name) ms += to_seconds(trace.ops.duration[i]) * 1e3;
  return ms;
}

ModelSpec one_layer() {
  ModelSpec model = find_model("llama-3.2-1b");
  model.layers = 1, model.hidden = 256, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1000, model.feed_forward = 512;
  return model;
}

Trace trace_of(const char* system, const ModelSpec& model, std::int64_t batch, std::int64_t sequence) {
  TrainingSetup setup;
  setup.sequence = sequence, setup.micro_batch = batch;
  return generate_trace(model, setup, CostModel(ProfileLibrary::shared().load_system(system)), flat_cluster());
}

struct Row {
  const char* system;
  bool by_channel;
  std::int64_t batch, sequence, heads, width;
  double forward, both;  // ms
};

// flash-linear-attention 0.5's chunk_gated_delta_rule and chunk_kda, forward and with backward: pytorch/helion,
// examples/linear/BENCHMARKS.md of July 2026, bf16. Its two shapes of a launch's length are left out.
constexpr std::array<Row, 16> published = {{{"dgx-h100", false, 1, 8192, 96, 128, 1.623, 6.925},
                                            {"dgx-h100", false, 2, 16384, 16, 128, 1.062, 4.595},
                                            {"dgx-h100", false, 4, 4096, 64, 128, 2.046, 8.925},
                                            {"dgx-h100", false, 8, 2048, 32, 256, 2.441, 13.717},
                                            {"dgx-h100", true, 1, 8192, 96, 128, 3.184, 17.387},
                                            {"dgx-h100", true, 2, 16384, 16, 128, 2.223, 11.719},
                                            {"dgx-h100", true, 4, 4096, 64, 128, 4.072, 22.650},
                                            {"dgx-h100", true, 8, 2048, 32, 256, 4.376, 24.834},
                                            {"hgx-b200", false, 1, 8192, 96, 128, 1.204, 5.388},
                                            {"hgx-b200", false, 2, 16384, 16, 128, 0.925, 4.072},
                                            {"hgx-b200", false, 4, 4096, 64, 128, 1.517, 6.945},
                                            {"hgx-b200", false, 8, 2048, 32, 256, 1.958, 9.168},
                                            {"hgx-b200", true, 1, 8192, 96, 128, 2.241, 11.204},
                                            {"hgx-b200", true, 2, 16384, 16, 128, 1.609, 7.777},
                                            {"hgx-b200", true, 4, 4096, 64, 128, 2.925, 14.615},
                                            {"hgx-b200", true, 8, 2048, 32, 256, 3.771, 19.095}}};

TEST(DeltaRule, TimesOfPublishedKernels) {
  for (const Row& row : published) {
    ModelSpec model = one_layer();
    model.linear = {.key_heads = row.heads, .value_heads = row.heads, .key_dim = row.width, .value_dim = row.width};
    model.linear.convolution = 4;
    if (row.by_channel) model.linear.gate_rank = 16;
    const Trace trace = trace_of(row.system, model, row.batch, row.sequence);
    const double forward = ms_of(trace, Phase::forward, timed), backward = ms_of(trace, Phase::backward, timed);
    SCOPED_TRACE(testing::Message() << row.system << (row.by_channel ? " by channel, " : " by head, ") << row.heads
                                    << " heads of " << row.width << ": " << forward << " and " << backward);
    EXPECT_NEAR(forward / row.forward, 1, 0.34);
    EXPECT_NEAR(backward / (row.both - row.forward), 1, 0.34);
  }
}

// With few heads a chunk waits for the one before, whatever its products take.
TEST(DeltaRule, ChunksGoOneAfterTheOther) {
  ModelSpec model = one_layer();
  model.linear = {.key_heads = 2, .value_heads = 2, .key_dim = 128, .value_dim = 128, .convolution = 4};
  const std::array<std::string_view, 1> states = {"chunk_states"};
  EXPECT_NEAR(ms_of(trace_of("dgx-h100", model, 1, 8192), Phase::forward, states), 128 * 1.2e-3, 1e-6);
}

// state-spaces/mamba's five kernels on H100 (vllm-project/vllm#27299, 25 October 2025): 128 heads of 64, states 128
// wide, one group, chunks of 256, tokens a second.
// Published of forwards alone: a step's clocks are others.
TEST(Mamba, TimesOfPublishedKernels) {
  ModelSpec model = one_layer();
  model.mamba = {.heads = 128, .head_dim = 64, .state = 128, .groups = 1, .convolution = 4, .chunk = 256};
  model.blocks = {{.mixer = Mixer::mamba, .feed_forward = FeedForward::none}};
  for (const auto& [sequence, rate] : {std::pair<std::int64_t, double>{4096, 1.206409e7},
                                       {8192, 1.262327e7},
                                       {16384, 1.292440e7},
                                       {32768, 1.180002e7}}) {
    const double published_ms = static_cast<double>(sequence) / rate * 1e3;
    EXPECT_NEAR(ms_of(trace_of("dgx-h100", model, 1, sequence), Phase::forward, scanned) / published_ms, 1, 0.12);
  }
}

}  // namespace
}  // namespace spillway::models::chunk_times
