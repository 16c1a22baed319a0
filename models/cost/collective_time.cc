#include "models/cost/collective_time.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string>

#include "base/input_error.h"

namespace spillway::models {

double bus_factor(NetworkCollective kind, double n) {
  switch (kind) {
    case NetworkCollective::all_reduce:
      return 2 * (n - 1) / n;
    case NetworkCollective::all_gather:
    case NetworkCollective::reduce_scatter:
    case NetworkCollective::all_to_all:
      return (n - 1) / n;
    case NetworkCollective::broadcast:
    case NetworkCollective::send_receive:
      return 1;
  }
  return 1;
}

namespace {

// A message's own part of the latency where one kernel posts all of an exchange (assumed: 0.3 us of NVLink's 3).
constexpr double posting_share = 0.1;

// Steps that a group has beyond one of `known` ranks; each costs the network's latency.
double further_steps(NetworkCollective kind, double group, double known) {
  const double ranks = std::max(0.0, group - known);
  switch (kind) {
    case NetworkCollective::all_reduce:
      return 2 * ranks;
    case NetworkCollective::all_gather:
    case NetworkCollective::reduce_scatter:
      return ranks;
    case NetworkCollective::all_to_all:
      return posting_share * ranks;
    case NetworkCollective::broadcast:
    case NetworkCollective::send_receive:
      return 0;
  }
  return 0;
}

std::optional<CollectiveTime> from_table(const NetworkProfile& network, NetworkCollective kind, Bytes bytes,
                                         std::int64_t group) {
  for (const CollectiveCurve& table : network.collectives) {
    if (table.kind != kind) continue;
    const auto n = static_cast<double>(group);
    const double smallest = table.bus_bandwidth.members().front().curve.points().front().x;
    const double size = std::max(static_cast<double>(bytes.count()), smallest);
    const CurveValue bus = table.bus_bandwidth.at(n, size);
    if (bus.value <= 0) return std::nullopt;
    const bool small = static_cast<double>(bytes.count()) < smallest;
    const double steps = further_steps(kind, n, table.bus_bandwidth.members().back().parameter);
    return CollectiveTime{
        from_seconds(size * bus_factor(kind, n) / bus.value + steps * to_seconds(network.latency.value)), true,
        bus.extrapolated || small};
  }
  return std::nullopt;
}

double alpha_beta_seconds(const NetworkProfile& network, NetworkCollective kind, double bytes, std::int64_t group) {
  const double alpha = to_seconds(network.latency.value);
  const double beta = 1 / (to_bytes_per_second(network.bandwidth.value) * network.efficiency.value);
  const auto n = static_cast<double>(group);
  const auto depth = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(group - 1)));
  const double moved = bytes * bus_factor(kind, n) * beta;
  switch (kind) {
    case NetworkCollective::all_reduce: {
      const double in_switch = network.switch_reduction ? network.switch_reduction->value : 1;
      return std::min(2 * (n - 1) * alpha + moved / in_switch, 2 * depth * alpha + 2 * bytes * beta);
    }
    case NetworkCollective::all_gather:
    case NetworkCollective::reduce_scatter:
      return (n - 1) * alpha + moved;
    case NetworkCollective::all_to_all:
      return alpha * (1 + (n - 2) * posting_share) + moved;
    case NetworkCollective::broadcast:
      return depth * alpha + moved;
    case NetworkCollective::send_receive: {
      const auto peers = static_cast<double>(network.max_group.value - 1);
      const bool mesh = network.topology == NetworkTopology::mesh && peers > 1;
      return alpha + moved * (mesh ? peers : 1);
    }
  }
  return moved;
}

bool is_ring(NetworkCollective kind) {
  return kind == NetworkCollective::all_reduce || kind == NetworkCollective::all_gather ||
         kind == NetworkCollective::reduce_scatter;
}

// One ring over the group, in and out of each machine once; inside machines it is faster and hidden.
CollectiveTime ring_through_host(const NetworkProfile& out, NetworkCollective kind, Bytes bytes, std::int64_t group,
                                 std::int64_t machines) {
  const auto n = static_cast<double>(group);
  const double moved = static_cast<double>(bytes.count()) * bus_factor(kind, n);
  const auto steps = static_cast<double>((kind == NetworkCollective::all_reduce ? 2 : 1) * (machines - 1));
  const double seconds =
      steps * to_seconds(out.latency.value) + moved / to_bytes_per_second(out.ring_through_host->value);
  return {from_seconds(seconds), false, group > out.max_group.value};
}

CollectiveTime both(const CollectiveTime& a, const CollectiveTime& b, Picos time) {
  return {time, a.measured || b.measured, a.extrapolated || b.extrapolated};
}

// What a rank has under way: a chunk of 512 KiB (NCCL_BUFFSIZE, 4 MiB, over NCCL_STEPS) in each of 16 channels.
constexpr double chunks_of_rank = 16.0 * (512 << 10);

// Two parts of one kernel that hands chunks on as they come: the slower one's time, and of the faster one what is under
// way. In a ring every rank's own part goes all the way round, in a tree the first chunks go up and down.
CollectiveTime pipelined(const CollectiveTime& a, const CollectiveTime& b, NetworkCollective kind, Bytes bytes,
                         std::int64_t group) {
  const double ranks = kind == NetworkCollective::all_reduce ? 1 : static_cast<double>(group);
  const double under_way = std::min(1.0, ranks * chunks_of_rank / static_cast<double>(bytes.count()));
  return both(a, b, std::max(a.time, b.time) + from_seconds(to_seconds(std::min(a.time, b.time)) * under_way));
}

// Between machines, of one rank in each; g of them share the bytes. A ring over all ranks passes a machine's ports with
// as much as it passes any other link; where switches add inside, what machines exchange is their sums.
CollectiveTime across_machines(const HardwareProfile& system, NetworkCollective kind, Bytes bytes, std::int64_t group,
                               std::int64_t machines, std::int64_t inside) {
  const NetworkProfile& out = required_network(system.scale_out, system, "scale_out");
  const Bytes share((bytes.count() + inside - 1) / inside);
  CollectiveTime time = collective_time(out, kind, share, machines);
  const bool sums_inside = kind == NetworkCollective::all_reduce && system.scale_up->switch_reduction;
  if (sums_inside) return time;
  const double factor = bus_factor(kind, static_cast<double>(group)) - bus_factor(kind, static_cast<double>(machines));
  const double rate = to_bytes_per_second(out.bandwidth.value) * out.efficiency.value;
  time.time += from_seconds(static_cast<double>(share.count()) * factor / rate);
  return time;
}

}  // namespace

CollectiveTime collective_time(const NetworkProfile& network, NetworkCollective kind, Bytes bytes, std::int64_t group) {
  SPILLWAY_ASSERT(bytes >= Bytes::zero() && group >= 1);
  if (group == 1 || bytes == Bytes::zero()) return {};
  if (const auto measured = from_table(network, kind, bytes, group)) return *measured;
  return {from_seconds(alpha_beta_seconds(network, kind, static_cast<double>(bytes.count()), group)), false,
          group > network.max_group.value};
}

CollectiveTime collective_time(const HardwareProfile& system, NetworkCollective kind, Bytes bytes, std::int64_t group,
                               std::int64_t per_machine, std::int64_t stride) {
  SPILLWAY_ASSERT(group >= 1 && per_machine >= 1 && stride >= 1);
  if (group == 1) return {};
  const std::int64_t inside = std::min(group, per_machine);
  if (inside == group)
    return collective_time(required_network(system.scale_up, system, "scale_up"), kind, bytes, group);
  const std::int64_t machines = (group + inside - 1) / inside;
  const NetworkProfile& out = required_network(system.scale_out, system, "scale_out");
  // One rank of each machine talks to its like in the others, all `inside` of them at once.
  if (inside == 1) return collective_time(out, kind, bytes, machines);
  const bool shares_ports = out.gpus_per_port && out.gpus_per_port->value > 1;
  if (shares_ports && stride >= out.gpus_per_port->value && out.ring_through_host && is_ring(kind))
    return ring_through_host(out, kind, bytes, group, machines);
  if (kind == NetworkCollective::send_receive) return collective_time(out, kind, bytes, 2);
  const NetworkProfile& up = required_network(system.scale_up, system, "scale_up");
  if (is_ring(kind)) {
    const CollectiveTime within = collective_time(up, kind, bytes, inside);
    CollectiveTime total =
        pipelined(within, across_machines(system, kind, bytes, group, machines, inside), kind, bytes, group);
    // One ring over all ranks: every machine's inner hops come one after the other.
    if (kind != NetworkCollective::all_reduce) total.time += up.latency.value * ((machines - 1) * (inside - 1));
    return total;
  }
  const bool is_exchange = kind == NetworkCollective::all_to_all;
  const CollectiveTime within = collective_time(up, kind, is_exchange ? bytes / machines : bytes, inside);
  const CollectiveTime across = collective_time(out, kind, bytes, machines);
  if (!is_exchange) return both(within, across, within.time + across.time);
  return {std::max(within.time, across.time), false, within.extrapolated || across.extrapolated};
}

const NetworkProfile& required_network(const std::optional<NetworkProfile>& network, const HardwareProfile& system,
                                       std::string_view which) {
  if (network) return *network;
  const std::string gpus = std::to_string(system.gpu_count) + (system.gpu_count == 1 ? " GPU" : " GPUs");
  const bool is_outside = which == "scale_out";
  throw InputError(system.path, "/" + std::string(which),
                   "system '" + system.name + "' has " + gpus + " and no network " +
                       (is_outside ? "to other machines, which more GPUs need" : "between its GPUs"),
                   "ask for fewer GPUs, or name a network profile under " + std::string(which) +
                       ", in a profile of your own with \"base\": \"" + system.name +
                       "\" (docs/how-to/describe-a-machine.md)");
}

}  // namespace spillway::models
