// A buffer in front of something slower: the write cache of a drive, in exact integer arithmetic.
//
//        inflow (what the link carries)          level
//             |                            size  |....____........      full: link drops to `slow`
//        +----v----+                             |   /    \      .
//        |  level  |  0 <= level <= size         |  /      \     .
//        +----+----+                     resume  | /........\____/      link is `fast` again
//             | drain (while level > 0)          |/
//             v                                  +---------------> time
//
// While not full the link in front of it runs at `fast`. On becoming full the link drops to `slow`, and
// stays there until the level has come down to `resume_level` (hysteresis). With a `fold_level` there is a stage
// between: from that level on the link runs at `fold`, also until `resume_level`. While full, inflow above
// the drain passes by the buffer (`bypassed`) and the level stays at `size`.
//
// The level is held in 2^-16 picosecond-rate units (see fluid_network.h), so settling never rounds. Full and empty
// instants are rounded up to the next picosecond. The excess that one picosecond carries beyond the brim counts as
// bypassed; the excess that it would take from below the floor is not drained. Conservation is exact: initial level +
// inflow == level + drained + bypassed.
//
// Model: pseudo-SLC cache with folding, two or three rates and hysteresis; real firmware also varies the cache with the
// drive's filling, which a caller expresses by choosing size and drain.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "sim/engine/ids.h"
#include "sim/engine/wide.h"

namespace spillway::sim {

struct ReservoirSpec {
  LinkId link{};                   // flows over this link fill the reservoir; its capacity is governed
  std::int64_t size = 0;           // amount units (bytes), > 0
  std::int64_t resume_level = 0;   // 0 <= resume_level < size
  std::int64_t initial_level = 0;  // 0 <= initial_level <= size; at size it starts full
  Rate drain{};                    // >= 0
  Rate fast{};                     // link capacity while not full
  Rate slow{};                     // link capacity from full until resume_level
  std::int64_t fold_level = 0;     // 0: no middle stage; else resume_level < fold_level < size
  Rate fold{};                     // link capacity from fold_level until full
};

class Reservoir {
 public:
  // Throws InputError when a field is out of its range.
  explicit Reservoir(const ReservoirSpec& spec);

  // Brings the level to `now`. `now` must not lie beyond next_event().
  void settle(Picos now);
  // From now on the inflow is `scaled_rate` 2^-16 Rate units. Settles first.
  void set_inflow(Picos now, std::int64_t scaled_rate);
  // First instant after now at which stage() will change or the level reaches 0; Picos::max() when never.
  [[nodiscard]] Picos next_event() const;
  // Handles what is due at `now`; true when capacity() changed.
  bool advance(Picos now);

  enum class Stage : std::uint8_t { fast, slow, fold };
  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] Rate capacity() const {
    return stage_ == Stage::fast ? spec_.fast : stage_ == Stage::slow ? spec_.slow : spec_.fold;
  }
  [[nodiscard]] bool full() const { return stage_ == Stage::slow; }
  [[nodiscard]] const ReservoirSpec& spec() const { return spec_; }
  // Whole units, rounded down.
  [[nodiscard]] std::int64_t level() const;
  [[nodiscard]] std::int64_t drained() const;
  [[nodiscard]] std::int64_t bypassed() const;
  // The exact equation above.
  [[nodiscard]] bool conserves() const;

 private:
  [[nodiscard]] std::int64_t net_rate() const;  // change of level, scaled; 0 where a bound holds it

  ReservoirSpec spec_;
  Wide level_ = 0, brim_ = 0, fold_ = 0, resume_ = 0, initial_ = 0, inflow_total_ = 0, drained_ = 0, bypassed_ = 0;
  std::int64_t inflow_ = 0, drain_ = 0;
  Picos settled_{};
  Stage stage_ = Stage::fast;
};

}  // namespace spillway::sim
