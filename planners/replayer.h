// How planners ask what a step would do: a replay on a machine they are handed, under options they don't choose.
//
// Planners get (trace, settings, Replayer): they know neither the scenario nor who replays for them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "hwprofiles/hardware_profile.h"
#include "sim/replay/replay.h"

namespace spillway::planners {

// Changes that a planner may make to the options.
struct ReplayVariation {
  std::optional<Bytes> capacity;  // of device memory; 0: without a limit
  std::optional<Detail> detail;   // else the options'
  bool ideal_memory = false;      // an allocator that fragments nothing, without a limit
  std::map<std::int16_t, std::shared_ptr<const MemoryPlan>> places;  // by device, to be followed; empty: as it is
};

class Replayer {
 public:
  virtual ~Replayer() = default;
  [[nodiscard]] virtual const HardwareProfile& hardware() const = 0;
  [[nodiscard]] virtual const ReplayOptions& options() const = 0;
  // Of device memory; 0: none. Planners ask here if their answer depends on it, so that it is known of which ones it
  // does.
  [[nodiscard]] virtual Bytes memory_limit() const { return options().memory.capacity; }
  // As sim/replay/replay.h has it, with its errors.
  [[nodiscard]] virtual Result replay(const Trace& trace, const ReplayVariation& variation) const = 0;
  [[nodiscard]] virtual Result replay(PlannedTrace planned, const ReplayVariation& variation) const = 0;
  [[nodiscard]] Result replay(const Trace& trace) const { return replay(trace, ReplayVariation()); }
  [[nodiscard]] Result replay(PlannedTrace planned) const { return replay(std::move(planned), ReplayVariation()); }

 protected:
  Replayer() = default;
  Replayer(const Replayer&) = default;
  Replayer& operator=(const Replayer&) = default;
};

// Replays in this thread, each time from scratch.
class PlainReplayer : public Replayer {
 public:
  // Both are kept by reference and must outlive it.
  PlainReplayer(const HardwareProfile& hardware, const ReplayOptions& options)
      : hardware_(hardware), options_(options) {}
  using Replayer::replay;
  [[nodiscard]] const HardwareProfile& hardware() const override { return hardware_; }
  [[nodiscard]] const ReplayOptions& options() const override { return options_; }
  [[nodiscard]] Result replay(const Trace& trace, const ReplayVariation& variation) const override;
  [[nodiscard]] Result replay(PlannedTrace planned, const ReplayVariation& variation) const override;

 private:
  const HardwareProfile& hardware_;
  const ReplayOptions& options_;
};

// Stands before another one: a class of it changes what is asked, or looks at what comes back.
class ReplayerBefore : public Replayer {
 public:
  using Replayer::replay;
  [[nodiscard]] const HardwareProfile& hardware() const override { return of_.hardware(); }
  [[nodiscard]] const ReplayOptions& options() const override { return of_.options(); }
  [[nodiscard]] Bytes memory_limit() const override { return of_.memory_limit(); }
  [[nodiscard]] Result replay(const Trace& trace, const ReplayVariation& variation) const final {
    return seen(of_.replay(trace, asked(variation)), variation);
  }
  [[nodiscard]] Result replay(PlannedTrace planned, const ReplayVariation& variation) const final {
    return seen(of_.replay(std::move(planned), asked(variation)), variation);
  }

 protected:
  // `of` must outlive it.
  explicit ReplayerBefore(const Replayer& of) : of_(of) {}
  [[nodiscard]] virtual ReplayVariation asked(const ReplayVariation& variation) const { return variation; }
  [[nodiscard]] virtual Result seen(Result result, const ReplayVariation& /*variation*/) const { return result; }
  [[nodiscard]] const Replayer& of() const { return of_; }

 private:
  const Replayer& of_;
};

// Another one under a variation, for planners that ask planners. A replay's own variation wins.
class VariedReplayer final : public ReplayerBefore {
 public:
  // `of` must outlive it.
  VariedReplayer(const Replayer& of, const ReplayVariation& variation);
  [[nodiscard]] const ReplayOptions& options() const override { return options_; }
  [[nodiscard]] Bytes memory_limit() const override;

 private:
  [[nodiscard]] ReplayVariation asked(const ReplayVariation& more) const override;

  ReplayVariation variation_;
  ReplayOptions options_;
};

// The options with a variation made.
ReplayOptions varied(ReplayOptions options, const ReplayVariation& variation);

}  // namespace spillway::planners
