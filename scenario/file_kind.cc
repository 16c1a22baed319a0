#include "scenario/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/byte_source.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "models/spec/model_spec.h"
#include "traces/formats/recording.h"

namespace spillway::scenario {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t look_ahead = 64U << 10U;

bool lies_in(const std::string& folder, const char* name) {
  std::error_code none;
  return fs::exists(fs::path(folder) / name, none);
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// The text that the first "schema" of a document has.
std::string_view first_schema(std::string_view head) {
  constexpr std::string_view key = "\"schema\"";
  const std::size_t at = head.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = without_blanks(head.substr(at + key.size()));
  if (!rest.starts_with(':')) return {};
  rest = without_blanks(rest.substr(1));
  if (!rest.starts_with('"')) return {};
  return rest.substr(1, rest.find('"', 1) - 1);
}

FileKind kind_of_schema(std::string_view schema) {
  constexpr std::array<std::pair<std::string_view, FileKind>, 10> ours = {
      {{"spillway-scenario", FileKind::scenario},
       {"spillway-sweep", FileKind::sweep},
       {"spillway-hardware-profile/", FileKind::profile},
       {"spillway-prices", FileKind::prices},
       {"spillway-plan", FileKind::plan},
       {"spillway-memory-plan", FileKind::plan},
       {"spillway-module-plan", FileKind::plan},
       {"spillway.model", FileKind::model},
       {"spillway.trace", FileKind::trace},
       {"spillway-operators", FileKind::trace}}};
  for (const auto& [mark, kind] : ours)
    if (schema == mark || (mark.ends_with('/') && schema.starts_with(mark))) return kind;
  return schema.starts_with("spillway") ? FileKind::result : FileKind::other;
}

FileKind kind_of_json(std::string_view head) {
  const auto holds = [head](std::string_view words) { return head.find(words) != std::string_view::npos; };
  if (const FileKind kind = kind_of_schema(first_schema(head)); kind != FileKind::other) return kind;
  if (holds("\"traceEvents\"") || holds("\"rocprofiler-sdk-tool\"") || holds("\"workload_graph\"") ||
      (holds("\"nodes\"") && holds("\"schema\"")))
    return FileKind::trace;
  if (holds("\"nbformat\"") || holds("\"cell_type\"")) return FileKind::notebook;
  if (holds("\"weight_map\"")) return FileKind::weights;
  const bool is_whole = head.size() < look_ahead;
  if (is_whole && (holds("\"model_type\"") || holds("\"architectures\""))) return FileKind::model;
  if (is_whole && holds("\"model\"") && holds("\"hardware\"")) return FileKind::scenario;  // that doesn't say so
  constexpr std::array<std::string_view, 8> of_launches = {
      "batch_size\"",           "\"zero_optimization\"", "\"bf16\"",        "\"fp16\"",
      "\"model_name_or_path\"", "_parallel_size\"",      "learning_rate\"", "\"num_layers\""};
  return is_whole && std::any_of(of_launches.begin(), of_launches.end(), holds) ? FileKind::launch : FileKind::other;
}

// A line of a shell script, YAML, TOML or Python as launches have them.
bool launches(std::string_view line) {
  line = without_blanks(line);
  if (line.empty() || line.front() == '#') return false;
  const bool is_section = line.size() > 2 && line[0] == '[' && std::isalpha(static_cast<unsigned char>(line[1])) != 0;
  if (is_section || line.starts_with("--") || line.find(" --") != std::string_view::npos ||
      line.starts_with("import ") || line.starts_with("from "))
    return true;
  const std::size_t end = line.find_first_of(":= ");
  if (end == 0 || end == std::string_view::npos) return false;
  const bool is_name = std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
  const std::string_view rest = without_blanks(line.substr(end));
  return is_name && (line[end] == ':' ? rest.size() == 1 || rest[1] == ' ' || rest[1] == '\r' : rest.starts_with('='));
}

bool is_launch(std::string_view text) {
  if (text.starts_with("#!")) return true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (launches(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  });
}

// Eight hexadecimal digits and an object a line.
bool is_store(std::string_view head) {
  return head.size() > 10 && head.find_first_not_of("0123456789abcdef") == 8 && head.substr(8, 2) == " {";
}

FileKind kind_of_bytes(std::string_view head) {
  if (without_blanks(head).empty()) return FileKind::empty;
  if (head.starts_with("GGUF") || head.starts_with("PK\x03\x04")) return FileKind::weights;
  if (head.size() > 9 && head.substr(8).starts_with("{\"") && !is_text(head.substr(0, 8))) return FileKind::weights;
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return FileKind::snapshot;
  if (head.starts_with("SQLite format 3")) return FileKind::trace;
  if (is_store(head)) return FileKind::sweep_store;
  if (!is_text(head)) return FileKind::other;
  const std::string_view text = without_blanks(head);
  // JSON with comments in front is a scenario's; a list may be a trace's.
  if (text.starts_with('{') || text.starts_with('[') || text.starts_with("//"))
    if (const FileKind kind = kind_of_json(head); kind != FileKind::other || !text.starts_with('[')) return kind;
  return is_launch(text) ? FileKind::launch : FileKind::other;
}

}  // namespace

FileKind file_kind(const std::string& path) {
  if (is_folder(path)) {
    if (lies_in(path, "config.json") || lies_in(path, "adapter_config.json")) return FileKind::model;
    if (traces::is_recording(path)) return FileKind::trace;
    return lies_in(path, "model.safetensors.index.json") ? FileKind::weights : FileKind::other;
  }
  ByteSource source = ByteSource::open(path, std::uint64_t{1} << 40U);
  const auto bytes = source.peek(look_ahead);
  return kind_of_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

FileKindWords words_of(FileKind kind, const std::string& path) {
  const std::string run = "spillway run ", there = fs::path(path).stem().string() + ".scenario.json";
  switch (kind) {
    case FileKind::scenario:
      return {"a scenario", run + path};
    case FileKind::sweep:
      return {"a sweep", "spillway sweep " + path};
    case FileKind::sweep_store:
      return {"a sweep's store", "spillway merge " + path};
    case FileKind::profile:
      return {"a hardware profile", "spillway fit MODEL --on " + path + ", or spillway profile show " + path};
    case FileKind::prices:
      return {"a price list", "spillway prices check " + path};
    case FileKind::plan:
      return {"a plan", "spillway run SCENARIO --set plan=" + path};
    case FileKind::model:
      return {"a model", "spillway fit " + path + " --on 8xh100"};
    case FileKind::result:
      return {"an answer", "give what it was asked of: the scenario"};
    case FileKind::snapshot:
      return {"a memory snapshot", "spillway explain " + path + ", or spillway memory " + path};
    case FileKind::trace:
      return {"a trace", run + path};
    case FileKind::launch:
      return {"a launch script or configuration",
              "spillway import " + path + " --output " + there + ", then " + run + there};
    case FileKind::notebook:
      return {"a notebook", "jupyter nbconvert --to script " + path + ", then spillway import of the script"};
    case FileKind::weights:
      return {"a file of weights", "give the folder that has their config.json: spillway fit FOLDER --on 8xh100"};
    case FileKind::empty:
      return {"empty", "see that what writes it has ended well, and give it again"};
    case FileKind::other:
      break;
  }
  return {"in no format that is known", "see spillway --help"};
}

InputError nothing_there(const std::string& word) {
  if (may_be_published(word)) {
    try {
      static_cast<void>(models::find_model(word));
    } catch (const InputError& error) {
      return error;
    }
  }
  if (names_file(word)) return {word, "", "can't be opened: No such file or directory", "check the path"};
  return {word, "", "no such file, model or scenario",
          suggest(word, models::bundled_models(),
                  "name a scenario, a model of `spillway list models`, or a Hugging Face config.json")};
}

}  // namespace spillway::scenario
