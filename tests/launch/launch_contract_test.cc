// What an import owes: a flag changes the scenario, or is listed with what it does; what it leaves open or can't say
// comes back with the verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_import.h"
#include "launch/launch_table.h"
#include "scenario/scenario.h"
#include "tests/launch/launch_corpus.h"

namespace spillway::launch {
namespace {

using test::complaint;
using test::CorpusLaunch;
using test::expect_keys;
using test::fixture;
using test::Folder;
using test::ignored;
using test::key;
using test::Keys;
using test::request;
using test::text_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Settings = std::map<std::string, std::string>;

// Rows are tried on the launches of the corpus, by a file beside them that says one setting more.
class Launches {
 public:
  Launches() {
    for (const CorpusLaunch& each : test::corpus()) {
      if (!each.refused.empty()) continue;
      const std::string text = text_of(fixture(each.file));
      by_format_[static_cast<LaunchFormat>(*launch_format_words().find(each.launcher))].push_back(each);
      if (each.file.ends_with(".sh")) by_format_[LaunchFormat::environment].push_back(each);
      for (const LaunchFormat format : {LaunchFormat::launcher, LaunchFormat::accelerate})
        if (each.file.ends_with(".sh") && text.find(starter(format)) != std::string::npos)
          by_format_[format].push_back(each);
    }
  }

  [[nodiscard]] const std::vector<CorpusLaunch>& of(LaunchFormat format) const { return by_format_.at(format); }

  // nullopt: it is refused.
  std::optional<LaunchImport> with(const CorpusLaunch& launch, LaunchFormat format, const Settings& more) {
    if (!more.empty()) return made(launch, format, more);
    auto& plain = plain_[launch.file];
    if (!plain) plain = made(launch, format, more);
    return plain;
  }

  // Of the last one that was refused.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }

 private:
  std::optional<LaunchImport> made(const CorpusLaunch& launch, LaunchFormat format, const Settings& more) {
    nlohmann::json document = nlohmann::json::object();
    std::string text = text_of(fixture(launch.file));
    for (const auto& [flag, value] : more) {
      if (format == LaunchFormat::environment)
        text = "export " + flag + "=" + value + "\n" + text;
      else if (format == LaunchFormat::launcher || (format == LaunchFormat::accelerate && launch.file.ends_with(".sh")))
        text.insert(text.find(starter(format)) + starter(format).size(), "--" + flag + " " + value + " ");
      else
        document[flag] = value;
    }
    std::vector<std::string> paths = {fixture(launch.file)};
    if (document.empty() && !more.empty()) paths = {folder_.write("launch.sh", text)};
    if (!document.empty()) paths.push_back(folder_.write("more.json", document.dump()));
    try {
      return test::import_of(launch, paths);
    } catch (const InputError& error) {
      complaint_ = error.what();
      return std::nullopt;
    }
  }

  static std::string_view starter(LaunchFormat format) {
    return format == LaunchFormat::accelerate ? "accelerate launch " : "torchrun ";
  }

  std::map<LaunchFormat, std::vector<CorpusLaunch>> by_format_;
  std::map<std::string, std::optional<LaunchImport>> plain_;
  std::string complaint_;
  test::CorpusFolder folder_;
};

// What the row takes; of those that take any text, texts that mean something to one or another.
std::vector<std::string> their_values(const LaunchFlag& row) {
  if (row.values.empty())
    return {"Qwen/Qwen3-0.6B",
            "0.25",
            "q_proj",
            "shard_grad_op",
            "CutCrossEntropyPlugin",
            "qwen3_0.6b",
            "attn",
            "mlp",
            "expandable_segments:True",
            "0,1",
            "128,0",
            "([0]*2+[1]*59)",
            "GPT2BPETokenizer",
            "rank=64, update_proj_gap=50"};
  std::vector<std::string> values;
  for (std::string theirs : listed_words(row.values)) {
    theirs = theirs.substr(0, theirs.rfind('='));
    std::erase(theirs, '*');
    if (theirs == "#")
      for (const char* number : {"2", "3", "4", "1"}) values.emplace_back(number);
    else
      values.push_back(theirs.starts_with('.') ? "a" + theirs : theirs);
  }
  return values;
}

bool is_of(const std::string& flag, const std::string& name) { return flag == name || flag == "--" + name; }

bool is_unsayable(const LaunchImport& import, const std::string& name) {
  return std::any_of(import.unsayable.begin(), import.unsayable.end(),
                     [&](const scenario::UnsayableFlag& each) { return is_of(each.flag, name); });
}

bool is_listed(const LaunchImport& import, const std::string& name) {
  return std::any_of(import.understood.begin(), import.understood.end(),
                     [&](const UnderstoodFlag& each) { return is_of(each.flag, name); }) ||
         std::any_of(import.ignored.begin(), import.ignored.end(),
                     [&](const IgnoredFlag& each) { return is_of(each.flag, name); });
}

// Whether some value of the row changes the answer beside these others, is said to be left out or is refused.
bool does_something(Launches& launches, const CorpusLaunch& launch, const LaunchFlag& row, const Settings& others) {
  const auto plain = launches.with(launch, row.format, others);
  if (!plain) return false;
  for (const std::string& value : their_values(row)) {
    Settings more = others;
    more[row.flag] = value;
    const auto import = launches.with(launch, row.format, more);
    if (!import || is_unsayable(*import, row.flag) || import->warnings != plain->warnings ||
        test::answer(*import) != test::answer(*plain))
      return true;
    EXPECT_TRUE(is_listed(*import, row.flag)) << row.flag << " " << value << " of " << launch.file;
  }
  return false;
}

// Some have a part to play beside another alone, which has most often the same key or begins alike.
bool does_something_beside_another(Launches& launches, const LaunchFlag& row) {
  std::vector<const LaunchFlag*> others;
  for (const LaunchFlag& other : launch_flags())
    if (other.format == row.format && other.role == FlagRole::value && other.flag != row.flag) others.push_back(&other);
  const auto likeness = [&row](const LaunchFlag* other) {
    const auto differ = std::mismatch(row.flag.begin(), row.flag.end(), other->flag.begin(), other->flag.end());
    return (other->key == row.key ? 1000 : 0) + (differ.first - row.flag.begin());
  };
  std::stable_sort(others.begin(), others.end(),
                   [&](const LaunchFlag* a, const LaunchFlag* b) { return likeness(a) > likeness(b); });
  return std::any_of(others.begin(), others.end(), [&](const LaunchFlag* other) {
    const std::vector<std::string> values = their_values(*other);
    return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
      return does_something(launches, launches.of(row.format).front(), row, {{other->flag, value}});
    });
  });
}

// Understood without a change would be a switch that is dropped.
TEST(LaunchContract, WhatIsUnderstoodChangesTheScenario) {
  Launches launches;
  for (const LaunchFlag& row : launch_flags()) {
    if (row.role != FlagRole::value) continue;
    const std::vector<CorpusLaunch>& all = launches.of(row.format);
    const bool does = std::any_of(
        all.begin(), all.end(), [&](const CorpusLaunch& launch) { return does_something(launches, launch, row, {}); });
    EXPECT_TRUE(does || does_something_beside_another(launches, row))
        << launch_format_words()[row.format].name << " " << row.flag;
  }
}

// A flag that changes memory and has no key is in the scenario, so that a verdict a week later still hangs on it.
TEST(LaunchContract, WhatCannotBeSaidIsInTheScenario) {
  Launches launches;
  for (const LaunchFlag& row : launch_flags()) {
    const bool is_otherwise = row.role == FlagRole::as_modelled && !row.values.empty();
    if (row.role < FlagRole::time && !is_otherwise) continue;
    std::string flag = row.flag;
    if (const std::size_t star = flag.find('*'); star != std::string::npos) flag.replace(star, 1, "zzz");
    if (find_flag(row.format, flag) != &row) continue;  // another one's beginning is longer
    const auto import = launches.with(launches.of(row.format).front(), row.format, {{flag, "7"}});
    ASSERT_TRUE(import) << flag << ": " << launches.complaint();
    const Scenario scenario = parse_scenario(import->scenario, "imported", "");
    const auto found = std::find_if(scenario.imported.unsayable.begin(), scenario.imported.unsayable.end(),
                                    [&](const scenario::UnsayableFlag& each) { return is_of(each.flag, flag); });
    ASSERT_NE(found, scenario.imported.unsayable.end()) << launch_format_words()[row.format].name << " " << flag;
    EXPECT_EQ(scenario::launch_effect_words()[found->effect].name, to_string(is_otherwise ? row.otherwise : row.role))
        << flag;
    EXPECT_EQ(found->at_most.has_value(), row.bytes_each > 0) << flag;
    EXPECT_THAT(found->place, HasSubstr(": ")) << flag;
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

// What no table has is unknown, and the scenario says so.
TEST(LaunchContract, WhatNobodyKnowsIsInTheScenario) {
  Launches launches;
  for (std::size_t i = 0; i < named_launch_formats; ++i) {
    const auto format = static_cast<LaunchFormat>(i);
    const auto import = launches.with(launches.of(format).front(), format, {{"zzz_no_such", "7"}});
    ASSERT_TRUE(import) << launches.complaint();
    EXPECT_TRUE(is_unsayable(*import, "zzz_no_such")) << launch_format_words()[format].name;
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
  has("cut_cross_entropy: true\ntensor_parallel_size: 2\n", {{"model.loss", "fused"}});
  has("optimizer: adamw_torch_8bit\n", {{"model.optimizer", "torchao_8bit"}});
  has("optimizer: adamw_torch_8bit\nfsdp_version: 2\nfsdp_config:\n  offload_params: true\n",
      {{"model.optimizer", "adamw"}, {"model.optimizer_device", "cpu"}});
  has("optimizer: muon\nfsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n",
      {{"model.optimizer", "muon"}, {"model.zero_stage", "3"}});
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

// Liger puts in what it has for a model, unless a switch says otherwise.
TEST(LaunchContract, LigersKernels) {
  const std::string args = "per_device_train_batch_size: 1\nmax_seq_length: 4096\nbf16: true\n";
  const Keys all = {{"model.loss", "chunked"},
                    {"model.fused_norms", "true"},
                    {"model.fused_rotary", "true"},
                    {"model.fused_gate", "true"}};
  expect_keys(import_text(args + "use_liger_kernel: true\n"), all);
  expect_keys(import_text(args + "use_liger_kernel: true\nliger_kernel_config:\n  swiglu: false\n  rope: false\n"),
              {{"model.loss", "chunked"},
               {"model.fused_norms", "true"},
               {"model.fused_rotary", "false"},
               {"model.fused_gate", "false"}});
  const Folder folder;  // of the command line, as JSON
  expect_keys(
      import_launch(request({folder.write("run.sh",
                                          "accelerate launch train.py --bf16 true --per_device_train_batch_size 1 "
                                          "--max_seq_length 4096 --use_liger_kernel true "
                                          "--liger_kernel_config '{\"swiglu\": false, \"rope\": false}'\n")},
                            "llama-3-8b")),
      {{"model.loss", "chunked"},
       {"model.fused_norms", "true"},
       {"model.fused_rotary", "false"},
       {"model.fused_gate", "false"}});
  expect_keys(import_text(args + "use_liger_kernel: false\n"),
              {{"model.loss", "(none)"}, {"model.fused_norms", "(none)"}, {"model.fused_gate", "(none)"}});
  const std::string axolotl = "base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 1\nbf16: true\n";
  expect_keys(import_text(axolotl + "liger_rms_norm: true\nliger_glu_activation: true\n", ""),
              {{"model.loss", "(none)"},
               {"model.fused_norms", "true"},
               {"model.fused_rotary", "(none)"},
               {"model.fused_gate", "true"}});
}

// LLaMA-Factory's second format has plugins by name, other defaults, and no adapters unless it says so.
TEST(LaunchContract, FactorysSecondFormat) {
  const std::string text =
      "model: Qwen/Qwen3-0.6B\nmodel_class: llm\nkernel_config:\n  name: auto\nquant_config: null\n"
      "dist_config:\n  name: fsdp2\n  dcp_path: null\ntrain_dataset: data/v1_sft_demo.yaml\n"
      "output_dir: outputs/test\nmicro_batch_size: 1\ncutoff_len: 2048\nlearning_rate: 1.0e-4\nmax_steps: 10\n";
  const LaunchImport plain = import_text(text, "");
  expect_keys(plain, {{"model.name", "qwen3-0.6b"},
                      {"model.trainable", "(none)"},
                      {"model.zero_stage", "3"},
                      {"model.recompute", "full"},
                      {"model.precision", "bf16_mixed"},
                      {"model.micro_batch", "1"},
                      {"model.sequence", "2048"},
                      {"model.loss", "(none)"}});
  for (const auto& [flag, effect] : ignored(plain)) EXPECT_NE(effect, "unknown") << flag;
  expect_keys(import_text(text + "peft_config:\n  name: lora\n  r: 16\n  lora_alpha: 32\n  target_modules: all\n", ""),
              {{"model.trainable", "lora"}, {"model.lora_rank", "16"}, {"model.lora_targets", "all_linear"}});
  std::string liger = text;
  liger.replace(liger.find("auto"), 4, "liger_kernel");
  expect_keys(import_text(liger, ""), {{"model.loss", "fused"}, {"model.fused_norms", "true"}});
  expect_keys(import_text(text + "flash_attn: flash_attention_2\ncp_mode: ulysses\ncp_size: 2\n", ""),
              {{"model.context_parallel", "2"}});
}

// axolotl's expert ranks have batches of their own, beside those that share.
TEST(LaunchContract, AxolotlsExpertsAreRanksOfData) {
  const std::string text =
      "base_model: Qwen/Qwen3-30B-A3B\nsequence_len: 2048\nmicro_batch_size: 1\nbf16: true\n"
      "expert_parallel_size: 4\ndp_shard_size: 1\n";
  expect_keys(import_text(text, ""), {{"model.expert_parallel", "4"}, {"model.data_parallel", "4"}});
}

// What turns a switch off again is not the same as silence.
TEST(LaunchContract, TheLastWordCounts) {
  const std::string args = "per_device_train_batch_size: 1\nmax_seq_length: 4096\nbf16: true\nuse_liger_kernel: true\n";
  EXPECT_EQ(key(import_text(args), "model.loss"), "chunked");
  const Folder folder;
  const LaunchImport import = import_launch(request(
      {folder.write("a.yaml", args), folder.write("b.yaml", "use_liger_kernel: false\nfp16: false\n")}, "llama-3-8b"));
  EXPECT_EQ(key(import, "model.loss"), "(none)");
  EXPECT_EQ(key(import, "model.precision"), "bf16_mixed") << "another switch's";
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
  const LaunchImport overlapped = import(experts + "--overlap-moe-expert-parallel-comm");
  EXPECT_EQ(key(overlapped, "model.overlap_experts"), "true");
  EXPECT_TRUE(is_unsayable(overlapped, "overlap-moe-expert-parallel-comm")) << "two micro-batches' activations";
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
