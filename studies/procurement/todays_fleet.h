// The programme on the fleet that is there already ("today"), to compare an offer with.
//
// Its layouts are searched as an option's are. It costs what it draws: nothing is bought, so nothing is priced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/procurement/drive_choice.h"

namespace spillway::studies {

struct TodaysFleet {
  std::string machine, technique;
  std::int64_t gpus = 0;
  std::string failure;               // why it can't train the programme; empty: it can
  std::vector<std::string> layouts;  // by run: "t 8, p 4, b 1"
  std::vector<RunReplay> runs;
  double days = 0;             // of the programme, pauses included
  double kilowatts = 0;        // while it trains, without the facility's overhead
  double kwh_per_billion = 0;  // 1e9 tokens, likewise
};

// The fleet of request.today, which must be given. Throws Cancelled when progress says so.
TodaysFleet todays_fleet(const ProcurementRequest& request, const OptionProgress& progress = {});

}  // namespace spillway::studies
