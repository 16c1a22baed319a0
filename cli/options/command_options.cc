#include "cli/options/command_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/amount.h"
#include "base/files_in_use.h"
#include "base/input_error.h"
#include "base/output_file.h"
#include "cli/options/text_page.h"
#include "cli/options/wrong_file.h"

namespace spillway::cli {
namespace {

// For options of whole numbers: "1e6" and "5.0" become digits; other words are left to who reads them.
std::string whole_number(std::string& text) {
  constexpr double exact = 9007199254740992;  // 2^53
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && at == end && std::abs(value) <= exact && value == std::trunc(value) &&
      text.find_first_of(".eE") != std::string::npos)
    text = fmt::format("{:.0f}", value);
  return {};
}

// Replaces a word by what `read` makes of it; its InputError is a complaint.
CLI::Validator reading(std::function<std::string(const std::string&)> read) {
  return CLI::Validator(
      [read = std::move(read)](std::string& text) -> std::string {
        try {
          text = read(text);
          return {};
        } catch (const InputError& error) {
          return error.cause() + ": " + error.remedy();
        }
      },
      "");
}

}  // namespace

UsageError missing_argument(const std::string& name) { return UsageError(CLI::RequiredError(name).what()); }

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::allow_extra_args(bool allow) {
  option_->allow_extra_args(allow);
  return this;
}

Option* Option::default_word(std::string_view word) {
  option_->default_str(std::string(word));
  return this;
}

Option* Option::delimiter(char separator) {
  option_->delimiter(separator);
  return this;
}

Option* Option::hide() {
  option_->group("");
  return this;
}

Option* Option::check(WordCheck check) {
  option_->check(CLI::Validator(std::move(check.complaint), std::move(check.name)));
  return this;
}

Option* Option::to_write() {
  option_->check(CLI::Validator(
      [this](const std::string& word) -> std::string {
        const std::string path = file_of(word);
        if (path.empty()) return "the name of a file to write is empty";
        check_output(path);
        return {};
      },
      "", ""));
  is_written_ = true;
  return this;
}

Option* Option::choices(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return this;
}

Option* Option::range(int least, int most) {
  option_->check(CLI::Range(least, most));
  return this;
}

Option* Option::range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return this;
}

Option* Option::whole(std::function<Dimension()> dimension) {
  option_->transform(reading(
      [of = std::move(dimension)](const std::string& text) { return std::to_string(parse_whole(text, of())); }));
  return this;
}

Option* Option::size_with_unit() {
  return whole([] { return Dimension::bytes; });
}

Option* Option::amount(Dimension dimension, const std::string& unit) {
  option_->transform(reading([dimension, unit](const std::string& text) {
    const bool is_bare = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
    return is_bare ? text : fmt::format("{}", parse_amount(text, dimension) / unit_factor(dimension, unit));
  }));
  return this;
}

std::vector<std::string> Option::names() const {
  if (is_argument()) return {option_->get_name(true)};
  std::vector<std::string> names;
  for (const std::string& name : option_->get_snames()) names.push_back("-" + name);
  for (std::string& name : long_names()) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> Option::long_names() const {
  std::vector<std::string> names;
  for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string Option::about() const { return option_->get_description(); }
std::string Option::type() const { return option_->get_type_name(); }
bool Option::is_argument() const { return option_->get_positional(); }
bool Option::is_flag() const { return option_->get_items_expected() == 0; }
bool Option::is_required() const { return option_->get_required(); }
bool Option::is_hidden() const { return option_->get_group().empty(); }
std::vector<std::string> Option::words() const { return option_->results(); }

std::string Option::file_of(const std::string& word) const {
  return option_->get_type_name().find('=') == std::string::npos ? word : word.substr(word.find('=') + 1);
}

Command::Command(const std::string& about, const std::string& name)
    : program_(std::make_unique<CLI::App>(about, name)), app_(program_.get()) {}

Command::Command(CLI::App* app) : app_(app) {}

Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& about) {
  return commands_.emplace_back(std::make_unique<Command>(app_->add_subcommand(name, about))).get();
}

Command* Command::hide() {
  app_->group("");
  return this;
}

void Command::group_commands(const std::vector<Group>& groups) {
  for (const Group& group : groups)
    for (const std::string& name : group.commands) app_->get_subcommand(name)->group(group.heading);
}

template <OptionValue T>
Option* Command::add_option(const std::string& names, T& value, const std::string& about) {
  CLI::Option* const option = app_->add_option(names, value, about);
  if constexpr (OneOf<T, int, std::int64_t, std::uint64_t, std::optional<std::int64_t>, std::vector<std::int64_t>>)
    option->transform(CLI::Validator(whole_number, ""));
  return options_.emplace_back(std::make_unique<Option>(option)).get();
}

template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, int&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option* Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<std::int64_t>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<double>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&);

Option* Command::add_option(const std::string& names, const std::function<void(const std::string&)>& given,
                            const std::string& about) {
  return options_.emplace_back(std::make_unique<Option>(app_->add_option_function<std::string>(names, given, about)))
      .get();
}

int Command::word_place(const Words& words, const std::string& word, const std::string& option) {
  const std::optional<std::size_t> place = words.find(word);
  if (!place) throw InputError("", option, "no '" + word + "'", "take one of " + words.listed());
  return static_cast<int>(*place);
}

Option* Command::add_flag(const std::string& names, bool& value, const std::string& about) {
  return options_.emplace_back(std::make_unique<Option>(app_->add_flag(names, value, about))).get();
}

Option* Command::add_flag(const std::string& names, std::function<void()> given, const std::string& about) {
  return options_.emplace_back(std::make_unique<Option>(app_->add_flag_callback(names, std::move(given), about))).get();
}

void Command::set_version_flag(const std::string& name, const std::string& version) {
  app_->set_version_flag(name, version);
}

void Command::callback(std::function<void()> run) {
  app_->callback([this, run = std::move(run)] {
    check_files();
    run();
  });
}

// Nothing that is written is also another word of the command, by itself or behind a "=", whatever that is for; a file
// that isn't there yet can only be written twice.
void Command::check_files() const {
  struct Named {
    std::optional<FileIdentity> file;
    bool is_written = false;
    std::string path;
  };
  std::vector<Named> named;
  for (const auto& option : options_)
    for (const std::string& word : option->words()) {
      if (option->is_written()) {
        const std::string path = option->file_of(word);
        if (path != "-") named.push_back({file_identity(path), true, path});
        continue;
      }
      named.push_back({file_identity(word), false, word});
      if (const auto equals = word.find('='); equals != std::string::npos)
        named.push_back({file_identity(word.substr(equals + 1)), false, word});
    }
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (!named[i].is_written || !named[i].file) continue;
    for (std::size_t other = 0; other < named.size(); ++other)
      if (other != i && named[other].file == named[i].file && (named[other].is_written || named[i].file->name.empty()))
        throw WouldOverwrite(named[i].path, "", "is named twice in this command, and would be overwritten",
                             "write to another file");
  }
}

void Command::require_subcommand() { app_->require_subcommand(1); }
void Command::fallthrough() { app_->fallthrough(); }

std::string Command::name() const { return app_->get_name(); }
void Command::set_page(const std::string& path, const std::string& page, std::vector<std::string> examples) {
  const std::size_t end = path.find(' ');
  for (const auto& command : commands_) {
    if (command->name() != path.substr(0, end)) continue;
    if (end != std::string::npos) return command->set_page(path.substr(end + 1), page, std::move(examples));
    std::string footer = examples.empty() ? "" : "Examples:\n";
    for (const std::string& example : examples) footer += "  " + example + "\n";
    if (!page.empty()) footer += (footer.empty() ? "" : "\n") + ("More: " + page);
    command->page_ = page;
    command->examples_ = std::move(examples);
    command->app_->footer(footer);
    return;
  }
  throw std::logic_error("no command " + path);
}

std::string Command::about() const { return app_->get_description(); }
bool Command::is_hidden() const { return app_->get_group().empty(); }

std::vector<Option> Command::options() const {
  std::vector<Option> options;
  for (CLI::Option* option : app_->get_options([](CLI::Option*) { return true; })) {
    const auto own = std::find_if(options_.begin(), options_.end(), [&](const auto& one) { return one->is(option); });
    options.push_back(own == options_.end() ? Option(option) : **own);
  }
  return options;
}

std::vector<const Command*> Command::commands() const {
  std::vector<const Command*> commands;
  for (const auto& command : commands_) commands.push_back(command.get());
  return commands;
}

// A list of choices that no line holds may be broken behind its commas.
static std::string breakable(const std::string& line, std::size_t width) {
  std::string text;
  for (std::size_t from = 0; from < line.size();) {
    const std::size_t end = std::min(line.find(' ', from), line.size());
    const bool is_wide = end - from > width;
    for (; from < end; ++from) {
      text += line[from];
      if (is_wide && line[from] == ',') text += ' ';
    }
    if (from < line.size()) text += line[from++];
  }
  return text;
}

// Sentences go on at the margin, what options and commands are for behind their names.
static void print_help(std::istream& text) {
  constexpr std::size_t about_column = 30;
  const std::size_t width = table_width();
  for (std::string line; std::getline(text, line);) {
    const std::size_t indent = line.starts_with(' ') ? about_column : 0;
    std::fputs((line.empty() ? "\n" : paragraph(breakable(line, width - indent), width, indent)).c_str(), stdout);
  }
}

bool Command::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::Success& answer) {
    std::stringstream text, none;
    app_->exit(answer, text, none);
    print_help(text);
    return false;
  } catch (const CLI::ParseError& error) {
    constexpr std::size_t narrowest = 60;  // a list as long as this fits no line
    throw UsageError(breakable(error.what(), narrowest));
  }
}

std::vector<const Command*> Command::chosen() const {
  std::vector<const Command*> path = {this};
  for (std::vector<CLI::App*> parsed = app_->get_subcommands(); !parsed.empty();
       parsed = path.back()->app_->get_subcommands())
    path.push_back(std::find_if(path.back()->commands_.begin(), path.back()->commands_.end(), [&](const auto& command) {
                     return command->app_ == parsed.front();
                   })->get());
  return path;
}

std::vector<std::string> Command::unknown_words() const { return app_->remaining(true); }

}  // namespace spillway::cli
