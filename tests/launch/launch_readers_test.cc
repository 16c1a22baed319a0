// The launchers that have no sizes, batches or state of Megatron-LM's or the Trainer's own spelling.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/launch_import.h"
#include "launch/launch_table.h"
#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

using test::complaint;
using test::expect_keys;
using test::Folder;
using test::ignored;
using test::key;
using test::Keys;
using test::request;
using test::warns;
using testing::AllOf;
using testing::HasSubstr;

LaunchImport on_eight(const std::string& name) {
  ImportRequest asked = request({test::fixture(name)});
  asked.machine = "dgx-h100";
  return import_launch(asked);
}

LaunchImport of_text(const std::string& name, const std::string& text) {
  const Folder folder;
  ImportRequest asked = request({folder.write(name, text)});
  asked.machine = "dgx-h100";
  return import_launch(asked);
}

// None of their flags is unknown: the fixtures have what people write.
TEST(LaunchReaders, EachReadsItsOwn) {
  const std::map<std::string, std::string> formats = {{"bridge-recipe.sh", "bridge"},
                                                      {"nemo1-llama.yaml", "nemo1"},
                                                      {"primus-llama.yaml", "primus"},
                                                      {"automodel-full.yaml", "automodel"},
                                                      {"automodel-lora.yaml", "automodel"},
                                                      {"titan-registry.sh", "torchtitan"},
                                                      {"trainer.py", "python"},
                                                      {"trl-lora.ipynb", "python"},
                                                      {"unsloth.py", "unsloth"},
                                                      {"swift-sft.sh", "swift"},
                                                      {"swift-megatron.sh", "swift-megatron"},
                                                      {"torchtune-full.yaml", "torchtune"},
                                                      {"neox-pythia.yml", "neox"},
                                                      {"openrlhf-sft.sh", "openrlhf"},
                                                      {"openrlhf-ppo.sh", "openrlhf-rl"},
                                                      {"verl-sft.sh", "verl"},
                                                      {"verl-grpo.sh", "verl-rl"},
                                                      {"verl-ppo.sh", "verl-rl"},
                                                      {"litgpt-lora.yaml", "litgpt"},
                                                      {"foundry-mpt.yaml", "foundry"}};
  for (const auto& [name, format] : formats) {
    const LaunchImport import = on_eight(name);
    EXPECT_EQ(import.format, format) << name;
    for (const IgnoredFlag& each : import.ignored) EXPECT_NE(each.kind, IgnoreReason::unknown) << name << each.flag;
  }
}

TEST(LaunchReaders, MegatronsCousins) {
  const LaunchImport bridge = on_eight("bridge-recipe.sh");
  expect_keys(bridge, {{"model.name", "llama-3-8b"},
                       {"model.tensor_parallel", "2"},
                       {"model.data_parallel", "4"},
                       {"model.sequence", "4096"},
                       {"model.global_batch", "16"},
                       {"model.precision", "bf16_mixed"},
                       {"model.optimizer_device", "cpu"}});
  EXPECT_TRUE(warns(bridge, "the recipe llama3_8b_pretrain_config"));
  expect_keys(on_eight("nemo1-llama.yaml"), {{"model.name", "llama-2-7b"},
                                             {"model.data_parallel", "2"},  // 2 x 8 / (4 x 2)
                                             {"model.zero_stage", "1"},
                                             {"model.recompute", "selective"},
                                             {"model.precision", "bf16_mixed"}});
  expect_keys(on_eight("primus-llama.yaml"), {{"model.name", "llama-3.1-8b"},
                                              {"model.zero_stage", "1"},
                                              {"model.precision", "bf16_mixed"},
                                              {"model.recompute", "full"},
                                              {"model.recompute_layers", "8"}});
  expect_keys(on_eight("swift-megatron.sh"), {{"model.name", "qwen3-8b"},
                                              {"model.framework", "megatron"},
                                              {"model.data_parallel", "4"},
                                              {"model.sequence", "8192"},
                                              {"model.recompute", "full"},
                                              {"model.zero_stage", "1"},
                                              {"model.loss", "fused"},
                                              {"model.optimizer_device", "cpu"}});
}

TEST(LaunchReaders, AutoModel) {
  expect_keys(on_eight("automodel-full.yaml"), {{"model.name", "llama-3.1-8b"},
                                                {"model.data_parallel", "4"},
                                                {"model.zero_stage", "3"},
                                                {"model.precision", "bf16"},
                                                {"model.fp32_reduction", "true"},
                                                {"model.sequence", "4096"},
                                                {"model.loss", "native"}});
  expect_keys(on_eight("automodel-lora.yaml"), {{"model.trainable", "lora"},
                                                {"model.lora_rank", "16"},
                                                {"model.lora_targets", "all_linear"},
                                                {"model.sequence", "(none)"}});
  const std::string head =
      "recipe: TrainFinetuneRecipeForNextTokenPrediction\n"
      "step_scheduler: {local_batch_size: 1, global_batch_size: 8}\n"
      "model: {_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained, "
      "pretrained_model_name_or_path: Qwen/Qwen2.5-7B, torch_dtype: float32}\n";
  expect_keys(of_text("a.yaml", head + "distributed: {strategy: ddp}\n"),
              {{"model.zero_stage", "0"}, {"model.precision", "bf16_mixed"}, {"model.late_reduction", "(none)"}});
  expect_keys(of_text("a.yaml", head + "distributed: {strategy: fsdp2, reshard_after_forward: false}\n"),
              {{"model.zero_stage", "2"}, {"model.late_reduction", "true"}});
}

// Tokens of a micro-batch and of a step, and a function of the registry.
TEST(LaunchReaders, TorchtitanSince2026) {
  const LaunchImport import = on_eight("titan-registry.sh");
  expect_keys(import, {{"model.name", "llama-3.1-8b"},
                       {"model.micro_batch", "2"},
                       {"model.global_batch", "64"},
                       {"model.sequence", "8192"},
                       {"model.zero_stage", "3"},
                       {"model.optimizer_device", "cpu"},
                       {"model.weight_device", "cpu"}});
  EXPECT_TRUE(warns(import, "the recipe llama3_8b"));
}

TEST(LaunchReaders, SwiftWithDeepSpeedByName) {
  const LaunchImport import = on_eight("swift-sft.sh");
  expect_keys(import, {{"model.name", "qwen2.5-14b"},
                       {"model.trainable", "(none)"},
                       {"model.zero_stage", "3"},
                       {"model.optimizer_device", "cpu"},
                       {"model.weight_device", "cpu"},
                       {"model.precision", "bf16_mixed"},
                       {"model.recompute", "full"},
                       {"model.loss", "chunked"},
                       {"model.data_parallel", "8"}});
  // Adapters are its default, and a batch of 16.
  const LaunchImport short_one =
      of_text("s.sh", "CUDA_VISIBLE_DEVICES=0,1 swift sft --model Qwen/Qwen2.5-7B --dataset d --max_length 1024\n");
  expect_keys(short_one, {{"model.trainable", "lora"},
                          {"model.lora_rank", "8"},
                          {"model.lora_targets", "all_linear"},
                          {"model.precision", "bf16"},
                          {"model.data_parallel", "2"},
                          {"model.gradient_accumulation", "8"}});
}

// LLaMA-Factory and ms-swift freeze towers unless told, others' Trainers don't; adapters leave them frozen. How many
// images a sequence has is in the data.
TEST(LaunchReaders, VisionTowers) {
  const std::string factory = "llamafactory-cli train --stage sft --cutoff_len 512 --bf16 true --model_name_or_path ";
  const std::string image = "Qwen/Qwen2.5-VL-7B-Instruct --finetuning_type ";
  const LaunchImport usual = of_text("a.sh", factory + image + "full\n");
  expect_keys(usual, {{"model.train_tower", "frozen"}, {"model.image_tokens", "752"}});  // 768 x 768 / (28 x 28)
  EXPECT_TRUE(usual.unstated.empty());  // nothing says that the data have images
  const LaunchImport whole = of_text("b.sh", factory + image + "full --freeze_vision_tower false\n");
  expect_keys(whole, {{"model.train_tower", "whole"}, {"model.images", "(none)"}});
  ASSERT_EQ(whole.unstated.size(), 1U);
  EXPECT_EQ(whole.unstated[0].key, "model.images");
  const LaunchImport adapters = of_text("c.sh", factory + image + "lora --freeze_vision_tower false\n");
  EXPECT_EQ(key(adapters, "model.train_tower"), "(none)");
  ASSERT_FALSE(adapters.unsayable.empty());
  EXPECT_EQ(adapters.unsayable[0].flag, "--freeze_vision_tower");
  // A text alone has no tower, a fixed image no number of pixels.
  EXPECT_EQ(
      ignored(of_text("d.sh", factory + "Qwen/Qwen2.5-7B --freeze_vision_tower false\n")).at("--freeze_vision_tower"),
      "no_effect");
  EXPECT_EQ(
      ignored(of_text("e.sh", factory + "google/gemma-3-4b-it --image_max_pixels 1000\n")).at("--image_max_pixels"),
      "no_effect");
  const LaunchImport plain = of_text("f.sh",
                                     "python train.py --model_name_or_path Qwen/Qwen2.5-VL-7B-Instruct --bf16 true "
                                     "--per_device_train_batch_size 1 --max_steps 3 --output_dir x\n");
  EXPECT_EQ(key(plain, "model.train_tower"), "whole");
}

// As many GPUs as each node has, unless a variable or their numbers say it.
TEST(LaunchReaders, VariablesOfNodesAndGpus) {
  const std::string rest =
      " llamafactory-cli train --model_name_or_path Qwen/Qwen2.5-7B --stage sft --cutoff_len 512 --bf16 true\n";
  const std::map<std::string, std::string> replicas = {{"NNODES=1", "8"},
                                                       {"CUDA_VISIBLE_DEVICES=0,1", "2"},
                                                       {"NNODES=2 CUDA_VISIBLE_DEVICES=0,1", "4"},
                                                       {"NNODES=2 NPROC_PER_NODE=4 CUDA_VISIBLE_DEVICES=0,1", "8"}};
  for (const auto& [variables, count] : replicas)
    EXPECT_EQ(key(of_text("run.sh", variables + rest), "model.data_parallel"), count) << variables;
}

TEST(LaunchReaders, TrlsOwnFile) {
  const Folder folder;
  static_cast<void>(folder.write("sft.yaml", "model_name_or_path: Qwen/Qwen2.5-7B\nmax_length: 512\nbf16: true\n"));
  const LaunchImport import =
      import_launch(request({folder.write("run.sh", "trl sft --config sft.yaml --per_device_train_batch_size 3\n")}));
  expect_keys(import, {{"model.name", "qwen2.5-7b"}, {"model.micro_batch", "3"}, {"model.sequence", "512"}});
}

TEST(LaunchReaders, Torchtune) {
  expect_keys(on_eight("torchtune-full.yaml"), {{"model.name", "llama-3.1-8b"},
                                                {"model.precision", "bf16"},
                                                {"model.loss", "chunked"},
                                                {"model.optimizer_form", "fused"},
                                                {"model.zero_stage", "3"},
                                                {"model.recompute", "full"},
                                                {"offload.technique", "checkpoints"},
                                                {"offload.tier", "host"}});
  const Folder folder;
  static_cast<void>(folder.write("8B.yaml",
                                 "model: {_component_: torchtune.models.llama3_1.qlora_llama3_1_8b, lora_rank: 16, "
                                 "lora_attn_modules: [q_proj, v_proj, output_proj], apply_lora_to_mlp: true}\n"
                                 "tokenizer: {_component_: t, max_seq_len: 512}\nbatch_size: 4\n"));
  const LaunchImport import = import_launch(request({folder.write(
      "run.sh", "tune run --nproc_per_node 2 lora_finetune_distributed --config 8B.yaml batch_size=8\n")}));
  expect_keys(import, {{"model.trainable", "qlora"},
                       {"model.lora_rank", "16"},
                       {"model.lora_targets", "all_linear"},
                       {"model.micro_batch", "8"},
                       {"model.data_parallel", "2"}});
  const LaunchImport alone =
      import_launch(request({folder.write("one.sh", "tune run lora_finetune_single_device --config 8B.yaml\n")}));
  EXPECT_EQ(key(alone, "model.data_parallel"), "1");
}

// YAML in braces with a comma too many; DeepSpeed's keys beside its own.
TEST(LaunchReaders, NeoX) {
  const LaunchImport import = on_eight("neox-pythia.yml");
  expect_keys(import, {{"model.name", "pythia-1.4b"},
                       {"model.tensor_parallel", "2"},
                       {"model.zero_stage", "1"},
                       {"model.micro_batch", "4"},
                       {"model.precision", "fp16_mixed"},
                       {"model.recompute", "full"}});
  EXPECT_EQ(ignored(import).at("partition_activations"), "memory-");
}

TEST(LaunchReaders, SupervisedTrainingOfReinforcementLaunchers) {
  expect_keys(on_eight("openrlhf-sft.sh"), {{"model.name", "llama-3-8b"},
                                            {"model.zero_stage", "3"},
                                            {"model.optimizer_device", "cpu"},
                                            {"model.global_batch", "128"},
                                            {"model.sequence", "4096"},
                                            {"model.recompute", "full"},
                                            {"model.data_parallel", "8"}});
  expect_keys(on_eight("verl-sft.sh"), {{"model.name", "qwen2.5-7b"},
                                        {"model.context_parallel", "2"},
                                        {"model.data_parallel", "4"},
                                        {"model.zero_stage", "3"},
                                        {"model.loss", "chunked"},
                                        {"model.recompute", "full"}});
}

TEST(LaunchReaders, LitGptAndFoundry) {
  const LaunchImport lora = on_eight("litgpt-lora.yaml");
  expect_keys(lora, {{"model.name", "llama-3.1-8b"},
                     {"model.trainable", "lora"},
                     {"model.base_weights", "nf4"},
                     {"model.lora_targets", "qkv"},
                     {"model.precision", "bf16"},
                     {"model.data_parallel", "1"}});
  EXPECT_TRUE(warns(lora, "of some products alone"));
  expect_keys(on_eight("foundry-mpt.yaml"), {{"model.name", "llm-foundry-7b"},
                                             {"model.micro_batch", "8"},
                                             {"model.global_batch", "1024"},
                                             {"model.zero_stage", "3"},
                                             {"model.fp32_reduction", "false"},
                                             {"model.recompute", "full"}});
  // Names of other keys of the file, and of an environment that nobody has.
  const std::string foundry =
      "variables: {length: 1024}\nmax_seq_len: ${variables.length}\nprecision: amp_bf16\nfsdp_config: "
      "{sharding_strategy: "
      "'${oc.env:HOW,SHARD_GRAD_OP}'}\nmodel: {pretrained_model_name_or_path: Qwen/Qwen2.5-7B, max_seq_len: "
      "'${max_seq_len}'}\n"
      "device_train_microbatch_size: ";
  expect_keys(of_text("f.yaml", foundry + "2\n"), {{"model.sequence", "1024"}, {"model.zero_stage", "2"}});
  EXPECT_THAT(complaint([&] { return of_text("f.yaml", foundry + "${env:MICRO}\n"); }), HasSubstr("--env MICRO=VALUE"));
}

TEST(LaunchReaders, PythonPrograms) {
  expect_keys(on_eight("trainer.py"), {{"model.name", "llama-3.2-3b"},
                                       {"model.micro_batch", "2"},
                                       {"model.gradient_accumulation", "8"},
                                       {"model.optimizer", "adamw_8bit"},
                                       {"model.recompute", "full"}});
  expect_keys(on_eight("trl-lora.ipynb"), {{"model.name", "llama-3.1-8b"},
                                           {"model.trainable", "qlora"},
                                           {"model.base_weights", "(none)"},
                                           {"model.lora_rank", "32"},
                                           {"model.lora_targets", "qkv"},
                                           {"model.lora_dropout", "0.1"},
                                           {"model.sequence", "2048"},
                                           {"model.micro_batch", "2"},
                                           {"model.gradient_accumulation", "8"},
                                           {"model.recompute", "full"},
                                           {"model.precision", "bf16_mixed"}});
  expect_keys(on_eight("unsloth.py"), {{"model.name", "qwen2.5-7b"},
                                       {"model.trainable", "qlora"},
                                       {"model.base_weights", "(none)"},
                                       {"model.lora_rank", "16"},
                                       {"model.lora_targets", "all_linear"},
                                       {"model.sequence", "4096"},
                                       {"model.optimizer", "adamw_8bit"},
                                       {"model.loss", "chunked"},
                                       {"model.recompute", "full"},
                                       {"offload.technique", "checkpoints"}});
}

// A tokenizer says to what texts are cut, where nothing else does; what it gets from elsewhere decides nothing.
TEST(LaunchReaders, ATokenizerSaysTheSequence) {
  const Folder folder;
  const auto sequence = [&](const std::string& tokenizer, const std::string& more = "") {
    return key(import_launch(request({folder.write(
                   "t.py",
                   "from transformers import TrainingArguments, AutoTokenizer, AutoModelForCausalLM\n"
                   "m = AutoModelForCausalLM.from_pretrained(\"gpt2\")\n" +
                       tokenizer + "a = TrainingArguments(output_dir=\"o\", bf16=True, per_device_train_batch_size=2" +
                       more + ")\n")})),
               "model.sequence");
  };
  EXPECT_EQ(sequence("t = AutoTokenizer.from_pretrained(\"gpt2\", model_max_length=512)\n"), "512");
  EXPECT_EQ(sequence("x = tokenizer(text, truncation=True, max_length=256)\n"), "256");
  EXPECT_EQ(sequence("x = tokenizer(text, truncation=True, max_length=longest(text))\n"), "(none)");
}

// What a run alone knows is asked for where it decides something, by its own words.
TEST(LaunchReaders, PythonsUnknownsAreAskedFor) {
  const Folder folder;
  ImportRequest asked =
      request({folder.write("t.py",
                            "import os\nfrom transformers import TrainingArguments, AutoModelForCausalLM\n"
                            "m = AutoModelForCausalLM.from_pretrained(\"gpt2\", token=os.environ[\"T\"])\n"
                            "a = TrainingArguments(output_dir=out(), bf16=True,\n"
                            "    per_device_train_batch_size=batch_of(m))\n")});
  EXPECT_THAT(complaint([&] { return import_launch(asked); }),
              AllOf(HasSubstr("line 5"), HasSubstr("per_device_train_batch_size"), HasSubstr("batch_of(m)")));
  asked.launch.given["batch_of(m)"] = "4";
  EXPECT_EQ(key(import_launch(asked), "model.micro_batch"), "4");
}

}  // namespace
}  // namespace spillway::launch
