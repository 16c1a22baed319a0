// The one table of techniques: rows of every room of planners, of the generator's schedules and of the allocators.
//
// Every choice of techniques, schedules or allocators walks it or asks it; nobody else spells their words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "models/spec/training_setup_fields.h"
#include "planners/technique.h"
#include "planners/technique/compose.h"

namespace spillway::planners {

// In the order in which they are shown.
const std::vector<Technique>& techniques();

// Throws InputError (place) for an unknown name, with the nearest one offered.
const Technique& technique_named(std::string_view name, const std::string& place = "technique");
// The row that a scenario means by `key` and its word; null: none.
const Technique* technique_said(std::string_view key, std::string_view word);

// Words of a scenario, each with what it means; those of schedules are models' schedule_words().
const Words& offload_words();    // offload.technique
const Words& allocator_words();  // memory.allocator
const Words& order_words();      // order.technique

// By its own name, or by its technique's where that has no other way. Null: there is none.
const TechniqueWay* find_way(std::string_view name);
// The way of that name. Throws InputError (file, place) for an unknown one.
const TechniqueWay& way_named(std::string_view name, const std::string& file, const std::string& place);
// Names joined by +, or plain_technique, as people read them: "recompute whole layers, offload activations to host
// memory". A name that no way has stays as it is.
std::string words_of_ways(std::string_view names);
// In the table's order.
std::vector<const TechniqueWay*> technique_ways();
// Throws InputError (file, place) if two of the ways put together give one key different values, as "full" and
// "selective" do: the row would be the last one's alone.
void check_together(std::span<const TechniqueWay* const> ways, const std::string& file, const std::string& place);
// Settings of ways put together, "chronos+ssdtrain+stalloc": theirs in turn. Throws InputError (file, place) for an
// unknown one, and as check_together().
std::vector<std::string> settings_named(std::string_view names, const std::string& file, const std::string& place);

// A row of `spillway techniques`: a way, or several put together.
struct ComparedWay {
  struct Needs {
    bool drives = false, stages = false;  // of the machine; of the pipeline, more than one
  };
  std::string names;
  Needs needs;
};
const std::vector<ComparedWay>& compared_ways();
inline constexpr std::string_view plain_technique = "plain";  // none of them
// Settings that take every technique out of a scenario.
std::vector<std::string> without_techniques();
// Of the generator: "keep", "selective", "full".
const std::string& recompute_way(Recompute recompute);

// Composed of the techniques' parts (compose.h). Throws InputError for two techniques of one part, and for one that is
// made with the step itself.
ComposedStep make_plan(std::span<const std::string_view> names, const TechniqueRequest& request);

// For docs: rows of a Markdown table.
std::string techniques_markdown();

}  // namespace spillway::planners
