#include "launch/launch_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"
#include "base/read_file.h"
#include "launch/launch_command.h"
#include "launch/launch_marks.h"
#include "launch/launch_references.h"
#include "launch/launch_table.h"
#include "launch/python_settings.h"
#include "traces/utf8.h"

namespace spillway::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_launch = 4U << 20U;  // all its files together
constexpr int most_files = 8;                        // that one launch names in turn

enum class Syntax : std::uint8_t { shell, json, yaml, toml, python };

bool is_section(std::string_view line) {  // [training]
  if (!line.starts_with('[') || line.size() < 3 || std::isalpha(static_cast<unsigned char>(line[1])) == 0) return false;
  const std::size_t end = line.find(']');
  if (end == std::string_view::npos) return false;
  return std::all_of(line.begin() + 1, line.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  });
}

bool has_flag(std::string_view line) {
  for (std::size_t at = line.find("--"); at != std::string_view::npos; at = line.find("--", at + 2)) {
    const bool begins =
        at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t' || line[at - 1] == '"' || line[at - 1] == '(';
    if (begins && at + 2 < line.size() && std::isalpha(static_cast<unsigned char>(line[at + 2])) != 0) return true;
  }
  return false;
}

// "key: value", or "key:" alone.
bool is_yaml_key(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos || (colon + 1 < line.size() && line[colon + 1] != ' '))
    return false;
  return std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '"' ||
           c == '\'';
  });
}

// "key = value", which no shell assigns so.
bool is_toml_key(std::string_view line) {
  const std::size_t equals = line.find(" = ");
  return equals != std::string_view::npos && equals > 0 &&
         std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
         });
}

Syntax syntax_of(std::string_view text) {
  if (is_python(text) || is_notebook(text)) return Syntax::python;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return Syntax::json;
  if (text.starts_with("#!")) return Syntax::shell;
  bool flags = false, sections = false, keys = false, assigns = false, is_toml = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos || line[begin] == '#') continue;
    line.remove_prefix(begin);
    sections = sections || is_section(line);
    keys = keys || is_yaml_key(line);
    is_toml = is_toml || is_toml_key(line);
    flags = flags || has_flag(line);
    assigns = assigns || line.find(" = ") != std::string_view::npos;
  }
  if (sections && assigns && !flags) return Syntax::toml;
  if (keys && !flags) return Syntax::yaml;
  return !flags && (sections || is_toml) ? Syntax::toml : Syntax::shell;
}

const LaunchFlag* row_of(const LaunchSetting& setting) { return find_flag(setting.format, setting.name); }

// As one of `format`, or of another's that it has beside its own.
void take_format(LaunchSetting& setting, LaunchFormat format) {
  setting.format = format;
  setting.name = flag_name(format, setting.shown);
  if (row_of(setting) != nullptr) return;
  std::string_view plain = setting.shown;
  while (plain.starts_with('-')) plain.remove_prefix(1);
  for (const InnerFormat& inner : inner_formats()) {
    if (inner.format != format || !plain.starts_with(inner.prefix)) continue;
    const std::string name = flag_name(inner.of, plain.substr(inner.prefix.size()));
    if (inner.prefix.empty() && find_flag(inner.of, name) == nullptr) continue;
    setting.format = inner.of;
    setting.name = name;
    if (!inner.prefix.empty()) setting.shown = plain.substr(inner.prefix.size());
    return;
  }
}

// How much of a training the settings say; those that decide something count more.
int score(std::vector<LaunchSetting> settings, LaunchFormat format) {
  int points = 0;
  for (LaunchSetting& setting : settings) {
    take_format(setting, format);
    const LaunchFlag* row = row_of(setting);
    if (row != nullptr) points += row->role == FlagRole::value ? 4 : 1;
  }
  return points;
}

class LaunchReader {
 public:
  explicit LaunchReader(const LaunchFiles& files) : files_(files) {}

  Launch take() {
    for (const std::string& path : files_.paths)
      if (program_file_.empty() || !is_same(path, program_file_)) read(path, files_.from, true);
    return std::move(launch_);
  }

 private:
  void read(const std::string& path, std::optional<LaunchFormat> format, bool is_program) {
    if (++read_ > most_files)
      throw InputError(path, "", "too many files name each other", "give the settings in fewer files");
    const auto made = made_.find(path);
    const std::string text = made != made_.end()
                                 ? made->second
                                 : to_valid_utf8(read_file(path, largest_launch));  // comments in other encodings
    refuse_binary(text, path);
    bytes_ += text.size();
    if (bytes_ > largest_launch)
      throw InputError(path, "", fmt::format("the launch's files have more than {} MiB", largest_launch >> 20U),
                       "give the settings alone, each file once");
    refuse_by_text(text, path);
    TextBudget budget(path, text.size());
    switch (syntax_of(text)) {
      case Syntax::json:
        return document(braced_settings(text, budget), budget, format, is_program);
      case Syntax::yaml:
        return document(yaml_settings(text, budget), budget, format, is_program);
      case Syntax::toml:
        return document(toml_settings(text, budget), budget, format, is_program);
      case Syntax::python:
        return program(python_settings(text, files_.given, budget), path);
      case Syntax::shell:
        return script(text, budget, format);
    }
  }

  // JSON, or the YAML in braces that GPT-NeoX reads.
  [[nodiscard]] std::vector<LaunchSetting> braced_settings(const std::string& text, TextBudget& budget) const {
    try {
      return json_settings(text, budget);
    } catch (const InputError&) {
      try {
        TextBudget again(budget.file(), text.size());
        std::vector<LaunchSetting> settings = yaml_settings(text, again);
        const auto whose = marked_format({settings, "", budget.file(), ""});
        const bool is_part = !whose && is_decided_ && launch_.launcher == LaunchFormat::neox;
        if (whose == LaunchFormat::neox || is_part) return settings;
      } catch (const InputError&) {  // the first complaint counts
      }
      throw;
    }
  }

  static void refuse_binary(const std::string& text, const std::string& path) {
    const auto at = std::find_if(text.begin(), text.end(), [](char c) {
      return c == '\x7f' || (static_cast<unsigned char>(c) < 0x20 && std::isspace(static_cast<unsigned char>(c)) == 0);
    });
    if (at != text.end())
      throw InputError(path, fmt::format("byte {}", at - text.begin() + 1),
                       "is no text: a control character stands there",
                       "give a launch script or a configuration as TOML, JSON or YAML");
  }

  void document(std::vector<LaunchSetting> settings, TextBudget& budget, std::optional<LaunchFormat> format,
                bool is_program) {
    const std::string& path = budget.file();
    resolve_references(settings, files_.given, budget);
    if (!format) format = marked_format({settings, "", path, ""});
    if (!format && is_decided_) format = launch_.launcher;  // a part of the file before
    if (!format) throw_unmarked(path);
    if (is_program) decide(*format, path, "");
    add(std::move(settings), *format);
  }

  // Of a Python program, whose calls say whose they are.
  void program(std::vector<LaunchSetting> settings, const std::string& path) {
    const bool is_unsloths = std::any_of(settings.begin(), settings.end(), [](const LaunchSetting& each) {
      return each.format == LaunchFormat::unsloth;
    });
    decide(is_unsloths ? LaunchFormat::unsloth : LaunchFormat::python, path, "");
    for (LaunchSetting& setting : settings) {
      LaunchSetting taken = setting;
      take_format(taken, setting.format);
      const LaunchFlag* row = row_of(taken);
      const bool decides = row != nullptr && (row->role == FlagRole::value || row->role == FlagRole::file);
      if (!decides) setting.unknown.clear();  // listed as it is written
    }
    add(std::move(settings), std::nullopt);
  }

  [[noreturn]] static void throw_unmarked(const std::string& path) {
    throw InputError(
        path, "", "nothing in it is a mark of a launcher that is known",
        "give the file or script that starts the training, or name the launcher: --from " + known_launchers());
  }

  // The program is the one that says most of it: arguments before accelerate's or DeepSpeed's own file.
  void decide(LaunchFormat format, const std::string& path, const std::string& place) {
    const auto rank = [](LaunchFormat each) {
      return each == LaunchFormat::deepspeed ? 1 : each == LaunchFormat::accelerate ? 0 : 2;
    };
    const LaunchFormat before = launch_.launcher;
    if (is_decided_ && rank(format) == 2 && rank(before) == 2 && format != before && engine_of(before) != format)
      throw InputError(path, place,
                       fmt::format("it is {}'s, the file before is {}'s", launch_format_words()[format].name,
                                   launch_format_words()[before].name),
                       "give the files of one launch");
    if (!is_decided_ || rank(format) > rank(before)) launch_.launcher = format;
    launch_.program = engine_of(launch_.launcher);
    is_decided_ = true;
  }

  void script(const std::string& text, TextBudget& budget, std::optional<LaunchFormat> format) {
    const std::string& path = budget.file();
    ShellScript shell = read_shell(text, given_, budget, [&](const std::string& name) { return part(path, name); });
    for (std::string& note : shell.notes) note_of(path, note);
    for (auto& [name, inner] : shell.files) made_.insert_or_assign(name, std::move(inner));
    std::vector<std::string> notes;
    std::optional<LaunchCommand> launch = the_launch(shell, notes, format, budget);
    if (!launch && follow_script(shell, path, format)) return;
    LaunchCommand command = launch ? *std::move(launch) : python_launch(shell, notes, budget);
    for (const std::string& note : notes) note_of(path, note);
    launch_.script = command.script;
    if (command.script == "trl" && !command.others.empty()) launch_.script += " " + command.others.front().text;
    if (command.format) decide(*command.format, path, fmt::format("line {}", command.line));
    add_variables(shell, path);
    if (!command.program_file.empty() && !is_decided_) {
      program_file_ = command.program_file;
      read(program_file_, std::nullopt, true);
    }
    std::vector<ShellWord> others;
    std::vector<LaunchSetting> job = flags_of(shell.job_options, path, others);
    if (!gives_gpus(command.launcher)) add(std::move(job), LaunchFormat::launcher);
    follow_words(command.others, path, command.format);
    add(std::move(command.launcher), std::nullopt);
    if (!command.program.empty() && !is_decided_) throw_unmarked(path);
    add(std::move(command.program), launch_.launcher);
  }

  // A file that a script reads as a part of it; nullopt: it isn't there, or is none.
  [[nodiscard]] static std::optional<std::string> part(const std::string& script, const std::string& name) {
    std::error_code none;
    if (fs::path(name).is_absolute()) return std::nullopt;  // of a machine, not of the launch
    for (const fs::path& file : {fs::path(script).parent_path() / name, fs::path(name)})
      if (fs::is_regular_file(file, none)) return to_valid_utf8(read_file(file.string(), largest_launch));
    return std::nullopt;
  }

  void note_of(const std::string& path, const std::string& note) { launch_.notes.push_back(path + ": " + note); }

  static bool gives_gpus(const std::vector<LaunchSetting>& launcher) {
    return std::any_of(launcher.begin(), launcher.end(), [](const LaunchSetting& setting) {
      const LaunchFlag* row = find_flag(setting.format, flag_name(setting.format, setting.shown));
      return row != nullptr && row->key == "model.data_parallel";
    });
  }

  // What shows words starts nothing.
  static bool prints(const ShellCommand& command) {
    const std::string& name = command.words.front().text;
    return name == "echo" || name == "printf" || name == "cat" || name == "tee";
  }

  // Its words that are no flags, between blanks.
  static std::string command_text(const LaunchCommand& command) {
    std::string text = " " + command.start + " ";
    for (const ShellWord& word : command.others) text += word.text + " ";
    return text;
  }

  // The one script beside this one that it calls with values of its arguments. False: it calls none, or several.
  bool follow_script(const ShellScript& shell, const std::string& path, std::optional<LaunchFormat> format) {
    const ShellCommand* call = nullptr;
    std::size_t first = 0;
    for (const ShellCommand& each : shell.commands) {
      const auto script = std::find_if(each.words.begin(), each.words.end(), [](const ShellWord& word) {
        return word.text.ends_with(".sh") && word.unknown.empty();
      });
      const bool is_shell = each.words.front().text == "bash" || each.words.front().text == "sh";
      const auto at = static_cast<std::size_t>(script - each.words.begin());
      if (script == each.words.end() || at > (is_shell ? 1u : 0u) || beside(path, script->text).empty()) continue;
      if (call != nullptr) return false;
      call = &each;
      first = at;
    }
    if (call == nullptr) return false;
    const ShellValues before = given_;
    for (const ShellExport& each : shell.exports)
      if (each.value.unknown.empty()) given_.emplace(each.name, each.value.text);
    for (std::size_t i = first + 1; i < call->words.size(); ++i)
      if (call->words[i].unknown.empty()) given_.emplace(std::to_string(i - first), call->words[i].text);
    read(beside(path, call->words[first].text), format, true);
    given_ = before;
    return true;
  }

  // The one command whose flags are a training's; nullopt: there is none.
  static std::optional<LaunchCommand> the_launch(const ShellScript& shell, std::vector<std::string>& notes,
                                                 std::optional<LaunchFormat> format, TextBudget& budget) {
    const std::string& path = budget.file();
    std::vector<std::pair<int, LaunchCommand>> found;
    for (const ShellCommand& each : shell.commands) {
      const bool may_be = std::any_of(each.words.begin(), each.words.end(), [](const ShellWord& word) {
        return word.text.find("--") != std::string::npos || word.text.find('=') != std::string::npos ||
               word.text.ends_with(".json") || word.text.ends_with(".yaml") || word.text.ends_with(".yml");
      });
      if (!may_be) continue;
      if (prints(each)) continue;
      LaunchCommand command = launch_command(each, notes, budget);
      command.format =
          format ? format
                 : marked_format({command.program, command_text(command), path, fmt::format("line {}", command.line)});
      int points = command.format ? score(command.program, *command.format) : 0;
      for (const ShellWord& word : command.others)
        if (is_settings_file(word.text)) points += 4;
      if (points > 0) found.emplace_back(points, std::move(command));
    }
    if (found.empty()) return std::nullopt;
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    // What is small beside it prepares or measures; another launcher's trains too.
    for (std::size_t i = 1; i < found.size(); ++i) {
      const auto whose = found[i].second.format;
      if (found[i].first * 2 > found[0].first || (whose && whose != found[0].second.format))
        throw InputError(path, fmt::format("line {}", found[i].second.line),
                         fmt::format("a second launch; the first is in line {}", found[0].second.line),
                         "leave one of them in the script");
    }
    return std::move(found.front().second);
  }

  // A command without a training's flags whose program has the settings itself: the one Python file that the script
  // runs.
  static LaunchCommand python_launch(const ShellScript& shell, std::vector<std::string>& notes, TextBudget& budget) {
    const std::string& path = budget.file();
    std::map<std::string, const ShellCommand*> programs;  // by the word that names it
    for (const ShellCommand& command : shell.commands)
      for (const ShellWord& word : command.words)
        if (word.text.ends_with(".py") && word.unknown.empty() && !prints(command)) programs[word.text] = &command;
    std::string remedy =
        "give the script or the arguments that start the training, or name the launcher: --from " + known_launchers();
    for (const auto& [name, command] : programs) {
      const std::string file = beside(path, name);
      if (programs.size() == 1 && !file.empty()) {
        LaunchCommand made = launch_command(*command, notes, budget);
        made.program_file = file;
        return made;
      }
      remedy = file.empty() ? fmt::format("put {} beside it, if it has the settings", name)
                            : fmt::format("give {} instead, if it has the settings, with --on MACHINE", name);
    }
    throw InputError(path, "", "no command with flags of a training is in it", remedy);
  }

  static bool is_settings_file(std::string_view word) {
    return word.ends_with(".json") || word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".toml");
  }

  void follow_words(const std::vector<ShellWord>& words, const std::string& path, std::optional<LaunchFormat> program) {
    for (const ShellWord& word : words)
      if (is_settings_file(word.text))
        read(beside(path, word.text, fmt::format("line {}", word.line)),
             program == LaunchFormat::hf ? std::nullopt : program, true);
  }

  void add_variables(const ShellScript& shell, const std::string& path) {
    for (const ShellExport& each : shell.exports) {
      const LaunchFlag* row = find_flag(LaunchFormat::environment, each.name);
      if (row == nullptr && misspelt_flag(LaunchFormat::environment, each.name) == nullptr) continue;
      const bool is_all_cores = each.value.text == all_cores;
      if (!is_all_cores && !each.value.unknown.empty() && row != nullptr && row->role == FlagRole::value) {
        note_of(path,
                fmt::format("line {}: {} is {}, which is not known", each.value.line, each.name, each.value.text));
        continue;
      }
      LaunchSetting made{.format = LaunchFormat::environment, .name = each.name, .shown = each.name};
      made.value = is_all_cores ? "0" : each.value.text;
      if (!is_all_cores) made.unknown = each.value.unknown;
      made.file = path;
      made.place = fmt::format("line {}", each.value.line);
      launch_.settings.push_back(std::move(made));
    }
  }

  static bool is_same(const std::string& path, const std::string& other) {
    std::error_code none;
    return std::filesystem::equivalent(path, other, none);
  }
  [[nodiscard]] bool is_given(const std::string& path) const {
    return std::any_of(files_.paths.begin(), files_.paths.end(),
                       [&](const std::string& given) { return is_same(given, path); });
  }

  // Names as the table has them; files that they name are read before them, unless they were given themselves.
  void add(std::vector<LaunchSetting> settings, std::optional<LaunchFormat> format) {
    for (LaunchSetting& setting : settings) {
      take_format(setting, format.value_or(setting.format));
      const LaunchFlag* row = row_of(setting);
      if (row == nullptr || row->role != FlagRole::file || setting.is_null) continue;
      const auto of = static_cast<LaunchFormat>(*launch_format_words().find(row->fact));
      if (add_named(setting, of) || !is_settings_file(setting.value)) continue;
      if (!setting.unknown.empty() && !made_.contains(setting.value)) refuse_unknown(setting);
      setting.unknown.clear();
      const std::string path = beside(setting.file, setting.value, setting.place);
      if (is_given(path)) continue;  // it stands where it was given
      read(path, of, false);
    }
    for (LaunchSetting& setting : settings) {
      const LaunchFlag* row = find_flag(setting.format, setting.name);
      if (counts_devices(setting)) setting.value = "auto", setting.unknown.clear();
      if (!setting.unknown.empty() && (row == nullptr || row->role != FlagRole::no_effect)) refuse_unknown(setting);
      launch_.settings.push_back(std::move(setting));
    }
  }

  // A configuration of DeepSpeed's that comes with the program, by its name: axolotl, LLaMA-Factory and ms-swift have
  // them. False: the setting names none.
  bool add_named(const LaunchSetting& setting, LaunchFormat of) {
    const bool is_word = !is_settings_file(setting.value);
    if (of != LaunchFormat::deepspeed || !setting.unknown.empty() || made_.contains(setting.value)) return false;
    if (!beside(setting.file, setting.value).empty()) return false;
    if (is_word && (setting.value == "false" || setting.value == "true")) return false;
    const std::vector<std::pair<std::string, std::string>> named =
        deepspeed_named(fs::path(setting.value).stem().string());
    if (named.empty() && is_word)
      throw InputError(setting.file, setting.place, "no configuration of DeepSpeed's is called '" + setting.value + "'",
                       "give its JSON file, or zero0, zero1, zero2, zero3, zero2_offload, zero3_offload");
    if (!named.empty() && !is_word)
      note_of(setting.file,
              fmt::format("{}: {} is not there: the program's own of that name is used", setting.place, setting.value));
    for (const auto& [key, value] : named)
      launch_.settings.push_back({.format = of,
                                  .name = key,
                                  .shown = key,
                                  .value = value,
                                  .file = setting.file,
                                  .place = setting.place + " (" + setting.value + ")"});
    return !named.empty();
  }

  // $(nvidia-smi -L | wc -l), torch.cuda.device_count(): as many as the machine has.
  static bool counts_devices(const LaunchSetting& setting) {
    const auto has = [&](std::string_view text) { return setting.value.find(text) != std::string::npos; };
    return !setting.unknown.empty() && (has("device_count()") || has("nvidia-smi"));
  }

  [[noreturn]] static void refuse_unknown(const LaunchSetting& setting) {
    throw InputError(
        setting.file, setting.place,
        fmt::format("{} is {}, and nothing gives {} a value", setting.shown, setting.value, setting.unknown),
        fmt::format("give it: --env {}=VALUE", setting.unknown));
  }

  // Beside the file that names it, or from here; empty: nowhere.
  static std::string beside(const std::string& file, const std::string& named) {
    const fs::path near = fs::path(file).parent_path() / named;
    std::error_code error;
    if (fs::exists(near, error)) return near.lexically_normal().string();
    return fs::exists(named, error) ? named : "";
  }

  [[nodiscard]] std::string beside(const std::string& file, const std::string& named, const std::string& place) const {
    if (made_.contains(named)) return named;
    if (std::string found = beside(file, named); !found.empty()) return found;
    throw InputError(file, place, "it names " + named + ", which is not there",
                     "put it beside the launch, or give it as a second file and take the name out");
  }

  const LaunchFiles& files_;
  ShellValues given_ = files_.given;
  Launch launch_;
  std::map<std::string, std::string> made_;  // files that the script itself writes
  std::string program_file_;                 // read at the command that runs it
  bool is_decided_ = false;
  int read_ = 0;
  std::uint64_t bytes_ = 0;  // of all files
};

}  // namespace

Launch read_launch(const LaunchFiles& files) { return LaunchReader(files).take(); }

}  // namespace spillway::launch
