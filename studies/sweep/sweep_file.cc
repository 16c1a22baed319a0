#include "studies/sweep/sweep_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/digest.h"
#include "base/field_reader.h"
#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "base/text_budget.h"
#include "hwprofiles/price_list.h"
#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t largest_file = 16U << 20U;
constexpr std::size_t most_values = 100'000;  // of one axis

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
      add_named(Json::parse(content, nullptr, false, true), path.parent_path());
  }
  // Every file that one of the texts in it is the path of, seen from the folder.
  void add_named(const Json& json, const std::filesystem::path& folder, int depth = 0) {
    if (json.is_structured() && depth < deepest_nesting)
      for (const Json& part : json) add_named(part, folder, depth + 1);
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

// What a document means.
class Reader {
 public:
  Reader(const std::string& name, const SweepDocument& document) : name_(name), document_(document) {}

  SweepFile read() {
    SweepFile file;
    static_cast<SweepTerms&>(file) = document_;
    file.base = base();
    file.procurement = document_.procurement.value_or("");
    for (const auto& [key, value] : document_.constants) {
      claim_name(key, "/constants/" + key);
      file.constants[key] = value;
    }
    for (std::size_t i = 0; i < document_.axes.size(); ++i)
      file.axes.push_back(axis_of(document_.axes[i], "/axes/" + std::to_string(i)));
    for (std::size_t i = 0; i < document_.derived.size(); ++i)
      file.derived.push_back(derived_of(document_.derived[i], "/derived/" + std::to_string(i)));
    for (const auto& [is, reason] : document_.where) file.rules.push_back({is, reason.empty() ? is : reason});
    if (!document_.objectives.empty()) file.objectives.clear();
    for (const std::size_t objective : document_.objectives) file.objectives.push_back(all_objectives.at(objective));
    return file;
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
    throw InputError(name_, place, cause, remedy);
  }
  void claim_name(const std::string& name, const std::string& place) {
    if (!is_identifier(name))
      fail(place, "'" + name + "' is no name", "use letters, digits and _, beginning with a letter");
    if (std::find(names_.begin(), names_.end(), name) != names_.end())
      fail(place, "two things are named '" + name + "'", "rename one");
    names_.push_back(name);
  }
  // Each scenario key is set in one place.
  void claim(const std::string& key, const std::string& name, const std::string& place) {
    const auto [at, is_new] = owners_.emplace(key, name);
    if (!is_new && at->second != name)
      fail(place, "'" + at->second + "' sets " + key + " too", "leave it to one of them");
  }
  // Keys below hardware.set are the profile's own.
  [[nodiscard]] std::string scenario_key(const std::string& key, const std::string& place) const {
    static const std::vector<std::string> keys = scenario_keys();
    if (key.rfind("hardware.set.", 0) == 0 || std::find(keys.begin(), keys.end(), key) != keys.end()) return key;
    fail(place, "no scenario has a key '" + key + "'", suggest_key(key, keys));
  }

  [[nodiscard]] std::string base() const {
    Json base = {{"schema", "spillway-scenario"}, {"version", scenario_version}};
    base.update(Json::parse(document_.base.value_or("{}")));
    return base.dump();
  }

  SweepAxis axis_of(const SweepDocument::Axis& given, const std::string& place) {
    SweepAxis axis{given.name, {}};
    claim_name(axis.name, place + "/name");
    const int ways = static_cast<int>(!given.values.empty()) + static_cast<int>(given.from.has_value()) +
                     static_cast<int>(!given.options.empty()) + static_cast<int>(!given.techniques.empty());
    if (ways != 1) fail(place, "an axis has either values, a range, options or techniques", "give exactly one of them");
    if (!given.options.empty()) {
      add_options(given.options, place + "/options", axis);
    } else if (!given.techniques.empty()) {
      add_options(options_of(given.techniques, place + "/techniques"), place + "/techniques", axis);
    } else {
      claim(scenario_key(given.key, place + "/key"), axis.name, place + "/key");
      given.values.empty() ? add_range(given, place, axis) : add_values(given, place + "/values", axis);
    }
    if (axis.options.empty()) fail(place, "the axis '" + axis.name + "' has no values", "give it at least one");
    std::set<std::string> labels;
    for (const SweepOption& option : axis.options)
      if (!labels.insert(option.label).second)
        fail(place, "the axis '" + axis.name + "' has the value " + option.label + " twice", "leave one out");
    return axis;
  }
  // A value that no other setting can make valid.
  void check_value(const SweepAxis& axis, const std::string& key, const std::string& text,
                   const std::string& place) const {
    try {
      check_setting(key + "=" + text);
    } catch (const InputError& error) {
      fail(place, "the axis '" + axis.name + "' can't set " + key + " to " + text + ": " + error.cause(),
           error.remedy());
    }
  }
  void add_values(const SweepDocument::Axis& given, const std::string& place, SweepAxis& axis) const {
    if (given.values.size() > most_values) fail(place, "more than 100,000 values", "give fewer");
    for (const Scalar& value : given.values) {
      check_value(axis, given.key, value.text, place + "/" + std::to_string(axis.options.size()));
      const double number =
          value.is_number ? Json::parse(value.text).get<double>() : static_cast<double>(axis.options.size());
      axis.options.push_back({value.text, number, {{given.key, value.text}}});
    }
  }
  void add_range(const SweepDocument::Axis& given, const std::string& place, SweepAxis& axis) const {
    if (!given.to || given.step.has_value() == given.times.has_value())
      fail(place, "a range has from, to, and either step or times", R"(write "from": 1, "to": 64, "times": 2)");
    const double from = given.from.value_or(0), to = *given.to;
    if (given.times && from <= 0) fail(place + "/from", "a range that multiplies begins above 0", "use step");
    for (std::size_t i = 0; axis.options.size() <= most_values; ++i) {
      const auto step = static_cast<double>(i);
      const double value = given.times ? from * std::pow(*given.times, step) : from + given.step.value_or(0) * step;
      if (value > to * (1 + 1e-12)) {
        if (i > 2) check_value(axis, given.key, axis.options.back().label, place);
        return;
      }
      const bool whole = value == std::floor(value) && std::abs(value) < 9e18;
      const std::string as_text = whole ? std::to_string(static_cast<std::int64_t>(value)) : Json(value).dump();
      // What the first two and the last are, all between are.
      if (i < 2) check_value(axis, given.key, as_text, place);
      axis.options.push_back({as_text, value, {{given.key, as_text}}});
    }
    fail(place, "more than 100,000 values", "take larger steps");
  }
  using Options = std::vector<std::pair<std::string, SweepDocument::Settings>>;

  [[nodiscard]] Options options_of(const std::vector<std::string>& techniques, const std::string& place) const {
    Options options;
    for (std::size_t i = 0; i < techniques.size(); ++i) {
      SweepDocument::Settings& settings = options.emplace_back(techniques[i], SweepDocument::Settings{}).second;
      if (techniques[i] == plain_technique) continue;
      for (const std::string& setting : settings_named(techniques[i], name_, place + "/" + std::to_string(i))) {
        const std::size_t equals = setting.find('=');
        settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
      }
    }
    return options;
  }

  void add_options(const Options& options, const std::string& place, SweepAxis& axis) {
    for (const auto& [label, settings] : options) {
      for (const auto& [key, text] : settings) {
        const std::string at = place + "/" + label + "/" + key;
        claim(scenario_key(key, at), axis.name, at);
        check_value(axis, key, text, at);
      }
      axis.options.push_back({label, static_cast<double>(axis.options.size()), settings});
    }
  }

  SweepDerived derived_of(const SweepDocument::Derived& given, const std::string& place) {
    claim_name(given.name, place + "/name");
    if (!given.key.empty()) claim(scenario_key(given.key, place + "/key"), given.name, place + "/key");
    return {given.name, given.key, given.value};
  }

  const std::string& name_;
  const SweepDocument& document_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> owners_;  // of scenario keys: axes and derived values
};

}  // namespace

std::int64_t SweepFile::points() const {
  std::int64_t count = 1;
  for (const SweepAxis& axis : axes)
    if (__builtin_mul_overflow(count, static_cast<std::int64_t>(axis.options.size()), &count) ||
        count > (std::int64_t{1} << 62))
      throw InputError(path, "/axes", "more than 2^62 points", "take fewer values");
  return count;
}

namespace {

// The axis or derived value that makes steps differ in their tokens; empty: none does for sure.
std::string owner_of_tokens(const SweepFile& file, std::string& key) {
  const auto counts = [&key](const std::string& one) {
    key = one;
    return one == "model.global_batch" || one == "model.sequence" || one == "model.gradient_accumulation";
  };
  for (const SweepAxis& axis : file.axes)
    for (const SweepOption& option : axis.options)
      for (const auto& [one, text] : option.settings)
        if (counts(one)) return axis.name;
  for (const SweepDerived& derived : file.derived)
    if (counts(derived.key)) return derived.name;
  return "";
}

// A step of more tokens takes longer: such steps are ranked by their time per token.
void rank_by_tokens(SweepFile& file, bool objectives_given) {
  const auto time = std::find(file.objectives.begin(), file.objectives.end(), Objective::step_time);
  if (time == file.objectives.end()) return;
  std::string key;
  const std::string owner = owner_of_tokens(file, key);
  if (owner.empty()) return;
  if (objectives_given)
    throw InputError(file.path, "/objectives",
                     "'" + owner + "' sets " + key + ", so steps differ in their tokens and their times tell nothing",
                     "rank by gpu_time_per_token instead of step_time");
  *time = Objective::gpu_time_per_token;
}

}  // namespace

SweepFile parse_sweep(const std::string& text, const std::string& name, const std::string& folder) {
  const Json root = parse_document(text, name, "correct it there; sweeps are JSON without comments");
  SweepDocument document;
  read_fields(root, name, "", [&](FieldVisitor& visitor) { describe(document, visitor); });
  SweepFile file = Reader(name, document).read();
  file.path = name;
  file.folder = folder;
  // Without what changes no record, so that a store serves the same sweep with more replays.
  Json kept = root;
  for (const char* key : {"$schema", "title", "note", "replays"}) kept.erase(key);
  file.text = root.dump();
  file.kind = kept.dump();
  file.digest = digest_of(file, root);
  static_cast<void>(file.points());
  rank_by_tokens(file, !document.objectives.empty());
  return file;
}

SweepFile load_sweep(const std::string& path) {
  const std::string text = read_file(path, largest_file);
  return parse_sweep(text, path, std::filesystem::path(path).parent_path().string());
}

}  // namespace spillway::studies
