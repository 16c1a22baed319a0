// A generated step of many equal micro-batches, told by fewer of them.
//
//   ops of a rank    | before | period | period | ... | period | after |
//                             '-------- shown ----------------'  ^ `times` more periods, which the trace does not have
//
// A period is what a rank does from a micro-batch to the next, forwards of later and backwards of earlier ones, in the
// order of its pipeline schedule. The whole step has `times` more of them on every rank, behind the last one shown.
// Nothing in them is new: an op of one is that op a period later. So are what it waits for and what it allocates and
// frees. Ops of setup, of the first three micro-batches and behind the periods stay what they are.
#pragma once

#include <cstdint>
#include <vector>

namespace spillway::traces {

struct StepFold {
  struct Rank {
    std::uint32_t periods = 0;             // shown
    std::uint32_t op = 0, ops = 0;         // the first period's first op; how many a period has
    std::uint32_t event = 0, events = 0;   // the same of Trace::memory_events
    std::uint64_t address = 0, bytes = 0;  // the lowest address of an allocation in them; a period's is so much higher
    [[nodiscard]] std::uint32_t end() const { return op + periods * ops; }  // first op behind the periods
    [[nodiscard]] std::uint32_t events_end() const { return event + periods * events; }
  };
  std::int64_t times = 0;   // > 0
  std::vector<Rank> ranks;  // by rank of the trace, each with periods
};

// Why a replay of a folded step can't say exactly what the whole one would do: that one is to be replayed, or a fold
// that shows more.
struct FoldRefusal {
  const char* why = nullptr;  // of static storage
  // A fold that may work: with `turns` periods in turn, `times` a multiple of them, and at least `more` periods more of
  // each rank shown. 0: none are seen.
  std::int64_t turns = 0, more = 0;
};

// Ops of these micro-batches, and of none, are no copies of another one's.
constexpr std::uint16_t micro_batches_apart = 3;

}  // namespace spillway::traces
