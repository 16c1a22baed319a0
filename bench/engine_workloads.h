// The workloads that the engine and its peers run: one description, so that each program does the same work.
#pragma once

#include <cstdint>
#include <vector>

namespace spillway::bench {

// Small deterministic generator.
class Lcg {
 public:
  std::uint64_t below(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_ = 42;
};

struct Operator {
  bool is_copy = false;
  std::uint32_t lane = 0;            // computation: host that runs it, in order
  std::int64_t nanoseconds = 0;      // computation
  std::int64_t bytes = 0;            // copy
  std::vector<std::uint32_t> links;  // copy
  std::vector<std::uint32_t> after;  // earlier operators that must have ended
};

struct Workload {
  std::uint32_t lanes = 0, links = 0;
  bool copies_in_lanes = false;  // copies too are in order on their lane
  std::vector<Operator> operators;
};

inline constexpr double link_bytes_per_second = 1e10;

// Each host runs its computations one after the other.
inline Workload exec_workload(std::uint32_t hosts, std::uint32_t each) {
  Lcg random;
  Workload w{.lanes = hosts, .links = 0, .copies_in_lanes = false, .operators = {}};
  for (std::uint32_t i = 0; i < each; ++i)
    for (std::uint32_t host = 0; host < hosts; ++host) {
      Operator op;
      op.lane = host;
      op.nanoseconds = 1000 + static_cast<std::int64_t>(random.below(1000));
      w.operators.push_back(op);
    }
  return w;
}

// Each host sends message after message over one or two of three shared links.
inline Workload comm_workload(std::uint32_t hosts, std::uint32_t each) {
  Lcg random;
  Workload w{.lanes = hosts, .links = 3, .copies_in_lanes = true, .operators = {}};
  for (std::uint32_t i = 0; i < each; ++i)
    for (std::uint32_t host = 0; host < hosts; ++host) {
      Operator op;
      op.is_copy = true;
      op.lane = host;
      op.bytes = 100'000 + static_cast<std::int64_t>(random.below(100'000));
      op.links = {host % 3};
      if (host % 2 == 0) op.links.push_back((host + 1) % 3);
      w.operators.push_back(op);
    }
  return w;
}

// A training step's shape: computations in order on 4 lanes that wait for one another now and then, every fourth
// operator a copy over two of 10 links that waits for a recent computation and is waited for later.
inline Workload graph_workload(std::uint32_t count) {
  Lcg random;
  Workload w{.lanes = 4, .links = 10, .copies_in_lanes = false, .operators = {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    Operator op;
    op.is_copy = i % 4 == 3;
    op.lane = static_cast<std::uint32_t>(random.below(4));
    op.nanoseconds = 1000 + static_cast<std::int64_t>(random.below(20'000));
    if (op.is_copy) {
      op.bytes = 50'000 + static_cast<std::int64_t>(random.below(500'000));
      const auto first = static_cast<std::uint32_t>(random.below(10));
      op.links = {first, (first + 1 + static_cast<std::uint32_t>(random.below(9))) % 10};
    }
    const std::uint32_t edges = op.is_copy ? 1 : static_cast<std::uint32_t>(random.below(3));
    for (std::uint32_t e = 0; e < edges && i > 0; ++e)
      op.after.push_back(i - 1 - static_cast<std::uint32_t>(random.below(i < 64 ? i : 64)));
    w.operators.push_back(op);
  }
  return w;
}

}  // namespace spillway::bench
