#include "scenario/scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/json_error.h"
#include "base/json_fields.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "models/spec/pipeline_setup.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario_setting.h"

namespace spillway::scenario {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t largest_scenario = 16U << 20U;
constexpr std::int64_t most_layers = 100'000;

constexpr std::array<std::string_view, 15> root_keys = {"schema", "version",  "title",   "trace",    "execution_trace",
                                                        "model",  "hardware", "what_if", "memory",   "offload",
                                                        "plan",   "replay",   "note",    "capacity", "procurement"};
constexpr std::array<std::string_view, 4> hardware_keys = {"profile", "captured_on", "set", "jitter"};
constexpr std::array<std::string_view, 3> jitter_keys = {"seed", "sigma", "slow_stages"};
constexpr std::array<std::string_view, 6> what_if_keys = {"gpu", "compute", "memory", "host", "pcie", "network"};
constexpr std::array<std::string_view, 4> memory_keys = {"allocator", "config", "plan", "capacity_bytes"};
constexpr std::array<std::string_view, 18> offload_keys = {"technique",
                                                           "tier",
                                                           "route",
                                                           "drive_set",
                                                           "drives",
                                                           "drive_count",
                                                           "workers",
                                                           "in_flight_bytes",
                                                           "prefetch",
                                                           "chunk_leaves",
                                                           "adaptive",
                                                           "keep_last",
                                                           "least_elements",
                                                           "adaptive_bandwidth",
                                                           "budget_bytes",
                                                           "least_life_years",
                                                           "drive_free_bytes",
                                                           "drive_used_percent"};
constexpr std::array<std::string_view, 1> replay_keys = {"tie_order"};
constexpr std::array<std::string_view, 12> capacity_keys = {"axis",   "from",        "to",      "step",
                                                            "goal",   "techniques",  "layouts", "machines",
                                                            "drives", "constraints", "replays", "prices"};
constexpr std::array<std::string_view, 6> constraint_keys = {"step_time_seconds", "tokens_per_second", "mfu",
                                                             "life_years",        "budget_usd",        "power_kw"};

constexpr std::array<std::string_view, 23> procurement_key_list = {"tokens",
                                                                   "deadline_days",
                                                                   "runs",
                                                                   "machines",
                                                                   "gpus",
                                                                   "techniques",
                                                                   "drives",
                                                                   "drives_per_gpu",
                                                                   "route",
                                                                   "least_life_years",
                                                                   "used_prices",
                                                                   "period_months",
                                                                   "utilisation",
                                                                   "used_percent",
                                                                   "write_amplification",
                                                                   "retention",
                                                                   "tensor_parallel",
                                                                   "pipeline_parallel",
                                                                   "micro_batch",
                                                                   "shortlist",
                                                                   "replays",
                                                                   "prices",
                                                                   "note"};

std::vector<std::string_view> model_keys() {
  std::vector<std::string_view> keys = {"name", "layers"};
  for (const std::string& key : training_setup_keys()) keys.emplace_back(key);
  return keys;
}

class Reader : private JsonFields {
 public:
  Reader(std::string name, std::string folder)
      : JsonFields(std::move(name), "see docs/schemas/scenario.schema.json"), folder_(std::move(folder)) {}

  Scenario read(const Json& root) {
    Scenario scenario;
    check_header(root);
    known(root, "", root_keys);
    static_cast<void>(text(root, "", "note"));
    scenario.title = text(root, "", "title");
    scenario.trace = file(root, "trace");
    scenario.execution_trace = file(root, "execution_trace");
    if (root.contains("model")) read_model(root["model"], scenario);
    if (root.contains("hardware")) read_hardware(root["hardware"], scenario);
    if (root.contains("what_if")) read_what_if(root["what_if"], scenario);
    if (root.contains("memory")) read_memory(root["memory"], scenario);
    if (root.contains("offload")) read_offload(root["offload"], scenario.offload);
    if (root.contains("capacity")) read_capacity(root["capacity"], scenario);
    if (root.contains("procurement")) {
      known(root["procurement"], "/procurement", procurement_key_list);
      scenario.procurement = root["procurement"].dump();
    }
    scenario.plan = file(root, "plan");
    if (root.contains("replay")) read_replay(root["replay"], scenario);
    set_pipeline_offload(root, scenario);
    check_whole(scenario);
    return scenario;
  }

 private:
  void check_header(const Json& root) const {
    if (!root.is_object()) fail("", "a scenario is a JSON object", "see docs/schemas/scenario.schema.json");
    if (text(root, "", "schema") != "spillway-scenario")
      fail("/schema", "not a scenario", R"(give it "schema": "spillway-scenario")");
    if (!root.contains("version") || !root["version"].is_number_integer())
      fail("/version", "no version", "give it \"version\": " + std::to_string(scenario_version));
    const auto version = root["version"].get<std::int64_t>();
    if (version > scenario_version)
      fail("/version",
           "version " + std::to_string(version) + " is newer than this program's " + std::to_string(scenario_version),
           "use a newer spillway, or write the scenario anew");
    if (version < 1) fail("/version", "version " + std::to_string(version) + " never existed", "use version 1");
  }

  [[nodiscard]] std::string file(const Json& object, const std::string& key, const std::string& place = "") const {
    const std::string value = text(object, place, key);
    if (value.empty() || value.front() == '/') return value;
    return (std::filesystem::path(folder_) / value).lexically_normal().string();
  }
  [[nodiscard]] std::string name_or_file(const std::string& name) const { return name_seen_from(folder_, name); }

  void read_model(const Json& model, Scenario& scenario) const {
    if (!model.is_object()) fail("/model", "expected an object", R"(write {"name": "llama-3-8b", ...})");
    known(model, "/model", model_keys());
    for (const auto& [key, value] : model.items()) {
      const std::string place = "/model/" + key;
      const std::string as_text = setting_text(value);
      if (key == "name") {
        scenario.model = text(model, "/model", "name");
        continue;
      }
      if (key == "layers") {
        if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > most_layers)
          fail(place, "expected a whole number from 1 to " + std::to_string(most_layers),
               "leave it out for the model's own");
        scenario.layers = value.get<std::int64_t>();
        continue;
      }
      try {
        set_field(scenario.training, key, as_text);
      } catch (const InputError& error) {
        fail(place, error.cause(), error.remedy());
      }
    }
    std::string& schedule = scenario.training.pipeline_schedule;
    if (schedule.ends_with(".json")) schedule = name_or_file(schedule);
    if (scenario.model.empty()) fail("/model", "no name", "name a bundled model, such as llama-3-8b, or a model file");
    scenario.model = name_or_file(scenario.model);
  }

  // A schedule that moves activations is a technique of its own.
  void set_pipeline_offload(const Json& root, Scenario& scenario) const {
    if (!moves_activations(scenario.training.pipeline_schedule)) return;
    OffloadSettings& offload = scenario.offload;
    if (offload.moves())
      fail("/offload/technique", scenario.training.pipeline_schedule + " moves activations by itself",
           "leave it out, or take schedule po-uniform");
    if (root.contains("offload") && root["offload"].contains("tier") && offload.tier != Tier::host)
      fail("/offload/tier", scenario.training.pipeline_schedule + " moves no activations to drives", "leave it out");
    offload.technique = moved_by_schedule;
    offload.tier = Tier::host;
  }

  void read_capacity(const Json& capacity, Scenario& scenario) const {
    known(capacity, "/capacity", capacity_keys);
    if (capacity.contains("constraints")) known(capacity["constraints"], "/capacity/constraints", constraint_keys);
    scenario.capacity = capacity.dump();
  }

  void read_hardware(const Json& hardware, Scenario& scenario) const {
    known(hardware, "/hardware", hardware_keys);
    scenario.hardware = name_or_file(text(hardware, "/hardware", "profile"));
    scenario.captured_on = name_or_file(text(hardware, "/hardware", "captured_on"));
    if (hardware.contains("jitter")) read_jitter(hardware["jitter"], scenario.jitter);
    if (!hardware.contains("set")) return;
    if (!hardware["set"].is_object())
      fail("/hardware/set", "expected an object", R"(write {"gpu.memory_bandwidth": "x0.5"})");
    for (const auto& [key, value] : hardware["set"].items())
      scenario.hardware_overrides.emplace_back(key, setting_text(value));
  }

  void read_jitter(const Json& jitter, Jitter& into) const {
    const std::string place = "/hardware/jitter";
    known(jitter, place, jitter_keys);
    if (jitter.contains("seed")) {
      if (!jitter["seed"].is_number_unsigned()) fail(place + "/seed", "expected a whole number", "give 0 or more");
      into.seed = jitter["seed"].get<std::uint64_t>();
    }
    into.sigma = number(jitter, place, "sigma", into.sigma, 0, 0.5);
    if (!jitter.contains("slow_stages")) return;
    const Json& stages = jitter["slow_stages"];
    const bool is_list = stages.is_array() && std::all_of(stages.begin(), stages.end(), [](const Json& one) {
                           return one.is_array() && one.size() == 2 && one[0].is_number_integer();
                         });
    if (!is_list) fail(place + "/slow_stages", "expected [[stage, factor], ...]", "write [[3, 1.2]]");
    for (const Json& one : stages)
      into.slow_stages.emplace_back(one[0].get<std::int64_t>(),
                                    number(Json::object({{"slow_stages", one[1]}}), place, "slow_stages", 1, 0.1, 100));
  }

  void read_what_if(const Json& what_if, Scenario& scenario) const {
    known(what_if, "/what_if", what_if_keys);
    RelativeSpeed& speed = scenario.what_if;
    const double gpu = factor(what_if, "gpu");
    speed.compute = gpu * factor(what_if, "compute");
    speed.memory = gpu * factor(what_if, "memory");
    speed.host = factor(what_if, "host");
    speed.pcie = factor(what_if, "pcie");
    speed.network = factor(what_if, "network");
  }
  [[nodiscard]] double factor(const Json& object, const std::string& key) const {
    if (!object.contains(key)) return 1;
    const std::string place = "/what_if/" + key;
    if (!object[key].is_number()) fail(place, "expected a number", "write how many times as fast, such as 2 or 0.5");
    const auto value = object[key].get<double>();
    if (!std::isfinite(value) || value < 1e-6 || value > 1e6)
      fail(place, "a speed factor must lie between 0.000001 and 1,000,000", "2 is twice as fast, 0.5 half as fast");
    return value;
  }

  void read_memory(const Json& memory, Scenario& scenario) const {
    known(memory, "/memory", memory_keys);
    if (memory.contains("allocator")) {
      scenario.allocator = text(memory, "/memory", "allocator");
      scenario.allocator_named = true;
    }
    scenario.allocator_config = text(memory, "/memory", "config");
    scenario.memory_plan = file(memory, "plan", "/memory");
    if (!memory.contains("capacity_bytes")) return;
    const Json& capacity = memory["capacity_bytes"];
    if (!capacity.is_number_integer() || capacity.get<std::int64_t>() <= 0)
      fail("/memory/capacity_bytes", "expected a positive whole number", "give bytes");
    scenario.capacity_bytes = capacity.get<std::int64_t>();
  }

  void read_offload(const Json& offload, OffloadSettings& settings) const {
    known(offload, "/offload", offload_keys);
    if (const std::string wanted = text(offload, "/offload", "technique"); !wanted.empty()) {
      const std::optional<std::size_t> found = offload_words().find(wanted);
      if (!found)
        fail("/offload/technique", "no technique '" + wanted + "'", "take one of " + offload_words().listed());
      settings.technique = offload_words()[*found].name;
    }
    choose(offload, "tier", settings.tier, {Tier::drive, Tier::host});
    choose(offload, "prefetch", settings.ssdtrain.prefetch, {Prefetch::chunked, Prefetch::module, Prefetch::off});
    const std::string route = text(offload, "/offload", "route");
    if (!route.empty() && route != "gpudirect" && route != "bounce")
      fail("/offload/route", "no route '" + route + "'", "take gpudirect or bounce");
    settings.route = route == "bounce" ? DriveRoute::bounce : DriveRoute::gpudirect;
    settings.drive_set = text(offload, "/offload", "drive_set");
    settings.drives = name_or_file(text(offload, "/offload", "drives"));
    settings.drive_count = count(offload, "drive_count", settings.drive_count, 1, 64);
    settings.workers = count(offload, "workers", settings.workers, 2, 4096);
    settings.ssdtrain.chunk_leaves = count(offload, "chunk_leaves", settings.ssdtrain.chunk_leaves, 1, 1000);
    settings.ssdtrain.least_elements =
        count(offload, "least_elements", settings.ssdtrain.least_elements, 0, std::int64_t{1} << 40);
    if (offload.contains("in_flight_bytes"))
      settings.in_flight = Bytes(count(offload, "in_flight_bytes", 0, 0, std::int64_t{1} << 50));
    settings.adaptive_bytes_per_second =
        static_cast<double>(count(offload, "adaptive_bandwidth", 0, 0, std::int64_t{1} << 50));
    settings.budget = Bytes(count(offload, "budget_bytes", 0, 0, std::int64_t{1} << 50));
    DriveDemands& demands = settings.demands;
    demands.least_life_years = up_to(offload, "least_life_years", 1000, "years", "0 asks nothing of the drives");
    demands.used_fraction = up_to(offload, "drive_used_percent", 100, "percent", "0 is a new drive") / 100;
    if (offload.contains("drive_free_bytes"))
      demands.free = Bytes(count(offload, "drive_free_bytes", 0, 0, std::int64_t{1} << 60));
    settings.ssdtrain.adaptive = flag(offload, "adaptive", settings.ssdtrain.adaptive);
    settings.ssdtrain.keep_last = flag(offload, "keep_last", settings.ssdtrain.keep_last);
  }
  template <class Choice>
  void choose(const Json& object, const std::string& key, Choice& chosen, std::initializer_list<Choice> choices) const {
    const std::string wanted = text(object, "/offload", key);
    if (wanted.empty()) return;
    std::string names;
    for (const Choice choice : choices) {
      if (to_string(choice) == wanted) {
        chosen = choice;
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(to_string(choice));
    }
    fail("/offload/" + key, "no " + key + " '" + wanted + "'", "take one of " + names);
  }
  // A number of the offload object from 0 to `most`; 0 where it isn't given.
  [[nodiscard]] double up_to(const Json& object, const std::string& key, double most, const std::string& unit,
                             const std::string& remedy) const {
    if (!object.contains(key)) return 0;
    const Json& value = object[key];
    if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > most)
      fail("/offload/" + key, "expected " + unit + " from 0 to " + std::to_string(static_cast<int>(most)), remedy);
    return value.get<double>();
  }
  [[nodiscard]] std::int64_t count(const Json& object, const std::string& key, std::int64_t otherwise,
                                   std::int64_t least, std::int64_t most) const {
    if (!object.contains(key)) return otherwise;
    const Json& value = object[key];
    if (!value.is_number_integer() || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      fail("/offload/" + key, "expected a whole number from " + std::to_string(least) + " to " + std::to_string(most),
           "see docs/offload.md");
    return value.get<std::int64_t>();
  }
  [[nodiscard]] bool flag(const Json& object, const std::string& key, bool otherwise) const {
    if (!object.contains(key)) return otherwise;
    if (!object[key].is_boolean()) fail("/offload/" + key, "expected true or false", "write it without quotes");
    return object[key].get<bool>();
  }

  void read_replay(const Json& replay, Scenario& scenario) const {
    known(replay, "/replay", replay_keys);
    if (replay.contains("tie_order")) scenario.tie_order = text(replay, "/replay", "tie_order");
  }

  void check_whole(const Scenario& scenario) const {
    if (scenario.trace.empty() == scenario.model.empty())
      fail("", scenario.trace.empty() ? "neither a trace nor a model" : "both a trace and a model",
           "name exactly one: \"trace\": FILE or \"model\": {\"name\": ...}");
    if (!scenario.model.empty() && scenario.hardware.empty())
      fail("/hardware/profile", "a model needs hardware to run on", "name one of `spillway profile list`");
    if (!scenario.execution_trace.empty() && scenario.trace.empty())
      fail("/execution_trace", "an execution trace joins a timed trace", "name that one as \"trace\"");
  }

  std::string folder_;
};

Json parse_json(const std::string& text, const std::string& name) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw json_error(name, error, "correct it there; scenarios are JSON without comments");
  }
}

void apply_settings(Json& root, std::span<const std::string> settings) {
  if (root.is_object())
    for (const std::string& setting : settings) apply_setting(root, setting);
}

Scenario build(Json root, const std::string& name, const std::string& folder, std::span<const std::string> settings) {
  apply_settings(root, settings);
  return Reader(name, folder).read(root);
}

}  // namespace

std::span<const std::string_view> procurement_keys() { return procurement_key_list; }

std::vector<std::string> scenario_keys() {
  std::vector<std::string> keys(root_keys.begin(), root_keys.end());
  const auto add = [&keys](std::string_view object, JsonFields::Keys parts) {
    for (const std::string_view part : parts) keys.push_back(std::string(object) + "." + std::string(part));
  };
  add("model", model_keys());
  add("hardware", hardware_keys);
  add("hardware.jitter", jitter_keys);
  add("what_if", what_if_keys);
  add("memory", memory_keys);
  add("offload", offload_keys);
  add("replay", replay_keys);
  add("capacity", capacity_keys);
  add("capacity.constraints", constraint_keys);
  add("procurement", procurement_key_list);
  std::sort(keys.begin(), keys.end());
  return keys;
}

Scenario parse_scenario(const std::string& text, const std::string& name, const std::string& folder,
                        std::span<const std::string> settings) {
  Scenario scenario = build(parse_json(text, name), name, folder, settings);
  scenario.path = name;
  return scenario;
}

Scenario load_scenario(const std::string& path, std::span<const std::string> settings) {
  const std::string text = read_file(path, largest_scenario);
  Scenario scenario = parse_scenario(text, path, std::filesystem::path(path).parent_path().string(), settings);
  if (scenario.title.empty()) scenario.title = std::filesystem::path(path).stem().string();
  return scenario;
}

std::string scenario_text(const std::string& path, std::span<const std::string> settings) {
  Json root = parse_json(read_file(path, largest_scenario), path);
  apply_settings(root, settings);
  return root.dump();
}

Scenario scenario_for_trace(const std::string& trace_path, std::span<const std::string> settings) {
  Json root = {{"schema", "spillway-scenario"}, {"version", scenario_version}};
  root["trace"] = std::filesystem::absolute(trace_path).string();
  Scenario scenario = build(root, trace_path, "", settings);
  scenario.trace = trace_path;
  if (scenario.title.empty()) scenario.title = std::filesystem::path(trace_path).filename().string();
  return scenario;
}

bool is_scenario_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) return false;
  ByteSource source = ByteSource::open(path, largest_scenario);
  const auto head = source.peek(4096);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.find("\"spillway-scenario\"") != std::string_view::npos || path.ends_with(".scenario.json");
}

}  // namespace spillway::scenario
