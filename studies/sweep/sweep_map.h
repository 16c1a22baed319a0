// The best of a sweep for each pair of values of two axes, whatever the others are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/sweep/sweep_run.h"

namespace spillway::studies {

struct SweepMap {
  enum class Source : std::uint8_t { none, screened, replayed };
  struct Cell {
    Source source = Source::none;
    double value = 0;  // of the objective, small is good
    std::int64_t number = 0;
  };
  std::string across_name, up_name;
  std::vector<std::string> across, up;  // options' labels
  std::vector<Cell> cells;              // by up, then across
  [[nodiscard]] const Cell& at(std::size_t up_option, std::size_t across_option) const {
    return cells[up_option * across.size() + across_option];
  }
};

inline constexpr std::size_t most_map_options = 40;

// A replayed point counts by its replay, if it meets the requirements; another one by its estimate, if it may meet
// them. Points without a closed form and ssd_life have no estimate. All points are screened once more, on oneTBB's
// threads. Throws InputError for an axis the file doesn't have, one twice, or one of more than most_map_options values.
SweepMap sweep_map(const SweepFile& file, const SweepOutcome& outcome, const std::string& across, const std::string& up,
                   Objective objective);

}  // namespace spillway::studies
