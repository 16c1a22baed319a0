// OffloadPlan: which storages leave device memory during a step, where to, when they come back, and what is recomputed
// instead.
//
//   device work   | writes T | ... | last use of T | ......... | fetch_at | ... | first use of T again |
//   store                    [== T to the tier ==]
//   T's memory    |==================================|  away   |======= load =|========================|
//                            store_after      leave_after   launch of fetch_at      back_before
//
// Ids are those of the trace the plan was made for. A plan says what is to happen, planned_trace() makes a trace of it,
// and plan_check says independently whether it is legal.
// Source of the terms: SSDTrain (arXiv 2408.10013, sections III and IV): store and load pools, forwarding, release.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/devices/machine.h"
#include "traces/trace.h"

namespace spillway::sim {

// Place of an absent storage, or its way back.
enum class Tier : std::uint8_t { host, drive, recompute };
std::string_view to_string(Tier tier);

// One absence of a storage from device memory. Ops are device work of the storage's own device.
struct Absence {
  TensorId tensor = TensorId::none;  // any of the storage's
  Tier tier = Tier::drive;
  // Last op that wrote it before: its copy may be written from the end of this op on. none: the tier holds it already,
  // or nobody needs it (tier recompute).
  OpId store_after = OpId::none;
  OpId leave_after = OpId::none;  // last op that uses it before; none: it is away when the step begins
  OpId fetch_at = OpId::none;     // the launch of this op asks for it back (paced_by_device: its turn on its stream);
                                  // none: that of back_before
  OpId back_before = OpId::none;  // first op that uses it again; none: it stays away until the step ends
  // Asked for back while it was still being written: it never left, and nothing is read (SSDTrain's forwarding).
  bool forwarded = false;

  [[nodiscard]] bool stores() const { return store_after != OpId::none; }
  [[nodiscard]] bool loads() const { return back_before != OpId::none && tier != Tier::recompute && !forwarded; }
};

// Ops run once more, in this order, before the launch of `before`. They write the storages with an absence by
// recomputation that ends with it (Absence::fetch_at, or back_before where there is none). Everything else they write
// is temporary and goes when the last of them has used it.
struct Recomputation {
  OpId before = OpId::none;
  std::vector<OpId> ops;
};

struct OffloadPlan {
  std::uint64_t digest = 0;  // of the trace it is for: digest_of_works(); 0: not said
  std::string technique;     // who made it: "ssdtrain", "mix", ...; for people
  std::vector<Absence> absences;
  std::vector<Recomputation> recomputations;  // ascending by `before`, each once
  // Transfers of each direction that are at work at once, per GPU. To the host one copy at a time each way, as a
  // CUDA stream does.
  std::int64_t store_workers = 6, load_workers = 6;
  // The host waits before it launches on while unfinished stores hold more than this, unless it is one store alone; 0:
  // it never waits.
  Bytes in_flight{};
  std::vector<Bytes> rank_in_flight;  // by rank, instead; empty: all ranks alike
  // Loads are asked for when the device reaches `fetch_at`, not when the host launches it. For planners that know when
  // a load must begin, and a host that runs ahead.
  bool paced_by_device = false;
  DriveRoute route = DriveRoute::gpudirect;
  // Host time for each tensor handed over and each asked for, forwarded or not, before the host goes on.
  Picos host_time{};
  // Drive set; empty: set number (GPU mod sets) of its machine.
  std::string drives;

  [[nodiscard]] bool empty() const { return absences.empty() && recomputations.empty(); }
  [[nodiscard]] Bytes in_flight_of(std::size_t rank) const {
    return rank < rank_in_flight.size() ? rank_in_flight[rank] : in_flight;
  }
};

}  // namespace spillway::sim
