// traces/data/gpt2-tiny-cpu: the figures its README states, counted there by other means than our readers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/byte_source.h"
#include "traces/formats/execution_trace_reader.h"
#include "traces/formats/kineto/kineto_reader.h"
#include "traces/formats/read.h"
#include "traces/trace.h"

namespace spillway::traces {
namespace {

ByteSource bundled(const std::string& name) {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return ByteSource::open(
      (root != nullptr ? std::string(root) : std::string(".")) + "/traces/data/gpt2-tiny-cpu/" + name,
      std::uint64_t{1} << 30);
}

TEST(BundledCapture, StepsAreThoseOfTheAnnotations) {
  ByteSource source = bundled("steps.json.gz");
  const Trace trace = read_kineto(source, {});
  trace.check_invariants();
  EXPECT_EQ(trace.source_events, 38'362U);
  EXPECT_TRUE(trace.has(Capability::times));
  ASSERT_EQ(trace.steps.size(), 3U);
  EXPECT_EQ(trace.strings.text(trace.steps[0].name), "ProfilerStep#0");
  EXPECT_EQ(trace.steps[0].duration, nanoseconds(2'404'094'101));
  EXPECT_EQ(trace.steps[1].duration, nanoseconds(2'353'776'542));
  EXPECT_EQ(trace.steps[2].duration, nanoseconds(2'405'239'108));
  for (const Finding& finding : trace.findings) EXPECT_FALSE(finding.is_error) << finding.kind;
}

// Every tensor was allocated while recording: the sum of allocations less frees is `Total Allocated` after each.
TEST(BundledCapture, MemoryAddsUp) {
  ByteSource source = bundled("steps.json.gz");
  const Trace trace = read_kineto(source, {});
  ASSERT_EQ(trace.memory_events.size(), 6'254U);
  Bytes held{}, peak{};
  for (const MemoryEvent& event : trace.memory_events) {
    held += event.action == MemoryAction::allocate ? event.bytes : -event.bytes;
    ASSERT_EQ(held, event.total_allocated);
    peak = std::max(peak, held);
  }
  EXPECT_EQ(peak, Bytes(127'543'576));
  EXPECT_EQ(held, Bytes(50'956'496));
}

TEST(BundledCapture, GraphHasItsNodes) {
  ByteSource source = bundled("graph.json.gz");
  const Trace trace = read_execution_trace(source, {});
  trace.check_invariants();
  EXPECT_EQ(trace.source_events, 10'386U);
  EXPECT_TRUE(trace.has(Capability::uses));
}

}  // namespace
}  // namespace spillway::traces
