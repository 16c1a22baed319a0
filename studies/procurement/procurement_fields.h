// The "procurement" object of a scenario or a sweep: its fields, and what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "sim/devices/endurance.h"
#include "sim/devices/machine.h"
#include "studies/candidates/request_parts.h"

namespace spillway::studies {

// Terms that a request takes from the section as they are.
struct ProcurementTerms : LayoutSizes {
  std::vector<std::string> machines;
  std::vector<std::int64_t> gpus;
  std::int64_t drives_per_gpu = 8;  // at most
  DriveRoute route = DriveRoute::gpudirect;
  double period_months = 36, utilisation = 0.9;
  std::int64_t shortlist = 6;
  double budget_usd = 0;  // for what is bought, or for the rent; 0: none
};

// Not nested: clang 14 makes no optional of a nested type with default values.
struct ProcurementFleet {
  std::string machine, technique;
  std::int64_t gpus = 0;
};

// Empty and nullopt: not said.
struct ProcurementSection : ProcurementTerms {
  struct Run {
    std::string name;
    std::optional<double> tokens;
    std::optional<std::string> set;  // JSON
  };
  std::optional<double> tokens, deadline_days, least_life_years;
  std::optional<ProcurementFleet> today;
  std::vector<Run> runs;
  std::vector<std::string> techniques, drives;
  std::optional<std::int64_t> replays;
  RetentionRelaxation retention = RetentionRelaxation::none;
  double used_percent = 0, write_amplification = 1;
  std::string prices, prices_date;
  bool used_prices = false;
};

void describe(ProcurementSection& section, FieldVisitor& visitor);

// Makes the fields of "capacity" and "procurement" known to scenarios: to be called once, before any is loaded.
void add_study_sections();

}  // namespace spillway::studies
