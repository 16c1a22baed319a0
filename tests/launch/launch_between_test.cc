// What launches say of evaluations, capacities and graphs.
#include <gtest/gtest.h>

#include <string>

#include "launch/launch_import.h"
#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

using test::Folder;
using test::ignored;
using test::key;
using test::request;

LaunchImport megatron(const std::string& flags) {
  const Folder folder;
  return import_launch(request(
      {folder.write("run.args",
                    "--num-layers 2 --hidden-size 64 --num-attention-heads 2 --vocab-size 512 --seq-length 64 --bf16 "
                    "--micro-batch-size 2 --global-batch-size 32 --world-size 4 " +
                        flags + "\n")}));
}

// Global batches of 32 / (2 x 4) micro-batches each; what isn't said is Megatron-LM's default.
TEST(LaunchBetween, MegatronEvaluates) {
  EXPECT_EQ(key(megatron(""), "model.evaluate_every"), "(none)");
  const LaunchImport both = megatron("--eval-interval 200 --eval-iters 5");
  EXPECT_EQ(key(both, "model.evaluate_every"), "200");
  EXPECT_EQ(key(both, "model.evaluation_batches"), "20");
  EXPECT_EQ(key(megatron("--eval-interval 200"), "model.evaluation_batches"), "400");
  EXPECT_EQ(key(megatron("--eval-iters 1"), "model.evaluate_every"), "1000");
  const LaunchImport none = megatron("--eval-interval 200 --eval-iters 0");
  EXPECT_EQ(key(none, "model.evaluate_every"), "(none)");
  EXPECT_EQ(ignored(none).at("--eval-interval"), "no_effect");
}

TEST(LaunchBetween, MegatronCapturesGraphs) {
  EXPECT_EQ(key(megatron("--enable-cuda-graph"), "model.cuda_graphs"), "attn,mamba,mlp");
  EXPECT_EQ(key(megatron("--cuda-graph-impl transformer_engine --cuda-graph-scope attn"), "model.cuda_graphs"), "attn");
  EXPECT_EQ(key(megatron("--cuda-graph-impl none --cuda-graph-scope attn"), "model.cuda_graphs"), "(none)");
  EXPECT_EQ(key(megatron("--cuda-graph-scope full_iteration"), "model.cuda_graphs"), "full_iteration");
  EXPECT_EQ(key(megatron("--cuda-graph-impl full_iteration"), "model.cuda_graphs"), "full_iteration");
  EXPECT_EQ(
      key(megatron("--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router"), "model.cuda_graphs"),
      "attn,moe_router");
}

TEST(LaunchBetween, MegatronCutsAtACapacity) {
  const std::string experts =
      "--swiglu --disable-bias-linear --num-experts 4 --moe-router-topk 2 --expert-model-parallel-size 2 ";
  const LaunchImport import =
      megatron(experts + "--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity");
  EXPECT_EQ(key(import, "model.expert_capacity"), "1.25");
  EXPECT_EQ(key(import, "model.static_experts"), "true");
}

TEST(LaunchBetween, TrainerEvaluates) {
  const Folder folder;
  const auto import = [&](const std::string& keys) {
    return import_launch(
        request({folder.write("a.yaml", "per_device_train_batch_size: 3\nbf16: true\n" + keys)}, "llama-2-7b"));
  };
  const LaunchImport steps = import(
      "eval_strategy: steps\neval_steps: 250\nper_device_eval_batch_size: 2\n"
      "eval_accumulation_steps: 4\n");
  EXPECT_EQ(key(steps, "model.evaluate_every"), "250");
  EXPECT_EQ(key(steps, "model.evaluation_micro_batch"), "2");
  EXPECT_EQ(key(steps, "model.evaluation_flush"), "4");
  const LaunchImport none = import("eval_strategy: \"no\"\nper_device_eval_batch_size: 2\n");
  EXPECT_EQ(key(none, "model.evaluation_micro_batch"), "(none)");
  EXPECT_EQ(ignored(none).at("per_device_eval_batch_size"), "no_effect");
  EXPECT_EQ(key(import("eval_strategy: epoch\n"), "model.evaluate_every"), "500");  // memory is as between steps
}

TEST(LaunchBetween, TorchtitanValidates) {
  const Folder folder;
  const auto import = [&](const std::string& keys) {
    return import_launch(
        request({folder.write("a.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[validation]\n" + keys)}));
  };
  const LaunchImport on = import("enable = true\nfreq = 500\nsteps = 40\nlocal_batch_size = 2\n");
  EXPECT_EQ(key(on, "model.evaluate_every"), "500");
  EXPECT_EQ(key(on, "model.evaluation_batches"), "40");
  EXPECT_EQ(key(on, "model.evaluation_micro_batch"), "2");
  EXPECT_EQ(key(import("enable = false\nfreq = 500\n"), "model.evaluate_every"), "(none)");
}

}  // namespace
}  // namespace spillway::launch
