#include "traces/infer_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "tests/traces/tiny_capture.h"
#include "traces/reorder_ops.h"

namespace spillway::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// The works that use a tensor, by name; the writer first.
std::vector<std::string> users(const Trace& trace, std::uint32_t tensor) {
  std::vector<std::string> names;
  for (const Access access : {Access::write, Access::read})
    for (const Use& use : trace.uses)
      if (index_of(use.tensor) == tensor && use.access == access)
        names.emplace_back(trace.strings.text(trace.ops.name[index_of(use.op)]));
  return names;
}

// Block k is made by op k and given back behind node k + 1. Without layers its uses end one operator behind that.
TEST(InferUses, ByOperatorsReachOneOperatorFurther) {
  Trace trace = TinyCapture{.operators = 5}.make();
  infer_uses(trace);
  ASSERT_EQ(trace.tensors.size(), 4U);  // the last block lives into the optimizer: no activation of the backward
  EXPECT_THAT(users(trace, 3), ElementsAre("forward 0", "forward 1", "forward 2", "backward 2", "backward 1"));
  EXPECT_THAT(users(trace, 2), ElementsAre("forward 1", "forward 2", "forward 3", "backward 3", "backward 2"));
  EXPECT_THAT(users(trace, 0), ElementsAre("forward 3", "forward 4", "backward 4"));
  for (const TensorRole role : trace.tensors.role) EXPECT_EQ(role, TensorRole::activation);
  EXPECT_EQ(trace.strings.text(trace.tensors.name[0]), "aten::op");
  EXPECT_TRUE(trace.has(Capability::uses));
  EXPECT_TRUE(trace.is_inferred(Capability::uses));
  ASSERT_NE(trace.finding("uses_inferred"), nullptr);
  EXPECT_EQ(trace.finding("uses_inferred")->count, 4U);
}

// Without sequence numbers, with layers of two operators: block 0 stays in layer 0; block 1 is handed to layer 1, whose
// backward gives it back.
TEST(InferUses, ByLayersEndWithTheLayerThatGaveBack) {
  Trace trace = TinyCapture{.operators = 4, .operators_per_layer = 2}.make();
  trace.spans.sequence.assign(trace.spans.size(), -1);
  infer_uses(trace);
  ASSERT_EQ(trace.tensors.size(), 3U);
  EXPECT_THAT(users(trace, 2), ElementsAre("forward 0", "forward 1", "backward 1"));
  EXPECT_THAT(users(trace, 1), ElementsAre("forward 1", "forward 2", "forward 3", "backward 3", "backward 2"));
}

// Both memory events of a block name its tensor; those of a block that is no activation name none.
TEST(InferUses, TiesMemoryEventsToTensors) {
  Trace trace = TinyCapture{.operators = 3}.make();
  infer_uses(trace);
  std::vector<int> events(trace.tensors.size(), 0);
  int others = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.tensor == TensorId::none)
      ++others;
    else
      ++events[index_of(event.tensor)];
  }
  EXPECT_THAT(events, ElementsAre(2, 2));
  EXPECT_EQ(others, 2);
}

// Each forward behind a backward begins a pass; an address taken again is another tensor.
TEST(InferUses, NumbersPassesAsMicroBatches) {
  Trace trace = TinyCapture{.operators = 3, .passes = 3}.make();
  infer_uses(trace);
  EXPECT_THAT(trace.tensors.bytes, SizeIs(3 * 2));
  std::uint16_t last = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (is_device_work(trace.ops.kind[i]) && trace.ops.phase[i] != Phase::optimizer) {
      EXPECT_GE(trace.ops.micro_batch[i], last);
      last = trace.ops.micro_batch[i];
    }
  EXPECT_EQ(last, 2);
  for (const Use& use : trace.uses)  // no use in another pass than the tensor's writer
    EXPECT_EQ(trace.ops.micro_batch[index_of(use.op)], index_of(use.tensor) / 2);
}

TEST(InferUses, SaysWhatIsMissing) {
  Trace trace = TinyCapture{}.make();
  Trace bare;
  bare.set(Capability::times);
  try {
    infer_uses(bare);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("memory, phases"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("profile_memory=True"));
  }
  infer_uses(trace);
  EXPECT_THROW(infer_uses(trace), InputError);  // it has uses now
}

// Every reference follows its op, whatever the order.
TEST(ReorderOps, MovesReferences) {
  Trace trace = TinyCapture{.operators = 3}.make();
  infer_uses(trace);
  std::vector<OpId> order;
  for (std::size_t i = trace.ops.size(); i-- > 0;) order.push_back(OpId(static_cast<std::uint32_t>(i)));
  const Trace moved = with_ops_in(trace, order);
  moved.check_invariants();
  const std::size_t last = trace.ops.size() - 1;
  for (std::size_t i = 0; i <= last; ++i) {
    EXPECT_EQ(trace.ops.name[i], moved.ops.name[last - i]);
    if (trace.ops.launched_by[i] != OpId::none) {
      EXPECT_EQ(index_of(moved.ops.launched_by[last - i]), last - index_of(trace.ops.launched_by[i]));
    }
  }
  for (std::size_t e = 0; e < trace.memory_events.size(); ++e)
    EXPECT_EQ(index_of(moved.memory_events[e].anchor), last - index_of(trace.memory_events[e].anchor));
  ASSERT_EQ(trace.uses.size(), moved.uses.size());
  EXPECT_TRUE(
      std::is_sorted(moved.uses.begin(), moved.uses.end(), [](const Use& a, const Use& b) { return a.op < b.op; }));
  EXPECT_EQ(users(trace, 0).front(), users(moved, 0).front());
}

}  // namespace
}  // namespace spillway::traces
