// The searched schedule: the shortest of all on small problems, never longer than the best named one on larger ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_check.h"
#include "planners/pipeline/schedule_search.h"

namespace spillway::planners {
namespace {

using Kind = PipelineOpKind;

struct Draw {
  std::mt19937 random;
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
  }
};

SearchRequest random_request(Draw& draw, std::int64_t p, std::int64_t m) {
  SearchRequest request;
  request.devices = p;
  request.micro_batches = m;
  request.times.positions.clear();
  for (std::int64_t d = 0; d < p; ++d)
    request.times.positions.push_back({4 * draw(10, 30), 4 * draw(10, 30), 4 * draw(5, 25), 4 * draw(10, 30)});
  request.times.transfer = draw(0, 20);
  return request;
}

// Every way one device can interleave F, B and W of m micro-batches within its memory.
std::vector<std::vector<PipelineOp>> all_lanes(std::int64_t m, std::int64_t limit) {
  std::vector<std::vector<PipelineOp>> lanes;
  std::vector<PipelineOp> lane;
  std::int32_t done[3] = {0, 0, 0};
  const std::function<void()> extend = [&] {
    if (static_cast<std::int64_t>(lane.size()) == 3 * m) {
      lanes.push_back(lane);
      return;
    }
    constexpr Kind kinds[3] = {Kind::forward, Kind::input_gradient, Kind::weight_gradient};
    for (int k = 0; k < 3; ++k) {
      if (done[k] == m || (k > 0 && done[k] >= done[k - 1]) || (k == 0 && done[0] - done[2] >= limit)) continue;
      lane.push_back({.pass = {.micro_batch = done[k]++}, .kind = kinds[k]});
      extend();
      lane.pop_back();
      --done[k];
    }
  };
  extend();
  return lanes;
}

// The shortest over all combinations of all devices' lanes, each run by the executor.
Ticks brute_force(const SearchRequest& request) {
  PipelinePlan plan = looped_plan("all", request.devices, request.micro_batches, 1);
  std::vector<std::vector<std::vector<PipelineOp>>> lanes;
  for (const double limit : request.limits)
    lanes.push_back(all_lanes(request.micro_batches, static_cast<std::int64_t>(limit)));
  Ticks best = std::int64_t{1} << 62;
  const std::function<void(std::size_t)> choose = [&](std::size_t device) {
    if (device == lanes.size()) {
      try {
        best = std::min(best, execute_plan(plan, request.times).makespan);
      } catch (const InputError&) {
        return;  // these orders wait for each other
      }
      return;
    }
    for (const auto& lane : lanes[device]) {
      plan.compute[device] = lane;
      choose(device + 1);
    }
  };
  choose(0);
  return best;
}

TEST(PipelineSearch, SmallProblemsAgainstEveryOrder) {
  Draw draw{std::mt19937(11)};
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {{2, 2}, {2, 3}, {2, 4}, {3, 2}, {3, 3}};
  for (const auto& [p, m] : sizes) {
    for (int trial = 0; trial < (p == 3 && m == 3 ? 1 : 4); ++trial) {
      SearchRequest request = random_request(draw, p, m);
      request.chunks = 1;
      for (std::int64_t d = 0; d < p; ++d) request.limits.push_back(static_cast<double>(draw(1, m)));
      SCOPED_TRACE("p " + std::to_string(p) + " m " + std::to_string(m) + " trial " + std::to_string(trial));
      const SearchResult result = search_schedule(request);
      ASSERT_TRUE(result.found);
      EXPECT_TRUE(result.proven);
      EXPECT_EQ(result.timeline.makespan, brute_force(request));
      EXPECT_EQ(result.lower_bound, result.timeline.makespan);
    }
  }
}

// p up to 4, m up to 8, whatever the limits: the search ends with a proof.
TEST(PipelineSearch, SmallProblemsAreProven) {
  Draw draw{std::mt19937(12)};
  for (int trial = 0; trial < 20; ++trial) {
    SearchRequest request = random_request(draw, draw(2, 4), draw(2, 8));
    request.chunks = 1;
    request.limits = {static_cast<double>(draw(2, 2 * request.devices)) / 2 + 0.5};
    const SearchResult result = search_schedule(request);
    ASSERT_TRUE(result.found);
    EXPECT_TRUE(result.proven) << "p " << request.devices << " m " << request.micro_batches;
    for (const double peak : result.peaks) EXPECT_LE(peak, request.limits[0] + 1e-9);
  }
}

// Over the named schedules again, apart from the search's own look at them.
Ticks best_named(const SearchRequest& request, std::int64_t chunks) {
  Ticks best = std::int64_t{1} << 62;
  for (const NamedSchedule& named : named_schedules()) {
    if (named.name == "seq1f1b" || named.name == "slimpipe" || named.name == "chimera" || named.name == "dualpipe" ||
        named.name == "bpipe" || named.name == "po-h" || named.name == "po-f")
      continue;
    PipelineRequest each;
    each.devices = request.devices;
    each.micro_batches = request.micro_batches;
    each.chunks = chunks;
    each.times = request.times;
    each.times.positions.clear();
    for (const PassTimes& part : request.times.positions)
      for (std::int64_t i = 0; i < chunks; ++i)
        each.times.positions.push_back({part.forward / chunks, part.input_gradient / chunks,
                                        part.weight_gradient / chunks, part.recompute / chunks});
    try {
      const PipelinePlan plan = build_schedule(named.name, each);
      const PipelineTimeline timeline = execute_plan(plan, each.times);
      const std::vector<double> peaks = activation_peaks(plan, timeline);
      if (*std::max_element(peaks.begin(), peaks.end()) <= request.limits[0] + 1e-9)
        best = std::min(best, timeline.makespan);
    } catch (const InputError&) {
      continue;  // not for these sizes
    }
  }
  return best;
}

Ticks best_named_of_all(const SearchRequest& request) {
  return std::min({best_named(request, 1), best_named(request, 2), best_named(request, 4)});
}

TEST(PipelineSearch, NeverLongerThanTheBestNamedOne) {
  Draw draw{std::mt19937(13)};
  std::size_t shorter = 0, fitting = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const std::int64_t p = draw(4, 8);
    SearchRequest request = random_request(draw, p, p * draw(1, 2));
    request.limits = {std::floor(static_cast<double>(p) * static_cast<double>(draw(50, 200)) / 50) / 2};
    request.beam = 8;
    request.moves = 500;
    SCOPED_TRACE("trial " + std::to_string(trial));
    const SearchResult result = search_schedule(request);
    if (!result.found) continue;
    check_plan(result.plan);
    EXPECT_EQ(execute_plan(result.plan, result.times).makespan, result.timeline.makespan);
    const Ticks named = best_named_of_all(request);
    EXPECT_LE(result.timeline.makespan, named);
    EXPECT_EQ(activation_peaks(result.plan, result.timeline), result.peaks);
    for (const double peak : result.peaks) EXPECT_LE(peak, request.limits[0] + 1e-9);
    ++fitting;
    shorter += result.timeline.makespan < named ? 1u : 0u;
  }
  EXPECT_GE(fitting, 40u);
  EXPECT_GE(2 * shorter, fitting);  // and shorter on half of them
}

// Where memory binds, the search is shorter by at least 3 % on average, and never longer.
TEST(PipelineSearch, ShorterWhereMemoryBinds) {
  Draw draw{std::mt19937(15)};
  double gain = 0;
  constexpr int trials = 12;
  for (int trial = 0; trial < trials; ++trial) {
    const std::int64_t p = draw(4, 12);
    SearchRequest request = random_request(draw, p, draw(p, 3 * p));
    if (trial % 2 == 0) request.times.positions.resize(1);
    request.limits = {static_cast<double>(draw(2 * p / 3, 2 * p)) / 2};
    request.beam = 8;
    request.moves = 30'000;
    const SearchResult result = search_schedule(request);
    ASSERT_TRUE(result.found);
    ASSERT_FALSE(result.best_named.empty());
    EXPECT_LE(result.timeline.makespan, result.best_named_makespan);
    EXPECT_LE(result.timeline.makespan, best_named_of_all(request));
    for (const double peak : result.peaks) EXPECT_LE(peak, request.limits[0] + 1e-9);
    gain += 1 - static_cast<double>(result.timeline.makespan) / static_cast<double>(result.best_named_makespan);
  }
  EXPECT_GT(gain / trials, 0.03);
}

TEST(PipelineSearch, EqualRequestsEqualResults) {
  Draw draw{std::mt19937(14)};
  SearchRequest request = random_request(draw, 6, 12);
  request.limits = {6};
  const SearchResult one = search_schedule(request), other = search_schedule(request);
  EXPECT_EQ(one.plan.name, other.plan.name);
  for (std::size_t d = 0; d < one.plan.compute.size(); ++d) {
    ASSERT_EQ(one.plan.compute[d].size(), other.plan.compute[d].size());
    for (std::size_t i = 0; i < one.plan.compute[d].size(); ++i)
      EXPECT_EQ(text_of(one.plan, one.plan.compute[d][i]), text_of(other.plan, other.plan.compute[d][i]));
  }
}

// Less than one micro-batch on a device with one chunk, a quarter with four: nothing fits.
TEST(PipelineSearch, MemoryForNothing) {
  SearchRequest request;
  request.devices = 4;
  request.micro_batches = 8;
  request.times.positions = {{4, 4, 4, 4}};
  request.limits = {0.2};
  EXPECT_FALSE(search_schedule(request).found);
  request.limits = {1, 1};
  EXPECT_THROW(search_schedule(request), InputError);
}

}  // namespace
}  // namespace spillway::planners
