// The clocks of a Perfetto trace, put on one: the trace's own, in nanoseconds.
//
//   snapshot   boot 1,000  wall 5,000  64: 7 (unit 10 ns, counts on)
//   packet     clock 64, timestamp 3   ->  boot 1,030; the next one counts on from there
//
// Clocks 1 to 63 are the system's and the same everywhere; 64 to 127 belong to the sequence of packets with the
// snapshot that named them. A clock of the system keeps the offset of its first snapshot, so a later one never changes
// lengths measured on it. Perfetto takes the latest: a difference of the clocks' drift.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "traces/formats/perfetto/perfetto_packet.h"

namespace spillway::traces {

class PerfettoClocks {
 public:
  static constexpr std::uint64_t boot_time = 6, real_time = 1, first_of_sequence = 64;

  // `primary`: as the snapshot says, 0 for no word. Clocks that overflow are not kept.
  void take(std::uint64_t sequence, const std::vector<PerfettoClock>& clocks, std::uint64_t primary);

  // Nanoseconds on the trace's clock. Counting clocks move on. Nothing when that is beyond 63 bits.
  std::optional<std::int64_t> time(std::uint64_t sequence, std::uint64_t clock, std::uint64_t timestamp);

  // Was there a snapshot with this clock, or is it the trace's own?
  [[nodiscard]] bool is_known(std::uint64_t sequence, std::uint64_t clock) const;
  [[nodiscard]] std::uint64_t primary() const { return primary_ == 0 ? boot_time : primary_; }
  // Offset from the trace's clock to nanoseconds since 1970.
  [[nodiscard]] std::optional<std::int64_t> to_epoch() const;

 private:
  struct Clock {
    std::int64_t offset_ns = 0;  // to the trace's clock
    std::int64_t counted_ns = 0;
    std::uint64_t unit_ns = 1;
    bool is_incremental = false;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // sequence (0 for the system's clocks), clock
  static Key key(std::uint64_t sequence, std::uint64_t clock) {
    return {clock < first_of_sequence ? 0 : sequence, clock};
  }

  std::map<Key, Clock> clocks_;
  std::uint64_t primary_ = 0;
};

}  // namespace spillway::traces
