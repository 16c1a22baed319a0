#include "studies/procurement/procurement_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "hwprofiles/profile_library.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario.h"
#include "scenario/scenario_run.h"
#include "studies/offload/ssd_answer.h"
#include "studies/sweep/layout_sweep.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> run_keys = {"name", "tokens", "set"};
constexpr std::uint64_t largest_file = 16U << 20U;
constexpr std::int64_t most_gpus = 1 << 20;

bool is_sweep(const std::string& path) {
  const std::string text = read_file(path, largest_file);
  const Json root = Json::parse(text, nullptr, false);
  return root.is_object() && root.value("schema", Json()) == "spillway-sweep";
}

class Reader {
 public:
  Reader(const std::string& path, std::span<const std::string> settings, const ProcurementFlags& flags)
      : path_(path), flags_(flags) {
    made_.path = path;
    made_.folder = std::filesystem::path(path).parent_path().string();
    if (is_sweep(path)) {
      if (!settings.empty())
        throw InputError("--set", "", "a sweep's points have their own settings", "change the sweep's base");
      const SweepFile sweep = load_sweep(path);
      made_.sweep = sweep.text;
      made_.title = sweep.title.empty() ? std::filesystem::path(path).stem().string() : sweep.title;
      if (!sweep.procurement.empty()) section_ = Json::parse(sweep.procurement);
    } else {
      base_ = load_scenario(path, settings);
      made_.title = base_.title;
      text_ = scenario_text(path, settings);
      if (!base_.procurement.empty()) section_ = Json::parse(base_.procurement);
    }
  }

  ProcurementRequest read() {
    known(section_, "/procurement", procurement_keys());
    if (!made_.sweep.empty()) check_sweep();
    read_runs();
    made_.deadline_days = number("deadline_days", flags_.deadline_days, 0, 1e-6, 1e6);
    made_.least_life_years = number("least_life_years", flags_.least_life_years, 0, 0.001, 1000);
    made_.period_months = number("period_months", flags_.period_months, 36, 0.1, 1200);
    made_.utilisation = number("utilisation", flags_.utilisation, 0.9, 0.001, 1);
    made_.drives_per_gpu = whole("drives_per_gpu", flags_.drives_per_gpu, 8, 1, 64);
    made_.shortlist = whole("shortlist", flags_.shortlist, 6, 1, 50);
    made_.replays = whole("replays", {}, 24, 1, 100'000);
    read_endurance();
    if (made_.sweep.empty()) read_options();
    read_drives();
    read_prices();
    return std::move(made_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& cause, const std::string& remedy) const {
    throw InputError(path_, "/procurement/" + key, cause, remedy);
  }
  void known(const Json& object, const std::string& place, std::span<const std::string_view> names) const {
    if (!object.is_object()) throw InputError(path_, place, "expected an object", "see docs/procurement.md");
    for (const auto& [key, value] : object.items())
      if (std::find(names.begin(), names.end(), key) == names.end())
        throw InputError(path_, place + "/" + key, "unknown key '" + key + "'", suggest(key, names));
  }
  [[nodiscard]] static bool is_within(double value, double least, double most) {
    return value >= least && value <= most;  // not NaN
  }
  [[nodiscard]] double checked(const Json& value, const std::string& key, double least, double most) const {
    if (!value.is_number() || !is_within(value.get<double>(), least, most))
      fail(key, "expected a number from " + Json(least).dump() + " to " + Json(most).dump(), "see docs/procurement.md");
    return value.get<double>();
  }
  // A flag's own complaint names the flag.
  static double checked_flag(double value, const std::string& key, double least, double most) {
    if (is_within(value, least, most)) return value;
    std::string option = "--" + key.substr(0, key.find("_percent"));
    std::replace(option.begin(), option.end(), '_', '-');
    throw InputError("", option, "expected a number from " + Json(least).dump() + " to " + Json(most).dump(),
                     "see docs/procurement.md");
  }
  [[nodiscard]] double number(const char* key, const std::optional<double>& flag, double otherwise, double least,
                              double most) const {
    if (flag.has_value()) return checked_flag(flag.value(), key, least, most);
    return section_.contains(key) ? checked(section_[key], key, least, most) : otherwise;
  }
  [[nodiscard]] std::int64_t whole(const char* key, const std::optional<std::int64_t>& flag, std::int64_t otherwise,
                                   std::int64_t least, std::int64_t most) const {
    const auto low = static_cast<double>(least), high = static_cast<double>(most);
    if (flag.has_value())
      return static_cast<std::int64_t>(checked_flag(static_cast<double>(flag.value()), key, low, high));
    if (!section_.contains(key)) return otherwise;
    const double value = checked(section_[key], key, low, high);
    if (value != std::floor(value)) fail(key, "expected a whole number", "see docs/procurement.md");
    return static_cast<std::int64_t>(value);
  }
  [[nodiscard]] std::string text(const char* key, const std::string& flag) const {
    if (!flag.empty() || !section_.contains(key)) return flag;
    if (!section_[key].is_string()) fail(key, "expected a text", "put it in quotes");
    return section_[key].get<std::string>();
  }
  [[nodiscard]] std::vector<std::string> texts(const char* key, const std::vector<std::string>& flag) const {
    if (!flag.empty() || !section_.contains(key)) return flag;
    const Json& list = section_[key];
    const bool sound = list.is_array() && !list.empty() &&
                       std::all_of(list.begin(), list.end(), [](const Json& each) { return each.is_string(); });
    if (!sound) fail(key, "expected a list of names", R"(write ["a", "b"])");
    return list.get<std::vector<std::string>>();
  }
  [[nodiscard]] std::vector<std::int64_t> wholes(const char* key, const std::vector<std::int64_t>& flag) const {
    std::vector<std::int64_t> values = flag;
    if (flag.empty() && section_.contains(key)) {
      const Json& list = section_[key];
      if (!list.is_array() || list.empty()) fail(key, "expected a list of whole numbers", "write [1, 2, 4]");
      for (const Json& each : list) {
        if (!each.is_number_integer()) fail(key, "expected a list of whole numbers", "write [1, 2, 4]");
        values.push_back(each.get<std::int64_t>());
      }
    }
    for (const std::int64_t value : values)
      if (value < 1 || value > most_gpus) fail(key, "expected whole numbers from 1 to 1048576", "correct the list");
    return values;
  }

  // A sweep's points are the options, so what would make others is refused, and all must train alike.
  void check_sweep() const {
    for (const char* key :
         {"machines", "gpus", "techniques", "tensor_parallel", "pipeline_parallel", "micro_batch", "replays"})
      if (section_.contains(key))
        fail(key, "a sweep's points are the options, and they have their own", "leave it out, or change the axes");
    const auto flag = [](bool given, const char* name) {
      if (given)
        throw InputError("", name, "a sweep's points are the options, and they have their own",
                         "leave it out, or change the sweep's axes");
    };
    flag(!flags_.machines.empty(), "--machines");
    flag(!flags_.gpus.empty(), "--gpus");
    flag(!flags_.techniques.empty(), "--technique");
    const SweepFile sweep = parse_sweep(made_.sweep, path_, made_.folder);
    for (const char* key : {"model.name", "model.layers", "model.sequence", "model.global_batch"}) {
      const auto sets = [&](const std::string& name, const std::string& place) {
        if (name == key)
          throw InputError(path_, place, "points with different '" + name + "' train different things",
                           "give one in the base, and a sweep for each");
      };
      for (std::size_t a = 0; a < sweep.axes.size(); ++a)
        for (const SweepOption& option : sweep.axes[a].options)
          for (const auto& [name, value] : option.settings) sets(name, "/axes/" + std::to_string(a));
      for (std::size_t d = 0; d < sweep.derived.size(); ++d)
        sets(sweep.derived[d].key, "/derived/" + std::to_string(d));
    }
    const Scenario base = parse_scenario(sweep.base, path_, made_.folder);
    if (base.model.empty())
      throw InputError(path_, "/base", "a captured trace says nothing of tokens", "sweep over a model");
    if (base.training.global_batch == 0)
      throw InputError(path_, "/base/model/global_batch", "the batch of a step depends on the point",
                       "fix it, so that all points train alike: \"global_batch\": 1024");
  }

  void read_runs() {
    if (section_.contains("runs") && !flags_.tokens) {
      if (section_.contains("tokens")) fail("tokens", "runs have their own tokens", "leave one of the two out");
      if (!made_.sweep.empty()) fail("runs", "a sweep's points are of one run", "give tokens, or take a scenario");
      if (!section_["runs"].is_array() || section_["runs"].empty())
        fail("runs", "expected a list of runs", R"(write [{"name": "8B", "tokens": 1e12, "set": {...}}])");
      for (std::size_t i = 0; i < section_["runs"].size(); ++i)
        add_run(section_["runs"][i], "runs/" + std::to_string(i));
      return;
    }
    ProgrammeRun run{made_.title, number("tokens", flags_.tokens, 0, 1, 1e18), text_};
    if (run.tokens == 0)
      fail("tokens", "how many tokens are to be trained isn't said",
           R"(add "procurement": {"tokens": 1e12}, or give --tokens)");
    made_.runs.push_back(std::move(run));
  }
  void add_run(const Json& run, const std::string& place) {
    known(run, "/procurement/" + place, run_keys);
    if (!run.contains("name") || !run["name"].is_string() || run["name"].get<std::string>().empty())
      fail(place + "/name", "a run has a name", "add one");
    ProgrammeRun made{run["name"].get<std::string>(), 0, ""};
    for (const ProgrammeRun& other : made_.runs)
      if (other.name == made.name) fail(place + "/name", "two runs are named '" + made.name + "'", "rename one");
    if (!run.contains("tokens")) fail(place + "/tokens", "a run has tokens to train", R"(add "tokens": 1e12)");
    made.tokens = checked(run["tokens"], place + "/tokens", 1, 1e18);
    Json root = Json::parse(text_);
    if (run.contains("set")) {
      if (!run["set"].is_object()) fail(place + "/set", "expected an object", "give keys of a scenario");
      root.merge_patch(run["set"]);
    }
    made.scenario = root.dump();
    static_cast<void>(parse_scenario(made.scenario, path_, made_.folder));
    made_.runs.push_back(std::move(made));
  }

  void read_endurance() {
    EnduranceOptions& options = made_.endurance;
    options.used_fraction = number("used_percent", flags_.used_percent, 0, 0, 99.9) / 100;
    options.write_amplification = number("write_amplification", flags_.write_amplification, 1, 1, 1000);
    const std::string retention = text("retention", flags_.retention);
    const auto relaxation = find_retention(retention.empty() ? "rated" : retention);
    if (!relaxation) fail("retention", "no retention '" + retention + "'", "take rated, weeks or day");
    options.retention = *relaxation;
    const std::string route = text("route", flags_.route);
    const auto way = find_route(route.empty() ? "gpudirect" : route);
    if (!way) fail("route", "no route '" + route + "'", "take gpudirect or bounce");
    made_.route = *way;
  }

  void read_prices() {
    std::string prices = flags_.prices;
    if (prices.empty() && section_.contains("prices")) {
      const std::filesystem::path given = text("prices", "");
      prices = (given.is_absolute() ? given : std::filesystem::path(made_.folder) / given).lexically_normal().string();
    }
    std::vector<std::string> own;
    for (const std::string& machine : made_.machines) own.push_back(ProfileLibrary::shared().load_system(machine).name);
    for (const NvmeProfile& drive : made_.drives) own.push_back(drive.name);
    made_.prices = PriceList::load(prices, own);
    if (section_.contains("used_prices") && !section_["used_prices"].is_boolean())
      fail("used_prices", "expected true or false", "true: used and discontinued drives may be bought");
    made_.prices.takes_any_condition = flags_.used_prices || section_.value("used_prices", false);
  }

  void read_options() {
    if (base_.model.empty())
      throw InputError(path_, "/model", "a captured trace fixes its machine and its layout",
                       "name a model, for which layouts and machines can be searched");
    for (const ProgrammeRun& run : made_.runs) {
      const Scenario scenario = parse_scenario(run.scenario, path_, made_.folder);
      if (scenario.training.global_batch == 0)
        throw InputError(path_, "/model/global_batch", "the batch of a step depends on the layout",
                         "fix it, so that layouts train alike: \"global_batch\": 1024");
      check_hardware(scenario);
    }
    made_.machines = texts("machines", flags_.machines);
    if (made_.machines.empty()) made_.machines = {base_.hardware};
    std::int64_t most_in_machine = 1;
    for (const std::string& machine : made_.machines)
      most_in_machine = std::max(most_in_machine, ProfileLibrary::shared().load_system(machine).gpu_count);
    made_.gpus = wholes("gpus", flags_.gpus);
    if (made_.gpus.empty())
      made_.gpus = {
          std::max(base_.training.gpus(), ProfileLibrary::shared().load_system(made_.machines.front()).gpu_count)};
    std::vector<std::string> names = texts("techniques", flags_.techniques);
    if (names.empty()) {
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
        names.push_back(recompute_way(recompute));
      names.emplace_back(ssdtrain_word);
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      made_.techniques.push_back(named_technique(names[i], path_, "/procurement/techniques/" + std::to_string(i)));
    const auto sizes = [&](const char* key, std::int64_t most) {
      const std::vector<std::int64_t> given = wholes(key, {});
      return given.empty() ? powers_of_two(most) : given;
    };
    made_.tensor_parallel = sizes("tensor_parallel", most_in_machine);
    made_.pipeline_parallel = sizes("pipeline_parallel", 16);
    made_.micro_batch = sizes("micro_batch", 8);
  }

  // Overrides that no machine takes would make every option fail.
  void check_hardware(const Scenario& scenario) const {
    try {
      static_cast<void>(hardware_of(scenario));
    } catch (const InputError& error) {
      throw InputError(error.file().empty() ? path_ : error.file(), error.place().empty() ? "/hardware" : error.place(),
                       error.cause(), error.remedy().empty() ? "correct hardware.set" : error.remedy());
    }
  }

  // The library's own are those for servers whose profile says enough to judge them.
  void read_drives() {
    const ProfileLibrary& library = ProfileLibrary::shared();
    const std::vector<std::string> names = texts("drives", flags_.drives);
    for (const std::string& name : names) made_.drives.push_back(library.load_nvme(name));
    if (!names.empty()) {
      const bool any = std::any_of(made_.drives.begin(), made_.drives.end(), [](const NvmeProfile& drive) {
        return drive.read_bandwidth && drive.write_bandwidth;
      });
      if (!any)
        throw InputError(made_.drives.front().name, "", "its profile states no read and write rates",
                         "name a drive that does, or give them in a profile of your own");
      return;
    }
    for (const ProfileEntry& entry : library.list()) {
      if (entry.kind != ProfileKind::nvme) continue;
      NvmeProfile drive = library.load_nvme(entry.name);
      if (drive.segment != "enterprise") continue;
      const bool says_enough = drive.write_bandwidth && drive.read_bandwidth && drive.capacity &&
                               drive.pcie_generation.value >= 4 && drive_endurance(drive, made_.endurance).known;
      if (says_enough)
        made_.drives.push_back(std::move(drive));
      else
        made_.passed_over.push_back(entry.name);
    }
  }

  const std::string& path_;
  const ProcurementFlags& flags_;
  Scenario base_;
  std::string text_;
  Json section_ = Json::object();
  ProcurementRequest made_;
};

}  // namespace

double ProcurementRequest::tokens() const {
  return std::accumulate(runs.begin(), runs.end(), 0.0,
                         [](double sum, const ProgrammeRun& run) { return sum + run.tokens; });
}

double ProcurementRequest::days_there_are() const {
  return deadline_days > 0 ? std::min(deadline_days, period_days()) : period_days();
}

ProcurementRequest read_procurement_request(const std::string& path, std::span<const std::string> settings,
                                            const ProcurementFlags& flags) {
  return Reader(path, settings, flags).read();
}

}  // namespace spillway::studies
