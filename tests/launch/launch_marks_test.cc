// Whose file it is, and what is refused by its own name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/launch_files.h"
#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

using test::Folder;
using testing::AllOf;
using testing::HasSubstr;

std::string complaint_of(const std::string& name, const std::string& text) {
  const Folder folder;
  const std::string path = folder.write(name, text);
  return test::complaint([&] { return read_launch({.paths = {path}, .from = {}, .given = {}}); });
}

TEST(LaunchMarks, WhatIsNotReadIsRefusedByItsName) {
  const std::vector<std::array<std::string, 3>> files = {
      {"r.py", "import nemo_run as run\nfrom nemo.collections import llm\nrecipe = llm.llama3_8b.pretrain_recipe()\n",
       "NeMo 2"},
      {"l.yaml", "trainer: {train_batch_size: 256}\nmodel: {type: llama, seq_len: 4096}\n", "Levanter"},
      {"m.sh", "python3 -m MaxText.train configs/base.yml per_device_batch_size=2\n", "MaxText"},
      {"m.yaml", "per_device_batch_size: 2\nmax_target_length: 2048\nici_fsdp_parallelism: 8\n", "MaxText"},
      {"v.sh",
       "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer "
       "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B\n",
       "verl on Megatron"},
      {"v.yaml", "actor_rollout_ref: {actor: {strategy: megatron}}\n", "verl on Megatron"},
      {"o.sh", "deepspeed --module openrlhf.cli.train_dpo --max_len 2048 --zero_stage 3\n", "OpenRLHF"},
      {"e.yaml", "stage: sft\ncutoff_len: 8\nuse_mca: true\ntensor_model_parallel_size: 2\n", "another engine"},
      {"s.sh", "megatron rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B\n", "ms-swift"},
      {"g.py", "from trl import PPOConfig\nargs = PPOConfig(per_device_train_batch_size=1)\n", "PPOConfig"},
      {"j.py", "import jax\nimport flax\n", "XLA"},
      {"Dockerfile", "# of ours\nFROM nvcr.io/nvidia/pytorch:25.01-py3\nRUN pip install torch\n", "CMD"},
      {"pod.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: []}\n", "Kubernetes"},
      {"config.json", R"({"architectures": ["A"], "model_type": "a", "hidden_size": 64})", "spillway fit"}};
  for (const auto& [name, text, words] : files) EXPECT_THAT(complaint_of(name, text), HasSubstr(words)) << name;
}

// Nothing that is known has such keys: all that could be are listed.
TEST(LaunchMarks, WhatNobodyKnowsIsToldWhatIs) {
  for (const char* text : {"learning_rate: 1e-4\nlayers: 3\nbf16: true\n", "[optimizer]\nlr = 1e-4\n", "{\"seed\": 1}"})
    EXPECT_THAT(complaint_of("own.cfg", text), AllOf(HasSubstr("no"), HasSubstr("--from megatron, torchtitan")));
}

// By marks, however many of its keys others have too.
TEST(LaunchMarks, TwoLaunchersInOneFileAreRefused) {
  EXPECT_THAT(complaint_of("two.yaml",
                           "per_device_train_batch_size: 1\nbatch_size: 2\n"
                           "model: {_component_: torchtune.models.llama3.llama3_8b}\n"),
              AllOf(HasSubstr("two launchers"), HasSubstr("hf"), HasSubstr("torchtune")));
  const Folder folder;
  const std::string one = folder.write("a.yaml", "per_device_train_batch_size: 1\n");
  const std::string other = folder.write("b.yaml", "model: {_component_: torchtune.models.llama3.llama3_8b}\n");
  EXPECT_THAT(test::complaint([&] {
                return read_launch({.paths = {one, other}, .from = {}, .given = {}});
              }),
              HasSubstr("files of one launch"));
}

// A program of one's own under DeepSpeed, whose file says all that is known.
TEST(LaunchMarks, DeepSpeedsFileOfAnyProgram) {
  const Folder folder;
  static_cast<void>(folder.write("ds.json", R"({"train_batch_size": 8, "zero_optimization": {"stage": 2}})"));
  const Launch launch = read_launch(
      {.paths = {folder.write("run.sh", "deepspeed --num_gpus 2 mine.py --deepspeed --deepspeed_config ds.json\n")},
       .from = {},
       .given = {}});
  EXPECT_EQ(launch.program, LaunchFormat::deepspeed);
  EXPECT_EQ(launch.settings.front().name, "num-gpus");
  const Launch megatrons = read_launch(
      {.paths = {folder.write("run.sh", "deepspeed pretrain_gpt.py --num-layers 2 --deepspeed_config ds.json\n")},
       .from = {},
       .given = {}});
  EXPECT_EQ(megatrons.program, LaunchFormat::megatron);
}

// GPT-NeoX has DeepSpeed's keys, ms-swift the Trainer's or Megatron-LM's: the outer one's file it is.
TEST(LaunchMarks, AnOuterLauncherWins) {
  const Folder folder;
  const auto whose = [&](const std::string& name, const std::string& text) {
    return read_launch({.paths = {folder.write(name, text)}, .from = {}, .given = {}}).launcher;
  };
  EXPECT_EQ(whose("n.yml", "pipe_parallel_size: 1\nmodel_parallel_size: 1\nzero_optimization: {stage: 1}\n"),
            LaunchFormat::neox);
  EXPECT_EQ(whose("s.sh", "swift sft --model gpt2 --per_device_train_batch_size 1\n"), LaunchFormat::swift);
  EXPECT_EQ(whose("m.sh", "megatron pt --model gpt2 --micro_batch_size 1\n"), LaunchFormat::swift_megatron);
}

}  // namespace
}  // namespace spillway::launch
