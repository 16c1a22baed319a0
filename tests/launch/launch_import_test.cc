#include "launch/launch_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/launch_table.h"
#include "models/spec/model_spec.h"
#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

using test::complaint;
using test::defaulted;
using test::expect_keys;
using test::Folder;
using test::ignored;
using test::import_fixture;
using test::key;
using test::Keys;
using test::request;
using test::warns;
using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::pair<std::string, std::string>>& fixtures() {  // with the model of those that don't say theirs
  static const std::vector<std::pair<std::string, std::string>> all = {
      {"megatron-llama3-8b.sh", ""},   {"megatron-gpt3-175b.sh", ""},  {"megatron-mixtral-8x7b.sh", ""},
      {"megatron-own-sizes.args", ""}, {"megatron-core.yaml", ""},     {"bridge-overrides.sh", ""},
      {"titan-llama3-8b.toml", ""},    {"titan-llama3-405b.toml", ""}, {"ds-zero3.json", "llama-3-8b"},
      {"ds-alone.json", "gpt2-xl"},    {"hf-args.json", ""},           {"hf-run.sh", ""},
      {"fsdp.yaml", "llama-2-7b"},     {"accelerate-sft.sh", ""},      {"axolotl-full.yaml", ""},
      {"axolotl-qlora.yaml", ""},      {"nanotron-llama.yaml", ""}};
  return all;
}

// The lists have it, a warning its ends.
TEST(LaunchImport, WarningsQuoteNoValueWhole) {
  const Folder folder;
  std::string words;
  for (int i = 0; i < 5'000; ++i) words += " xyz";
  for (const std::string& value : {std::string(20'000, 'x'), "'" + words + "'"}) {
    const std::string path = folder.write("run.sh",
                                          "torchrun pretrain_gpt.py --micro-batch-size 1 --global-batch-size 8 "
                                          "--seq-length 128 --no-such-flag " +
                                              value + "\n");
    const LaunchImport import = launch::import_launch(request({path}, "gpt2-small"));
    EXPECT_TRUE(warns(import, "--no-such-flag"));
    EXPECT_TRUE(warns(import, "is left out: no flag that is known"));
    for (const std::string& warning : import.warnings) EXPECT_LE(warning.size(), 1'003u);
    EXPECT_GE(import.ignored.back().value.size(), 20'000u);
  }
}

// Never silent: understood + ignored = what the files say, each setting once.
TEST(LaunchImport, NoFlagIsDropped) {
  for (const auto& [name, model] : fixtures()) {
    const LaunchImport import = import_fixture(name, model);
    std::multiset<std::string> listed, given;
    for (const auto& each : import.understood) listed.insert(each.file + each.place + each.flag);
    for (const auto& each : import.ignored) listed.insert(each.file + each.place + each.flag);
    for (const LaunchSetting& each : read_launch({.paths = {test::fixture(name)}, .from = {}, .given = {}}).settings)
      given.insert(each.file + each.place + each.shown);
    EXPECT_EQ(listed, given) << name;
    EXPECT_GT(listed.size(), 7u) << name;
    for (const auto& each : import.ignored) {
      EXPECT_FALSE(each.reason.empty()) << name << " " << each.flag;
      const bool must_warn = each.kind >= IgnoreReason::time;
      EXPECT_TRUE(!must_warn || warns(import, each.flag)) << name << " " << each.flag;
    }
  }
}

// Each key of a scenario comes from a flag or a default.
TEST(LaunchImport, EachKeyIsAccountedFor) {
  for (const auto& [name, model] : fixtures()) {
    const LaunchImport import = import_fixture(name, model);
    std::map<std::string, std::string> wanted = defaulted(import);
    for (const auto& each : import.understood)
      if (!each.key.empty()) wanted[each.key] = each.set_to;
    for (const std::string& path : scenario_keys()) {
      const std::string value = key(import, path);
      if (path.starts_with("import.")) continue;
      if (value == "(none)" || path == "schema" || path == "version" || path == "title") continue;
      if (!wanted.contains(path)) {
        ADD_FAILURE() << name << ": nothing says " << path;
        continue;
      }
      EXPECT_EQ(wanted[path], value) << name << " " << path;
    }
  }
}

// A flag that none knows is unknown, wherever it stands.
TEST(LaunchImport, AFlagPutAnywhereIsListed) {
  const Folder folder;
  for (const char* flag : {"--no-such-flag", "--lr", "--tp-comm-overlap", "--swiglu", "--use-mcore-models"}) {
    const std::string path = folder.write("run.sh", std::string("#!/bin/bash\npython pretrain_gpt.py --num-layers 2 "
                                                                "--hidden-size 64 --num-attention-heads 2 ") +
                                                        flag + " --micro-batch-size 1 --vocab-size 512\n");
    const LaunchImport import = import_launch(request({path}));
    const auto is_flag = [&](const auto& each) { return each.flag == flag; };
    EXPECT_EQ(std::count_if(import.understood.begin(), import.understood.end(), is_flag) +
                  std::count_if(import.ignored.begin(), import.ignored.end(), is_flag),
              1)
        << flag;
    EXPECT_EQ(key(import, "model.micro_batch"), "1") << flag;
  }
}

// One that is known up to a letter is named.
TEST(LaunchImport, AMisspeltFlagHasItsRemedy) {
  const Folder folder;
  const LaunchImport import = import_launch(
      request({folder.write("run.sh",
                            "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 2 "
                            "--micro-batch-size 1 --vocab-size 512 --recompute-granularty full\n")}));
  const auto found = std::find_if(import.ignored.begin(), import.ignored.end(),
                                  [](const auto& each) { return each.flag == "--recompute-granularty"; });
  ASSERT_NE(found, import.ignored.end());
  EXPECT_EQ(found->reason, "no flag that is known: is it recompute-granularity?");
}

TEST(LaunchImport, MegatronScriptWithArrays) {
  const LaunchImport import = import_fixture("megatron-llama3-8b.sh");
  expect_keys(import, {{"model.name", "llama-3-8b"},
                       {"model.tensor_parallel", "2"},
                       {"model.sequence_parallel", "true"},
                       {"model.data_parallel", "8"},
                       {"model.global_batch", "128"},
                       {"model.micro_batch", "1"},
                       {"model.sequence", "8192"},
                       {"model.precision", "bf16_mixed"},
                       {"model.zero_stage", "1"},
                       {"model.overlap_gradients", "true"},
                       {"model.loss", "fused"},
                       {"model.framework", "megatron"},
                       {"memory.allocator", "torch-expandable"},
                       {"hardware.profile", "dgx-h100"}});
  EXPECT_EQ(ignored(import).at("--overlap-param-gather"), "time");
  EXPECT_EQ(ignored(import).at("--save"), "no_effect");  // though only a run knows where
  EXPECT_EQ(defaulted(import).at("hardware.profile"), "dgx-h100");
}

TEST(LaunchImport, MegatronStringsUnderSlurm) {
  const LaunchImport import = import_fixture("megatron-gpt3-175b.sh");
  expect_keys(import, {{"model.name", "gpt3-175b"},
                       {"model.data_parallel", "8"},  // 128 x 8 / (8 x 16)
                       {"model.pipeline_chunks", "6"},
                       {"model.recompute", "selective"},
                       {"model.overlap_gradients", "false"},
                       {"model.global_batch", "1536"}});
}

TEST(LaunchImport, MegatronExperts) {
  const LaunchImport import = import_fixture("megatron-mixtral-8x7b.sh");
  expect_keys(import, {{"model.name", "mixtral-8x7b"},
                       {"model.expert_parallel", "8"},
                       {"model.pipeline_chunks", "8"},
                       {"model.data_parallel", "8"},
                       {"model.recompute", "full"}});
  EXPECT_TRUE(warns(import, "$@"));
}

TEST(LaunchImport, SizesOfTheirOwnBecomeAModelFile) {
  const LaunchImport import = import_fixture("megatron-own-sizes.args");
  expect_keys(import, {{"model.name", "model.json"},
                       {"model.precision", "fp8_mixed"},
                       {"model.flash_attention", "false"},
                       {"model.data_parallel", "1"},
                       {"model.tensor_parallel", "4"}});
  const ModelSpec spec = parse_model(import.model, "model.json");
  EXPECT_EQ(spec.layers, 12);
  EXPECT_EQ(spec.feed_forward, 4 * 1536);
  EXPECT_EQ(spec.vocabulary, 49152);  // 49,000 to a multiple of 128 x 4
  EXPECT_EQ(spec.dropout, 0.1);
  EXPECT_EQ(spec.attention_dropout, 0.0);
  EXPECT_TRUE(spec.tied_embeddings && spec.qkv_bias);
  EXPECT_EQ(ignored(import).at("--no-such-flag"), "unknown");
  EXPECT_EQ(key(import, "model.cuda_graphs"), "attn,mamba,mlp");
}

TEST(LaunchImport, HybridsAreReadLetterByLetter) {
  const LaunchImport import = import_fixture("megatron-hybrid.sh");
  const ModelSpec spec = parse_model(import.model, "model.json");
  EXPECT_EQ(spec.layers, 18);
  EXPECT_EQ(spec.block(0).mixer, Mixer::mamba);
  EXPECT_EQ(spec.block(1).feed_forward, FeedForward::dense);
  EXPECT_EQ(spec.block(1).mixer, Mixer::none);
  EXPECT_EQ(spec.block(7).mixer, Mixer::attention);
  EXPECT_EQ(spec.mamba.heads, 2 * 4096 / 64);
  EXPECT_EQ(spec.mamba.state, 128);
  EXPECT_EQ(spec.activation, Activation::relu_squared);
  EXPECT_EQ(spec.positions, Positions::none);
  const Folder folder;
  const auto refused = [&folder](const std::string& pattern) {
    const std::string path = folder.write("run.args",
                                          "--num-layers 2 --hidden-size 64 --num-attention-heads 2 --vocab-size 512 "
                                          "--seq-length 64 --mamba-num-groups 1 --hybrid-override-pattern " +
                                              pattern + "\n");
    return complaint([&] { return import_launch(request({path})); });
  };
  EXPECT_EQ(refused("M-"), "");
  EXPECT_THAT(refused("MX"), HasSubstr("no kind of layer is 'X'"));
  EXPECT_THAT(refused("M-M"), HasSubstr("3 letters for 2 layers"));
}

TEST(LaunchImport, MegatronYamlAndBridge) {
  const LaunchImport core = import_fixture("megatron-core.yaml");
  expect_keys(core, {{"model.name", "gpt2-xl"},
                     {"model.pipeline_parallel", "4"},
                     {"model.recompute", "full"},
                     {"model.precision", "bf16_mixed"},
                     {"model.zero_stage", "1"},
                     {"model.data_parallel", "1"}});
  const LaunchImport bridge = import_fixture("bridge-overrides.sh");
  expect_keys(bridge, {{"model.name", "llama-2-7b"},
                       {"model.tensor_parallel", "4"},
                       {"model.data_parallel", "2"},
                       {"model.dropout", "0"},
                       {"model.overlap_gradients", "true"}});
}

TEST(LaunchImport, Torchtitan) {
  const LaunchImport small = import_fixture("titan-llama3-8b.toml");
  expect_keys(small, {{"model.name", "llama-3.1-8b"},
                      {"model.zero_stage", "3"},
                      {"model.data_parallel", "8"},
                      {"model.compile", "true"},
                      {"model.global_batch", "8"},
                      {"model.recompute", "operators"}});
  EXPECT_FALSE(warns(small, "activation_checkpoint.mode"));
  const LaunchImport large = import_fixture("titan-llama3-405b.toml");
  expect_keys(large, {{"model.name", "llama-3.1-405b"},
                      {"model.tensor_parallel", "8"},
                      {"model.sequence_parallel", "true"},
                      {"model.pipeline_parallel", "16"},
                      {"model.pipeline_schedule", "interleaved"},
                      {"model.pipeline_chunks", "2"},
                      {"model.data_parallel", "4"},
                      {"model.zero_stage", "2"},
                      {"model.micro_batch", "1"},
                      {"model.global_batch", "64"},
                      {"model.precision", "fp8_mixed"}});
  EXPECT_EQ(key(large, "model.shard_groups"), "2");
}

// -1: whatever GPUs are left over, of the machine's or of eight.
TEST(LaunchImport, TorchtitanShardsOverWhatIsLeft) {
  const Folder folder;
  ImportRequest asked = request({folder.write(
      "a.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\ntensor_parallel_degree = 2\n")});
  EXPECT_EQ(key(import_launch(asked), "model.data_parallel"), "4");
  EXPECT_TRUE(warns(import_launch(asked), "left over"));
  asked.machine = "dgx-h100-x4";
  EXPECT_EQ(key(import_launch(asked), "model.data_parallel"), "16");
}

// FSDP's hybrid sharding goes by machines, MiCS and Megatron-core say how many share or how many copies there are.
TEST(LaunchImport, GroupsThatShareOutACopy) {
  const Folder folder;
  const std::string accelerate =
      "accelerate launch --num_machines 4 --num_processes 32 --use_fsdp --fsdp_sharding_strategy ";
  const std::string rest = " train.py --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 1\n";
  for (const auto& [word, stage] : {std::pair("HYBRID_SHARD", "3"), std::pair("HYBRID_SHARD_ZERO2", "2")}) {
    std::string launch = accelerate;
    launch.append(word).append(rest);
    ImportRequest asked = request({folder.write("a.sh", launch)});
    asked.machine = "dgx-h100-x4";
    const LaunchImport import = import_launch(asked);
    EXPECT_EQ(key(import, "model.zero_stage"), stage);
    EXPECT_EQ(key(import, "model.shard_groups"), "4");
  }
  ImportRequest mics = request({folder.write(
      "d.json", R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1,
                    "zero_optimization": {"stage": 3, "mics_shard_size": 8}})")});
  mics.model = "gpt2-xl";
  EXPECT_EQ(key(import_launch(mics), "model.shard_groups"), "4");
}

TEST(LaunchImport, TrainingArgumentsWithDeepSpeed) {
  const Keys state = {{"model.zero_stage", "3"}, {"model.optimizer_device", "cpu"}, {"model.weight_device", "cpu"}};
  const LaunchImport args = import_fixture("hf-args.json");
  expect_keys(args, state);
  expect_keys(args, {{"model.name", "llama-3-8b"},
                     {"model.gradient_accumulation", "16"},
                     {"model.attention_kernel", "flash2"},
                     {"model.recompute", "full"}});
  EXPECT_EQ(ignored(args).at("train_batch_size"), "no_effect");  // auto
  const LaunchImport run = import_fixture("hf-run.sh");
  expect_keys(run, state);
  expect_keys(run, {{"model.name", "mistral-7b"},
                    {"model.data_parallel", "8"},
                    {"model.optimizer_form", "fused"},
                    {"model.precision", "bf16_mixed"}});  // torch_dtype notwithstanding
}

TEST(LaunchImport, DeepSpeedAlone) {
  const LaunchImport import = import_fixture("ds-alone.json", "gpt2-xl");
  expect_keys(import, {{"model.precision", "fp16_mixed"},
                       {"model.zero_stage", "2"},
                       {"model.data_parallel", "8"},  // 256 / (4 x 8)
                       {"model.bucket_bytes", "1000000000"},
                       {"model.phase_timers", "true"}});
  EXPECT_EQ(ignored(import).at("activation_checkpointing.cpu_checkpointing"), "memory-");
}

// Buckets as the frameworks have them where a launch says nothing of them, in whatever type gradients are kept.
TEST(LaunchImport, BucketsAreTheFrameworks) {
  const Folder folder;
  const auto bytes = [&](const LaunchImport& import) {
    const Scenario scenario = parse_scenario(import.scenario, "imported", "");
    return resolve(scenario.training, models::find_model(scenario.model)).bucket_bytes;
  };
  const auto megatron = [&](const std::string& flags) {
    return import_launch(request({folder.write("run.sh",
                                               "#!/bin/bash\ntorchrun --nproc_per_node 8 pretrain_gpt.py "
                                               "--micro-batch-size 1 --bf16 --overlap-grad-reduce " +
                                                   flags + "\n")},
                                 "gpt2-xl"));
  };
  EXPECT_EQ(key(megatron(""), "model.bucket_bytes"), "(none)");
  EXPECT_EQ(bytes(megatron("")), 160'000'000);
  EXPECT_EQ(bytes(megatron("--grad-reduce-in-bf16")), 80'000'000);
  EXPECT_EQ(bytes(megatron("--ddp-bucket-size 10000000")), 40'000'000);
  EXPECT_EQ(bytes(megatron("--ddp-bucket-size 10000000 --grad-reduce-in-bf16")), 20'000'000);
  const auto deepspeed = [&](const std::string& zero) {
    return import_launch(request({folder.write("ds.json",
                                               R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 8, "bf16": {"enabled": true}, "zero_optimization": {)" +
                                                   zero + "}}")},
                                 "gpt2-xl"));
  };
  EXPECT_EQ(bytes(deepspeed(R"("stage": 1)")), 1'000'000'000);
  EXPECT_EQ(bytes(deepspeed(R"("stage": 2)")), 1'000'000'000);
  EXPECT_EQ(bytes(deepspeed(R"("stage": 2, "reduce_bucket_size": 2e8)")), 400'000'000);
  EXPECT_EQ(bytes(deepspeed(R"("stage": 3)")), 1'000'000'000);
}

// What DeepSpeed's file leaves "auto" the Trainer sets by the model's width; what the file says stays.
TEST(LaunchImport, DeepspeedIsAFrameworkOfItsOwn) {
  const Folder folder;
  const auto import = [&](const std::string& arguments, const std::string& zero) {
    static_cast<void>(
        folder.write("ds.json", R"({"bf16": {"enabled": "auto"}, "zero_optimization": {)" + zero + R"(}})"));
    return import_launch(request(
        {folder.write("run.sh",
                      "#!/bin/bash\ntorchrun --nproc_per_node 8 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B "
                      "--per_device_train_batch_size 1 --bf16 --block_size 1024 --deepspeed ds.json" +
                          arguments + "\n")}));
  };
  const std::string open = R"("stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto")";
  expect_keys(import("", open), {{"model.framework", "deepspeed"},
                                 {"model.zero_stage", "3"},
                                 {"model.bucket_bytes", "25690112"},
                                 {"model.prefetch_elements", "11560550"},
                                 {"model.overlap_gradients", "true"},
                                 {"model.sub_group", "(none)"},
                                 {"model.leaf_modules", "(none)"}});
  expect_keys(import("", R"("stage": 3, "sub_group_size": 1e8, "overlap_comm": false, "leaf_module":
                            {"classes": ["Qwen3MoeSparseMoeBlock"]})"),
              {{"model.sub_group", "100000000"},
               {"model.overlap_gradients", "false"},
               {"model.leaf_modules", "true"},
               {"model.prefetch_elements", "(none)"}});
}

TEST(LaunchImport, AccelerateAndAxolotl) {
  const LaunchImport sft = import_fixture("accelerate-sft.sh");
  expect_keys(sft, {{"model.name", "qwen2.5-7b"},
                    {"model.data_parallel", "16"},
                    {"model.zero_stage", "3"},
                    {"model.late_prefetch", "true"},
                    {"model.micro_batch", "4"},
                    {"model.loss", "chunked"}});
  const LaunchImport full = import_fixture("axolotl-full.yaml");
  expect_keys(full, {{"model.name", "llama-2-7b"},
                     {"model.zero_stage", "3"},
                     {"model.optimizer_device", "cpu"},
                     {"model.weight_device", "cpu"},
                     {"model.optimizer_form", "fused"},
                     {"model.attention_kernel", "flash2"}});
  const LaunchImport qlora = import_fixture("axolotl-qlora.yaml");
  expect_keys(qlora, {{"model.trainable", "qlora"},
                      {"model.base_weights", "(none)"},  // qlora's own: twice quantized, as axolotl does
                      {"model.lora_rank", "32"},
                      {"model.lora_targets", "all_linear"},
                      {"model.optimizer", "adamw"},
                      {"model.optimizer_form", "fused"}});
  EXPECT_EQ(ignored(qlora).at("lora_alpha"), "no_effect");
}

// Of PEFT under trl and under LLaMA-Factory.
TEST(LaunchImport, Adapters) {
  const Folder folder;
  const auto of = [&](const std::string& flags) {
    return import_launch(request({folder.write("run.sh",
                                               "#!/bin/bash\npython sft.py --model_name_or_path "
                                               "meta-llama/Llama-2-7b-hf --bf16 true " +
                                                   flags + "\n")}));
  };
  const LaunchImport trl =
      of("--use_peft --load_in_4bit --lora_r 64 --lora_target_modules q_proj k_proj v_proj o_proj");
  expect_keys(trl, {{"model.trainable", "qlora"},
                    {"model.base_weights", "nf4"},
                    {"model.lora_rank", "64"},
                    {"model.lora_dropout", "0.05"},
                    {"model.lora_targets", "attention"}});
  expect_keys(
      of("--use_peft --load_in_8bit --use_bnb_nested_quant true --lora_dropout 0 --lora_target_modules all-linear"),
      {{"model.trainable", "lora"},
       {"model.base_weights", "int8"},
       {"model.lora_rank", "(none)"},
       {"model.lora_dropout", "0"},
       {"model.lora_targets", "all_linear"}});
  expect_keys(of("--finetuning_type lora --quantization_bit 4"), {{"model.trainable", "qlora"},
                                                                  {"model.base_weights", "(none)"},
                                                                  {"model.lora_rank", "8"},
                                                                  {"model.recompute", "full"},
                                                                  {"model.lora_targets", "all_linear"}});
  expect_keys(of("--use_peft --dtype float32"), {{"model.trainable", "lora"}, {"model.autocast", "true"}});
  const LaunchImport narrow = of("--use_peft --dtype bfloat16");
  expect_keys(narrow, {{"model.precision", "bf16"}, {"model.autocast", "(none)"}});
  EXPECT_FALSE(test::ignored(narrow).contains("--dtype"));
  const LaunchImport packed = of("--use_peft --load_in_4bit --dtype float32");
  expect_keys(packed, {{"model.precision", "bf16_mixed"}, {"model.autocast", "(none)"}});
  EXPECT_EQ(test::ignored(packed)["--dtype"], "memory+");
  expect_keys(of("--finetuning_type full"), {{"model.trainable", "(none)"}, {"model.recompute", "full"}});
  expect_keys(of("--finetuning_type lora --disable_gradient_checkpointing true"), {{"model.recompute", "none"}});
  // Modules that no key names: the least part that has them, and a word of it.
  const LaunchImport partial = of("--use_peft --lora_target_modules q_proj,v_proj,lm_head");
  expect_keys(partial, {{"model.trainable", "lora"}, {"model.lora_targets", "qkv"}});
  EXPECT_TRUE(warns(partial, "lm_head"));
  EXPECT_TRUE(warns(partial, "of some products alone"));
  expect_keys(of("--use_peft --lora_target_modules gate_proj up_proj down_proj"), {{"model.lora_targets", "mlp"}});
  expect_keys(of("--use_peft --lora_target_modules wq wk wv wo"), {{"model.lora_targets", "attention"}});
  // Without adapters every weight trains, and none is of 4 bits.
  const LaunchImport full = of("--lora_r 8 --load_in_4bit true --lora_target_modules all-linear");
  expect_keys(full, {{"model.trainable", "(none)"}, {"model.lora_rank", "(none)"}, {"model.lora_targets", "(none)"}});
  EXPECT_EQ(ignored(full).at("--lora_r"), "no_effect");
  EXPECT_TRUE(warns(full, "--load_in_4bit"));
}

// The Trainer's mixed precision is torch.autocast where weights are whole and in fp32.
TEST(LaunchImport, MixedPrecisionWithoutShardsIsAutocast) {
  const Folder folder;
  const auto autocast_of = [&](const std::string& flags) {
    return key(import_launch(request({folder.write("run.sh", "#!/bin/bash\npython run_clm.py " + flags + "\n")})),
               "model.autocast");
  };
  const std::string dense = "--model_name_or_path meta-llama/Llama-2-7b-hf ";
  EXPECT_EQ(autocast_of(dense + "--bf16 true"), "true");
  EXPECT_EQ(autocast_of(dense + "--fp16 true"), "true");
  EXPECT_EQ(autocast_of(dense + "--bf16 false"), "(none)");
  EXPECT_EQ(autocast_of(dense), "(none)");
  EXPECT_EQ(autocast_of(dense + "--bf16 true --torch_dtype bfloat16"), "(none)");
  EXPECT_EQ(autocast_of(dense + "--bf16 true --fsdp full_shard"), "true");  // over one GPU nothing is sharded
  EXPECT_EQ(autocast_of(dense + "--bf16 true --use_peft"), "(none)");
  EXPECT_EQ(autocast_of("--model_name_or_path mistralai/Mixtral-8x7B-v0.1 --bf16 true"), "(none)");
  const LaunchImport sharded = import_fixture("fsdp.yaml", "llama-2-7b");
  EXPECT_EQ(key(sharded, "model.autocast"), "(none)");
}

// A second file completes the first, and what it says again wins.
TEST(LaunchImport, SeveralFilesOfOneLaunch) {
  const Folder folder;
  const std::string more =
      folder.write("more.yaml", "per_device_train_batch_size: 3\nmodel_name_or_path: gpt2\nbf16: true\n");
  const std::string again = folder.write("again.yaml", "per_device_train_batch_size: 5\nbf16: true\n");
  const LaunchImport import = import_launch(request({test::fixture("fsdp.yaml"), more, again}));
  expect_keys(import, {{"model.name", "gpt2-small"}, {"model.micro_batch", "5"}, {"model.data_parallel", "16"}});
  EXPECT_EQ(ignored(import).at("per_device_train_batch_size"), "overridden");
}

TEST(LaunchImport, TheMachineAndTheModelCanBeSaid) {
  ImportRequest asked = request({test::fixture("titan-llama3-8b.toml")}, "llama-2-7b");
  asked.machine = "dgx-a100";
  const LaunchImport import = import_launch(asked);
  expect_keys(import, {{"model.name", "llama-2-7b"}, {"hardware.profile", "dgx-a100"}});
  EXPECT_EQ(ignored(import).at("model.flavor"), "overridden");
}

// BERT's sizes are no GPT's.
TEST(LaunchImport, OtherProgramsNeedTheirModelSaid) {
  const Folder folder;
  const std::string path =
      folder.write("run.sh",
                   "#!/bin/bash\npython pretrain_bert.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
                   "--seq-length 512 --micro-batch-size 4\n");
  EXPECT_THAT(complaint([&] { return import_launch(request({path})); }), HasSubstr("pretrain_bert.py"));
  EXPECT_EQ(key(import_launch(request({path}, "bert-large")), "model.name"), "bert-large");
}

TEST(LaunchImport, WhatCannotBeIsRefusedAtItsPlace) {
  const Folder folder;
  const std::string sizes = "--num-layers 2 --hidden-size 64 --num-attention-heads 2 --vocab-size 512 --seq-length 64 ";
  const auto refused = [&](const std::string& flags) {
    const std::string path = folder.write("run.args", flags + "\n");
    return complaint([&] { return import_launch(request({path})); });
  };
  EXPECT_EQ(refused(sizes), "");
  EXPECT_THAT(refused(sizes + "--micro-batch-size many"), AllOf(HasSubstr("line 1"), HasSubstr("many")));
  EXPECT_THAT(refused(sizes + "--tensor-model-parallel-size 3"), HasSubstr("--tensor-model-parallel-size"));
  EXPECT_THAT(refused(sizes + "--world-size 3 --tensor-model-parallel-size 2"), HasSubstr("3 GPUs"));
  EXPECT_THAT(refused(sizes + "--tensor-model-parallel-size 0"), HasSubstr("0 parts"));
  EXPECT_THAT(refused(sizes + "--pipeline-model-parallel-size 9000000000000000000"), HasSubstr("too large"));
  EXPECT_THAT(refused(sizes + "--hidden-dropout 2"), HasSubstr("probability"));
  EXPECT_THAT(refused("--num-layers 2 --hidden-size 64 --micro-batch-size 1"), HasSubstr("--num-attention-heads"));
  EXPECT_THAT(refused("--micro-batch-size 1 --bf16"), HasSubstr("--model"));
  EXPECT_THAT(complaint([&] { return import_fixture("ds-zero3.json"); }), HasSubstr("--model"));
}

TEST(LaunchImport, Nanotron) {
  const LaunchImport import = import_fixture("nanotron-llama.yaml");
  EXPECT_EQ(import.format, "nanotron");
  expect_keys(import, {{"model.name", "llama-3.1-8b"},
                       {"model.framework", "nanotron"},
                       {"model.data_parallel", "8"},
                       {"model.tensor_parallel", "4"},
                       {"model.sequence_parallel", "true"},
                       {"model.pipeline_parallel", "2"},
                       {"model.pipeline_schedule", "1f1b"},
                       {"model.zero_stage", "1"},
                       {"model.micro_batch", "2"},
                       {"model.gradient_accumulation", "16"},
                       {"model.sequence", "4096"},
                       {"model.precision", "bf16_mixed"},
                       {"model.attention_kernel", "flash2"},
                       {"model.bucket_bytes", "26214400"}});
  EXPECT_TRUE(warns(import, "tp_linear_async_communication"));
}

// What a short file leaves to nanotron: all forward, all backward, a head of its own, a decoder without biases.
TEST(LaunchImport, NanotronsDefaults) {
  const Folder folder;
  const auto import_of = [&](const std::string& model, const std::string& more) {
    return import_launch(request({folder.write("c.yaml", "model: {model_config: {" + model + "}}\n" + more)}));
  };
  const std::string sizes =
      "hidden_size: 512, num_hidden_layers: 6, num_attention_heads: 8, intermediate_size: 1536, vocab_size: 50001";
  const std::string rest =
      "tokens: {sequence_length: 256, micro_batch_size: 4, batch_accumulation_per_replica: 8}\n"
      "optimizer: {zero_stage: 0, accumulate_grad_in_fp32: false}\n";
  const LaunchImport stages = import_of(sizes, rest + "parallelism: {dp: 1, tp: 2, pp: 2}\n");
  expect_keys(stages, {{"model.pipeline_schedule", "gpipe"},
                       {"model.precision", "bf16"},
                       {"model.zero_stage", "0"},
                       {"model.sequence_parallel", "(none)"},
                       {"model.optimizer_form", "fused"}});
  EXPECT_THAT(stages.model, AllOf(HasSubstr("50002"), HasSubstr("rms_norm"), HasSubstr("silu_gated"),
                                  HasSubstr("rotary"), testing::Not(HasSubstr("tied"))));
  const LaunchImport one =
      import_of(sizes + ", tie_word_embeddings: true", rest + "parallelism: {dp: 2, tp: 1, pp: 1}\n");
  expect_keys(one, {{"model.pipeline_schedule", "(none)"}, {"model.data_parallel", "2"}});
  EXPECT_THAT(one.model, HasSubstr("\"tied_embeddings\": true"));
  EXPECT_THAT(complaint([&] {
                return import_of(sizes + ", is_starcoder2_config: true", rest + "parallelism: {dp: 1, tp: 1, pp: 1}\n");
              }),
              AllOf(HasSubstr("c.yaml"), HasSubstr("not a GPT's"), HasSubstr("--model")));
}

}  // namespace
}  // namespace spillway::launch
