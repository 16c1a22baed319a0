#include "traces/size_check.h"

#include <string>
#include <string_view>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 60, largest_sum = std::int64_t{1} << 62;
// Bytes per second that no link carries; the engine's links end there too (sim/engine/fluid_network.h, max_capacity).
constexpr double fastest = 33e15;

class Sum {
 public:
  Sum(const Trace& trace, std::string_view table) : trace_(trace), table_(table) {}

  void add(Bytes bytes) {
    if (bytes < Bytes(0)) fail("a size is negative");
    if (bytes.count() >= largest_sum - sum_) fail("sizes add up to 2^62 bytes or more");
    sum_ += bytes.count();
  }

 private:
  [[noreturn]] void fail(const std::string& cause) const {
    throw InputError(trace_.provenance.empty() ? "" : trace_.provenance.front().file, std::string(table_), cause,
                     "the file is damaged, or no recording; record or export it again");
  }

  const Trace& trace_;
  std::string_view table_;
  std::int64_t sum_ = 0;
};

bool is_possible(Bytes bytes, Picos duration) {
  if (bytes.count() > largest_size) return false;
  return duration <= Picos(0) || static_cast<double>(bytes.count()) <= fastest * to_seconds(duration);
}

}  // namespace

void check_sizes(Trace& trace) {
  Ops& ops = trace.ops;
  Sum moved(trace, "copies and kernels");
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!is_possible(ops.bytes[i], ops.duration[i])) {
      trace.note("impossible_size", trace.strings.text(ops.name[i]),
                 "more bytes than any link carries in the time it took; its size was left out", true);
      ops.bytes[i] = Bytes(0);
    }
    moved.add(ops.bytes[i]);
  }
  Sum allocated(trace, "memory events"), segments(trace, "segments"), blocks(trace, "blocks"),
      tensors(trace, "tensors"), start_up(trace, "start-up"), collectives(trace, "collectives");
  for (const MemoryEvent& event : trace.memory_events) allocated.add(event.bytes);
  for (const MemorySegment& segment : trace.memory_segments) segments.add(segment.total);
  for (const MemoryBlock& block : trace.memory_blocks) blocks.add(block.size);
  for (const Bytes bytes : trace.tensors.bytes) tensors.add(bytes);
  for (const StartUpEvent& event : trace.start_up) start_up.add(event.bytes);
  for (const Collective& collective : trace.collectives) collectives.add(collective.bytes);
}

}  // namespace spillway::traces
