#include "studies/offload/ssd_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/input_error.h"
#include "base/number_text.h"
#include "scenario/evaluator.h"
#include "scenario/relaxed_hardware.h"
#include "studies/offload/machine_load.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t most_drives = 64;
constexpr double year = 365.0 * 86400;

double mean_rate(Bytes bytes, Picos time) {
  return time > Picos(0) ? static_cast<double>(bytes.count()) / to_seconds(time) : 0;
}

// What the links carry to and from a set that so much is moved to, where they carry `links` of `one`.
Rate of_set(Rate links, Bytes of_set, Bytes of_one) {
  if (of_one <= Bytes(0) || of_set <= Bytes(0)) return links;
  const double times = static_cast<double>(of_set.count()) / static_cast<double>(of_one.count());
  return rate_from_bytes_per_second(to_bytes_per_second(links) * times);
}

std::vector<WriteStage> stages_of(const LoadedDrives& drives) {
  const double n = static_cast<double>(drives.count), link = to_bytes_per_second(drives.write_link);
  const auto rate = [&](Rate one) { return std::min(n * to_bytes_per_second(one), link); };
  std::vector<WriteStage> stages;
  const auto add = [&](double level, double at) {  // what fills so much of the cache while it drains
    const double left = at - n * to_bytes_per_second(drives.drive.cache->drain);
    if (left > 0) stages.push_back({n * level * at / left, at});
  };
  if (drives.drive.cache) {
    const NvmeModel::Cache& cache = *drives.drive.cache;
    const Bytes knee = cache.fold_level > Bytes(0) ? cache.fold_level : cache.size;
    add(static_cast<double>(knee.count()), rate(drives.drive.write));
    if (knee < cache.size) add(static_cast<double>((cache.size - knee).count()), rate(cache.fold));
  }
  stages.push_back({std::numeric_limits<double>::infinity(), rate(drives.drive.steady_write)});
  return stages;
}

// The machine with `count` drives instead of `size` in every set of one model.
HardwareProfile resized(const HardwareProfile& hardware, const NvmeProfile& drive, std::int64_t size,
                        std::int64_t count) {
  HardwareProfile changed = hardware;
  changed.drives.clear();
  for (const DriveGroup& group : hardware.drives) {
    if (group.drive.name != drive.name || (group.raid0 ? group.count : 1) != size) {
      changed.drives.push_back(group);
      continue;
    }
    for (std::int64_t i = 0; i < (group.raid0 ? 1 : group.count); ++i) {
      DriveGroup set = group;
      if (!group.raid0) set.name += "." + std::to_string(i);
      set.raid0 = true;
      set.count = count;
      changed.drives.push_back(std::move(set));
    }
  }
  assign_slots(changed, true);
  return changed;
}

// The machine's own sets of drives, one of each model and size.
struct OwnSet {
  NvmeProfile drive;
  std::int64_t count = 1;
  std::vector<std::size_t> numbers;  // of those alike
};
std::vector<OwnSet> own_sets(const HardwareProfile& hardware, std::int64_t& sets) {
  std::vector<OwnSet> found;
  sets = 0;
  for (const DriveGroup& group : hardware.drives) {
    const std::int64_t size = group.raid0 ? group.count : 1;
    auto known = std::find_if(found.begin(), found.end(), [&](const OwnSet& set) {
      return set.drive.name == group.drive.name && set.count == size;
    });
    if (known == found.end()) known = found.insert(found.end(), {group.drive, size, {}});
    for (std::int64_t i = 0; i < (group.raid0 ? 1 : group.count); ++i)
      known->numbers.push_back(static_cast<std::size_t>(sets++));
  }
  return found;
}

std::int64_t gpus_of(const LoadedScenario& loaded) {
  return loaded.scenario.model.empty() ? std::max<std::int64_t>(1, loaded.trace.rank_count) : loaded.setup.gpus();
}

LoadedScenario on_drives(LoadedScenario loaded, const NvmeProfile& drive, const SsdQuestion& question) {
  const std::int64_t in_machine = std::min(gpus_of(loaded), loaded.hardware.gpu_count);
  loaded.hardware =
      with_drives(loaded.hardware, drive, question.drives_per_set(), question.sets(in_machine), question.switch_lanes);
  return loaded;
}

// An offload's figures are those of one rank of each kind together.
void set_busiest(StepOnDrives& step, const Result& result) {
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(1, result.steps.size()));
  step.written = step.read = Bytes(0);
  for (const DriveTraffic& traffic : result.drives)
    for (const DriveSharer& sharer : traffic.sharers)
      if (sharer.written / steps > step.written) step.written = sharer.written / steps, step.read = sharer.read / steps;
}

class Asker {
 public:
  Asker(const LoadedScenario& loaded, const ScenarioRun& ran, const SsdQuestion& question)
      : loaded_(loaded), ran_(&ran), hardware_(loaded.hardware), question_(question) {
    answer_.traffic =
        question.replays ? unhindered_traffic(loaded, ran) : offload_traffic(ran.trace(loaded), ran.result);
    answer_.gpus = gpus_of(loaded);
    answer_.tokens_per_step = loaded.options.tokens_per_step;
    traffic_ = answer_.traffic;
    set_traffic();
    in_machine_ = std::min(answer_.gpus, hardware_.gpu_count);
    if (load().written() == Bytes(0) && ran.result.offload) answer_.kept_by_plan = ran.result.offload->candidates;
  }

  SsdAnswer answer() {
    if (question_.drives.empty()) {
      std::int64_t sets = 0;
      for (const OwnSet& set : own_sets(hardware_, sets))
        answer_.drives.push_back(ask(set.drive, set.count, machine_of(sets, set.numbers)));
    }
    const std::int64_t sets = question_.sets(in_machine_);
    for (std::size_t i = 0; i < question_.drives.size(); ++i) {
      const NvmeProfile& drive = question_.drives[i];
      std::optional<LoadedScenario> loaded;
      std::optional<ScenarioRun> ran;
      if (question_.replays && i > 0) {
        loaded = on_drives(loaded_, drive, question_);
        ran = run_traced(*loaded);
        traffic_ = unhindered_traffic(*loaded, *ran);
        links_.clear();  // by other loads
        ran_ = &*ran;
        if (load().written() > answer_.traffic.load.written()) set_traffic();
      }
      answer_.drives.push_back(ask(drive, question_.drives_per_set(), machine_of(sets, {})));
    }
    return std::move(answer_);
  }

 private:
  [[nodiscard]] const DriveLoad& load() const { return traffic_.load; }
  // The answer's: of the drives that most is written to.
  void set_traffic() {
    answer_.traffic = traffic_;
    answer_.required_rate = 2 * mean_rate(load().written(), load().step);
  }
  [[nodiscard]] MachineLoad machine_of(std::int64_t sets, const std::vector<std::size_t>& numbers) const {
    return {traffic_, answer_.gpus, hardware_.gpu_count, sets, numbers};
  }

  // What the machine's links carry with `count` drives in each set. All drives of one width and generation are alike
  // here, for they are made endless; with named drives every number has slots and switches of its own.
  const StorageLinks& links_with(const NvmeProfile& drive, std::int64_t own, std::int64_t count,
                                 const MachineLoad& load) {
    const bool is_own = question_.drives.empty();
    const Key key{is_own ? drive.name : "", is_own ? own : 0, drive.pcie_generation.value, drive.pcie_lanes.value,
                  count};
    const auto found = links_.find(key);
    if (found != links_.end()) return found->second;
    const HardwareProfile machine =
        !is_own        ? with_drives(hardware_, drive, count, question_.sets(in_machine_), question_.switch_lanes)
        : own == count ? hardware_
                       : resized(hardware_, drive, own, count);
    return links_.emplace(key, storage_links(with_endless_drives(machine), load.gpus(), question_.route)).first->second;
  }
  [[nodiscard]] LoadedDrives drives_of(const NvmeProfile& drive, std::int64_t count, const StorageLinks& links,
                                       const DriveLoad& shared) const {
    return {nvme_model(drive), count, of_set(links.write, shared.written(), load().written()),
            of_set(links.read, shared.read(), load().read()), drive.thermal_duty ? drive.thermal_duty->value : 1};
  }

  DriveAnswer ask(const NvmeProfile& drive, std::int64_t count, const MachineLoad& machine) {
    const DriveLoad& shared = machine.of_set();
    DriveAnswer found;
    found.drive = drive;
    found.count = count;
    found.sharers = machine.sharers();
    found.written = shared.written();
    found.endurance = drive_endurance(drive, question_.endurance);
    found.bound = question_.bound;
    try {
      static_cast<void>(nvme_model(drive));
      found.links = links_with(drive, count, count, machine);
    } catch (const InputError& error) {
      found.cannot_tell = error.cause();
      found.load.steady.length = load().step;
      add_life(found, shared);
      return found;
    }
    const LoadedDrives drives = drives_of(drive, count, found.links, shared);
    found.stages = stages_of(drives);
    found.load = sustain(drives, shared);
    found.first_rate = mean_rate(shared.written(), found.load.first.write_time);
    found.steady_rate = mean_rate(shared.written(), found.load.steady.write_time);
    found.link_rate = to_bytes_per_second(drives.write_link);
    found.required_rate = 2 * mean_rate(shared.written(), shared.step);
    found.holds_first = SustainedLoad::holds(found.load.first, shared.step);
    found.holds_steady = SustainedLoad::holds(found.load.steady, shared.step);
    if (!found.endurance.known) found.cannot_tell = found.endurance.basis;
    if (question_.replays) found.step = step_on_drives(loaded_, ran_->result);
    if (found.step) found.step->without_waits = without_waits(drive);
    add_life(found, shared);
    if (question_.asks_numbers) add_numbers(found, machine);
    add_cost(found);
    return found;
  }

  // The step on drives of the set's slots that are infinitely fast.
  Picos without_waits(const NvmeProfile& drive) const {
    LoadedScenario endless = question_.drives.empty() ? loaded_ : on_drives(loaded_, drive, question_);
    endless.hardware = with_endless_drives(std::move(endless.hardware));
    return run(endless).step_time;
  }

  // Of a replay with these drives as the run of the scenario says; else at the pace of the step the drives allow.
  void add_life(DriveAnswer& found, const DriveLoad& shared) const {
    found.pace = found.load.steady.length;
    double rate = mean_rate(shared.written(), found.pace);
    if (question_.replays) {
      double replayed = -1;  // a set that the step leaves alone has no rate of its own
      for (const DriveTraffic& traffic : ran_->result.drives)
        if (traffic.model == found.drive.name && traffic.drives == found.count)
          replayed = std::max(replayed, write_rate(traffic, ran_->result));
      if (replayed >= 0) {
        rate = replayed;
        found.pace = ran_->result.step_time;
      }
    }
    const DriveLife life = drive_life(found.endurance, found.count, rate);
    found.years = life.years;
    found.low_years = life.low_years;
    found.high_years = life.high_years;
    found.lasts = found.endurance.known && years_by(life, question_.bound) >= question_.life_years;
  }

  // Bytes of one drive by the life that the verdict goes by: lives go as the bytes do.
  static double endurance_by_bound(const DriveAnswer& found) {
    const Endurance& bytes = found.endurance;
    return years_by({bytes.bytes, bytes.low, bytes.high, {}, {}}, found.bound);
  }

  // Of the drives that a machine holds, one set's; what was asked about is there.
  [[nodiscard]] std::int64_t most_in_set(const DriveAnswer& found) const {
    const std::int64_t sets = (in_machine_ + found.sharers - 1) / found.sharers;
    return std::max(found.count, most_drives / sets);
  }

  void add_numbers(DriveAnswer& found, const MachineLoad& machine) {
    const DriveLoad& shared = machine.of_set();
    const double asked = mean_rate(shared.written(), shared.step) * question_.life_years * year;
    const std::int64_t most = most_in_set(found);
    if (asked <= 0)
      found.any_count_for_life = 1;
    else if (const double taken = endurance_by_bound(found); taken > 0)
      found.any_count_for_life = std::max(1.0, std::ceil(asked / taken));
    if (found.any_count_for_life > 0 && found.any_count_for_life <= static_cast<double>(most))
      found.count_for_life = std::llround(found.any_count_for_life);
    for (std::int64_t n = 1; n <= most && found.count_for_rate == 0; ++n) {
      const StorageLinks& links = links_with(found.drive, found.count, n, machine);
      if (SustainedLoad::holds(sustain(drives_of(found.drive, n, links, shared), shared).steady, shared.step))
        found.count_for_rate = n;
    }
    if (found.count_for_life > 0 && found.count_for_rate > 0)
      found.lanes = std::max(found.count_for_life, found.count_for_rate) * found.drive.pcie_lanes.value;
  }

  void add_cost(DriveAnswer& found) const {
    if (!found.drive.price_usd || answer_.tokens_per_step <= 0) return;
    const double seconds = std::min(found.years, question_.life_years) * year;
    const double tokens = static_cast<double>(answer_.tokens_per_step) * seconds / to_seconds(found.pace);
    const double sets = std::ceil(static_cast<double>(answer_.gpus) / static_cast<double>(found.sharers));
    if (tokens > 0)
      found.usd_per_billion_tokens =
          found.drive.price_usd->value * static_cast<double>(found.count) * sets / (tokens / 1e9);
  }

  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

  const LoadedScenario& loaded_;
  const ScenarioRun* ran_;  // that traffic_ is of
  const HardwareProfile& hardware_;
  const SsdQuestion& question_;
  OffloadTraffic traffic_;
  SsdAnswer answer_;
  std::map<Key, StorageLinks> links_;
  std::int64_t in_machine_ = 1;
};

}  // namespace

bool all_hold(std::span<const JudgedTest> tests) {
  return std::all_of(tests.begin(), tests.end(), [](const JudgedTest& test) { return test.holds; });
}

static std::string joined_failures(std::span<const JudgedTest> tests, std::string JudgedTest::*part) {
  std::string words;
  for (const JudgedTest& test : tests)
    if (!test.holds && !(test.*part).empty()) words += (words.empty() ? "" : "; ") + test.*part;
  return words;
}
std::string failing(std::span<const JudgedTest> tests) { return joined_failures(tests, &JudgedTest::name); }
std::string why_failing(std::span<const JudgedTest> tests) { return joined_failures(tests, &JudgedTest::why); }

std::vector<JudgedTest> DriveAnswer::tests(double asked_years) const {
  std::vector<JudgedTest> tests;
  if (step) tests = step->tests();
  const auto rate = [](double bytes_per_second) { return number_text(bytes_per_second / 1e9) + " GB/s"; };
  const std::string too_narrow = link_rate < required_rate ? "the links carry " + rate(link_rate) : "";
  tests.push_back({"bandwidth, caches empty", rate(required_rate), rate(first_rate), holds_first,
                   too_narrow.empty() ? "not even with empty caches" : too_narrow});
  tests.push_back({"bandwidth, caches full", rate(required_rate), rate(steady_rate), holds_steady,
                   !holds_first          ? ""
                   : !too_narrow.empty() ? too_narrow
                   : load.throttled      ? "too hot to keep its rate up"
                                         : "not once its cache is full"});
  if (step && step->without_waits > Picos(0))
    tests.push_back({"step time", duration_text(step->without_waits), duration_text(step->step_time), !waits(),
                     fmt::format("the step waits for them, {} where {} would do", duration_text(step->step_time),
                                 duration_text(step->without_waits))});
  const auto told = [](double life) {
    return life < 1 ? fmt::format("{:.3g} days", life * 365) : fmt::format("{:.3g} years", life);
  };
  const double judged_by = years_by({years, low_years, high_years, {}, {}}, bound);
  std::string worn = fmt::format("worn out after {} {}", told(judged_by), planners::told(bound));
  if (years != judged_by) worn += fmt::format(" ({} expected)", told(years));
  std::string given = std::isfinite(judged_by) ? told(judged_by) : "unlimited";
  if (years != judged_by) given += fmt::format(" {}, {} expected", planners::told(bound), told(years));
  tests.push_back({"life", told(asked_years), std::move(given), lasts,
                   endurance.bytes > 0 ? worn : "nothing is left of its rated life"});
  return tests;
}

std::string DriveAnswer::verdict(double asked_years) const {
  if (!cannot_tell.empty()) return "can't tell: " + cannot_tell;
  const std::vector<JudgedTest> judged = tests(asked_years);
  if (all_hold(judged)) return fmt::format("yes: holds the rate and {:.3g} years", asked_years);
  return "no: " + why_failing(judged);
}

bool is_held_up(Picos step, Picos unhindered) {
  constexpr double within = 1.01;
  return unhindered > Picos(0) && to_seconds(step) > to_seconds(unhindered) * within;
}

bool DriveAnswer::waits() const { return step && is_held_up(step->step_time, step->without_waits); }

std::vector<JudgedTest> StepOnDrives::tests() const {
  const auto gigabytes = [](Bytes bytes) { return number_text(static_cast<double>(bytes.count()) / 1e9) + " GB"; };
  const std::string missing = short_of > Bytes(0) ? ", short " + gib_text(short_of) : "";
  std::vector<JudgedTest> tests = {
      {"memory", "the step fits", std::string(to_string(verdict)), sim::is_yes(verdict),
       verdict == Verdict::unknown ? "whether the step fits with them is unknown"
                                   : fmt::format("the step still runs out of memory under {}{}", technique, missing)}};
  tests.push_back({"saving", "memory",
                   !saves_nothing.empty() ? "nothing"
                   : saved > Bytes(0)     ? gib_text(saved)
                                          : "memory",
                   saves_nothing.empty(), saves_nothing + ", which is no basis for judging drives"});
  if (room)
    tests.push_back({"capacity", gigabytes(held), gigabytes(*room), held <= *room,
                     fmt::format("room for {}, the step keeps {} there at once", gigabytes(*room), gigabytes(held))});
  return tests;
}

bool SsdAnswer::is_yes() const {
  if (drives.empty()) return false;
  if (traffic.load.written() == Bytes(0)) return kept_by_plan == Bytes(0) && traffic.to_host == Bytes(0);
  return std::any_of(drives.begin(), drives.end(), [](const DriveAnswer& drive) { return drive.is_yes(); });
}

const Words& retention_words() {
  static const Words words = {{"rated", "as the rating has it"}, {"weeks", "three weeks"}, {"day", "one day"}};
  return words;
}

LoadedScenario on_first_drives(LoadedScenario loaded, const SsdQuestion& question) {
  return question.drives.empty() ? std::move(loaded) : on_drives(std::move(loaded), question.drives.front(), question);
}

OffloadTraffic unhindered_traffic(const LoadedScenario& loaded, const ScenarioRun& ran) {
  OffloadTraffic traffic = offload_traffic(ran.trace(loaded), ran.result);
  if (traffic.load.spans.empty()) return traffic;
  LoadedScenario free = loaded;
  free.hardware = with_faster_links(with_endless_drives(std::move(free.hardware)), endless);
  const Picos step = run(free).step_time;
  if (is_held_up(traffic.load.step, step)) set_pace(traffic, step);
  return traffic;
}

StepOnDrives step_on_drives(const LoadedScenario& loaded, const Result& result) {
  StepOnDrives step;
  step.technique = loaded.scenario.offload.technique;
  step.verdict = result.verdict();
  step.short_of = result.memory.short_of;
  step.step_time = result.step_time;
  step.step_time_range = result.step_time_range;
  for (const DriveTraffic& traffic : result.drives) {
    if (!traffic.room || (step.room && *traffic.room - traffic.held >= *step.room - step.held)) continue;
    step.held = traffic.held;
    step.room = traffic.room;
  }
  if (!result.offload) return step;
  step.technique = result.offload->technique;
  step.written = result.offload->stored;
  step.read = result.offload->loaded;
  if (result.ranks.size() > 1 && !result.drives.empty()) set_busiest(step, result);
  step.saves_nothing = saves_nothing(*result.offload, result.memory);
  if (result.offload->plain_peak > result.memory.peak_allocated)
    step.saved = result.offload->plain_peak - result.memory.peak_allocated;
  return step;
}

SsdAnswer answer_ssd(const LoadedScenario& loaded, const ScenarioRun& ran, const SsdQuestion& question) {
  const auto require = [](bool holds, const char* option, const char* remedy) {
    if (!holds) throw InputError("report", option, "out of range", remedy);
  };
  require(question.drives_per_set() >= 1 && question.drives_per_set() <= most_drives,
          question.drives_per_gpu > 0 ? "--drives-per-gpu" : "--drives-per-machine", "give 1 to 64 drives");
  require(question.life_years > 0 && question.life_years <= 1000, "--life-years", "give years, above 0");
  require(question.tokens >= 0 && question.tokens <= 1e18, "--tokens", "give the tokens of a training run");
  return Asker(loaded, ran, question).answer();
}

}  // namespace spillway::studies
