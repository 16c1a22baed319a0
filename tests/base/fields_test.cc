// One small noun, described once, under every visitor.
#include "base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/field_reader.h"
#include "base/field_rows.h"
#include "base/field_schema.h"
#include "base/field_setter.h"
#include "base/field_writer.h"
#include "base/input_error.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

enum class Colour : std::uint8_t { red, green };
const Words colours = {{"red", "as blood"}, {"green", "as grass", "verdant"}};

struct Boat {
  std::string name;
  Colour colour = Colour::green;
  std::string rig = "sloop";
  std::int64_t crew = 2;
  double speed = 5;
  bool has_engine = true;
  std::optional<Bytes> log;
  std::vector<std::int64_t> stops;
  std::vector<std::pair<std::string, double>> tanks;
  struct Sail {
    std::string name;
    double area = 1;
  };
  std::vector<Sail> sails;
  std::vector<std::pair<std::int64_t, double>> legs;
  std::int64_t anchor_length = 0;
};

const Words rigs = {{"sloop"}, {"ketch"}};

void describe(Boat& boat, FieldVisitor& visitor) {
  visitor.head({.schema = "boat", .version = 2, .noun = "a boat"});
  fields::text(visitor, {.key = "name", .about = "Painted on the stern.", .required = true}, boat.name);
  fields::word(visitor, {.key = "colour", .about = "Of the hull."}, boat.colour, colours);
  fields::word_or_file(visitor, {.key = "rig"}, boat.rig, rigs);
  fields::integer(visitor, {.key = "crew", .min = 1, .max = 12, .about = "Heads."}, boat.crew);
  fields::number(visitor, {.key = "speed", .max = 40, .above_min = true}, boat.speed);
  fields::flag(visitor, {.key = "has_engine"}, boat.has_engine);
  fields::bytes(visitor, {.key = "log"}, boat.log);
  visitor.integers({.key = "stops", .min = 1, .max = 9, .least_items = 1}, boat.stops);
  fields::map(visitor, {.key = "tanks"}, boat.tanks,
              [&](double& litres) { fields::number(visitor, {.key = ""}, litres); });
  fields::list(visitor, {.key = "sails", .shorthand = "name"}, boat.sails, [&](Boat::Sail& sail) {
    fields::text(visitor, {.key = "name", .required = true}, sail.name);
    fields::number(visitor, {.key = "area"}, sail.area);
  });
  fields::list(visitor, {.key = "legs", .as_tuple = true}, boat.legs, [&](auto& leg) {
    fields::integer(visitor, {.key = "to"}, leg.first);
    fields::number(visitor, {.key = "miles"}, leg.second);
  });
  fields::group(visitor, {.key = "anchor", .also_flag = true},
                [&] { fields::integer(visitor, {.key = "length"}, boat.anchor_length); });
}

Boat read(const std::string& fields) {
  Boat boat;
  const Json root = parse_document(R"({"schema": "boat", "version": 2, "name": "Ann")" + fields + "}", "b.json");
  read_fields(root, "b.json", "", [&](FieldVisitor& visitor) { describe(boat, visitor); });
  return boat;
}

std::string complaint(const std::string& fields) {
  try {
    static_cast<void>(read(fields));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Fields, AreReadFromJson) {
  const Boat boat = read(R"(, "colour": "verdant", "rig": "own.json", "crew": 3.0, "speed": 7.5, "has_engine": false,
      "log": 4096, "stops": [1, 2], "tanks": {"aft": 10, "fore": 20.5}, "sails": ["jib", {"name": "main", "area": 30}],
      "legs": [[4, 1.5]], "anchor": {"length": 50})");
  EXPECT_EQ(boat.name, "Ann");
  EXPECT_EQ(boat.colour, Colour::green);
  EXPECT_EQ(boat.rig, "own.json");
  EXPECT_EQ(boat.crew, 3);
  EXPECT_EQ(boat.speed, 7.5);
  EXPECT_FALSE(boat.has_engine);
  EXPECT_EQ(boat.log, Bytes(4096));
  EXPECT_THAT(boat.stops, ElementsAre(1, 2));
  ASSERT_EQ(boat.tanks.size(), 2U);
  EXPECT_EQ(boat.tanks[1].second, 20.5);
  ASSERT_EQ(boat.sails.size(), 2U);
  EXPECT_EQ(boat.sails[0].name, "jib");
  EXPECT_EQ(boat.sails[1].area, 30);
  ASSERT_EQ(boat.legs.size(), 1U);
  EXPECT_EQ(boat.legs[0].second, 1.5);
  EXPECT_EQ(boat.anchor_length, 50);
  EXPECT_EQ(complaint(R"(, "anchor": true)"), "");
}

TEST(Fields, MistakesNameFilePlaceAndRemedy) {
  EXPECT_THAT(complaint(R"(, "colur": "red")"), HasSubstr("b.json: /colur: unknown key 'colur'"));
  EXPECT_THAT(complaint(R"(, "colur": "red")"), HasSubstr("did you mean colour?"));
  EXPECT_THAT(complaint(R"(, "colour": "gren")"), HasSubstr("did you mean green or red?"));
  EXPECT_THAT(complaint(R"(, "colour": "puce")"), HasSubstr("take one of red, green"));
  EXPECT_THAT(complaint(R"(, "rig": "yawl")"), HasSubstr("/rig"));
  EXPECT_THAT(complaint(R"(, "crew": 13)"), HasSubstr("/crew: expected a whole number from 1 to 12"));
  EXPECT_THAT(complaint(R"(, "crew": 13)"), HasSubstr("crew: Heads."));
  EXPECT_THAT(complaint(R"(, "crew": 1.5)"), HasSubstr("whole number"));
  EXPECT_THAT(complaint(R"(, "crew": 18446744073709551615)"), HasSubstr("whole number"));
  EXPECT_THAT(complaint(R"(, "crew": "2")"), HasSubstr("whole number"));
  EXPECT_THAT(complaint(R"(, "speed": 0)"), HasSubstr("above 0, at most 40"));
  EXPECT_THAT(complaint(R"(, "has_engine": "yes")"), HasSubstr("true or false"));
  EXPECT_THAT(complaint(R"(, "stops": [])"), HasSubstr("/stops: an empty list"));
  EXPECT_THAT(complaint(R"(, "stops": [1, 10])"), HasSubstr("/stops/1"));
  EXPECT_THAT(complaint(R"(, "tanks": {"aft": "full"})"), HasSubstr("/tanks/aft: expected a number"));
  EXPECT_THAT(complaint(R"(, "tanks": [1])"), HasSubstr("/tanks: expected an object"));
  EXPECT_THAT(complaint(R"(, "sails": [{"area": 3}])"), HasSubstr("/sails/0/name: missing"));
  EXPECT_THAT(complaint(R"(, "sails": [{"name": "jib", "are": 3}])"), HasSubstr("/sails/0/are: unknown key"));
  EXPECT_THAT(complaint(R"(, "legs": [[4]])"), HasSubstr("/legs/0: expected 2 values"));
  EXPECT_THAT(complaint(R"(, "legs": [{"to": 4}])"), HasSubstr("/legs/0"));
  EXPECT_THAT(complaint(R"(, "anchor": 3)"), HasSubstr("/anchor: expected an object"));
  EXPECT_THAT(complaint(R"(, "crew": 1, "crew": 2)"), HasSubstr("key 'crew' appears twice"));
}

TEST(Fields, WhatNestsTooDeeplyIsRefusedInItsLine) {
  const auto nested = [](int levels) {
    return ",\n\"crew\": " + std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  EXPECT_THAT(complaint(nested(60)), HasSubstr("/crew: expected"));
  for (const int levels : {66, 100'000})
    EXPECT_THAT(complaint(nested(levels)), HasSubstr("line 2: nested deeper than 64 levels"));
}

// Each member is looked for once, not among all before it.
TEST(Fields, WideObjectsAreReadInTheirOrder) {
  std::string tanks, few;
  for (int i = 0; i < 200'000; ++i) tanks += (i > 0 ? ", \"t" : "\"t") + std::to_string(i) + "\": 1";
  for (int i = 0; i < 1'000; ++i) few += "\"t" + std::to_string(i) + "\": 1, ";
  EXPECT_EQ(complaint(", \"tanks\": {" + tanks + "}"), "");
  EXPECT_THAT(complaint(", \"tanks\": {" + few + "\"t7\": 1}"), HasSubstr("key 't7' appears twice"));
  EXPECT_THAT(complaint(", \"tanks\": {" + tanks + ", \"\u00e9\": 1}"),
              HasSubstr("more than 10000 keys in one object"));
  EXPECT_THAT(complaint(", " + tanks), HasSubstr("unknown key 't0'"));
}

// An error tells one problem; of a hundred thousand the first thousand are enough.
TEST(Fields, SoManyProblemsAreGathered) {
  std::string text = "{";
  for (int i = 0; i < 5'000; ++i)
    text += (i > 0 ? ", \"k" : "\"k") + std::to_string(i) + std::string(300, 'x') + "\": 1";
  const Json root = parse_document(text + "}", "f");
  std::vector<FieldProblem> problems;
  FieldReader reader(root, problems);
  Boat boat;
  describe(boat, reader);
  reader.finish();
  EXPECT_LE(problems.size(), 1'001u);
  for (const FieldProblem& each : problems) EXPECT_LT(each.place.size() + each.cause.size(), 700u);
}

TEST(Fields, AnotherDocumentIsSaidFirst) {
  Boat boat;
  const auto refusal = [&](const char* text) -> std::string {
    try {
      const Json root = parse_document(text, "f");
      read_fields(root, "f", "", [&](FieldVisitor& visitor) { describe(boat, visitor); });
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(R"({"schema": "ship", "mast": 3})"), HasSubstr("not a boat"));
  EXPECT_THAT(refusal(R"({"schema": "boat", "version": 3, "name": ""})"), HasSubstr("newer than this program's 2"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not a boat"));
  EXPECT_THAT(refusal("{"), HasSubstr("not valid JSON"));
}

// What is written is read as the same.
TEST(Fields, AreWrittenAndReadBack) {
  Boat boat =
      read(R"(, "colour": "red", "log": 1, "stops": [3], "tanks": {"aft": 2}, "sails": ["jib"], "legs": [[1, 2]],
                       "anchor": {"length": 7})");
  FieldWriter writer;
  describe(boat, writer);
  Boat again;
  read_fields(writer.json(), "again", "", [&](FieldVisitor& visitor) { describe(again, visitor); });
  FieldWriter second;
  describe(again, second);
  EXPECT_EQ(writer.json(), second.json());
  EXPECT_EQ(writer.json()["legs"], Json::parse("[[1, 2.0]]"));
  EXPECT_EQ(writer.json()["colour"], "red");
}

TEST(Fields, MakeASchema) {
  Boat boat;
  FieldSchema visitor;
  describe(boat, visitor);
  const Json schema = visitor.take();
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["required"], Json::parse(R"(["schema", "version", "name"])"));
  const Json& properties = schema["properties"];
  EXPECT_EQ(properties["colour"]["enum"], Json::parse(R"(["red", "green", "verdant"])"));
  EXPECT_EQ(properties["colour"]["default"], "green");
  EXPECT_EQ(properties["colour"]["description"], "Of the hull. red: as blood; green: as grass.");
  EXPECT_EQ(properties["crew"], Json::parse(R"({"type": "integer", "minimum": 1, "maximum": 12, "default": 2,
                                               "description": "Heads."})"));
  EXPECT_EQ(properties["speed"]["exclusiveMinimum"], 0);
  EXPECT_EQ(properties["legs"]["items"]["prefixItems"].size(), 2U);
  EXPECT_EQ(properties["sails"]["items"]["anyOf"][0]["type"], "string");
  EXPECT_EQ(properties["tanks"]["additionalProperties"]["type"], "number");
  EXPECT_EQ(properties["anchor"]["anyOf"][0]["type"], "boolean");
  EXPECT_FALSE(properties["log"].contains("default"));
}

TEST(Fields, AreListed) {
  std::vector<std::string> paths;
  for (const FieldRow& row : rows_of<Boat>())
    if (!row.inside_list) paths.push_back(row.path);
  EXPECT_THAT(paths, ElementsAre("schema", "version", "name", "colour", "rig", "crew", "speed", "has_engine", "log",
                                 "stops", "tanks", "sails", "legs", "anchor", "anchor.length"));
  const std::string table = markdown_table(rows_of<Boat>());
  EXPECT_THAT(table, HasSubstr("| `crew` | whole number, 1 to 12 | `2` | Heads. |"));
  EXPECT_THAT(table, HasSubstr("| `rig` | sloop, ketch, or a file | `sloop` |"));
}

TEST(Fields, AreSetByTheirPath) {
  Boat boat;
  const auto set = [&](const char* path, const char* text) {
    FieldSetter setter(path, text);
    describe(boat, setter);
    return setter.found();
  };
  EXPECT_TRUE(set("crew", "99"));  // ranges are the noun's
  EXPECT_TRUE(set("colour", "verdant"));
  EXPECT_TRUE(set("anchor.length", "30"));
  EXPECT_FALSE(set("anchor.len", "30"));
  EXPECT_FALSE(set("cre", "3"));
  EXPECT_EQ(boat.crew, 99);
  EXPECT_EQ(boat.anchor_length, 30);
  EXPECT_THROW(set("crew", "3.5"), InputError);
  EXPECT_THROW(set("crew", "99999999999999999999"), InputError);
  EXPECT_THROW(set("colour", "puce"), InputError);
  EXPECT_THROW(set("has_engine", "yes"), InputError);
  FieldTexts texts("crew");
  describe(boat, texts);
  EXPECT_EQ(texts.take(), "99");
}

// Taken apart level by level: a document that is refused for its depth must not take the stack before.
TEST(DocumentText, LooksPastWhatIsTooDeep) {
  constexpr std::size_t levels = 1'000'000;
  const std::string deep =
      R"({"title": )" + std::string(levels, '[') + std::string(levels, ']') + R"(, "schema": "x"})";
  EXPECT_EQ(document_text(deep, "schema"), "x");
  EXPECT_EQ(document_text(deep, "title"), "");
}

}  // namespace
}  // namespace spillway
