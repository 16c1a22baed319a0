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
  Reader(const std::string& path, std::span<const std::string> settings, const ProcurementSection& said) : path_(path) {
    made_.path = path;
    made_.folder = std::filesystem::path(path).parent_path().string();
    if (document_schema(read_file(path, largest_file)) == sweep_schema_name) {
      if (!settings.empty())
        throw InputError("--set", "", "a sweep's points have their own settings", "change the sweep's base");
      sweep_ = load_sweep(path);
      made_.sweep = sweep_->text;
      made_.title = sweep_->title.empty() ? std::filesystem::path(path).stem().string() : sweep_->title;
    } else {
      base_ = load_scenario(path, settings);
      made_.title = base_.title;
      text_ = scenario_text(path, settings);
    }
    asked_.emplace(path, "procurement", sweep_ ? sweep_->procurement : base_.procurement, said, section_);
    static_cast<ProcurementTerms&>(made_) = section_;
  }

  ProcurementRequest read() {
    require_inputs();
    if (sweep_) check_sweep();
    read_runs();
    made_.deadline_days = section_.deadline_days.value_or(0);
    made_.least_life_years = section_.least_life_years.value_or(0);
    made_.replays = section_.replays.value_or(24);
    made_.endurance.used_fraction = section_.used_percent / 100;
    made_.endurance.write_amplification = section_.write_amplification;
    made_.endurance.retention = section_.retention;
    if (!sweep_) read_options();
    read_drives();
    read_prices();
    return std::move(made_);
  }

 private:
  // All that is missing at once.
  void require_inputs() const {
    const bool has_runs = !section_.runs.empty() && !asked_->is_said("tokens");
    const TrainingSetup training = sweep_ ? parse_scenario(sweep_->base, path_, made_.folder).training : base_.training;
    if (has_runs || section_.tokens.value_or(0) > 0 || training.global_batch > 0) return;
    throw InputError(path_, "/procurement",
                     "two things are not said: how many tokens are to be trained, and the batch of a step, which "
                     "would depend on the layout",
                     sweep_ ? R"(give --tokens 1T, and "global_batch": 1024 in the base's model)"
                            : "give --tokens 1T --set model.global_batch=1024");
  }
  // A sweep's points are the options, so what would make others is refused, and all must train alike.
  void check_sweep() const {
    for (const char* key :
         {"machines", "gpus", "techniques", "tensor_parallel", "pipeline_parallel", "micro_batch", "replays", "today"})
      if (asked_->is_given(key))
        asked_->fail(key, "a sweep's points are the options, and they have their own",
                     "leave it out, or change the sweep's axes");
    const SweepFile& sweep = *sweep_;
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
    if (!section_.runs.empty() && !asked_->is_said("tokens")) {
      if (section_.tokens) asked_->fail("tokens", "runs have their own tokens", "leave one of the two out");
      if (sweep_) asked_->fail("runs", "a sweep's points are of one run", "give tokens, or take a scenario");
      for (std::size_t i = 0; i < section_.runs.size(); ++i) add_run(section_.runs[i], "runs/" + std::to_string(i));
      return;
    }
    ProgrammeRun run{made_.title, section_.tokens.value_or(0), text_};
    if (run.tokens == 0) asked_->fail("tokens", "how many tokens are to be trained isn't said", "give --tokens 1T");
    made_.runs.push_back(std::move(run));
  }
  void add_run(const ProcurementSection::Run& run, const std::string& place) {
    ProgrammeRun made{run.name, run.tokens.value_or(0), ""};
    for (const ProgrammeRun& other : made_.runs)
      if (other.name == made.name)
        asked_->fail(place + "/name", "two runs are named '" + made.name + "'", "rename one");
    Json root = Json::parse(text_);
    if (run.set) root.merge_patch(Json::parse(*run.set));
    made.scenario = root.dump();
    static_cast<void>(parse_scenario(made.scenario, path_, made_.folder));
    made_.runs.push_back(std::move(made));
  }

  void read_prices() {
    std::vector<std::string> own;
    for (const std::string& machine : made_.machines) own.push_back(ProfileLibrary::shared().load_system(machine).name);
    for (const NvmeProfile& drive : made_.drives) own.push_back(drive.name);
    made_.prices = PriceList::load(asked_->path_of("prices", section_.prices), own, section_.prices_date);
    made_.prices.takes_any_condition = section_.used_prices;
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
                         "fix it, so that layouts train alike: --set model.global_batch=1024");
      static_cast<void>(hardware_of(scenario));  // overrides that no machine takes would make every option fail
    }
    if (made_.machines.empty()) made_.machines = {base_.hardware};
    std::int64_t most_in_machine = 1;
    for (const std::string& machine : made_.machines)
      most_in_machine = std::max(most_in_machine, ProfileLibrary::shared().load_system(machine).gpu_count);
    if (made_.gpus.empty())
      made_.gpus = {
          std::max(base_.training.gpus(), ProfileLibrary::shared().load_system(made_.machines.front()).gpu_count)};
    std::vector<std::string> names = section_.techniques;
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
    const std::vector<std::string>& names = section_.drives;
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
  Scenario base_;
  std::string text_;  // its JSON
  std::optional<SweepFile> sweep_;
  ProcurementSection section_;
  std::optional<AskedSection> asked_;
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
                                            const ProcurementSection& said) {
  return Reader(path, settings, said).read();
}

}  // namespace spillway::studies
