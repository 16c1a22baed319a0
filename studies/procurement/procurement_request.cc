#include "studies/procurement/procurement_request.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/field_reader.h"
#include "base/field_rows.h"
#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "hwprofiles/profile_library.h"
#include "planners/technique/technique_table.h"
#include "scenario/scenario_fields.h"
#include "scenario/scenario_run.h"
#include "studies/procurement/procurement_fields.h"
#include "studies/sweep/sweep_fields.h"
#include "studies/sweep/sweep_file.h"

namespace spillway::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t largest_file = 16U << 20U;

class Reader {
 public:
  Reader(const std::string& path, std::span<const std::string> settings, const ProcurementFlags& flags)
      : path_(path), flags_(flags) {
    made_.path = path;
    made_.folder = std::filesystem::path(path).parent_path().string();
    const std::string text = read_file(path, largest_file);
    if (document_schema(text) == sweep_schema_name) {
      if (!settings.empty())
        throw InputError("--set", "", "a sweep's points have their own settings", "change the sweep's base");
      const SweepFile sweep = load_sweep(path);
      made_.sweep = sweep.text;
      made_.title = sweep.title.empty() ? std::filesystem::path(path).stem().string() : sweep.title;
      read_section(sweep.procurement);
    } else {
      base_ = load_scenario(path, settings);
      made_.title = base_.title;
      text_ = scenario_text(path, settings);
      read_section(base_.procurement);
    }
  }

  ProcurementRequest read() {
    if (!made_.sweep.empty()) check_sweep();
    read_runs();
    made_.deadline_days = number("deadline_days", flags_.deadline_days, section_.deadline_days.value_or(0));
    made_.least_life_years = number("least_life_years", flags_.least_life_years, section_.least_life_years.value_or(0));
    made_.period_months = number("period_months", flags_.period_months, section_.period_months);
    made_.utilisation = number("utilisation", flags_.utilisation, section_.utilisation);
    made_.drives_per_gpu = whole("drives_per_gpu", flags_.drives_per_gpu, section_.drives_per_gpu);
    made_.shortlist = whole("shortlist", flags_.shortlist, section_.shortlist);
    made_.replays = section_.replays.value_or(24);
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
  void read_section(const std::string& text) {
    if (text.empty()) return;
    read_fields(Json::parse(text), path_, "/procurement",
                [this](FieldVisitor& visitor) { describe(section_, visitor); });
  }
  // A flag's own complaint names the flag.
  static double checked_flag(double value, const std::string& key) {
    for (const FieldRow& row : rows_of<ProcurementSection>()) {
      if (row.path != key || (value >= row.info.min && value <= row.info.max)) continue;
      std::string option = "--" + key.substr(0, key.find("_percent"));
      std::replace(option.begin(), option.end(), '_', '-');
      throw InputError("", option, "expected a " + row.takes(), "see docs/how-to/buy-or-rent.md");
    }
    return value;
  }
  [[nodiscard]] static double number(const char* key, const std::optional<double>& flag, double given) {
    return flag ? checked_flag(*flag, key) : given;
  }
  [[nodiscard]] static std::int64_t whole(const char* key, const std::optional<std::int64_t>& flag,
                                          std::int64_t given) {
    return flag ? static_cast<std::int64_t>(checked_flag(static_cast<double>(*flag), key)) : given;
  }
  template <class List>
  [[nodiscard]] static const List& either(const List& flag, const List& given) {
    return flag.empty() ? given : flag;
  }

  // A sweep's points are the options, so what would make others is refused, and all must train alike.
  void check_sweep() const {
    const auto own = [&](bool given, const char* key) {
      if (given)
        fail(key, "a sweep's points are the options, and they have their own", "leave it out, or change the axes");
    };
    own(!section_.machines.empty(), "machines");
    own(!section_.gpus.empty(), "gpus");
    own(!section_.techniques.empty(), "techniques");
    own(!section_.tensor_parallel.empty(), "tensor_parallel");
    own(!section_.pipeline_parallel.empty(), "pipeline_parallel");
    own(!section_.micro_batch.empty(), "micro_batch");
    own(section_.replays.has_value(), "replays");
    own(section_.today.has_value(), "today");
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
    if (!section_.runs.empty() && !flags_.tokens) {
      if (section_.tokens) fail("tokens", "runs have their own tokens", "leave one of the two out");
      if (!made_.sweep.empty()) fail("runs", "a sweep's points are of one run", "give tokens, or take a scenario");
      for (std::size_t i = 0; i < section_.runs.size(); ++i) add_run(section_.runs[i], "runs/" + std::to_string(i));
      return;
    }
    ProgrammeRun run{made_.title, number("tokens", flags_.tokens, section_.tokens.value_or(0)), text_};
    if (run.tokens == 0)
      fail("tokens", "how many tokens are to be trained isn't said",
           R"(add "procurement": {"tokens": 1e12}, or give --tokens)");
    made_.runs.push_back(std::move(run));
  }
  void add_run(const ProcurementSection::Run& run, const std::string& place) {
    ProgrammeRun made{run.name, run.tokens.value_or(0), ""};
    for (const ProgrammeRun& other : made_.runs)
      if (other.name == made.name) fail(place + "/name", "two runs are named '" + made.name + "'", "rename one");
    Json root = Json::parse(text_);
    if (run.set) root.merge_patch(Json::parse(*run.set));
    made.scenario = root.dump();
    static_cast<void>(parse_scenario(made.scenario, path_, made_.folder));
    made_.runs.push_back(std::move(made));
  }

  void read_endurance() {
    EnduranceOptions& options = made_.endurance;
    options.used_fraction = number("used_percent", flags_.used_percent, section_.used_percent) / 100;
    options.write_amplification =
        number("write_amplification", flags_.write_amplification, section_.write_amplification);
    options.retention = word(flags_.retention, section_.retention, retention_words(), "--retention");
    made_.route = word(flags_.route, section_.route, route_words(), "--route");
  }
  template <class Enum>
  [[nodiscard]] static Enum word(const std::string& flag, Enum given, const Words& words, const char* option) {
    if (flag.empty()) return given;
    const auto found = words.find(flag);
    if (!found)
      throw InputError("", option, "no '" + flag + "'", suggest(flag, words.names(), "take one of " + words.listed()));
    return static_cast<Enum>(*found);
  }

  void read_prices() {
    const std::string prices = price_file(flags_.prices, section_.prices, made_.folder);
    std::vector<std::string> own;
    for (const std::string& machine : made_.machines) own.push_back(ProfileLibrary::shared().load_system(machine).name);
    for (const NvmeProfile& drive : made_.drives) own.push_back(drive.name);
    const std::string& date = flags_.prices_date.empty() ? section_.prices_date : flags_.prices_date;
    made_.prices = PriceList::load(prices, own, date);
    made_.prices.takes_any_condition = flags_.used_prices || section_.used_prices;
  }

  [[nodiscard]] Candidate technique(const std::string& name, const std::string& key) const {
    return {name, settings_named(name, path_, "/procurement/" + key)};
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
      static_cast<void>(hardware_of(scenario));  // overrides that no machine takes would make every option fail
    }
    made_.machines = either(flags_.machines, section_.machines);
    if (made_.machines.empty()) made_.machines = {base_.hardware};
    std::int64_t most_in_machine = 1;
    for (const std::string& machine : made_.machines)
      most_in_machine = std::max(most_in_machine, ProfileLibrary::shared().load_system(machine).gpu_count);
    for (const std::int64_t gpus : flags_.gpus) static_cast<void>(checked_flag(static_cast<double>(gpus), "gpus"));
    made_.gpus = either(flags_.gpus, section_.gpus);
    if (made_.gpus.empty())
      made_.gpus = {
          std::max(base_.training.gpus(), ProfileLibrary::shared().load_system(made_.machines.front()).gpu_count)};
    std::vector<std::string> names = either(flags_.techniques, section_.techniques);
    if (names.empty()) {
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
        names.push_back(recompute_way(recompute));
      names.emplace_back(ssdtrain_word);
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      made_.techniques.push_back(technique(names[i], "techniques/" + std::to_string(i)));
    static_cast<LayoutSizes&>(made_) = or_usual(section_, most_in_machine);
    if (!section_.today) return;
    const std::string& named = section_.today->technique;
    static_cast<void>(ProfileLibrary::shared().load_system(section_.today->machine));  // is there
    made_.today = {section_.today->machine, section_.today->gpus,
                   technique(named.empty() ? recompute_way(Recompute::none) : named, "today/technique")};
  }

  // The library's own are those for servers whose profile says enough to judge them.
  void read_drives() {
    const ProfileLibrary& library = ProfileLibrary::shared();
    const std::vector<std::string> names = either(flags_.drives, section_.drives);
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
  ProcurementSection section_;
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
