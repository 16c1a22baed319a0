#include "validation/published/case_fields.h"

#include <algorithm>

#include "base/field_schema.h"

namespace spillway::validation {
namespace {

const Words& metric_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (int i = 0; i < metric_count; ++i) list.push_back({to_string(static_cast<Metric>(i))});
    return Words(std::move(list));
  }();
  return words;
}

// Of all metrics.
const Words& unit_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (int i = 0; i < metric_count; ++i)
      for (const std::string_view unit : units_of(static_cast<Metric>(i)))
        if (std::none_of(list.begin(), list.end(), [&](const Word& word) { return word.name == unit; }))
          list.push_back({unit});
    return Words(std::move(list));
  }();
  return words;
}

const Words& role_words() {
  static const Words words = {
      {"validation"},
      {"fit", "a constant of the program was fitted to it; never counted as validation"},
      {"derived", "the formula, or the set-up, was read off what gave the figure; never counted as validation"}};
  return words;
}

constexpr std::string_view about_source = "Whom the figure is from. Errors are summed up by source, metric and role.";
constexpr std::string_view about_metric =
    "What was measured. Memory is that of the GPU with the highest peak; layer times run from one layer's first kernel "
    "to the next one's.";

void describe(Tolerance& tolerance, FieldVisitor& visitor) {
  constexpr double most = 1000;
  fields::number(visitor,
                 {.key = "median",
                  .max = most,
                  .about = "Largest median of absolute relative errors: 0.05 is 5 %.",
                  .below_max = true},
                 tolerance.median);
  fields::number(visitor, {.key = "p90", .max = most, .about = "Largest 90th percentile of them.", .below_max = true},
                 tolerance.p90);
  fields::number(visitor, {.key = "kendall", .max = 1, .about = "Least rank correlation (Kendall's tau-b)."},
                 tolerance.kendall);
}

}  // namespace

void describe(CaseDocument& one, FieldVisitor& visitor) {
  fields::text(visitor, {.key = "id", .about = "Unique in the file.", .pattern = "."}, one.id);
  fields::text(visitor, {.key = "source", .about = about_source, .pattern = "."}, one.source);
  fields::word(visitor, {.key = "metric", .about = about_metric}, one.metric, metric_words());
  fields::number(visitor, {.key = "value", .about = "The figure.", .above_min = true}, one.value);
  fields::number(visitor, {.key = "value_to", .about = "Other end of a published range.", .above_min = true},
                 one.value_to);
  fields::word(
      visitor,
      {.key = "unit", .about = "One that fits the metric. GB is 1e9 bytes; M the bytes of the model in 16 bits."},
      one.unit, unit_words());
  fields::integer(visitor,
                  {.key = "stage",
                   .max = 1023,
                   .about = "Of peak_allocated, peak_reserved and memory_efficiency: the pipeline stage it was "
                            "measured on, from 0. Default: "
                            "the GPU that reserves most."},
                  one.stage);
  fields::text(visitor, {.key = "confidence", .about = "How sure the reading is: exact, text, read-off-figure, ..."},
               one.confidence);
  fields::word(visitor, {.key = "role", .about = "What it is for."}, one.role, role_words());
  fields::text(visitor, {.key = "note", .about = "For people."}, one.note);
  fields::text(visitor,
               {.key = "skip", .about = "Why the case can't be simulated. It is listed, not run; it needs no figure."},
               one.skip);
  visitor.texts({.key = "against",
                 .about = "Of trainable_ratio and throughput_ratio: settings over the case's own, as --set takes them, "
                          "of what it is compared with."},
                one.against);
  visitor.rest({.about = "A scenario's key as --set takes it (scenario.schema.json), or a closed form's input.",
                .pattern = "^(model|hardware|what_if|memory|offload|replay|projection)\\.|^trace$|^execution_trace$",
                .or_null = true},
               one.settings);
}

void describe(CasesDocument& document, FieldVisitor& visitor) {
  visitor.head({.schema = "spillway-cases", .noun = "a file of cases"});
  fields::text(visitor, {.key = "title", .about = "For people."}, document.title);
  fields::text(visitor, {.key = "note", .about = "For people; not read by the program."}, document.note);
  fields::group(visitor,
                {.key = "tolerance",
                 .about = "What the validation cases must keep, source by source and metric by metric; else the exit "
                          "code is 1."},
                [&] { describe(document.tolerance, visitor); });
  fields::map(visitor,
              {.key = "models",
               .about = "Models of the cases' own (model.schema.json), by the name they give as model.name; these come "
                        "before the library's."},
              document.models, [&](std::string& model) {
                std::optional<std::string> text;
                if (!model.empty()) text = model;
                visitor.object({.key = ""}, text);
                model = text.value_or("");
              });
  fields::group(visitor, {.key = "common", .about = "Fields of every case that does not set them itself."},
                [&] { describe(document.common, visitor); });
  visitor.texts({.key = "columns", .about = "The keys of \"rows\"."}, document.columns);
  fields::list(visitor,
               {.key = "rows",
                .about = "One case each: a value for every column, null for one that is not given.",
                .as_value = true},
               document.rows, [&](std::vector<Scalar>& row) { visitor.scalars({.key = "", .or_null = true}, row); });
  fields::list(visitor, {.key = "cases", .about = "Cases by their keys."}, document.cases, [&](CaseDocument& one) {
    one = document.common;
    describe(one, visitor);
  });
  fields::list(
      visitor,
      {.key = "held_to",
       .about = "Groups of validation cases that miss what \"tolerance\" asks, and what they must keep instead "
                "until they reach it: each figure wider than the one asked."},
      document.held_to, [&](HeldDocument& group) {
        fields::text(visitor, {.key = "source", .about = about_source, .required = true}, group.source);
        fields::word(visitor, {.key = "metric", .about = about_metric, .required = true}, group.metric, metric_words());
        describe(group.tolerance, visitor);
        visitor.rule(R"({"minProperties": 3})");
      });
  visitor.rule(R"({"dependentRequired": {"columns": ["rows"], "rows": ["columns"]}})");
}

std::string cases_schema() {
  CasesDocument document;
  FieldSchema schema;
  describe(document, schema);
  return schema.document("spillway-cases.v1", "spillway cases",
                         "Measurements with the set-ups they were made with, for `spillway validate`. A case is a flat "
                         "set of keys: its fields, and paths of a scenario (scenario.schema.json) as --set takes them. "
                         "Whatever a case does not say itself it has from \"common\".");
}

}  // namespace spillway::validation
