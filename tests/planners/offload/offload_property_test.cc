// What must hold of every offloaded step, whatever the trace and the machine: random ones (2,400 at full size) under
// SSDTrain, plans by lifetimes, streams and mixes.
//   bytes      written = read back + forwarded + left on the tier; what the drives count is what the plan moves
//   order      stored when made, loaded when stored, used when loaded; nothing leaves before its last use
//   memory     a block is there while it is stored or loaded; the step never holds more than it does without a plan,
//   but
//              for what is forwarded
//   in flight  the host launches nothing while unfinished stores hold more than the limit, but for one alone
//   ops        each runs exactly once, a recomputed one once more for each time it is made again
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "planners/offload/hybrid_search.h"
#include "planners/offload/lifetimes.h"
#include "planners/offload/offload_run.h"
#include "tests/planners/offload/random_step.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

// A planned step as the test sees it: plan, trace with transfers, replay.
struct Offloaded {
  const Trace& original;
  const OffloadPlan& plan;
  const PlannedTrace& planned;
  const Result& result;

  [[nodiscard]] Picos start(OpId op) const { return result.op_start[index_of(op)]; }
  [[nodiscard]] Picos end(OpId op) const { return result.op_end[index_of(op)]; }
  [[nodiscard]] Bytes bytes(OpId op) const {
    return op == OpId::none ? Bytes(0) : planned.trace.ops.bytes[index_of(op)];
  }
};

class OffloadProperties : public ::testing::Test {
 protected:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.next() % n); }
  double between(double low, double high) {  // evenly over the decades
    return low * std::pow(high / low, static_cast<double>(below(1000)) / 999);
  }

  HardwareProfile machine() {
    HardwareProfile hardware = base_;
    const auto rate = [&](double low, double high) {
      return Sourced<Rate>{rate_from_bytes_per_second(between(low, high)), {}};
    };
    hardware.gpu.host_to_device_bandwidth = rate(5e8, 1e11);
    hardware.gpu.device_to_host_bandwidth = rate(5e8, 1e11);
    if (below(3) == 0) hardware.gpu.duplex_bandwidth = rate(5e8, 1e11);
    hardware.drives.clear();
    const auto count = static_cast<std::int64_t>(below(9));
    if (count == 0) return hardware;
    DriveGroup group;
    group.name = "random";
    group.drive = drive_;
    group.drive.read_bandwidth = rate(1e8, 3e10);
    group.drive.write_bandwidth = rate(1e8, 3e10);
    group.drive.write_cache = {};
    group.drive.steady_write_bandwidth = {};
    if (below(2) == 0) {
      group.drive.write_cache = Sourced<Bytes>{Bytes(static_cast<std::int64_t>(between(1e6, 1e10))), {}};
      group.drive.steady_write_bandwidth = rate(5e7, 1e9);
    }
    if (below(2) == 0) group.drive.read_write_interference = Sourced<double>{between(0.01, 1), {}};
    group.count = count;
    group.raid0 = below(2) == 0;
    hardware.drives = {std::move(group)};
    assign_slots(hardware, true);
    return hardware;
  }

  OffloadSettings settings() {
    OffloadSettings settings;
    settings.tier = below(3) == 0 ? Tier::host : Tier::drive;
    settings.route = below(2) == 0 ? DriveRoute::gpudirect : DriveRoute::bounce;
    settings.workers = 1 + static_cast<std::int64_t>(below(16));
    const std::array<std::int64_t, 5> limits = {0, 1, 1 << 20, 200 << 20, std::int64_t{1} << 50};
    settings.in_flight = Bytes(limits[below(limits.size())]);
    settings.ssdtrain.least_elements = static_cast<std::int64_t>(between(1, 1e7));
    settings.ssdtrain.prefetch = static_cast<Prefetch>(below(3));
    settings.ssdtrain.chunk_leaves = 1 + static_cast<std::int64_t>(below(4));
    settings.ssdtrain.adaptive = below(2) == 0;
    settings.ssdtrain.keep_last = below(2) == 0;
    return settings;
  }

  void check(const Offloaded& step, const Result& keep);
  void check_bytes(const Offloaded& step);
  void check_order(const Offloaded& step);
  void check_memory(const Offloaded& step, const Result& keep);
  void check_in_flight(const Offloaded& step);
  void check_ops(const Offloaded& step);

  SplitMix64 random_{20261122};
  HardwareProfile base_ = ProfileLibrary::standard().load_system("h100-80gb-1gpu");
  NvmeProfile drive_ = ProfileLibrary::standard().load_nvme("samsung-990-pro-2tb");
  int moving_ = 0, forwarding_ = 0, waiting_ = 0, remaking_ = 0;
};

void OffloadProperties::check_bytes(const Offloaded& step) {
  Bytes stored{}, loaded{}, forwarded{}, left{}, brought{}, written{}, read{};
  for (std::size_t k = 0; k < step.plan.absences.size(); ++k) {
    const Absence& absence = step.plan.absences[k];
    const OpId store = step.planned.transfer[k], load = step.planned.fetch[k];
    ASSERT_EQ(store != OpId::none, absence.stores());
    ASSERT_EQ(load != OpId::none, absence.loads());
    stored += step.bytes(store);
    loaded += step.bytes(load);
    if (absence.forwarded) forwarded += step.bytes(store);
    if (store != OpId::none && load == OpId::none && !absence.forwarded) left += step.bytes(store);
    if (store == OpId::none) brought += step.bytes(load);
    if (absence.tier != Tier::drive) continue;
    written += step.bytes(store);
    read += step.bytes(load);
  }
  ASSERT_EQ(stored - left, loaded - brought + forwarded);
  Bytes drives_wrote{}, drives_read{};
  for (const DriveTraffic& drive : step.result.drives) {
    drives_wrote += drive.written;
    drives_read += drive.read;
  }
  ASSERT_EQ(drives_wrote, written);
  ASSERT_EQ(drives_read, read);
  moving_ += loaded > Bytes(0) ? 1 : 0;
  forwarding_ += forwarded > Bytes(0) ? 1 : 0;
}

void OffloadProperties::check_order(const Offloaded& step) {
  std::map<OpId, OpId> now;  // by op of the original
  for (std::size_t i = 0; i < step.planned.source.size(); ++i)
    if (step.planned.source[i] != OpId::none && step.planned.trace.ops.phase[i] != Phase::recompute)
      now.emplace(step.planned.source[i], OpId(static_cast<std::uint32_t>(i)));
  for (std::size_t k = 0; k < step.plan.absences.size(); ++k) {
    const Absence& absence = step.plan.absences[k];
    const OpId store = step.planned.transfer[k], load = step.planned.fetch[k];
    if (store != OpId::none) {
      ASSERT_GE(step.start(store), step.end(now.at(absence.store_after))) << "stored before it was made";
    }
    if (load == OpId::none) continue;
    if (store != OpId::none) {
      ASSERT_GE(step.start(load), step.end(store)) << "read before it was written";
    }
    ASSERT_GE(step.start(now.at(absence.back_before)), step.end(load)) << "used before it was there";
  }
}

// Blocks from their taking to their giving back, on the replay's clock.
void OffloadProperties::check_memory(const Offloaded& step, const Result& keep) {
  const Trace& trace = step.planned.trace;
  const std::vector<Picos> times = event_times(trace, step.planned.gate, step.result.op_start, step.result.op_end);
  std::map<std::uint64_t, Picos> taken;
  std::map<std::uint32_t, std::vector<std::pair<Picos, Picos>>> there;  // by storage
  for (std::size_t e = 0; e < trace.memory_events.size(); ++e) {
    const MemoryEvent& event = trace.memory_events[e];
    const std::uint32_t storage = trace.tensors.storage[index_of(event.tensor)];
    if (event.action == MemoryAction::allocate) {
      ASSERT_TRUE(taken.emplace(event.address.count(), times[e]).second) << "taken twice";
    } else {
      const auto found = taken.find(event.address.count());
      ASSERT_NE(found, taken.end()) << "given back twice";
      there[storage].emplace_back(found->second, times[e]);
      taken.erase(found);
    }
  }
  for (const MemoryEvent& event : trace.memory_events)  // what the step never gives back
    if (const auto found = taken.find(event.address.count()); found != taken.end()) {
      there[trace.tensors.storage[index_of(event.tensor)]].emplace_back(found->second, Picos::max());
      taken.erase(found);
    }
  const auto holds = [&](std::uint32_t storage, Picos from, Picos until) {
    const auto& spans = there[storage];
    return std::any_of(spans.begin(), spans.end(),
                       [&](const auto& span) { return span.first <= from && until <= span.second; });
  };
  for (std::size_t k = 0; k < step.plan.absences.size(); ++k) {
    const std::uint32_t storage = trace.tensors.storage[index_of(step.plan.absences[k].tensor)];
    const OpId store = step.planned.transfer[k], load = step.planned.fetch[k];
    if (store != OpId::none) {
      ASSERT_TRUE(holds(storage, step.start(store), step.end(store))) << "gone while it is stored";
    }
    if (load != OpId::none) {
      ASSERT_TRUE(holds(storage, step.start(load), step.end(load))) << "not there while it is loaded";
    }
  }
  for (const Use& use : trace.uses) {  // an eager host gives back what it has launched the last op of
    const OpId launch = trace.ops.launched_by[index_of(use.op)];
    if (launch == OpId::none) continue;
    ASSERT_TRUE(holds(trace.tensors.storage[index_of(use.tensor)], step.start(launch), step.start(launch)))
        << "used while it is away";
  }
  Bytes forwarded{};  // their stores may end behind their last use
  for (std::size_t k = 0; k < step.plan.absences.size(); ++k)
    if (step.plan.absences[k].forwarded) forwarded += step.bytes(step.planned.transfer[k]);
  if (step.plan.recomputations.empty()) {
    ASSERT_LE(step.result.memory.peak_allocated, keep.memory.peak_allocated + forwarded);
  }
}

void OffloadProperties::check_in_flight(const Offloaded& step) {
  if (step.plan.in_flight == Bytes(0)) return;
  std::vector<OpId> handed_over;  // in the order of their columns
  const Trace& trace = step.planned.trace;
  const std::set<OpId> stores(step.planned.transfer.begin(), step.planned.transfer.end());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const auto op = OpId(static_cast<std::uint32_t>(i));
    if (stores.contains(op)) handed_over.push_back(op);
    if (!is_host_call(trace.ops.kind[i])) continue;
    Bytes held{};
    int unfinished = 0;
    for (const OpId store : handed_over)
      if (step.end(store) > step.start(op)) {
        held += step.bytes(store);
        ++unfinished;
      }
    ASSERT_TRUE(held <= step.plan.in_flight || unfinished <= 1) << unfinished << " stores in flight";
    waiting_ += unfinished == 1 && held > step.plan.in_flight ? 1 : 0;
  }
}

void OffloadProperties::check_ops(const Offloaded& step) {
  std::vector<int> runs(step.original.ops.size(), 0), again(step.original.ops.size(), 0);
  for (std::size_t i = 0; i < step.planned.source.size(); ++i) {
    ASSERT_NE(step.result.op_start[i], unknown_time);
    if (step.planned.source[i] == OpId::none) continue;
    const bool repeats = step.planned.trace.ops.phase[i] == Phase::recompute;
    ++(repeats ? again : runs)[index_of(step.planned.source[i])];
  }
  for (const int count : runs) ASSERT_EQ(count, 1);
  std::vector<int> wanted(step.original.ops.size(), 0);
  for (const Recomputation& group : step.plan.recomputations)
    for (const OpId op : group.ops) {
      ++wanted[index_of(op)];
      if (const OpId by = step.original.ops.launched_by[index_of(op)]; by != OpId::none) ++wanted[index_of(by)];
    }
  ASSERT_EQ(again, wanted);
  remaking_ += step.plan.recomputations.empty() ? 0 : 1;
}

void OffloadProperties::check(const Offloaded& step, const Result& keep) {
  step.planned.trace.check_invariants();
  check_bytes(step);
  check_order(step);
  check_memory(step, keep);
  check_in_flight(step);
  check_ops(step);
}

TEST_F(OffloadProperties, HoldOnRandomStepsAndMachines) {
  const int cases = spillway::test::cases(48, 2'400);
  int refused = 0;
  for (int number = 0; number < cases; ++number) {
    SCOPED_TRACE(number);
    const bool mixes = number % 8 == 7;  // and recomputes, on the stream where it was computed first
    const Trace trace = random_step(random_, mixes ? 1 : 2);
    const HardwareProfile hardware = machine();
    const OffloadSettings settings = this->settings();
    ReplayOptions options;
    options.memory.allocator = "ideal";
    const Result keep = replay(trace, hardware, options);
    const Bytes peak = keep.memory.peak_allocated;
    options.memory.capacity = Bytes(static_cast<std::int64_t>(between(0.3, 1.2) * static_cast<double>(peak.count())));
    try {
      if (mixes) {
        HybridSettings mix;
        mix.budget = options.memory.capacity;
        mix.runtime = settings;
        mix.replays = 4;
        mix.least_bytes = Bytes(1);
        const HybridOutcome outcome = plan_hybrid(trace, PlainReplayer(hardware, options), mix);
        check({trace, outcome.best.plan, outcome.planned, outcome.best.result}, keep);
        for (const HybridCase& baseline : outcome.baselines)
          if (baseline.fits()) {
            ASSERT_TRUE(outcome.best.fits());
            ASSERT_LE(outcome.best.result.step_time, baseline.result.step_time) << baseline.name;
          }
        if (outcome.best.fits()) {
          ASSERT_LE(outcome.best.result.memory.peak_reserved, options.memory.capacity);
        }
      } else {
        const auto technique = number % 4 == 1 ? run_lifetimes : number % 4 == 2 ? run_streaming : run_ssdtrain;
        const OffloadOutcome outcome = technique(trace, PlainReplayer(hardware, options), settings);
        check({trace, outcome.plan, outcome.planned, outcome.result}, keep);
        ASSERT_EQ(outcome.moved.stored >= outcome.moved.forwarded, true);
      }
    } catch (const InputError& error) {  // nothing but drives that aren't there
      ASSERT_TRUE(hardware.drives.empty() && settings.tier == Tier::drive) << error.what();
      ++refused;
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(moving_, cases / 4);
  EXPECT_GT(forwarding_, cases / 50);
  EXPECT_GT(waiting_, cases / 50);
  if (spillway::test::is_full_size()) {
    EXPECT_GT(remaking_, 0);  // rare
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace spillway::planners
