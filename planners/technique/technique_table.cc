#include "planners/technique/technique_table.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "models/pipeline/named_schedules.h"
#include "planners/offload/checkpoints.h"
#include "planners/offload/hybrid_search.h"
#include "planners/offload/lifetimes.h"
#include "planners/offload/offload_settings.h"
#include "planners/offload/offload_techniques.h"
#include "planners/offload/ssdtrain.h"
#include "planners/order/order_method.h"
#include "planners/order/order_techniques.h"
#include "planners/order/trace_order.h"
#include "planners/recompute/recompute_techniques.h"
#include "planners/stalloc/stalloc_techniques.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::planners {
namespace {

constexpr const char *recomputing = "-recompute", *offloading = "-offload";  // behind a schedule's name

// Chronos-Offload: states of the deeper chunks move to the host between their uses, and are updated there.
TechniqueWay with_offload(TechniqueWay way) {
  way.settings.push_back(setting("model.offloaded_states", "1"));
  way.settings.push_back(setting(optimizer_device_key, "cpu"));
  way.offered = Offered::when_named;
  return way;
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
    const std::string words = about + " (" + name + ")";
    row.ways.push_back(way_of(named, name, words, 0));
    if (!named.recomputes || named.moves != ScheduleMoves::nothing) continue;
    row.ways.push_back(way_of(named, name + recomputing, words + ", half the chunks run forward twice", 1));
    row.ways.push_back(
        with_offload(way_of(named, name + offloading, words + ", optimizer state of half the chunks on the host", 0)));
    row.ways.push_back(
        with_offload(way_of(named, name + recomputing + offloading, words + ", both of half the chunks", 1)));
  }
}

// As people read it.
std::string words_of_policy(const MemoryPolicy& policy) {
  return policy.name == gmlake_policy       ? "stitched blocks (GMLake)"
         : policy.name == expandable_policy ? "expandable segments"
                                            : std::string(policy.about);
}

std::string way_of_policy(std::string_view name) {
  const auto* policy = std::find_if(memory_policy_table.begin(), memory_policy_table.end(),
                                    [name](const MemoryPolicy& each) { return each.name == name; });
  SPILLWAY_ASSERT(policy != memory_policy_table.end());
  return std::string(policy->short_name.empty() ? policy->name : policy->short_name);
}

void add_allocators(std::vector<Technique>& rows) {
  for (const MemoryPolicy& policy : memory_policy_table) {
    const std::string name(policy.name), about(policy.about);
    Technique& row = rows.emplace_back();
    row = {.name = name, .title = name, .about = about, .part = PlanPart::memory, .key = std::string(allocator_key)};
    if (!policy.follows_plan)
      row.ways.push_back(
          {way_of_policy(policy.name), words_of_policy(policy), {setting(allocator_key, name)}, Offered::when_named});
  }
}

// How state is laid out over replicas: of the set-up, no part of a plan.
void add_zero(std::vector<Technique>& rows) {
  struct Stage {
    const char *stage, *about, *words;
  };
  for (const auto& [stage, about, words] :
       {Stage{"1", "optimizer state shared by the replicas", "shard optimizer states (ZeRO-1)"},
        Stage{"2", "gradients too", "shard optimizer states and gradients (ZeRO-2)"},
        Stage{"3", "weights too", "shard optimizer states, gradients and weights (ZeRO-3, FSDP)"}}) {
    const std::string name = std::string("zero") + stage;
    Technique& row = rows.emplace_back();
    row = {.name = name,
           .title = std::string("ZeRO ") + stage,
           .about = about,
           .source = "Rajbhandari et al. 2020 (arXiv 1910.02054)",
           .part = PlanPart::none,
           .key = std::string(zero_key),
           .word = stage};
    row.ways.push_back({name, words, {setting(zero_key, stage)}, Offered::with_replicas});
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

std::string words_of_ways(std::string_view names) {
  std::string words;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find('+', at), names.size());
    const std::string_view name = names.substr(at, end - at);
    const TechniqueWay* const way = find_way(name);
    at = end + 1;
    if (name != names && name == recompute_way(Recompute::none)) continue;  // others move what it would keep
    words += (words.empty() ? "" : ", ") + (way != nullptr            ? way->about
                                            : name == plain_technique ? "no technique"
                                                                      : std::string(name));
  }
  return words;
}

std::vector<const TechniqueWay*> technique_ways() {
  std::vector<const TechniqueWay*> ways;
  for (const Technique& row : techniques())
    for (const TechniqueWay& way : row.ways) ways.push_back(&way);
  return ways;
}

void check_together(std::span<const TechniqueWay* const> ways, const std::string& file, const std::string& place) {
  struct Said {
    std::string_view value, by;
  };
  std::map<std::string_view, Said> said;
  for (const TechniqueWay* way : ways)
    for (const std::string& setting : way->settings) {
      const std::string_view text = setting, key = text.substr(0, text.find('='));
      const auto [before, is_new] = said.try_emplace(key, Said{text.substr(key.size()), way->name});
      if (is_new || before->second.value == text.substr(key.size())) continue;
      throw InputError(file, place,
                       std::string(before->second.by) + " and " + way->name + " don't go together: both say " +
                           std::string(key) + ", each its own",
                       "take one of them; for both, ask for two rows");
    }
}

std::vector<std::string> settings_named(std::string_view names, const std::string& file, const std::string& place) {
  std::vector<const TechniqueWay*> ways;
  std::vector<std::string> settings;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find('+', at), names.size());
    ways.push_back(&way_named(names.substr(at, end - at), file, place));
    settings.insert(settings.end(), ways.back()->settings.begin(), ways.back()->settings.end());
    at = end + 1;
  }
  check_together(ways, file, place);
  return settings;
}

const std::vector<ComparedWay>& compared_ways() {
  static const std::vector<ComparedWay> all = [] {
    const std::string roam(to_string(OrderMethod::roam)), order(order_word), layout(layout_word), stalloc(stalloc_word),
        paper(stalloc_paper_word), ssdtrain(ssdtrain_word), mix(hybrid_word), checkpoints(checkpoints_word),
        chronos(chronos_schedule), host = "-host", full = recompute_way(Recompute::full),
                                   selective = recompute_way(Recompute::selective);
    const ComparedWay::Needs drives{.drives = true}, stages{.stages = true}, both{.drives = true, .stages = true};
    const std::string recomp = chronos + recomputing, offload = chronos + offloading;
    return std::vector<ComparedWay>{
        {ssdtrain, drives},
        {ssdtrain + host, {}},
        {selective, {}},
        {full, {}},
        {checkpoints + host, {}},
        {checkpoints, drives},
        {mix, {}},
        {std::string(lifetimes_word) + host, {}},
        {std::string(streaming_word) + host, {}},
        {std::string(cpu_optimizer_word), {}},
        {chronos, stages},
        {recomp, stages},
        {offload, stages},
        {recomp + offloading, stages},
        {roam, {}},
        {order, {}},
        {paper, {}},
        {stalloc, {}},
        {layout, {}},
        {way_of_policy(expandable_policy), {}},
        {roam + "+" + layout, {}},
        {order + "+" + layout, {}},
        {ssdtrain + "+" + stalloc, drives},
        {mix + "+" + layout, {}},
        {full + "+" + ssdtrain + host, {}},
        {chronos + "+" + ssdtrain, both},
        {chronos + "+" + stalloc, stages},
        {chronos + "+" + ssdtrain + "+" + roam + "+" + stalloc, both},
        {recomp + offloading + "+" + stalloc, stages},
    };
  }();
  return all;
}

std::vector<std::string> without_techniques() {
  std::vector<std::string> settings = {"plan=null", "model.pipeline_chunks=null", "model.recomputed_chunks=null",
                                       "model.offloaded_states=null", "model.weight_device=null"};
  for (const std::string_view key :
       {schedule_key, recompute_key, offload_key, order_key, allocator_key, optimizer_device_key})
    settings.push_back(setting(key, "null"));
  return settings;
}

const TechniqueWay* find_way(std::string_view name) {
  for (const TechniqueWay* way : technique_ways())
    if (way->name == name) return way;
  for (const Technique& row : techniques())
    if (row.name == name && row.ways.size() == 1) return &row.ways.front();
  return nullptr;
}

const TechniqueWay& way_named(std::string_view name, const std::string& file, const std::string& place) {
  if (const TechniqueWay* way = find_way(name)) return *way;
  // Activation or gradient checkpointing, activation recomputation: what others call it.
  const bool is_recomputation = name.find("checkpointing") != std::string_view::npos || name.starts_with("recomput");
  throw InputError(file, place, "no technique '" + std::string(name) + "'",
                   is_recomputation ? "use " + std::string(recompute_way(Recompute::full)) + " for whole layers, " +
                                          std::string(recompute_way(Recompute::selective)) + " for attention alone"
                                    : suggest(std::string(name), way_names()));
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
