// Which file is whose, and what can't be read.
#include "scenario/launch/launch_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/launch/launch_fixture.h"

namespace spillway::scenario {
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

// A trace or a model's configuration may have a key or two that a launch has as well.
TEST(LaunchFiles, AFewKnownKeysMakeNoLaunch) {
  const Folder folder;
  const std::string path =
      folder.write("config.json", R"({"architectures": ["A"], "model_type": "a", "vocab_size": 8, "hidden_size": 64})");
  EXPECT_THAT(complaint([&] { return read({path}); }),
              testing::AllOf(HasSubstr("of its 4 keys are known of a launch"), HasSubstr("--from")));
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

TEST(LaunchFiles, BadDocumentsNameTheirPlace) {
  const Folder folder;
  const std::map<std::string, std::string> wrong = {{"a.json", "{\"a\": 1,}"},
                                                    {"b.yaml", "a: [1\nb: 2\n"},
                                                    {"c.yaml", "bf16: true\nbf16: false\n"},
                                                    {"d.toml", "[training]\nseq_len = \n"},
                                                    {"e.txt", "nothing of the kind"},
                                                    {"f.json", R"({"colour": "red"})"}};
  for (const auto& [name, text] : wrong) {
    const std::string path = folder.write(name, text);
    EXPECT_THAT(complaint([&] { return read({path}); }), HasSubstr(name)) << name;
  }
}

}  // namespace
}  // namespace spillway::scenario
