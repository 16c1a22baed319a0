#include "validation/published/case_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/data_folder.h"
#include "base/field_reader.h"
#include "base/field_rows.h"
#include "base/field_setter.h"
#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "validation/published/case_fields.h"

namespace spillway::validation {
namespace {

constexpr std::uint64_t largest_file = 64U << 20U;
constexpr std::string_view description = "docs/schemas/cases.schema.json";
bool is_setting(const std::string& key) {
  for (const std::string_view part : {"model.", "hardware.", "what_if.", "memory.", "offload.", "replay."})
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

// What a document means.
class CaseReader {
 public:
  CaseReader(const CasesDocument& document, CaseFile& out)
      : document_(document), file_(out.path), folder_(std::filesystem::path(file_).parent_path().string()), out_(out) {}

  void read() {
    out_.title = document_.title;
    out_.tolerance = document_.tolerance;
    read_models();
    check_keys(document_.common, "/common");
    read_rows();
    for (std::size_t i = 0; i < document_.cases.size(); ++i) {
      const std::string place = "/cases/" + std::to_string(i);
      check_keys(document_.cases[i], place);
      add(document_.cases[i], place);
    }
    read_held();
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
    throw InputError(file_, place, cause, remedy);
  }

  void read_held() {
    for (std::size_t i = 0; i < document_.held_to.size(); ++i) {
      const std::string place = "/held_to/" + std::to_string(i);
      const HeldDocument& held = document_.held_to[i];
      HeldGroup group{.source = held.source, .tolerance = held.tolerance};
      const auto found = std::find_if(out_.cases.begin(), out_.cases.end(), [&](const Case& one) {
        return one.skip.empty() && one.role == "validation" && one.source == group.source &&
               to_string(one.metric) == held.metric;
      });
      if (found == out_.cases.end())
        fail(place, "no validation case is of '" + group.source + "' and '" + held.metric + "'", "give those of some");
      group.metric = found->metric;
      if (!is_wider(group.tolerance, out_.tolerance))
        fail(place, "no wider than what \"tolerance\" asks", "leave out what is reached");
      out_.held_to.push_back(std::move(group));
    }
  }

  void read_models() {
    for (const auto& [name, text] : document_.models) {
      ModelSpec spec = parse_model(text, file_ + " /models/" + name);
      spec.name = name;
      out_.models.emplace(name, std::move(spec));
    }
  }

  void check_keys(const CaseDocument& one, const std::string& place) const {
    for (const auto& [key, value] : one.settings) check_key(key, place);
  }
  void check_key(const std::string& key, const std::string& place) const {
    if (is_setting(key) || key.starts_with(projection_prefix)) return;
    std::vector<std::string> known;
    for (const FieldRow& row : rows_of<CaseDocument>()) known.push_back(row.path);
    for (const std::string& setting : projection_keys()) known.push_back(setting);
    for (const std::string& setting : scenario_keys())
      if (is_setting(setting)) known.push_back(setting);
    fail(place, "unknown key '" + key + "'", suggest(key, known, "see " + std::string(description)));
  }

  void read_rows() {
    const std::vector<std::string>& columns = document_.columns;
    if (columns.empty() != document_.rows.empty())
      fail("/rows", "\"columns\" and \"rows\" go together", "give both or neither");
    for (std::size_t i = 0; i < document_.rows.size(); ++i) {
      const std::string place = "/rows/" + std::to_string(i);
      const std::vector<Scalar>& row = document_.rows[i];
      if (row.size() != columns.size())
        fail(place, "not " + std::to_string(columns.size()) + " values", "give one for each of \"columns\", or null");
      CaseDocument one = document_.common;
      for (std::size_t k = 0; k < columns.size(); ++k)
        if (!row[k].is_null) set(one, columns[k], row[k], place);
      if (i == 0) check_keys(one, "/columns");
      add(one, place);
    }
  }
  void set(CaseDocument& one, const std::string& key, const Scalar& value, const std::string& place) const {
    FieldSetter setter(key, value.text);
    try {
      describe(one, setter);
    } catch (const InputError& error) {
      fail(place + "/" + key, error.cause(), error.remedy());
    }
    if (!setter.found()) one.settings.emplace_back(key, value);
  }

  void add(const CaseDocument& own, std::string place) {
    Case one;
    one.id = need(own.id, "id", place);
    if (!ids_.insert(one.id).second) fail(place + "/id", "'" + one.id + "' occurs twice", "give each case its own");
    place = place + " (" + one.id + ")";
    one.source = need(own.source, "source", place);
    one.confidence = own.confidence;
    one.note = own.note;
    one.skip = own.skip;
    one.role = own.role;
    if (one.skip.empty() || own.value) read_figure(own, one, place);
    if (one.skip.empty()) read_setup(own, one, place);
    out_.cases.push_back(std::move(one));
  }

  void read_figure(const CaseDocument& own, Case& one, const std::string& place) const {
    one.unit = need(own.unit, "unit", place);
    one.metric = metric_of(need(own.metric, "metric", place));
    const std::vector<std::string_view> units = units_of(one.metric);
    if (std::find(units.begin(), units.end(), one.unit) == units.end())
      fail(place, "'" + one.unit + "' is no unit of " + own.metric, suggest(one.unit, units));
    one.measured = own.value.value_or(0);
    one.stage = own.stage;
    const std::array staged = {Metric::peak_allocated, Metric::peak_reserved, Metric::memory_efficiency};
    if (one.stage && std::find(staged.begin(), staged.end(), one.metric) == staged.end())
      fail(place + "/stage", "not of " + own.metric, "leave it out");
    if (!std::isfinite(one.measured) || one.measured <= 0) fail(place, "no positive \"value\"", "give the figure");
    one.measured_to = own.value_to.value_or(one.measured);
    if (one.measured_to < one.measured) fail(place, "\"value_to\" is below \"value\"", "give the lower end first");
  }

  using Settings = std::map<std::string, std::string>;  // by key

  // True when the case is one of a closed form.
  bool read_projection(const Settings& settings, Case& one, const std::string& place) const {
    for (const auto& [key, text] : settings) {
      if (!key.starts_with(projection_prefix)) continue;
      if (!one.projection) one.projection.emplace();
      one.setup += key + "=" + text + ";";
      try {
        set_projection(*one.projection, key, text);
      } catch (const InputError& error) {
        fail(place + "/" + key, error.cause(), error.remedy());
      }
    }
    return one.projection.has_value();
  }

  void read_setup(const CaseDocument& own, Case& one, const std::string& place) const {
    Settings settings;
    for (const auto& [key, value] : own.settings)
      if (!value.is_null) settings[key] = value.text;
    if (read_projection(settings, one, place)) {
      for (const auto& [key, text] : settings)
        if (is_setting(key)) fail(place + "/" + key, "a scenario's key beside projection.*", "leave one kind out");
      return;
    }
    for (const auto& [key, text] : settings) {
      one.settings.push_back(key + "=" + text);
      one.setup += one.settings.back() + ";";
    }
    one.scenario = scenario_of(one.settings, place);
    one.scenario.title = one.id;
    if (has_against(one.metric) != !own.against.empty())
      fail(place + "/against", has_against(one.metric) ? "nothing to compare with" : "not of " + own.metric,
           has_against(one.metric) ? "give settings" : "leave it out");
    if (own.against.empty()) return;
    std::vector<std::string> all = one.settings;
    for (const std::string& setting : own.against) {
      all.push_back(setting);
      one.setup += "against " + setting + ";";
    }
    one.against = scenario_of(all, place + "/against");
  }

  [[nodiscard]] Scenario scenario_of(const std::vector<std::string>& settings, const std::string& place) const {
    try {
      return parse_scenario(R"({"schema": "spillway-scenario", "version": 1})", file_ + " " + place, folder_, settings);
    } catch (const InputError& error) {
      fail(place + error.place(), error.cause(), error.remedy());
    }
  }

  [[nodiscard]] std::string need(const std::string& value, const char* key, const std::string& place) const {
    if (value.empty()) fail(place, "no \"" + std::string(key) + "\"", "give it here or in \"common\"");
    return value;
  }

  const CasesDocument& document_;
  const std::string& file_;
  std::string folder_;
  CaseFile& out_;
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
  CasesDocument document;
  read_document(json_text, file, [&](FieldVisitor& visitor) { describe(document, visitor); });
  CaseReader(document, cases).read();
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
