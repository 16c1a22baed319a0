// How rows are ranked, and what a row must keep besides fitting: one set of objectives and constraints for every
// search.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/words.h"
#include "studies/candidates/row.h"

namespace spillway::studies {

enum class Objective : std::uint8_t {
  step_time,
  peak_memory,
  gpus,
  gpu_time_per_token,
  cost_per_token,
  energy_per_token,
  ssd_life
};
inline constexpr std::array all_objectives = {
    Objective::step_time,      Objective::peak_memory,      Objective::gpus,    Objective::gpu_time_per_token,
    Objective::cost_per_token, Objective::energy_per_token, Objective::ssd_life};
const Words& objective_words();  // in their order
std::string_view to_string(Objective objective);

// Figures that a step is ranked by, of its replay or as estimated. Unknown ones are 0, and never rule a step out.
struct Figures {
  double step_seconds = 0;
  double peak_bytes = 0;       // reserved
  double allocated_bytes = 0;  // at the peak; what is reserved beyond it may be given back before memory runs out
  double gpus = 1;
  double tokens_per_step = 0;
  double free_bytes = 0;    // of the capacity less what is kept free of it, as verdicts say; negative: short
  double busy_seconds = 0;  // of the step, in which a GPU is busy (sim/replay/gpu_busy.h); mean over ranks
  double mfu = 0;
  Rates rates;             // of all its GPUs
  double life_years = 0;   // expected; infinity: nothing is written, or it is unknown
  double rated_years = 0;  // of a replay: by the rating as it stands

  // Smaller is better; 0 where not known. Without tokens what is asked per token is of the step.
  [[nodiscard]] double value(Objective objective) const;
};
Figures figures_of(const Row& row);

// 0: not asked.
// Budget: purchase of the machines, and of drives that are named; network and running costs aside. Power: of these,
// while they train, without the facility's own.
struct Constraints {
  double most_step_seconds = 0, most_gpus = 0, least_tokens_per_second = 0, least_mfu = 0;
  double most_peak_bytes = 0, least_free_bytes = 0;  // reserved, of the GPU that needs most
  double most_usd_per_million_tokens = 0, most_kwh_per_million_tokens = 0, most_gpu_hours_per_million_tokens = 0;
  double least_life_years = 0;  // of the drives, by their rating as it stands
  double most_usd = 0, most_kilowatts = 0;
};
// The bounds on a row's own figures: all but budget and power, which a row doesn't know.
void describe_bounds(Constraints& constraints, FieldVisitor& visitor);

// A bound that a row does not keep.
struct Miss {
  std::string words;  // "a step of 12 s is longer than 10 s"
  double share = 0;   // of the bound, by which it is missed; infinity: the figure is not known
};
// In the order of the description; empty: all are kept. A figure that isn't known keeps no bound.
std::vector<Miss> misses(const Constraints& asked, const Row& row);
// The words of the first.
std::string missed(const Constraints& asked, const Row& row);
// By how much of a bound figures miss those that they know, at most; 0: they keep them.
double excess(const Constraints& asked, const Figures& figures);
// Whether a bound is on money or energy by the token: it needs rates.
bool asks_usd(const Constraints& asked);
bool asks_energy(const Constraints& asked);

}  // namespace spillway::studies
