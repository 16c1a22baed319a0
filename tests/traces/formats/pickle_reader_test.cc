#include "traces/formats/pickle_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

using namespace std::string_literals;

Pickle parse(std::string bytes, const PickleLimits& limits = {}) {
  FileMemory memory("p");
  return Pickle(std::move(bytes), memory, limits);
}

std::string refusal(const std::string& bytes, const PickleLimits& limits = {}) {
  try {
    parse(bytes, limits);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// pickle.dumps({"a": [1, -2, 2**40, True, None, 0.5]}, protocol=4), by the protocol's definition.
TEST(PickleTest, PlainValues) {
  const Pickle p =
      parse("\x80\x04}\x8c\x01\x61](K\x01J\xfe\xff\xff\xff\x8a\x06\0\0\0\0\0\x01\x88NG\x3f\xe0\0\0\0\0\0\0es."s);
  const auto list = p.items(p.find(p.root(), "a"));
  ASSERT_EQ(list.size(), 6U);
  EXPECT_EQ(p.integer(list[0]), 1);
  EXPECT_EQ(p.integer(list[1]), -2);
  EXPECT_EQ(p.integer(list[2]), std::int64_t{1} << 40);
  EXPECT_EQ(p.integer(list[3]), 1);
  EXPECT_EQ(p.kind(list[4]), Pickle::Kind::none);
  EXPECT_EQ(p.floating(list[5]), 0.5);
}

// A 9-byte LONG1 holds 2^63..2^64-1 (addresses); one bit more is refused.
TEST(PickleTest, LongIntegers) {
  const Pickle p = parse("\x80\x04\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0."s);
  EXPECT_EQ(p.unsigned_integer(p.root()), UINT64_MAX);
  EXPECT_FALSE(p.integer(p.root()).has_value());
  EXPECT_NE(refusal("\x80\x04\x8a\x09\0\0\0\0\0\0\0\0\x01."s), "");
  EXPECT_EQ(parse("\x80\x04\x8a\x02\x00\xff."s).integer(0), -256);
}

// One list appended twice through the memo is one value with two references.
TEST(PickleTest, SharedValues) {
  const Pickle p = parse("\x80\x04](]\x94h\0h\0e."s);
  const auto list = p.items(p.root());
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0], list[1]);
  EXPECT_EQ(list[0], list[2]);
}

// cos\nsystem: the classic attack. Instruction and offset are named.
TEST(PickleTest, CallsAreRefused) {
  const std::string text = refusal("\x80\x04\x63os\nsystem\n(X\x02\0\0\0idtR."s);
  EXPECT_NE(text.find("GLOBAL"), std::string::npos) << text;
  EXPECT_NE(text.find("byte 2"), std::string::npos) << text;
  for (const char code : "Rbio\x81\x93\x96PQcBCIVS"s) EXPECT_NE(refusal("\x80\x04"s + code + "...."), "") << int(code);
}

// Every truncation of a sound pickle is refused, none crashes.
TEST(PickleTest, Truncations) {
  const std::string sound =
      "\x80\x04\x95\x20\0\0\0\0\0\0\0}\x94(\x8c\x01x\x94K\x01\x8c\x01y\x94]\x94(K\x02K\x03\x86\x94\x65u."s;
  EXPECT_EQ(refusal(sound), "");
  for (std::size_t length = 0; length < sound.size(); ++length)
    EXPECT_NE(refusal(sound.substr(0, length)), "") << length;
}

TEST(PickleTest, Hostile) {
  EXPECT_NE(refusal("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx."s), "");  // a text that claims 2^63 bytes
  EXPECT_NE(refusal("\x80\x04\x8b\xff\xff\xff\xffx."s), "");                  // an integer of 4 GiB
  EXPECT_NE(refusal("\x80\x04Nr\xff\xff\xff\x0f."s), "");                     // a memo of 268 million slots
  EXPECT_NE(refusal("\x80\x04"s + std::string(100'000, '(') + "."), "");      // marks without end
  EXPECT_NE(refusal("\x80\x04\x8c\x02\xc3\x28."s), "");                       // not UTF-8
  EXPECT_NE(refusal("\x80\x04Na."s), "");                                     // append without a list
  EXPECT_NE(refusal("\x80\x04}(Nu."s), "");                                   // a key without a value
  EXPECT_NE(refusal("\x80\x06N."s), "");                                      // protocol 6
  EXPECT_EQ(refusal("\x80\x04]\x94h\0a."s), "");                              // a list inside itself is harmless
}

// Each of these bytes makes some 30 to 70 of a list or a tuple.
TEST(PickleTest, WhatIsMadeOfItIsBounded) {
  const std::string many(3'000'000, '\x85');
  for (const std::string& bytes : {"\x80\x04N"s + many + ".", "\x80\x04]("s + std::string(6'000'000, ')') + "e."})
    EXPECT_NE(refusal(bytes).find("of memory"), std::string::npos) << refusal(bytes);
  // Each jumps ahead of the slots by as much as one may of what was remembered.
  const std::string memo = "\x80\x04Nr\0\x04\0\0r\0\x08\0\0."s;
  EXPECT_NE(refusal(memo).find("out of all proportion"), std::string::npos) << refusal(memo);
  EXPECT_EQ(refusal("\x80\x04Nr\0\x04\0\0."s), "");
}

TEST(PickleTest, SkippedKeyStaysEmpty) {
  PickleLimits limits;
  limits.skipped_key = "frames";
  const Pickle p = parse("\x80\x04}(\x8c\x06\x66rames](K\x01K\x02\x65\x8c\x01x](K\x03\x65u."s, limits);
  EXPECT_TRUE(p.items(p.find(p.root(), "frames")).empty());
  EXPECT_EQ(p.items(p.find(p.root(), "x")).size(), 1U);
}

}  // namespace
}  // namespace spillway::traces
