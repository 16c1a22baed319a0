#include "scenario/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/amount.h"
#include "base/byte_source.h"
#include "base/commented_document.h"
#include "base/field_reader.h"
#include "base/input_error.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "models/spec/pipeline_setup.h"
#include "scenario/file_kind.h"
#include "scenario/scenario_fields.h"
#include "scenario/scenario_setting.h"
#include "sim/engine/event_queue.h"

namespace spillway::scenario {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t largest_scenario = 16U << 20U;

// Files and names of files, seen from the scenario's folder.
class PathResolver final : public FieldVisitor {
 public:
  explicit PathResolver(const std::string& folder) : folder_(folder) {}
  void text(const FieldInfo& info, std::optional<std::string>& value) override {
    if (!value || value->empty() || info.path == FieldPath::none) return;
    if (info.path == FieldPath::name_or_file)
      value = name_seen_from(folder_, *value);
    else if (value->front() != '/')
      value = (std::filesystem::path(folder_) / *value).lexically_normal().string();
  }
  void word_or_file(const FieldInfo& /*info*/, std::optional<std::string>& value, const Words& /*words*/) override {
    if (value) value = name_seen_from(folder_, *value);
  }

 private:
  const std::string& folder_;
};

bool is_given(const FieldReader& reader, const std::string& key) {
  std::string place = "/" + key;
  std::replace(place.begin(), place.end(), '.', '/');
  return key != "model.name" && reader.gave(place);
}

class Loader {
 public:
  explicit Loader(const std::string& name) : name_(name) {}

  Scenario load(const Json& root, const std::string& folder) const {
    Scenario scenario;
    std::vector<FieldProblem> problems;
    FieldReader reader(root, problems);
    describe(scenario, reader);
    reader.finish();
    throw_first(problems, name_);
    scenario.allocator_named = reader.gave("/memory/allocator");
    std::erase_if(scenario.imported.open, [&](const std::string& key) { return is_given(reader, key); });
    PathResolver resolver(folder);
    describe(scenario, resolver);
    set_pipeline_offload(scenario, reader.gave("/offload/tier"));
    check(scenario);
    check_texts(scenario);
    return scenario;
  }

  // Texts with a form of their own.
  void check_texts(const Scenario& scenario) const {
    try {
      if (!scenario.reserve.empty()) static_cast<void>(parse_size_or_share(scenario.reserve));
    } catch (const InputError& error) {
      fail("/memory/reserve", error.cause(), error.remedy());
    }
    try {
      static_cast<void>(TieOrder::parse(scenario.tie_order));
    } catch (const InputError& error) {
      fail("/replay/tie_order", error.cause(), error.remedy());
    }
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
    throw InputError(name_, place, cause, remedy);
  }

  // A schedule that moves activations is a technique of its own.
  void set_pipeline_offload(Scenario& scenario, bool has_tier) const {
    if (!moves_activations(scenario.training.pipeline_schedule)) return;
    OffloadSettings& offload = scenario.offload;
    if (offload.moves())
      fail("/offload/technique", scenario.training.pipeline_schedule + " moves activations by itself",
           "leave it out, or take schedule po-uniform");
    if (has_tier && offload.tier != Tier::host)
      fail("/offload/tier", scenario.training.pipeline_schedule + " moves no activations to drives", "leave it out");
    offload.technique = moved_by_schedule;
    offload.tier = Tier::host;
  }

  void check(const Scenario& scenario) const {
    if (scenario.trace.empty() == scenario.model.empty())
      fail("/", scenario.trace.empty() ? "neither a trace nor a model" : "both a trace and a model",
           "name exactly one: \"trace\": FILE or \"model\": {\"name\": ...}");
    if (!scenario.model.empty() && scenario.hardware.empty())
      fail("/hardware/profile", "a model needs hardware to run on", "name one of `spillway profile list`");
    if (!scenario.execution_trace.empty() && scenario.trace.empty())
      fail("/execution_trace", "an execution trace joins a timed trace", "name that one as \"trace\"");
  }

  const std::string& name_;
};

Json parsed(const std::string& text, const std::string& name) {
  return parse_commented_document(text, name, "correct it there; scenarios are JSON, comments begin with //");
}

void apply_settings(Json& root, std::span<const std::string> settings) {
  if (root.is_object())
    for (const std::string& setting : settings) apply_setting(root, setting);
}

Scenario build(Json root, const std::string& name, const std::string& folder, std::span<const std::string> settings) {
  apply_settings(root, settings);
  return Loader(name).load(root, folder);
}

// A model, a machine or a sweep given where a scenario or a trace is wanted.
void refuse_other_documents(const std::string& path) {
  const FileKind kind = file_kind(path);
  if (kind == FileKind::scenario)
    throw InputError(
        path, "/schema", "reads like a scenario, but doesn't say so",
        "begin it with \"schema\": \"spillway-scenario\", \"version\": " + std::to_string(scenario_version));
  if (kind == FileKind::trace || kind == FileKind::snapshot || kind == FileKind::other) return;
  const FileKindWords words = words_of(kind, path);
  throw InputError(path, "", "is " + words.what + ", no scenario and no trace", words.remedy);
}

// A title is of the file; what was set on top of it stands behind, unless that is a title.
void tell_settings(std::span<const std::string> settings, std::string& title) {
  const auto is_title = [](const std::string& setting) { return setting.starts_with("title="); };
  if (settings.empty() || std::any_of(settings.begin(), settings.end(), is_title)) return;
  std::vector<std::string> whole;
  for (const std::string& setting : settings) {
    const std::size_t equals = std::min(setting.find('='), setting.size());
    whole.push_back(whole_key(setting.substr(0, equals)) + setting.substr(equals));
  }
  title += fmt::format(" with {}", fmt::join(whole, ", "));
}

}  // namespace

std::vector<std::string> scenario_keys() {
  std::vector<std::string> keys;
  for (const FieldRow& row : scenario_rows())
    if (!row.inside_list) keys.push_back(row.path);
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::string suggest_key(const std::string& key, const std::vector<std::string>& known, const std::string& otherwise) {
  for (const FieldRow& row : scenario_rows()) {
    const std::string before = row.path.substr(0, row.path.size() - row.info.key.size());
    if (!row.info.former.empty() && key == before + std::string(row.info.former))
      return "write '" + row.path + "' instead";
  }
  return suggest(key, known, otherwise);
}

Scenario parse_scenario(const std::string& text, const std::string& name, const std::string& folder,
                        std::span<const std::string> settings) {
  Scenario scenario = build(parsed(text, name), name, folder, settings);
  scenario.path = name;
  return scenario;
}

void check_setting(const std::string& setting) {
  Json root = Json::object();
  apply_setting(root, setting);
  const Json leaves = root.flatten();
  const std::string place = leaves.empty() ? "" : leaves.begin().key();
  Scenario scenario;
  std::vector<FieldProblem> problems;
  FieldReader reader(root, problems);
  describe(scenario, reader);
  const std::string key = setting.substr(0, setting.find('='));
  for (const FieldProblem& problem : problems)
    if (problem.place == place) throw InputError("", key, problem.cause, problem.remedy);
  Loader(key).check_texts(scenario);
}

Scenario load_scenario(const std::string& path, std::span<const std::string> settings) {
  const std::string text = read_file(path, largest_scenario);
  Scenario scenario = parse_scenario(text, path, std::filesystem::path(path).parent_path().string(), settings);
  if (scenario.title.empty()) scenario.title = std::filesystem::path(path).stem().string();
  tell_settings(settings, scenario.title);
  return scenario;
}

std::string scenario_text(const std::string& path, std::span<const std::string> settings) {
  Json root = parsed(read_file(path, largest_scenario), path);
  apply_settings(root, settings);
  return root.dump();
}

Scenario scenario_for_trace(const std::string& trace_path, std::span<const std::string> settings) {
  refuse_other_documents(trace_path);
  Json root = {{"schema", "spillway-scenario"}, {"version", scenario_version}};
  root["trace"] = std::filesystem::absolute(trace_path).string();
  Scenario scenario = build(root, trace_path, "", settings);
  scenario.trace = trace_path;
  if (scenario.title.empty()) scenario.title = file_title(trace_path);
  tell_settings(settings, scenario.title);
  return scenario;
}

bool is_scenario_file(const std::string& path) {
  if (is_folder(path)) return false;
  ByteSource source = ByteSource::open(path, largest_scenario);
  const auto head = source.peek(4096);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.find("\"spillway-scenario\"") != std::string_view::npos || path.ends_with(".scenario.json");
}

}  // namespace spillway::scenario
