#include "launch/launch_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/splitmix64.h"
#include "models/spec/model_spec.h"
#include "models/spec/pipeline_setup.h"
#include "tests/launch/launch_fixture.h"
#include "tests/test_size.h"

namespace spillway::launch {
namespace {

using test::Folder;
using test::request;

// A scenario's step, whatever it is written like: what it resolves to, and the model's shape.
std::map<std::string, std::string> step_of(const Scenario& scenario) {
  ModelSpec spec = find_model(scenario.model);
  if (scenario.layers > 0) spec.layers = scenario.layers;
  const TrainingSetup setup = resolve(scenario.training, spec);
  std::map<std::string, std::string> step;
  for (const std::string& key : training_setup_keys()) step[key] = field_text(setup, key);
  step["pipeline_schedule"] = schedule_name(setup);
  step["global_batch"] = std::to_string(setup.step_sequences());
  step["parameters"] = std::to_string(parameter_count(spec));
  step["allocator"] = scenario.allocator + " " + scenario.allocator_config;
  return step;
}

// "key: was, is" of what differs, a line each.
std::string difference(const std::map<std::string, std::string>& was, const std::map<std::string, std::string>& is) {
  std::string text;
  for (const auto& [key, old] : was)
    if (is.at(key) != old) text += key + ": " + old + ", " + is.at(key) + "\n";
  return text;
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::string of(const std::vector<std::string>& words) { return words[random_.below(words.size())]; }
  bool toss() { return random_.below(2) == 1; }

 private:
  SplitMix64 random_;
};

std::string base_text(const std::string& model) {
  return R"({"schema": "spillway-scenario", "version": 1, "model": {"name": ")" + model +
         R"("}, "hardware": {"profile": "dgx-h100"}})";
}

class Draft {
 public:
  explicit Draft(const std::string& model) : text_(base_text(model)) {}
  void set(const std::string& key, const std::string& value) { text_ = with_setting(text_, key + "=" + value); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// What Megatron-LM has flags for.
std::string megatron_scenario(Dice& dice) {
  const std::string model =
      dice.of({"llama-2-7b", "llama-3-8b", "gpt3-175b", "mixtral-8x7b", "qwen2.5-7b", "llama-3.1-70b"});
  Draft draft(model);
  const std::string t = dice.of({"1", "2", "4"}), p = dice.of({"1", "2", "4"}), d = dice.of({"1", "2", "8"});
  draft.set("model.framework", "megatron");
  draft.set("model.optimizer_form", "fused");
  draft.set("model.tensor_parallel", t);
  if (t != "1" && dice.toss()) draft.set("model.sequence_parallel", "true");
  draft.set("model.pipeline_parallel", p);
  if (p != "1" && dice.toss()) draft.set("model.pipeline_chunks", "2");
  draft.set("model.data_parallel", d);
  if (model == "mixtral-8x7b" && d == "8") {
    draft.set("model.expert_parallel", dice.of({"2", "8"}));
    draft.set("model.expert_dispatcher", dice.of({"nccl", "deepep", "hybridep"}));
    draft.set("model.overlap_experts", dice.of({"true", "false"}));
    if (dice.toss()) {
      draft.set("model.expert_capacity", "1.25");
      draft.set("model.static_experts", dice.of({"true", "false"}));
    }
  }
  draft.set("model.sequence", dice.of({"1024", "2048"}));
  draft.set("model.micro_batch", dice.of({"1", "2"}));
  draft.set("model.global_batch", dice.of({"64", "128"}));
  const std::string precision = dice.of({"bf16_mixed", "fp16_mixed", "fp8_mixed", "fp32", "nvfp4_mixed"});
  draft.set("model.precision", precision);
  if (precision == "fp8_mixed") draft.set("model.fp8_recipe", dice.of({"delayed", "tensorwise", "blockwise", "mxfp8"}));
  draft.set("model.optimizer", dice.of({"adamw", "sgd_momentum"}));
  draft.set("model.zero_stage", dice.of({"0", "1", "2", "3"}));
  draft.set("model.overlap_gradients", dice.of({"true", "false"}));
  draft.set("model.recompute", dice.of({"none", "selective", "full"}));
  draft.set("model.loss", dice.of({"fp32", "native", "fused"}));
  draft.set("model.dropout", dice.of({"0", "0.1"}));
  if (dice.toss())
    draft.set("model.attention_kernel", dice.of({"best", "flash2"}));
  else
    draft.set("model.flash_attention", "false");
  if (dice.toss()) draft.set("model.bucket_bytes", "160000000");
  if (dice.toss()) draft.set("memory.allocator", "torch-expandable");
  if (dice.toss()) draft.set("model.layers", "8");
  draft.set("model.mtp_layers", dice.of({"0", "0", "1"}));
  if (dice.toss()) draft.set("model.cuda_graphs", dice.of({"attn", "attn,mlp", "moe_router", "full_iteration"}));
  return draft.text();
}

// What torchtitan has keys for.
std::string titan_scenario(Dice& dice) {
  Draft draft(dice.of({"llama-3.1-8b", "llama-3.1-70b", "qwen3-8b", "llama-2-7b"}));
  const std::string t = dice.of({"1", "2", "4"}), p = dice.of({"1", "2", "4"}), d = dice.of({"2", "8"});
  const std::string stage = dice.of({"0", "2", "3"});
  draft.set("model.optimizer_form", dice.of({"fused", "foreach"}));
  draft.set("model.optimizer", dice.of({"adamw", "adam"}));
  draft.set("model.tensor_parallel", t);
  if (t != "1") draft.set("model.sequence_parallel", "true");
  draft.set("model.pipeline_parallel", p);
  if (p != "1") draft.set("model.pipeline_schedule", dice.of({"1f1b", "gpipe", "interleaved"}));
  draft.set("model.data_parallel", d);
  draft.set("model.zero_stage", stage);
  if (stage != "0") draft.set("model.context_parallel", dice.of({"1", "2"}));
  const std::string precision = dice.of({"bf16_mixed", "fp8_mixed", "fp32"});
  draft.set("model.precision", precision);
  if (precision == "fp8_mixed") draft.set("model.fp8_recipe", dice.of({"tensorwise", "rowwise"}));
  if (stage != "0" && precision != "fp32") draft.set("model.fp32_reduction", "true");
  draft.set("model.sequence", dice.of({"2048", "4096"}));
  draft.set("model.micro_batch", dice.of({"1", "2"}));
  draft.set("model.global_batch", dice.of({"64", "128"}));
  draft.set("model.recompute", dice.of({"none", "full"}));
  draft.set("model.fused_kernels", "false");
  draft.set("model.compile", dice.of({"true", "false"}));
  if (stage == "3" && dice.toss()) {
    draft.set("model.optimizer_device", "cpu");
    draft.set("model.weight_device", "cpu");
  }
  return draft.text();
}

// What DeepSpeed's file has keys for; the model and the number of GPUs are its launcher's.
std::string deepspeed_scenario(Dice& dice) {
  Draft draft("llama-2-7b");
  const std::string stage = dice.of({"0", "1", "2", "3"});
  draft.set("model.framework", "deepspeed");
  draft.set("model.sequence", "4096");
  draft.set("model.fused_kernels", "false");
  draft.set("model.optimizer_form", "fused");
  draft.set("model.optimizer", dice.of({"adamw", "adam"}));
  draft.set("model.micro_batch", dice.of({"1", "4"}));
  draft.set("model.gradient_accumulation", dice.of({"1", "8"}));
  draft.set("model.precision", dice.of({"bf16_mixed", "fp16_mixed", "fp32"}));
  draft.set("model.zero_stage", stage);
  draft.set("model.overlap_gradients", dice.of({"true", "false"}));
  draft.set("model.bucket_bytes", dice.of({"26214400", "1000000000"}));
  draft.set("model.phase_timers", dice.of({"true", "false"}));
  draft.set("model.optimizer_device", dice.of({"gpu", "cpu", "drives"}));
  if (stage == "3" && setting_of(draft.text(), "model.optimizer_device") != "gpu")
    draft.set("model.weight_device", dice.of({"gpu", "cpu", "drives"}));
  if (stage == "3" && dice.toss()) {
    draft.set("model.data_parallel", "8");
    draft.set("model.shard_groups", dice.of({"1", "2", "4"}));
    draft.set("model.saving", dice.of({"first", "shares"}));
  }
  return draft.text();
}

// What accelerate and TrainingArguments have flags for.
std::string torch_scenario(Dice& dice) {
  const std::string model = dice.of({"llama-2-7b", "gpt2-xl", "qwen2.5-7b"});
  Draft draft(model);
  draft.set("model.framework", "huggingface");
  const std::string trained = dice.of({"full", "lora", "qlora"});
  if (trained != "full") {
    draft.set("model.trainable", trained);
    draft.set("model.lora_rank", dice.of({"8", "16", "64"}));
    draft.set("model.lora_dropout", dice.of({"0", "0.05", "0.1"}));
    draft.set("model.lora_targets",
              model == "gpt2-xl" ? "all_linear" : dice.of({"qkv", "attention", "mlp", "all_linear"}));
    if (dice.toss()) draft.set("model.base_weights", trained == "lora" ? "int8" : "nf4");
  }
  const std::string stage = dice.of({"0", "2", "3"});
  draft.set("model.data_parallel", dice.of({"2", "8", "16"}));
  draft.set("model.zero_stage", stage);
  draft.set("model.sequence", "1024");
  draft.set("model.micro_batch", dice.of({"1", "4"}));
  draft.set("model.gradient_accumulation", dice.of({"1", "8"}));
  const std::string precision = dice.of({"bf16_mixed", "fp16_mixed", "fp32"});
  draft.set("model.precision", precision);
  if (trained == "full" && stage == "0" && precision != "fp32") draft.set("model.autocast", "true");
  draft.set("model.optimizer", dice.of({"adamw"}));
  draft.set("model.optimizer_form", dice.of({"fused", "foreach"}));
  draft.set("model.recompute", dice.of({"none", "full"}));
  draft.set("model.fused_kernels", "false");
  draft.set("model.compile", dice.of({"true", "false"}));
  if (model != "gpt2-xl" && dice.toss()) {
    for (const char* key : {"model.fused_norms", "model.fused_rotary", "model.fused_gate"})
      draft.set(key, dice.of({"true", "true", "false"}));
    draft.set("model.loss", dice.of({"chunked", "fp32", "fused"}));
  }
  if (dice.toss()) draft.set("model.attention_kernel", "flash2");
  if (stage == "3") draft.set("model.late_prefetch", dice.of({"true", "false"}));
  if (stage == "3" && dice.toss()) {
    draft.set("model.optimizer_device", "cpu");
    draft.set("model.weight_device", "cpu");
  }
  if (dice.toss()) draft.set("memory.allocator", "torch-expandable");
  return draft.text();
}

struct Framework {
  std::string target, file;
  std::string (*draw)(Dice&);
  bool says_model = true;
};
const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> all = {{"megatron", "run.sh", megatron_scenario},
                                             {"torchtitan", "train.toml", titan_scenario},
                                             {"deepspeed", "ds.json", deepspeed_scenario, false},
                                             {"torch", "run.sh", torch_scenario}};
  return all;
}

// Out and in again: the same step.
TEST(LaunchExport, RoundTrips) {
  const Folder folder;
  for (const Framework& framework : frameworks()) {
    int trips = 0;
    for (std::uint64_t seed = 1; trips < test::cases(30, 300); ++seed) {
      ASSERT_LT(seed, 3000u) << framework.target << ": hardly any draft can be replayed";
      Dice dice(seed);
      const std::string text = framework.draw(dice);
      const Scenario before = parse_scenario(text, "drawn", "");
      if (!test::complaint([&] { return step_of(before); }).empty()) continue;  // a draft that can't be
      ++trips;
      const LaunchExport made = export_launch(before, framework.target);
      std::vector<std::string> unsaid;
      for (const UnsaidKey& each : made.unsaid) unsaid.push_back(each.key + " " + each.value);
      if (framework.says_model) {
        EXPECT_THAT(unsaid, testing::IsEmpty()) << framework.target << " seed " << seed;
      }
      const std::string path = folder.write(framework.file, made.text);
      const LaunchImport back = import_launch(request({path}, framework.says_model ? "" : before.model));
      EXPECT_EQ(difference(step_of(before), step_of(parse_scenario(back.scenario, "imported", ""))), "")
          << framework.target << " seed " << seed << "\n"
          << text << "\n"
          << made.text;
    }
  }
}

// Every bundled model comes back from Megatron's flags as it was, or what they have no words for is said.
TEST(LaunchExport, ModelsAreSaidOrTheirLossIs) {
  const Folder folder;
  int came_back = 0;
  for (const std::string& name : models::bundled_models()) {
    Draft draft(name);
    draft.set("model.framework", "megatron");
    draft.set("model.optimizer_form", "fused");
    draft.set("model.micro_batch", "1");
    draft.set("model.sequence", "128");
    const Scenario before = parse_scenario(draft.text(), "drawn", "");
    if (!test::complaint([&] { return step_of(before); }).empty()) continue;  // images
    const LaunchExport made = export_launch(before, "megatron");
    if (std::any_of(made.unsaid.begin(), made.unsaid.end(),
                    [](const UnsaidKey& each) { return each.key == "model.name"; }))
      continue;
    ++came_back;
    const LaunchImport back = import_launch(request({folder.write("run.sh", made.text)}, ""));
    const ModelSpec was = models::find_model(before.model);
    const ModelSpec is = models::find_model(parse_scenario(back.scenario, "imported", "").model);
    const std::vector<models::Parameter> left = parameters(was), right = parameters(is);
    ASSERT_EQ(left.size(), right.size()) << name;
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].name, right[i].name) << name;
      EXPECT_EQ(left[i].elements(), right[i].elements()) << name << " " << left[i].name;
    }
  }
  EXPECT_GE(came_back, 30);
}

// Whatever a scenario says: after the trip it is the same, or the export said that it isn't.
TEST(LaunchExport, WhatIsLostIsSaid) {
  const Folder folder;
  const std::vector<std::pair<std::string, std::string>> edits = {{"model.pipeline_schedule", "zb-1p"},
                                                                  {"model.optimizer", "adafactor"},
                                                                  {"model.attention_kernel", "triton"},
                                                                  {"model.fused_kernels", "false"},
                                                                  {"model.loss_metrics", "1"},
                                                                  {"model.prefetch", "2"},
                                                                  {"model.precision", "bf16"},
                                                                  {"model.optimizer_device", "drives"},
                                                                  {"model.delayed_update", "true"},
                                                                  {"model.recompute", "selective"},
                                                                  {"model.zero_stage", "1"},
                                                                  {"model.bucket_bytes", "12345"},
                                                                  {"model.step_barrier", "false"},
                                                                  {"model.mtp_layers", "1"},
                                                                  {"model.cuda_graphs", "attn"},
                                                                  {"model.overlap_experts", "true"},
                                                                  {"model.expert_dispatcher", "deepep"},
                                                                  {"model.sequence_parallel", "false"},
                                                                  {"model.framework", "eager"},
                                                                  {"model.dropout", "0.25"}};
  int compared = 0;
  for (const Framework& framework : frameworks()) {
    for (std::uint64_t seed = 1; seed <= test::seeds(20, 400); ++seed) {
      Dice dice(seed);
      std::string text = framework.draw(dice);
      const auto& [key, value] = edits[seed % edits.size()];
      text = with_setting(text, key + "=" + value);
      const Scenario before = parse_scenario(text, "drawn", "");
      if (!test::complaint([&] { return step_of(before); }).empty()) continue;
      const LaunchExport made = export_launch(before, framework.target);
      std::set<std::string> unsaid;
      for (const UnsaidKey& each : made.unsaid) unsaid.insert(each.key);
      const std::string path = folder.write(framework.file, made.text);
      LaunchImport back;
      const std::string refused = test::complaint([&] {
        back = import_launch(request({path}, framework.says_model ? "" : before.model));
        return 0;
      });
      if (!refused.empty() && !unsaid.empty()) continue;  // what was lost made the rest impossible
      ASSERT_EQ(refused, "") << framework.target << " seed " << seed << "\n" << made.text;
      ++compared;
      const auto was = step_of(before), is = step_of(parse_scenario(back.scenario, "imported", ""));
      for (const auto& [name, old] : was) {
        if (is.at(name) == old) continue;
        const bool follows =
            name == "bucket_bytes" && before.training.bucket_bytes == 0 &&
            (unsaid.contains("model.framework") || unsaid.contains("model.zero_stage"));  // nobody asked for it
        EXPECT_TRUE(follows || unsaid.contains("model." + name) || unsaid.contains("memory." + name))
            << framework.target << " seed " << seed << ": " << name << " was " << old << ", is " << is.at(name) << "\n"
            << made.text;
      }
      // What the export tells is what the file comes back as.
      for (const UnsaidKey& each : made.unsaid) {
        if (each.key != "model.zero_stage" && each.key != "model.fp32_reduction" && each.key != "model.autocast")
          continue;
        EXPECT_EQ(each.otherwise, is.at(each.key.substr(6)))
            << framework.target << " seed " << seed << ": " << each.key;
      }
    }
  }
  EXPECT_GT(compared, 20);
}

// ZeRO-1, which torchtitan and FSDP have not, is told as what the file is read as again; a bucket that nobody asked for
// is not told.
TEST(LaunchExport, AChangedSettingIsWhatTheFileSays) {
  const Folder folder;
  for (const Framework& framework : frameworks()) {
    Draft draft("llama-3-8b");
    draft.set("model.data_parallel", "8");
    draft.set("model.sequence", "4096");
    draft.set("model.zero_stage", "1");
    const Scenario before = parse_scenario(draft.text(), "drawn", "");
    const LaunchExport made = export_launch(before, framework.target);
    const std::string path = folder.write(framework.file, made.text);
    const LaunchImport back = import_launch(request({path}, framework.says_model ? "" : before.model));
    const auto is = step_of(parse_scenario(back.scenario, "imported", ""));
    std::string stage = "1";
    for (const UnsaidKey& each : made.unsaid) {
      EXPECT_NE(each.key, "model.bucket_bytes") << framework.target << " " << each.value;
      if (framework.target == "torchtitan") {
        EXPECT_NE(each.key, "model.name");
      }
      if (each.key == "model.zero_stage") stage = each.otherwise.value_or("");
    }
    EXPECT_EQ(is.at("zero_stage"), stage) << framework.target;
    const std::map<std::string, std::string> wanted = {
        {"megatron", "1"}, {"torchtitan", "3"}, {"deepspeed", "1"}, {"torch", "0"}};
    EXPECT_EQ(stage, wanted.at(std::string(framework.target)));
    // FSDP's buckets are layers, which no file has a number for.
    draft.set("model.zero_stage", "3");
    const LaunchExport shards = export_launch(parse_scenario(draft.text(), "drawn", ""), framework.target);
    for (const SaidKey& each : shards.said) EXPECT_NE(each.key, "model.bucket_bytes") << each.as;
  }
}

// What the frameworks' own programs assert of their arguments, by the flags that are written: a launch that would die
// at its start is none.
TEST(LaunchExport, PassesTheFrameworksOwnChecks) {
  const Folder folder;
  const auto exported = [](const std::string& target, std::vector<std::pair<std::string, std::string>> settings) {
    Draft draft("llama-3-8b");
    for (const auto& [key, value] : settings) draft.set(key, value);
    return export_launch(parse_scenario(draft.text(), "drawn", ""), target);
  };
  const LaunchExport megatron = exported("megatron", {{"model.framework", "megatron"},
                                                      {"model.optimizer_form", "fused"},
                                                      {"model.sequence", "32768"},
                                                      {"model.optimizer_device", "cpu"}});
  EXPECT_THAT(megatron.text, testing::HasSubstr("--max-position-embeddings 32768"));
  EXPECT_THAT(megatron.text, testing::HasSubstr("--use-precision-aware-optimizer"));
  EXPECT_THAT(megatron.text, testing::HasSubstr("--use-distributed-optimizer"));
  EXPECT_THAT(megatron.text, testing::Not(testing::HasSubstr("--expert-tensor-parallel-size")));
  EXPECT_THAT(megatron.text, testing::HasSubstr("OMP_NUM_THREADS=$(nproc)"));
  const LaunchExport fsdp =
      exported("megatron", {{"model.framework", "megatron"}, {"model.data_parallel", "8"}, {"model.zero_stage", "3"}});
  EXPECT_THAT(fsdp.text, testing::AllOf(testing::HasSubstr("--ckpt-format fsdp_dtensor"),
                                        testing::HasSubstr("--use-distributed-optimizer")));
  const LaunchExport muon = exported("megatron", {{"model.framework", "megatron"},
                                                  {"model.optimizer", "muon"},
                                                  {"model.data_parallel", "8"},
                                                  {"model.zero_stage", "1"}});
  EXPECT_THAT(muon.text, testing::AllOf(testing::HasSubstr("--optimizer dist_muon"),
                                        testing::Not(testing::HasSubstr("--use-distributed-optimizer"))));
  const LaunchImport shared = import_launch(request({folder.write("muon.sh", muon.text)}));
  EXPECT_EQ(parse_scenario(shared.scenario, "imported", "").training.zero_stage, 1);
  const LaunchImport back = import_launch(request({folder.write("run.sh", megatron.text)}));
  const Scenario is = parse_scenario(back.scenario, "imported", "");
  EXPECT_EQ(is.training.optimizer_device, models::StateDevice::cpu);
  EXPECT_FALSE(is.training.master_remainders);
  EXPECT_EQ(is.training.sequence, 32768);
  EXPECT_THAT(exported("deepspeed", {{"model.optimizer_device", "cpu"}}).text, testing::HasSubstr("\"stage\": 1"));
  const LaunchExport many = exported(
      "deepspeed", {{"model.optimizer_device", "cpu"}, {"model.data_parallel", "8"}, {"model.zero_stage", "0"}});
  EXPECT_THAT(many.text, testing::HasSubstr("\"stage\": 1"));
  std::vector<std::string> unsaid;
  for (const UnsaidKey& each : many.unsaid) unsaid.push_back(each.key);
  EXPECT_THAT(unsaid, testing::Contains("model.zero_stage"));
}

// Images come with the data, so that nothing is lost of them; a Trainer trains the tower, though.
TEST(LaunchExport, ImagesAreOfTheData) {
  const auto lost = [](const char* trained) {
    Draft draft("gemma-3-4b");
    for (const auto& [name, value] :
         {std::pair("images", "1"), std::pair("sequence", "1024"), std::pair("train_tower", trained)})
      draft.set(std::string("model.") + name, value);
    std::set<std::string> keys;
    for (const UnsaidKey& each : export_launch(parse_scenario(draft.text(), "drawn", ""), "torch").unsaid)
      keys.insert(each.key);
    EXPECT_FALSE(keys.contains("model.images") || keys.contains("model.image_tokens"));
    return keys.contains("model.train_tower");
  };
  EXPECT_TRUE(lost("frozen"));
  EXPECT_FALSE(lost("whole"));
}

TEST(LaunchExport, WhatNoFrameworkHasIsNamed) {
  Draft draft("llama-3-8b");
  draft.set("model.framework", "megatron");
  draft.set("offload.technique", "ssdtrain");
  const LaunchExport made = export_launch(parse_scenario(draft.text(), "drawn", ""), "megatron");
  std::vector<std::string> keys;
  for (const UnsaidKey& each : made.unsaid) keys.push_back(each.key);
  EXPECT_THAT(keys, testing::Contains("offload.technique"));
  EXPECT_THAT(made.text, testing::HasSubstr("--num-query-groups 8"));
}

// Modules by their names where these are known, else a warning; frameworks without adapters say so.
TEST(LaunchExport, AdaptersAreInTrlsWords) {
  const auto exported = [](const std::string& model, const std::string& targets, const std::string& to) {
    Draft draft(model);
    draft.set("model.trainable", "qlora");
    draft.set("model.lora_targets", targets);
    return export_launch(parse_scenario(draft.text(), "drawn", ""), to);
  };
  const std::string text = exported("llama-3-8b", "attention", "torch").text;
  EXPECT_THAT(text, testing::HasSubstr("--use_peft \\\n    --load_in_4bit \\\n    --use_bnb_nested_quant \\\n"));
  EXPECT_THAT(text, testing::HasSubstr("--lora_r 16 \\\n    --lora_dropout 0 \\\n"));
  EXPECT_THAT(text, testing::HasSubstr("--lora_target_modules q_proj k_proj v_proj o_proj \\\n"));
  EXPECT_THAT(text, testing::HasSubstr("trl's ModelConfig"));
  const auto lacks = [](const LaunchExport& made, const std::string& key) {
    return std::any_of(made.unsaid.begin(), made.unsaid.end(), [&](const UnsaidKey& each) { return each.key == key; });
  };
  EXPECT_TRUE(lacks(exported("gpt2-xl", "attention", "torch"), "model.lora_targets"));
  EXPECT_TRUE(lacks(exported("mixtral-8x7b", "mlp", "torch"), "model.lora_targets"));
  for (const char* target : {"megatron", "torchtitan", "deepspeed"})
    EXPECT_TRUE(lacks(exported("llama-3-8b", "attention", target), "model.trainable")) << target;
  Draft full("llama-3-8b");
  EXPECT_THAT(export_launch(parse_scenario(full.text(), "drawn", ""), "torch").text,
              testing::Not(testing::HasSubstr("lora")));
}

TEST(LaunchExport, ARecordedStepHasNoLaunch) {
  const Scenario scenario =
      parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "trace": "x.json"})", "x", "");
  EXPECT_THAT(test::complaint([&] { return export_launch(scenario, "megatron"); }), testing::HasSubstr("recorded"));
}

// What a scenario doesn't ask for is as the framework has it, not as another one would.
TEST(LaunchExport, BucketsThatNobodyAskedForAreNotSaid) {
  Draft draft("llama-3-8b");
  draft.set("model.framework", "eager");
  draft.set("model.zero_stage", "1");
  draft.set("model.data_parallel", "2");
  const auto text = [&] { return export_launch(parse_scenario(draft.text(), "drawn", ""), "megatron").text; };
  EXPECT_THAT(text(), testing::Not(testing::HasSubstr("--ddp-bucket-size")));
  draft.set("model.bucket_bytes", "400000000");
  EXPECT_THAT(text(), testing::HasSubstr("--ddp-bucket-size 100000000"));
}

TEST(LaunchExport, TextsThatAShellWouldReadAreQuoted) {
  Draft draft("llama-3-8b");
  draft.set("title", "a\\nb $(rm) 'x'");
  draft.set("memory.config", "max_split_size_mb:128;x y");
  const LaunchExport made = export_launch(parse_scenario(draft.text(), "drawn", ""), "megatron");
  EXPECT_THAT(made.text, testing::HasSubstr("export PYTORCH_CUDA_ALLOC_CONF='max_split_size_mb:128;x y'"));
}

}  // namespace
}  // namespace spillway::launch
