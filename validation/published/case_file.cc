#include "validation/published/case_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/data_folder.h"
#include "base/input_error.h"
#include "base/json_object.h"
#include "base/nearest_name.h"
#include "base/read_file.h"

namespace spillway::validation {
namespace {

using Json = nlohmann::json;
constexpr std::uint64_t largest_file = 64U << 20U;
constexpr std::string_view description = "docs/schemas/cases.schema.json";
constexpr std::array<std::string_view, 9> fields = {"id",         "source", "metric", "value", "unit",
                                                    "confidence", "role",   "note",   "skip"};

bool is_setting(const std::string& key) {
  for (const std::string_view part : {"model.", "hardware.", "what_if.", "memory.", "replay."})
    if (key.starts_with(part)) return true;
  return key == "trace" || key == "execution_trace";
}

// In everything it states, of which there is something.
bool is_wider(const Tolerance& held, const Tolerance& asked) {
  const bool median = !held.median || (asked.median && *held.median > *asked.median);
  const bool p90 = !held.p90 || (asked.p90 && *held.p90 > *asked.p90);
  const bool kendall = !held.kendall || (asked.kendall && *held.kendall < *asked.kendall);
  return !held.states_nothing() && median && p90 && kendall;
}

class CaseReader {
 public:
  CaseReader(std::string file, CaseFile& out)
      : file_(std::move(file)), folder_(std::filesystem::path(file_).parent_path().string()), out_(out) {}

  void read(const Json& root) {
    JsonObject top(root, file_, "", std::string(description));
    if (top.text("schema") != "spillway-cases") top.fail("schema", "no file of cases", "it must be \"spillway-cases\"");
    top.integer("version", 1, 1);
    if (const Json* title = top.take("title")) out_.title = as_text(*title, "/title");
    top.take("note");
    if (const Json* tolerance = top.take("tolerance")) read_tolerance(*tolerance);
    if (const Json* models = top.take("models")) read_models(*models);
    if (const Json* common = top.take("common")) common_ = checked(*common, "/common");
    const Json* columns = top.take("columns");
    const Json* rows = top.take("rows");
    if ((columns == nullptr) != (rows == nullptr))
      top.fail("rows", "\"columns\" and \"rows\" go together", "give both or neither");
    if (rows != nullptr) read_rows(*columns, *rows);
    if (const Json* cases = top.take("cases")) read_cases(*cases);
    if (const Json* held = top.take("held_to")) read_held(*held);
    top.finish();
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
    throw InputError(file_, place, cause, remedy);
  }
  [[nodiscard]] std::string as_text(const Json& value, const std::string& place) const {
    if (!value.is_string()) fail(place, "expected a text", "put it in quotes");
    return value.get<std::string>();
  }

  // Takes the three keys.
  static Tolerance tolerance_of(JsonObject& object) {
    const auto read = [&object](const char* key) {
      const double value = object.number_or(key, 0, 1000, -1);
      return value >= 0 ? std::optional(value) : std::nullopt;
    };
    return {.median = read("median"), .p90 = read("p90"), .kendall = read("kendall")};
  }

  void read_tolerance(const Json& json) {
    JsonObject object(json, file_, "/tolerance", std::string(description));
    out_.tolerance = tolerance_of(object);
    object.finish();
  }

  void read_held(const Json& groups) {
    if (!groups.is_array()) fail("/held_to", "expected an array", "see " + std::string(description));
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string place = "/held_to/" + std::to_string(i);
      JsonObject object(groups[i], file_, place, std::string(description));
      HeldGroup group;
      group.source = object.text("source");
      const std::string metric = object.text("metric");
      group.tolerance = tolerance_of(object);
      object.finish();
      const auto found = std::find_if(out_.cases.begin(), out_.cases.end(), [&](const Case& one) {
        return one.skip.empty() && one.role == "validation" && one.source == group.source &&
               to_string(one.metric) == metric;
      });
      if (found == out_.cases.end())
        fail(place, "no validation case is of '" + group.source + "' and '" + metric + "'", "give those of some");
      group.metric = found->metric;
      if (!is_wider(group.tolerance, out_.tolerance))
        fail(place, "no wider than what \"tolerance\" asks", "leave out what is reached");
      out_.held_to.push_back(std::move(group));
    }
  }

  void read_models(const Json& models) {
    if (!models.is_object()) fail("/models", "expected an object", "write {\"NAME\": { a model }}");
    for (const auto& [name, model] : models.items()) {
      ModelSpec spec = parse_model(model.dump(), file_ + " /models/" + name);
      spec.name = name;
      out_.models.emplace(name, std::move(spec));
    }
  }

  [[nodiscard]] Json checked(const Json& keys, const std::string& place) const {
    if (!keys.is_object()) fail(place, "expected an object", "see " + std::string(description));
    for (const auto& [key, value] : keys.items()) check_key(key, place);
    return keys;
  }
  void check_key(const std::string& key, const std::string& place) const {
    if (is_setting(key) || key.starts_with(projection_prefix) ||
        std::find(fields.begin(), fields.end(), key) != fields.end())
      return;
    std::vector<std::string> known(fields.begin(), fields.end());
    for (const std::string& setting : projection_keys()) known.push_back(setting);
    for (const std::string& setting : scenario_keys())
      if (is_setting(setting)) known.push_back(setting);
    fail(place, "unknown key '" + key + "'", suggest(key, known, "see " + std::string(description)));
  }

  void read_rows(const Json& columns, const Json& rows) {
    if (!columns.is_array() || !rows.is_array()) fail("/rows", "expected arrays", "see " + std::string(description));
    std::vector<std::string> keys;
    for (const Json& column : columns) {
      keys.push_back(as_text(column, "/columns"));
      check_key(keys.back(), "/columns");
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string place = "/rows/" + std::to_string(i);
      if (!rows[i].is_array() || rows[i].size() != keys.size())
        fail(place, "not " + std::to_string(keys.size()) + " values", "give one for each of \"columns\", or null");
      Json one = Json::object();
      for (std::size_t k = 0; k < keys.size(); ++k) one[keys[k]] = rows[i][k];
      add(one, place);
    }
  }

  void read_cases(const Json& cases) {
    if (!cases.is_array()) fail("/cases", "expected an array", "see " + std::string(description));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string place = "/cases/" + std::to_string(i);
      add(checked(cases[i], place), place);
    }
  }

  void add(const Json& own, std::string place) {
    Json all = common_;
    for (const auto& [key, value] : own.items())
      if (!value.is_null()) all[key] = value;
    Case one;
    one.id = need(all, "id", place);
    if (!ids_.insert(one.id).second) fail(place + "/id", "'" + one.id + "' occurs twice", "give each case its own");
    place = place + " (" + one.id + ")";
    one.source = need(all, "source", place);
    one.confidence = text_or(all, "confidence", "", place);
    one.note = text_or(all, "note", "", place);
    one.skip = text_or(all, "skip", "", place);
    one.role = text_or(all, "role", "validation", place);
    if (one.role != "validation" && one.role != "fit")
      fail(place, "no role is called '" + one.role + "'", "validation or fit");
    if (one.skip.empty() || all.contains("value")) read_figure(all, one, place);
    if (one.skip.empty()) read_setup(all, one, place);
    out_.cases.push_back(std::move(one));
  }

  void read_figure(const Json& all, Case& one, const std::string& place) const {
    const std::string unit = need(all, "unit", place), metric = need(all, "metric", place);
    try {
      one.metric = metric_of(metric);
    } catch (const InputError& error) {
      fail(place, "no metric is called '" + metric + "'", error.remedy());
    }
    const std::vector<std::string_view> units = units_of(one.metric);
    if (std::find(units.begin(), units.end(), unit) == units.end())
      fail(place, "'" + unit + "' is no unit of " + metric, suggest(unit, units));
    one.unit = unit;
    const bool is_number = all.contains("value") && all["value"].is_number();
    one.measured = is_number ? all["value"].get<double>() : 0;
    if (!std::isfinite(one.measured) || one.measured <= 0) fail(place, "no positive \"value\"", "give the figure");
  }

  // True when the case is one of a closed form.
  bool read_projection(const Json& all, Case& one, const std::string& place) const {
    for (const auto& [key, value] : all.items()) {
      if (!key.starts_with(projection_prefix)) continue;
      if (!one.projection) one.projection.emplace();
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      one.setup += key + "=" + text + ";";
      try {
        set_projection(*one.projection, key, text);
      } catch (const InputError& error) {
        fail(place + "/" + key, error.cause(), error.remedy());
      }
    }
    return one.projection.has_value();
  }

  void read_setup(const Json& all, Case& one, const std::string& place) const {
    std::vector<std::string>& settings = one.settings;
    if (read_projection(all, one, place)) {
      for (const auto& [key, value] : all.items())
        if (is_setting(key)) fail(place + "/" + key, "a scenario's key beside projection.*", "leave one kind out");
      return;
    }
    for (const auto& [key, value] : all.items())
      if (is_setting(key))
        settings.push_back(key + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
    for (const std::string& setting : settings) one.setup += setting + ";";
    try {
      one.scenario =
          parse_scenario(R"({"schema": "spillway-scenario", "version": 1})", file_ + " " + place, folder_, settings);
    } catch (const InputError& error) {
      fail(place + error.place(), error.cause(), error.remedy());
    }
    one.scenario.title = one.id;
  }

  [[nodiscard]] std::string text_or(const Json& all, const char* key, const char* fallback,
                                    const std::string& place) const {
    return all.contains(key) ? as_text(all[key], place + "/" + key) : fallback;
  }
  [[nodiscard]] std::string need(const Json& all, const char* key, const std::string& place) const {
    const std::string value = text_or(all, key, "", place);
    if (value.empty()) fail(place, "no \"" + std::string(key) + "\"", "give it here or in \"common\"");
    return value;
  }

  std::string file_, folder_;
  CaseFile& out_;
  Json common_ = Json::object();
  std::set<std::string> ids_;
};

}  // namespace

Tolerance Tolerance::but_for(const Tolerance& other) const {
  return {.median = other.median ? other.median : median,
          .p90 = other.p90 ? other.p90 : p90,
          .kendall = other.kendall ? other.kendall : kendall};
}

CaseFile parse_cases(std::string_view json_text, const std::string& file) {
  CaseFile cases;
  cases.path = file;
  CaseReader(file, cases).read(parse_json(json_text, file));
  return cases;
}

CaseFile load_cases(const std::string& path) { return parse_cases(read_file(path, largest_file), path); }

std::vector<std::string> published_case_files() {
  const std::vector<std::string> folders = data_places("validation", "validation/published");
  for (const std::string& folder : folders)
    if (std::vector<std::string> files = json_files_in(folder); !files.empty()) return files;
  throw InputError(folders.back(), "", "no case files", "install spillway's data, or set SPILLWAY_DATA");
}

}  // namespace spillway::validation
