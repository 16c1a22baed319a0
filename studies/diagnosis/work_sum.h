// Work inside an interval of a step, by name and by kind.
//
//   stretch        [           )
//   lane      |kk|kkk|c|  kkk |k|      kernels 3, of their time the parts inside; bytes of each whole
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::studies {

// Picoseconds, or places in program order; half-open.
struct Stretch {
  std::int64_t begin = 0, end = 0;
};

// Work of one name and phase on one lane.
struct WorkRow {
  std::string name, lane, phase;
  std::uint64_t count = 0;
  std::int64_t total = 0, longest = 0;  // parts inside the interval only
  std::int64_t bytes = 0;               // touched by kernels, moved by copies and transfers; whole, also of what is cut
  std::uint32_t example = 0;            // OpId of the longest
};

// Work of one kind, on whatever lanes.
struct KindRow {
  std::string name;  // "kernels", "copies to the GPU", "writes to drives"
  std::uint64_t count = 0;
  std::int64_t total = 0, longest = 0, bytes = 0;  // as WorkRow
  std::uint32_t example = 0;
};

// Takes works lane by lane, wherever the caller has them placed. The trace outlives it.
class WorkSum {
 public:
  WorkSum(const Trace& trace, Stretch stretch);
  // Starts a lane: all that is added from here on is on it.
  void lane(std::string name);
  // Nothing where it lies outside. runs: how many works like it this one stands for.
  void add(OpId op, std::int64_t begin, std::int64_t end, std::int64_t runs = 1);
  // The most time first. What follows is undefined.
  [[nodiscard]] std::vector<WorkRow> rows() &&;
  [[nodiscard]] std::vector<KindRow> kinds() const;

 private:
  const Trace& trace_;
  Stretch stretch_;
  std::string lane_;
  std::vector<WorkRow> rows_;
  std::vector<std::uint32_t> row_of_;  // of the lane: by name and phase, 1 + the place in rows_; 0: none yet
  std::vector<KindRow> kinds_;         // by OpKind
};

// All lanes of a replay. O(ops log ops).
WorkSum work_of(const Trace& trace, const Result& result, Stretch stretch);

}  // namespace spillway::studies
