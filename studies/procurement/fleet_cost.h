// The cost of a fleet and the wear of its drives, as fields of live tables (studies/procurement/formula_table.h).
//
// All of a fleet's costs over its period, over the tokens it trains in that period at the programme's pace:
//   cost per token = (capital + energy or rent + maintenance + worn drives) / tokens of the period
// The fleet is written off over the period and worth nothing after it; it trains the programme's mix again and again
// (`utilisation` of the time). Drives that are worn out are replaced by new ones, whole sets at a time, the last one
// when it is needed for the rest of the period. Only the first set may have been used before. A drive takes the bytes
// of sim/devices/endurance.h: endurance x (credit - used) / amplification. No interest, no tax, no staff.
#pragma once

#include <string>
#include <vector>

#include "studies/procurement/formula_table.h"

namespace spillway::studies {

// Fields of one run on one fleet: its duration, and what the GPU that writes most does. All drives are counted to wear
// at that GPU's pace. Given: tokens, tokens_per_step, step_seconds, written_gb.
const std::vector<FormulaField>& run_fields();

// Fields of one fleet with one set of drives for each GPU. Fields without an expression are to be given.
const std::vector<FormulaField>& cost_fields();

// Fields of one machine, of one model of drive: the sheets of prices, which the options' fields of the same names refer
// to.
const std::vector<FormulaField>& machine_price_fields();
const std::vector<FormulaField>& drive_price_fields();

// The given fields of cost_fields() that belong to the whole programme, in the sheet "Inputs".
const std::vector<std::string>& shared_cost_fields();

}  // namespace spillway::studies
