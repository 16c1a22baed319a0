// The tasks of a sweep: screening a block of points, and replaying one point. Each leaves a record, which is a pure
// function of the sweep's file and a number. Any thread, process or machine may do it, in any order, and no result
// depends on who did.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "studies/candidates/evaluate.h"
#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_front.h"
#include "studies/sweep/sweep_screen.h"

namespace spillway::studies {

struct SweepTask {
  bool is_replay = false;   // else a block is screened
  std::int64_t number = 0;  // of the point or the block
};

inline constexpr std::int64_t sweep_block_points = 1 << 15;

// A point that the screen did not rule out.
struct SweepRemaining {
  std::int64_t number = 0;
  double step_seconds = 0, peak_bytes = 0;  // estimates
  bool is_bound = false;                    // step_seconds is a lower bound, peak_bytes is not known
  SweepValues best{};                       // as good as it may turn out
  // For the order of replays, of a bound: what it is likely to take, and that of what there is; 0: not known.
  double likely_seconds = 0, likely_bytes = 0, likely_use = 0;
};

// The point that misses the requirements by least of those that can't meet them; below 0: none.
struct SweepNearest {
  std::int64_t number = -1;
  double share = 0;  // SweepEstimate::lacks_share()
  void take(const SweepNearest& other) {
    if (other.number >= 0 && (number < 0 || std::pair(other.share, other.number) < std::pair(share, number)))
      *this = other;
  }
};

// The screen's findings in a block of points.
struct SweepBlock {
  std::map<std::string, SweepReason> left_out, invalid;
  std::int64_t screened = 0, unable = 0, beaten = 0;
  SweepNearest nearest;
  std::vector<SweepValues> sure;  // front of the worst that points turn out which do what is required for sure
  std::vector<SweepRemaining> remaining;
};
SweepBlock parse_sweep_block(const std::string& record);

Row parse_sweep_replay(const std::string& record);

// Whether a replay meets what the file requires. `worst`: tight where the reserve's margin may be given up, as where no
// point keeps it.
bool meets_requirements(const SweepFile& file, const Row& row, Verdict worst = Verdict::fits);
// By objective of the file.
SweepValues objective_values(const SweepFile& file, const Figures& figures);

// Names everything a task's record depends on: the program's version, the file and all it names, the task.
std::string sweep_key(const SweepFile& file, const SweepTask& task);

class SweepWorker {
 public:
  // `file` must outlive it.
  explicit SweepWorker(const SweepFile& file) : file_(file), screen_(file), seeds_(file.objectives.size()) {}

  // Works out once what every block's record needs: on all threads when called before the first of them.
  void prepare();
  // One line of JSON with the task's key. May be called by several threads. Throws InputError as SweepScreen does.
  std::string record(const SweepTask& task);
  // Replays the sweep's scenario with edits. A failure is a result. May be called by several threads.
  Row replay(std::vector<std::string> edits);

 private:
  [[nodiscard]] SweepBlock screen_block(std::int64_t number);

  const SweepFile& file_;
  SweepScreen screen_;
  std::once_flag prepared_;
  SweepFront seeds_;
  SharedMachines machines_;
};

}  // namespace spillway::studies
