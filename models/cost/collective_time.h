// Time of a collective operation by kind, bytes and group.
//
// Bytes follow nccl-tests: the buffer each rank ends up with (all-gather, broadcast, all-reduce) or starts
// from (reduce-scatter, all-to-all), the one message for send-receive.
// Measured tables come first: time = bytes * factor / bus bandwidth(group, bytes), with factor 2(n-1)/n for
// all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 else (nccl-tests, PERFORMANCE.md). Below a
// table's smallest message the time of that message holds: latency does not shrink with bytes. A group larger than any
// in the table has the largest one's bus bandwidth, and `latency` for every step more that its ring takes.
// Without a table, alpha-beta: every step costs `latency` plus its bytes over bandwidth * efficiency.
//   ring  all-reduce                   2(n-1) steps, 2(n-1)/n of the bytes
//   tree  all-reduce                   2 ceil(log2 n) steps, the bytes up and down once each
//   ring  all-gather, reduce-scatter   n-1 steps, (n-1)/n of the bytes
//   all-to-all                         1 step and a tenth of one per further peer, (n-1)/n of the bytes: one kernel
//                                      posts all messages
//   send-receive                       1 step, the bytes once; a mesh gives one peer 1/(max_group-1) of its links
//   pipelined tree broadcast           ceil(log2 n) steps, the bytes once
// The cheaper of ring and tree is taken. Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", IJHPCA 19(1), 2005; we pipeline the tree, which they don't.
// If switches add (NVLink SHARP), an all-reduce moves 1/switch_reduction of a ring's bytes.
// Across machines, with g ranks in each, the same collective runs inside. Between machines each rank has 1/g of the
// bytes: as many as pass any link of the ring over all ranks, or the machines' sums where switches add. One kernel
// hands chunks from one to the other, so the slower part's time counts, and of the faster one what is under way: chunks
// of 8 MiB a rank. An all-reduce (a tree) has that of one rank under way, a ring that of all. So a ring over many ranks
// takes both parts. Broadcast takes both one after the other, all-to-all beside each other, as NCCL posts both in one
// kernel.
// Bus bandwidths measured, in GB/s (ours: tests/models/cost/collective_time_test.cc): all-reduce of 8 GiB over 16 H100
// 440, over 16 B200 690 (coreweave/nccl-tests PR 92). 2 GiB over 256 H100: all-reduce 340, all-gather 200 (NVIDIA/nccl
// issue 1218). 16 and 24 A100 with a port for two: up to 86 and 96 (NVIDIA/nccl-tests issues 175, 119).
// If several GPUs share a port (gpus_per_port), a ring enters a machine by the GPU next to a port and leaves by another
// one next to the same port. A group may have several ranks in a machine, but one behind each port. Its ring then
// leaves through the memory of the host, all of it at ring_through_host. Groups of neighbouring ranks, or of one per
// machine, are not affected. Source: how NCCL before 2.12 lays rings (NVIDIA/nccl issues 371 and 687).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "hwprofiles/hardware_profile.h"

namespace spillway::models {

// The share of an operation's bytes that cross a rank's link each way: the factor between algorithm and bus bandwidth.
double bus_factor(NetworkCollective kind, double ranks);

struct CollectiveTime {
  Picos time;
  bool measured = false;      // from a table
  bool extrapolated = false;  // outside the table's sizes or group sizes
};

// On one network. bytes >= 0; group >= 1 (1 takes no time). O(log table).
CollectiveTime collective_time(const NetworkProfile& network, NetworkCollective kind, Bytes bytes, std::int64_t group);

// In a system: `group` ranks, `per_machine` of them (>= 1) in each machine, `stride` GPUs (>= 1) apart. Throws
// InputError when the profile lacks the network that the group needs (scale_up inside a machine, scale_out between).
CollectiveTime collective_time(const HardwareProfile& system, NetworkCollective kind, Bytes bytes, std::int64_t group,
                               std::int64_t per_machine, std::int64_t stride = 1);

// A network that the system has, scale_up or scale_out by its name. Throws InputError where it has none: the system,
// how many GPUs it has, and what to do.
const NetworkProfile& required_network(const std::optional<NetworkProfile>& network, const HardwareProfile& system,
                                       std::string_view which);

}  // namespace spillway::models
