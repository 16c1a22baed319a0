#include "studies/capacity/capacity_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario_run.h"
#include "studies/sweep/layout_sweep.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t gibibyte = std::int64_t{1} << 30;
constexpr std::array<std::string_view, 2> technique_keys = {"name", "set"};

struct ShortName {
  std::string_view name, key;
  std::int64_t most;
};
constexpr std::array<std::string_view, 3> layout_keys = {"tensor_parallel", "pipeline_parallel", "micro_batch"};
constexpr std::array<ShortName, 8> short_names = {{{"layers", "model.layers", 100'000},
                                                   {"sequence", "model.sequence", 1 << 24},
                                                   {"micro_batch", "model.micro_batch", 1 << 16},
                                                   {"global_batch", "model.global_batch", std::int64_t{1} << 32},
                                                   {"replicas", "model.data_parallel", 1 << 16},
                                                   {"memory", "memory.capacity_bytes", std::int64_t{1} << 50},
                                                   {"drives", "offload.drive_count", 64},
                                                   {gpus_axis, gpus_axis, 1 << 20}}};

class Reader {
 public:
  Reader(const std::string& path, std::span<const std::string> settings, const CapacityFlags& flags)
      : path_(path), flags_(flags), base_(load_scenario(path, settings)) {
    request_.path = path;
    request_.settings.assign(settings.begin(), settings.end());
    if (!base_.capacity.empty()) section_ = Json::parse(base_.capacity);
  }

  CapacityRequest read() {
    read_axis();
    read_techniques();
    read_constraints();
    read_layouts();
    read_prices();
    expand("machines", flags_.machines, "hardware.profile=", " on ");
    expand("drives", flags_.drives, "offload.drives=", ", ");
    return std::move(request_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
    throw InputError(path_, place, cause, remedy);
  }
  void known(const Json& object, const std::string& place, std::span<const std::string_view> keys) const {
    for (const auto& [key, value] : object.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        fail(place + "/" + key, "unknown key '" + key + "'", suggest(key, keys));
  }
  [[nodiscard]] std::string text(const char* key, const std::string& flag) const {
    if (!flag.empty() || !section_.contains(key)) return flag;
    if (!section_[key].is_string()) fail("/capacity/" + std::string(key), "expected a text", "put it in quotes");
    return section_[key].get<std::string>();
  }
  [[nodiscard]] std::int64_t whole(const char* key, std::int64_t flag, std::int64_t otherwise) const {
    if (flag != 0) return flag;
    if (!section_.contains(key)) return otherwise;
    const Json& value = section_[key];
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1)
      fail("/capacity/" + std::string(key), "expected a whole number of 1 or more", "give a value of the axis");
    return value.get<std::int64_t>();
  }

  void read_axis() {
    CapacityAxis& axis = request_.axis;
    axis.name = text("axis", flags_.axis);
    if (axis.name.empty()) axis.name = base_.model.empty() ? "memory" : "layers";
    axis.key = capacity_key(axis.name);
    if ((axis.key.starts_with("model.") || axis.key == gpus_axis) && base_.model.empty())
      fail("/capacity/axis", "'" + axis.name + "' is a model's, and the scenario replays a trace",
           "vary memory.capacity_bytes, or name a model");
    const auto known_name = std::find_if(short_names.begin(), short_names.end(),
                                         [&](const ShortName& each) { return each.key == axis.key; });
    axis.step = whole("step", flags_.step, default_step(axis.key));
    axis.from = whole("from", flags_.from, default_from(axis));
    axis.to = whole("to", flags_.to, known_name == short_names.end() ? std::int64_t{1} << 40 : known_name->most);
    if (axis.step < 1 || axis.from < 1) fail("/capacity/step", "steps and values begin at 1", "give 1 or more");
    axis.first = own_value(axis.key);
    if (axis.to < axis.from)
      fail("/capacity/to", std::to_string(axis.to) + " is less than the smallest value, " + std::to_string(axis.from),
           "give from <= to");
    const bool is_need = axis.key == gpus_axis || axis.key == "memory.capacity_bytes" ||
                         axis.key == "offload.drive_count" || axis.key == "model.data_parallel" ||
                         axis.key == "model.tensor_parallel" || axis.key == "model.pipeline_parallel";
    const std::string goal = text("goal", flags_.goal);
    if (!goal.empty() && goal != "largest" && goal != "smallest")
      fail("/capacity/goal", "no goal '" + goal + "'", "take largest or smallest");
    axis.goal = (goal.empty() ? is_need : goal == "smallest") ? CapacityGoal::smallest : CapacityGoal::largest;
  }

  // What the scenario has now; 0: nothing.
  [[nodiscard]] std::int64_t own_value(const std::string& key) const {
    if (key == "model.layers") return with_layers(base_, find_model(base_.model)).layers;
    if (key == "memory.capacity_bytes") {
      if (base_.capacity_bytes) return *base_.capacity_bytes;
      return base_.hardware.empty() ? 0
                                    : ProfileLibrary::standard().load_system(base_.hardware).gpu.memory.value.count();
    }
    if (key == "offload.drive_count") return base_.offload.drive_count;
    if (key == gpus_axis) return base_.training.gpus();
    if (!key.starts_with("model.")) return 0;
    const std::string value = field_text(base_.training, key.substr(6));
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size())
      fail("/capacity/axis", "'" + key + "' is no whole number", "vary layers, sequence, micro_batch or the like");
    return number;
  }

  [[nodiscard]] std::int64_t default_step(const std::string& key) const {
    if (key == "model.layers") return base_.training.pipeline_parallel;
    if (key == "model.sequence") return 1024;
    if (key == "model.global_batch") return base_.training.micro_batch * base_.training.data_parallel;
    if (key == "memory.capacity_bytes") return gibibyte;
    if (key == gpus_axis) return ProfileLibrary::shared().load_system(base_.hardware).gpu_count;
    return 1;
  }
  [[nodiscard]] static std::int64_t default_from(const CapacityAxis& axis) { return axis.step; }

  void read_techniques() {
    if (section_.contains("techniques")) {
      if (!section_["techniques"].is_array() || section_["techniques"].empty())
        fail("/capacity/techniques", "expected a list of names or of {name, set}", R"(write ["keep", "full"])");
      for (std::size_t i = 0; i < section_["techniques"].size(); ++i)
        add(section_["techniques"][i], "/capacity/techniques/" + std::to_string(i));
    }
    if (!flags_.techniques.empty()) {
      request_.techniques.clear();
      for (const std::string& flag : flags_.techniques) add_flag(flag);
    }
    if (request_.techniques.empty())
      for (const std::string& name : default_names()) add_named(name, "techniques");
    std::vector<CapacityTechnique>& all = request_.techniques;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (all[i].name == all[j].name)
          fail("/capacity/techniques", "'" + all[i].name + "' is there twice", "give each technique a name of its own");
  }

  void add(const Json& entry, const std::string& place) {
    if (entry.is_string()) return add_named(entry.get<std::string>(), place);
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() || !entry.contains("set") ||
        !entry["set"].is_object())
      fail(place, "a technique is a name or {\"name\": ..., \"set\": {...}}", "see docs/capacity.md");
    known(entry, place, technique_keys);
    CapacityTechnique technique{entry["name"].get<std::string>(), {}};
    flatten(entry["set"], "", place + "/set", technique.settings);
    request_.techniques.push_back(std::move(technique));
    own_.push_back(request_.techniques.back());
  }

  // Leaves as settings.
  void flatten(const Json& object, const std::string& prefix, const std::string& place,
               std::vector<std::string>& settings) const {
    for (const auto& [key, value] : object.items()) {
      if (value.is_array()) fail(place + "/" + key, "a scenario has no lists", "give a value");
      if (value.is_object())
        flatten(value, prefix + key + ".", place + "/" + key, settings);
      else
        settings.push_back(prefix + key + "=" + value.dump());
    }
  }

  // "NAME:key=value,..." or names joined by +.
  void add_flag(const std::string& flag) {
    const auto colon = flag.find(':');
    if (colon == std::string::npos) return add_named(flag, "--technique");
    CapacityTechnique technique{flag.substr(0, colon), {}};
    for (std::size_t at = colon + 1; at <= flag.size();) {
      const std::size_t end = std::min(flag.find(',', at), flag.size());
      technique.settings.push_back(flag.substr(at, end - at));
      at = end + 1;
    }
    request_.techniques.push_back(std::move(technique));
  }

  void add_named(const std::string& name, const std::string& place) {
    CapacityTechnique technique{name, {}};
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t end = std::min(name.find('+', at), name.size());
      const std::vector<std::string> settings = settings_of(name.substr(at, end - at), place);
      technique.settings.insert(technique.settings.end(), settings.begin(), settings.end());
      at = end + 1;
    }
    request_.techniques.push_back(std::move(technique));
  }

  [[nodiscard]] std::vector<std::string> settings_of(const std::string& name, const std::string& place) const {
    std::vector<std::string> names;
    for (const CapacityTechnique& each : own_) {
      if (each.name == name) return each.settings;
      names.push_back(each.name);
    }
    for (const TechniqueWay* way : technique_ways()) {
      if (way->name == name) return way->settings;
      names.push_back(way->name);
    }
    throw InputError(place.starts_with("/") ? path_ : "", place, "no technique '" + name + "'", suggest(name, names));
  }

  [[nodiscard]] std::vector<std::string> default_names() const {
    const bool of_model = !base_.model.empty();
    const bool has_drives = of_model && (!base_.offload.drives.empty() ||
                                         !ProfileLibrary::standard().load_system(base_.hardware).drives.empty());
    const auto is_offered = [&](Offered offered) {
      switch (offered) {
        case Offered::when_named:
          return false;
        case Offered::always:
          return true;
        case Offered::of_models:
          return of_model;
        case Offered::with_drives:
          return has_drives;
        case Offered::with_stages:
          return of_model && base_.training.pipeline_parallel > 1;
        case Offered::with_replicas:
          return of_model && base_.training.data_parallel > 1;
      }
      return false;
    };
    std::vector<std::string> names;
    for (const TechniqueWay* way : technique_ways())
      if (is_offered(way->offered)) names.push_back(way->name);
    return names;
  }

  void read_constraints() {
    CapacityConstraints& made = request_.constraints;
    Json given = Json::object();
    if (section_.contains("constraints")) given = section_["constraints"];
    const auto number = [&](const char* key, double flag) {
      if (flag != 0 || !given.contains(key)) return flag;
      if (!given[key].is_number() || !(given[key].get<double>() > 0))
        fail(std::string("/capacity/constraints/") + key, "expected a number above 0", "leave it out to ask nothing");
      return given[key].get<double>();
    };
    made.most_step_seconds = number("step_time_seconds", flags_.constraints.most_step_seconds);
    made.least_tokens_per_second = number("tokens_per_second", flags_.constraints.least_tokens_per_second);
    made.least_mfu = number("mfu", flags_.constraints.least_mfu);
    made.least_life_years = number("life_years", flags_.constraints.least_life_years);
    made.most_usd = number("budget_usd", flags_.constraints.most_usd);
    made.most_kilowatts = number("power_kw", flags_.constraints.most_kilowatts);
  }

  [[nodiscard]] std::vector<std::int64_t> sizes(const Json& given, const std::string& key,
                                                std::vector<std::int64_t> otherwise) const {
    if (!given.contains(key)) return otherwise;
    const std::string place = "/capacity/layouts/" + key;
    if (!given[key].is_array() || given[key].empty()) fail(place, "expected a list of whole numbers", "write [1, 2]");
    std::vector<std::int64_t> values;
    for (const Json& each : given[key]) {
      if (!each.is_number_integer() || each.get<std::int64_t>() < 1)
        fail(place, "expected whole numbers of 1 or more", "write [1, 2]");
      values.push_back(each.get<std::int64_t>());
    }
    return values;
  }

  void read_layouts() {
    CapacityLayouts& layouts = request_.layouts;
    const CapacityAxis& axis = request_.axis;
    Json given = section_.contains("layouts") ? section_["layouts"] : Json();
    if (!given.is_null() && !given.is_boolean() && !given.is_object())
      fail("/capacity/layouts", "expected true or sizes", R"(write true or {"tensor_parallel": [1, 2, 4, 8]})");
    layouts.searched = flags_.layouts || axis.key == gpus_axis || given.is_object() || given == Json(true);
    layouts.replays = whole("replays", 0, layouts.replays);
    if (!layouts.searched) return;
    if (base_.model.empty())
      fail("/capacity/layouts", "a captured trace has the layout it has", "name a model, or leave layouts out");
    if (axis.key == "model.data_parallel" || axis.key == "model.tensor_parallel" ||
        axis.key == "model.pipeline_parallel")
      fail("/capacity/axis", "'" + axis.name + "' is a part of the layouts that are searched", "vary gpus instead");
    if (!given.is_object()) given = Json::object();
    known(given, "/capacity/layouts", layout_keys);
    std::int64_t in_machine = ProfileLibrary::shared().load_system(base_.hardware).gpu_count;
    layouts.tensor_parallel = sizes(given, "tensor_parallel", powers_of_two(in_machine));
    layouts.pipeline_parallel = sizes(given, "pipeline_parallel", powers_of_two(16));
    layouts.micro_batch =
        axis.key == "model.micro_batch" ? std::vector<std::int64_t>{1} : sizes(given, "micro_batch", powers_of_two(8));
    request_.gpus = base_.training.gpus();
    if (axis.key == gpus_axis) keep_possible(request_.axis);
  }

  // Numbers of GPUs over which some layout spreads the batch.
  void keep_possible(CapacityAxis& axis) const {
    const TrainingSetup& own = base_.training;
    const std::int64_t batch = own.step_sequences();
    const CapacityLayouts& layouts = request_.layouts;
    const auto is_possible = [&](std::int64_t gpus) {
      for (const std::int64_t t : layouts.tensor_parallel)
        for (const std::int64_t p : layouts.pipeline_parallel) {
          const std::int64_t split = t * p * own.context_parallel;
          if (gpus % split != 0) continue;
          for (const std::int64_t b : layouts.micro_batch)
            if (batch % (gpus / split * b) == 0) return true;
        }
      return false;
    };
    for (std::int64_t gpus = axis.from; gpus <= axis.to; gpus += axis.step)
      if (is_possible(gpus)) axis.values.push_back(gpus);
    if (axis.values.empty())
      fail("/capacity/axis", "no number of GPUs from " + std::to_string(axis.from) + " on divides the batch",
           "change the batch, or give --from, --step or layouts");
  }

  void read_prices() {
    std::string prices = flags_.prices;
    if (prices.empty()) prices = text("prices", "");
    if (!prices.empty() && flags_.prices.empty() && prices.front() != '/')
      prices = (std::filesystem::path(path_).parent_path() / prices).lexically_normal().string();
    std::vector<std::string> own;
    if (!prices.empty() && !base_.model.empty()) own.push_back(hardware_of(base_).name);
    request_.prices = PriceList::load(prices, own);
    request_.is_priced = !prices.empty() || request_.constraints.most_usd > 0 || section_.contains("machines") ||
                         section_.contains("drives") || !flags_.machines.empty() || !flags_.drives.empty();
  }

  // Every technique with each of the names.
  void expand(const char* key, const std::vector<std::string>& flag, const std::string& setting,
              const std::string& between) {
    std::vector<std::string> names = flag;
    if (names.empty() && section_.contains(key)) {
      const Json& list = section_[key];
      const bool sound = list.is_array() && !list.empty() &&
                         std::all_of(list.begin(), list.end(), [](const Json& each) { return each.is_string(); });
      if (!sound) fail("/capacity/" + std::string(key), "expected a list of profiles", R"(write ["a", "b"])");
      names = list.get<std::vector<std::string>>();
    }
    if (names.empty()) return;
    const ProfileLibrary& library = ProfileLibrary::shared();
    std::vector<CapacityTechnique> all;
    namespace fs = std::filesystem;
    const fs::path folder = fs::current_path() / (flag.empty() ? fs::path(path_).parent_path() : fs::path());
    for (const std::string& given : names) {
      const std::string name = name_seen_from(folder.string(), given);
      if (setting.starts_with("hardware."))
        static_cast<void>(library.load_system(name));
      else
        static_cast<void>(library.load_nvme(name));
      for (const CapacityTechnique& technique : request_.techniques) {
        all.push_back(technique);
        all.back().name += between + given;
        all.back().settings.push_back(setting + name);
      }
    }
    request_.techniques = std::move(all);
  }

  std::string path_;
  const CapacityFlags& flags_;
  Scenario base_;
  Json section_ = Json::object();
  CapacityRequest request_;
  std::vector<CapacityTechnique> own_;  // defined in the file
};

}  // namespace

std::string_view to_string(CapacityGoal goal) { return goal == CapacityGoal::largest ? "largest" : "smallest"; }

CapacityTechnique named_technique(const std::string& name, const std::string& file, const std::string& place) {
  CapacityTechnique technique{name, {}};
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('+', at), name.size());
    const std::vector<std::string>& settings = way_named(name.substr(at, end - at), file, place).settings;
    technique.settings.insert(technique.settings.end(), settings.begin(), settings.end());
    at = end + 1;
  }
  return technique;
}

CapacityRequest read_capacity_request(const std::string& path, std::span<const std::string> settings,
                                      const CapacityFlags& flags) {
  return Reader(path, settings, flags).read();
}

std::string capacity_key(std::string_view axis) {
  for (const ShortName& each : short_names)
    if (each.name == axis) return std::string(each.key);
  std::vector<std::string> names;
  for (const ShortName& each : short_names) names.emplace_back(each.name);
  for (const std::string& key : scenario_keys())
    if (key.starts_with("model.") || key.starts_with("offload.") || key == "memory.capacity_bytes")
      names.push_back(key);
  const std::string wanted(axis);
  if (wanted.find('.') == std::string::npos || std::find(names.begin(), names.end(), wanted) == names.end())
    throw InputError("", "axis", "no axis '" + wanted + "'", suggest(wanted, names));
  return wanted;
}

}  // namespace spillway::studies
