// The layout solver against the independent check, against brute force, and against what is known of public instances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "base/splitmix64.h"
#include "planners/layout/gap_fit.h"
#include "planners/layout/layout_chain.h"
#include "planners/layout/layout_check.h"
#include "planners/layout/layout_csv.h"
#include "planners/layout/layout_search.h"
#include "planners/layout/layout_solver.h"
#include "planners/layout/skyline.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

using Buffers = std::vector<LayoutBuffer>;

LayoutVerdict verdict_of(const Buffers& buffers, const std::vector<std::int64_t>& offsets) {
  std::vector<LaidBuffer> laid;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const LayoutBuffer& buffer = buffers[i];
    laid.push_back(
        {buffer.lower, buffer.upper, buffer.size, offsets[i], buffer.fixed_offset >= 0 ? 1 : buffer.alignment});
  }
  return check_layout(laid);
}

// Legal, as high as it says, and not below what it says no layout can be.
void expect_sound(const Buffers& buffers, const LayoutResult& result) {
  ASSERT_EQ(result.offsets.size(), buffers.size());
  const LayoutVerdict verdict = verdict_of(buffers, result.offsets);
  EXPECT_EQ(verdict.fault, "");
  EXPECT_EQ(verdict.height, result.height);
  EXPECT_GE(result.lower_bound, max_live(buffers));
  EXPECT_LE(result.lower_bound, result.height);
  EXPECT_EQ(result.proven, result.lower_bound == result.height);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(buffers[i].fixed_offset < 0 || result.offsets[i] == buffers[i].fixed_offset) << i;
}

struct Shape {
  int buffers = 8, time = 8, size = 6, alignment = 1;
  bool fixed = false;
};

Buffers random_buffers(SplitMix64& random, const Shape& shape) {
  const auto below = [&](int n) { return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(n)); };
  Buffers buffers;
  std::int64_t ground = 0;
  for (int i = 0; i < shape.buffers; ++i) {
    LayoutBuffer buffer;
    buffer.lower = below(shape.time);
    buffer.upper = buffer.lower + 1 + below(shape.time);
    buffer.size = below(shape.size + 1);
    if (shape.alignment > 1 && below(3) == 0) buffer.alignment = 1 + below(shape.alignment);
    if (shape.fixed && below(4) == 0) {  // one above the other, so that they can't overlap
      buffer.fixed_offset = ground + below(3);
      ground = buffer.fixed_offset + buffer.size;
    }
    buffers.push_back(buffer);
  }
  return buffers;
}

// The least height, by trying every order of bottom-most placement: some order of the offsets of an optimal layout
// rebuilds it or one no higher, since each buffer in turn lies on the ground or on an earlier one.
std::int64_t least_height(const Buffers& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  do {
    std::vector<std::int64_t> offsets(buffers.size(), 0);
    std::int64_t height = 0;
    for (std::size_t i = 0; i < order.size() && height < least; ++i) {
      const LayoutBuffer& buffer = buffers[order[i]];
      std::int64_t offset = 0;
      for (std::size_t j = 0; j < i; ++j) {
        const LayoutBuffer& below = buffers[order[j]];
        if (below.lower < buffer.upper && buffer.lower < below.upper && below.size > 0 && buffer.size > 0)
          offset = std::max(offset, offsets[order[j]] + below.size);
      }
      if (buffer.fixed_offset < 0) {
        offset = (offset + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
      } else {
        if (offset > buffer.fixed_offset && buffer.size > 0) height = least;
        offset = buffer.fixed_offset;
      }
      if (buffer.size == 0 && buffer.fixed_offset < 0) offset = 0;
      offsets[order[i]] = offset;
      height = std::max(height, offset + buffer.size);
    }
    least = std::min(least, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(LayoutCheck, FindsEveryKindOfFault) {
  const auto fault = [](std::vector<LaidBuffer> buffers, std::int64_t capacity = -1) {
    return check_layout(buffers, capacity).fault;
  };
  EXPECT_EQ(fault({{0, 2, 4, 0}, {2, 4, 4, 0}, {1, 3, 2, 4}}), "");  // half-open: the first two only touch
  EXPECT_EQ(fault({{0, 2, 4, 0}, {1, 3, 4, 3}}), "buffer 0 and buffer 1 overlap");
  EXPECT_EQ(fault({{1, 3, 4, 3}, {0, 2, 4, 0}}), "buffer 1 and buffer 0 overlap");
  EXPECT_EQ(fault({{0, 9, 1, 5}, {0, 9, 9, 0}}), "buffer 0 and buffer 1 overlap");
  EXPECT_EQ(fault({{0, 2, 4, 2, 4}}), "buffer 0 is not aligned");
  EXPECT_EQ(fault({{0, 2, 4, -4}}), "buffer 0 has no offset");
  EXPECT_EQ(fault({{2, 2, 4, 0}}), "buffer 0 has no life");
  EXPECT_EQ(fault({{0, 2, -1, 0}}), "buffer 0 has a negative size");
  EXPECT_EQ(fault({{0, 2, 4, 0}, {0, 2, 4, 4}}, 7), "buffer 1 ends above the capacity");
  EXPECT_EQ(fault({{0, 2, 4, std::numeric_limits<std::int64_t>::max()}}), "buffer 0 ends beyond any address");
  EXPECT_EQ(check_layout(std::vector<LaidBuffer>{{0, 2, 4, 0}, {0, 2, 3, 4}}).height, 7);
}

// The check's sweep against all pairs.
TEST(LayoutCheck, AgreesWithAllPairs) {
  SplitMix64 random(7);
  const int rounds = spillway::test::cases(50, 20'000);
  int legal = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<LaidBuffer> laid;
    bool clash = false;
    for (const LayoutBuffer& buffer : random_buffers(random, {5, 4, 3})) {
      laid.push_back({buffer.lower, buffer.upper, buffer.size, static_cast<std::int64_t>(random.next() % 12)});
      const LaidBuffer& a = laid.back();
      for (std::size_t i = 0; i + 1 < laid.size(); ++i) {
        const LaidBuffer& b = laid[i];
        clash |= a.size > 0 && b.size > 0 && a.lower < b.upper && b.lower < a.upper && a.offset < b.offset + b.size &&
                 b.offset < a.offset + a.size;
      }
    }
    EXPECT_EQ(check_layout(laid).legal(), !clash);
    legal += clash ? 0 : 1;
  }
  EXPECT_GT(legal, rounds / 20);
  EXPECT_LT(legal, rounds * 19 / 20);
}

TEST(LayoutSections, AreTheMaximalSetsAlive) {
  const Buffers buffers = {{0, 3, 4}, {1, 5, 2}, {3, 6, 1}, {8, 9, 7}};
  const LayoutSections sections = sections_of(buffers);
  EXPECT_EQ(sections.count, 3);
  EXPECT_EQ(sections.live, (std::vector<std::int64_t>{6, 3, 7}));
  EXPECT_EQ(sections.partings, (std::vector<std::int32_t>{0, 2, 3}));
  EXPECT_EQ(sections.spans[1].lower, 0);
  EXPECT_EQ(sections.spans[1].upper, 2);
}

// Two buffers share a section if and only if they are alive together.
TEST(LayoutSections, KeepWhoMeetsWhom) {
  SplitMix64 random(3);
  for (int round = 0; round < spillway::test::cases(50, 2000); ++round) {
    const Buffers buffers = random_buffers(random, {7, 9, 3});
    const LayoutSections sections = sections_of(buffers);
    for (std::size_t i = 0; i < buffers.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_EQ(
            buffers[i].lower < buffers[j].upper && buffers[j].lower < buffers[i].upper,
            sections.spans[i].lower < sections.spans[j].upper && sections.spans[j].lower < sections.spans[i].upper);
  }
}

// Optimal on small cases, with alignments and fixed offsets too, and proven so.
TEST(LayoutSolver, EqualsBruteForce) {
  SplitMix64 random(1);
  for (int round = 0; round < spillway::test::cases(50, 2500); ++round) {
    Shape shape;
    shape.buffers = 1 + static_cast<int>(random.next() % 7);
    shape.alignment = round % 2 == 0 ? 1 : 4;
    shape.fixed = round % 5 == 0;
    const Buffers buffers = random_buffers(random, shape);
    LayoutOptions options;
    options.threads = 1;
    const LayoutResult result = solve_layout(buffers, options);
    expect_sound(buffers, result);
    EXPECT_EQ(result.height, least_height(buffers)) << "round " << round;
    EXPECT_TRUE(result.proven) << "round " << round;
  }
}

// Random cases of every kind, 100,000 at full size, pass the independent check.
TEST(LayoutSolver, IsAlwaysLegal) {
  SplitMix64 random(2);
  for (int round = 0; round < spillway::test::cases(50, 100'000); ++round) {
    Shape shape;
    shape.buffers = 1 + static_cast<int>(random.next() % 24);
    shape.time = 1 + static_cast<int>(random.next() % 30);
    shape.size = 1 + static_cast<int>(random.next() % 50);
    shape.alignment = random.next() % 4 == 0 ? 8 : 1;
    shape.fixed = random.next() % 8 == 0;
    const Buffers buffers = random_buffers(random, shape);
    LayoutOptions options;
    options.effort = 200;
    options.threads = 1;
    if (round % 3 == 0) options.capacity = max_live(buffers) + static_cast<std::int64_t>(random.next() % 9) + 1;
    expect_sound(buffers, solve_layout(buffers, options));
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "round " << round;
  }
}

// Whichever rules are on and however the next buffer is chosen, a height is possible or not.
TEST(LayoutSearch, AnswersTheSameUnderAllRules) {
  SplitMix64 random(5);
  const int rounds = spillway::test::cases(50, 400);
  int infeasible = 0;
  for (int round = 0; round < rounds; ++round) {
    Buffers buffers = random_buffers(random, {10, 6, 9, round % 3 == 0 ? 1 : 8});
    std::erase_if(buffers, [](const LayoutBuffer& buffer) { return buffer.size == 0; });
    if (buffers.empty()) continue;
    const LayoutSections sections = sections_of(buffers);
    const std::int64_t capacity = sections.max_live() + round % 2;
    std::vector<std::int32_t> rank(buffers.size());
    std::iota(rank.begin(), rank.end(), 0);
    std::vector<LayoutSearch::State> states;
    for (int bits = 0; bits < 32; ++bits) {
      LayoutSearchRules rules{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
      if (bits >= 16) rules.first_memory = 4;  // soon outgrown
      LayoutSearch search(buffers, sections, rules);
      search.restart(capacity, rank, static_cast<LayoutChoice>(bits % 3));
      states.push_back(search.run(10'000'000));
      ASSERT_NE(states.back(), LayoutSearch::State::running);
      EXPECT_EQ(states.back(), states.front()) << "round " << round << " rules " << bits;
      if (states.back() == LayoutSearch::State::found) {
        EXPECT_EQ(verdict_of(buffers, search.offsets()).fault, "");
        EXPECT_LE(verdict_of(buffers, search.offsets()).height, capacity);
      }
    }
    infeasible += states.front() == LayoutSearch::State::infeasible ? 1 : 0;
  }
  EXPECT_GT(infeasible, rounds / 40);
}

// The inner loop against one section after the other, in windows of any width; what lies outside stays.
TEST(LayoutChain, StacksEachSection) {
  SplitMix64 random(12);
  int raises = 0, overflows = 0;
  for (int round = 0; round < spillway::test::cases(300, 20'000); ++round) {
    const int sections = 1 + static_cast<int>(random.below(30));
    const auto below = [&](int n) { return static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(n))); };
    const std::int32_t lower = below(sections), upper = lower + 1 + below(sections - lower), capacity = 30 + below(60);
    std::vector<SearchItem> items;
    std::vector<std::int32_t> order;
    std::vector<SearchKey> list;
    for (int i = 0; i < 12; ++i) {
      const std::int32_t from = below(sections);
      items.push_back({from, from + 1 + below(sections - from), 1 + below(9), 1, -1, -1});
      order.push_back(i);
      list.push_back(search_key(below(20), i));
    }
    std::sort(list.begin(), list.end());
    std::vector<std::int32_t> latest(sections + chain_padding), top(latest.size(), 7), lowest(latest.size()),
        choices(latest);
    for (std::int32_t& high : latest) high = below(4) == 0 ? below(20) : 100;
    std::fill(lowest.begin(), lowest.end(), beyond_any_capacity);
    std::vector<std::int32_t> want_top(top), want_lowest(lowest), want_choices(choices);
    ChainPass pass{list.data(),    12,    order.data(), items.data(), latest.data(), top.data(), lowest.data(),
                   choices.data(), lower, upper,        capacity};
    const ChainEnd end = stack_chains(pass);
    ChainEnd want = ChainEnd::done;
    std::int32_t position = 0, raised = 0;
    for (; position < 12 && want == ChainEnd::done; ++position) {
      const std::int32_t bound = bound_of(list[position]);
      const SearchItem& item = items[rank_of(list[position])];
      for (std::int32_t s = std::max(lower, item.lower); s < std::min(upper, item.upper); ++s)
        if (bound > latest[s] && want_lowest[s] > bound) raised = std::max(raised, want_lowest[s]);
      if (raised > 0) {
        want = ChainEnd::raise;
        break;
      }
      for (std::int32_t s = std::max(lower, item.lower); s < std::min(upper, item.upper); ++s) {
        want_top[s] = std::max(want_top[s], bound) + item.size;
        want_lowest[s] = std::min(want_lowest[s], bound + item.size);
        want_choices[s] += bound <= latest[s] ? 1 : 0;
        if (want_top[s] > capacity) want = ChainEnd::overflow;
      }
      if (want == ChainEnd::overflow) break;
    }
    ASSERT_EQ(end, want) << "round " << round;
    EXPECT_EQ(pass.position, position);
    EXPECT_EQ(pass.raised, raised);
    EXPECT_EQ(top, want_top);
    EXPECT_EQ(lowest, want_lowest);
    EXPECT_EQ(choices, want_choices);
    raises += end == ChainEnd::raise ? 1 : 0;
    overflows += end == ChainEnd::overflow ? 1 : 0;
  }
  EXPECT_GT(raises, 10);
  EXPECT_GT(overflows, 10);
}

// A search that is interrupted and resumed answers as one that is not.
TEST(LayoutSearch, ResumesWhereItStopped) {
  SplitMix64 random(9);
  Buffers buffers = random_buffers(random, {40, 30, 30});
  std::erase_if(buffers, [](const LayoutBuffer& buffer) { return buffer.size == 0; });
  const LayoutSections sections = sections_of(buffers);
  std::vector<std::int32_t> rank(buffers.size());
  std::iota(rank.begin(), rank.end(), 0);
  LayoutSearch whole(buffers, sections), sliced(buffers, sections);
  whole.restart(sections.max_live() + 2, rank, LayoutChoice::tightest);
  sliced.restart(sections.max_live() + 2, rank, LayoutChoice::tightest);
  whole.run(100'000);
  while (sliced.state() == LayoutSearch::State::running && sliced.effort() < 100'000) sliced.run(1);
  EXPECT_EQ(whole.state(), sliced.state());
  EXPECT_EQ(whole.effort(), sliced.effort());
  ASSERT_EQ(whole.state(), LayoutSearch::State::found);
  EXPECT_EQ(whole.offsets(), sliced.offsets());
}

// One thread or many, and twice in a row: the same layout for the same effort.
TEST(LayoutSolver, DoesNotDependOnThreads) {
  SplitMix64 random(4);
  for (const int count : {60, 6000}) {
    const Buffers buffers = random_buffers(random, {count, count, 1000});
    LayoutOptions options;
    options.effort = 300'000;
    std::vector<LayoutResult> results;
    for (const int threads : {1, 2, 5, 1}) {
      options.threads = threads;
      results.push_back(solve_layout(buffers, options));
      expect_sound(buffers, results.back());
      EXPECT_EQ(results.back().offsets, results.front().offsets) << threads;
      EXPECT_EQ(results.back().effort, results.front().effort) << threads;
      EXPECT_EQ(results.back().lower_bound, results.front().lower_bound) << threads;
    }
  }
}

TEST(LayoutSolver, StopsWhenTold) {
  SplitMix64 random(6);
  const Buffers buffers = random_buffers(random, {80, 60, 1000, 64});
  LayoutOptions options;
  int calls = 0;
  options.progress = [&](std::int64_t, std::int64_t) { return ++calls < 3; };
  const LayoutResult result = solve_layout(buffers, options);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(calls, 3);
  expect_sound(buffers, result);
}

TEST(LayoutSolver, HandlesTheTrivial) {
  EXPECT_EQ(solve_layout({}).height, 0);
  EXPECT_TRUE(solve_layout({}).proven);
  const Buffers empty = {{0, 1, 0}, {0, 2, 0}};
  expect_sound(empty, solve_layout(empty));
  // More than 2^30 in sizes without a common divisor: beyond the search's integers, so packing alone.
  const Buffers huge = {{0, 2, 1'000'000'000'007}, {1, 3, 1'000'000'000'009}, {2, 4, 5}};
  const LayoutResult result = solve_layout(huge);
  expect_sound(huge, result);
  EXPECT_EQ(result.height, 2'000'000'000'016);
}

// A capacity below the bound is answered at once; one that is proven impossible raises the bound above it.
TEST(LayoutSolver, SaysWhatCanNotFit) {
  SplitMix64 random(8);
  int raised = 0;
  for (int round = 0; round < 200; ++round) {
    const Buffers buffers = random_buffers(random, {7, 6, 9, 4});
    const std::int64_t least = least_height(buffers), live = max_live(buffers);
    if (least == live) continue;
    ++raised;
    LayoutOptions options;
    options.capacity = live;
    options.threads = 1;
    const LayoutResult result = solve_layout(buffers, options);
    expect_sound(buffers, result);
    EXPECT_GT(result.lower_bound, live);
    EXPECT_LE(result.lower_bound, least);
  }
  EXPECT_GT(raised, 0);
}

TEST(GapFit, PutsBuffersAroundFixedOnes) {
  const Buffers buffers = {{0, 4, 2, 1, 3}, {0, 2, 3}, {2, 4, 4}, {2, 4, 1, 2}};
  const std::vector<std::int64_t> offsets = fit_into_gaps(buffers, sections_of(buffers));
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{3, 0, 5, 0}));  // what is too large for below goes above
}

std::string shared(const std::string& file) {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return (std::filesystem::path(root == nullptr ? "." : root) / "../shared/data/memory" / file).string();
}

Buffers read_shared(const std::string& file) {
  std::ifstream in(shared(file));
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (text.empty()) return {};
  if (file.ends_with(".csv")) return read_layout_csv(text, file).buffers;
  Buffers buffers;
  std::istringstream rows(text);
  for (LayoutBuffer row; rows >> row.lower >> row.upper >> row.size;) buffers.push_back(row);
  return buffers;
}

// All eleven fit 1 MiB (MiniMalloc, ASPLOS 2023).
TEST(LayoutSolver, FitsMiniMallocsInstances) {
  for (const char name : std::string("ABCDEFGHIJK")) {
    const Buffers buffers = read_shared(std::string("dsa_benchmarks/minimalloc_") + name + ".1048576.csv");
    if (buffers.empty()) GTEST_SKIP() << "no instances beside the source tree";
    LayoutOptions options;
    options.capacity = 1048576;
    const LayoutResult result = solve_layout(buffers, options);
    expect_sound(buffers, result);
    EXPECT_TRUE(result.fits(1048576)) << name;
  }
}

// Intervals of real training steps: at the most that is ever alive.
TEST(LayoutSolver, ReachesTheBoundOnTrainingSteps) {
  for (const char* file :
       {"stalloc/bcrafton_train_step.intervals.txt", "stalloc/notHanmin_train.intervals.txt",
        "stalloc/silmont_bf16_ctx128.intervals.txt", "stalloc/silmont_fp32_ctx128.intervals.txt",
        "dsa_benchmarks/idealloc_somas_tensors_resnet50.csv", "dsa_benchmarks/idealloc_iopddl_G_1.csv"}) {
    const Buffers buffers = read_shared(file);
    if (buffers.empty()) GTEST_SKIP() << "no instances beside the source tree";
    const LayoutResult result = solve_layout(buffers);
    expect_sound(buffers, result);
    EXPECT_EQ(result.height, max_live(buffers)) << file;
  }
}

}  // namespace
}  // namespace spillway::planners
