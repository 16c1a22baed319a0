#include "base/plain_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/data_folder.h"
#include "base/read_file.h"
#include "base/splitmix64.h"
#include "tests/test_size.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr int deepest = 8;

bool is_plain(std::string_view text) {
  Json root;
  return parse_plain_json(text, deepest, root);
}

// With the kinds of numbers, which == takes for equal.
std::string kinds(const Json& json) {
  if (!json.is_structured()) return std::to_string(static_cast<int>(json.type())) + json.dump();
  std::string all = json.is_array() ? "[" : "{";
  for (const auto& [key, value] : json.items()) all += key + ":" + kinds(value) + ",";
  return all;
}

void expect_same(std::string_view text) {
  SCOPED_TRACE(text);
  Json plain;
  ASSERT_TRUE(parse_plain_json(text, deepest, plain));
  EXPECT_EQ(kinds(plain), kinds(Json::parse(text)));
}

TEST(PlainJson, ReadsAsFarAsAKeyOfTheOutermostObject) {
  Json root;
  ASSERT_TRUE(parse_plain_json_before("b", R"({"a":{"b":1},"b":[1,2],"c":)", deepest, root));
  EXPECT_EQ(root, Json::parse(R"({"a":{"b":1}})"));
  EXPECT_FALSE(parse_plain_json_before("d", R"({"a":{"d":1}})", deepest, root));
  EXPECT_FALSE(parse_plain_json_before("b", R"([{"b":1}])", deepest, root));
  EXPECT_FALSE(is_plain(R"({"":)"));  // who reads all of it knows no such key, not even an empty one
  expect_same(R"({"":1,"a":2})");
}

TEST(PlainJson, ReadsWhatTheFullParserReads) {
  for (const char* text : {"0",
                           "-0",
                           "-1",
                           "18446744073709551615",
                           "-9223372036854775808",
                           "0.1",
                           "1e3",
                           "1E+3",
                           "-2.5e-3",
                           "5e-324",
                           "true",
                           "false",
                           "null",
                           R"("")",
                           R"("a b~")",
                           "[]",
                           "{}",
                           " [ 1 , [ ] , { } ] ",
                           R"({"a":1,"b":{"a":[2]}})",
                           "\t\r\n[1]\n",
                           "[[[[[[[[1]]]]]]]]",
                           "1.7976931348623157e308",
                           "123456789012345678.9"})
    expect_same(text);
}

TEST(PlainJson, LeavesTheRestToTheFullParser) {
  for (const char* text : {"",
                           " ",
                           "01",
                           "-",
                           "+1",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "18446744073709551616",
                           "-9223372036854775809",
                           "1e400",
                           "1e-400",
                           "nul",
                           "truee",
                           R"("a)",
                           R"("\n")",
                           "\"\n\"",
                           "\"\x7f\"",
                           "\"\xc3\xa4\"",
                           "\xef\xbb\xbf[]",
                           "[1,]",
                           "[1",
                           "[1 2]",
                           "{",
                           R"({"a")",
                           R"({"a":})",
                           R"({"a":1,})",
                           R"({a:1})",
                           R"({"a":1,"a":2})",
                           "[]]",
                           "[] // x",
                           "[/**/]",
                           "[[[[[[[[[1]]]]]]]]]",
                           "NaN",
                           "-Infinity"})
    EXPECT_FALSE(is_plain(text)) << text;
}

std::string random_value(SplitMix64& dice, int depth) {
  const std::uint64_t kind = dice.below(depth > 4 ? 5 : 8);
  if (kind == 0) return std::to_string(static_cast<std::int64_t>(dice.next()));
  if (kind == 1) return std::to_string(dice.next() >> dice.below(64));
  if (kind == 2) return std::to_string(dice.below(1000)) + "." + std::to_string(dice.next());
  if (kind == 3) return "-" + std::to_string(dice.next()) + "e-" + std::to_string(dice.below(40));
  if (kind == 4) return dice.below(2) == 0 ? "true" : "\"text " + std::to_string(dice.below(100)) + "\"";
  std::string text = kind == 5 ? "[" : "{";
  for (std::uint64_t i = 0, count = dice.below(12); i < count; ++i) {
    if (i > 0) text += dice.below(2) == 0 ? "," : " ,\n";
    if (kind != 5) text += "\"key" + std::to_string(i) + "\": ";
    text += random_value(dice, depth + 1);
  }
  return text + (kind == 5 ? "]" : "}");
}

TEST(PlainJson, ReadsRandomDocumentsAlike) {
  SplitMix64 dice(26);
  for (std::size_t round = 0; round < test::seeds(300, 10'000); ++round) expect_same(random_value(dice, 0));
}

// What is bundled in large numbers goes the short way.
TEST(PlainJson, TakesTheBundledTables) {
  std::size_t files = 0;
  for (const std::string& place : data_places("times", "models/times"))
    for (const std::string& file : json_files_in(place)) {
      expect_same(read_file(file, 1U << 20U));
      ++files;
    }
  EXPECT_GE(files, 5U);
}

}  // namespace
}  // namespace spillway
