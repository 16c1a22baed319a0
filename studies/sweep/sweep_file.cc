#include "studies/sweep/sweep_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/digest.h"
#include "base/input_error.h"
#include "base/json_error.h"
#include "base/json_fields.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "hwprofiles/price_list.h"
#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "scenario/scenario.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr int sweep_version = 1;
constexpr std::uint64_t largest_file = 16U << 20U;
constexpr std::size_t most_values = 100'000;  // of one axis
constexpr std::array<std::string_view, 16> root_keys = {
    "schema",    "version",    "title",   "note",   "base",          "axes",    "derived", "where",
    "constants", "objectives", "require", "margin", "memory_margin", "replays", "$schema", "procurement"};
constexpr std::array<std::string_view, 8> axis_keys = {"name", "key",  "values", "from",
                                                       "to",   "step", "times",  "options"};
constexpr std::array<std::string_view, 3> derived_keys = {"name", "key", "value"};
constexpr std::array<std::string_view, 2> rule_keys = {"is", "reason"};
constexpr std::array<std::string_view, 4> require_keys = {"fits", "step_time_seconds", "gpus", "life_years"};

class FileDigest {
 public:
  void add(std::string_view text) {
    hash_.add(text);
    hash_.add(0xffU);  // between texts
  }
  // Its content, and that of the files it names if it is JSON. Nothing where there is no such file.
  void add_file(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return;
    if (!seen_.insert(std::filesystem::weakly_canonical(path, error).string()).second) return;
    const std::string content = read_file_as_it_is(path.string());
    add(path.filename().string());
    add(content);
    if (path.extension() == ".json" && content.size() <= largest_file)
      add_named(Json::parse(content, nullptr, false), path.parent_path());
  }
  // Every file that one of the texts in it is the path of, seen from the folder.
  void add_named(const Json& json, const std::filesystem::path& folder) {
    if (json.is_structured())
      for (const Json& part : json) add_named(part, folder);
    if (json.is_string() && json.get_ref<const std::string&>().size() < 4096)
      add_file(folder / json.get<std::string>());
  }
  void add_folder(const std::string& folder) {
    std::error_code error;
    std::vector<std::filesystem::path> files;
    for (std::filesystem::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      if (at->path().extension() == ".json") files.push_back(at->path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) add_file(file);
  }
  [[nodiscard]] std::uint64_t value() const { return hash_.value(); }

 private:
  std::set<std::string> seen_;
  Fnv1a hash_;
};

// The sweep, every profile and model it may name, every file that one of its texts is the path of, and what these name.
std::uint64_t digest_of(const SweepFile& file, const Json& root) {
  FileDigest digest;
  digest.add(file.kind);
  for (const std::string& folder : ProfileLibrary::standard_directories()) digest.add_folder(folder);
  for (const std::string& folder : model_directories()) digest.add_folder(folder);
  digest.add_file(PriceList::bundled().path);
  digest.add_named(root, file.folder);
  return digest.value();
}

bool is_identifier(const std::string& name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

class Reader : private JsonFields {
 public:
  explicit Reader(std::string name) : JsonFields(std::move(name), "see docs/sweep.md") {}

  SweepFile read(const Json& root) {
    check_header(root);
    known(root, "", root_keys);
    SweepFile file;
    file.title = text(root, "", "title");
    file.base = base_of(root);
    if (root.contains("procurement")) file.procurement = root["procurement"].dump();
    if (root.contains("constants")) read_constants(root["constants"], file);
    if (!root.contains("axes") || !root["axes"].is_array() || root["axes"].empty())
      fail("/axes", "no axes", R"(list at least one: {"name": "t", "key": "model.tensor_parallel", "values": [1, 2]})");
    for (std::size_t i = 0; i < root["axes"].size(); ++i)
      file.axes.push_back(axis_of(root["axes"][i], "/axes/" + std::to_string(i)));
    if (root.contains("derived"))
      for (std::size_t i = 0; i < array(root, "derived").size(); ++i)
        file.derived.push_back(derived_of(root["derived"][i], "/derived/" + std::to_string(i)));
    if (root.contains("where"))
      for (std::size_t i = 0; i < array(root, "where").size(); ++i)
        file.rules.push_back(rule_of(root["where"][i], "/where/" + std::to_string(i)));
    if (root.contains("objectives")) read_objectives(array(root, "objectives"), file);
    if (root.contains("require")) read_require(root["require"], file);
    file.margin = number(root, "", "margin", file.margin, 0, 0.9);
    file.memory_margin = number(root, "", "memory_margin", file.memory_margin, 0, 0.9);
    const double replays = number(root, "", "replays", static_cast<double>(file.replays), 0, 1e9);
    if (replays != std::floor(replays)) fail("/replays", "expected a whole number", "write how many at most");
    file.replays = static_cast<std::int64_t>(replays);
    return file;
  }

 private:
  void check_header(const Json& root) const {
    if (!root.is_object() || text(root, "", "schema") != "spillway-sweep")
      fail("/schema", "not a sweep", R"(give it "schema": "spillway-sweep")");
    if (!root.contains("version") || !root["version"].is_number_integer() || root["version"] < 1 ||
        root["version"] > sweep_version)
      fail("/version", "expected version " + std::to_string(sweep_version), "write \"version\": 1");
  }

  [[nodiscard]] const Json& array(const Json& root, const std::string& key) const {
    if (!root[key].is_array()) fail("/" + key, "expected a list", "put it in [ ]");
    return root[key];
  }
  std::string new_name(const Json& object, const std::string& place) {
    const std::string name = text(object, place, "name");
    if (!is_identifier(name))
      fail(place + "/name", "'" + name + "' is no name", "use letters, digits and _, beginning with a letter");
    if (std::find(names_.begin(), names_.end(), name) != names_.end())
      fail(place + "/name", "two things are named '" + name + "'", "rename one");
    names_.push_back(name);
    return name;
  }
  // Each scenario key is set in one place.
  void claim(const std::string& key, const std::string& name, const std::string& place) {
    const auto [at, is_new] = owners_.emplace(key, name);
    if (!is_new && at->second != name)
      fail(place, "'" + at->second + "' sets " + key + " too", "leave it to one of them");
  }
  // Keys below hardware.set are the profile's own.
  std::string scenario_key(const std::string& key, const std::string& place) const {
    static const std::vector<std::string> keys = scenario_keys();
    if (key.rfind("hardware.set.", 0) == 0 || std::find(keys.begin(), keys.end(), key) != keys.end()) return key;
    const std::vector<std::string_view> all(keys.begin(), keys.end());
    fail(place, "no scenario has a key '" + key + "'", suggest(key, all));
  }

  std::string base_of(const Json& root) const {
    if (!root.contains("base") || !root["base"].is_object())
      fail("/base", "no base", "give the scenario that the axes change, without its schema and version");
    Json base = {{"schema", "spillway-scenario"}, {"version", scenario_version}};
    for (const auto& [key, value] : root["base"].items()) base[key] = value;
    return base.dump();
  }

  void read_constants(const Json& constants, SweepFile& file) {
    if (!constants.is_object()) fail("/constants", "expected an object", R"(write {"gpus": 512})");
    for (const auto& [key, value] : constants.items()) {
      if (!value.is_number()) fail("/constants/" + key, "expected a number", "constants are numbers");
      new_name(Json{{"name", key}}, "/constants/" + key);
      file.constants[key] = value.get<double>();
    }
  }

  SweepAxis axis_of(const Json& json, const std::string& place) {
    known(json, place, axis_keys);
    SweepAxis axis;
    axis.name = new_name(json, place);
    const std::string key = text(json, place, "key");
    const int ways = static_cast<int>(json.contains("values")) + static_cast<int>(json.contains("from")) +
                     static_cast<int>(json.contains("options"));
    if (ways != 1) fail(place, "an axis has either values, a range or options", "give exactly one of them");
    if (json.contains("options")) {
      add_options(json["options"], place + "/options", axis);
    } else {
      claim(scenario_key(key, place + "/key"), axis.name, place + "/key");
      json.contains("values") ? add_values(json["values"], key, place + "/values", axis)
                              : add_range(json, key, place, axis);
    }
    if (axis.options.empty()) fail(place, "the axis '" + axis.name + "' has no values", "give it at least one");
    std::set<std::string> labels;
    for (const SweepOption& option : axis.options)
      if (!labels.insert(option.label).second)
        fail(place, "the axis '" + axis.name + "' has the value " + option.label + " twice", "leave one out");
    return axis;
  }
  void add_values(const Json& values, const std::string& key, const std::string& place, SweepAxis& axis) const {
    if (!values.is_array() || values.size() > most_values)
      fail(place, "expected a list of at most 100,000 values", "put them in [ ]");
    for (const Json& value : values) {
      if (value.is_object() || value.is_array()) fail(place, "a value is a number or a text", "use options for more");
      const bool counts = value.is_number();
      axis.options.push_back({setting_text(value),
                              counts ? value.get<double>() : static_cast<double>(axis.options.size()),
                              {{key, setting_text(value)}}});
    }
  }
  void add_range(const Json& json, const std::string& key, const std::string& place, SweepAxis& axis) const {
    constexpr double most = 9e15;
    if (!json.contains("to") || json.contains("step") == json.contains("times"))
      fail(place, "a range has from, to, and either step or times", R"(write "from": 1, "to": 64, "times": 2)");
    const double from = number(json, place, "from", 0, -most, most), to = number(json, place, "to", 0, -most, most);
    const double step = number(json, place, "step", 0, 1e-12, most),
                 times = number(json, place, "times", 0, 1.0001, 1e9);
    if (json.contains("times") && from <= 0)
      fail(place + "/from", "a range that multiplies begins above 0", "use step");
    for (std::size_t i = 0; axis.options.size() <= most_values; ++i) {
      const double value =
          times > 0 ? from * std::pow(times, static_cast<double>(i)) : from + step * static_cast<double>(i);
      if (value > to * (1 + 1e-12)) return;
      const bool whole = value == std::floor(value);
      const std::string as_text = whole ? std::to_string(static_cast<std::int64_t>(value)) : Json(value).dump();
      axis.options.push_back({as_text, value, {{key, as_text}}});
    }
    fail(place, "more than 100,000 values", "take larger steps");
  }
  void add_options(const Json& options, const std::string& place, SweepAxis& axis) {
    if (!options.is_object())
      fail(place, "expected an object", R"(write {"keep": {}, "full": {"model.recompute": "full"}})");
    for (const auto& [label, settings] : options.items()) {
      if (!settings.is_object()) fail(place + "/" + label, "expected an object of settings", "{} changes nothing");
      SweepOption option{label, static_cast<double>(axis.options.size()), {}};
      for (const auto& [key, value] : settings.items()) {
        const std::string at = place + "/" + label + "/" + key;
        claim(scenario_key(key, at), axis.name, at);
        option.settings.emplace_back(key, setting_text(value));
      }
      axis.options.push_back(std::move(option));
    }
  }

  SweepDerived derived_of(const Json& json, const std::string& place) {
    known(json, place, derived_keys);
    SweepDerived derived;
    derived.name = new_name(json, place);
    if (json.contains("key")) {
      derived.key = scenario_key(text(json, place, "key"), place + "/key");
      claim(derived.key, derived.name, place + "/key");
    }
    derived.expression = json.contains("value") ? setting_text(json["value"]) : "";
    if (derived.expression.empty()) fail(place + "/value", "no value", R"x(write "value": "512 / (t * p)")x");
    return derived;
  }
  SweepRule rule_of(const Json& json, const std::string& place) const {
    if (json.is_string()) return {json.get<std::string>(), json.get<std::string>()};
    known(json, place, rule_keys);
    const std::string is = text(json, place, "is"), reason = text(json, place, "reason");
    if (is.empty()) fail(place, "no condition", R"(write "t <= 8" or {"is": "t <= 8", "reason": "one machine"})");
    return {is, reason.empty() ? is : reason};
  }

  void read_objectives(const Json& list, SweepFile& file) const {
    file.objectives.clear();
    std::string names;
    for (const SweepObjective objective : sweep_objectives)
      names += (names.empty() ? "" : ", ") + std::string(to_string(objective));
    for (const Json& wanted : list) {
      const auto found = std::find_if(sweep_objectives.begin(), sweep_objectives.end(), [&](SweepObjective objective) {
        return wanted.is_string() && to_string(objective) == wanted.get<std::string>();
      });
      if (found == sweep_objectives.end())
        fail("/objectives", "no objective " + wanted.dump(), "take some of " + names);
      file.objectives.push_back(*found);
    }
    if (file.objectives.empty()) fail("/objectives", "no objective", "take some of " + names);
  }
  void read_require(const Json& require, SweepFile& file) const {
    known(require, "/require", require_keys);
    if (require.contains("fits")) {
      if (!require["fits"].is_boolean()) fail("/require/fits", "expected true or false", "write it without quotes");
      file.must_fit = require["fits"].get<bool>();
    }
    constexpr double most = 1e12;
    if (require.contains("step_time_seconds"))
      file.most_step_seconds = number(require, "/require", "step_time_seconds", 0, 0, most);
    if (require.contains("gpus")) file.most_gpus = number(require, "/require", "gpus", 0, 1, most);
    if (require.contains("life_years")) file.least_life_years = number(require, "/require", "life_years", 0, 0, most);
  }

  std::vector<std::string> names_;
  std::map<std::string, std::string> owners_;  // of scenario keys: axes and derived values
};

}  // namespace

std::string_view to_string(SweepObjective objective) {
  switch (objective) {
    case SweepObjective::step_time:
      return "step_time";
    case SweepObjective::peak_memory:
      return "peak_memory";
    case SweepObjective::gpus:
      return "gpus";
    case SweepObjective::gpu_time_per_token:
      return "gpu_time_per_token";
    case SweepObjective::cost_per_token:
      return "cost_per_token";
    case SweepObjective::energy_per_token:
      return "energy_per_token";
    case SweepObjective::ssd_life:
      return "ssd_life";
  }
  return "";
}

std::int64_t SweepFile::points() const {
  std::int64_t count = 1;
  for (const SweepAxis& axis : axes)
    if (__builtin_mul_overflow(count, static_cast<std::int64_t>(axis.options.size()), &count) ||
        count > (std::int64_t{1} << 62))
      throw InputError(path, "/axes", "more than 2^62 points", "take fewer values");
  return count;
}

SweepFile parse_sweep(const std::string& text, const std::string& name, const std::string& folder) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw json_error(name, error, "correct it there; sweeps are JSON without comments");
  }
  SweepFile file = Reader(name).read(root);
  file.path = name;
  file.folder = folder;
  // Without what changes no record, so that a store serves the same sweep with more replays.
  Json kept = root;
  for (const char* key : {"$schema", "title", "note", "replays"}) kept.erase(key);
  file.text = root.dump();
  file.kind = kept.dump();
  file.digest = digest_of(file, root);
  static_cast<void>(file.points());
  return file;
}

SweepFile load_sweep(const std::string& path) {
  const std::string text = read_file(path, largest_file);
  return parse_sweep(text, path, std::filesystem::path(path).parent_path().string());
}

}  // namespace spillway::studies
