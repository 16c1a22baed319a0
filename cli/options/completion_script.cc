#include "cli/options/completion_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::vector<std::string> option_names(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const OptionEntry& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// Case labels: the command so far, then the word that may go on with it.
std::string bash_command_cases(std::span<const CommandEntry> table) {
  std::string labels;
  for (const CommandEntry& command : table.subspan(1)) {
    const auto space = command.path.rfind(' ');
    const std::string parent = space == std::string::npos ? "" : command.path.substr(0, space);
    labels += fmt::format("{}\"{}:{}\"", labels.empty() ? "" : " | ", parent, command.path.substr(space + 1));
  }
  return labels;
}

// Case labels "command:option", of every option that takes a value; those of the program itself fit every command.
std::string bash_labels(const CommandEntry& command, const OptionEntry& option) {
  std::string labels;
  for (const std::string& name : option.names)
    labels += fmt::format("{}{}:{}", labels.empty() ? "" : " | ", command.path.empty() ? "*" : '"' + command.path + '"',
                          name);
  return labels;
}

// One case per list of words; the commands before the program, whose labels fit them too.
std::string bash_value_cases(std::span<const CommandEntry> table) {
  std::vector<std::pair<std::string, std::string>> cases;  // what to do, labels
  const auto add = [&cases](const CommandEntry& command) {
    for (const OptionEntry& option : command.options) {
      if (option.value.empty()) continue;
      std::string action = "return";
      if (!option.choices.empty()) action = fmt::format("words=\"{}\"", joined(option.choices));
      if (option.value == "KEY=VALUE") action += "; compopt -o nospace";
      const auto same =
          std::find_if(cases.begin(), cases.end(), [&](const auto& known) { return known.first == action; });
      if (same == cases.end())
        cases.emplace_back(action, bash_labels(command, option));
      else
        same->second += " | " + bash_labels(command, option);
    }
  };
  for (const CommandEntry& command : table.subspan(1)) add(command);
  add(table.front());
  std::string text;
  for (const auto& [action, labels] : cases) text += fmt::format("    {}) {} ;;\n", labels, action);
  return text;
}

// 'text' for fish.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

// When a fish line is inside exactly this command.
std::string fish_condition(const CommandEntry& command) {
  if (command.path.empty()) return "__fish_use_subcommand";
  std::string condition;
  std::string_view rest = command.path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    condition +=
        fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!command.commands.empty()) condition += "; and not __fish_seen_subcommand_from " + joined(command.commands);
  return condition;
}

std::string fish_option(const CommandEntry& command, const OptionEntry& option) {
  std::string line = "complete -c spillway";
  if (!command.path.empty()) line += " -n " + shell_quoted(fish_condition(command));
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) line += option.choices.empty() ? " -r" : " -x -a " + shell_quoted(joined(option.choices));
  return line + " -d " + shell_quoted(option.about) + "\n";
}

// Text inside '...' of zsh; brackets and colons end parts of a specification of _arguments.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return result;
}

// One specification of _arguments for each name; `*`: any option may be given again.
std::string zsh_option(const OptionEntry& option) {
  std::string value;
  if (option.value == "KEY=VALUE")
    value = fmt::format(":{}:{{compadd -S \"\" -- {}}}", option.value, joined(option.choices));
  else if (!option.choices.empty())
    value = fmt::format(":{}:({})", zsh_text(option.value), joined(option.choices));
  else if (!option.value.empty())
    value = fmt::format(":{}:_files", zsh_text(option.value));
  std::string line;
  for (const std::string& name : option.names) line += fmt::format(" '*{}[{}]{}'", name, zsh_text(option.about), value);
  return line;
}

}  // namespace

std::string bash_completion(std::span<const CommandEntry> table) {
  std::string words;
  for (const CommandEntry& command : table) {
    std::vector<std::string> all = command.commands;
    const std::vector<std::string> options = option_names(command), common = option_names(table.front());
    all.insert(all.end(), options.begin(), options.end());
    for (const std::string& name : common)
      if (name != "--version" && std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    words += fmt::format("    \"{}\") {}words=\"{}\" ;;\n", command.path,
                         command.commands.empty() ? "[[ $current == -* ]] && " : "", joined(all));
  }
  return fmt::format(R"(# bash completion of spillway
_spillway() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command="" words="" i
  COMPREPLY=()
  # bash makes a word of its own of the = in --option=value.
  if [[ $current == = ]]; then
    current=""
  elif [[ $previous == = && $COMP_CWORD -ge 2 ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command:${{COMP_WORDS[i]}}" in
      {}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command:$previous" in
{}  esac
  [[ -n $words ]] || case "$command" in
{}  esac
  [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _spillway spillway
)",
                     bash_command_cases(table), bash_value_cases(table), words);
}

std::string zsh_completion(std::span<const CommandEntry> table) {
  std::string cases;
  for (const CommandEntry& command : table) {
    std::string commands, options;
    for (const std::string& name : command.commands) {
      const std::string path = command.path.empty() ? name : command.path + " " + name;
      const auto below =
          std::find_if(table.begin(), table.end(), [&path](const CommandEntry& entry) { return entry.path == path; });
      commands += fmt::format(" '{}:{}'", name, zsh_text(below->about));
    }
    for (const OptionEntry& option : command.options) options += zsh_option(option);
    cases += fmt::format("    \"{}\") commands=({}) options+=({}) ;;\n", command.path, commands, options);
  }
  std::string common;
  for (const OptionEntry& option : table.front().options)
    if (option.names.back() != "--help" && option.names.back() != "--version") common += zsh_option(option);
  return fmt::format(R"(#compdef spillway
_spillway() {{
  local command="" i
  local -a commands options
  for ((i = 2; i < CURRENT; i++)); do
    case "$command:${{words[i]}}" in
      {}) command="${{command:+$command }}${{words[i]}}" ;;
    esac
  done
  [[ -z $command ]] || options=({})
  case "$command" in
{}  esac
  if (($#commands)) && [[ $PREFIX != -* ]]; then
    _describe command commands
  else
    _arguments $options '*:file:_files'
  fi
}}
_spillway "$@"
)",
                     bash_command_cases(table), common, cases);
}

std::string fish_completion(std::span<const CommandEntry> table) {
  std::string script = "# fish completion of spillway\n";
  for (const CommandEntry& command : table) {
    for (const std::string& name : command.commands) {
      const std::string path = command.path.empty() ? name : command.path + " " + name;
      const auto below =
          std::find_if(table.begin(), table.end(), [&path](const CommandEntry& entry) { return entry.path == path; });
      script += fmt::format("complete -c spillway -f -n {} -a {} -d {}\n", shell_quoted(fish_condition(command)), name,
                            shell_quoted(below->about));
    }
    for (const OptionEntry& option : command.options) script += fish_option(command, option);
  }
  return script;
}

}  // namespace spillway::cli
