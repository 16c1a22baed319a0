// The kinds of fields that plans, tables and records need beyond those of scenarios: nested lists, tuples, digests,
// parts, older names, null, keys that only the noun knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/field_reader.h"
#include "base/field_schema.h"
#include "base/field_writer.h"
#include "base/input_error.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

struct Watch {
  std::string keeper;
  std::optional<bool> is_night;
};

struct Voyage {
  std::string ship;
  std::uint64_t digest = 0;
  std::vector<double> depths;                     // infinity: no ground
  std::vector<std::vector<std::string>> signals;  // by day
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> bearings;
  std::pair<double, double> start;
  std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> stores;
  std::optional<Watch> watch;
  std::vector<std::pair<std::string, Scalar>> notes;
};

void describe(Voyage& voyage, FieldVisitor& visitor) {
  visitor.head({.schema = "voyage", .noun = "a voyage", .is_version_required = false});
  fields::text(visitor, {.key = "ship", .even_empty = true}, voyage.ship);
  fields::hex(visitor, {.key = "digest", .required = true}, voyage.digest);
  visitor.numbers({.key = "depths", .even_empty = true, .or_null = true}, voyage.depths);
  fields::list(visitor, {.key = "signals", .as_value = true}, voyage.signals,
               [&](std::vector<std::string>& day) { visitor.texts({.key = ""}, day); });
  fields::list(visitor, {.key = "bearings", .as_value = true}, voyage.bearings, [&](auto& day) {
    fields::list(visitor, {.key = "", .as_tuple = true}, day, [&](auto& bearing) {
      fields::integer(visitor, {.key = "from", .max = 359}, bearing.first);
      fields::integer(visitor, {.key = "to", .max = 359}, bearing.second);
    });
  });
  fields::group(visitor, {.key = "start", .as_tuple = true}, [&] {
    fields::number(visitor, {.key = "north"}, voyage.start.first);
    fields::number(visitor, {.key = "east"}, voyage.start.second);
  });
  fields::map(visitor, {.key = "stores", .as_tuple = true}, voyage.stores, [&](auto& store) {
    fields::integer(visitor, {.key = "casks"}, store.first);
    fields::integer(visitor, {.key = "sacks"}, store.second);
  });
  fields::part(visitor, {.key = "watch", .alias = "guard"}, voyage.watch, [&](Watch& watch) {
    visitor.others();
    fields::text(visitor, {.key = "keeper", .required = true}, watch.keeper);
    if (watch.keeper == "nobody") visitor.refuse({.key = "keeper"}, "nobody keeps it", "name a hand");
    visitor.flag({.key = "is_night", .or_null = true}, watch.is_night);
  });
  visitor.rest({.key = "", .pattern = "^note\\."}, voyage.notes);
}

constexpr const char* whole =
    R"({"schema":"voyage","version":1,"ship":"","digest":"00000000000000ff","depths":[1.5,null],)"
    R"("signals":[["a","b"],[]],"bearings":[[[1,2],[3,4]],[]],"start":[54.5,10.0],"stores":{"rice":[1,2]},)"
    R"("watch":{"keeper":"Jo","is_night":null},"note.1":"calm","note.2":3})";

Voyage read_voyage(const std::string& text) {
  Voyage voyage;
  read_document(text, "v.json", [&](FieldVisitor& visitor) { describe(voyage, visitor); });
  return voyage;
}

TEST(FieldKinds, AreReadAndWrittenBack) {
  Voyage voyage = read_voyage(whole);
  EXPECT_EQ(voyage.digest, 255U);
  ASSERT_EQ(voyage.depths.size(), 2U);
  EXPECT_TRUE(std::isinf(voyage.depths[1]));
  EXPECT_THAT(voyage.signals, ElementsAre(ElementsAre("a", "b"), ElementsAre()));
  ASSERT_EQ(voyage.bearings.size(), 2U);
  EXPECT_EQ(voyage.bearings[0][1].second, 4);
  EXPECT_EQ(voyage.start.first, 54.5);
  EXPECT_EQ(voyage.stores[0].second.second, 2);
  ASSERT_TRUE(voyage.watch);
  EXPECT_FALSE(voyage.watch->is_night);
  EXPECT_EQ(voyage.notes[1].second.text, "3");
  FieldWriter writer;
  describe(voyage, writer);
  EXPECT_EQ(writer.line(), whole);
}

TEST(FieldKinds, WhatIsAbsentIsNotWritten) {
  Voyage voyage = read_voyage(R"({"schema": "voyage", "digest": "A"})");
  EXPECT_FALSE(voyage.watch);
  EXPECT_EQ(voyage.digest, 10U);
  FieldWriter writer;
  describe(voyage, writer);
  EXPECT_EQ(writer.line(), R"({"schema":"voyage","version":1,"ship":"","digest":"000000000000000a","depths":[],)"
                           R"("start":[0.0,0.0]})");
}

std::string kinds_complaint(const std::string& fields) {
  try {
    static_cast<void>(read_voyage(R"({"schema": "voyage", "digest": "1")" + fields + "}"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// A place is a JSON pointer, through lists in lists, tuples and maps.
TEST(FieldKinds, MistakesNameTheirPlace) {
  EXPECT_EQ(kinds_complaint(""), "");
  EXPECT_THAT(kinds_complaint(R"(, "depths": [1, "deep"])"), HasSubstr("v.json: /depths/1: expected a number"));
  EXPECT_THAT(kinds_complaint(R"(, "signals": [[], ["a", 1]])"), HasSubstr("/signals/1: expected a list of texts"));
  EXPECT_THAT(kinds_complaint(R"(, "signals": [3])"), HasSubstr("/signals/0: expected a list"));
  EXPECT_THAT(kinds_complaint(R"(, "bearings": [[], [[1, 360]]])"),
              HasSubstr("/bearings/1/0/1: expected a whole number"));
  EXPECT_THAT(kinds_complaint(R"(, "bearings": [[[1]]])"), HasSubstr("/bearings/0/0: expected 2 values"));
  EXPECT_THAT(kinds_complaint(R"(, "bearings": [[{}]])"), HasSubstr("/bearings/0/0: expected a list"));
  EXPECT_THAT(kinds_complaint(R"(, "start": [1])"), HasSubstr("/start: expected 2 values"));
  EXPECT_THAT(kinds_complaint(R"(, "start": {})"), HasSubstr("/start: expected a list"));
  EXPECT_THAT(kinds_complaint(R"(, "stores": {"rice": [1, -2]})"),
              HasSubstr("/stores/rice/1: expected a whole number"));
  EXPECT_THAT(kinds_complaint(R"(, "stores": {"rice": 1})"), HasSubstr("/stores/rice: expected a list"));
  EXPECT_THAT(kinds_complaint(R"(, "watch": {"mate": 1})"), HasSubstr("/watch/keeper: missing"));
  EXPECT_THAT(kinds_complaint(R"(, "watch": {"keeper": "nobody"})"), HasSubstr("/watch/keeper: nobody keeps it"));
  EXPECT_THAT(kinds_complaint(R"(, "note.1": [1])"), HasSubstr("/note.1: expected a number, a text"));
  EXPECT_THAT(kinds_complaint(R"(, "note.1": null)"), HasSubstr("/note.1"));
  EXPECT_THAT(kinds_complaint(R"(, "digest": "1")"), HasSubstr("appears twice"));
}

TEST(FieldKinds, AnOlderNameIsTakenAndNamed) {
  EXPECT_EQ(kinds_complaint(R"(, "guard": {"keeper": "Jo", "other": 1})"), "");
  EXPECT_THAT(kinds_complaint(R"(, "guard": {"keeper": 1})"), HasSubstr("/guard/keeper: expected a text"));
}

TEST(FieldKinds, DigestsAreHexadecimal) {
  for (const char* digest : {R"("")", R"("xyz")", R"("11112222333344445")", "7"})
    EXPECT_THROW(read_voyage(std::string(R"({"schema": "voyage", "digest": )") + digest + "}"), InputError) << digest;
}

TEST(FieldKinds, MakeASchema) {
  Voyage voyage;
  FieldSchema visitor;
  describe(voyage, visitor);
  const Json schema = visitor.take();
  EXPECT_EQ(schema["required"], Json::parse(R"(["schema", "digest"])"));
  const Json& properties = schema["properties"];
  EXPECT_EQ(properties["depths"]["items"]["type"], Json::parse(R"(["number", "null"])"));
  EXPECT_EQ(properties["signals"]["items"]["items"]["type"], "string");
  EXPECT_EQ(properties["bearings"]["items"]["items"]["prefixItems"].size(), 2U);
  EXPECT_EQ(properties["start"]["prefixItems"].size(), 2U);
  EXPECT_EQ(properties["stores"]["additionalProperties"]["maxItems"], 2);
  EXPECT_FALSE(properties["watch"].contains("additionalProperties"));
  EXPECT_TRUE(schema["patternProperties"].contains("^note\\."));
}

}  // namespace
}  // namespace spillway
