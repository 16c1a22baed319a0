#include "launch/launch_command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"
#include "launch/launch_table.h"

namespace spillway::launch {
namespace {

using ShellWords = std::vector<ShellWord>;

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_flag(const ShellWord& word) {
  const std::string& text = word.text;
  if (text.size() < 2 || text[0] != '-') return false;
  return std::isalpha(static_cast<unsigned char>(text[1])) != 0 || (text[1] == '-' && text.size() > 2);
}

// "batch_size=2", "++model.x=3"
bool is_assignment(const ShellWord& word) {
  std::string_view text = word.text;
  while (text.starts_with('+')) text.remove_prefix(1);
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  const std::string_view name = text.substr(0, equals);
  if (std::isupper(static_cast<unsigned char>(name.front())) != 0) return false;  // a variable's
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '@' || c == '/';
  });
}

// One whose name has sections: no flag's value.
bool is_override(const ShellWord& word) { return is_assignment(word) && word.text.find('.') < word.text.find('='); }

bool is_true_or_false(std::string_view text) {
  constexpr std::array<std::string_view, 8> words = {"true", "false", "True", "False", "yes", "no", "0", "1"};
  return is_one_of(text, words);
}

// The rows of a flag, of each format that has it.
std::vector<const LaunchFlag*> rows_of(std::string_view shown) {
  std::vector<const LaunchFlag*> rows;
  for (std::size_t i = 0; i < launch_format_words().size(); ++i) {
    const auto format = static_cast<LaunchFormat>(i);
    if (const LaunchFlag* row = find_flag(format, flag_name(format, shown))) rows.push_back(row);
  }
  return rows;
}

bool is_value(const LaunchFlag* row) { return row->role == FlagRole::value; }

// By the first format that has it as more than something that is passed over.
bool stands_alone(std::string_view shown) {
  for (const LaunchFlag* row : rows_of(shown))
    if (row->role != FlagRole::no_effect && row->role != FlagRole::not_said) return is_switch(*row);
  return false;
}

// Whether every framework that has the flag takes a single whole number behind it.
bool takes_number(const std::string& shown) {
  const std::vector<const LaunchFlag*> rows = rows_of(shown);
  return std::any_of(rows.begin(), rows.end(), is_value) &&
         std::all_of(rows.begin(), rows.end(),
                     [](const LaunchFlag* row) { return !is_value(row) || row->values == "#"; });
}

bool starts_program(std::string_view word) {
  constexpr std::array<std::string_view, 10> programs = {"torchrun", "deepspeed", "srun",       "mpirun", "mpiexec",
                                                         "python",   "python3",   "accelerate", "bash",   "sh"};
  return is_one_of(file_name(word), programs);
}

// The words inside eval's or bash -c's text.
ShellWords inner_words(const std::string& text, std::int64_t line, TextBudget& budget) {
  ShellScript inner = read_shell(text, {}, budget);
  ShellWords words;
  for (ShellCommand& command : inner.commands)
    for (ShellWord& word : command.words) {
      word.line = line;
      words.push_back(std::move(word));
    }
  return words;
}

ShellWords unwrapped(ShellWords words, TextBudget& budget) {
  constexpr std::array<std::string_view, 7> wrappers = {"exec", "nohup", "time", "sudo", "env", "eval", "command"};
  const auto program =
      std::find_if(words.begin(), words.end(), [&](const ShellWord& word) { return !is_one_of(word.text, wrappers); });
  const bool is_text = std::any_of(words.begin(), program, [](const ShellWord& word) { return word.text == "eval"; });
  words.erase(words.begin(), program);
  if (is_text) {
    ShellWords again;
    for (ShellWord& word : words) {
      if (word.text.find(' ') == std::string::npos || !word.unknown.empty()) {
        again.push_back(std::move(word));
        continue;
      }
      for (ShellWord& inner : inner_words(word.text, word.line, budget)) again.push_back(std::move(inner));
    }
    words = std::move(again);
  }
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string_view shell = file_name(words[i - 1].text);
    if ((words[i].text != "-c" && words[i].text != "-lc") || (shell != "bash" && shell != "sh")) continue;
    ShellWords inner = inner_words(words[i + 1].text, words[i + 1].line, budget);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) - 1, words.end());
    words.insert(words.end(), inner.begin(), inner.end());
    break;
  }
  return words;
}

bool is_module_flag(std::string_view word) { return word == "-m" || word == "--module"; }

// How many words belong to what starts the program, the program included.
std::size_t launcher_length(const ShellWords& words) {
  constexpr std::array<std::string_view, 9> launchers = {"torchrun", "deepspeed", "srun",   "mpirun",    "mpiexec",
                                                         "python",   "python3",   "sbatch", "accelerate"};
  if (words.size() > 1 && words[0].text == "tune" && words[1].text == "run") {
    std::size_t at = 2;  // torchrun's flags, with a value each, then the recipe
    while (at < words.size() && is_flag(words[at])) at += words[at].text.find('=') == std::string::npos ? 2 : 1;
    return std::min(at + 1, words.size());
  }
  if (words.empty() || is_flag(words.front()) || is_override(words.front())) return 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    if (text.ends_with(".py")) return i + 1;
    if (is_module_flag(text) && i + 1 < words.size() && !words[i + 1].text.starts_with("torch.distributed"))
      return i + 2;
  }
  if (!is_one_of(file_name(words.front().text), launchers)) return 1;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (is_override(words[i])) return i;
  return words.size();
}

// A letter of srun's as the long name.
ShellWord spelt_out(ShellWord word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> letters = {
      {{"-N", "--nodes"}, {"-n", "--ntasks"}, {"-G", "--gpus"}, {"-J", "--job-name"}}};
  for (const auto& [letter, name] : letters)
    if (word.text == letter) word.text = name;
  return word;
}

std::vector<LaunchSetting> launcher_settings(const ShellWords& words, std::size_t length, const std::string& file) {
  std::vector<LaunchSetting> settings;
  ShellWords part, others;
  LaunchFormat format = LaunchFormat::launcher;
  const auto end_part = [&] {
    for (LaunchSetting& setting : flags_of(part, file, others)) {
      setting.format = format;
      settings.push_back(std::move(setting));
    }
    part.clear();
  };
  for (std::size_t i = 0; i < length; ++i) {
    if (is_module_flag(words[i].text)) {
      ++i;
      continue;
    }
    if (file_name(words[i].text) == "accelerate") {
      end_part();
      format = LaunchFormat::accelerate;
      continue;
    }
    const bool is_recipe = i + 1 == length && words.front().text == "tune";
    if (words[i].text.ends_with(".py") || is_recipe) continue;
    part.push_back(spelt_out(words[i]));
  }
  end_part();
  return settings;
}

// A flag with a JSON object behind it, which transformers' arguments may have, as flags of its keys where one is known.
std::vector<LaunchSetting> unfolded(const LaunchSetting& setting, TextBudget& budget) {
  if (!setting.value.starts_with('{') || !setting.unknown.empty()) return {setting};
  std::vector<LaunchSetting> parts;
  try {
    parts = json_settings(setting.value, budget);
  } catch (const InputError&) {
    return {setting};  // a value as the table has it
  }
  bool is_known = false;
  for (LaunchSetting& part : parts) {
    part.shown = part.name = fmt::format("{}.{}", setting.shown, part.name);
    part.place = setting.place;
    const std::vector<const LaunchFlag*> rows = rows_of(part.shown);
    is_known = is_known || std::any_of(rows.begin(), rows.end(), is_value);
  }
  return is_known ? parts : std::vector<LaunchSetting>{setting};
}

}  // namespace

std::vector<LaunchSetting> flags_of(const std::vector<ShellWord>& words, const std::string& file,
                                    std::vector<ShellWord>& others) {
  std::vector<LaunchSetting> settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    if (!is_flag(word) && !is_assignment(word)) {
      others.push_back(word);
      continue;
    }
    LaunchSetting made{.shown = word.text, .value = "true", .file = file, .unknown = word.unknown};
    made.place = fmt::format("line {}", word.line);
    if (const std::size_t equals = word.text.find('='); equals != std::string::npos) {
      made.shown = word.text.substr(0, equals);
      made.value = word.text.substr(equals + 1);
    } else {
      const bool alone = stands_alone(word.text);
      std::string values;
      const auto is_behind = [&](const ShellWord& next) {
        return is_override(next) || (!values.empty() && is_assignment(next));
      };
      // Behind a number, what isn't known holds flags: it is no part of the value.
      const auto may_hold_flags = [&](const ShellWord& next) {
        return !values.empty() && !next.unknown.empty() && next.text.starts_with('$') && takes_number(word.text);
      };
      while (i + 1 < words.size() && !may_hold_flags(words[i + 1]) && !is_flag(words[i + 1]) &&
             !starts_program(words[i + 1].text) && !is_behind(words[i + 1]) &&
             (!alone || (values.empty() && is_true_or_false(words[i + 1].text)))) {
        const ShellWord& value = words[++i];
        values += (values.empty() ? "" : " ") + value.text;
        if (made.unknown.empty()) made.unknown = value.unknown;
      }
      if (!values.empty()) made.value = values;
    }
    while (made.shown.starts_with('+')) made.shown.erase(0, 1);
    made.name = made.shown;
    settings.push_back(std::move(made));
  }
  return settings;
}

LaunchCommand launch_command(const ShellCommand& command, std::vector<std::string>& notes, TextBudget& budget) {
  const std::string& file = budget.file();
  const ShellWords words = unwrapped(command.words, budget);
  LaunchCommand made{.line = command.line};
  const std::size_t length = launcher_length(words);
  made.launcher = launcher_settings(words, length, file);
  if (length > 0) made.script = file_name(words[length - 1].text);
  for (std::size_t i = 0; i < length; ++i) made.start.append(i == 0 ? "" : " ").append(file_name(words[i].text));
  ShellWords program;
  for (std::size_t i = length; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    if (word.unknown == "@" || word.unknown == "*")
      notes.push_back(fmt::format("line {}: what the script's caller adds ({}) is not known", word.line, word.text));
    else
      program.push_back(word);
  }
  for (const LaunchSetting& setting : flags_of(program, file, made.others))
    for (LaunchSetting& part : unfolded(setting, budget)) made.program.push_back(std::move(part));
  for (const ShellWord& word : made.others)
    if (!word.unknown.empty())
      throw InputError(file, fmt::format("line {}", word.line),
                       fmt::format("flags may hide in {}, which nothing assigns", word.text),
                       fmt::format("give what it hangs on: --env '{}=...'", word.unknown));
  return made;
}

}  // namespace spillway::launch
