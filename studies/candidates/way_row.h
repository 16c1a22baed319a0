// A way to run a scenario: named edits of it; and what the step does under them, as `spillway run SCENARIO --set ...`
// says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenario/replay_store.h"
#include "sim/replay/verdict_words.h"

namespace spillway::studies {

struct Way {
  std::string name;                   // for people: "full + ssdtrain-host"
  std::vector<std::string> settings;  // as from --set, in turn
};

struct WayRow {
  Way way;
  bool is_done = false;  // false: stopped before its turn, or in the midst of it
  std::string error;     // why it can't be run: the place and the cause; empty: the figures below are its replay's
  Result result;         // without times by op; without MemoryReplayOptions::details unless they were asked for
  MovedBytes traffic;
  std::int64_t gpus = 1;             // 1 for a capture
  std::int64_t tokens_per_step = 0;  // 0: unknown
  std::optional<double> life_years;  // of the drive set that wears first; none: nothing is written, or it is unknown
  // Of its GPUs with their share of the machines, by the bundled price list; drives that the scenario names come on
  // top. None: nobody states a price.
  std::optional<double> usd_per_hour;
  double planning_seconds = 0;  // CPU: from the step as generated to the result. Of no two runs alike

  [[nodiscard]] bool ran() const { return is_done && error.empty(); }
  // Runs, fits, and its drives can do what the step asks of them.
  [[nodiscard]] bool works() const { return ran() && result.answer() == Verdict::fits; }
  // The same, also where the reserve's margin is used up.
  [[nodiscard]] bool is_yes() const { return ran() && sim::is_yes(result.answer()); }
  // Of the most loaded device: what an allocator without waste would need, over what it took; 0: nothing was allocated.
  [[nodiscard]] double allocator_efficiency() const;
  // USD; none: no price, or tokens are not known.
  [[nodiscard]] std::optional<double> cost_per_million_tokens() const;
  // What is missing, in words; empty: nothing, or it is not known.
  [[nodiscard]] std::string shortage() const { return ran() ? lacking(result) : ""; }
};

// `hardware`: what it ran on.
WayRow row_of(Way way, const HardwareProfile& hardware, KeptReplay replay);

}  // namespace spillway::studies
