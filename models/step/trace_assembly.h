// TraceAssembly: one trace of many ranks from recorded stage programs, pass by pass in the order of a pipeline plan.
//
// A copy of a recorded section differs from it in ids, addresses, times and micro-batch alone, so making one is copying
// ranges of columns and adding offsets. References to a neighbouring micro-batch's sections (gradients added up in
// place) become references to that neighbour's copy. Control edges from every micro-batch's reads of a weight to the
// optimizer's write are kept for the recorded ones only: stream order implies the rest, and uses show them all. An edge
// of two passes goes if the plan has them in the other order than they were recorded. It stands for two writers of one
// tensor, which the stream keeps apart in either order.
//
// Start times are the host's own pace, and for device work a sum of durations: a rank's waits for others are found by
// replay alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/spec/parallel_layout.h"
#include "models/step/stage_program.h"
#include "traces/trace.h"

namespace spillway::models {

class TraceAssembly {
 public:
  // `plan` is one that require_steps() lets pass; it must outlive the object.
  explicit TraceAssembly(const PipelinePlan& plan);

  // Appends a rank that runs `program` in the order of its stage; gives its index. The program may be reused.
  std::size_t add_rank(const StageProgram& program, const std::string& name);
  // The transfers between two ranks of neighbouring chunks: each receive waits for its send's data.
  void connect(std::size_t sender, std::size_t receiver, std::int64_t sender_chunk, std::int64_t receiver_chunk,
               bool is_backward);
  // These ranks take part in the collectives of that lane together: the n-th of a name on one waits for what the n-th
  // on the others waits for.
  void meet(const std::vector<std::size_t>& ranks, std::string_view lane);

  // Room for all rows, to be called before the first rank.
  void reserve(const std::vector<const StageProgram*>& programs);
  // Energies are those of this plan's step, which must outlive the object: of one with more micro-batches.
  void count_energy_of(const PipelinePlan& plan) { energy_plan_ = &plan; }
  // How much of the trace there is before each operation of the rank's order, and behind the last one.
  struct Mark {
    std::uint32_t ops = 0, memory_events = 0;
    std::uint64_t address = 0;  // of its next allocation
  };
  [[nodiscard]] const std::vector<Mark>& marks(std::size_t rank) const { return ranks_[rank].marks; }
  Trace finish();

 private:
  using Part = StageProgram::Part;
  struct Deltas {  // from recorded to assembled
    std::int64_t op = 0, tensor = 0, address = 0;
    bool is_there = false;
  };
  struct Rank {
    const StageProgram* program = nullptr;
    std::vector<std::size_t> first_copy;                                     // by chunk, into copies
    std::vector<Deltas> copies;                                              // by chunk, turn, slice and part
    std::map<std::pair<StringId, StringId>, std::vector<OpId>> collectives;  // by lane's and own name
    std::vector<Mark> marks;
  };
  class Stamper;

  [[nodiscard]] static Deltas& copy_of(Rank& rank, std::int64_t chunk, std::int64_t turn, std::int64_t slice,
                                       Part part) {
    const std::int64_t pass = turn * rank.program->slices + slice;
    const auto offset = static_cast<std::size_t>(pass * StageProgram::parts + static_cast<std::int64_t>(part));
    return rank.copies[rank.first_copy[static_cast<std::size_t>(chunk)] + offset];
  }

  // The ops that an op waits for: its launch and its edges, those between ranks not counted.
  [[nodiscard]] std::vector<OpId> waits_of(OpId op) const;

  // The sums of the kernels of a rank's step under the plan counted.
  [[nodiscard]] double joules_of(const StageProgram& program) const;

  const PipelinePlan& plan_;
  const PipelinePlan* energy_plan_;
  std::vector<std::int32_t> turns_;  // by micro-batch
  Trace out_;
  std::vector<Rank> ranks_;
  std::vector<Edge> between_;  // ranks; appended at the end, so that the others stay sorted by `to`
};

}  // namespace spillway::models
