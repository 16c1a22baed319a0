#include "planners/technique/technique_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "models/pipeline/named_schedules.h"
#include "planners/offload/offload_settings.h"
#include "planners/offload/offload_techniques.h"
#include "planners/order/order_method.h"
#include "planners/order/order_techniques.h"
#include "planners/recompute/recompute_techniques.h"
#include "planners/stalloc/stalloc_techniques.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::planners {
namespace {

constexpr std::string_view schedule_key = "model.pipeline_schedule", allocator_key = "memory.allocator",
                           offload_key = "offload.technique", order_key = "order.technique", zero_key = "model.zero_stage",
                           recompute_key = "model.recompute";

std::string setting(std::string_view key, std::string_view value) {
  return std::string(key) + "=" + std::string(value);
}

TechniqueWay way_of(const NamedSchedule& named, std::string name, std::string about, std::int64_t recomputed) {
  return {std::move(name),
          std::move(about),
          {setting(schedule_key, named.name), setting("model.pipeline_chunks", std::to_string(named.chunks)),
           setting("model.recomputed_chunks", std::to_string(recomputed))},
          named.is_common ? Offered::with_stages : Offered::when_named};
}

void add_schedules(std::vector<Technique>& rows) {
  for (const NamedSchedule& named : named_schedules()) {
    const std::string name(named.name), about(named.about);
    Technique& row = rows.emplace_back();
    row = {.name = name, .title = name, .about = about, .part = PlanPart::schedule, .key = std::string(schedule_key)};
    row.ways.push_back(way_of(named, name, about, 0));
    if (named.recomputes && named.moves == ScheduleMoves::nothing)
      row.ways.push_back(way_of(named, name + "-recompute", about + ", half the chunks run forward twice", 1));
  }
}

void add_allocators(std::vector<Technique>& rows) {
  for (const MemoryPolicy& policy : memory_policy_table) {
    const std::string name(policy.name), about(policy.about);
    Technique& row = rows.emplace_back();
    row = {.name = name, .title = name, .about = about, .part = PlanPart::memory, .key = std::string(allocator_key)};
    const std::string_view way = policy.short_name.empty() ? policy.name : policy.short_name;
    if (!policy.follows_plan)
      row.ways.push_back({std::string(way), about, {setting(allocator_key, name)}, Offered::when_named});
  }
}

// How state is laid out over replicas: of the set-up, no part of a plan.
void add_zero(std::vector<Technique>& rows) {
  for (const auto& [stage, about] : {std::pair("1", "optimizer state shared by the replicas"),
                                     std::pair("2", "gradients too"), std::pair("3", "weights too")}) {
    const std::string name = std::string("zero") + stage;
    Technique& row = rows.emplace_back();
    row = {.name = name,
           .title = std::string("ZeRO ") + stage,
           .about = about,
           .source = "Rajbhandari et al. 2020 (arXiv 1910.02054)",
           .part = PlanPart::none,
           .key = std::string(zero_key),
           .word = stage};
    row.ways.push_back({name, about, {setting(zero_key, stage)}, Offered::with_replicas});
  }
}

Words words_of(std::string_view key, std::vector<Word> words) {
  for (const Technique& row : techniques())
    if (row.key == key) words.push_back({.name = row.name, .about = row.about});
  return Words(std::move(words));
}

std::vector<std::string> way_names() {
  std::vector<std::string> names;
  for (const TechniqueWay* way : technique_ways()) names.push_back(way->name);
  return names;
}

std::string cell(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

const std::vector<Technique>& techniques() {
  static const std::vector<Technique> all = [] {
    std::vector<Technique> rows;
    const auto add = [&rows](const std::vector<Technique>& room) { rows.insert(rows.end(), room.begin(), room.end()); };
    add(recompute_techniques());
    add(offload_techniques());
    add_schedules(rows);
    add(order_techniques());
    add(stalloc_techniques());
    add_allocators(rows);
    add_zero(rows);
    return rows;
  }();
  return all;
}

const Technique& technique_named(std::string_view name, const std::string& place) {
  std::vector<std::string> names;
  for (const Technique& row : techniques()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  throw InputError("", place, "no technique is called '" + std::string(name) + "'", suggest(std::string(name), names));
}

const Technique* technique_said(std::string_view key, std::string_view word) {
  for (const Technique& row : techniques())
    if (row.key == key && (row.word.empty() ? row.name : row.word) == word) return &row;
  return nullptr;
}

const std::string& recompute_way(Recompute recompute) {
  const Technique* row = technique_said(recompute_key, to_string(recompute));
  SPILLWAY_ASSERT(row != nullptr);
  return row->ways.front().name;
}

const Words& offload_words() {
  static const Words words = words_of(offload_key, {{.name = no_offload, .about = "nothing leaves"}});
  return words;
}

const Words& order_words() {
  static const Words words = words_of(order_key, {{.name = program_order_word, .about = "as the program issues them"}});
  return words;
}

const Words& allocator_words() {
  static const Words words = words_of(allocator_key, {});
  return words;
}

std::vector<const TechniqueWay*> technique_ways() {
  std::vector<const TechniqueWay*> ways;
  for (const Technique& row : techniques())
    for (const TechniqueWay& way : row.ways) ways.push_back(&way);
  return ways;
}

const TechniqueWay& way_named(std::string_view name, const std::string& file, const std::string& place) {
  for (const TechniqueWay* way : technique_ways())
    if (way->name == name) return *way;
  throw InputError(file, place, "no technique '" + std::string(name) + "'", suggest(std::string(name), way_names()));
}

ComposedStep make_plan(std::span<const std::string_view> names, const TechniqueRequest& request) {
  Composition parts;
  for (const std::string_view name : names) {
    const Technique& row = technique_named(name);
    if (row.make == nullptr)
      throw InputError("", "technique", row.name + " is made with the step itself, not planned for one that is there",
                       "say it in a scenario");
    const Technique*& place = row.part == PlanPart::fates   ? parts.fates
                              : row.part == PlanPart::order ? parts.order
                                                            : parts.memory;
    if (place != nullptr)
      throw InputError("", "technique",
                       row.name + " and " + place->name + " both plan the " + std::string(to_string(row.part)),
                       "take one of them");
    place = &row;
  }
  return compose(parts, request);
}

std::string techniques_markdown() {
  std::string text = "| technique | part | said by | what it does | source |\n|---|---|---|---|---|\n";
  for (const Technique& row : techniques()) {
    std::string said;
    for (const TechniqueWay& way : row.ways) {
      said += said.empty() ? "" : "; ";
      for (const std::string& one : way.settings) said += (one == way.settings.front() ? "`" : " `") + one + "`";
    }
    text += "| " + row.name + " | " + (row.part == PlanPart::none ? "-" : std::string(to_string(row.part))) + " | " +
            cell(said) + " | " + row.about + " | " + cell(row.source) + " |\n";
  }
  return text;
}

}  // namespace spillway::planners
