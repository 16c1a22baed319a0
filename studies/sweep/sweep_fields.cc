#include "studies/sweep/sweep_fields.h"

#include "base/field_schema.h"

namespace spillway::studies {
namespace {

constexpr double largest = 9e15;  // of a value in a range
constexpr FieldInfo name_info = {.key = "name",
                                 .about = "In expressions: letters, digits and _, beginning with a letter.",
                                 .required = true,
                                 .pattern = "^[A-Za-z_][A-Za-z0-9_]*$"};

void describe_setting(std::string& text, FieldVisitor& visitor) {
  std::optional<Scalar> value = Scalar{text, false};
  visitor.scalar({.key = ""}, value);
  text = value->text;
}

void describe(SweepDocument::Axis& axis, FieldVisitor& visitor) {
  visitor.rule(R"({"oneOf": [{"required": ["key", "values"]},
                             {"required": ["key", "from", "to"],
                              "oneOf": [{"required": ["step"]}, {"required": ["times"]}]},
                             {"required": ["options"]},
                             {"required": ["techniques"]}]})");
  fields::text(visitor, name_info, axis.name);
  fields::text(visitor, {.key = "key", .about = "A scenario's, as in --set."}, axis.key);
  visitor.scalars({.key = "values", .about = "At most 100,000.", .least_items = 1}, axis.values);
  fields::number(visitor, {.key = "from", .min = -largest, .max = largest, .about = "The first value."}, axis.from);
  fields::number(visitor, {.key = "to", .min = -largest, .max = largest, .about = "The last value, at most."}, axis.to);
  fields::number(visitor, {.key = "step", .min = 1e-12, .max = largest, .about = "From one value to the next."},
                 axis.step);
  fields::number(visitor,
                 {.key = "times",
                  .min = 1.0001,
                  .max = 1e9,
                  .about = "Instead of step: what a value is multiplied "
                           "with."},
                 axis.times);
  fields::map(visitor,
              {.key = "options",
               .about = "Names with settings of the scenario: {\"keep\": {}, \"full\": {\"model.recompute\": "
                        "\"full\"}}.",
               .least_items = 1},
              axis.options, [&](SweepDocument::Settings& settings) {
                fields::map(visitor, {.key = ""}, settings,
                            [&](std::string& text) { describe_setting(text, visitor); });
              });
  visitor.texts({.key = "techniques",
                 .about = "Rows of `spillway techniques`, several put together with +: [\"plain\", \"full\", "
                          "\"chronos+ssdtrain\"]. plain: the base's own."},
                axis.techniques);
}

void describe_require(SweepDocument& document, FieldVisitor& visitor) {
  fields::flag(visitor,
               {.key = "fits",
                .about = "Only points that fit, with the reserve kept free; where none does, those that are tight."},
               document.must_fit);
  describe_bounds(document.constraints, visitor);
}

}  // namespace

void describe(SweepDocument& document, FieldVisitor& visitor) {
  visitor.head({.schema = sweep_schema_name, .version = 1, .noun = "a sweep"});
  fields::text(visitor, {.key = "title", .about = "One line for people."}, document.title);
  std::string note;
  fields::text(visitor, {.key = "note", .about = "For people; not read by the program."}, note);
  visitor.object(
      {.key = "base", .about = "The scenario that the axes change, without its schema and version.", .required = true},
      document.base);
  fields::map(visitor, {.key = "constants", .about = "Numbers with names, for expressions: {\"gpus\": 512}."},
              document.constants, [&](double& value) {
                fields::number(visitor, {.key = "", .min = -std::numeric_limits<double>::infinity()}, value);
              });
  fields::list(visitor,
               {.key = "axes",
                .about = "What changes, the first one slowest: {\"name\": \"t\", \"key\": \"model.tensor_parallel\", "
                         "\"values\": [1, 2]}.",
                .required = true,
                .least_items = 1},
               document.axes, [&](SweepDocument::Axis& axis) { describe(axis, visitor); });
  fields::list(
      visitor, {.key = "derived", .about = "Values that follow from others."}, document.derived,
      [&](SweepDocument::Derived& derived) {
        fields::text(visitor, name_info, derived.name);
        fields::text(visitor, {.key = "key", .about = "A scenario's; the value must then be whole."}, derived.key);
        std::optional<Scalar> value;
        if (!derived.value.empty()) value = Scalar{derived.value, false};
        visitor.scalar({.key = "value", .about = "An expression: \"512 / (t * p)\".", .required = true}, value);
        if (value) derived.value = value->text;
      });
  fields::list(visitor,
               {.key = "where",
                .about = "What points must satisfy: \"t <= 8\" or {\"is\": \"t <= 8\", \"reason\": \"one machine\"}.",
                .shorthand = "is"},
               document.where, [&](SweepDocument::Rule& rule) {
                 fields::text(visitor, {.key = "is", .about = "A condition.", .required = true}, rule.is);
                 fields::text(visitor, {.key = "reason", .about = "Why; default: the condition."}, rule.reason);
               });
  visitor.word_list({.key = "objectives", .about = "What is wanted of the points.", .least_items = 1},
                    document.objectives, objective_words());
  fields::group(visitor, {.key = "require", .about = "What the answer must satisfy."},
                [&] { describe_require(document, visitor); });
  fields::number(visitor, {.key = "margin", .max = 0.9, .about = "Margin of estimated times."}, document.margin);
  fields::number(visitor, {.key = "memory_margin", .max = 0.9, .about = "Margin of estimated peaks."},
                 document.memory_margin);
  fields::integer(visitor, {.key = "replays", .max = 1e9, .about = "At most."}, document.replays);
  visitor.object({.key = "procurement",
                  .about = "For `spillway report procurement`: as a scenario's, without runs; its points are the "
                           "options, so machines, gpus, techniques, sizes and replays are refused."},
                 document.procurement);
}

std::string sweep_schema() {
  SweepDocument document;
  FieldSchema schema;
  describe(document, schema);
  return schema.document("spillway-sweep.v1", "spillway sweep",
                         "A scenario, axes along which it changes, what its points must satisfy, and what is wanted of "
                         "them.");
}

}  // namespace spillway::studies
