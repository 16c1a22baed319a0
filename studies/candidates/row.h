// A candidate: a scenario with named edits; and its row: what the step came to, as `spillway run SCENARIO --set ...`
// says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenario/replay_store.h"
#include "sim/replay/verdict_words.h"

namespace spillway::studies {

struct Candidate {
  std::string name;                // for people: "full + ssdtrain-host"
  std::vector<std::string> edits;  // as from --set, in turn
};

// Rates of GPUs with their part of the machines, by the bundled price list; 0 where unknown.
struct Rates {
  double usd_per_hour = 0;                // the profile's price, if it has one; drives that the scenario names on top
  double rest_watts = 0, busy_watts = 0;  // while nothing runs, and while something does; with the facility's share
};
Rates rates_of(const HardwareProfile& hardware);  // of one
Rates operator*(const Rates& rates, double gpus);

// Its replay: without what goes op by op, and without what Detail::figures adds unless it was asked for.
struct Row : KeptReplay {
  Candidate candidate;
  bool is_done = false;  // false: stopped before its turn, or in the midst of it
  std::string error;     // why it can't be run: the place and the cause; empty: it was replayed
  Rates rates;           // of all its GPUs
  // The machine it ran on, without drives that the scenario names; null: a store of sweeps had it.
  std::shared_ptr<const HardwareProfile> hardware;
  double planning_seconds = 0;  // CPU: from the step as generated to the result. Of no two runs alike

  [[nodiscard]] bool ran() const { return is_done && error.empty(); }
  // Runs, fits, and its drives can do what the step asks of them.
  [[nodiscard]] bool works() const { return ran() && result.answer() == Verdict::fits; }
  // The same, also where the reserve's margin is used up.
  [[nodiscard]] bool is_yes() const { return ran() && sim::is_yes(result.answer()); }
  // Expected lifetime of the drive set that is worn out first; none: nothing is written, or it is unknown.
  [[nodiscard]] std::optional<double> life_years() const;
  // Bytes that an allocator without waste would need on the most loaded device, over what it took; 0: nothing was
  // allocated.
  [[nodiscard]] double allocator_efficiency() const;
  // USD; none: no price, or tokens are not known.
  [[nodiscard]] std::optional<double> cost_per_million_tokens() const;
  // The shortage in words; empty: nothing is missing, or it is not known.
  [[nodiscard]] std::string shortage() const { return ran() ? lacking(result) : ""; }
};

Row row_of(Candidate candidate, std::shared_ptr<const HardwareProfile> hardware, KeptReplay replay);
// A row replayed by other means; what it moves is not counted.
Row row_of(Candidate candidate, const LoadedScenario& loaded, Result result);

}  // namespace spillway::studies
