// The account of an import: what each setting came to, the facts that they say, and the scenario made of them.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/launch_import.h"
#include "launch/launch_table.h"

namespace spillway::launch {

// A product of numbers that a launch says, which may be anything: no more than can be counted.
constexpr std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

class LaunchLedger {
 public:
  explicit LaunchLedger(Launch launch);

  [[nodiscard]] LaunchFormat program() const { return launch_.program; }

  [[nodiscard]] LaunchFormat launcher() const { return launch_.launcher; }

  [[nodiscard]] const std::string& script() const { return launch_.script; }

  // Facts, whether a setting says them or a default. Who asks for one makes something of it: a setting has
  // no effect if nobody asks for its fact.
  [[nodiscard]] bool has(std::string_view fact) const;
  // Whether a setting says it; asks for nothing.
  [[nodiscard]] bool says(std::string_view fact) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view fact) const;
  // None where the text is no whole number. Throws InputError for one beyond 4e12, which counts nothing of a training.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view fact) const;
  [[nodiscard]] std::int64_t number_or(std::string_view fact, std::int64_t otherwise) const;
  [[nodiscard]] bool is_on(std::string_view fact) const { return text(fact) == "true"; }
  // Whether any of the settings has the format.
  [[nodiscard]] bool has_format(LaunchFormat format) const;
  // Whether a setting's name begins so.
  [[nodiscard]] bool says_any(std::string_view beginning) const;
  // The program that a Trainer's arguments belong to, by those that nobody else has.
  [[nodiscard]] Dialect dialect() const;
  // The setting that says the fact; it must.
  [[nodiscard]] const LaunchSetting& setting_of(std::string_view fact) const;
  // A fact that no setting says.
  void assume(std::string_view fact, std::string value, std::string_view why);

  // A key of the scenario. `why` counts where no setting decides the key.
  void set(const std::string& key, std::string value, std::string_view why);
  void unset(const std::string& key) { chosen_.erase(key); }
  [[nodiscard]] std::optional<std::string> chosen(std::string_view key) const;
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& all_chosen() const { return chosen_; }
  // Takes a fact back, and what it set: its setting is not in the scenario after all.
  void leave_out(std::string_view fact, IgnoreReason kind, const std::string& reason);
  // Says of a fact in the scenario that its key there needs other memory than the flag does.
  void doubt(std::string_view fact, IgnoreReason kind, const std::string& reason);
  // Whether a setting leaves the scenario's key to others ("auto").
  [[nodiscard]] bool is_left_open(std::string_view key) const { return left_to_framework_.contains(key); }
  // Settings that change memory or time and are not in the scenario, in the launch's order, doubts first.
  [[nodiscard]] std::vector<scenario::UnsayableFlag> unsayable() const;
  void warn(std::string text) { warnings_.push_back(std::move(text)); }

  // "--micro-batch-size" of the file's line 7: where the setting stands that decides a key; nullopt: none does.
  [[nodiscard]] std::optional<std::pair<std::string, std::string>> place_of_key(std::string_view key) const;

  // Moves everything but the scenario's text into the import.
  void account(LaunchImport& into);

 private:
  struct Entry {
    const LaunchFlag* row = nullptr;
    std::optional<IgnoreReason> ignored;
    std::string reason;
  };
  struct Fact {
    std::string value;
    std::optional<std::size_t> setting;  // none: a default
    std::string why;
  };

  void classify(std::size_t at);
  void gather(std::size_t at, const LaunchFlag& row);
  void ignore(std::size_t at, IgnoreReason kind, std::string reason);

  Launch launch_;
  std::vector<Entry> entries_;  // of each setting
  std::map<std::string, Fact, std::less<>> facts_;
  std::map<std::string, std::string, std::less<>> chosen_;  // by the scenario's key
  std::vector<DefaultedKey> defaulted_;
  std::vector<std::string> warnings_;
  std::set<std::string, std::less<>> left_to_framework_;  // keys of settings that are "auto"
  std::vector<scenario::UnsayableFlag> unsayable_;
  mutable std::set<std::string, std::less<>> asked_;  // facts
};

}  // namespace spillway::launch
