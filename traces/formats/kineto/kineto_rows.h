// Kineto's events as compact rows in file order, before they are put in order as a Trace.
//
// Times are picoseconds since `origin_us`, an instant near the first event: epoch times in picoseconds would not
// fit in 64 bits.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/memory_limit.h"
#include "traces/formats/kineto/kineto_calls.h"
#include "traces/formats/kineto/kineto_event.h"
#include "traces/lane_index.h"
#include "traces/trace.h"

namespace spillway::traces {

struct KinetoHostRow {
  std::int64_t start = 0, duration = 0;
  std::int64_t correlation = -1;
  StringId name{};
  LaneId lane = LaneId::none;
  HostCall call;
};

struct KinetoDeviceRow {
  std::int64_t start = 0, duration = 0;
  std::int64_t correlation = -1;
  std::int64_t bytes = 0, flops = 0;  // 0: not said
  StringId name{};
  std::uint32_t launch = 0xffffffffU;  // position among the host ops; set when they are in order
  LaneId lane = LaneId::none;
  OpKind kind = OpKind::kernel;
  std::uint8_t flags = 0;
};

struct KinetoSpanRow {
  std::int64_t start = 0, duration = 0;
  std::int64_t sequence = -1, record_id = -1, external_id = -1;
  StringId name{};
  LaneId lane = LaneId::none;
  SpanKind kind = SpanKind::cpu_operator;
};

// A cuda_sync event, which describes the host call with the same correlation.
struct KinetoSyncRow {
  std::int64_t correlation = -1;
  std::int64_t stream = -1;
  std::int64_t wait_stream = -1;
  std::int64_t record_correlation = -1;
  std::int16_t device = 0;
};

struct KinetoMemoryRow {
  MemoryEvent event;
  std::int64_t index = 0;  // "Ev Idx"
};

struct KinetoCollectiveRow {
  std::uint32_t device_row = 0;
  Collective what;
};

// Sorts events into rows; rows that can't be used become findings of `trace`.
class KinetoRows {
 public:
  // `keep_python`: python functions become spans. `origin_us`: see above. Rows are counted in `budget`.
  KinetoRows(Trace& trace, FileMemory& budget, bool keep_python, std::int64_t origin_us)
      : trace_(trace), lanes_(trace), memory_(budget), keep_python_(keep_python), origin_us_(origin_us) {}

  // `place`: offset of the event in the file, for findings.
  void add(const KinetoEvent& event, std::uint64_t place);

  std::vector<KinetoHostRow> host;
  std::vector<KinetoDeviceRow> device;
  std::vector<KinetoSpanRow> spans;
  std::vector<KinetoSyncRow> syncs;
  std::vector<KinetoMemoryRow> memory;
  std::vector<KinetoCollectiveRow> collectives;
  std::vector<Step> steps;
  std::uint64_t informational_calls = 0;

  [[nodiscard]] std::int64_t origin_us() const { return origin_us_; }
  void name_lanes();          // from the thread names that the file gives
  void note_informational();  // informational_calls, as a finding

 private:
  struct Interval {
    std::int64_t start = 0, duration = 0;
  };
  bool instant_of(const KinetoEvent& event, std::int64_t& at, std::uint64_t place);
  bool interval_of(const KinetoEvent& event, Interval& interval, std::uint64_t place);
  void add_complete(const KinetoEvent& event, std::uint64_t place);
  void add_span(const KinetoEvent& event, const Interval& interval, SpanKind kind);
  void add_host_call(const KinetoEvent& event, const Interval& interval);
  void add_device_work(const KinetoEvent& event, const Interval& interval);
  void add_sync(const KinetoEvent& event);
  void add_memory(const KinetoEvent& event, std::uint64_t place);
  // Events without a category, as XLA's profiler (JAX's trace.json.gz) and rocprof write them: what they are is said by
  // the names of their process and thread, which stand before them.
  enum class Line : std::uint8_t { unknown, left_out, host, device, copies };
  struct NamedLine {
    Line what = Line::unknown;
    LaneId lane = LaneId::none;
  };
  NamedLine named_line(const KinetoEvent& event);
  void add_uncategorised(const KinetoEvent& event, std::uint64_t place);
  void add_label(const KinetoEvent& event);
  void set_key(const KinetoEvent& event);  // scratch_: pid and tid as written
  void add_collective(const KinetoEvent& event);
  StringId intern(const KinetoEvent& event, KinetoField field);
  LaneId thread_lane(const KinetoEvent& event);
  LaneId stream_lane(const KinetoEvent& event);
  LaneId stream_lane(std::int64_t recorded_device, std::int64_t stream);

  Trace& trace_;
  LaneIndex lanes_;
  FileMemory& memory_;
  bool keep_python_;
  std::int64_t origin_us_;
  std::unordered_map<std::string, LaneId> threads_;  // key: pid and tid as written
  std::string last_thread_;                          // of the last look-up, which mostly repeats
  LaneId last_thread_lane_ = LaneId::none;
  std::unordered_map<std::string, std::string> thread_names_, process_names_;
  std::unordered_set<std::string> with_streams_;  // processes with threads named "Stream #7"
  std::unordered_map<std::string, NamedLine> lines_;
  std::unordered_map<std::int64_t, HostCall> calls_;  // by name id
  LaneId last_stream_ = LaneId::none;                 // of the last look-up, which often repeats
  std::string scratch_;
};

}  // namespace spillway::traces
