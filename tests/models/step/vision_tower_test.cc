// A vision tower before the text: flops, kept bytes and states against closed forms, frozen and trained, on the first
// stage of a pipeline.
#include <string>

#include <gtest/gtest.h>

#include "models/spec/model_spec.h"
#include "models/spec/tower.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::vision {
namespace {

constexpr std::int64_t s = 64, b = 2, t = s * b;  // tokens per sequence, sequences, tokens
// Of the tower: width, heads, feed-forward width, values of a patch; images of a micro-batch, their patches, the tokens
// that four of these make; the text's width.
constexpr std::int64_t h = 64, a = 4, f = 128, v = 3 * 14 * 14, n = 2 * b, p = n * 64, m = p / 4, text = 256;

ModelSpec small(std::int64_t tower_layers = 2) {
  ModelSpec model = find_model("llama-3.2-1b");
  model.layers = 3, model.hidden = text, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1000, model.feed_forward = 512;
  ModelSpec tower = *find_model("moonshotai/Kimi-VL-A3B-Instruct").tower;
  tower.layers = tower_layers, tower.hidden = h, tower.heads = tower.kv_heads = a, tower.head_dim = h / a;
  tower.feed_forward = f;
  tower.projector.width = text, tower.projector.inner = 4 * h, tower.projector.norm = false;
  model.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return model;
}

TrainingSetup with_images(TrainTower trained, TrainingSetup setup = {}) {
  setup.sequence = s, setup.micro_batch = b, setup.images = 2, setup.image_tokens = 16;
  setup.train_tower = trained;
  return setup;
}

Trace generate(const ModelSpec& model, const TrainingSetup& setup) {
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

Trace text_alone(TrainingSetup setup = {}) {
  setup.sequence = s, setup.micro_batch = b;
  return generate(small(), setup);
}

// Products in a layer: 4 h^2 of attention and 2 h f of the feed-forward block for each patch, and scores and contexts
// over the 64 patches of its image; v h for a patch; 4h x 4h and 4h x text for a token.
constexpr std::int64_t layer_products = 2 * p * (4 * h * h + 2 * h * f), layer_scores = 4 * p * 64 * h;
constexpr std::int64_t projector_products = 2 * m * (4 * h * 4 * h + 4 * h * text), patch_product = 2 * p * v * h;

TEST(VisionTower, FlopsOfTheForward) {
  const std::int64_t added = flops_of(generate(small(), with_images(TrainTower::frozen)), Phase::forward) -
                             flops_of(text_alone(), Phase::forward);
  EXPECT_EQ(added, 2 * (layer_products + layer_scores) + projector_products + patch_product);
}

// The text's backward is as it was: nothing of a frozen tower; of a trained projector its own gradients and, between
// its two products, that of the second's input; of the whole each product twice but the patches' once, and flash
// attention's five for its forward's two.
TEST(VisionTower, FlopsOfTheBackward) {
  const std::int64_t plain = flops_of(text_alone(), Phase::backward);
  const auto added = [plain](TrainTower trained) {
    return flops_of(generate(small(), with_images(trained)), Phase::backward) - plain;
  };
  EXPECT_EQ(added(TrainTower::frozen), 0);
  EXPECT_EQ(added(TrainTower::projector), projector_products + 2 * m * 4 * h * text);
  EXPECT_EQ(added(TrainTower::whole),
            2 * 2 * layer_products + 2 * layer_scores / 2 * 5 + 2 * projector_products + patch_product);
}

std::int64_t kept(const ModelSpec& model, const TrainingSetup& setup) {
  const HeldBytes memory = memory_of(generate(model, setup));
  EXPECT_EQ(memory.left, 0);
  return memory.kept;
}

// In 2 bytes: x, its norm, queries, keys, values and attention's result; the middle, its norm, and the inner values
// before and behind the GELU. Statistics of two LayerNorms, 8 bytes a patch each; of scores 4 bytes a patch and head.
constexpr std::int64_t layer_keeps = p * (2 * (8 * h + 2 * f) + 16 + 4 * a);

TEST(VisionTower, KeptBytes) {
  const std::int64_t plain = memory_of(text_alone()).kept;
  EXPECT_EQ(kept(small(), with_images(TrainTower::frozen)), plain);
  // The projector's input and, before and behind the GELU, what is between its products.
  EXPECT_EQ(kept(small(), with_images(TrainTower::projector)), plain + 2 * m * 3 * 4 * h);
  const TrainingSetup all = with_images(TrainTower::whole);
  EXPECT_EQ(kept(small(3), all) - kept(small(2), all), layer_keeps);
  // Recomputed, its input alone.
  const TrainingSetup again = with_images(TrainTower::whole, {.recompute = Recompute::full});
  EXPECT_EQ(kept(small(3), again) - kept(small(2), again), 2 * p * h);
}

// Of a frozen parameter 2 bytes; trained master weight and moments too, 14, before the step, and its gradient behind
// the backward.
TEST(VisionTower, States) {
  const ModelSpec model = small();
  std::int64_t whole = 0, projector = 0;
  for (const Parameter& each : parameters(*model.tower)) {
    whole += each.elements();
    if (each.name.starts_with("projector")) projector += each.elements();
  }
  const HeldBytes plain = memory_of(text_alone());
  const auto added = [&](TrainTower trained) { return memory_of(generate(model, with_images(trained))); };
  // Buffers: the positions' places and the table of rotations, of an image.
  const std::int64_t buffers = 64 * 8 + 2 * 64 * (h / a) * 2;
  EXPECT_EQ(added(TrainTower::frozen).before, plain.before + 2 * whole + buffers);
  EXPECT_EQ(added(TrainTower::projector).before, plain.before + 2 * whole + 12 * projector + buffers);
  EXPECT_EQ(added(TrainTower::whole).before, plain.before + 14 * whole + buffers);
  const auto gradients = [&](TrainTower trained) {
    const HeldBytes memory = added(trained);
    return memory.before_optimizer - memory.before;
  };
  EXPECT_EQ(gradients(TrainTower::whole) - gradients(TrainTower::frozen), 2 * whole);
}

// ZeRO 3 gathers the tower's layers one by one and gives them back, in the forward once and for a trained one again in
// the backward.
TEST(VisionTower, UnitsOfZero3) {
  const TrainingSetup setup{.data_parallel = 4, .zero_stage = 3};
  const auto gathers = [&](std::int64_t layers, TrainTower trained) {
    return count_of(generate(small(layers), with_images(trained, setup)), "all_gather_weights");
  };
  EXPECT_EQ(gathers(3, TrainTower::frozen) - gathers(2, TrainTower::frozen), 1);
  EXPECT_EQ(gathers(3, TrainTower::whole) - gathers(2, TrainTower::whole), 2);
}

// The first stage has it, and no other.
TEST(VisionTower, OfTheFirstStage) {
  const TrainingSetup stages{.gradient_accumulation = 2, .pipeline_parallel = 3};
  const Trace without = text_alone(stages);
  const Trace with = generate(small(), with_images(TrainTower::whole, stages));
  const auto added = [&](std::int16_t stage) {
    return memory_of(with, stage).before - memory_of(without, stage).before;
  };
  EXPECT_GT(added(0), 14 * parameter_count(*small().tower));
  EXPECT_EQ(added(1), 0);
  EXPECT_EQ(added(2), 0);
}

// Each tensor rank runs it whole.
TEST(VisionTower, WholeOnEveryTensorRank) {
  const auto added = [](std::int64_t ranks, bool sequence) {
    const TrainingSetup split{.tensor_parallel = ranks, .sequence_parallel = sequence};
    return flops_of(generate(small(), with_images(TrainTower::frozen, split)), Phase::forward) -
           flops_of(text_alone(split), Phase::forward);
  };
  EXPECT_EQ(added(2, false), added(1, false));
  EXPECT_EQ(added(2, true), added(1, false));
}

// Three deep layers of it go into the first three of the text.
TEST(VisionTower, Taps) {
  ModelSpec model = small(4);
  ModelSpec tower = *model.tower;
  tower.projector.taps = {0, 2, 3};
  model.tower = std::make_shared<const ModelSpec>(tower);
  const Trace trace = generate(model, with_images(TrainTower::whole));
  EXPECT_EQ(count_of(trace, "add_rows"), 3);
  const std::int64_t added =
      flops_of(trace, Phase::forward) - flops_of(generate(small(4), with_images(TrainTower::whole)), Phase::forward);
  EXPECT_EQ(added, 3 * projector_products);
}

// Windows of 16 of an image's 64 patches in one layer of two: a quarter of its scores.
TEST(VisionTower, Windows) {
  ModelSpec model = small();
  ModelSpec tower = *model.tower;
  tower.attention_window = 16, tower.global_every = 2;
  model.tower = std::make_shared<const ModelSpec>(tower);
  const std::int64_t less = flops_of(generate(small(), with_images(TrainTower::frozen)), Phase::forward) -
                            flops_of(generate(model, with_images(TrainTower::frozen)), Phase::forward);
  EXPECT_EQ(less, layer_scores - layer_scores / 4);
}

}  // namespace
}  // namespace spillway::models::vision
