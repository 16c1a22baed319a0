// A point of a sweep before it is replayed: its estimate, what that lets be said for sure, or why it can't run.
//
// Points with settings that differ in the model's training alone share an environment: model, hardware, cost model, and
// the shapes measured on it (studies/screen). A new environment takes some 50 ms, a new shape a few, a point
// microseconds, and where the allocator is run over its own allocations some milliseconds.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_space.h"

namespace spillway::studies {

inline constexpr std::size_t most_objectives = all_objectives.size();
using SweepValues = std::array<double, most_objectives>;  // by objective of the file; the rest 0

struct MeasuredShape;

struct SweepEstimate {
  std::string invalid;  // why it can't run at all; empty: it can
  Figures metrics;
  double capacity_bytes = 0;
  bool is_bound = false;  // times are those of the step without its technique, peaks are not known
  bool is_least = false;  // times and peaks are lower bounds (least_sharded_step())
  // The shape with cached bytes that are not in the peak yet: peak_bytes is allocated_bytes, both estimates without the
  // allocator (SweepScreen::add_cached()). does() may turn out false.
  MeasuredShape* lacks = nullptr;
  // Likely figures of a bound's step, by the nearest with a closed form, for the order of replays; 0 not known.
  double likely_seconds = 0, likely_bytes = 0;

  // As good as it may turn out within the file's margins, and as bad.
  [[nodiscard]] SweepValues best(const SweepFile& file) const;
  [[nodiscard]] SweepValues worst(const SweepFile& file) const;
  // Whether it may meet what the file requires, and whether it does for sure. It may fit though more is reserved
  // without a limit than there is: the allocator gives cached segments back and tries again.
  [[nodiscard]] bool may_do(const SweepFile& file) const;
  [[nodiscard]] bool does(const SweepFile& file) const;
  // Share of a requirement, at most, by which it is missed: -1 as good as it may turn out, 0 as estimated, 1 as bad.
  [[nodiscard]] double lacks_share(const SweepFile& file, double sign) const;

 private:
  [[nodiscard]] Figures within(const SweepFile& file, double sign) const;
  [[nodiscard]] bool may_give_back(const SweepFile& file) const;
};

class SweepScreen {
 public:
  // `file` must outlive it.
  explicit SweepScreen(const SweepFile& file);
  ~SweepScreen();

  // May be called by several threads. Throws InputError where an environment can't be made at all (no such profile).
  SweepEstimate estimate(const SweepSettings& settings);
  // As estimate(), but the peak may lack what lies cached.
  SweepEstimate second_look(const SweepSettings& settings);
  // As second_look(), but lower bounds by the step without ZeRO (is_least) under ZeRO stages 2 and 3, which need a
  // separate probe for every number of replicas. Often they rule a point out.
  SweepEstimate first_look(const SweepSettings& settings);
  // Makes it estimate()'s. In a space of up to 32,768 points its peaks are those of the fullest stage's allocations
  // (step_peak.h), a few milliseconds. In a larger one what lay cached of a probe is added. `settings`: its own.
  void add_cached(SweepEstimate& estimate, const SweepSettings& settings);
  // Keys ("model.prefetch") that make no difference to the looks at these settings, whatever their values are, of those
  // that unseen_fields() knows; empty for settings that are invalid. Throws as estimate().
  std::vector<std::string> unseen(const SweepSettings& settings);
  // Equal for settings that a step can't tell apart, such as what ZeRO stage 3 alone looks at under the others
  // (step_setup()). 0: not known, as of settings that are invalid. Throws as estimate().
  std::uint64_t state_key(const SweepSettings& settings);

 private:
  struct Environment;
  SweepEstimate look(const SweepSettings& settings, bool is_first);
  std::shared_ptr<Environment> environment(const SweepSettings& settings);
  void fill(const std::vector<std::string>& assignments, Environment& made) const;
  void check_rates(const std::string& hardware, const Rates& rates) const;

  const SweepFile& file_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Environment>> environments_;
};

}  // namespace spillway::studies
