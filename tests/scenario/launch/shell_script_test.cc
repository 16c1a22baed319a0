#include "scenario/launch/shell_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/launch/launch_fixture.h"

namespace spillway::scenario {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> words(const std::string& text, const ShellValues& given = {}) {
  const ShellScript script = read_shell(text, "run.sh", given);
  std::vector<std::string> result;
  for (const ShellCommand& command : script.commands) {
    if (!result.empty()) result.emplace_back(";");
    for (const ShellWord& word : command.words) result.push_back(word.unknown.empty() ? word.text : "?" + word.unknown);
  }
  return result;
}

TEST(ShellScript, QuotesContinuationsAndComments) {
  EXPECT_THAT(words("run --a 'x y' \\\n  \"b c\"d # end\n# --no\n"), ElementsAre("run", "--a", "x y", "b cd"));
  EXPECT_THAT(words("run a\\ b '' \"\""), ElementsAre("run", "a b", "", ""));
  EXPECT_THAT(words("run x#y"), ElementsAre("run", "x#y"));
}

TEST(ShellScript, VariablesAreSplitWhereTheyAreNotQuoted) {
  EXPECT_THAT(words("A='x y'\nrun $A \"$A\" ${A}z"), ElementsAre("run", "x", "y", "x y", "x", "yz"));
  EXPECT_THAT(words("A=1 B=$A\nA+=2\nrun $A$B"), ElementsAre("run", "121"));
}

TEST(ShellScript, Arrays) {
  EXPECT_THAT(words("A=(--x 1\n  # no\n  '--y 2'\n)\nA+=(--z)\nrun ${A[@]}"),
              ElementsAre("run", "--x", "1", "--y", "2", "--z"));
  EXPECT_THAT(words("A=('a b' c)\nrun \"${A[@]}\""), ElementsAre("run", "a b", "c"));
  EXPECT_THAT(words("A=()\nrun \"${A[@]}\" ${A[@]} end"), ElementsAre("run", "end"));
}

TEST(ShellScript, DefaultsAndArithmetic) {
  EXPECT_THAT(words("N=${N:-4}\nrun ${M:-$((N*8))} ${K-} $((2+3*(4-1)))"), ElementsAre("run", "32", "11"));
  EXPECT_THAT(words("N=${N:-4}\nrun $N", {{"N", "7"}}), ElementsAre("run", "7"));
  EXPECT_THAT(words("N=4\nrun $N", {{"N", "7"}}), ElementsAre("run", "7"));  // what is given wins
}

TEST(ShellScript, WhatOnlyARunTellsIsUnknown) {
  EXPECT_THAT(words("D=$1\nrun $D $(date) $HOME"), ElementsAre("run", "?D", "?$(date)", "?HOME"));
  EXPECT_THAT(words("D=$1\nrun $D", {{"1", "x"}}), ElementsAre("run", "x"));
}

// Around what isn't known, words are split all the same: flags behind it are not lost.
TEST(ShellScript, WhatIsUnknownIsNotSplit) {
  EXPECT_THAT(words("D=$1\nA=\"--data $D/x --split 1\"\nrun $A"), ElementsAre("run", "--data", "?D", "--split", "1"));
  EXPECT_THAT(words("A=(\"--data $(date +%s) z\" --x)\nrun ${A[@]}"),
              ElementsAre("run", "--data", "?$(date +%s)", "z", "--x"));
}

TEST(ShellScript, WhatTheEnvironmentMayHoldIsTakenAsNotSet) {
  EXPECT_THAT(words("A=(--x)\nif [ -n \"${KEY}\" ]; then A+=(--y); fi\nrun ${A[@]}"), ElementsAre("run", "--x"));
  EXPECT_THAT(words("A=(--x)\nif [ -f there ]; then A+=(--y); fi\nrun ${A[@]}"), ElementsAre("run", "--x"));
  const ShellScript script = read_shell("[ -z \"$KEY\" ] && A=1\nif [ -f there ]; then B+=(--y); fi\n", "run.sh", {});
  ASSERT_EQ(script.notes.size(), 2u);
  EXPECT_THAT(script.notes[0], HasSubstr("line 1: $KEY is taken as not set"));
  EXPECT_THAT(script.notes[1], HasSubstr("line 2: whether B gets more"));
}

TEST(ShellScript, BranchesThatFollowFromWhatIsKnown) {
  EXPECT_THAT(words("P=bf16\nif [[ \"$P\" == \"bf16\" ]]; then A=1; elif [ $P = x ]; then A=2; else A=3; fi\nrun $A"),
              ElementsAre("run", "1"));
  EXPECT_THAT(words("T=2\n[ $T -gt 1 ] && A=yes\n[ $T -gt 4 ] && A=no\nrun $A"), ElementsAre("run", "yes"));
  EXPECT_THAT(words("T=2\n[ $T -gt 1 ] || A=yes\nrun ${A:-no}"), ElementsAre("run", "no"));
  EXPECT_THAT(words("case ${S:-b} in a) X=1 ;; b|c) X=2 ;; *) X=3 ;; esac\nrun $X"), ElementsAre("run", "2"));
  EXPECT_THAT(words("case z in a) X=1 ;; *) X=3 ;; esac\nrun $X"), ElementsAre("run", "3"));
}

TEST(ShellScript, OtherBranchesLeaveWhatTheyAssignUnknown) {
  EXPECT_THAT(words("A=1\nif [ -f x ]; then A=2; fi\nrun $A"), ElementsAre("run", "?A"));
  EXPECT_THAT(words("A=1\nfor i in 1 2; do A=$i; done\nrun $A"), ElementsAre("run", "?A"));
  EXPECT_THAT(words("A=1\nf() {\n  A=2\n}\nrun $A"), ElementsAre("run", "?A"));
  const ShellScript script = read_shell("for i in 1 2; do A=$i; done\n", "run.sh", {});
  ASSERT_EQ(script.notes.size(), 1u);
  EXPECT_THAT(script.notes.front(), HasSubstr("line 1: a loop"));
}

TEST(ShellScript, RedirectionsAndHereDocumentsAreLeftOut) {
  EXPECT_THAT(words("run a > out 2>&1 b"), ElementsAre("run", "a", "b"));
  EXPECT_THAT(words("cat <<EOF > x\n--not a flag\nEOF\nrun"), ElementsAre("cat", ";", "run"));
}

TEST(ShellScript, ExportsAndJobOptions) {
  const ShellScript script =
      read_shell("#!/bin/bash\n#SBATCH --nodes=4 -J x\nexport A=1\nB=2 run $SLURM_NNODES\n", "run.sh", {});
  ASSERT_EQ(script.exports.size(), 2u);
  EXPECT_EQ(script.exports[0].name, "A");
  EXPECT_EQ(script.exports[1].value.text, "2");
  ASSERT_EQ(script.job_options.size(), 3u);
  EXPECT_EQ(script.commands.front().words.back().text, "4");
}

TEST(ShellScript, WordsKnowTheirLines) {
  const ShellScript script = read_shell("A=(\n--x\n--y\n)\nrun \\\n ${A[@]} z\n", "run.sh", {});
  std::vector<std::int64_t> lines;
  for (const ShellWord& word : script.commands.front().words) lines.push_back(word.line);
  EXPECT_THAT(lines, ElementsAre(5, 2, 3, 6));
}

TEST(ShellScript, WhatHasNoEndIsRefused) {
  for (const char* text : {"run 'a", "run \"a", "run ${a", "A=(1 2", "if [ 1 = 1 ]; then run", "while true; do x",
                           "case a in a) x ;;", "cat <<EOF\nx"})
    EXPECT_THAT(test::complaint([&] { return read_shell(text, "run.sh", {}); }), HasSubstr("run.sh: line ")) << text;
}

// Damaged text is read or refused, never more.
TEST(ShellScript, AnyPieceOfAScriptIsReadOrRefused) {
  const std::string text =
      "A=(--x ${B:-$((1+2))} \"$(date)\" )\nif [[ $A == *x* && -n y ]]; then\n case $1 in (a|b) C='1' ;; esac\nfi\n"
      "for i in {1..3}; do echo $i; done\nexport Z=\"${A[@]}\" && run `x` \"${A[@]}\" <<E | tee\nE\n";
  for (std::size_t begin = 0; begin < text.size(); ++begin)
    for (std::size_t length = 1; begin + length <= text.size(); length += 7)
      static_cast<void>(test::complaint([&] { return read_shell(text.substr(begin, length), "run.sh", {}); }));
}

}  // namespace
}  // namespace spillway::scenario
