// When the stages of a pipeline are done with their last backward: the order of its passes, run once with what passes
// and messages take.
//
// A pass begins when its stage has reached it and what it needs has been received. Messages go one after another on a
// stage's lane for sends and on the receiver's for receives; a receive is posted when the host has launched the pass
// before. Megatron-LM waits for the device after posting a receive, so also for the stage's own sends
// (models/step/stage_program.cc). A slow message then holds up both its ends, and each pass that receives begins with
// nothing launched. Within a pass the device does what has been launched. For short layers beside a long head the
// slower of host and device sets the pace, each for its part.
//
// A schedule of many micro-batches reaches a steady pace, a group of p at a time. If there are more than four groups,
// the first four are run, and the others take as long as the fourth did.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/units.h"

namespace spillway::studies {

struct PipelineWork {
  struct Part {
    Picos device{}, host{};  // its work without pauses, and its calls
  };
  struct Turn {
    Part first, second;  // layers beside an embedding or a head, in their order
    Picos rest{};        // beyond the slower of the two
    [[nodiscard]] Picos host() const { return first.host + second.host; }
    // When the device is done that may begin at `begin`, and its host at `host_begin`.
    [[nodiscard]] Picos end(Picos begin, Picos host_begin) const;
  };
  struct Pass {
    Turn forward, backward;
  };
  std::string schedule;            // one of named_schedules() with forwards and whole backwards alone, looped
  std::int64_t stages = 1;         // p
  std::int64_t chunks = 1;         // v
  std::int64_t micro_batches = 1;  // m
  bool waits = false;              // the host, for its device, before a pass that receives
  std::vector<Pass> passes;        // by position, chunk * p + stage
  std::vector<Picos> messages;     // from a position to the next, and back; one fewer
};

struct PipelineEnds {
  std::vector<Picos> last_backward;  // by stage, since the first pass began
  Picos end{};                       // the latest of them
};

// Keeps what it has run: screens ask for the same work again and again.
class PipelineRuns {
 public:
  // May be called by several threads. Throws InputError for sizes that the schedule can't have.
  PipelineEnds ends(const PipelineWork& work);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, PipelineEnds> known_;  // by digest of the work
};

}  // namespace spillway::studies
