// Drives that take a scenario's offloaded activations, for how long, at what price: the answer as figures.
//
// Rate and lifetime are of one drive state. The step's writes and reads run until the cache no longer changes anything
// (sim/devices/drive_load.h). The flash takes so many such steps as sim/devices/endurance.h says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "planners/offload/drive_life.h"
#include "scenario/scenario_run.h"
#include "sim/devices/endurance.h"
#include "studies/offload/offload_traffic.h"
#include "studies/offload/storage_links.h"

namespace spillway::studies {

struct SsdQuestion {
  std::vector<NvmeProfile> drives;  // to compare; empty: the machine's own
  // How many of each; not for the machine's own. One of the two is above 0.
  std::int64_t drives_per_gpu = 4;      // a RAID-0 set for every GPU
  std::int64_t drives_per_machine = 0;  // one RAID-0 set for all GPUs of a machine, as a scenario's are
  double life_years = 5;                // how long they should last
  double tokens = 0;                    // of a whole training run; 0: not asked
  EnduranceOptions endurance;
  DriveRoute route = DriveRoute::gpudirect;
  std::int64_t switch_lanes = common_switch_lanes;  // of a switch added for drives beyond the machine's slots
  bool asks_numbers = true;                         // how many drives the rate and the life take
  bool replays = false;                             // the step with each of the drives, and judges that
  LifeBound bound = LifeBound::rated;               // that must reach life_years
  // Sets of a machine with so many GPUs at work.
  [[nodiscard]] std::int64_t sets(std::int64_t gpus) const { return drives_per_gpu > 0 ? gpus : 1; }
  [[nodiscard]] std::int64_t drives_per_set() const { return drives_per_gpu > 0 ? drives_per_gpu : drives_per_machine; }
};

const Words& retention_words();  // of RetentionRelaxation, in its order

// A set's rate while it is written to without pause: so many bytes at one rate, the last one unlimited.
struct WriteStage {
  double bytes = 0, rate = 0;  // infinity; bytes a second
};

// By more than a hundredth longer than where nothing holds the step up (0: not known).
bool is_held_up(Picos step, Picos unhindered);

// One thing asked of drives or links: of the tests that fail the verdict is made, and tables show them all.
struct JudgedTest {
  std::string name;          // "life"
  std::string asked, given;  // "5 years", "7.3 days"
  bool holds = false;
  std::string why;  // of one that fails, in words; empty: another that fails says why
};
bool all_hold(std::span<const JudgedTest> tests);
// Of those that fail: "bandwidth, caches full; life", and why: "not once its cache is full; worn out after 7.3 days".
std::string failing(std::span<const JudgedTest> tests);
std::string why_failing(std::span<const JudgedTest> tests);

// The step replayed with a set of drives.
struct StepOnDrives {
  std::string technique;  // of its plan
  Verdict verdict = Verdict::unknown;
  Bytes short_of{}, written{}, read{};  // bytes of the GPU that writes most, a step
  Bytes held{};                         // most at once on the set with least left
  std::optional<Bytes> room;            // of that set; none: unknown
  Picos step_time{};
  FigureRange step_time_range;
  Picos without_waits{};      // the same step on drives that are infinitely fast; 0: not asked
  Bytes saved{};              // of the peak allocated, on that GPU; 0: none, or nobody asked
  std::string saves_nothing;  // why it's no step to judge drives by; empty: it is one
  // Whether it fits memory and the drives, and is a step to judge them by.
  [[nodiscard]] std::vector<JudgedTest> tests() const;
};

// One model of drive as asked for.
struct DriveAnswer {
  NvmeProfile drive;
  std::int64_t count = 0;          // in the set
  std::int64_t sharers = 1;        // GPUs that use the set
  Bytes written{};                 // to the set in a step, by all of them; of several sets, that which takes most
  std::string cannot_tell;         // why there is no answer: the profile states no rates, no endurance
  Endurance endurance;             // of one drive
  StorageLinks links;              // what they carry to and from the GPU that writes most, however fast the drives
  std::vector<WriteStage> stages;  // one, two or three
  SustainedLoad load;
  double required_rate = 0, link_rate = 0;  // bytes a second asked of the set, and what the links to it carry
  double first_rate = 0, steady_rate = 0;   // bytes a second the set gives to writes, links included
  double years = 0, low_years = 0, high_years = 0;
  Picos pace{};  // of the steps that these years are full of
  LifeBound bound = LifeBound::rated;
  bool holds_first = false, holds_steady = false, lasts = false;
  std::optional<StepOnDrives> step;  // where the question replays it
  // Drives of the set, each number on its own links; 0: none that a machine holds does.
  std::int64_t count_for_life = 0, count_for_rate = 0;
  double any_count_for_life = 0;  // that would last, whether or not a machine holds them; 0: nobody knows
  std::int64_t lanes = 0;         // of PCIe, for the larger of the two
  std::optional<double> usd_per_billion_tokens;  // all drives of the step's GPUs, over the shorter of both lifetimes
  [[nodiscard]] bool is_yes() const { return cannot_tell.empty() && all_hold(tests(0)); }
  [[nodiscard]] std::vector<JudgedTest> tests(double asked_years) const;
  // The replayed step, by its drives.
  [[nodiscard]] bool waits() const;
  // "yes: ...", "no: " and the tests that fail, "can't tell: ...".
  [[nodiscard]] std::string verdict(double asked_years) const;
};

struct SsdAnswer {
  OffloadTraffic traffic;  // with the drives that most is written to
  std::int64_t gpus = 1, tokens_per_step = 0;
  double required_rate = 0;  // bytes a second of the writes of the GPU that writes most, in half of the step
  Bytes kept_by_plan{};      // what a plan might have moved to drives and chose to keep, where it moves nothing
  std::vector<DriveAnswer> drives;
  [[nodiscard]] bool is_yes() const;
};

// The scenario on a machine with the first of the question's drives, ready to be replayed; without any, as it is.
LoadedScenario on_first_drives(LoadedScenario loaded, const SsdQuestion& question);

// Traffic of `ran`, of `loaded`. Its pace is that of the same step on drives and links that are infinitely fast, where
// that is shorter by more than a hundredth. One replay, of a step that moves anything.
OffloadTraffic unhindered_traffic(const LoadedScenario& loaded, const ScenarioRun& ran);

// `result`: of `loaded`, on its own drives.
StepOnDrives step_on_drives(const LoadedScenario& loaded, const Result& result);

// `ran`: of `loaded`; where the question replays, of on_first_drives(). Throws InputError when the trace does not say
// what is kept, or an option is out of range.
SsdAnswer answer_ssd(const LoadedScenario& loaded, const ScenarioRun& ran, const SsdQuestion& question);

}  // namespace spillway::studies
