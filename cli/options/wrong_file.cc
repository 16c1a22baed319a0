#include "cli/options/wrong_file.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/floors.h"
#include "base/named_file.h"
#include "cli/options/command_options.h"
#include "models/spec/model_spec.h"
#include "scenario/file_kind.h"

namespace spillway::cli {
namespace {

struct Taken {
  std::string_view command, what;
  std::vector<FileKind> kinds;
};

// What commands take, each with those below it.
const std::vector<Taken>& taken_by_commands() {
  static const std::vector<FileKind> steps = {FileKind::scenario, FileKind::trace, FileKind::snapshot};
  static const std::vector<FileKind> traces = {FileKind::trace, FileKind::snapshot};
  static const std::vector<Taken> all = {
      {"run", "a scenario or a trace", steps},
      {"explain", "a scenario or a trace", steps},
      {"compare", "scenarios or traces", steps},
      {"techniques", "a scenario or a trace", steps},
      {"capacity", "a scenario", steps},
      {"plan offload", "a scenario or a trace", steps},
      {"plan recompute", "a scenario or a trace", steps},
      {"plan order", "a scenario or a trace", steps},
      {"export", "a scenario", {FileKind::scenario}},
      {"fit",
       "a scenario, a trace, a launch file or a model",
       {FileKind::scenario, FileKind::trace, FileKind::snapshot, FileKind::launch, FileKind::model}},
      {"new", "a model", {FileKind::model, FileKind::profile}},
      {"memory", "a memory snapshot or a trace", traces},
      {"trace", "a trace", traces},
      {"sweep", "a sweep", {FileKind::sweep, FileKind::sweep_store}},
      {"import", "a framework's launch script or configuration", {FileKind::launch}},
      {"profile", "a hardware profile", {FileKind::profile}},
  };
  return all;
}

// A model's name counts as a file of one.
FileKind kind_of_word(const std::string& word) {
  if (lies_at(word)) return file_kind(word);
  return names_model(word) ? FileKind::model : FileKind::other;
}

}  // namespace

std::optional<InputError> wrong_file(const Command& app, const InputError& said) {
  const std::vector<const Command*> path = app.chosen();
  std::string name;
  for (std::size_t level = 1; level < path.size(); ++level) name += (level > 1 ? " " : "") + path[level]->name();
  const auto taken = std::find_if(taken_by_commands().begin(), taken_by_commands().end(), [&](const Taken& each) {
    return name == each.command || name.starts_with(fmt::format("{} ", each.command));
  });
  if (taken == taken_by_commands().end()) return std::nullopt;
  for (const Option& option : path.back()->options()) {
    if (!option.is_argument() || option.is_written()) continue;
    for (const std::string& file : option.words()) {
      try {
        const FileKind kind = kind_of_word(file);
        const auto takes = [&taken](FileKind each) {
          return std::find(taken->kinds.begin(), taken->kinds.end(), each) != taken->kinds.end();
        };
        if (kind == FileKind::other && takes(FileKind::scenario) && said.file() == file && !lies_at(file))
          return nothing_there(file);
        if (kind == FileKind::other || takes(kind)) continue;
        const FileKindWords words = words_of(kind, file);
        return InputError(file, "", fmt::format("is {}; spillway {} takes {}", words.what, name, taken->what),
                          words.remedy);
      } catch (const InputError&) {
        continue;  // what the command said of it stands
      }
    }
  }
  return std::nullopt;
}

}  // namespace spillway::cli
