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
#include "scenario/scenario_fields.h"
#include "scenario/scenario_run.h"
#include "studies/capacity/capacity_fields.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t gibibyte = std::int64_t{1} << 30;

struct ShortName {
  std::string_view name, key;
  std::int64_t most;
};
constexpr std::array<ShortName, 8> short_names = {{{"layers", "model.layers", 100'000},
                                                   {"sequence", "model.sequence", 1 << 24},
                                                   {"micro_batch", "model.micro_batch", 1 << 16},
                                                   {"global_batch", "model.global_batch", std::int64_t{1} << 32},
                                                   {"replicas", "model.data_parallel", 1 << 16},
                                                   {"memory", "memory.capacity_bytes", std::int64_t{1} << 50},
                                                   {"drives", "offload.drives_per_machine", 64},
                                                   {gpus_axis, gpus_axis, 1 << 20}}};

class Reader {
 public:
  Reader(const std::string& path, std::span<const std::string> settings, const CapacityFlags& flags)
      : path_(path),
        flags_(flags),
        base_(load_scenario(path, settings)),
        asked_(path, "capacity", base_.capacity, flags.said, section_) {
    request_.path = path;
    request_.settings.assign(settings.begin(), settings.end());
    request_.constraints = section_.constraints;
  }

  CapacityRequest read() {
    read_axis();
    read_techniques();
    read_layouts();
    read_prices();
    expand("machines", section_.machines, "hardware.profile=", " on ");
    expand("drives", section_.drives, "offload.drives=", ", ");
    return std::move(request_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
    throw InputError(path_, place, cause, remedy);
  }

  void read_axis() {
    CapacityAxis& axis = request_.axis;
    axis.name = section_.axis;
    if (axis.name.empty()) axis.name = base_.model.empty() ? "memory" : "layers";
    axis.key = capacity_key(axis.name);
    if ((axis.key.starts_with("model.") || axis.key == gpus_axis) && base_.model.empty())
      fail("/capacity/axis", "'" + axis.name + "' is a model's, and the scenario replays a trace",
           "vary memory.capacity_bytes, or name a model");
    const auto known_name = std::find_if(short_names.begin(), short_names.end(),
                                         [&](const ShortName& each) { return each.key == axis.key; });
    const auto given_or = [](std::int64_t given, std::int64_t otherwise) { return given != 0 ? given : otherwise; };
    axis.step = given_or(section_.step, default_step(axis.key));
    axis.from = given_or(section_.from, axis.step);
    axis.to = given_or(section_.to, known_name == short_names.end() ? std::int64_t{1} << 40 : known_name->most);
    if (axis.step < 1 || axis.from < 1) fail("/capacity/step", "steps and values begin at 1", "give 1 or more");
    axis.first = own_value(axis.key);
    if (axis.to < axis.from)
      fail("/capacity/to", std::to_string(axis.to) + " is less than the smallest value, " + std::to_string(axis.from),
           "give from <= to");
    const bool is_need = axis.key == gpus_axis || axis.key == "memory.capacity_bytes" ||
                         axis.key == "offload.drives_per_machine" || axis.key == "model.data_parallel" ||
                         axis.key == "model.tensor_parallel" || axis.key == "model.pipeline_parallel";
    axis.goal = section_.goal.value_or(is_need ? CapacityGoal::smallest : CapacityGoal::largest);
  }

  // What the scenario has now; 0: nothing.
  [[nodiscard]] std::int64_t own_value(const std::string& key) const {
    if (key == "model.layers") return with_layers(base_, find_model(base_.model)).layers;
    if (key == "memory.capacity_bytes") {
      if (base_.capacity_bytes) return *base_.capacity_bytes;
      return base_.hardware.empty() ? 0
                                    : ProfileLibrary::standard().load_system(base_.hardware).gpu.memory.value.count();
    }
    if (key == "offload.drives_per_machine") return base_.offload.drives_per_machine;
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

  void read_techniques() {
    for (std::size_t i = 0; i < section_.techniques.size(); ++i)
      add(section_.techniques[i], "/capacity/techniques/" + std::to_string(i));
    if (!flags_.techniques.empty()) {
      request_.techniques.clear();
      for (const std::string& flag : flags_.techniques) add_flag(flag);
    }
    request_.is_open = flags_.planned && !base_.model.empty();
    if (request_.techniques.empty())
      for (const std::string& name : default_names()) add_named(name, "techniques");
    std::vector<CapacityTechnique>& all = request_.techniques;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (all[i].name == all[j].name)
          fail("/capacity/techniques", "'" + all[i].name + "' is there twice", "give each technique its own name");
  }

  void add(const CapacitySection::Technique& entry, const std::string& place) {
    if (!entry.set) return add_named(entry.name, place);
    CapacityTechnique technique{{entry.name, {}}, entry.name};
    flatten(Json::parse(*entry.set), "", place + "/set", technique.edits);
    std::vector<std::string> settings = request_.settings;
    settings.insert(settings.end(), technique.edits.begin(), technique.edits.end());
    try {
      static_cast<void>(load_scenario(path_, settings));
    } catch (const InputError& error) {
      fail(place + "/set" + error.place(), error.cause(), error.remedy());
    }
    request_.techniques.push_back(std::move(technique));
    own_.push_back(request_.techniques.back());
  }

  // Leaves as settings.
  void flatten(const Json& object, const std::string& prefix, const std::string& place,
               std::vector<std::string>& settings) const {
    for (const auto& [key, value] : object.items()) {
      if (value.is_array()) fail(place + "/" + key, "a scenario has no lists", "give a value");
      if (value.is_object() && value.empty())
        fail(place + "/" + key, "changes nothing", "give it a key with a value, or take it out");
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
    CapacityTechnique technique{{flag.substr(0, colon), {}}, flag.substr(0, colon)};
    for (std::size_t at = colon + 1; at <= flag.size();) {
      const std::size_t end = std::min(flag.find(',', at), flag.size());
      technique.edits.push_back(flag.substr(at, end - at));
      at = end + 1;
    }
    const auto sets_nothing = [](const std::string& setting) { return setting.find('=') == std::string::npos; };
    if (std::any_of(technique.edits.begin(), technique.edits.end(), sets_nothing))
      throw InputError("", "--technique", "'" + flag + "' has no key=value behind its name",
                       "write NAME:key=value,key=value, or a bundled name alone: --list names them");
    request_.techniques.push_back(std::move(technique));
  }

  void add_named(const std::string& name, const std::string& place) {
    CapacityTechnique technique{{name, {}}, words_of_ways(name)};
    std::vector<const TechniqueWay*> bundled;  // one's own may go over them
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t end = std::min(name.find('+', at), name.size());
      const std::vector<std::string> settings = settings_of(name.substr(at, end - at), place, bundled);
      technique.edits.insert(technique.edits.end(), settings.begin(), settings.end());
      at = end + 1;
    }
    check_together(bundled, place.starts_with("/") ? path_ : "", place);
    request_.techniques.push_back(std::move(technique));
  }

  [[nodiscard]] std::vector<std::string> settings_of(const std::string& name, const std::string& place,
                                                     std::vector<const TechniqueWay*>& bundled) const {
    std::vector<std::string> names;
    for (const CapacityTechnique& each : own_) {
      if (each.name == name) return each.edits;
      names.push_back(each.name);
    }
    if (const TechniqueWay* way = find_way(name)) {
      bundled.push_back(way);
      return way->settings;
    }
    for (const TechniqueWay* way : technique_ways()) names.push_back(way->name);
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
          return of_model && (base_.training.data_parallel > 1 || base_.training.context_parallel > 1);
      }
      return false;
    };
    std::vector<std::string> names;
    for (const TechniqueWay* way : technique_ways())
      if (is_offered(way->offered)) names.push_back(way->name);
    return names;
  }

  void read_layouts() {
    CapacityLayouts& layouts = request_.layouts;
    const CapacityAxis& axis = request_.axis;
    layouts.searched = flags_.layouts || axis.key == gpus_axis || section_.has_layouts;
    layouts.replays = section_.replays;
    if (!layouts.searched) return;
    request_.is_open = false;
    if (base_.model.empty())
      fail("/capacity/layouts", "a captured trace has the layout it has", "name a model, or leave layouts out");
    if (axis.key == "model.data_parallel" || axis.key == "model.tensor_parallel" ||
        axis.key == "model.pipeline_parallel")
      fail("/capacity/axis", "'" + axis.name + "' is a part of the layouts that are searched", "vary gpus instead");
    const std::int64_t in_machine = ProfileLibrary::shared().load_system(base_.hardware).gpu_count;
    static_cast<LayoutSizes&>(layouts) = or_usual(section_, in_machine);
    if (axis.key == "model.micro_batch") layouts.micro_batch = {1};
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
    const std::string prices = asked_.path_of("prices", section_.prices);
    std::vector<std::string> own;
    if (!prices.empty() && !base_.model.empty()) own.push_back(hardware_of(base_).name);
    request_.prices = PriceList::load(prices, own);
    request_.is_priced =
        !prices.empty() || request_.constraints.most_usd > 0 || !section_.machines.empty() || !section_.drives.empty();
  }

  // Every technique with each of the names.
  void expand(const std::string& key, const std::vector<std::string>& names, const std::string& setting,
              const std::string& between) {
    if (names.empty()) return;
    request_.is_open = false;
    const ProfileLibrary& library = ProfileLibrary::shared();
    std::vector<CapacityTechnique> all;
    namespace fs = std::filesystem;
    const fs::path folder = fs::current_path() / (asked_.is_said(key) ? fs::path() : fs::path(path_).parent_path());
    for (const std::string& given : names) {
      const std::string name = name_seen_from(folder.string(), given);
      if (setting.starts_with("hardware."))
        static_cast<void>(library.load_system(name));
      else
        static_cast<void>(library.load_nvme(name));
      for (const CapacityTechnique& technique : request_.techniques) {
        all.push_back(technique);
        all.back().name += between + given;
        all.back().words += between + given;
        all.back().edits.push_back(setting + name);
      }
    }
    request_.techniques = std::move(all);
  }

  std::string path_;
  const CapacityFlags& flags_;
  Scenario base_;
  CapacitySection section_;
  AskedSection asked_;
  CapacityRequest request_;
  std::vector<CapacityTechnique> own_;  // defined in the file
};

}  // namespace

std::string_view to_string(CapacityGoal goal) { return capacity_goal_words()[goal].name; }

CapacityRequest read_capacity_request(const std::string& path, std::span<const std::string> settings,
                                      const CapacityFlags& flags) {
  return Reader(path, settings, flags).read();
}

Dimension dimension_of_axis(std::string_view axis) {
  if (axis.empty()) return Dimension::bytes;
  const std::string key = capacity_key(axis);
  for (const FieldRow& row : scenario_rows())
    if (row.path == key) return row.info.dimension;
  return Dimension::plain;
}

std::string capacity_key(std::string_view axis) {
  for (const ShortName& each : short_names)
    if (each.name == axis) return std::string(each.key);
  std::vector<std::string> names;
  for (const ShortName& each : short_names) names.emplace_back(each.name);
  const std::string wanted(axis);
  for (const FieldRow& row : scenario_rows()) {
    const bool is_setting = row.path.starts_with("model.") || row.path.starts_with("offload.");
    if (row.inside_list || (!is_setting && row.path != "memory.capacity_bytes")) continue;
    if (row.kind == FieldKind::integer)
      names.push_back(row.path);
    else if (row.path == wanted && row.kind != FieldKind::group)
      throw InputError("", "axis", "'" + wanted + "' is no whole number",
                       "vary layers, sequence, micro_batch or the like");
  }
  if (wanted.find('.') == std::string::npos || std::find(names.begin(), names.end(), wanted) == names.end())
    throw InputError("", "axis", "no axis '" + wanted + "'", suggest_key(wanted, names));
  return wanted;
}

}  // namespace spillway::studies
