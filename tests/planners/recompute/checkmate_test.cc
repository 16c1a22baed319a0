// The exact recomputation search against Checkmate's own integer program (Jain et al., MLSys 2020, section 4), where
// the build has CBC.
//
// Stage t computes node t for the first time, and before it whatever is needed again: R[t,v], node v runs in stage t;
// S[t,v], its value is kept into stage t; U[t,k], bytes in memory once node k of the stage has run; F[t,i,k], value i
// is given back after node k, where nothing later in the stage reads it and the next stage doesn't get it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "planners/order/cbc/cbc_solver.h"
#include "planners/order/integer_program.h"
#include "planners/recompute/exact.h"

namespace spillway::planners {
namespace {

[[maybe_unused]] const bool has_solver = (use_cbc(), true);

using Column = IntegerProgram::Column;
constexpr double infinity = IntegerProgram::infinity;

class Checkmate {
 public:
  // Node i of the problem writes value i where i is a forward node; backward nodes write nothing.
  Checkmate(const RematProblem& problem, Bytes limit)
      : problem_(problem), limit_(static_cast<double>(limit.count())), n_(problem.nodes.size()) {
    for (std::size_t t = 0; t < n_; ++t)
      for (std::size_t v = 0; v <= t; ++v) {
        const double time = static_cast<double>(problem.nodes[v].time.count());
        run_[{t, v}] = program_.add_column(v == t ? 1 : 0, 1, time, true);
        if (v < t && v < problem.values.size()) kept_[{t, v}] = program_.add_column(0, 1, 0, true);
      }
    for (std::size_t t = 0; t < n_; ++t) {
      add_dependencies(t);
      add_memory(t);
    }
  }

  // Whole times: within 0.99 of the bound is optimal.
  std::optional<double> solve() {
    const IntegerProgramResult result = program_.solve(200'000, 0.99);
    if (result.values.empty()) return std::nullopt;
    EXPECT_TRUE(result.proven);
    return result.objective;
  }

 private:
  void add_dependencies(std::size_t t) {
    for (std::size_t v = 0; v <= t; ++v)
      for (const std::uint32_t u : problem_.nodes[v].reads) {
        IntegerProgram::Terms terms = {{run_.at({t, v}), 1}, {run_.at({t, u}), -1}};
        if (const auto kept = kept_.find({t, u}); kept != kept_.end()) terms.emplace_back(kept->second, -1);
        program_.add_row(-infinity, 0, terms);
      }
    if (t + 1 == n_) return;
    for (std::size_t v = 0; v < problem_.values.size() && v <= t; ++v) {
      IntegerProgram::Terms terms = {{kept_.at({t + 1, v}), 1}, {run_.at({t, v}), -1}};
      if (const auto kept = kept_.find({t, v}); kept != kept_.end()) terms.emplace_back(kept->second, -1);
      program_.add_row(-infinity, 0, terms);
    }
  }

  void add_memory(std::size_t t) {
    Column before = -1;
    for (std::size_t k = 0; k <= t; ++k) {
      const Column used = program_.add_column(0, limit_, 0, false);
      IntegerProgram::Terms terms = {{used, 1}};
      if (k < problem_.values.size()) terms.emplace_back(run_.at({t, k}), -bytes(k));
      if (k == 0) {
        for (std::size_t v = 0; v < problem_.values.size(); ++v)
          if (const auto kept = kept_.find({t, v}); kept != kept_.end()) terms.emplace_back(kept->second, -bytes(v));
      } else {
        terms.emplace_back(before, -1);
        for (const std::size_t i : touched(k - 1)) terms.emplace_back(given_back(t, i, k - 1), bytes(i));
      }
      program_.add_row(0, 0, terms);
      before = used;
    }
  }

  // Hazards: the node doesn't run, the next stage gets the value, a later node of the stage reads it.
  Column given_back(std::size_t t, std::size_t i, std::size_t k) {
    const Column free = program_.add_column(0, 1, 0, true);
    IntegerProgram::Terms hazards = {{run_.at({t, k}), -1}};
    double most = 2;
    if (const auto next = kept_.find({t + 1, i}); next != kept_.end()) hazards.emplace_back(next->second, 1);
    for (std::size_t j = k + 1; j <= t; ++j)
      for (const std::uint32_t u : problem_.nodes[j].reads)
        if (u == i) {
          hazards.emplace_back(run_.at({t, j}), 1);
          ++most;
        }
    IntegerProgram::Terms at_least = hazards, at_most = hazards;
    at_least.emplace_back(free, 1);  // 1 - free <= 1 + hazards
    program_.add_row(0, infinity, at_least);
    at_most.emplace_back(free, most);  // most (1 - free) >= 1 + hazards
    program_.add_row(-infinity, most - 1, at_most);
    return free;
  }

  [[nodiscard]] std::vector<std::size_t> touched(std::size_t k) const {
    std::vector<std::size_t> values(problem_.nodes[k].reads.begin(), problem_.nodes[k].reads.end());
    if (k < problem_.values.size()) values.push_back(k);
    return values;
  }
  [[nodiscard]] double bytes(std::size_t value) const { return static_cast<double>(problem_.values[value].count()); }

  const RematProblem& problem_;
  double limit_;
  std::size_t n_;
  IntegerProgram program_;
  std::map<std::pair<std::size_t, std::size_t>, Column> run_, kept_;  // by stage and node
};

// Forward nodes 0 .. n-1, each reading the one before and sometimes an older one; backward nodes in reverse, reading
// their own value and the one before.
RematProblem random_problem(std::mt19937_64& random, std::uint32_t values) {
  RematProblem problem;
  const auto from = [&random](std::uint64_t low, std::uint64_t high) { return low + random() % (high - low + 1); };
  for (std::uint32_t v = 0; v < values; ++v) {
    problem.values.emplace_back(static_cast<std::int64_t>(from(1, 4)));
    problem.saved.push_back(v);
    RematNode node;
    node.time = Picos(static_cast<std::int64_t>(from(1, 9)));
    if (v > 0) node.reads.push_back(v - 1);
    if (v > 2 && from(0, 2) == 0) node.reads.push_back(static_cast<std::uint32_t>(from(0, v - 2)));
    node.writes = {v};
    problem.nodes.push_back(node);
  }
  for (std::uint32_t v = values; v-- > 0;) {
    RematNode node;
    node.time = Picos(static_cast<std::int64_t>(from(1, 9)));
    node.reads = {v};
    if (v > 0 && from(0, 1) == 0) node.reads.push_back(v - 1);
    node.is_backward = true;
    problem.nodes.push_back(node);
  }
  return problem;
}

// The search has fewer restrictions (it gives values back at any time and repeats nodes within a stage), so it is never
// worse, and possible wherever the program is. On such graphs the restrictions rarely cost anything.
TEST(RecomputeExact, IsNeverWorseThanCheckmatesProgram) {
  if (!IntegerProgram::can_solve()) GTEST_SKIP() << "built without CBC";
  std::mt19937_64 random(20);
  int solved = 0, equal = 0, tight = 0;
  for (int round = 0; round < 10; ++round) {
    const RematProblem problem = random_problem(random, 4);
    std::int64_t all_bytes = 0, all_time = 0;
    for (const Bytes bytes : problem.values) all_bytes += bytes.count();
    for (const RematNode& node : problem.nodes) all_time += node.time.count();
    for (const std::int64_t less : {std::int64_t{0}, std::int64_t{1}, all_bytes / 4, all_bytes / 3}) {
      const Bytes limit(all_bytes - less);
      const RematSolution exact = solve_exact(problem, limit);
      const std::optional<double> program = Checkmate(problem, limit).solve();
      if (less == 0) {
        ASSERT_TRUE(program.has_value());
        EXPECT_NEAR(*program, static_cast<double>(all_time), 1e-6) << "nothing is repeated where all fits";
      }
      if (!program) continue;
      ASSERT_TRUE(exact.is_possible) << "round " << round << ", limit " << limit.count();
      EXPECT_LE(static_cast<double>(exact.time.count()), *program + 1e-6) << "round " << round;
      ++solved;
      tight += *program > static_cast<double>(all_time) ? 1 : 0;
      equal += std::abs(*program - static_cast<double>(exact.time.count())) < 1e-6 ? 1 : 0;
    }
  }
  EXPECT_GE(solved, 20);
  EXPECT_GE(tight, 5) << "some limits must cost time";
  EXPECT_GE(equal, solved * 3 / 4);
}

}  // namespace
}  // namespace spillway::planners
