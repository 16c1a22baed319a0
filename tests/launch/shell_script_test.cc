#include "launch/shell_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "launch/launch_command.h"
#include "tests/launch/launch_fixture.h"

namespace spillway::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ShellScript read_script(const std::string& text, const ShellValues& given = {}) {
  TextBudget budget("run.sh", text.size());
  return read_shell(text, given, budget);
}

std::vector<std::string> words(const std::string& text, const ShellValues& given = {}) {
  const ShellScript script = read_script(text, given);
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
  EXPECT_THAT(words("A=('a b' c)\nrun \"x ${A[*]}\" ${A[*]}"), ElementsAre("run", "x a b c", "a", "b", "c"));
  EXPECT_THAT(words("A=()\nrun \"${A[@]}\" ${A[@]} end"), ElementsAre("run", "end"));
}

// In the place of the command, in its line; what isn't there is a note.
TEST(ShellScript, FilesThatAreReadAsParts) {
  const ShellSource source = [](const std::string& name) {
    return name == "own.env" ? std::optional<std::string>("A=2\nexport B=3") : std::nullopt;
  };
  const auto read = [&](const std::string& text) {
    TextBudget budget("run.sh", text.size());
    return read_shell(text, {}, budget, source);
  };
  const ShellScript script = read("A=1\nsource own.env\nrun $A $B\nA=4\nrun $A\n. other.env");
  ASSERT_EQ(script.commands.size(), 4U);
  EXPECT_EQ(script.commands[1].words[1].text + script.commands[1].words[2].text, "23");
  EXPECT_EQ(script.commands[2].words[1].text, "4");
  ASSERT_EQ(script.exports.size(), 1U);
  EXPECT_EQ(script.exports[0].value.line, 2);
  EXPECT_THAT(script.notes, ElementsAre(HasSubstr("line 6: other.env")));
}

TEST(ShellScript, DefaultsAndArithmetic) {
  EXPECT_THAT(words("N=${N:-4}\nrun ${M:-$((N*8))} ${K-} $((2+3*(4-1)))"), ElementsAre("run", "32", "11"));
  EXPECT_THAT(words("T=4\nrun $(( ($T > 1) ? 1 : 0 )) $((T==4 && T<3 || 0)) $((T>=5 ? 7 : T!=4 ? 8 : 9))"),
              ElementsAre("run", "1", "0", "9"));
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

// What nothing assigns, behind a flag that takes a number, is no part of that number.
TEST(ShellScript, FlagsThatMayHideAreBlamedOnTheirVariable) {
  ShellCommand command{.words = {{.text = "torchrun", .line = 1},
                                 {.text = "pretrain_gpt.py", .line = 1},
                                 {.text = "--num-attention-heads", .line = 2},
                                 {.text = "32", .line = 2},
                                 {.text = "$gqa", .line = 3, .unknown = "gqa"}},
                       .line = 1};
  TextBudget budget("launch.sh", 1U << 20U);
  std::vector<std::string> notes;
  try {
    launch_command(command, notes, budget);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.place(), "line 3");
    EXPECT_THAT(error.cause(), HasSubstr("$gqa"));
    EXPECT_THAT(error.remedy(), HasSubstr("--env 'gqa="));
  }
}

TEST(ShellScript, WhatTheEnvironmentMayHoldIsTakenAsNotSet) {
  EXPECT_THAT(words("A=(--x)\nif [ -n \"${KEY}\" ]; then A+=(--y); fi\nrun ${A[@]}"), ElementsAre("run", "--x"));
  EXPECT_THAT(words("A=(--x)\nif [ -f there ]; then A+=(--y); fi\nrun ${A[@]}"), ElementsAre("run", "--x"));
  const ShellScript script = read_script("[ -z \"$KEY\" ] && A=1\nif [ -f there ]; then B+=(--y); fi\n");
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
  const ShellScript script = read_script("for i in 1 2; do A=$i; done\n");
  ASSERT_EQ(script.notes.size(), 1u);
  EXPECT_THAT(script.notes.front(), HasSubstr("line 1: a loop"));
}

TEST(ShellScript, RedirectionsAndHereDocumentsAreLeftOut) {
  EXPECT_THAT(words("run a > out 2>&1 b"), ElementsAre("run", "a", "b"));
  EXPECT_THAT(words("cat <<EOF > x\n--not a flag\nEOF\nrun"), ElementsAre("cat", ";", "run"));
}

TEST(ShellScript, ExportsAndJobOptions) {
  const ShellScript script = read_script("#!/bin/bash\n#SBATCH --nodes=4 -J x\nexport A=1\nB=2 run $SLURM_NNODES\n");
  ASSERT_EQ(script.exports.size(), 2u);
  EXPECT_EQ(script.exports[0].name, "A");
  EXPECT_EQ(script.exports[1].value.text, "2");
  ASSERT_EQ(script.job_options.size(), 3u);
  EXPECT_EQ(script.commands.front().words.back().text, "4");
}

TEST(ShellScript, WordsKnowTheirLines) {
  const ShellScript script = read_script("A=(\n--x\n--y\n)\nrun \\\n ${A[@]} z\n");
  std::vector<std::int64_t> lines;
  for (const ShellWord& word : script.commands.front().words) lines.push_back(word.line);
  EXPECT_THAT(lines, ElementsAre(5, 2, 3, 6));
}

TEST(ShellScript, WhatHasNoEndIsRefused) {
  for (const char* text : {"run 'a", "run \"a", "run ${a", "A=(1 2", "if [ 1 = 1 ]; then run", "while true; do x",
                           "case a in a) x ;;", "cat <<EOF\nx"})
    EXPECT_THAT(test::complaint([&] { return read_script(text); }), HasSubstr("run.sh: line ")) << text;
}

// Damaged text is read or refused, never more.
TEST(ShellScript, AnyPieceOfAScriptIsReadOrRefused) {
  const std::string text =
      "A=(--x ${B:-$((1+2))} \"$(date)\" )\nif [[ $A == *x* && -n y ]]; then\n case $1 in (a|b) C='1' ;; esac\nfi\n"
      "for i in {1..3}; do echo $i; done\nexport Z=\"${A[@]}\" && run `x` \"${A[@]}\" <<E | tee\nE\n";
  for (std::size_t begin = 0; begin < text.size(); ++begin)
    for (std::size_t length = 1; begin + length <= text.size(); length += 7)
      static_cast<void>(test::complaint([&] { return read_script(text.substr(begin, length)); }));
}

std::string repeated_text(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// Each level of these is read by another reader within the one around it; all of them count together.
TEST(ShellScript, WhatNestsTooDeeplyIsRefused) {
  const std::pair<const char*, const char*> brackets[] = {{"$((", "))"},   {"$(", ")"},        {"${a:-", "}"},
                                                          {"\"$(", ")\""}, {"\"${a:-", "}\""}, {"${a:-$((", "))}"},
                                                          {"$((-", "))"}};
  for (const auto& [open, close] : brackets) {
    const auto script = [&, &o = open, &c = close](int levels) {
      return "true\nrun --x " + repeated_text(o, levels) + "1" + repeated_text(c, levels) + "\n";
    };
    EXPECT_EQ(read_script(script(10)).commands.size(), 1u) << open;
    for (const int levels : {65, 100'000})
      EXPECT_THAT(test::complaint([&] { return read_script(script(levels)); }),
                  HasSubstr("run.sh: line 2: nested deeper than 64 levels"))
          << open;
  }
}

TEST(ShellScript, DefaultsThatAreAssigned) {
  EXPECT_THAT(words(": \"${A:=7}\"\n: ${B=x}\nC=\n: \"${C:=z}\"\n: \"${A:=9}\"\nrun $A $B $C"),
              ElementsAre("run", "7", "x", "z"));
  EXPECT_THAT(words(": \"${A:=7}\"\nrun $A", {{"A", "8"}}), ElementsAre("run", "8"));
}

// What `read` takes from a here-document, and files that are written from one.
TEST(ShellScript, HereDocuments) {
  EXPECT_THAT(words("N=4\nread -r -d '' X <<EOF\n  job --n $N \\\n --s \"a\"\nEOF\nrun $X\n"),
              ElementsAre("run", "job", "--n", "4", "--s", "\"a\""));
  const ShellScript script = read_script(
      "N=4\nF=a.json\ncat > $F <<EOF\n{\"n\": $N, \"b\": \"\\$N\"}\nEOF\ncat <<'EOF' >b.json\n{$N}\nEOF\n"
      "tee c.json <<-EOF\n\tx\n\tEOF\nrun --x\n");
  EXPECT_EQ(script.files.at("a.json"), "{\"n\": 4, \"b\": \"$N\"}\n");
  EXPECT_EQ(script.files.at("b.json"), "{$N}\n");
  EXPECT_EQ(script.files.count("c.json"), 1u);
  EXPECT_EQ(script.commands.back().line, 12);
  EXPECT_THAT(test::complaint([] { return read_script("cat > a <<EOF\nx\n"); }), HasSubstr("<<EOF has no end"));
}

TEST(ShellScript, BlocksThatNestTooDeeplyAreRefused) {
  const std::pair<const char*, const char*> blocks[] = {
      {"if true; then\n", "fi\n"}, {"if false; then\n:\nelse\n", "fi\n"}, {"case a in a)\n", ";; esac\n"}};
  for (const auto& [open, close] : blocks) {
    const auto script = [&, &o = open, &c = close](int levels) {
      return repeated_text(o, levels) + "run --x\n" + repeated_text(c, levels);
    };
    EXPECT_EQ(read_script(script(50)).commands.size(), 1u) << open;
    for (const int levels : {65, 100'000})
      EXPECT_THAT(test::complaint([&] { return read_script(script(levels)); }),
                  HasSubstr("nested deeper than 64 levels"))
          << open;
  }
  // Within a block, less is left for the value.
  EXPECT_THAT(test::complaint([&] {
                return read_script(repeated_text("if true; then\n", 50) + "A=" + repeated_text("${a:-", 20) +
                                   repeated_text("}", 20) + "\n" + repeated_text("fi\n", 50));
              }),
              HasSubstr("line 51: nested deeper than 64 levels"));
}

TEST(ShellScript, SignsAndBracketsOfArithmeticAreNoLevelsOnceTheyAreOver) {
  EXPECT_THAT(words("run $((" + repeated_text("(1)+-", 100) + "(0)))"), ElementsAre("run", "-98"));
}

// 4 MiB of letters, of however short a script.
TEST(ShellScript, ValuesThatDoubleAreRefused) {
  const std::pair<const char*, const char*> kinds[] = {
      {"A=0123456789", "A=$A$A"},      {"A=(a b)", "A=(\"${A[@]}\" ${A[@]})"},
      {"A=(a b)", "A+=(\"${A[@]}\")"}, {"A=ab", "A+=$A"},
      {"A=$(date)", "A=$A$A"},         {"A=ab", "A=${B:-$A$A}"},
      {"A=ab", "export A=\"$A $A\""},  {"A=ab", "case a in a) A=$A$A;; esac"}};
  for (const auto& [first, line] : kinds) {
    const auto script = [&, &f = first, &l = line](int lines) {
      return std::string(f) + "\n" + repeated_text(std::string(l) + "\n", lines) + "run --x\n";
    };
    EXPECT_EQ(read_script(script(10)).commands.size(), 1u) << line;
    EXPECT_THAT(test::complaint([&] { return read_script(script(40)); }),
                HasSubstr("takes more than 4194304 letters here"))
        << line;
  }
}

TEST(ShellScript, AValueNamedManyTimesIsRefused) {
  for (const std::string& value : {std::string(10'000, 'x'), "$(" + std::string(10'000, 'x') + ")"})
    EXPECT_THAT(test::complaint([&] { return read_script("A=" + value + "\nrun" + repeated_text(" $A", 1'000)); }),
                HasSubstr("run.sh: line 2: what its"));
}

// A pattern's stars try each letter: long ones against long words are not looked at.
TEST(ShellScript, LongPatternsAgainstLongWordsAreRefused) {
  const std::string stars = repeated_text("*[a", 20'000), letters(100'000, 'a');
  EXPECT_THAT(test::complaint([&] { return read_script("[[ " + letters + " == " + stars + " ]]\n"); }),
              HasSubstr("line 1: what its"));
  EXPECT_THAT(test::complaint([&] { return read_script("case " + letters + " in " + stars + ") x ;; esac\n"); }),
              HasSubstr("line 1: what its"));
}

}  // namespace
}  // namespace spillway::launch
