#include "launch/launch_ledger.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "base/input_error.h"
#include "base/shortened.h"

namespace spillway::launch {
namespace {

bool is_scenario_key(std::string_view fact) {
  return fact.starts_with("model.") || fact.starts_with("memory.") || fact.starts_with("offload.");
}

std::string sentence(const LaunchFlag& row, std::string_view otherwise) {
  return std::string(row.note.empty() ? otherwise : row.note);
}

IgnoreReason reason_of(FlagRole role) {
  return role == FlagRole::time    ? IgnoreReason::time
         : role == FlagRole::saves ? IgnoreReason::saves
         : role == FlagRole::adds  ? IgnoreReason::adds
                                   : IgnoreReason::not_said;
}

scenario::UnsayableFlag unsayable_of(const LaunchSetting& setting, IgnoreReason kind) {
  constexpr std::array<scenario::LaunchEffect, 5> effects = {
      scenario::LaunchEffect::time, scenario::LaunchEffect::saves, scenario::LaunchEffect::adds,
      scenario::LaunchEffect::either, scenario::LaunchEffect::unknown};
  const std::string file = std::filesystem::path(setting.file).filename().string();
  return {.flag = shortened(setting.shown),
          .value = shortened(setting.value),
          .place = fmt::format("{}: {}", file, setting.place),
          .effect = effects[static_cast<std::size_t>(kind) - static_cast<std::size_t>(IgnoreReason::time)]};
}

bool is_off(std::string_view value) {
  const std::string word = flag_name(LaunchFormat::hf, value);
  return word.empty() || word == "false" || word == "none" || word == "0";
}

bool is_as_modelled(const LaunchFlag& row, std::string_view value) {
  if (row.values.empty() || our_value(row, value)) return true;
  const auto wanted = whole_number(row.values);
  return wanted && wanted == whole_number(value);
}

}  // namespace

std::string_view to_string(IgnoreReason reason) {
  constexpr std::array<std::string_view, 8> names = {"no_effect", "as_modelled", "overridden", "time",
                                                     "memory-",   "memory+",     "memory~",    "unknown"};
  return names[static_cast<std::size_t>(reason)];
}

LaunchLedger::LaunchLedger(Launch launch) : launch_(std::move(launch)), entries_(launch_.settings.size()) {
  for (std::size_t i = 0; i < launch_.settings.size(); ++i) classify(i);
  for (std::string& note : launch_.notes) warnings_.push_back(std::move(note));
}

void LaunchLedger::ignore(std::size_t at, IgnoreReason kind, std::string reason) {
  entries_[at].ignored = kind;
  entries_[at].reason = std::move(reason);
}

void LaunchLedger::classify(std::size_t at) {
  const LaunchSetting& setting = launch_.settings[at];
  const LaunchFlag* row = entries_[at].row = find_flag(setting.format, setting.name);
  if (row == nullptr || row->flag.ends_with('*')) {
    const LaunchFlag* const meant = misspelt_flag(setting.format, setting.name);
    if (meant != nullptr) entries_[at].row = nullptr;
    if (meant != nullptr || row == nullptr)
      return ignore(at, IgnoreReason::unknown,
                    "no flag that is known" + (meant != nullptr ? ": is it " + meant->flag + "?" : ""));
  }
  if (setting.is_null) return ignore(at, IgnoreReason::no_effect, "null: as if not given");
  switch (row->role) {
    case FlagRole::no_effect:
      return ignore(at, IgnoreReason::no_effect, sentence(*row, "no effect on memory or time"));
    case FlagRole::as_modelled: {
      if (is_as_modelled(*row, setting.value))
        return ignore(at, IgnoreReason::as_modelled, sentence(*row, "as modelled"));
      return ignore(at, reason_of(row->otherwise), fmt::format("only {} is modelled", row->values));
    }
    case FlagRole::time:
    case FlagRole::saves:
    case FlagRole::adds:
    case FlagRole::not_said: {
      if (setting.value == "auto") return ignore(at, IgnoreReason::no_effect, "auto: whatever the framework takes");
      if (is_off(setting.value)) return ignore(at, IgnoreReason::as_modelled, "off");
      return ignore(at, reason_of(row->role), sentence(*row, "not said in a scenario"));
    }
    case FlagRole::file:
      return;
    case FlagRole::value:
      return gather(at, *row);
  }
}

void LaunchLedger::gather(std::size_t at, const LaunchFlag& row) {
  const LaunchSetting& setting = launch_.settings[at];
  if (setting.value == "auto" && !our_value(row, "auto")) {
    left_to_framework_.emplace(row.key);
    return ignore(at, IgnoreReason::no_effect, "auto: whatever the other settings say");
  }
  const auto value = row.values.empty() ? std::optional(setting.value) : our_value(row, setting.value);
  if (!value && row.values == "#")
    throw InputError(setting.file, setting.place, fmt::format("{} is '{}'", setting.shown, setting.value),
                     "give a whole number");
  if (!value)
    return ignore(at, reason_of(row.otherwise),
                  fmt::format("a scenario has nothing for the value '{}'", setting.value));
  const auto before = facts_.find(row.fact);
  if (*value == "-") {
    // What the same flag said before it says no more.
    const bool is_again =
        before != facts_.end() && before->second.setting && entries_[*before->second.setting].row == &row;
    if (is_again) leave_out(row.fact, IgnoreReason::overridden, setting.shown + " says " + setting.value);
    return ignore(at, IgnoreReason::as_modelled, "as if not given");
  }
  if (before != facts_.end() && before->second.setting)
    ignore(*before->second.setting, IgnoreReason::overridden,
           setting.shown + (before->second.value == *value ? " says it again" : " says " + *value));
  facts_.insert_or_assign(std::string(row.fact), Fact{*value, at, ""});
  if (is_scenario_key(row.fact)) chosen_.insert_or_assign(std::string(row.fact), *value);
}

bool LaunchLedger::says(std::string_view fact) const {
  const auto found = facts_.find(fact);
  return found != facts_.end() && found->second.setting;
}

bool LaunchLedger::has(std::string_view fact) const {
  asked_.emplace(fact);
  return facts_.contains(fact);
}

std::optional<std::string> LaunchLedger::text(std::string_view fact) const {
  asked_.emplace(fact);
  const auto found = facts_.find(fact);
  return found == facts_.end() ? std::nullopt : std::optional(found->second.value);
}

std::optional<std::int64_t> LaunchLedger::number(std::string_view fact) const {
  const auto value = text(fact);
  const auto number = value ? whole_number(*value) : std::nullopt;
  constexpr std::int64_t most = std::int64_t{1} << 42;
  if (!number || (*number <= most && *number >= -most)) return number;
  if (!says(fact)) return std::nullopt;
  const LaunchSetting& setting = setting_of(fact);
  throw InputError(setting.file, setting.place + " (" + setting.shown + ")", "too large a number", "correct it");
}

std::int64_t LaunchLedger::number_or(std::string_view fact, std::int64_t otherwise) const {
  return number(fact).value_or(otherwise);
}

bool LaunchLedger::has_format(LaunchFormat format) const {
  return std::any_of(launch_.settings.begin(), launch_.settings.end(),
                     [&](const LaunchSetting& setting) { return setting.format == format; });
}

bool LaunchLedger::says_any(std::string_view beginning) const {
  return std::any_of(launch_.settings.begin(), launch_.settings.end(),
                     [&](const LaunchSetting& setting) { return setting.name.starts_with(beginning); });
}

Dialect LaunchLedger::dialect() const {
  constexpr std::array<std::pair<std::string_view, Dialect>, 11> marks = {{{"model_class", Dialect::factory_v1},
                                                                           {"train_dataset", Dialect::factory_v1},
                                                                           {"base_model", Dialect::axolotl},
                                                                           {"sequence_len", Dialect::axolotl},
                                                                           {"finetuning_type", Dialect::factory},
                                                                           {"cutoff_len", Dialect::factory},
                                                                           {"pure_bf16", Dialect::factory},
                                                                           {"sftconfig", Dialect::trl},
                                                                           {"dpoconfig", Dialect::trl},
                                                                           {"ktoconfig", Dialect::trl},
                                                                           {"grpoconfig", Dialect::trl}}};
  if (launch_.program != LaunchFormat::hf) return Dialect::any;
  for (const auto& [name, whose] : marks)  // what the second format alone has comes before what both have
    for (const LaunchSetting& setting : launch_.settings)
      if (setting.name == name) return whose;
  return launch_.script.starts_with("trl") ? Dialect::trl : Dialect::any;
}

const LaunchSetting& LaunchLedger::setting_of(std::string_view fact) const {
  asked_.emplace(fact);
  const auto found = facts_.find(fact);
  SPILLWAY_ASSERT(found != facts_.end() && found->second.setting);
  return launch_.settings[*found->second.setting];
}

void LaunchLedger::assume(std::string_view fact, std::string value, std::string_view why) {
  if (facts_.contains(fact) || left_to_framework_.contains(fact)) return;
  if (is_scenario_key(fact)) set(std::string(fact), value, why);
  facts_.insert_or_assign(std::string(fact), Fact{std::move(value), std::nullopt, std::string(why)});
}

void LaunchLedger::set(const std::string& key, std::string value, std::string_view why) {
  if (!place_of_key(key)) {
    std::erase_if(defaulted_, [&](const DefaultedKey& each) { return each.key == key; });
    defaulted_.push_back({key, value, std::string(why)});
  }
  chosen_.insert_or_assign(key, std::move(value));
}

std::optional<std::string> LaunchLedger::chosen(std::string_view key) const {
  const auto found = chosen_.find(key);
  return found == chosen_.end() ? std::nullopt : std::optional(found->second);
}

void LaunchLedger::leave_out(std::string_view fact, IgnoreReason kind, const std::string& reason) {
  const auto found = facts_.find(fact);
  if (found == facts_.end()) return;
  if (found->second.setting) ignore(*found->second.setting, kind, reason);
  if (is_scenario_key(fact)) {
    chosen_.erase(std::string(fact));
    std::erase_if(defaulted_, [&](const DefaultedKey& each) { return each.key == fact; });
  }
  facts_.erase(found);
}

std::optional<std::pair<std::string, std::string>> LaunchLedger::place_of_key(std::string_view key) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.row == nullptr || entry.ignored || entry.row->key != key) continue;
    const LaunchSetting& setting = launch_.settings[i];
    return std::pair(setting.file, setting.place + " (" + setting.shown + ")");
  }
  return std::nullopt;
}

void LaunchLedger::doubt(std::string_view fact, IgnoreReason kind, const std::string& reason) {
  if (!says(fact)) return;
  const LaunchSetting& setting = setting_of(fact);
  unsayable_.push_back(unsayable_of(setting, kind));
  warn(fmt::format("{}: {}: {} {}: {}", setting.file, setting.place, setting.shown, setting.value, reason));
}

std::vector<scenario::UnsayableFlag> LaunchLedger::unsayable() const {
  std::vector<scenario::UnsayableFlag> all = unsayable_;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const LaunchSetting& setting = launch_.settings[i];
    // What starts a program holds none of its memory.
    const bool counts = entry.ignored && *entry.ignored >= IgnoreReason::time &&
                        (*entry.ignored != IgnoreReason::unknown || setting.format != LaunchFormat::launcher);
    if (!counts) continue;
    all.push_back(unsayable_of(setting, *entry.ignored));
    if (entry.row == nullptr || entry.row->bytes_each <= 0) continue;
    if (const auto count = whole_number(setting.value); count && *count >= 0)
      all.back().at_most =
          Bytes(static_cast<std::int64_t>(std::min(static_cast<double>(*count) * entry.row->bytes_each, 0x1p60)));
  }
  return all;
}

void LaunchLedger::account(LaunchImport& into) {
  into.format = launch_format_words()[launch_.launcher].name;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    LaunchSetting& setting = launch_.settings[i];
    const bool counts = entry.row != nullptr && (entry.row->role != FlagRole::value ||
                                                 is_scenario_key(entry.row->fact) || asked_.contains(entry.row->fact));
    if (!entry.ignored && !counts)
      ignore(i, IgnoreReason::no_effect, "other settings make it so that nothing asks for it");
    if (!entry.ignored) {
      const std::string key(entry.row->key);
      into.understood.push_back(
          {setting.shown, setting.value, key, chosen(key).value_or(""), setting.file, setting.place});
      continue;
    }
    if (*entry.ignored >= IgnoreReason::time)
      warnings_.push_back(fmt::format("{}: {}: {} {} is left out: {}", setting.file, setting.place, setting.shown,
                                      setting.value, entry.reason));
    into.ignored.push_back({setting.shown, setting.value, *entry.ignored, entry.reason, setting.file, setting.place});
  }
  into.defaulted = std::move(defaulted_);
  for (const std::string& warning : warnings_) into.warnings.push_back(shortened(warning));
}

}  // namespace spillway::launch
