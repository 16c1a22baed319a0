#include "launch/launch_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "base/input_error.h"
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

struct Pair {
  std::string_view theirs, ours;
};
std::vector<Pair> pairs_of(std::string_view values) {
  std::vector<Pair> pairs;
  for (const std::string_view part : split(values, ' ')) {
    const std::size_t equals = part.rfind('=');
    pairs.push_back({part.substr(0, equals), part.substr(equals + 1)});
  }
  return pairs;
}

// True and false as YAML, Python and people write them.
std::string plain_word(std::string_view text) {
  std::string small = lower(text);
  if (small == "yes" || small == "on") return "true";
  if (small == "no" || small == "off") return "false";
  return small;
}

// A * at an end of the pattern, or at both, stands for anything.
bool is_like(std::string_view pattern, std::string_view text) {
  const bool begins = pattern.ends_with('*'), ends = pattern.starts_with('*');
  if (begins) pattern.remove_suffix(1);
  if (ends && !pattern.empty()) pattern.remove_prefix(1);
  if (begins && ends) return text.find(pattern) != std::string_view::npos;
  return begins ? text.starts_with(pattern) : ends ? text.ends_with(pattern) : text == pattern;
}

bool is_row_match(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : pattern == name;
}

using Index = std::map<std::pair<LaunchFormat, std::string_view>, const LaunchFlag*>;

const LaunchFlag* exact(LaunchFormat format, std::string_view name) {
  static const Index index = [] {
    Index made;
    for (const LaunchFlag& row : launch_flags()) {
      const bool is_first = made.emplace(std::pair(row.format, std::string_view(row.flag)), &row).second;
      SPILLWAY_ASSERT(is_first);
    }
    return made;
  }();
  const auto found = index.find({format, name});
  return found == index.end() ? nullptr : found->second;
}

// The longest of the rows that end in *.
const LaunchFlag* by_beginning(LaunchFormat format, std::string_view name) {
  static const std::map<LaunchFormat, std::vector<const LaunchFlag*>> patterns = [] {
    std::map<LaunchFormat, std::vector<const LaunchFlag*>> made;
    for (const LaunchFlag& row : launch_flags())
      if (row.flag.ends_with('*')) made[row.format].push_back(&row);
    return made;
  }();
  const auto found = patterns.find(format);
  if (found == patterns.end()) return nullptr;
  const LaunchFlag* best = nullptr;
  for (const LaunchFlag* row : found->second)
    if (is_row_match(row->flag, name) && (best == nullptr || row->flag.size() > best->flag.size())) best = row;
  return best;
}

// Sections that say nothing of what their keys mean: of Megatron-core's YAML file, of Megatron-Bridge's container, of
// accelerate's file.
bool is_free_section(LaunchFormat format, std::string_view section) {
  constexpr std::array<std::string_view, 17> megatrons = {
      "language-model", "model-parallel", "model",  "train",        "ddp",        "optimizer", "scheduler", "dataset",
      "tokenizer",      "checkpoint",     "logger", "comm-overlap", "validation", "dist",      "rng",       "profiling",
      "mixed-precision"};
  constexpr std::array<std::string_view, 5> accelerates = {"fsdp_config", "deepspeed_config", "parallelism_config",
                                                           "megatron_lm_config", "dynamo_config"};
  const auto has = [&](const auto& sections) {
    return std::find(sections.begin(), sections.end(), section) != sections.end();
  };
  return format == LaunchFormat::megatron ? has(megatrons) : format == LaunchFormat::accelerate && has(accelerates);
}

// Whether one letter too many, too few or another, or two in each other's place, is all the difference.
bool is_slip(std::string_view one, std::string_view other) {
  if (one.size() < other.size()) std::swap(one, other);
  if (one.size() > other.size() + 1) return false;
  const auto same = std::mismatch(other.begin(), other.end(), one.begin());
  one.remove_prefix(static_cast<std::size_t>(same.second - one.begin()));
  other.remove_prefix(static_cast<std::size_t>(same.first - other.begin()));
  if (one.empty()) return false;
  if (one.size() > other.size()) return one.substr(1) == other;
  if (one.substr(1) == other.substr(1)) return true;
  return one.size() > 1 && one[0] == other[1] && one[1] == other[0] && one.substr(2) == other.substr(2);
}

}  // namespace

FlagRows& FlagRows::say(std::string_view flag, std::string_view key, std::string_view values, std::string_view note) {
  return say(flag, key, key, values, note);
}
FlagRows& FlagRows::say(std::string_view flag, std::string_view key, std::string_view fact, std::string_view values,
                        std::string_view note) {
  read(flag, key, fact, values, note);
  rows_.back().exported = true;
  return *this;
}
FlagRows& FlagRows::read(std::string_view flag, std::string_view key, std::string_view values, std::string_view note) {
  return read(flag, key, key, values, note);
}
FlagRows& FlagRows::read(std::string_view flag, std::string_view key, std::string_view fact, std::string_view values,
                         std::string_view note) {
  rows_.push_back({format_, std::string(flag), FlagRole::value, key, fact, values, note, false});
  return *this;
}
FlagRows& FlagRows::file(std::string_view flag, LaunchFormat of, std::string_view note) {
  rows_.push_back({format_, std::string(flag), FlagRole::file, {}, launch_format_words()[of].name, {}, note, false});
  return *this;
}
FlagRows& FlagRows::as_modelled(std::string_view flags, std::string_view reason) {
  return each(FlagRole::as_modelled, flags, reason);
}
FlagRows& FlagRows::as_modelled_if(std::string_view flag, std::string_view value, std::string_view reason) {
  return each(FlagRole::as_modelled, flag, reason, value);
}
FlagRows& FlagRows::no_effect(std::string_view flags, std::string_view reason) {
  return each(FlagRole::no_effect, flags, reason);
}
FlagRows& FlagRows::time(std::string_view flags, std::string_view reason) {
  return each(FlagRole::time, flags, reason);
}
FlagRows& FlagRows::saves(std::string_view flags, std::string_view reason) {
  return each(FlagRole::saves, flags, reason);
}
FlagRows& FlagRows::adds(std::string_view flags, std::string_view reason, double bytes_each) {
  const std::size_t before = rows_.size();
  each(FlagRole::adds, flags, reason);
  for (std::size_t i = before; i < rows_.size(); ++i) rows_[i].bytes_each = bytes_each;
  return *this;
}
FlagRows& FlagRows::not_said(std::string_view flags, std::string_view reason) {
  return each(FlagRole::not_said, flags, reason);
}
FlagRows& FlagRows::or_else(FlagRole role) {
  rows_.back().otherwise = role;
  return *this;
}
FlagRows& FlagRows::each(FlagRole role, std::string_view flags, std::string_view reason, std::string_view values) {
  for (const std::string_view flag : split(flags, ' '))
    rows_.push_back({format_, std::string(flag), role, {}, {}, values, reason, false});
  return *this;
}

std::string_view to_string(FlagRole role) {
  constexpr std::array<std::string_view, 8> names = {"value", "file",    "as_modelled", "no_effect",
                                                     "time",  "memory-", "memory+",     "memory~"};
  return names[static_cast<std::size_t>(role)];
}

const Words& launch_format_words() {
  static const Words words = {{"megatron", "arguments of Megatron-LM, keys of Megatron-Bridge"},
                              {"torchtitan", "its TOML file"},
                              {"deepspeed", "its JSON file"},
                              {"accelerate", "its YAML file"},
                              {"hf", "Hugging Face TrainingArguments, axolotl"},
                              {"nanotron", "its YAML file"},
                              {"bridge", "recipes of Megatron-Bridge"},
                              {"nemo1", "YAML of NeMo 1"},
                              {"primus", "its YAML file"},
                              {"swift", "ms-swift: swift sft, swift pt, swift rlhf"},
                              {"swift-megatron", "ms-swift: megatron sft, megatron pt"},
                              {"automodel", "YAML of NeMo AutoModel"},
                              {"python", "keywords of transformers', PEFT's and TRL's classes"},
                              {"unsloth", "keywords of FastLanguageModel"},
                              {"torchtune", "its YAML file"},
                              {"neox", "YAML of GPT-NeoX"},
                              {"openrlhf", "its supervised training"},
                              {"verl", "its supervised training"},
                              {"openrlhf-rl", "OpenRLHF's train_ppo_ray"},
                              {"verl-rl", "verl's main_ppo on FSDP"},
                              {"litgpt", "its YAML file"},
                              {"foundry", "YAML of llm-foundry"},
                              {"launcher", "torchrun, deepspeed, srun, sbatch"},
                              {"environment", "variables"}};
  return words;
}

const std::vector<LaunchFlag>& launch_flags() {
  static const std::vector<LaunchFlag> all = [] {
    std::vector<LaunchFlag> rows;
    for (auto* part : {&megatron_flags, &torchtitan_flags, &deepspeed_flags, &huggingface_flags, &nanotron_flags,
                       &nvidia_flags, &primus_flags, &swift_flags, &python_flags, &torchtune_flags, &neox_flags,
                       &post_training_flags, &reinforcement_flags, &litgpt_flags, &foundry_flags, &launcher_flags})
      for (LaunchFlag& row : (*part)()) rows.push_back(std::move(row));
    return rows;
  }();
  return all;
}

std::span<const InnerFormat> inner_formats() {
  using enum LaunchFormat;
  static constexpr std::array<InnerFormat, 10> all = {{{hf, "deepspeed.", deepspeed},
                                                       {megatron, "deepspeed.", deepspeed},
                                                       {bridge, "", megatron},
                                                       {nemo1, "model.", megatron},
                                                       {primus, "modules.pre_trainer.overrides.", megatron},
                                                       {swift, "", hf},
                                                       {swift_megatron, "", megatron},
                                                       {python, "", hf},
                                                       {unsloth, "", hf},
                                                       {neox, "", deepspeed}}};
  return all;
}

LaunchFormat engine_of(LaunchFormat format) {
  for (const InnerFormat& inner : inner_formats())
    if (inner.format == format && format >= LaunchFormat::bridge) return inner.of;
  return format;
}

std::string flag_name(LaunchFormat format, std::string_view shown) {
  while (shown.starts_with('-')) shown.remove_prefix(1);
  if (format == LaunchFormat::environment) return std::string(shown);
  std::string name = format == LaunchFormat::deepspeed ? std::string(shown) : lower(shown);
  const bool has_dashes = format == LaunchFormat::megatron || format == LaunchFormat::launcher;
  std::replace(name.begin(), name.end(), has_dashes ? '_' : '-', has_dashes ? '-' : '_');
  return name;
}

const LaunchFlag* find_flag(LaunchFormat format, std::string_view name) {
  if (const LaunchFlag* row = exact(format, name)) return row;
  if (name.find('.') != std::string_view::npos) {
    const bool has_sections = is_free_section(format, name.substr(0, name.find('.')));
    const std::string_view last = name.substr(name.rfind('.') + 1);
    if (const LaunchFlag* row = has_sections ? exact(format, last) : nullptr) return row;
    if (const LaunchFlag* row = by_beginning(format, name)) return row;
    if (!has_sections) return nullptr;
    name = last;
  }
  return by_beginning(format, name);
}

const LaunchFlag* misspelt_flag(LaunchFormat format, std::string_view name) {
  for (const LaunchFlag& row : launch_flags())
    if (row.format == format && row.role != FlagRole::no_effect && is_slip(row.flag, name)) return &row;
  return nullptr;
}

bool is_switch(const LaunchFlag& flag) {
  if (flag.role == FlagRole::as_modelled) return flag.values.empty() || flag.values == "true";
  return flag.role == FlagRole::value && flag.values.starts_with("true=");
}

std::vector<std::string> listed_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" ,[]'\"", at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::string digits;
  for (const char letter : text)
    if (letter != '_') digits += letter;
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto whole_end = std::from_chars(digits.data(), end, value);
  if (whole_end.ec == std::errc() && whole_end.ptr == end) return value;
  double number = 0;
  const auto number_end = std::from_chars(digits.data(), end, number);
  if (number_end.ec != std::errc() || number_end.ptr != end) return std::nullopt;
  if (number != std::floor(number) || std::abs(number) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::optional<std::string> our_value(const LaunchFlag& flag, std::string_view theirs) {
  if (flag.values.empty()) return std::string(theirs);
  if (flag.values == whole) {
    const auto number = whole_number(theirs);
    return number ? std::optional(std::to_string(*number)) : std::nullopt;
  }
  const std::string word = lower(theirs);
  for (const auto& [their, our] : pairs_of(flag.values)) {
    const auto number = their == whole ? whole_number(theirs) : std::nullopt;
    if (number) return std::to_string(*number);
    if (is_like(lower(their), word) || lower(their) == plain_word(word)) return std::string(our);
  }
  return std::nullopt;
}

std::optional<std::string> their_value(const LaunchFlag& flag, std::string_view ours) {
  if (flag.values.empty() || flag.values == whole) return std::string(ours);
  for (const auto& [their, our] : pairs_of(flag.values))
    if (our == ours && their.find('*') == std::string_view::npos) return std::string(their);
  return std::nullopt;
}

}  // namespace spillway::launch
