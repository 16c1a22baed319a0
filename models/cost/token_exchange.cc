#include "models/cost/token_exchange.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/input_error.h"
#include "models/cost/collective_time.h"

namespace spillway::models {
namespace {

struct Share {
  double count;  // of ranks, or of domains
  double dispatch, combine;
};

// Of NVLink's rate, by ranks of one domain.
constexpr std::array<Share, 6> hybrid_inside = {{{8, 0.849, 0.819},
                                                 {16, 0.786, 0.740},
                                                 {24, 0.740, 0.711},
                                                 {32, 0.713, 0.672},
                                                 {36, 0.702, 0.663},
                                                 {64, 0.667, 0.622}}};
// DeepEP's copies by multiprocessors reach so much of a slow link, and no more than this of a fast one.
constexpr double deep_inside = 0.77, deep_dispatch = 494e9, deep_combine = 420e9;  // bytes/s
// Of the NIC's rate, by domains.
constexpr std::array<Share, 3> hybrid_outside = {{{2, 0.768, 0.680}, {4, 0.866, 0.863}, {8, 0.875, 0.872}}};
constexpr std::array<Share, 3> deep_outside = {{{2, 0.43, 0.43}, {4, 0.87, 0.855}, {8, 0.892, 0.875}}};
// Over EFA, without RDMA that the GPU starts.
constexpr std::array<Share, 3> deep_efa = {{{2, 0.63, 0.53}, {4, 0.73, 0.72}, {8, 0.70, 0.64}}};

constexpr double start_inside = 20e-6, start_across = 50e-6;  // seconds (assumed)

// Over the logarithm of the count; the nearest edge outside.
double share_at(std::span<const Share> shares, double count, bool combines) {
  const auto value = [combines](const Share& share) { return combines ? share.combine : share.dispatch; };
  if (count <= shares.front().count) return value(shares.front());
  for (std::size_t i = 1; i < shares.size(); ++i) {
    if (count > shares[i].count) continue;
    const double part = std::log(count / shares[i - 1].count) / std::log(shares[i].count / shares[i - 1].count);
    return value(shares[i - 1]) + part * (value(shares[i]) - value(shares[i - 1]));
  }
  return value(shares.back());
}

double rate_inside(const TokenRoute& route, double link, double ranks) {
  if (route.dispatcher == ExpertDispatcher::deepep)
    return std::min(link * deep_inside, route.combines ? deep_combine : deep_dispatch);
  return link * share_at(hybrid_inside, ranks, route.combines);
}

double link_rate(const std::optional<NetworkProfile>& network, const HardwareProfile& system, std::string_view which) {
  return to_bytes_per_second(required_network(network, system, which).bandwidth.value);
}

}  // namespace

double distinct_choices(double n, double k) { return n * (1 - std::pow(1 - 1 / n, k)); }

CollectiveTime token_exchange_time(const HardwareProfile& system, Bytes rows, const GroupShape& group) {
  const TokenRoute& route = group.tokens;
  SPILLWAY_ASSERT(route.chosen >= 1 && group.ranks >= 1);
  if (group.ranks == 1) return {};
  if (route.dispatcher == ExpertDispatcher::nccl)
    return collective_time(system, NetworkCollective::all_to_all, rows, group.ranks, group.per_machine, group.stride);
  const auto chosen = static_cast<double>(route.chosen), ranks = static_cast<double>(group.ranks);
  const auto inside = static_cast<double>(std::min(group.per_machine, group.ranks));
  const double domains = std::ceil(ranks / inside), tokens = static_cast<double>(rows.count()) / chosen;
  const bool is_hybrid = route.dispatcher == ExpertDispatcher::hybridep;
  const bool is_efa = system.scale_out && system.scale_out->technology == "EFA";
  const auto far = is_hybrid ? std::span<const Share>(hybrid_outside)
                   : is_efa  ? std::span<const Share>(deep_efa)
                             : std::span<const Share>(deep_outside);
  const double copies = tokens * distinct_choices(ranks, chosen);
  double on_nvlink = 0;
  if (inside > 1) on_nvlink = copies / rate_inside(route, link_rate(system.scale_up, system, "scale_up"), inside);
  if (domains == 1) return {from_seconds(start_inside + on_nvlink), true, ranks > hybrid_inside.back().count};
  const auto reach = static_cast<double>(route.chosen_groups);
  const double targets = distinct_choices(reach > 0 && domains > reach ? reach : domains, chosen);
  const double on_nics = tokens * targets * (domains - 1) / domains /
                         (link_rate(system.scale_out, system, "scale_out") * share_at(far, domains, route.combines));
  return {from_seconds(start_across + std::max(on_nics, on_nvlink * (inside - 1) / inside)), true,
          domains > far.back().count};
}

}  // namespace spillway::models
