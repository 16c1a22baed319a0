// What becomes of the corpus when a line is lost, a key is misspelt or two launches run into one: never another answer
// with the same lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/launch_marks.h"
#include "launch/launch_table.h"
#include "tests/launch/launch_corpus.h"

namespace spillway::launch {
namespace {

using test::corpus;
using test::CorpusLaunch;
using test::fixture;

// Of the launch with another text; nullopt: it is refused.
std::optional<LaunchImport> mutated(const test::CorpusFolder& folder, const CorpusLaunch& launch,
                                    const std::string& text) {
  try {
    return test::import_of(launch, {folder.write("mutated" + launch.file, text)});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// What the import says of its settings.
std::multiset<std::string> lists_of(const LaunchImport& import) {
  std::multiset<std::string> all;
  for (const UnderstoodFlag& each : import.understood) all.insert(each.flag + " = " + each.value);
  for (const DefaultedKey& each : import.defaulted) all.insert("default " + each.key + " = " + each.value);
  for (const IgnoredFlag& each : import.ignored)
    all.insert(std::string(to_string(each.kind)) + " " + each.flag + " = " + each.value);
  for (const UnstatedKey& each : import.unstated) all.insert("open " + each.key);
  for (const scenario::UnsayableFlag& each : import.unsayable) all.insert("unsayable " + each.flag);
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string without(const std::vector<std::string>& lines, std::size_t left_out) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i != left_out) text += lines[i] + "\n";
  return text;
}

// Whether a setting stands in it: a key with its value, or a flag.
bool says(const std::string& line, bool is_shell) {
  constexpr std::array<std::string_view, 2> of_other_branches = {"    TRAIN+=(--fp16)",
                                                                 "  *)    MODEL+=(--vocab-size 32768) ;;"};
  if (std::find(of_other_branches.begin(), of_other_branches.end(), line) != of_other_branches.end()) return false;
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos || (line[begin] == '#' && !line.starts_with("#SBATCH"))) return false;
  if (is_shell || line.find("--") != std::string::npos) return line.find("--") != std::string::npos;
  const std::size_t sign = line.find_first_of(":=", begin);
  return sign != std::string::npos && line.find_first_not_of(" \t", sign + 1) != std::string::npos;
}

TEST(LaunchMutations, NoLineIsLostInSilence) {
  const test::CorpusFolder folder;
  for (const CorpusLaunch& each : corpus()) {
    if (!each.refused.empty()) continue;
    const std::string text = test::text_of(fixture(each.file));
    const auto whole = mutated(folder, each, text);
    ASSERT_TRUE(whole) << each.file;
    const auto lists = lists_of(*whole);
    const bool is_python = each.file.ends_with(".py") || each.file.ends_with(".ipynb");  // most lines say nothing
    const std::vector<std::string> lines = lines_of(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto import = mutated(folder, each, without(lines, i));
      if (!import) continue;
      const bool counts =
          test::answer(*import) != test::answer(*whole) || (says(lines[i], each.file.ends_with(".sh")) && !is_python);
      EXPECT_TRUE(!counts || lists_of(*import) != lists) << each.file << ": " << lines[i];
    }
  }
}

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// Where the name stands as a key: as a whole, with a value or nothing behind it that is no part of a name.
std::vector<std::size_t> places_of(const std::string& text, const std::string& name) {
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool is_flag = at > 1 && text[at - 1] == '-' && text[at - 2] == '-';
    std::size_t end = at + name.size();
    if ((at > 0 && is_letter(text[at - 1]) && !is_flag) || (end < text.size() && is_letter(text[end]))) continue;
    while (end < text.size() && (text[end] == '"' || text[end] == '\'' || text[end] == ' ' || text[end] == ']')) ++end;
    const bool is_key = end < text.size() && (text[end] == ':' || text[end] == '=' || text[end] == '.');
    if (is_flag || is_key) places.push_back(at);
  }
  return places;
}

// Whether as much of the one is understood as of the other, and as much left out that changes memory or time.
bool means_the_same(const LaunchImport& one, const LaunchImport& other) {
  const auto what = [](const LaunchImport& import) {
    std::multiset<std::string> all;
    for (const UnderstoodFlag& each : import.understood) all.insert(each.flag);
    for (const scenario::UnsayableFlag& each : import.unsayable) all.insert("unsayable " + each.flag);
    return all;
  };
  return test::answer(one) == test::answer(other) && what(one) == what(other);
}

bool names(const LaunchImport& import, const std::string& wanted) {
  const auto has = [&](const std::string& text) { return text.find(wanted) != std::string::npos; };
  return std::any_of(import.unsayable.begin(), import.unsayable.end(),
                     [&](const auto& each) { return has(each.flag); }) ||
         std::any_of(import.warnings.begin(), import.warnings.end(), has);
}

// A key with a letter too many is refused, or said to be nobody's, unless nothing hangs on it.
TEST(LaunchMutations, AMisspeltKeyIsNamed) {
  const test::CorpusFolder folder;
  for (const CorpusLaunch& each : corpus()) {
    if (!each.refused.empty()) continue;
    const std::string text = test::text_of(fixture(each.file));
    const auto whole = mutated(folder, each, text);
    ASSERT_TRUE(whole) << each.file;
    std::set<std::string> keys;
    for (const UnderstoodFlag& flag : whole->understood) {
      std::string name = flag.flag;
      while (name.starts_with('-')) name.erase(0, 1);
      for (std::size_t dot; (dot = name.find('.')) != std::string::npos; name.erase(0, dot + 1))
        keys.insert(name.substr(0, dot));
      keys.insert(name);
    }
    for (const std::string& name : keys)
      for (const std::size_t at : places_of(text, name)) {
        const std::string misspelt = name.substr(0, name.size() / 2) + "q" + name.substr(name.size() / 2);
        std::string changed = text;
        changed.replace(at, name.size(), misspelt);
        const auto import = mutated(folder, each, changed);
        EXPECT_TRUE(!import || names(*import, misspelt) || means_the_same(*import, *whole))
            << each.file << ": " << misspelt;
      }
  }
}

TEST(LaunchMutations, TheFilesNameIsNothing) {
  const test::CorpusFolder folder;
  for (const CorpusLaunch& each : corpus()) {
    if (!each.refused.empty()) continue;
    const LaunchImport own = test::import_of(each, {fixture(each.file)});
    const auto other = mutated(folder, each, test::text_of(fixture(each.file)));
    ASSERT_TRUE(other) << each.file;
    EXPECT_EQ(lists_of(own), lists_of(*other)) << each.file;
    EXPECT_EQ(test::key(own, "model.name"), test::key(*other, "model.name")) << each.file;
  }
}

// DeepSpeed's and accelerate's files are parts of another's launch; a launcher goes with its engine.
bool may_go_together(const std::string& one, const std::string& other) {
  const auto is_part = [](const std::string& launcher) { return launcher == "deepspeed" || launcher == "accelerate"; };
  const auto format = [](const std::string& launcher) {
    return static_cast<LaunchFormat>(*launch_format_words().find(launcher));
  };
  return one == other || is_part(one) || is_part(other) || engine_of(format(one)) == engine_of(format(other));
}

TEST(LaunchMutations, TwoLaunchesAreNotOne) {
  const test::CorpusFolder folder;
  const std::vector<CorpusLaunch> all = corpus();
  for (const CorpusLaunch& one : all)
    for (const CorpusLaunch& other : all) {
      if (!one.refused.empty() || !other.refused.empty() || may_go_together(one.launcher, other.launcher)) continue;
      EXPECT_NE(test::complaint([&] {
                  return test::import_of(one, {fixture(one.file), fixture(other.file)});
                }),
                "")
          << one.file << " " << other.file;
      if (std::filesystem::path(one.file).extension() != std::filesystem::path(other.file).extension()) continue;
      const std::string both = test::text_of(fixture(one.file)) + test::text_of(fixture(other.file));
      EXPECT_FALSE(mutated(folder, one, both)) << one.file << " + " << other.file;
    }
}

}  // namespace
}  // namespace spillway::launch
