#include "models/cost/token_exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hwprofiles/profile_library.h"

namespace spillway::models {
namespace {

using hwprofiles::HardwareProfile;
using hwprofiles::ProfileLibrary;

constexpr double tokens = 4096, hidden = 7168, chosen = 8;

// D(n, k) = n (1 - (1 - 1/n)^k)
TEST(TokenExchange, KnowsHowManyRanksATokenReaches) {
  EXPECT_NEAR(distinct_choices(2, 8), 1.99, 0.005);
  EXPECT_NEAR(distinct_choices(8, 8), 5.25, 0.005);
  EXPECT_NEAR(distinct_choices(32, 8), 7.18, 0.005);
  EXPECT_DOUBLE_EQ(distinct_choices(1, 8), 1);
}

struct Line {
  const char* machine;
  ExpertDispatcher dispatcher;
  std::int64_t ranks, chosen_groups;
  double dispatch, combine;  // GB/s of logical bytes, kernel only
};

// DeepEP's and Hybrid-EP's published kernels, 4,096 tokens of 7,168 bf16 numbers, 8 experts each. Logical bytes count a
// token once per rank (inside one domain) or once per domain (across), a rank's own included.
const std::vector<Line>& published() {
  using enum ExpertDispatcher;
  static const std::vector<Line> lines = {
      {"hgx-b200", hybridep, 8, 0, 735, 674},     {"gb200-nvl72", hybridep, 8, 0, 764, 737},
      {"gb200-nvl72", hybridep, 16, 0, 707, 666}, {"gb200-nvl72", hybridep, 24, 0, 666, 640},
      {"gb200-nvl72", hybridep, 32, 0, 642, 605}, {"gb200-nvl72", hybridep, 36, 0, 632, 597},
      {"dgx-h100", hybridep, 16, 0, 76.8, 68.0},  {"dgx-h100", hybridep, 32, 0, 57.7, 57.5},
      {"dgx-h100", hybridep, 64, 0, 50.0, 49.8},  {"hgx-h800", deepep, 16, 4, 43, 43},
      {"hgx-h800", deepep, 32, 4, 58, 57},        {"hgx-h800", deepep, 64, 4, 51, 50},
      {"hgx-b200", deepep, 8, 0, 494, 420},       {"cloud-8xb300", deepep, 16, 0, 126, 106},
      {"cloud-8xb300", deepep, 32, 0, 97.3, 96},  {"cloud-8xb300", deepep, 64, 0, 84.6, 73.1},
  };
  return lines;
}

TEST(TokenExchange, TakesAsLongAsPublishedKernels) {
  std::vector<double> errors;
  for (const Line& line : published()) {
    const HardwareProfile system = ProfileLibrary::shared().load_system(line.machine);
    const std::int64_t inside = std::min(line.ranks, system.joined_gpus());
    const auto domains = static_cast<double>(line.ranks / inside);
    for (const bool combines : {false, true}) {
      const GroupShape group{.ranks = line.ranks,
                             .per_machine = inside,
                             .tokens = {.chosen = 8,
                                        .groups = line.chosen_groups > 0 ? 8 : 0,
                                        .chosen_groups = line.chosen_groups,
                                        .dispatcher = line.dispatcher,
                                        .combines = combines}};
      const Bytes rows(static_cast<std::int64_t>(tokens * chosen * hidden * 2));
      const double seconds = to_seconds(token_exchange_time(system, rows, group).time);
      const bool is_limited = line.chosen_groups > 0 && domains > static_cast<double>(line.chosen_groups);
      const double copies =
          domains == 1 ? distinct_choices(static_cast<double>(line.ranks), chosen)
                       : distinct_choices(is_limited ? static_cast<double>(line.chosen_groups) : domains, chosen);
      const double measured = tokens * hidden * 2 * copies / 1e9 / (combines ? line.combine : line.dispatch);
      errors.push_back(seconds / measured - 1);
      EXPECT_LE(std::abs(errors.back()), 0.15)
          << line.machine << " " << line.ranks << (combines ? " combine " : " dispatch ") << errors.back();
    }
  }
  std::sort(errors.begin(), errors.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  EXPECT_LE(std::abs(errors[errors.size() / 2]), 0.05);
}

// Across machines every row of nccl's exchange crosses the NIC; a token's copies are sent there once per machine.
TEST(TokenExchange, SendsATokenOncePerMachine) {
  const HardwareProfile system = ProfileLibrary::shared().load_system("dgx-h100");
  const Bytes rows(static_cast<std::int64_t>(tokens * chosen * hidden * 2));
  GroupShape group{.ranks = 32, .per_machine = 8, .tokens = {.chosen = 8}};
  const double all = to_seconds(token_exchange_time(system, rows, group).time);
  group.tokens.dispatcher = ExpertDispatcher::hybridep;
  const double once = to_seconds(token_exchange_time(system, rows, group).time);
  EXPECT_NEAR(once / all, distinct_choices(4, chosen) / chosen, 0.03);
}

// The outside part hides the inside one: an exchange over two machines takes what half its rows need on the NICs.
TEST(TokenExchange, RunsInsideBesideOutside) {
  const HardwareProfile system = ProfileLibrary::shared().load_system("dgx-h100");
  const Bytes rows(std::int64_t{1} << 30);
  const GroupShape group{.ranks = 16, .per_machine = 8, .tokens = {.chosen = 8}};
  const double nic = to_bytes_per_second(system.scale_out->bandwidth.value) * system.scale_out->efficiency.value;
  EXPECT_NEAR(to_seconds(token_exchange_time(system, rows, group).time), static_cast<double>(rows.count()) / 2 / nic,
              1e-5);
}

}  // namespace
}  // namespace spillway::models
