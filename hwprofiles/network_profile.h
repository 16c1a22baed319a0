// A network between GPUs, inside a machine (NVLink, xGMI, PCIe) or between machines (InfiniBand, Ethernet).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hwprofiles/curve.h"
#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

enum class NetworkTopology { fully_switched, ring, mesh };
std::string_view network_topology_name(NetworkTopology topology);

enum class NetworkCollective { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_receive };
std::string_view collective_kind_name(NetworkCollective kind);

// Bus bandwidth (bytes a second, the NCCL-tests convention) against message bytes, one curve per group size.
struct CollectiveCurve {
  NetworkCollective kind = NetworkCollective::all_reduce;
  CurveFamily bus_bandwidth;
  Origin origin;
};

struct NetworkProfile {
  std::string name, title, technology, note;
  NetworkTopology topology = NetworkTopology::fully_switched;
  Sourced<Rate> bandwidth;          // per GPU and direction
  Sourced<double> efficiency;       // (0, 1]: payload a large collective reaches over that
  Sourced<Picos> latency;           // of one step of a collective: the alpha of alpha-beta models
  Sourced<std::int64_t> max_group;  // GPUs it can join
  // Its switches add (NVLink SHARP, NVLink 4 and later): bus bandwidth of an all-reduce over a ring's. Absent: they
  // don't.
  Maybe<double> switch_reduction;
  // GPUs of a machine behind one port; `bandwidth` is their share of it. Absent: each has its own.
  Maybe<std::int64_t> gpus_per_port;
  // Rate of a ring that has to reach its port through the host, because only one of the GPUs behind the port is in it.
  // Absent: as any other ring.
  Maybe<Rate> ring_through_host;
  std::vector<CollectiveCurve> collectives;
  Maybe<double> port_watts, port_price_usd;
};

}  // namespace spillway::hwprofiles
