#include "base/shortened.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/input_error.h"

namespace spillway {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Shortened, WhatIsShortStaysAsItIs) {
  for (const std::string& text :
       {std::string(), std::string("a b\n  c "), std::string(240, 'x'), std::string(500, ' ')})
    EXPECT_EQ(shortened(text), text);
}

TEST(Shortened, LongWordsAndLongTextsLoseTheirMiddle) {
  const std::string word = shortened("'" + std::string(20'000, 'x') + "' is no number");
  EXPECT_THAT(word, AllOf(StartsWith("'xxx"), EndsWith("xxx' is no number"), HasSubstr("x...x")));
  EXPECT_LT(word.size(), 300u);
  std::string many = "first";
  for (int i = 0; i < 10'000; ++i) many += " a";
  EXPECT_THAT(shortened(many + " last"), AllOf(StartsWith("first a"), EndsWith("a last"), HasSubstr("...")));
  EXPECT_LE(shortened(many).size(), 1'003u);
}

TEST(Shortened, CharactersStayWhole) {
  for (int before = 0; before < 4; ++before) {
    std::string text(static_cast<std::size_t>(before), 'a');
    for (int i = 0; i < 200; ++i) text += "\u20ac";
    std::string left = shortened(text).substr(static_cast<std::size_t>(before));
    const std::size_t dots = left.find("...");
    ASSERT_NE(dots, std::string::npos);
    left.erase(dots, 3);
    ASSERT_EQ(left.size() % 3, 0u);
    for (std::size_t at = 0; at < left.size(); at += 3) EXPECT_EQ(left.substr(at, 3), "\u20ac");
  }
}

// Whatever a caller quotes.
TEST(Shortened, AnErrorQuotesNothingWhole) {
  const std::string value(20'000, 'x');
  const InputError error("f.json", "/a/" + value, "'" + value + "' is no number", "not " + value + " but a number");
  EXPECT_THAT(error.what(), AllOf(StartsWith("f.json: /a/xxx"), HasSubstr("' is no number"), EndsWith(" but a number"),
                                  Not(HasSubstr(value))));
  EXPECT_LT(std::string(error.what()).size(), 1'000u);
  EXPECT_LT(error.cause().size() + error.place().size() + error.remedy().size(), 1'000u);
}

}  // namespace
}  // namespace spillway
