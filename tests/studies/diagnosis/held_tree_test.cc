#include "studies/diagnosis/held_tree.h"

#include <gtest/gtest.h>

namespace spillway::studies {
namespace {

const HeldNode* child(const HeldNode& node, const std::string& name) {
  for (const HeldNode& one : node.children)
    if (one.name == name) return &one;
  return nullptr;
}

// What everything goes through is left out, as are lines of torch below the program's own last one; bytes add up.
TEST(HeldTree, StacksAreAddedUp) {
  MemoryDiagnosis diagnosis;
  diagnosis.has_stacks = true;
  diagnosis.alive = Bytes(700);
  diagnosis.stacks = {
      {{"main.py:1 main", "train.py:9 step", "model.py:4 forward", "torch/nn/linear.py:1 forward"}, Bytes(400), 2},
      {{"main.py:1 main", "train.py:9 step", "model.py:7 forward"}, Bytes(200), 1},
      {{"main.py:1 main", "data.py:3 load"}, Bytes(100), 1}};
  const HeldNode root = held_by_stack(diagnosis);
  EXPECT_EQ(root.bytes, Bytes(700));
  EXPECT_EQ(root.blocks, 4U);
  ASSERT_EQ(root.children.size(), 2U);
  EXPECT_EQ(root.children[0].name, "train.py:9 step");
  EXPECT_EQ(root.children[0].bytes, Bytes(600));
  ASSERT_EQ(root.children[0].children.size(), 2U);
  EXPECT_EQ(root.children[0].children[0].name, "model.py:4 forward");
  EXPECT_TRUE(root.children[0].children[0].children.empty());
  EXPECT_EQ(root.children[0].children[0].bytes, Bytes(400));
  EXPECT_EQ(root.children[0].children[1].name, "model.py:7 forward");
  EXPECT_EQ(root.children[0].children[1].bytes, Bytes(200));
  EXPECT_EQ(root.children[1].name, "data.py:3 load");
  EXPECT_EQ(root.children[1].bytes, Bytes(100));
}

TEST(HeldTree, LinesAreByFile) {
  MemoryDiagnosis diagnosis;
  diagnosis.places = {{"model.py:4 forward", Bytes(300), 3},
                      {"model.py:7 forward", Bytes(50), 1},
                      {"no stack recorded", Bytes(7), 1},
                      {"memory.cpp torch::cuda::gather", Bytes(5), 1}};
  const HeldNode root = held_by_line(diagnosis);
  ASSERT_EQ(root.children.size(), 3U);
  EXPECT_EQ(root.children[2].name, "memory.cpp torch::cuda::gather");
  EXPECT_EQ(root.children[0].name, "model.py");
  EXPECT_EQ(root.children[0].bytes, Bytes(350));
  EXPECT_EQ(root.children[0].children[0].name, "line 4 forward");
  EXPECT_EQ(root.children[1].name, "no stack recorded");
}

// Of what is alive alone: owner, layer, tensor. A tensor's own layer counts where its name has one.
TEST(HeldTree, OwnersLayersAndTensors) {
  Trace trace;
  const LaneId stream =
      trace.lane({.kind = LaneKind::stream, .device = 0, .number = 7, .name = trace.strings.intern("s")});
  trace.append_op({.name = trace.strings.intern("gemm"), .kind = OpKind::kernel, .lane = stream, .layer = 3});
  trace.tensors.name.push_back(trace.strings.intern("layers.11.mlp.up"));
  MemoryEvent named, unnamed;
  named.tensor = static_cast<TensorId>(0);
  named.anchor = unnamed.anchor = static_cast<OpId>(0);
  trace.memory_events = {named, unnamed};
  MemoryPicture picture;
  picture.kinds = {"activation", "weight"};
  picture.blocks = {{0, 10, 0, Bytes(100), 0, 0, -1},
                    {0, 10, 100, Bytes(40), 0, 1, -1},
                    {0, 5, 200, Bytes(999), 0, 1, -1},  // gone by then
                    {0, 10, 300, Bytes(70), 1, -1, -1}};
  const HeldNode root = held_by_owner(trace, picture, 7);
  EXPECT_EQ(root.bytes, Bytes(210));
  const HeldNode* const activations = child(root, "activation");
  ASSERT_NE(activations, nullptr);
  EXPECT_EQ(activations->bytes, Bytes(140));
  ASSERT_NE(child(*activations, "layer 11"), nullptr);
  EXPECT_EQ(child(*activations, "layer 11")->children[0].name, "layers.11.mlp.up");
  EXPECT_EQ(child(*activations, "layer 11")->children[0].example, 0);
  ASSERT_NE(child(*activations, "layer 3"), nullptr);
  EXPECT_EQ(child(*activations, "layer 3")->children[0].name, "for gemm");
  ASSERT_NE(child(root, "weight"), nullptr);
  EXPECT_EQ(child(root, "weight")->children[0].children[0].name, "held before the step");
}

}  // namespace
}  // namespace spillway::studies
