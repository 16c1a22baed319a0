// What an import owes: a flag changes the scenario, or is listed with what it does; what it leaves open or can't say
// comes back with the verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/launch_import.h"
#include "launch/launch_table.h"
#include "scenario/scenario.h"
#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

using test::complaint;
using test::Folder;
using test::ignored;
using test::key;
using test::request;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Settings = std::map<std::string, std::string>;

// Formats whose rows are tried here; launch_readers_test.cc has those of other launchers.
bool is_tried(LaunchFormat format) {
  return format == LaunchFormat::megatron || format == LaunchFormat::torchtitan || format == LaunchFormat::deepspeed ||
         format == LaunchFormat::accelerate || format == LaunchFormat::hf || format == LaunchFormat::nanotron ||
         format == LaunchFormat::launcher || format == LaunchFormat::environment;
}

// A launch of each framework, in which most flags have a part to play.
Settings settings_of(LaunchFormat format) {
  if (format == LaunchFormat::torchtitan)
    return {{"model.name", "llama3"},
            {"model.flavor", "8B"},
            {"parallelism.tensor_parallel_degree", "2"},
            {"parallelism.pipeline_parallel_degree", "2"},
            {"parallelism.data_parallel_shard_degree", "4"},
            {"training.local_batch_size", "8"}};
  if (format == LaunchFormat::deepspeed)
    return {{"train_micro_batch_size_per_gpu", "2"}, {"bf16.enabled", "true"}, {"zero_optimization.stage", "3"}};
  if (format == LaunchFormat::accelerate)
    return {{"distributed_type", "FSDP"}, {"num_processes", "8"}, {"mixed_precision", "bf16"}};
  if (format == LaunchFormat::hf)
    return {{"model_name_or_path", "meta-llama/Llama-2-7b-hf"},
            {"per_device_train_batch_size", "2"},
            {"bf16", "true"},
            {"fsdp", "full_shard"},
            {"max_seq_length", "1024"}};
  if (format == LaunchFormat::nanotron)
    return {{"parallelism.dp", "2"},
            {"parallelism.tp", "2"},
            {"tokens.micro_batch_size", "1"},
            {"tokens.sequence_length", "1024"},
            {"model.model_config.num_hidden_layers", "8"},
            {"model.model_config.hidden_size", "512"},
            {"model.model_config.num_attention_heads", "8"},
            {"model.model_config.intermediate_size", "2048"},
            {"model.model_config.vocab_size", "32000"}};
  return {{"num-layers", "8"},
          {"hidden-size", "512"},
          {"num-attention-heads", "8"},
          {"vocab-size", "50304"},
          {"seq-length", "1024"},
          {"micro-batch-size", "1"},
          {"global-batch-size", "64"},
          {"tensor-model-parallel-size", "2"},
          {"pipeline-model-parallel-size", "2"},
          {"swiglu", "true"},
          {"disable-bias-linear", "true"},
          {"num-experts", "8"},
          {"moe-router-topk", "2"},
          {"recompute-granularity", "full"}};
}

bool is_word(const std::string& value) { return value != "true" && value != "false" && !whole_number(value); }

// As the framework's file, or its command, has them; `extra` is a flag of what starts it, or a variable.
std::string launch_text(LaunchFormat format, const Settings& settings,
                        const std::pair<std::string, std::string>& extra) {
  std::string text;
  if (format == LaunchFormat::torchtitan) {
    for (const auto& [name, value] : settings)
      text += '"' + name + "\" = " + (is_word(value) ? '"' + value + '"' : value) + '\n';
    return text + "[training]\nsteps = 10\n";
  }
  if (format == LaunchFormat::deepspeed) {
    for (const auto& [name, value] : settings)
      text += (text.empty() ? "{\"" : ", \"") + name + "\": " + (is_word(value) ? '"' + value + '"' : value);
    return text + "}";
  }
  if (format == LaunchFormat::accelerate || format == LaunchFormat::hf || format == LaunchFormat::nanotron) {
    for (const auto& [name, value] : settings) text += name + ": " + value + '\n';
    return text;
  }
  const bool starts = format == LaunchFormat::launcher && !extra.first.empty();
  if (format == LaunchFormat::environment && !extra.first.empty())
    text = "export " + extra.first + "=" + extra.second + "\n";
  text += "torchrun --nproc_per_node 8" + (starts ? " --" + extra.first + " " + extra.second : "") + " pretrain_gpt.py";
  for (const auto& [name, value] : settings) text += " --" + name + (value == "true" ? "" : " " + value);
  return text + "\n";
}

class Launches {
 public:
  // The launch with one more flag, or none; nullopt: it is refused.
  std::optional<LaunchImport> with(LaunchFormat format, const std::string& flag, const std::string& value) const {
    Settings settings = settings_of(format);
    std::pair<std::string, std::string> extra;
    if (format == LaunchFormat::launcher || format == LaunchFormat::environment)
      extra = {flag, value};
    else if (!flag.empty())
      settings[flag] = value;
    ImportRequest asked = request({folder_.write("launch", launch_text(format, settings, extra))});
    const bool has_model = settings.contains("num-layers") || settings.contains("model_name_or_path") ||
                           settings.contains("model.flavor") || format == LaunchFormat::nanotron;
    if (!has_model) asked.model = "gpt2-xl";
    if (format != LaunchFormat::launcher && format != LaunchFormat::environment) asked.launch.from = format;
    try {
      return import_launch(asked);
    } catch (const InputError& error) {
      complaint_ = error.what();
      return std::nullopt;
    }
  }

  // Of the last one that was refused.
  const std::string& complaint() const { return complaint_; }

 private:
  mutable std::string complaint_;
  Folder folder_;
};

std::vector<std::string> their_values(const LaunchFlag& row) {
  if (row.values == "#") return {"2", "3", "4", "1"};
  std::vector<std::string> values;
  for (const std::string& pair : listed_words(row.values))
    if (const std::string theirs = pair.substr(0, pair.rfind('=')); theirs != "*") values.push_back(theirs);
  return values;
}

bool is_listed(const LaunchImport& import, const std::string& flag) {
  return std::any_of(import.ignored.begin(), import.ignored.end(),
                     [&](const IgnoredFlag& each) { return each.flag == flag || each.flag == "--" + flag; });
}

// Understood without a change would be a switch that is dropped.
TEST(LaunchContract, WhatIsUnderstoodChangesTheScenario) {
  const Launches launches;
  for (const LaunchFlag& row : launch_flags()) {
    if (row.role != FlagRole::value || row.values.empty() || !is_tried(row.format)) continue;
    const auto plain = launches.with(row.format, "", "");
    ASSERT_TRUE(plain) << launches.complaint();
    bool does = false;
    std::string tried;
    for (const std::string& value : their_values(row)) {
      const auto import = launches.with(row.format, row.flag, value);
      tried += " " + value;
      does = does || !import || is_listed(*import, row.flag) || import->scenario != plain->scenario ||
             import->model != plain->model;
    }
    EXPECT_TRUE(does) << launch_format_words()[row.format].name << " " << row.flag << tried;
  }
}

// A flag that changes memory and has no key is in the scenario, so that a verdict a week later still hangs on it.
TEST(LaunchContract, WhatCannotBeSaidIsInTheScenario) {
  const Launches launches;
  for (const LaunchFlag& row : launch_flags()) {
    if (row.role < FlagRole::time || !is_tried(row.format) || row.flag.find('*') != std::string::npos) continue;
    const auto import = launches.with(row.format, row.flag, "7");
    ASSERT_TRUE(import) << row.flag << ": " << launches.complaint();
    const Scenario scenario = parse_scenario(import->scenario, "imported", "");
    const auto found = std::find_if(
        scenario.imported.unsayable.begin(), scenario.imported.unsayable.end(),
        [&](const scenario::UnsayableFlag& each) { return each.flag == row.flag || each.flag == "--" + row.flag; });
    ASSERT_NE(found, scenario.imported.unsayable.end()) << row.flag;
    EXPECT_EQ(scenario::launch_effect_words()[found->effect].name, to_string(row.role)) << row.flag;
    EXPECT_EQ(found->at_most.has_value(), row.bytes_each > 0) << row.flag;
    EXPECT_THAT(found->place, HasSubstr("launch: ")) << row.flag;
  }
}

// A section that says a model, its layers or how state is shared out is not passed over in whole: what a row doesn't
// name there is unknown.
TEST(LaunchContract, NoModelIsPassedOverInWhole) {
  for (const LaunchFlag& row : launch_flags()) {
    if (row.role != FlagRole::no_effect || !row.flag.ends_with(".*")) continue;
    for (const std::string_view section :
         {"model.", "fsdp_config.", "zero_optimization.", "parallelism.", "model_config.", "distributed."})
      EXPECT_NE(row.flag, std::string(section) + "*") << launch_format_words()[row.format].name;
  }
}

// Every flag misspelt is unknown, and the scenario says so.
TEST(LaunchContract, WhatNobodyKnowsIsInTheScenario) {
  const Launches launches;
  for (const LaunchFormat format : {LaunchFormat::megatron, LaunchFormat::torchtitan, LaunchFormat::deepspeed,
                                    LaunchFormat::accelerate, LaunchFormat::hf, LaunchFormat::nanotron}) {
    const auto import = launches.with(format, "zzz_no_such", "7");
    ASSERT_TRUE(import) << launches.complaint();
    EXPECT_THAT(import->scenario, HasSubstr(R"("effect": "unknown")")) << launch_format_words()[format].name;
  }
}

std::vector<std::string> open_keys(const LaunchImport& import) {
  std::vector<std::string> keys;
  for (const UnstatedKey& each : import.unstated) keys.push_back(each.key);
  return keys;
}

LaunchImport import_text(const std::string& text, const std::string& model = "llama-3-8b") {
  const Folder folder;
  return import_launch(request({folder.write("launch", text)}, model));
}

TEST(LaunchContract, WhatNothingStatesIsOpen) {
  const std::string automatic = R"({"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"},
      "zero_optimization": {"stage": 3}})";
  EXPECT_THAT(open_keys(import_text(automatic)), ElementsAre("model.micro_batch", "model.sequence", "model.precision"));
  const std::string stated = R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}})";
  EXPECT_THAT(open_keys(import_text(stated)), ElementsAre("model.sequence"));
  EXPECT_EQ(key(import_text(stated), "model.precision"), "fp32") << "neither is enabled";
  EXPECT_THAT(open_keys(import_text("distributed_type: FSDP\nnum_processes: 8\nmixed_precision: bf16\n")),
              ElementsAre("model.micro_batch", "model.sequence"));
  EXPECT_THAT(open_keys(import_text("base_model: NousResearch/Llama-2-7b-hf\nmicro_batch_size: 2\n", "")), IsEmpty())
      << "axolotl's own defaults";
  EXPECT_THAT(open_keys(import_text("per_device_train_batch_size: 2\nbf16: true\n")), ElementsAre("model.sequence"));
}

// A key that is open no longer is where the scenario has it.
TEST(LaunchContract, AStatedKeyIsNotOpen) {
  const LaunchImport import = import_text("per_device_train_batch_size: 2\nbf16: true\n");
  const std::vector<std::string> settings = {"model.sequence=4096"};
  EXPECT_THAT(parse_scenario(import.scenario, "x", "").imported.open, ElementsAre("model.sequence"));
  EXPECT_THAT(parse_scenario(import.scenario, "x", "", settings).imported.open, IsEmpty());
}

// Switches that have a key of ours.
TEST(LaunchContract, NothingThatHasAKeyIsDropped) {
  const std::string axolotl = "base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 1\nbf16: true\n";
  const auto has = [&](const std::string& more, const Settings& keys) {
    const LaunchImport import = import_text(axolotl + more, "");
    for (const auto& [path, value] : keys) EXPECT_EQ(key(import, path), value) << more << path;
  };
  has("", {{"model.precision", "bf16"}, {"model.zero_stage", "(none)"}});
  has("fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n", {{"model.zero_stage", "3"}});
  has("fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: false\n", {{"model.zero_stage", "2"}});
  has("cut_cross_entropy: true\n", {{"model.loss", "chunked"}});
  has("plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n", {{"model.loss", "chunked"}});
  has("optimizer: adamw_torch_8bit\n", {{"model.optimizer", "adamw_8bit"}});
  has("gradient_checkpointing: offload\n",
      {{"model.recompute", "full"}, {"offload.technique", "checkpoints"}, {"offload.tier", "host"}});
  has("gradient_checkpointing: true\nactivation_offloading: disk\n",
      {{"offload.technique", "checkpoints"}, {"offload.tier", "drive"}});
  has("adapter: lora\nlora_target_modules: [self_attn.q_proj, self_attn.v_proj, self_attn.k_proj, self_attn.o_proj]\n",
      {{"model.lora_targets", "attention"}, {"model.precision", "bf16_mixed"}});
  has("sequence_parallel_degree: 2\n", {{"model.context_parallel", "2"}});
  has("deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json\n", {{"model.zero_stage", "3"},
                                                                        {"model.optimizer_device", "cpu"},
                                                                        {"model.weight_device", "cpu"},
                                                                        {"model.precision", "bf16_mixed"}});
}

TEST(LaunchContract, DeepSpeedByName) {
  const std::string args = "per_device_train_batch_size: 1\nmax_seq_length: 4096\nbf16: true\ndeepspeed: ";
  EXPECT_EQ(key(import_text(args + "zero3\n"), "model.zero_stage"), "3");
  EXPECT_EQ(key(import_text(args + "zero2_offload\n"), "model.optimizer_device"), "cpu");
  EXPECT_THAT(import_text(args + "examples/ds_z2_config.json\n").warnings, Contains(HasSubstr("is not there")));
  EXPECT_THAT(import_text(args + "zero3\n").warnings, IsEmpty());
  EXPECT_EQ(key(import_text(args + "examples/ds_z3_offload_config.json\n"), "model.weight_device"), "cpu");
  EXPECT_THAT(complaint([&] { return import_text(args + "zero9\n"); }), HasSubstr("zero2_offload"));
  EXPECT_THAT(complaint([&] { return import_text(args + "own.json\n"); }), HasSubstr("own.json"));
}

TEST(LaunchContract, MegatronsWords) {
  const Folder folder;
  const auto import = [&](const std::string& flags) {
    return import_launch(
        request({folder.write("run.args",
                              "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --swiglu --disable-bias-linear "
                              "--vocab-size 512 --seq-length 64 --bf16 --micro-batch-size 2 --global-batch-size 32 "
                              "--world-size 8 " +
                                  flags + "\n")}));
  };
  const LaunchImport block = import("--recompute-granularity full --recompute-method block --recompute-num-layers 3");
  EXPECT_EQ(key(block, "model.recompute"), "full");
  EXPECT_EQ(key(block, "model.recompute_layers"), "3");
  const LaunchImport uniform =
      import("--recompute-granularity full --recompute-method uniform --recompute-num-layers 4");
  EXPECT_EQ(ignored(uniform).at("--recompute-num-layers"), "memory~");
  const std::string experts = "--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 4 ";
  EXPECT_EQ(key(import(experts + "--moe-token-dispatcher-type flex"), "model.expert_dispatcher"), "deepep");
  EXPECT_EQ(key(import(experts + "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep"),
                "model.expert_dispatcher"),
            "hybridep");
  EXPECT_EQ(key(import(experts + "--moe-token-dispatcher-type alltoall"), "model.expert_dispatcher"), "(none)");
  EXPECT_EQ(key(import(experts + "--tensor-model-parallel-size 2 --sequence-parallel --expert-tensor-parallel-size 1"),
                "model.expert_tensor_parallel"),
            "1");
  const LaunchImport cpu = import(
      "--use-distributed-optimizer --optimizer-cpu-offload --use-precision-aware-optimizer "
      "--overlap-cpu-optimizer-d2h-h2d");
  EXPECT_EQ(key(cpu, "model.optimizer_device"), "cpu");
  EXPECT_EQ(key(cpu, "model.master_remainders"), "(none)");
  EXPECT_EQ(ignored(cpu).at("--overlap-cpu-optimizer-d2h-h2d"), "time");
}

}  // namespace
}  // namespace spillway::launch
