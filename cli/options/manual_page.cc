#include "cli/options/manual_page.h"

#include <fmt/format.h>

#include "base/markdown_text.h"

namespace spillway::cli {
namespace {

// Text as it stands: no escape, no request at the beginning of a line, dashes that can be copied.
std::string plain(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (escaped.empty() && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  return escaped;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

std::string usage(const CommandEntry& command) {
  std::string line = bold("spillway " + command.path);
  if (!command.commands.empty()) line += " " + italic("COMMAND");
  for (const OptionEntry& argument : command.arguments)
    line += argument.required ? " " + italic(argument.names.front()) : " [" + italic(argument.names.front()) + "]";
  if (command.options.size() > 1) line += " [" + italic("OPTION") + "]...";  // more than --help
  return line;
}

std::string described(const OptionEntry& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty()) names += " " + italic(option.value);
  return fmt::format(".TP\n{}\n{}\n", names, plain(option.about));
}

std::string section_of(const CommandEntry& command) {
  std::string text = fmt::format(".SS {}\n{}.\n", usage(command), plain(command.about));
  for (const OptionEntry& argument : command.arguments)
    text += fmt::format(".TP\n{}\n{}\n", italic(argument.names.front()), plain(argument.about));
  for (const OptionEntry& option : command.options)
    if (option.names.back() != "--help") text += described(option);
  if (!command.examples.empty()) {
    text += ".PP\nExamples:\n.nf\n";
    for (const std::string& example : command.examples) text += "  " + plain(example) + "\n";
    text += ".fi\n";
  }
  if (!command.page.empty()) text += fmt::format(".PP\nMore: {}\n", plain(command.page));
  return text;
}

// What is inside lists has no key that --set could name.
std::string section_of(std::span<const FieldRow> keys) {
  std::string text = ".SH SCENARIO KEYS\nOf a scenario\\(aqs file; " + bold("--set") + " " + italic("KEY=VALUE") +
                     " sets one for a run.\n";
  for (const FieldRow& row : keys) {
    if (row.kind == FieldKind::group || row.inside_list) continue;
    const std::string otherwise = row.otherwise.empty() ? "" : "; " + row.otherwise + " where nobody says";
    std::string about(row.info.about);
    if (row.words != nullptr)
      for (const Word& word : *row.words)
        if (!word.about.empty()) about += fmt::format("{}{}: {}.", about.empty() ? "" : " ", word.name, word.about);
    text += fmt::format(".TP\n{} ({}{})\n{}\n", bold(row.path), plain(row.takes()), plain(otherwise),
                        about.empty() ? "\\&" : plain(about));
  }
  return text;
}

// A bar ends a cell also inside code.
std::string markdown_row(const std::string& name, const std::string& about) {
  std::string cell;
  for (const char c : name) cell += c == '|' ? "\\|" : std::string(1, c);
  return fmt::format("| `{}` | {} |\n", cell, markdown_text(about));
}

std::string markdown_of(const CommandEntry& command) {
  std::string usage = "spillway " + command.path;
  if (!command.commands.empty()) usage += " COMMAND";
  for (const OptionEntry& argument : command.arguments)
    usage += argument.required ? " " + argument.names.front() : " [" + argument.names.front() + "]";
  if (command.options.size() > 1) usage += " [OPTION]...";
  std::string text = fmt::format("\n## spillway {}\n\n{}.\n\n```text\n{}\n```\n", command.path, command.about, usage);
  if (!command.examples.empty())
    text += fmt::format("\nExamples:\n\n```text\n{}\n```\n", fmt::join(command.examples, "\n"));
  std::string rows;
  for (const auto* list : {&command.arguments, &command.options})
    for (const OptionEntry& option : *list) {
      if (option.names.back() == "--help") continue;
      std::string names = fmt::format("{}", fmt::join(option.names, ", "));
      if (!option.value.empty()) names += " " + option.value;
      rows += markdown_row(names, option.about);
    }
  if (constexpr std::string_view folder = "docs/"; command.page.starts_with(folder))
    text += fmt::format("\nMore: [{0}](../{0}).\n", command.page.substr(folder.size()));
  return rows.empty() ? text : text + "\n| name | what it does |\n|---|---|\n" + rows;
}

std::string title(std::string_view name, std::string_view version) {
  return fmt::format(".TH {} 1 \"\" \"spillway {}\" \"User Commands\"\n", name, plain(version));
}

constexpr std::string_view closing = R"(.SH EXIT STATUS
.TP
0
done
.TP
1
done, and the answer is no: it does not fit, it is out of tolerance
.TP
2
bad usage or bad input; the message says file, place, cause and remedy
.TP
3
a fault of spillway
.TP
4
done, and the answer is not known: a record of memory is damaged, or a search ended early
.TP
130
interrupted: Ctrl-C, a request to end (SIGTERM) or a hang-up
.TP
141
the reader of standard output closed the pipe
.SH ENVIRONMENT
.TP
\fBSPILLWAY_PROFILE_PATH\fR
folders with hardware profiles, separated by colons, searched before the bundled ones
.TP
\fBSPILLWAY_DATA\fR
folder with the bundled profiles (\fIhwprofiles\fR) and models (\fImodels\fR) instead of the installed ones
.TP
\fBNO_COLOR\fR
no colours in messages
)";

}  // namespace

std::string manual_page(std::span<const CommandEntry> table, std::span<const FieldRow> keys, std::string_view version) {
  const CommandEntry& program = table.front();
  std::string page = title("SPILLWAY", version);
  page += ".SH NAME\nspillway \\- simulate training steps on machines with too little memory\n.SH SYNOPSIS\n";
  for (const CommandEntry& command : table.subspan(1))
    if (command.commands.empty()) page += usage(command) + "\n.br\n";
  page += fmt::format(".SH DESCRIPTION\n{}\n", plain(program.about));
  page += "Results go to standard output, everything else to standard error.\n.SH OPTIONS\nFor every command:\n";
  for (const OptionEntry& option : program.options) page += described(option);
  page += ".SH COMMANDS\n";
  for (const CommandEntry& command : table.subspan(1)) page += section_of(command);
  return page + section_of(keys) + std::string(closing);
}

std::string manual_page(std::span<const CommandEntry> table, std::string_view command, std::string_view version) {
  std::string page;
  for (const CommandEntry& entry : table) {
    if (entry.path != command && !entry.path.starts_with(std::string(command) + " ")) continue;
    if (page.empty())
      page = title(fmt::format("spillway\\-{}", command), version) +
             fmt::format(".SH NAME\nspillway\\-{} \\- {}\n.SH COMMANDS\n", command, plain(entry.about));
    page += section_of(entry);
  }
  if (page.empty()) return page;
  return page + std::string(closing) + ".SH SEE ALSO\n\\fBspillway\\fR(1)\n";
}

std::string manual_markdown(std::span<const CommandEntry> table) {
  std::string text = "## Options of every command\n\n| name | what it does |\n|---|---|\n";
  for (const OptionEntry& option : table.front().options) {
    const std::string value = option.value.empty() ? "" : " " + option.value;
    text += markdown_row(fmt::format("{}{}", fmt::join(option.names, ", "), value), option.about);
  }
  for (const CommandEntry& command : table.subspan(1)) text += markdown_of(command);
  return text;
}

}  // namespace spillway::cli
