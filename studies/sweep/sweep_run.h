// A sweep from its file to its answer.
//
//  1. Screen. Blocks of points are estimated without events (sweep_screen.h). A point remains when it may do what the
//     file requires and no point that does for sure is still ahead of it when both are off by the margins.
//  2. Replay. What remains is replayed in full, the best estimates first, in waves; a point drops out when one that was
//     replayed is as good as the best it may turn out. It ends when nothing remains, which proves the front within the
//     margins, or after `replays`. Points that a step can't tell apart (SweepScreen::state_key()) are replayed once.
//  3. The front of what was replayed and does what is required; how far the screen was off.
// Blocks and replays are taken from the store where it has them. The answer is a function of the file alone: threads,
// shards, interruptions and what the store held change nothing.
// Memory: O(points that remain). Time: some 4 us a valid point of a large space on one core, probes included, less than
// one where its look is another's; and the replays.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_store.h"
#include "studies/sweep/sweep_task.h"
#include "studies/sweep/sweep_workers.h"

namespace spillway::studies {

struct SweepRow : Row {
  std::int64_t number = 0;
  std::vector<std::string> options;  // labels, by axis
  Figures replayed, screened;
  bool is_bound = false;                // the screen's time is a lower bound, of the step without its technique
  std::optional<std::int64_t> twin_of;  // the first row of the same events and figures
  bool does = false;                    // meets the requirements; a tight one only where none keeps the whole reserve
  bool on_front = false;
};

// Relative to the replay, absolute values; 0 where nothing was compared.
struct SweepError {
  std::size_t compared = 0;
  double median = 0, p90 = 0, worst = 0;
};
SweepError sweep_error(std::vector<double> absolute_errors);

struct SweepOutcome {
  std::int64_t points = 0;                      // raw
  std::map<std::string, SweepReason> left_out;  // by rule
  std::map<std::string, SweepReason> invalid;   // by why the model can't be trained so; figures as '#'
  std::int64_t screened = 0;                    // valid
  std::int64_t unable = 0;                      // of these: do not do what is required, margins allowed for
  std::int64_t beaten = 0;                      // of these: by one that does for sure, whether or not they do
  std::int64_t beaten_by_replay = 0;
  std::int64_t not_replayed = 0;  // remain when the replays are used up: the front may miss some of them
  // The front: nothing is left to simulate, and no estimate was further off than the margins that ruled out the rest.
  [[nodiscard]] bool is_proven() const { return is_whole && not_replayed == 0 && within_margins; }
  std::vector<SweepRow> rows;  // replayed, by number
  // Errors of estimates. The screen's lower bounds have how much the replays lie above them, and how many lie below.
  SweepError time_error, memory_error, time_above_bound;
  std::int64_t below_bound = 0;
  std::int64_t replays = 0;  // that these rows took: points that a step can't tell apart share one
  // Best values of points that remain when the replays are used up, by objective: as good as they may turn out.
  SweepValues unproven{};
  bool is_whole = true;  // false: a shard, or interrupted
  bool within_margins = true;
};

// Sets twin_of: rows in order, each of the first before it of the same fingerprint, figures and verdict.
void mark_twins(std::vector<SweepRow>& rows);

// Sets of each row whether it does what the file requires, and whether it is on the front of those that do: of what was
// replayed so far. O(rows x front).
void mark_front(const SweepFile& file, std::vector<SweepRow>& rows);

// The replayed row that misses the requirements by least, and what it misses.
struct SweepShortfall {
  const SweepRow* row = nullptr;
  std::vector<Miss> misses;
  double share = 0;  // the largest of theirs
};
// None where a row meets them, or none ran. Precondition: mark_front().
std::optional<SweepShortfall> nearest_to_meet(const SweepFile& file, const SweepOutcome& outcome);

struct SweepOptions {
  std::int64_t shard = 0, shards = 1;  // of the blocks; more than one: the answer is of this shard alone
  std::function<bool(const std::string& what, std::int64_t done, std::int64_t all)> progress;  // false: stop
  // Every point as soon as it is replayed, whether it will be on the front or not, in no set order. One call at a time.
  std::function<void(const SweepRow& row)> replayed;
  SweepWorkers* workers = nullptr;  // who works; none: threads of this process
};

// Throws InputError as the parts do; a point's own failure is a row.
SweepOutcome run_sweep(const SweepFile& file, const SweepOptions& options, SweepStore& store);

}  // namespace spillway::studies
