// Which file is whose, and what can't be read.
#include "launch/launch_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

using test::complaint;
using test::Folder;
using testing::HasSubstr;

Launch read(const std::vector<std::string>& paths, const ShellValues& given = {}) {
  return read_launch({.paths = paths, .from = {}, .given = given});
}

TEST(LaunchFiles, FormatsAreFoundByContent) {
  const std::map<std::string, LaunchFormat> formats = {{"megatron-llama3-8b.sh", LaunchFormat::megatron},
                                                       {"megatron-gpt3-175b.sh", LaunchFormat::megatron},
                                                       {"megatron-own-sizes.args", LaunchFormat::megatron},
                                                       {"megatron-core.yaml", LaunchFormat::megatron},
                                                       {"bridge-overrides.sh", LaunchFormat::megatron},
                                                       {"titan-llama3-8b.toml", LaunchFormat::torchtitan},
                                                       {"ds-zero3.json", LaunchFormat::deepspeed},
                                                       {"ds-alone.json", LaunchFormat::deepspeed},
                                                       {"hf-args.json", LaunchFormat::hf},
                                                       {"hf-run.sh", LaunchFormat::hf},
                                                       {"fsdp.yaml", LaunchFormat::accelerate},
                                                       {"accelerate-sft.sh", LaunchFormat::hf},
                                                       {"axolotl-full.yaml", LaunchFormat::hf},
                                                       {"axolotl-qlora.yaml", LaunchFormat::hf},
                                                       {"nanotron-llama.yaml", LaunchFormat::nanotron}};
  for (const auto& [name, format] : formats) EXPECT_EQ(read({test::fixture(name)}).program, format) << name;
}

// The name says nothing: the same under another one.
TEST(LaunchFiles, NamesDoNotMatter) {
  const Folder folder;
  const std::string path =
      folder.write("noname", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 64\n");
  EXPECT_EQ(read({path}).program, LaunchFormat::torchtitan);
}

// A few keys that a launch has as well make none; its marks do, whatever else is there.
TEST(LaunchFiles, AFewKnownKeysMakeNoLaunch) {
  const Folder folder;
  const std::string path = folder.write("own.json", R"({"bf16": true, "learning_rate": 1e-4, "hidden_size": 64})");
  EXPECT_THAT(complaint([&] { return read({path}); }), testing::AllOf(HasSubstr("a mark of"), HasSubstr("--from")));
  const std::string most =
      folder.write("most.json", R"({"train_batch_size": 8, "bf16": {"enabled": true}, "mine": 1})");
  EXPECT_EQ(read({most}).program, LaunchFormat::deepspeed);
}

TEST(LaunchFiles, AMappedFlagNeedsItsVariable) {
  const Folder folder;
  const std::string path = folder.write(
      "run.sh", "#!/bin/bash\npython pretrain_gpt.py --num-layers 2 --micro-batch-size $MBS --save $OUT\n");
  EXPECT_THAT(complaint([&] { return read({path}); }),
              testing::AllOf(HasSubstr("line 2"), HasSubstr("--env MBS=VALUE")));
  const Launch launch = read({path}, {{"MBS", "3"}});  // OUT has no effect
  EXPECT_EQ(launch.settings[1].value, "3");
}

TEST(LaunchFiles, FlagsCouldHideInAWordThatNothingAssigns) {
  const Folder folder;
  const std::string path = folder.write("run.sh", "#!/bin/bash\npython pretrain_gpt.py --num-layers 2 --bf16 $EXTRA\n");
  EXPECT_THAT(complaint([&] { return read({path}); }), HasSubstr("--env 'EXTRA=...'"));
  const Launch launch = read({path}, {{"EXTRA", "--micro-batch-size 4"}});
  EXPECT_EQ(launch.settings.back().value, "4");
}

TEST(LaunchFiles, TwoLaunchesAreRefused) {
  const Folder folder;
  const std::string one = "python pretrain_gpt.py --num-layers 2 --micro-batch-size 1\n";
  const std::string path = folder.write("run.sh", "#!/bin/bash\n" + one + one);
  EXPECT_THAT(complaint([&] { return read({path}); }), testing::AllOf(HasSubstr("line 3"), HasSubstr("line 2")));
  // Another launcher's however small it is; what only has a file of its own prepares.
  const std::string more = one.substr(0, one.size() - 1) + " --hidden-size 64 --num-attention-heads 2 --seq-length 8\n";
  const std::string other = folder.write("other.sh", more + "trl sft --max_length 8\n");
  EXPECT_THAT(complaint([&] { return read({other}); }), HasSubstr("a second launch"));
  EXPECT_EQ(read({folder.write("prepared.sh", "python prepare.py data.yaml\n" + more)}).program,
            LaunchFormat::megatron);
}

TEST(LaunchFiles, AFileThatALaunchNamesMustBeThere) {
  const Folder folder;
  const std::string path = folder.write("args.json", R"({"per_device_train_batch_size": 1, "deepspeed": "zero.json"})");
  EXPECT_THAT(complaint([&] { return read({path}); }), HasSubstr("zero.json"));
  static_cast<void>(folder.write("zero.json", R"({"zero_optimization": {"stage": 2}})"));
  const Launch launch = read({path});
  EXPECT_EQ(launch.settings.front().name, "zero_optimization.stage");
  EXPECT_EQ(launch.program, LaunchFormat::hf);
}

// A script that gives the GPUs, and a program that has everything else: beside it, given as well, or not there.
TEST(LaunchFiles, APythonProgramHasTheSettings) {
  const Folder folder;
  const std::string script = folder.write("run.sh", "python -V\ntorchrun --nproc_per_node 8 train.py\n");
  EXPECT_THAT(complaint([&] { return read({script}); }), HasSubstr("put train.py beside it"));
  const std::string program = folder.write("train.py",
                                           "from transformers import TrainingArguments, AutoModelForCausalLM\n"
                                           "model = AutoModelForCausalLM.from_pretrained('gpt2')\n"
                                           "args = TrainingArguments('out', per_device_train_batch_size=3)\n");
  for (const auto& paths : {std::vector{script}, {script, program}, {program, script}}) {
    const LaunchImport import = import_launch(test::request(paths));
    test::expect_keys(import, {{"model.micro_batch", "3"}, {"model.data_parallel", "8"}});
  }
  // With flags of the program's own, and a file that a call names.
  const std::string own = folder.write("own.sh", "deepspeed --num_gpus 8 train.py --name first\n");
  EXPECT_EQ(read({own, program}).settings.size(), read({own}).settings.size());
  const std::string two = folder.write("two.sh", "python train.py\npython other.py\n");
  EXPECT_THAT(complaint([&] { return read({two}); }), HasSubstr("give train.py instead"));
}

TEST(LaunchFiles, AScriptIsReadWithTheArgumentsOfItsCall) {
  const Folder folder;
  const std::string called =
      folder.write("train.sh",
                   "#!/bin/bash\nGPUS=$(python -c \"import torch; print(torch.cuda.device_count())\")\n"
                   "if [ $1 = 7B ]; then LAYERS=28; fi\n"
                   "torchrun --nproc_per_node $GPUS pretrain_gpt.py --num-layers $LAYERS --micro-batch-size ${10} "
                   "--seq-length ${LENGTH:-2048}\n");
  const std::string path =
      folder.write("go.sh", "#!/bin/bash\nexport LENGTH=4096\nbash train.sh 7B 2 3 4 5 6 7 8 9 16\n");
  std::map<std::string, std::string> values;
  for (const LaunchSetting& each : read({path}).settings) values[each.name] = each.value;
  EXPECT_THAT(called, testing::EndsWith("train.sh"));
  EXPECT_EQ(values["num-layers"], "28");
  EXPECT_EQ(values["micro-batch-size"], "16");
  EXPECT_EQ(values["seq-length"], "4096");
  EXPECT_EQ(values["nproc-per-node"], "auto");
  const std::string loop = folder.write("loop.sh", "#!/bin/bash\nbash loop.sh 1\n");
  EXPECT_THAT(complaint([&] { return read({loop}); }), HasSubstr("too many files"));
}

// Of one that the script itself writes.
TEST(LaunchFiles, AFileThatTheScriptWrites) {
  const Folder folder;
  const std::string path =
      folder.write("run.sh",
                   "STAGE=2\ncat > zero.json <<EOF\n{\"zero_optimization\": {\"stage\": $STAGE}}\nEOF\n"
                   "deepspeed train.py --deepspeed zero.json --per_device_train_batch_size 1\n");
  const Launch launch = read({path});
  EXPECT_EQ(launch.settings.front().name, "zero_optimization.stage");
  EXPECT_EQ(launch.settings.front().value, "2");
}

// What is shown before it is started is one launch.
TEST(LaunchFiles, WordsThatAreShownStartNothing) {
  const Folder folder;
  const std::string path = folder.write(
      "run.sh",
      "C=\"torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 2 --micro-batch-size 1\"\necho $C\neval $C\n");
  EXPECT_EQ(read({path}).program, LaunchFormat::megatron);
}

// Where nothing else says how many GPUs there are.
TEST(LaunchFiles, VisibleGpusAndSwitchesWithValues) {
  const Folder folder;
  const Launch launch = read({folder.write(
      "run.sh", "CUDA_VISIBLE_DEVICES=0,1,2 NPROC_PER_NODE=3 swift sft --model gpt2 --packing true --bf16 false\n")});
  std::map<std::string, std::string> values;
  for (const LaunchSetting& each : launch.settings) values[each.shown] = each.value;
  EXPECT_EQ(values.at("CUDA_VISIBLE_DEVICES"), "0,1,2");
  EXPECT_EQ(values.at("NPROC_PER_NODE"), "3");
  EXPECT_EQ(values.at("--packing"), "true");
  EXPECT_EQ(values.at("--bf16"), "false");
}

TEST(LaunchFiles, BadDocumentsNameTheirPlace) {
  const Folder folder;
  const std::map<std::string, std::string> wrong = {{"a.json", "{\"a\": 1,}"},
                                                    {"b.yaml", "a: [1\nb: 2\n"},
                                                    {"c.yaml", "bf16: true\nbf16: false\n"},
                                                    {"d.toml", "[training]\nseq_len = \n"},
                                                    {"d2.toml", "[training\nseq_len = 2048\n"},
                                                    {"e.txt", "nothing of the kind"},
                                                    {"f.json", R"({"colour": "red"})"}};
  for (const auto& [name, text] : wrong) {
    const std::string path = folder.write(name, text);
    const std::string words = complaint([&] { return read({path}); });
    EXPECT_THAT(words, HasSubstr(name)) << name;
    if (name.ends_with(".toml")) {
      EXPECT_THAT(words, HasSubstr("not valid TOML")) << name;
    }
  }
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

constexpr const char* titan = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
constexpr const char* trainer = "per_device_train_batch_size: 1\nbf16: true\nlearning_rate: 1e-4\n";

std::string told(const std::string& name, const std::string& text) {
  const Folder folder;
  const std::string path = folder.write(name, text);
  const std::string said = complaint([&] { return read({path}); });
  EXPECT_TRUE(said.empty() || said.starts_with(path + ": ")) << said.substr(0, 200);
  return said.empty() ? "" : said.substr(path.size() + 2);
}

TEST(LaunchFiles, TomlThatNestsTooDeeplyIsRefused) {
  // 60 levels are none too many; of 66, each counts: dots of names, of sections, brackets.
  for (const int levels : {60, 66, 100'000}) {
    const std::string name = repeated("a.", levels) + "a";
    const auto texts = {
        titan + name + " = 1\n",
        titan + ("[" + name) + "]\nb = 1\n",
        titan + ("[[" + name) + "]]\nb = 1\n",
        titan + ("b = {" + name) + " = 1}\n",
        titan + ("[" + repeated("a . ", levels / 2) + "a]\n" + repeated("'b' .", levels / 2)) + "b = 1\n",
        titan + ("b = " + repeated("[", levels)) + repeated("]", levels) + "\n",
        titan + ("b = " + repeated("{a.a = ", levels / 2)) + "1" + repeated("}", levels / 2) + "\n"};
    for (const std::string& text : texts)
      EXPECT_EQ(told("t.toml", text).find("nested deeper than 64 levels") != std::string::npos, levels > 64)
          << text.substr(0, 100);
  }
}

TEST(LaunchFiles, DotsOfTextsNumbersAndCommentsAreNoLevels) {
  const std::string dots = repeated("a.", 100);
  EXPECT_EQ(told("t.toml", titan + ("b = \"" + dots + "\\\"" + dots) + "\" # " + dots + "\nc = '" + dots + "'\n" +
                               "d = \"\"\"\n" + dots + "\"\n" + dots + "\"\"\"\"\n" + "e = [" + repeated("1.5, ", 100) +
                               "]\n" + "[a.b]\nc.d = 1.5\n[e.f.g]\n" + "x = '''" + dots + "'''\n"),
            "");
}

TEST(LaunchFiles, ALongNameCopiedIntoEachSettingIsRefused) {
  const std::string name(10'000, 'k');
  const auto members = [](const std::string& before, const std::string& after) {
    std::string text;
    for (int i = 0; i < 1'000; ++i) text += before + "a" + std::to_string(i) + after;
    return text;
  };
  EXPECT_THAT(told("t.toml", titan + ("[" + name) + "]\n" + members("", " = 1\n")), HasSubstr("letters here"));
  EXPECT_THAT(told("t.toml", titan + ("[" + name) + "]\n" + members("", " = {}\n")), HasSubstr("letters here"));
  EXPECT_THAT(told("t.yaml", trainer + ("? " + name) + "\n:\n" + members("  ", ": 1\n")), HasSubstr("letters here"));
  EXPECT_THAT(told("t.yaml", trainer + ("? " + name) + "\n:\n" + members("  ", ": {}\n")), HasSubstr("letters here"));
  for (const char* value : {"1", "[]", "{}"})
    EXPECT_THAT(told("t.json", "{\"train_batch_size\": 1, \"" + name + "\": {" +
                                   members("\"", std::string("\": ") + value + ", ") + "\"z\": 1}}"),
                HasSubstr("letters here"));
}

TEST(LaunchFiles, WhatYamlAliasesMakeOfAFewIsRefused) {
  const std::string text(10'000, 'x');
  const std::string names = repeated(", *s", 1'000);
  std::string lines, indented;
  for (int i = 0; i < 1'000; ++i) {
    lines += "b" + std::to_string(i) + ": *s\n";
    indented += "  b" + std::to_string(i) + ": *s\n";
  }
  EXPECT_EQ(told("t.yaml", "s: &s " + text + "\nb: [*s, *s]\n" + trainer), "");
  const auto texts = {
      "s: &s " + text + "\nb: [1" + names + "]\n" + trainer, "s: &s " + text + "\n" + lines + trainer,
      "s: &s [1" + repeated(",1", 5'000) + "]\n" + lines + trainer,
      "s: &s []\nt: &t [*s" + repeated(", *s", 1'000) + "]\nb: [*t" + repeated(", *t", 1'000) + "]\n" + trainer,
      "s: &s {}\n? " + text + "\n:\n" + indented + trainer};
  for (const std::string& each : texts)
    EXPECT_THAT(told("t.yaml", each), HasSubstr("letters here")) << each.substr(0, 40);
  for (const char* open : {"[x]", "{x: 1}"}) {
    const bool is_list = open[0] == '[';
    std::string doubled = "b0: &b0 " + std::string(open) + "\n";
    for (int i = 1; i < 40; ++i) {
      const std::string now = std::to_string(i), before = std::to_string(i - 1);
      doubled += "b" + now + ": &b" + now + (is_list ? " [*b" : " {c: *b") + before + (is_list ? ", *b" : ", d: *b") +
                 before + (is_list ? "]\n" : "}\n");
    }
    EXPECT_THAT(told("t.yaml", doubled + trainer), HasSubstr("letters here"));
  }
}

TEST(LaunchFiles, YamlAndJsonThatNestTooDeeplyAreRefusedInTheirLine) {
  for (const int levels : {65, 100'000}) {
    EXPECT_THAT(told("t.yaml", trainer + ("b: " + repeated("[", levels)) + "1" + repeated("]", levels) + "\n"),
                HasSubstr("line 4: nested deeper than 64 levels"));
    EXPECT_THAT(told("t.yaml", trainer + ("b: " + repeated("{a: ", levels)) + "1" + repeated("}", levels) + "\n"),
                HasSubstr("line 4: nested deeper than 64 levels"));
    EXPECT_THAT(told("t.yaml", trainer + ("b:\n  " + repeated("- ", levels)) + "1\n"),
                HasSubstr("line 5: nested deeper than 64 levels"));
    EXPECT_THAT(told("t.json", "{\"train_batch_size\": 1,\n\"a\": \"]]}\\\"\",\n\"b\": " + repeated("[", levels) +
                                   repeated("]", levels) + "}"),
                HasSubstr("line 3: nested deeper than 64 levels"));
  }
}

// One that is named again is read again.
TEST(LaunchFiles, TheFilesOfALaunchAreBoundedTogether) {
  const Folder folder;
  static_cast<void>(
      folder.write("ds.json", R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "a": ")" +
                                  std::string(1'000'000, 'x') + "\"}"));
  const auto script = [&](int times) {
    return folder.write("run.sh", "deepspeed train.py --per_device_train_batch_size 1" +
                                      repeated(" --deepspeed ds.json", times) + "\n");
  };
  EXPECT_EQ(complaint([&] { return read({script(4)}); }), "");
  EXPECT_THAT(complaint([&] { return read({script(5)}); }),
              HasSubstr("ds.json: the launch's files have more than 4 MiB"));
}

// As in the shell around it: what eval and bash -c read again counts on.
TEST(LaunchFiles, WhatEvalReadsAgainCountsOn) {
  const std::string flags = "torchrun train.py --bf16 --per_device_train_batch_size 1";
  EXPECT_EQ(told("run.sh", "A=\"" + flags + "\"\neval \"$A\"\n"), "");
  EXPECT_THAT(told("run.sh", "A='" + std::string(10'000, 'x') + "'\neval \"" + flags + " --data" +
                                 repeated(" $A", 1'000) + "\"\n"),
              HasSubstr("line 2: what its"));
  EXPECT_THAT(told("run.sh", "eval '" + flags + " --seed " + repeated("${a:-", 100) + repeated("}", 100) + "'\n"),
              HasSubstr("nested deeper than 64 levels"));
}

}  // namespace
}  // namespace spillway::launch
