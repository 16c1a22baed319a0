#include "studies/offload/offload_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/input_error.h"

namespace spillway::studies {
namespace {

using Rank = std::uint16_t;

const StepResult& last_step(const Result& result) {
  if (result.steps.empty())
    throw InputError("", "report", "the trace has no step", "record or generate a whole training step");
  return result.steps.back();
}

// Adds up what each rank moves.
class Traffic {
 public:
  Traffic(const Trace& trace, const Result& result) : trace_(trace), result_(result), step_(last_step(result)) {}

  // The replay's own transfers, of a plan and of the trace.
  OffloadTraffic measured() {
    for (std::size_t op = 0; op < trace_.ops.size(); ++op) {
      const bool is_write = trace_.ops.kind[op] == OpKind::storage_write;
      if ((!is_write && trace_.ops.kind[op] != OpKind::storage_read) || !in_step(op)) continue;
      const Rank rank = trace_.lanes[index_of(trace_.ops.lane[op])].rank;
      OffloadTraffic& traffic = ranks_[rank];
      const Bytes bytes = trace_.ops.bytes[op];
      traffic.load.spans.push_back({within(result_.op_start[op]), within(result_.op_end[op]), bytes, is_write});
      traffic.tensors += is_write ? 1 : 0;
      TrafficCause& cause = cause_of(
          rank, fmt::format("{} in the {}", trace_.strings.text(trace_.ops.name[op]), to_string(trace_.ops.phase[op])));
      cause.tensors += 1;
      (is_write ? cause.written : cause.read) += bytes;
    }
    OffloadTraffic busiest = of_busiest();
    busiest.basis = measured_basis();
    if (result_.offload) {
      busiest.technique = result_.offload->technique;
      if (!uses_drives(trace_)) {
        busiest.to_host = result_.offload->stored;
        busiest.from_host = result_.offload->loaded;
      }
    }
    return busiest;
  }

 private:
  static double giga(Bytes bytes) { return static_cast<double>(bytes.count()) / 1e9; }

  [[nodiscard]] std::string measured_basis() const {
    if (!result_.offload)
      return "As replayed: optimizer state, gradients and weights that live on drives. Activations stay in memory.";
    const OffloadResult& offload = *result_.offload;
    return fmt::format(
        "As replayed under {}: of {:.4g} GB that might leave, {:.4g} GB are stored, {:.4g} GB loaded, {:.4g} GB "
        "forwarded from memory while their store was still under way.",
        offload.technique, giga(offload.candidates), giga(offload.stored), giga(offload.loaded),
        giga(offload.forwarded));
  }

  [[nodiscard]] bool in_step(std::size_t op) const {
    const Picos start = result_.op_start[op];
    return start != unknown_time && start >= step_.begin && start < step_.end;
  }
  [[nodiscard]] Picos within(Picos time) const { return std::clamp(time - step_.begin, Picos(0), result_.step_time); }

  TrafficCause& cause_of(Rank rank, std::string name) {
    TrafficCause& cause = causes_[rank][name];
    cause.name = std::move(name);
    return cause;
  }

  OffloadTraffic of_busiest() {
    OffloadTraffic busiest;
    std::vector<DriveLoad> loads(std::max<std::size_t>(1, trace_.rank_count));
    for (DriveLoad& load : loads) load.step = result_.step_time;
    for (auto& [rank, traffic] : ranks_) {
      traffic.rank = rank;
      if (rank < loads.size()) loads[rank].spans = traffic.load.spans;
      if (rank == ranks_.begin()->first || traffic.load.written() > busiest.load.written())
        busiest = std::move(traffic);
    }
    for (const auto& [name, cause] : causes_[busiest.rank]) busiest.causes.push_back(cause);
    std::stable_sort(busiest.causes.begin(), busiest.causes.end(), [](const TrafficCause& a, const TrafficCause& b) {
      return a.written + a.read > b.written + b.read;
    });
    busiest.load.step = busiest.replayed = result_.step_time;
    busiest.loads = std::move(loads);
    return busiest;
  }

  const Trace& trace_;
  const Result& result_;
  const StepResult& step_;
  std::map<Rank, OffloadTraffic> ranks_;
  std::map<Rank, std::map<std::string, TrafficCause>> causes_;
};

}  // namespace

bool uses_drives(const Trace& trace) {
  return std::any_of(trace.ops.kind.begin(), trace.ops.kind.end(), [](OpKind kind) { return is_storage(kind); });
}

OffloadTraffic offload_traffic(const Trace& trace, const Result& result) { return Traffic(trace, result).measured(); }

void set_pace(OffloadTraffic& traffic, Picos step) {
  SPILLWAY_ASSERT(step > Picos(0));
  const double scale = to_seconds(step) / to_seconds(traffic.load.step);
  const auto scaled = [&](Picos at) {
    return std::min(step, Picos(std::llround(static_cast<double>(at.count()) * scale)));
  };
  const auto stretch = [&](DriveLoad& load) {
    for (LoadSpan& span : load.spans) {
      span.begin = scaled(span.begin);
      span.end = scaled(span.end);
    }
    load.step = step;
  };
  stretch(traffic.load);
  for (DriveLoad& load : traffic.loads) stretch(load);
}

std::vector<double> traffic_course(const DriveLoad& load, bool writes, std::size_t bins) {
  std::vector<double> due(bins, 0);
  const double step = to_seconds(load.step), width = step / static_cast<double>(bins);
  if (step <= 0) return due;
  const auto bin_of = [&](double at) {
    return static_cast<std::size_t>(std::clamp(at / width, 0.0, static_cast<double>(bins) - 1));
  };
  for (const LoadSpan& span : load.spans) {
    if (span.is_write != writes) continue;
    const double from = to_seconds(span.begin), to = to_seconds(span.end);
    for (std::size_t bin = bin_of(from); bin <= bin_of(to); ++bin) {
      const double begin = static_cast<double>(bin) * width;
      const double share = to > from ? (std::min(to, begin + width) - std::max(from, begin)) / (to - from) : 1;
      due[bin] += static_cast<double>(span.bytes.count()) * std::clamp(share, 0.0, 1.0) / width;
    }
  }
  return due;
}

}  // namespace spillway::studies
