// What layers keep and hold, against the closed forms of Korthikanti et al. 2022 on a small GPT.
#include "validation/published/layer_memory.h"

#include <string>

#include <gtest/gtest.h>

#include "validation/published/case_file.h"
#include "validation/published/case_run.h"

namespace spillway::validation {
namespace {

constexpr double s = 128, micro_batch = 2, h = 256, a = 4, layers = 8;

// Predictions of both metrics, in bytes.
struct LayerMemory {
  double kept = 0, state = 0;
};
LayerMemory predicted(const std::string& settings) {
  const std::string text = R"({"schema": "spillway-cases", "version": 1, "title": "Closed forms",
    "models": {"block": {"schema": "spillway.model", "version": 1, "title": "Block", "source": "made up", "layers": 8,
      "hidden": 256, "heads": 4, "feed_forward": 1024, "vocabulary": 512, "max_positions": 128, "mask": "causal",
      "norm": "layer_norm", "norm_placement": "pre", "activation": "gelu", "positions": "learned", "fused_qkv": true,
      "qkv_bias": true, "output_bias": true, "feed_forward_bias": true, "tied_embeddings": true, "dropout": 0.1}},
    "common": {"source": "form", "unit": "B", "value": 1, "hardware.profile": "dgx-a100", "model.name": "block",
      "model.micro_batch": 2, "model.framework": "megatron_2022", "model.flash_attention": false,)" +
                           settings + R"(},
    "cases": [{"id": "kept", "metric": "layer_kept_memory"}, {"id": "state", "metric": "layer_state_memory"}]})";
  const std::vector<CaseFile> files = {parse_cases(text, "forms.json")};
  const std::vector<CaseOutcome> outcomes = run_cases(files);
  EXPECT_EQ(outcomes.at(0).skipped + outcomes.at(1).skipped, "");
  return {outcomes.at(0).predicted, outcomes.at(1).predicted};
}

// Table 2 of the paper; the means and deviations of two LayerNorms are 16 bytes per token.
TEST(LayerMemory, KeptIsTableTwo) {
  const double sbh = s * micro_batch * h, square = 5 * a * s / h, statistics = 16 * s * micro_batch;
  EXPECT_EQ(predicted(R"("model.recompute": "none")").kept, layers * (sbh * (34 + square) + statistics));
  EXPECT_EQ(predicted(R"("model.tensor_parallel": 2)").kept, layers * (sbh * (10 + 12 + square / 2) + statistics));
  EXPECT_EQ(predicted(R"("model.tensor_parallel": 2, "model.sequence_parallel": true)").kept,
            layers * (sbh * (34 + square) + statistics) / 2);
  EXPECT_EQ(predicted(R"("model.tensor_parallel": 2, "model.recompute": "selective")").kept,
            layers * (sbh * (10 + 12) + statistics));
  EXPECT_EQ(predicted(R"("model.tensor_parallel": 2, "model.recompute": "full")").kept, layers * 2 * sbh);
}

// Section 4.2.3: the first stage keeps 1 + (p - 1) / (p v) times the model's layers when interleaved, p micro-batches
// of its own layers when not.
TEST(LayerMemory, FirstStageKeepsWhatTheScheduleSays) {
  const double layer = s * micro_batch * h * (34 + 5 * a * s / h) + 16 * s * micro_batch;
  EXPECT_EQ(predicted(R"("model.pipeline_parallel": 4, "model.gradient_accumulation": 8)").kept, layers * layer);
  EXPECT_EQ(predicted(R"("model.pipeline_parallel": 4, "model.pipeline_chunks": 2,
                          "model.gradient_accumulation": 8)")
                .kept,
            layers * layer * (1 + 3.0 / 8));
}

// 2 bytes of weight, 4 of gradient, 12 of master weight and moments for each of the 12 h^2 + 13 h parameters of a
// layer; split over t are its matrices and 7 h of its biases.
TEST(LayerMemory, StateIsEighteenBytesPerParameterOfALayer) {
  EXPECT_EQ(predicted(R"("model.recompute": "none")").state, 18 * layers * (12 * h * h + 13 * h));
  EXPECT_EQ(predicted(R"("model.tensor_parallel": 2, "model.pipeline_parallel": 4)").state,
            18 * layers / 4 * (6 * h * h + 3.5 * h + 6 * h));
}

}  // namespace
}  // namespace spillway::validation
