// The memory events of a trace with some storages' lifetimes cut: given back early, taken again, or away when the step
// begins. Used by planned_trace(); knows nothing of why.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "traces/trace.h"

namespace spillway::sim {

struct RewrittenMemory {
  std::vector<MemoryEvent> events;
  std::vector<OpId> gate;  // by event: it also waits for the end of this op; none: for nothing
};

class PlannedLives {
 public:
  // `new_id`: by op of `trace`, its id in the trace to be written.
  PlannedLives(const Trace& trace, std::span<const OpId> new_id);

  // Null when the trace doesn't show the storage being allocated.
  [[nodiscard]] const MemoryEvent* allocation(std::uint32_t storage) const;

  // `column`: op of the old trace; the new event goes beside its recorded ones. `anchor`, `gate`: ids of the new trace.
  void away_at_the_start(std::uint32_t storage) { life_of(storage).away = true; }
  void give_back(std::uint32_t storage, std::size_t column, OpId anchor, OpId gate);
  void take(std::uint32_t storage, std::size_t column, OpId anchor);
  // From there on the storage isn't given back before this op has ended.
  void hold(std::uint32_t storage, std::size_t column, OpId until);
  // Another block as big as the storage's.
  void temporary(std::uint32_t storage, std::size_t column, OpId taken_at, OpId given_back_at);

  // Frees of what is gone already are left out. O(events log events).
  RewrittenMemory write();

 private:
  enum class Change : std::uint8_t { take, give_back, hold, whole };  // whole: as it stands, tied to no storage
  static constexpr int recorded_rank = 2;
  static constexpr std::uint32_t unchanged = std::numeric_limits<std::uint32_t>::max();
  struct Placed {
    std::size_t column = 0;
    // Within the column: 0 taken for what it launches; 1 given back at its launch; 2 recorded, 3 given back after
    // these.
    int rank = recorded_rank;
    Change change = Change::whole;
    std::uint32_t storage = 0;
    OpId gate = OpId::none;
    MemoryEvent event;
  };
  struct Life {
    Addr address{};
    bool away = false;      // until first taken
    bool resident = false;  // not yet given back
    bool pending = false;   // given back, completion to come
    OpId held_until = OpId::none;
  };

  void place(std::uint32_t storage, std::size_t column, int rank, Change change, MemoryAction action, OpId anchor,
             OpId gate);
  Addr fresh_address(Bytes bytes);
  void write_placed(const Placed& placed, RewrittenMemory& out);
  void write_recorded(MemoryEvent event, Life& life, RewrittenMemory& out);
  void write_give_back(const Placed& placed, RewrittenMemory& out);
  static void push(const MemoryEvent& event, OpId gate, RewrittenMemory& out);

  const Trace& trace_;
  std::span<const OpId> new_id_;
  Life& life_of(std::uint32_t storage);  // from now on one that changes
  [[nodiscard]] Life* known_life(std::uint32_t storage);

  std::vector<const MemoryEvent*> allocation_;  // by storage; of trace_
  std::vector<std::uint32_t> life_index_;       // by storage: in lives_
  std::vector<Life> lives_;
  std::vector<Placed> placed_;
  std::uint64_t next_address_ = 0;
  bool has_completions_ = false;
};

}  // namespace spillway::sim
