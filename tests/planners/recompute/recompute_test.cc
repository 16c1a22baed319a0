#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planners/recompute/closure.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A step by hand: kernels on one stream, 10 us each, tensors of 1 MiB.
class Steps {
 public:
  Steps() {
    trace_.lane({.kind = LaneKind::stream, .device = 0, .number = 7, .name = trace_.strings.intern("stream")});
    for (int c = 0; c < capability_count; ++c) trace_.set(static_cast<Capability>(c));
  }
  TensorId tensor(const std::string& name, TensorRole role = TensorRole::activation) {
    const TensorId id{static_cast<std::uint32_t>(trace_.tensors.size())};
    trace_.tensors.name.push_back(trace_.strings.intern(name));
    trace_.tensors.bytes.emplace_back(1 << 20);
    trace_.tensors.storage.push_back(static_cast<std::uint32_t>(id));
    trace_.tensors.role.push_back(role);
    trace_.tensors.dtype.push_back(trace_.strings.intern("float32"));
    return id;
  }
  OpId op(Phase phase, const std::vector<TensorId>& reads, const std::vector<TensorId>& writes,
          OpKind kind = OpKind::kernel) {
    for (const TensorId t : writes)
      if (trace_.tensors.role[index_of(t)] == TensorRole::activation && taken_.insert(t).second)
        event(t, MemoryAction::allocate);
    const OpId id = trace_.append_op({.name = trace_.strings.intern("op" + std::to_string(trace_.ops.size())),
                                      .kind = kind,
                                      .phase = phase,
                                      .lane = LaneId(0),
                                      .layer = 0,
                                      .micro_batch = 0,
                                      .start = Picos(0),
                                      .duration = from_seconds(1e-5)});
    for (const TensorId t : reads) trace_.uses.push_back({id, t, Access::read});
    for (const TensorId t : writes) trace_.uses.push_back({id, t, Access::write});
    last_ = id;
    return id;
  }
  OpId forward(const std::vector<TensorId>& reads, const std::vector<TensorId>& writes) {
    return op(Phase::forward, reads, writes);
  }
  OpId backward(const std::vector<TensorId>& reads, const std::vector<TensorId>& writes = {}) {
    return op(Phase::backward, reads, writes);
  }
  void free(TensorId tensor) { event(tensor, MemoryAction::free_requested); }
  Trace& trace() { return trace_; }

 private:
  void event(TensorId tensor, MemoryAction action) {
    trace_.memory_events.push_back({.address = Addr(0x1000U + 0x200000U * static_cast<std::uint64_t>(tensor)),
                                    .bytes = Bytes(1 << 20),
                                    .anchor = last_ == OpId::none ? OpId(0) : last_,
                                    .tensor = tensor,
                                    .action = action,
                                    .device = 0,
                                    .stream = LaneId(0)});
  }
  Trace trace_;
  OpId last_ = OpId::none;
  std::set<TensorId> taken_;
};

std::size_t index_of_tensor(std::span<const SavedTensor> saved, TensorId tensor) {
  for (std::size_t s = 0; s < saved.size(); ++s)
    if (saved[s].tensor == tensor) return s;
  ADD_FAILURE() << "not saved";
  return 0;
}

// x -> a -> t -> b -> c, t freed in the forward; a, b, c saved. Bringing b back needs t, and t needs a.
struct Chain {
  Steps steps;
  TensorId x = steps.tensor("x", TensorRole::input), a = steps.tensor("a"), t = steps.tensor("t"),
           b = steps.tensor("b"), c = steps.tensor("c");
  OpId begin, make_a, make_t, make_b, make_c, use_c, use_b, use_a;
  std::vector<SavedTensor> saved;
  Chain() {
    begin = steps.forward({}, {});
    make_a = steps.forward({x}, {a});
    make_t = steps.forward({a}, {t});
    make_b = steps.forward({t}, {b});
    steps.free(t);
    make_c = steps.forward({b}, {c});
    use_c = steps.backward({c});
    steps.free(c);
    use_b = steps.backward({b});
    steps.free(b);
    use_a = steps.backward({a});
    steps.free(a);
    saved = saved_tensors(steps.trace());
  }
  [[nodiscard]] std::size_t index(TensorId tensor) const { return index_of_tensor(saved, tensor); }
};

TEST(RecomputeClosure, StopsAtWhatIsThereAndPassesWhatIsNot) {
  Chain chain;
  ASSERT_EQ(chain.saved.size(), 3U);
  RecomputeIndex index(chain.steps.trace(), chain.saved);
  AwayUntil away(3, OpId::none);
  const std::vector<std::size_t> b = {chain.index(chain.b)};
  auto group = index.group(b, away);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->before, chain.use_b);
  EXPECT_THAT(group->ops, ElementsAre(chain.make_t, chain.make_b));
  EXPECT_EQ(group->time, from_seconds(2e-5));
  EXPECT_EQ(group->temporary, Bytes(1 << 20));  // t
  // With a away as well, b needs the whole chain, from the input on.
  away[chain.index(chain.a)] = chain.use_a;
  group = index.group(b, away);
  ASSERT_TRUE(group);
  EXPECT_THAT(group->ops, ElementsAre(chain.make_a, chain.make_t, chain.make_b));
  // a comes back after b has gone: nothing but its own writer is needed.
  const std::vector<std::size_t> a = {chain.index(chain.a)};
  group = index.group(a, away);
  ASSERT_TRUE(group);
  EXPECT_THAT(group->ops, ElementsAre(chain.make_a));
}

// c and b before c's first use: one group, in launch order; b's absence says it is fetched early.
TEST(RecomputeClosure, BringsSeveralBackTogether) {
  Chain chain;
  RecomputeIndex index(chain.steps.trace(), chain.saved);
  const std::vector<std::size_t> both = {chain.index(chain.b), chain.index(chain.c)};
  AwayUntil away(3, OpId::none);
  for (const std::size_t s : both) away[s] = chain.use_c;
  const std::vector<RecomputeGroup> groups = index.groups(away);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_THAT(groups[0].ops, ElementsAre(chain.make_t, chain.make_b, chain.make_c));
  OffloadPlan plan;
  add_to_plan(groups[0], index, plan);
  ASSERT_EQ(plan.recomputations.size(), 1U);
  ASSERT_EQ(plan.absences.size(), 2U);
  EXPECT_EQ(plan.absences[0].fetch_at, chain.use_c);
  EXPECT_EQ(plan.absences[0].back_before, chain.use_b);
  EXPECT_EQ(plan.absences[1].fetch_at, OpId::none);
  planned_trace(chain.steps.trace(), plan).trace.check_invariants();
  // Another group before the same op joins it.
  add_to_plan({chain.use_c, {chain.make_a}, {chain.index(chain.a)}, {}, {}}, index, plan);
  ASSERT_EQ(plan.recomputations.size(), 1U);
  EXPECT_THAT(plan.recomputations[0].ops, ElementsAre(chain.make_a, chain.make_t, chain.make_b, chain.make_c));
}

// y is made from a, then a is changed in place: y's writer would read something else.
TEST(RecomputeClosure, RefusesWhatHasChangedSince) {
  Steps steps;
  const TensorId state = steps.tensor("state", TensorRole::buffer), y = steps.tensor("y"), z = steps.tensor("z");
  const TensorId counter = steps.tensor("counter", TensorRole::buffer);
  steps.forward({}, {});
  steps.forward({state}, {y});
  steps.forward({state}, {state});
  steps.forward({counter}, {counter, z});
  steps.backward({z});
  steps.backward({y});
  const std::vector<SavedTensor> saved = saved_tensors(steps.trace());
  ASSERT_EQ(saved.size(), 2U);
  RecomputeIndex index(steps.trace(), saved);
  const AwayUntil away(2, OpId::none);
  std::vector<std::size_t> one = {index_of_tensor(saved, y)};
  EXPECT_FALSE(index.group(one, away));
  EXPECT_THAT(index.refusal(), HasSubstr("state"));
  one = {index_of_tensor(saved, z)};
  EXPECT_FALSE(index.group(one, away));
  EXPECT_THAT(index.refusal(), HasSubstr("counter"));
  AwayUntil everything = {saved[0].first_backward, saved[1].first_backward};
  EXPECT_TRUE(index.groups(everything).empty());
  EXPECT_THAT(everything, ElementsAre(OpId::none, OpId::none));
}

// u is made by one op and changed by another before it is saved: both are repeated. v was made from u before the
// change: u is rebuilt beside the one in memory, as far as v's writer saw it.
TEST(RecomputeClosure, RebuildsVersions) {
  Steps steps;
  const TensorId x = steps.tensor("x", TensorRole::input), u = steps.tensor("u"), v = steps.tensor("v");
  steps.forward({}, {});
  const OpId make_u = steps.forward({x}, {u});
  const OpId make_v = steps.forward({u}, {v});
  const OpId change_u = steps.forward({u, x}, {u});
  steps.backward({v});
  steps.backward({u});
  const std::vector<SavedTensor> saved = saved_tensors(steps.trace());
  ASSERT_EQ(saved.size(), 2U);
  RecomputeIndex index(steps.trace(), saved);
  const AwayUntil away(2, OpId::none);
  std::vector<std::size_t> one = {index_of_tensor(saved, u)};
  auto group = index.group(one, away);
  ASSERT_TRUE(group) << index.refusal();
  EXPECT_THAT(group->ops, ElementsAre(make_u, change_u));
  one = {index_of_tensor(saved, v)};
  group = index.group(one, away);
  ASSERT_TRUE(group) << index.refusal();
  EXPECT_THAT(group->ops, ElementsAre(make_u, make_v));
}

TEST(RecomputeClosure, RefusesWhatComesFromOutside) {
  Steps steps;
  const TensorId x = steps.tensor("x", TensorRole::input), y = steps.tensor("y");
  steps.forward({}, {});
  steps.op(Phase::forward, {x}, {y}, OpKind::copy_host_to_device);
  steps.backward({y});
  const std::vector<SavedTensor> saved = saved_tensors(steps.trace());
  ASSERT_EQ(saved.size(), 1U);
  RecomputeIndex index(steps.trace(), saved);
  const std::vector<std::size_t> one = {0};
  EXPECT_FALSE(index.group(one, AwayUntil(1, OpId::none)));
}

LoadedScenario gpt2_on(const std::string& model = "", const std::string& hardware = "h100-80gb-1gpu") {
  const std::string text = R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-small", "sequence": 1024, "micro_batch": 8)" +
                           model + R"(}, "hardware": {"profile": ")" + hardware + "\"}}";
  return load(parse_scenario(text, "test", ""));
}

// What must hold of any plan of groups: every repeated op reads what is in memory or what the group has made before,
// in the version it read the first time.
void check_versions(const Trace& trace, const RecomputeIndex& index, const AwayUntil& away,
                    const std::vector<RecomputeGroup>& groups) {
  std::map<std::uint32_t, std::vector<OpId>> writers;
  for (const Use& use : trace.uses)
    if (use.access == Access::write) writers[trace.tensors.storage[index_of(use.tensor)]].push_back(use.op);
  std::map<std::uint32_t, std::size_t> saved;
  for (std::size_t s = 0; s < index.saved().size(); ++s) saved[index.saved()[s].storage] = s;
  const auto version = [&](std::uint32_t storage, OpId op) {
    return std::count_if(writers[storage].begin(), writers[storage].end(), [&](OpId w) { return w < op; });
  };
  for (const RecomputeGroup& group : groups) {
    std::map<std::uint32_t, std::ptrdiff_t> made;
    for (const OpId op : group.ops) {
      const auto first = std::lower_bound(trace.uses.begin(), trace.uses.end(), op,
                                          [](const Use& use, OpId wanted) { return use.op < wanted; });
      for (auto use = first; use != trace.uses.end() && use->op == op; ++use) {
        const std::uint32_t storage = trace.tensors.storage[index_of(use->tensor)];
        if (use->access == Access::write) continue;
        if (made.contains(storage)) {
          ASSERT_EQ(made[storage], version(storage, op));
          continue;
        }
        ASSERT_EQ(version(storage, group.before), version(storage, op));
        const auto at = saved.find(storage);
        if (at == saved.end() || away[at->second] == OpId::none) continue;
        ASSERT_LT(away[at->second], group.before) << "reads what is away";
      }
      for (auto use = first; use != trace.uses.end() && use->op == op; ++use)
        if (use->access == Access::write)
          made[trace.tensors.storage[index_of(use->tensor)]] =
              version(trace.tensors.storage[index_of(use->tensor)], op) + 1;
    }
    for (const std::size_t t : group.tensors)
      ASSERT_EQ(made[index.saved()[t].storage], version(index.saved()[t].storage, index.saved()[t].first_backward));
  }
}

// Random sets of dropped tensors on generated steps.
TEST(RecomputeClosure, RandomDropsAreSound) {
  for (const char* model : {"", R"(, "recompute": "selective", "flash_attention": false)",
                            R"(, "tensor_parallel": 2, "sequence_parallel": true, "framework": "megatron_2022")"}) {
    const LoadedScenario loaded =
        gpt2_on(model, std::string(model).find("parallel") != std::string::npos ? "dgx-h100" : "h100-80gb-1gpu");
    const std::vector<SavedTensor> saved = saved_tensors(loaded.trace);
    RecomputeIndex index(loaded.trace, saved);
    std::mt19937_64 random(11);
    for (int round = 0; round < 10; ++round) {
      AwayUntil away(saved.size(), OpId::none);
      for (std::size_t s = 0; s < saved.size(); ++s)
        if (random() % 3 != 0) away[s] = saved[s].first_backward;
      const AwayUntil asked = away;
      const std::vector<RecomputeGroup> groups = index.groups(away);
      EXPECT_GT(groups.size(), saved.size() / 4);
      check_versions(loaded.trace, index, away, groups);
      OffloadPlan plan;
      for (const RecomputeGroup& group : groups) add_to_plan(group, index, plan);
      const PlannedTrace planned = planned_trace(loaded.trace, plan);
      planned.trace.check_invariants();
    }
  }
}

// Dropping everything a layer saves but its input repeats that layer's forward.
TEST(RecomputeClosure, ALayerIsItsForward) {
  const LoadedScenario loaded = gpt2_on();
  const std::vector<SavedTensor> saved = saved_tensors(loaded.trace);
  RecomputeIndex index(loaded.trace, saved);
  std::vector<std::size_t> dropped;
  for (std::size_t s = 0; s < saved.size(); ++s)
    if (saved[s].layer == 5 && loaded.trace.ops.layer[index_of(saved[s].written_by)] == 5) dropped.push_back(s);
  AwayUntil away(saved.size(), OpId::none);
  const auto group = index.group(dropped, away);
  ASSERT_TRUE(group) << index.refusal();
  std::size_t forward = 0;
  for (std::size_t i = 0; i < loaded.trace.ops.size(); ++i)
    forward += is_device_work(loaded.trace.ops.kind[i]) && loaded.trace.ops.layer[i] == 5 &&
               loaded.trace.ops.phase[i] == Phase::forward;
  // All but the last: nobody in the backward needs the layer's output.
  EXPECT_LE(group->ops.size(), forward);
  EXPECT_GE(group->ops.size() + 3, forward);
  for (const OpId op : group->ops) EXPECT_EQ(loaded.trace.ops.layer[index_of(op)], 5);
}

}  // namespace
}  // namespace spillway::scenario
