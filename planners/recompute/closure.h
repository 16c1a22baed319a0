// Ops that must run again to bring dropped activations back: the writers of the dropped storages and, recursively, of
// whatever these read that isn't in memory at that time. It stops at what is: weights, inputs, saved tensors that stay.
//
//   forward    a -> b -> c -> d          dropped: b, c, d; temporaries, freed since: none
//   backward              ... before     group {before, ops: writers of b, c, d}; reads a, which stayed
//
// Versions. A storage in memory may be read again only if nobody has written it since; one that was is rebuilt as a
// copy, from its first writer on. An op is not repeated in three cases. It would change something that is there and
// isn't rebuilt (a counter, a running statistic, a buffer others have reused). It moves data from outside the device
// (receives, copies from the host). Or what it reads was there before the trace and has changed. Rematerialisation in
// this sense: Chen et al., Training Deep Nets with Sublinear Memory Cost (arXiv 1604.06174); Jain et al., Checkmate
// (MLSys 2020).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/replay/offload_plan.h"
#include "traces/saved_tensors.h"

namespace spillway::planners {

// Ops run once more, in this order, before the launch of `before`.
struct RecomputeGroup {
  OpId before = OpId::none;
  std::vector<OpId> ops;             // device work, in the order in which it was launched
  std::vector<std::size_t> tensors;  // saved tensors that are back then, ascending
  Picos time{};                      // sum of the ops' durations
  Bytes temporary{};                 // most that the group holds at once besides the tensors it brings back
};

// By index of the saved tensors: OpId::none for one that stays in memory, else an op; the tensor comes back before that
// op's launch. It is away from SavedTensor::last_forward until then.
using AwayUntil = std::vector<OpId>;

// Answers many queries about one trace. The trace and the saved tensors must outlive it.
class RecomputeIndex {
 public:
  // O(uses log uses).
  RecomputeIndex(const Trace& trace, std::span<const SavedTensor> saved);

  // The group that brings `tensors` back before `before` (OpId::none: the first of their backward uses). `away`: where
  // every saved tensor is; those asked for need not be set. Empty when one cannot be had: then refusal() says which and
  // why. Precondition: `tensors` isn't empty and `before` comes no later than any of their backward uses. O(ops in the
  // group x their uses, log).
  std::optional<RecomputeGroup> group(std::span<const std::size_t> tensors, const AwayUntil& away,
                                      OpId before = OpId::none);

  // Groups for everything that is `away`, those that come back before the same op together; ascending. Tensors that
  // cannot be had stay: `away` is set to OpId::none for them. Queries repeat until nothing is refused.
  std::vector<RecomputeGroup> groups(AwayUntil& away);

  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  // An op's position in the order of launches.
  [[nodiscard]] std::size_t position(OpId op) const;
  [[nodiscard]] std::span<const SavedTensor> saved() const { return saved_; }
  [[nodiscard]] const Trace& trace() const { return trace_; }

 private:
  struct Write {
    std::size_t position = 0;
    OpId op = OpId::none;
    bool reads = false;  // the op reads the storage too
  };
  struct Storage {
    std::size_t taken = 0, given_back = 0;  // positions after which it is there, and no longer there
    int lives = 0;                          // allocations seen
    Bytes block{};                          // as allocated
    std::size_t saved = no_saved;
    TensorId tensor = TensorId::none;  // one of its tensors, for its name
    bool is_interrupted = false;       // used between last_forward and first_backward
    std::vector<Write> writes;         // ascending
  };
  struct Query;
  static constexpr std::size_t no_saved = ~std::size_t{0};

  void index_memory();
  void index_uses();
  void note_interruption(OpId op, Storage& storage) const;
  [[nodiscard]] std::span<const Use> uses_of(OpId op) const;
  [[nodiscard]] bool is_there(const Storage& storage, std::size_t position, const Query& query) const;
  [[nodiscard]] static std::size_t writes_before(const Storage& storage, std::size_t position);
  bool rebuild(std::uint32_t storage, std::size_t writes, Query& query);
  bool run_again(OpId op, Query& query);
  bool close(Query& query);
  bool read_again(OpId op, std::uint32_t storage, Query& query);
  bool write_again(OpId op, std::uint32_t storage, Query& query);
  bool refuse(const std::string& what, const std::string& why);
  bool refuse(const Storage& storage, const std::string& why);
  [[nodiscard]] bool can_run_again(OpId op);
  [[nodiscard]] Bytes most_temporary(const Query& query, std::span<const OpId> ops) const;

  const Trace& trace_;
  std::span<const SavedTensor> saved_;
  std::vector<Storage> storages_;
  std::vector<std::size_t> first_use_;  // by op, into trace.uses
  std::string refusal_;
};

// Absences of tier recompute for the group's tensors, and its ops. A group before an op that has one already joins it.
void add_to_plan(const RecomputeGroup& group, const RecomputeIndex& index, OffloadPlan& plan);

}  // namespace spillway::planners
