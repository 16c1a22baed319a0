// Vision towers: parameters against published totals, tokens of an image, and what a set-up may ask of them.
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_spec.h"
#include "models/spec/tower.h"
#include "models/spec/training_setup.h"

namespace spillway::models {
namespace {

std::int64_t whole(const char* id) {
  const ModelSpec model = find_model(id);
  EXPECT_NE(model.tower, nullptr) << id;
  EXPECT_EQ(model.held_parameters, parameter_count(*model.tower)) << id;
  return parameter_count(model) + model.held_parameters;
}

// Totals of the published checkpoints.
TEST(Tower, ParametersOfPublishedModels) {
  EXPECT_EQ(whole("google/gemma-3-4b-it"), 4'300'079'472);
  EXPECT_EQ(whole("Qwen/Qwen2-VL-7B-Instruct"), 8'291'375'616);
  EXPECT_EQ(whole("Qwen/Qwen2.5-VL-7B-Instruct"), 8'292'166'656);
  EXPECT_EQ(whole("Qwen/Qwen3-VL-8B-Instruct"), 8'767'123'696);
  EXPECT_EQ(whole("llava-hf/llava-1.5-7b-hf"), 7'063'427'072);
  EXPECT_EQ(find_model("Qwen/Qwen3-VL-4B-Instruct").held_parameters, 415'347'712);
  EXPECT_EQ(find_model("Qwen/Qwen2.5-VL-72B-Instruct").held_parameters, 704'573'696);
  EXPECT_EQ(find_model("mistralai/Mistral-Small-3.1-24B-Instruct-2503").held_parameters, 438'958'080);
}

// 27 layers: two LayerNorms, 4 h^2 of attention, 2 h f of the feed-forward block, biases; patches of 2 frames of 16 x
// 16 pixels in three colours; a table of 48 x 48 positions; a norm and two products over 2 x 2 patches, and three times
// the same for deep layers, with norms over the four.
TEST(Tower, ParametersAddUpByParts) {
  const std::int64_t h = 1152, f = 4304, four = 4 * h, text = 4096;
  const std::int64_t layer = 4 * h + 4 * h * h + 4 * h + 2 * h * f + f + h;
  const std::int64_t bridge = four * four + four + four * text + text;
  EXPECT_EQ(find_model("Qwen/Qwen3-VL-8B-Instruct").held_parameters,
            27 * layer + 1536 * h + h + 2304 * h + 2 * h + 4 * bridge + 3 * 2 * four);
}

TrainingSetup resolved(const char* id, TrainingSetup setup) {
  setup.sequence = 4096;
  return resolve(setup, find_model(id));
}

TEST(Tower, TokensOfAnImage) {
  const TrainingSetup gemma = resolved("gemma-3-4b", {.images = 2});
  EXPECT_EQ(gemma.image_tokens, 256);
  EXPECT_EQ(image_rows(*find_model("gemma-3-4b").tower, gemma), 64 * 64);
  const ModelSpec llava = find_model("llava-hf/llava-1.5-7b-hf");
  const TrainingSetup clip = resolve({.sequence = 2048, .images = 1}, llava);
  EXPECT_EQ(clip.image_tokens, 576);
  EXPECT_EQ(image_rows(*llava.tower, clip), 577);  // and the class token
  EXPECT_EQ(tower_setup(clip, llava).sequence, 577);
}

void refused(const char* id, const TrainingSetup& setup, const char* place) {
  try {
    resolved(id, setup);
    ADD_FAILURE() << "taken: " << place;
  } catch (const InputError& error) {
    EXPECT_EQ(error.place(), place) << error.what();
  }
}

TEST(Tower, WhatASetUpMayNotAsk) {
  refused("qwen3-8b", {.images = 1}, "images");
  refused("moonshotai/Kimi-K2.5", {.images = 1, .image_tokens = 256}, "images");  // its tower's sizes aren't known
  refused("Qwen/Qwen3-VL-8B-Instruct", {.images = 1}, "image_tokens");            // images of any size
  refused("Qwen/Qwen3-VL-8B-Instruct", {.images = 5, .image_tokens = 1024}, "images");
  refused("gemma-3-4b", {.images = 1, .image_tokens = 300}, "image_tokens");
  refused("gemma-3-4b", {.trainable = Trainable::lora, .images = 1, .train_tower = TrainTower::whole}, "train_tower");
  refused("Qwen/Qwen3-VL-8B-Instruct", {.images = 1, .image_tokens = 256, .pipeline_parallel = 18},
          "pipeline_parallel");  // stages of two layers, and three read images
}

// A patch's row meets 2 flops an element of every product, an image's tokens those of the projector: forward alone
// where nothing is trained, three times that where all is.
TEST(Tower, Flops) {
  const ModelSpec model = find_model("gemma-3-4b");
  const double h = 1152, f = 4304, rows = 4096, layers = 27, text = 2560;
  const double forward =
      rows * 2 * (layers * (4 * h * h + 2 * h * f) + 588 * h) + layers * 4 * rows * rows * h + 256 * 2 * h * text;
  TrainingSetup setup = resolved("gemma-3-4b", {.images = 3});
  EXPECT_DOUBLE_EQ(tower_flops(model, setup), 3 * forward);
  setup.train_tower = TrainTower::whole;
  EXPECT_DOUBLE_EQ(tower_flops(model, setup), 9 * forward);
  setup.train_tower = TrainTower::projector;  // its one product's own gradient, and none of its input
  EXPECT_DOUBLE_EQ(tower_flops(model, setup), 3 * (forward + 256 * 2 * h * text));
  setup.images = 0;
  EXPECT_EQ(tower_flops(model, setup), 0);
}

}  // namespace
}  // namespace spillway::models
