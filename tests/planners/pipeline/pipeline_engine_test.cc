// The executor of plans and the discrete-event engine, given the same operations, agree on every start and end; and the
// check finds what is wrong with a plan.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_check.h"
#include "planners/pipeline/pipeline_executor.h"
#include "sim/engine/executor.h"

namespace spillway::planners {
namespace {

using Kind = PipelineOpKind;

// The plan as delays on lanes and edges with lags, written anew from the rules in pipeline_plan.h.
class Lowered {
 public:
  Lowered(const PipelinePlan& plan, const StageTimes& times) : plan_(plan), times_(times) {
    for (std::size_t d = 0; d < plan.compute.size(); ++d) {
      add_lane(d, plan.compute[d], 0);
      add_lane(d, plan.copies[d], 1);
    }
    for (std::size_t d = 0; d < plan.compute.size(); ++d) {
      add_edges(d, plan.compute[d], 0);
      add_edges(d, plan.copies[d], 1);
    }
    graph_.finish();
  }

  // (start, end) of every operation, as the engine has them.
  std::vector<std::pair<Ticks, Ticks>> run() {
    struct Sink {
      std::vector<std::pair<Ticks, Ticks>> spans;
      void on_start(ActivityId a, Picos at) { spans[index(a)].first = at.count(); }
      void on_end(ActivityId a, Picos at) { spans[index(a)].second = at.count(); }
    };
    Sink sink;
    sink.spans.resize(graph_.size());
    Executor<Sink> executor(std::move(graph_), {}, std::move(sink));
    EXPECT_EQ(executor.run().status, RunStatus::finished);
    return executor.sink().spans;
  }

  [[nodiscard]] ActivityId at(std::size_t device, std::size_t lane, std::size_t place) const {
    return ids_.at({device, lane, place});
  }

 private:
  using PassKey = std::tuple<bool, std::int32_t, std::int16_t, std::size_t>;  // backward, micro-batch, slice, position

  std::size_t position(std::size_t device, const PipelinePass& pass) const {
    const auto& route = plan_.routes[plan_.route(pass.micro_batch)];
    for (std::size_t i = 0; i < route.size(); ++i)
      if (route[i].device == static_cast<std::int64_t>(device) && route[i].chunk == pass.chunk) return i;
    ADD_FAILURE() << "not on its device";
    return 0;
  }
  PassKey key(bool backward, const PipelinePass& pass, std::size_t at) const {
    return {backward, pass.micro_batch, pass.slice, at};
  }

  Ticks duration(std::size_t device, const PipelineOp& op) const {
    const PassTimes& t = times_.at(position(device, op.pass));
    const std::map<Kind, Ticks> by_kind = {
        {Kind::forward, t.forward},      {Kind::backward, t.input_gradient + t.weight_gradient},
        {Kind::recompute, t.recompute},  {Kind::input_gradient, t.input_gradient},
        {Kind::offload, times_.offload}, {Kind::weight_gradient, t.weight_gradient},
        {Kind::reload, times_.reload},   {Kind::paired, times_.paired}};
    return by_kind.at(op.kind) / plan_.slices;
  }

  void add_lane(std::size_t device, const std::vector<PipelineOp>& ops, std::size_t lane) {
    const TrackId track = graph_.add_lane();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const PipelineOp& op = ops[i];
      const ActivityId id = graph_.add_delay(track, Picos(duration(device, op)));
      ids_[{device, lane, i}] = id;
      const std::size_t at = position(device, op.pass);
      if (op.kind == Kind::forward || op.kind == Kind::paired) done_[key(false, op.pass, at)] = {id, device};
      if (op.kind == Kind::backward || op.kind == Kind::input_gradient) done_[key(true, op.pass, at)] = {id, device};
      if (op.kind == Kind::paired) done_[key(true, op.second, position(device, op.second))] = {id, device};
    }
  }

  void wait(ActivityId id, std::size_t device, const PassKey& input) {
    const auto& [source, from] = done_.at(input);
    if (source == id) return;
    graph_.add_edge(source, id, EdgeType::end_to_start, Picos(from == device ? 0 : times_.transfer));
  }
  void add_edges(std::size_t device, const std::vector<PipelineOp>& ops, std::size_t lane) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const PipelineOp& op = ops[i];
      const ActivityId id = ids_.at({device, lane, i});
      if (op.after >= 0) graph_.add_edge(ids_.at({device, 1 - lane, static_cast<std::size_t>(op.after)}), id);
      const bool has_forward = op.kind == Kind::forward || op.kind == Kind::paired;
      if (has_forward && position(device, op.pass) > 0)
        wait(id, device, key(false, op.pass, position(device, op.pass) - 1));
      if (op.kind != Kind::backward && op.kind != Kind::input_gradient && op.kind != Kind::paired) continue;
      const PipelinePass& pass = op.kind == Kind::paired ? op.second : op.pass;
      const std::size_t at = position(device, pass);
      const bool is_last = at + 1 == static_cast<std::size_t>(plan_.positions());
      wait(id, device, key(!is_last, pass, is_last ? at : at + 1));
    }
  }

  const PipelinePlan& plan_;
  const StageTimes& times_;
  ActivityGraph graph_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, ActivityId> ids_;
  std::map<PassKey, std::pair<ActivityId, std::size_t>> done_;
};

TEST(PipelineEngine, SameTimesAsTheEngine) {
  std::mt19937 random(20250601);
  const auto draw = [&](int least, int most) {
    return static_cast<Ticks>(least) + static_cast<Ticks>(random() % static_cast<unsigned>(most - least + 1));
  };
  for (const NamedSchedule& named : named_schedules()) {
    for (int trial = 0; trial < 3; ++trial) {
      PipelineRequest request;
      request.devices = 2 * draw(1, 3);
      request.micro_batches = request.devices * draw(2, 3);
      request = resolve_request(named.name, request);
      request.times.positions.clear();
      for (std::int64_t i = 0; i < request.devices * request.chunks; ++i)
        request.times.positions.push_back({draw(8, 40), draw(8, 40), draw(8, 40), draw(8, 40)});
      request.times.transfer = draw(0, 9);
      request.times.offload = draw(0, 30);
      request.times.reload = draw(0, 30);
      request.times.paired = draw(30, 60);
      SCOPED_TRACE(std::string(named.name) + " trial " + std::to_string(trial));
      const PipelinePlan plan = build_schedule(named.name, request);
      check_plan(plan);
      const PipelineTimeline timeline = execute_plan(plan, request.times);
      Lowered lowered(plan, request.times);
      const auto spans = lowered.run();
      std::size_t compared = 0;
      for (std::size_t d = 0; d < plan.compute.size(); ++d) {
        for (std::size_t lane = 0; lane < 2; ++lane) {
          const auto& own = lane == 0 ? timeline.compute[d] : timeline.copies[d];
          for (std::size_t i = 0; i < own.size(); ++i, ++compared)
            ASSERT_EQ(std::pair(own[i].begin, own[i].end), spans[index(lowered.at(d, lane, i))]) << d << ' ' << i;
        }
      }
      EXPECT_EQ(compared, plan.operations());
    }
  }
}

PipelinePlan two_stages() {
  PipelineRequest request;
  request.devices = 2;
  request.micro_batches = 2;
  return build_schedule("1f1b", request);  // device 0: F0 F1 BW0 BW1; device 1: F0 BW0 F1 BW1
}

std::string complaint(const PipelinePlan& plan) {
  try {
    check_plan(plan, "orders.json");
    StageTimes times;
    times.positions = {{1, 1, 1, 1}};
    execute_plan(plan, times);
  } catch (const InputError& error) {
    return error.place() + ": " + error.cause();
  }
  return "none";
}

TEST(PipelineCheck, SoundPlans) { EXPECT_EQ(complaint(two_stages()), "none"); }

TEST(PipelineCheck, WhatIsWrong) {
  PipelinePlan plan = two_stages();
  std::swap(plan.compute[0][0], plan.compute[0][2]);
  EXPECT_EQ(complaint(plan), "device 0, operation 0 (BW0): it runs before its forward");

  plan = two_stages();
  plan.compute[1][3] = plan.compute[1][2];
  EXPECT_EQ(complaint(plan), "device 1, operation 3 (F1): its forward has run already");

  plan = two_stages();
  plan.compute[0].pop_back();
  EXPECT_EQ(complaint(plan), "device 0: it has 2 forwards and 1 whole backwards, and should have 2 of each");

  plan = two_stages();
  plan.compute[0][1].pass.micro_batch = 2;
  EXPECT_EQ(complaint(plan), "device 0, operation 1 (F2): no such micro-batch");

  plan = two_stages();
  plan.compute[0][1].pass.chunk = 1;
  EXPECT_EQ(complaint(plan), "device 0, operation 1 (F1): the device has no such chunk");

  plan = two_stages();
  plan.compute[0][3].kind = Kind::input_gradient;  // and no W
  EXPECT_EQ(complaint(plan), "device 0: it has 2 forwards and 1 whole backwards, and should have 2 of each");

  plan = two_stages();
  plan.copies[0].push_back({.pass = {.micro_batch = 0}, .after = 0, .kind = Kind::offload});
  EXPECT_EQ(complaint(plan), "device 0, operation 2 (BW0): its activations were offloaded and are never reloaded");

  plan.copies[0].push_back({.pass = {.micro_batch = 0}, .after = 1, .kind = Kind::reload});
  EXPECT_EQ(complaint(plan), "device 0, operation 2 (BW0): it doesn't wait for its reload");
  plan.compute[0][2].after = 1;
  EXPECT_EQ(complaint(plan), "none");
}

// Each order is fine by itself, and together they wait for each other: device 0 wants B0 before it gives F1, device 1
// F1 before it gives B0.
TEST(PipelineCheck, Deadlock) {
  PipelinePlan plan = two_stages();
  std::swap(plan.compute[0][1], plan.compute[0][2]);
  std::swap(plan.compute[1][1], plan.compute[1][2]);
  EXPECT_EQ(complaint(plan), "schedule: deadlock: operations wait for each other (device 0 at BW0, device 1 at F1)");
}

TEST(PipelineCheck, TimesTooLargeToCount) {
  StageTimes times;
  times.positions = {{Ticks{1} << 61, 1, 1, 1}};
  EXPECT_THROW(execute_plan(two_stages(), times), InputError);
}

}  // namespace
}  // namespace spillway::planners
