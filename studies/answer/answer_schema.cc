#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "studies/answer/answer_json.h"

namespace spillway::studies {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Member = std::pair<const char*, OrderedJson>;

OrderedJson text() { return {{"type", "string"}}; }
OrderedJson count() { return {{"type", "integer"}}; }
OrderedJson number() { return {{"type", "number"}}; }
OrderedJson count_or_null() { return {{"type", OrderedJson::array({"integer", "null"})}}; }
OrderedJson number_or_null() { return {{"type", OrderedJson::array({"number", "null"})}}; }
OrderedJson list(OrderedJson items) { return {{"type", "array"}, {"items", std::move(items)}}; }
OrderedJson one_of(std::initializer_list<const char*> words) {
  OrderedJson shape = {{"enum", OrderedJson::array()}};
  for (const char* word : words) shape["enum"].push_back(word);
  return shape;
}
OrderedJson told(OrderedJson shape, const char* words) {
  shape["description"] = words;
  return shape;
}

// All members are there.
OrderedJson object(std::initializer_list<Member> members) {
  OrderedJson shape = {{"type", "object"}, {"required", OrderedJson::array()}, {"properties", OrderedJson::object()}};
  for (const auto& [name, member] : members) {
    shape["required"].push_back(name);
    shape["properties"][name] = member;
  }
  return shape;
}

OrderedJson verdict_word() {
  OrderedJson words = OrderedJson::array();
  for (const Verdict verdict : {Verdict::fits, Verdict::tight, Verdict::unknown, Verdict::does_not_fit})
    words.push_back(to_string(verdict));
  return {{"enum", std::move(words)}};
}

OrderedJson figures() {
  return object(
      {{"verdict", verdict_word()},
       {"step_time_ns", count_or_null()},
       {"step_time_range", told(object({{"low", number_or_null()}, {"high", number_or_null()}, {"basis", text()}}),
                                "Measured over predicted, of 80 % of steps like it.")},
       {"tokens_per_second", number_or_null()},
       {"mfu", number_or_null()},
       {"peak_allocated_bytes", count_or_null()},
       {"peak_reserved_bytes", count_or_null()},
       {"limit_bytes", count_or_null()},
       {"short_of_bytes", count_or_null()},
       {"host_bytes", count_or_null()},
       {"usd_per_million_tokens", number_or_null()},
       {"life_years", number_or_null()},
       {"fingerprint", text()},
       {"shown", told(object({{"verdict", text()},
                              {"step", text()},
                              {"tokens", text()},
                              {"left", text()},
                              {"room", text()},
                              {"mfu", text()},
                              {"binds", text()}}),
                      "The same as every face prints it; tokens: a change where there is a step to compare "
                      "with, left: GiB.")}});
}

OrderedJson passes() {
  return told(list(count()),
              "What a GPU is at, four numbers each: begin and end in pass_unit_ns, micro-batch or -1, and 0 to 5 for "
              "unknown, forward, backward, optimizer, communication, recompute.");
}

OrderedJson shares() { return list(object({{"name", text()}, {"fraction", number()}})); }

OrderedJson way() {
  OrderedJson change = object({{"key", text()}, {"from", text()}, {"to", text()}, {"worth", text()}});
  OrderedJson launch = object({{"framework", text()},
                               {"state", one_of({"runs", "with_code", "no"})},
                               {"figures", text()},
                               {"with_code_figures", text()},
                               {"lines", list(text())},
                               {"code", list(text())},
                               {"cannot_say", list(text())}});
  OrderedJson folded = object({{"name", text()}, {"reason", text()}, {"step", text()}, {"left", text()}});
  OrderedJson outline = object({{"stage", text()},
                                {"begin_ns", count()},
                                {"end_ns", count()},
                                {"peak_allocated_bytes", count()},
                                {"bin_unit_bytes", count()},
                                {"bins", list(count())},
                                {"pass_unit_ns", count()},
                                {"passes", passes()}});
  return object({{"number", told(count_or_null(), "As --way takes it; null: none of those shown by number.")},
                 {"name", text()},
                 {"group", text()},
                 {"edits", told(list(text()), "KEY=VALUE, as --set takes them.")},
                 {"changes", list(std::move(change))},
                 {"runs_in", text()},
                 {"figures", figures()},
                 {"sentences", list(text())},
                 {"launches", list(std::move(launch))},
                 {"folded", list(std::move(folded))},
                 {"outlines", list(std::move(outline))}});
}

OrderedJson stage() {
  OrderedJson tensor = object({{"name", text()},
                               {"owner", text()},
                               {"layer", text()},
                               {"bytes", count()},
                               {"blocks", count()},
                               {"frames", list(text())}});
  return object({{"name", text()},
                 {"verdict", verdict_word()},
                 {"capacity_bytes", count_or_null()},
                 {"limit_bytes", told(count_or_null(), "The capacity less what is kept free.")},
                 {"peak_reserved_bytes", count()},
                 {"peak_allocated_bytes", count()},
                 {"idle_fraction", number_or_null()},
                 {"axis", told(one_of({"ns", "event"}), "What begin, end and peak_at are in.")},
                 {"begin", count()},
                 {"end", count()},
                 {"peak_at", count()},
                 {"peak_words", text()},
                 {"owners", told(list(text()), "From below.")},
                 {"at_peak_bytes", told(list(count()), "By owner.")},
                 {"bin_unit_bytes", count()},
                 {"bins", told(list(list(count())), "By owner, by bin of equal spans: its fullest instant.")},
                 {"tensors", told(list(std::move(tensor)), "The largest, see held.")},
                 {"pass_unit_ns", count()},
                 {"passes", passes()}});
}

OrderedJson timeline() {
  OrderedJson lane = object(
      {{"name", text()},
       {"rank", count()},
       {"kind", one_of({"stream", "communication", "storage", "host"})},
       {"blocks", told(list(count()), "Four numbers each: begin and width in hundredths of a column, colour, name.")},
       {"runs", told(list(count()), "Four numbers each: first column, columns, colour, level of 4 less 1.")}});
  return object({{"columns", told(count(), "Of equal spans from the replay's begin to its end; 0: nothing is known.")},
                 {"end_ns", count()},
                 {"colors", list(text())},
                 {"names", list(text())},
                 {"lanes", list(std::move(lane))}});
}

}  // namespace

std::string answer_schema() {
  OrderedJson schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", "answer.schema.json"},
      {"title", "spillway answer"},
      {"description",
       "What a run, a search for ways to fit or a memory snapshot came to; the page carries it. Sizes "
       "are whole bytes, times whole nanoseconds, null is not known."}};
  OrderedJson input = object({{"name", text()}, {"value", text()}, {"provenance", text()}, {"source", text()}});
  OrderedJson row = object({{"name", text()}, {"count", count()}, {"time_ns", count()}, {"gpu_idle_ns", count()}});
  OrderedJson now = figures(), search = object({{"state", one_of({"finished", "stopped"})}, {"sentence", text()}});
  now["type"] = search["type"] = OrderedJson::array({"object", "null"});
  schema.update(
      object({{"schema", {{"const", "spillway-answer"}}},
              {"version", {{"const", 1}}},
              {"title", text()},
              {"machine", text()},
              {"verdict", object({{"word", verdict_word()},
                                  {"fits", {{"type", OrderedJson::array({"boolean", "null"})}}},
                                  {"heading", text()},
                                  {"best", text()},
                                  {"as_given", text()},
                                  {"advice", text()},
                                  {"hangs_on", list(text())}})},
              {"when", text()},
              {"why", object({{"kind", text()},
                              {"sentence", text()},
                              {"owners", told(list(object({{"owner", text()}, {"bytes", count()}})),
                                              "Of the memory at the peak, most first.")}})},
              {"head", told(list(object({{"name", text()}, {"value", text()}, {"detail", text()}})),
                            "The figures beside the verdict.")},
              {"now", std::move(now)},
              {"phases", told(list(object({{"name", text()}, {"words", text()}, {"verdict", text()}})),
                              "Parts of a step that run by themselves: rollout, reference, training.")},
              {"facts", told(list(object({{"label", text()}, {"words", text()}})), "The step's figures in words.")},
              {"gpus", told(list(object({{"name", text()},
                                         {"verdict", verdict_word()},
                                         {"peak_reserved_bytes", count()},
                                         {"idle_fraction", number_or_null()}})),
                            "Of a step on several.")},
              {"ways_heading", text()},
              {"ways", list(way())},
              {"search", std::move(search)},
              {"binds", object({{"sentence", text()}, {"shares", shares()}})},
              {"helps", list(object({{"name", text()},
                                     {"fraction", number()},
                                     {"step_time_ns", count_or_null()},
                                     {"of_path", number_or_null()}}))},
              {"no_help", list(text())},
              {"work", told(list(object({{"kind", text()}, {"rows", list(std::move(row))}})),
                            "Of a recorded step: where its time went, most first.")},
              {"held", told(text(), "When the stages' tensors are held.")},
              {"drawn", told(text(), "The step that stages and timeline show.")},
              {"stages", list(stage())},
              {"timeline", timeline()},
              {"rests_on",
               object({{"inputs", list(std::move(input))},
                       {"times", told(text(), "Where the kernel times come from, if not from a table of the GPU.")},
                       {"assumed", list(text())},
                       {"defaulted", told(list(object({{"key", text()}, {"value", text()}, {"sentence", text()}})),
                                          "Keys that nobody said, on which the memory hangs.")},
                       {"warnings", list(text())}})},
              {"reproduce",
               object({{"command", text()}, {"version", text()}, {"commit", text()}, {"fingerprint", text()}})}}));
  return schema.dump(2) + "\n";
}

}  // namespace spillway::studies
