// The program's commands and their options. A small face of CLI11, which one unit alone compiles.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/words.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace spillway::cli {

// Wrong usage, in words for the user.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
UsageError missing_argument(const std::string& name);

// Refuses words given for an option.
struct WordCheck {
  std::string name;                                          // what --help adds to the type: "POSITIVE"
  std::function<std::string(const std::string&)> complaint;  // empty: the word is good
};

// An option, flag or positional argument of a command, which owns it. Setters return this.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option* type_name(const std::string& name);  // of the value, in --help
  Option* required();
  Option* capture_default_str();                // --help shows the value that the variable has now
  Option* default_word(std::string_view word);  // that --help shows
  Option* allow_extra_args(bool allow);         // false: one value each time it is given
  Option* delimiter(char separator);            // between the values in one word
  Option* hide();                               // from --help, manual and completions
  Option* check(WordCheck check);
  // The path of a file, or KIND=FILE: refused, before the command runs, where it can't be written, or any other word of
  // the command is the same file.
  Option* to_write();
  Option* choices(const std::vector<std::string>& words);
  template <typename T>
  Option* choices(const std::map<std::string, T>& words) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : words) keys.push_back(key);
    return choices(keys);
  }
  Option* range(int least, int most);
  Option* range(double least, double most);
  Option* size_with_unit();  // 40GiB, 1.8GB, 40g, or a number: whole bytes
  // A whole number, also with a unit of the dimension that is asked for when it is read.
  Option* whole(std::function<Dimension()> dimension);
  // A number in `unit`, also with another unit of its dimension ("500 ms" where the variable is in s).
  Option* amount(Dimension dimension, const std::string& unit);

  [[nodiscard]] std::vector<std::string> names() const;       // "-q", "--quiet"; "FILE" of an argument
  [[nodiscard]] std::vector<std::string> long_names() const;  // "--quiet"
  [[nodiscard]] std::string about() const;
  [[nodiscard]] std::string type() const;  // of the value, with what checks add
  [[nodiscard]] bool is_argument() const;
  [[nodiscard]] bool is_flag() const;
  [[nodiscard]] bool is_required() const;
  [[nodiscard]] bool is_hidden() const;
  [[nodiscard]] bool is_written() const { return is_written_; }      // to_write()
  [[nodiscard]] std::vector<std::string> words() const;              // of the last parse
  [[nodiscard]] std::string file_of(const std::string& word) const;  // of a word of what is written
  [[nodiscard]] bool is(const CLI::Option* option) const { return option_ == option; }

 private:
  CLI::Option* option_;
  bool is_written_ = false;
};

template <typename T, typename... Types>
concept OneOf = (std::same_as<T, Types> || ...);
// The types that a word, or several, can become.
template <typename T>
concept OptionValue =
    OneOf<T, std::string, double, int, std::int64_t, std::uint64_t, std::optional<double>, std::optional<std::int64_t>,
          std::vector<std::string>, std::vector<double>, std::vector<std::int64_t>>;

// A command with its options and the commands below it; the topmost is the program. Variables given to add_option and
// add_flag must outlive the parse; they keep their value where the option is not given.
class Command {
 public:
  Command(const std::string& about, const std::string& name);  // the program
  explicit Command(CLI::App* app);                             // for add_subcommand alone
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  Command* add_subcommand(const std::string& name, const std::string& about);
  Command* hide();  // from --help, manual and completions
  // Under which headings --help lists the commands below it, each where its first command was added.
  struct Group {
    std::string heading;
    std::vector<std::string> commands;
  };
  void group_commands(const std::vector<Group>& groups);
  // The page of docs/ and the command lines that --help ends with, of the command below it with this path ("plan
  // layout").
  void set_page(const std::string& path, const std::string& page, std::vector<std::string> examples);
  // A name without dashes is a positional argument; "--a,--b" are two names of one option.
  template <OptionValue T>
  Option* add_option(const std::string& names, T& value, const std::string& about);
  // `given` after the variables of options added before have their values.
  Option* add_option(const std::string& names, const std::function<void(const std::string&)>& given,
                     const std::string& about);
  // One of the words, kept as its place among them.
  template <class Enum, class Value>
  Option* add_word(const std::string& name, Value& value, const Words& words, const std::string& about) {
    return add_option(
        name, [&value, &words, name](const std::string& word) { value = Enum(word_place(words, word, name)); }, about);
  }
  Option* add_flag(const std::string& names, bool& value, const std::string& about);
  Option* add_flag(const std::string& names, std::function<void()> given,
                   const std::string& about);  // before callbacks
  void set_version_flag(const std::string& name, const std::string& version);
  void callback(std::function<void()> run);  // when the command was chosen and all words are read
  void require_subcommand();                 // one of them
  void fallthrough();                        // of options that a command below, added after this, does not know

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string about() const;
  [[nodiscard]] const std::string& page() const { return page_; }  // "docs/how-to/make-it-fit.md", or empty
  [[nodiscard]] const std::vector<std::string>& examples() const { return examples_; }
  [[nodiscard]] bool is_hidden() const;
  [[nodiscard]] std::vector<Option> options() const;           // with hidden ones, in the order of --help
  [[nodiscard]] std::vector<const Command*> commands() const;  // likewise

  // Reads the words and runs the callbacks of what was chosen; their exceptions pass. False: --help or --version was
  // asked for and printed. Throws UsageError.
  bool parse(int argc, const char* const* argv);
  // After a parse, also one that threw: from the program down to what was chosen, and the words nobody took.
  [[nodiscard]] std::vector<const Command*> chosen() const;
  [[nodiscard]] std::vector<std::string> unknown_words() const;

 private:
  void check_files() const;
  static int word_place(const Words& words, const std::string& word, const std::string& option);

  std::unique_ptr<CLI::App> program_;  // of the program alone
  CLI::App* app_;
  std::string page_;
  std::vector<std::string> examples_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::vector<std::unique_ptr<Option>> options_;
};

}  // namespace spillway::cli
