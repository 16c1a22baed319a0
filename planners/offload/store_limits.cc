#include "planners/offload/store_limits.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "traces/saved_tensors.h"

namespace spillway::planners {
namespace {

struct PlannedStep {
  const OffloadPlan& plan;
  const PlannedTrace& planned;
  const Result& result;
};

// When the host must have launched each op, so that it stays a module ahead of the device: before the module that runs
// ahead of the op's own began in the replay at hand. A module is what "layers.3.mlp.up" names in a pass of
// a micro-batch; ops without a name belong to the one before them.
class LaunchTimes {
 public:
  LaunchTimes(const Trace& trace, const PlannedStep& step) : trace_(trace), step_(step), hosts_(trace.lanes.size()) {}

  // In the order of their launches.
  Picos due(std::size_t op) {
    const Ops& ops = step_.planned.trace.ops;
    Host& host = hosts_[index_of(ops.lane[index_of(ops.launched_by[op])])];
    const Picos start = step_.result.op_start[op];
    const OpId source = step_.planned.source[op];
    Module module{source == OpId::none ? "" : module_of(trace_, source, module_parts), ops.micro_batch[op],
                  ops.phase[op]};
    if (host.begin == unknown_time || (!std::get<0>(module).empty() && module != host.module)) {
      host.before = host.begin == unknown_time ? start : host.begin;
      host.begin = start;
      host.module = std::move(module);
    }
    return std::min(start, host.before) - wake_up;
  }

 private:
  using Module = std::tuple<std::string, std::uint16_t, Phase>;
  struct Host {
    Module module;
    Picos begin = unknown_time, before = unknown_time;  // of the module, and of the one before it
  };
  static constexpr std::size_t module_parts = 4;
  static constexpr Picos wake_up = milliseconds(1);  // of a host that waited for a store

  const Trace& trace_;
  const PlannedStep& step_;
  std::vector<Host> hosts_;
};

// A call's limit is what the stores handed over before it hold when it is due, from the oldest that has not ended; a
// call is due when the earliest behind it is.
class LeastLimits {
 public:
  LeastLimits(const Trace& trace, const PlannedStep& step) : trace_(trace), step_(step), hosts_(trace.lanes.size()) {}

  std::vector<Bytes> run() {
    collect();
    std::vector<Bytes> limits(trace_.rank_count, Bytes(0));  // of a rank that stores nothing: none
    for (std::size_t lane = 0; lane < hosts_.size(); ++lane) {
      Bytes& limit = limits[trace_.lanes[lane].rank];
      limit = std::max(limit, most_held(hosts_[lane]));
    }
    return limits;
  }

 private:
  struct Call {
    Picos due = Picos::max();
    std::size_t stores = 0;  // handed over before it
  };
  struct Host {
    std::vector<Call> calls;
    std::vector<OpId> stores;
  };

  void collect() {
    const PlannedTrace& planned = step_.planned;
    const Ops& ops = planned.trace.ops;
    LaunchTimes launches(trace_, step_);
    std::vector<std::size_t> call_of(ops.size(), 0), absence_of(ops.size(), planned.transfer.size());
    for (std::size_t k = 0; k < planned.transfer.size(); ++k)
      if (planned.transfer[k] != OpId::none) absence_of[index_of(planned.transfer[k])] = k;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (is_host_call(ops.kind[i])) {
        Host& host = hosts_[index_of(ops.lane[i])];
        call_of[i] = host.calls.size();
        host.calls.push_back({.stores = host.stores.size()});
      } else if (absence_of[i] < planned.transfer.size()) {
        const OpId by = trace_.ops.launched_by[index_of(step_.plan.absences[absence_of[i]].store_after)];
        if (by != OpId::none)
          hosts_[index_of(trace_.ops.lane[index_of(by)])].stores.push_back(OpId(static_cast<std::uint32_t>(i)));
      } else if (ops.launched_by[i] != OpId::none) {
        const std::size_t by = index_of(ops.launched_by[i]);
        Picos& due = hosts_[index_of(ops.lane[by])].calls[call_of[by]].due;
        due = std::min(due, launches.due(i));
      }
    }
  }

  [[nodiscard]] Bytes bytes_of(OpId store) const { return step_.planned.trace.ops.bytes[index_of(store)]; }

  Bytes most_held(Host& host) const {
    for (std::size_t c = host.calls.size(); c-- > 1;)
      host.calls[c - 1].due = std::min(host.calls[c - 1].due, host.calls[c].due);
    std::size_t oldest = 0, newest = 0;
    Bytes held{}, most{host.stores.empty() ? 0 : 1};
    for (const Call& call : host.calls) {
      while (newest < call.stores) held += bytes_of(host.stores[newest++]);
      while (oldest < newest && step_.result.op_end[index_of(host.stores[oldest])] <= call.due)
        held = held - bytes_of(host.stores[oldest++]);
      most = std::max(most, held);
    }
    return most;
  }

  const Trace& trace_;
  const PlannedStep& step_;
  std::vector<Host> hosts_;  // by lane
};

}  // namespace

std::vector<Bytes> least_store_limits(const Trace& trace, const OffloadPlan& plan, const PlannedTrace& planned,
                                      const Result& result) {
  const PlannedStep step{plan, planned, result};
  return LeastLimits(trace, step).run();
}

}  // namespace spillway::planners
